/* SPDX-License-Identifier: MIT */
/*
 * Two engines with the same devices, as two processes have them, joined by a way out: a ring of frames in
 * each direction. Engine 0 has the QP of side 0, engine 1 that of side 1; the other sides are idle.
 */
#ifndef TEST_SUPPORT_JOINED_H
#define TEST_SUPPORT_JOINED_H

#include "test/support/engine.h"

#define JOINED_RING 4096u

/* A frame on its way from one engine to the other. */
struct joined_frame {
	uint32_t device_index; /* the device and the port that it goes to */
	uint8_t port;
	bool checked;
	size_t frame_bytes;
	uint8_t frame[SIM_FRAME_BYTES_MAX];
	/* A train (sim/wire/packet.h) instead of a frame: its packets, its bytes, which the ring frees, and its route. */
	unsigned int train_packets; /* 0: a frame */
	uint8_t *train;
	struct sim_route route;
};

/* The way from one engine to the other. */
struct joined_way {
	struct joined *joined;
	unsigned int from;
	struct joined_frame *frames; /* JOINED_RING */
	unsigned int head, tail;
	unsigned int limit; /* the most frames in the ring */
	unsigned int kept;  /* so many of them are for ACKs and NAKs only */
	unsigned int most;  /* the most frames that were in the ring */
	bool stuck;	    /* the receiver takes nothing */
	bool lags;	    /* the receiver does not run, and will */
	bool ended;	    /* the receiver has ended: nobody has its numbers */
	bool no_end;	    /* there is room without end: what does not fit is lost */
	bool no_services;   /* the receiver has no services */
	bool no_groups;	    /* the receiver has no member of any group */
	unsigned int sent, lost;
	/* With joined_carry_trains(): how many bytes of payload a train may have, how many trains were sent, and the inlet
	 * by which they come. */
	uint32_t train_bytes;
	unsigned int trains;
	struct sim_inlet inlet;
	/* The packets of the trains in the ring, without the first one of each: they need room, too. */
	unsigned int followers;
	uint32_t memberships; /* of the sender */
	unsigned int joins;   /* calls of joined() */
	/* Calls of join() and leave(), the last group, and the errno value that join() returns. */
	unsigned int groups_joined, groups_left;
	union ibv_gid last_group;
	int join_error;
	/* What is beyond both engines: frames to the address `far` leave, and end here. */
	union ibv_gid far;
	unsigned int far_frames;
	unsigned int far_limit;	       /* how many frames may go there; 0: any number */
	struct joined_frame far_frame; /* the last one */
};

/* A service ID that an engine has reserved. */
struct joined_service {
	unsigned int owner; /* the engine */
	uint64_t service_id;
	uint8_t address[16];
	uint32_t flags; /* enum sim_service_flag */
	bool listens;
};

#define JOINED_SERVICES 16u

struct joined {
	struct engine engines[2];
	struct joined_way ways[2];
	uint8_t owners[SIM_NUMBERS][1u << 12]; /* the engine that has a block, from 1 */
	uint32_t next_block[SIM_NUMBERS];
	uint64_t now_ns;
	struct joined_service services[JOINED_SERVICES];
	unsigned int service_count;
	uint32_t taken
		[2]; /* the communication ID of the last request that an engine has taken; 0: none */
};

/* Makes both engines, and connects side 0 of the first with side 1 of the second. room: frames that each
 * ring holds. */
void joined_open(struct joined *joined, const struct engine_config *config, unsigned int room);
void joined_close(struct joined *joined);

/* Returns the side that the engine has the QP of. */
struct engine_side *joined_side(struct joined *joined, unsigned int engine);

/* From now on connections have lanes, which carry trains of up to so many bytes of payload. Packets that are no train
 * leave by the network. */
void joined_carry_trains(struct joined *joined, uint32_t train_bytes);

/* Posts at an engine's side; the target is the other engine's. */
int joined_send(struct joined *joined, unsigned int engine, struct engine_send send);
int joined_recv(struct joined *joined, unsigned int engine, uint64_t wr_id, uint32_t offset,
		uint32_t bytes);

/* Connects a QP of one engine with one of the other. */
void joined_connect(struct joined *joined, struct sim_qp *const qps[2]);

/* Makes another QP of RC for max_send_wr sends at each engine, that of engine 1 with an SRQ if there is one, and connects
 * both. */
void joined_add_qps(struct joined *joined, uint32_t max_send_wr, struct sim_srq *srq,
		    struct sim_qp *qps[2]);

/* Gives the next frame of a ring to its receiver. Returns false if there is none, or the ring is stuck. */
bool joined_take(struct joined_way *way);

/* Takes the next frame of a ring away. */
void joined_lose(struct joined_way *way);

/* The same, and tells the sender that there is room. */
bool joined_pass(struct joined_way *way);

/* Runs both engines and both rings until no packet is under way; then moves the time, while a timer is due
 * until until_ns. */
void joined_settle(struct joined *joined, uint64_t until_ns);

/* Runs the present instant of both engines. */
void joined_run(struct joined *joined);

/* Claims blocks for the engine whose way is arg. */
sim_claim_fn joined_claim;

#endif
