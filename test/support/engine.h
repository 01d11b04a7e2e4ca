/* SPDX-License-Identifier: MIT */
/*
 * A fixture for unit tests of the engine: an engine with two devices, a QP and memory on each, and
 * a record of every frame and event. It uses nothing of backends/ and src/.
 */
#ifndef TEST_SUPPORT_ENGINE_H
#define TEST_SUPPORT_ENGINE_H

#include "sim/engine.h"
#include "sim/qp/private.h"

#define ENGINE_MEMORY_BYTES (256u * 1024)
#define ENGINE_EVENTS_MAX   64
/* The QPN of the peer whose packets a test makes by hand. */
#define ENGINE_PEER_QPN 0x123456u
#define ENGINE_PSN	100u
#define ENGINE_QKEY	0x11111111u

struct engine_config {
	enum ibv_qp_type type; /* default RC */
	enum ibv_mtu mtu;      /* default 256 */
	uint64_t seed;
	uint32_t max_wr;  /* default 64 */
	uint32_t max_sge; /* default 4 */
	uint32_t max_inline;
	uint32_t cq_entries; /* default 256 */
	uint32_t psn[2];     /* first PSN that each side sends; default ENGINE_PSN */
	uint8_t timeout;     /* default 14: 67 ms */
	uint8_t retry_cnt;   /* default 7 */
	uint8_t rnr_retry;
	uint8_t min_rnr_timer; /* default 1: 10 us */
	uint8_t reads;	       /* max_rd_atomic and max_dest_rd_atomic; default 4 */
	uint8_t reads_in;      /* max_dest_rd_atomic, if it differs from reads */
	bool no_retry;	       /* retry_cnt is 0 */
	bool no_timeout;       /* timeout is 0 */
	bool peer;	       /* side 1 has no QP: the test is the peer */
	bool rtr_only;	       /* leave the QPs in RTR */
	bool sig_all;
	bool infiniband;     /* the ports' link layer; LIDs 1 and 2 */
	bool grh;	     /* on InfiniBand: packets have a GRH, too */
	bool quiet;	     /* record no frames, so that the engine passes descriptors */
	bool unconnected;    /* leave the QPs in RESET */
	sim_claim_fn *claim; /* struct sim_host, claim_numbers */
	void *claim_arg;
	uint64_t delay_ns;
	uint64_t bits_per_second;
};

struct engine_frame {
	uint64_t now_ns;
	size_t frame_bytes;
	enum sim_decode decoded;
	bool lost;
	struct sim_packet packet; /* spans is NULL */
	struct sim_route route;
};

struct engine_side {
	struct sim_device *device;
	struct sim_cq *send_cq;
	struct sim_cq *recv_cq;
	struct sim_qp *qp;
	struct sim_mr *mr;
	struct sim_ah *ah; /* to the other side */
	uint8_t *memory;   /* ENGINE_MEMORY_BYTES, all of it in mr */
	union ibv_gid gid; /* index 1 of port 1 */
	unsigned int cq_events;
};

struct engine {
	struct engine_config config;
	struct sim_engine *sim;
	struct engine_side sides[2];
	struct engine_frame *frames;
	unsigned int frame_count;
	unsigned int frame_room;
	uint64_t bytes_hash; /* of all frames and their times */
	struct sim_event events[ENGINE_EVENTS_MAX];
	struct sim_device *event_devices[ENGINE_EVENTS_MAX];
	unsigned int event_count;
};

/* Switches a quirk of a device on or off. */
void engine_quirk(struct sim_device *device, const char *name, bool on);

/* Sends a hand-made packet on a path. */
void engine_send_on(struct engine *engine, struct sim_path *path, const struct sim_packet *packet);

/* Makes the world, its devices and memory, and connects the QPs. Aborts on any error. */
void engine_open(struct engine *engine, const struct engine_config *config);
void engine_close(struct engine *engine);

/* A world with no device; host callbacks as in engine_open. */
void engine_open_bare(struct engine *engine, uint64_t seed);
struct sim_device *engine_add_device(struct engine *engine, const char *name, unsigned int ports,
				     const union ibv_gid *gid);

/* ::ffff:10.0.0.last */
union ibv_gid engine_gid(unsigned int last);
struct ibv_ah_attr engine_ah_attr(const union ibv_gid *dgid);
struct sim_device *engine_add_infiniband(struct engine *engine, const char *name,
					 unsigned int ports, const union ibv_gid *gid);

/* RESET -> INIT -> RTR (-> RTS) of a QP. */
void engine_connect_qp(struct engine *engine, struct sim_qp *qp, uint32_t dest_qpn,
		       const union ibv_gid *dgid, uint32_t sq_psn, uint32_t rq_psn);

/* Runs, timers included, until no event is left or the clock is at until_ns. */
void engine_settle(struct engine *engine, uint64_t until_ns);

/* Posts a WR over the side's own memory; returns what the verb returns. */
int engine_recv(struct engine *engine, unsigned int side, uint64_t wr_id, uint32_t offset,
		uint32_t bytes);
struct engine_send {
	enum ibv_wr_opcode opcode;
	uint64_t wr_id;
	uint32_t offset; /* of the side's memory */
	uint32_t bytes;
	uint32_t remote_offset; /* of the other side's memory */
	uint32_t lkey;		/* 0: the side's */
	uint32_t rkey;		/* 0: the other side's */
	uint32_t imm;
	uint64_t compare_add;
	uint64_t swap;
	unsigned int flags; /* in addition to IBV_SEND_SIGNALED */
	bool unsignalled;
	uint32_t remote_qpn; /* UD; 0: the other side's */
	uint32_t remote_qkey;
	const struct engine_side *to; /* NULL: the other side of this engine */
};
int engine_send(struct engine *engine, unsigned int side, const struct engine_send *send);

/* Takes the next completion. Returns false if there is none. */
bool engine_poll(struct sim_cq *cq, struct ibv_wc *wc);

/* Counts the frames of an opcode, lost ones included. */
unsigned int engine_count(const struct engine *engine, unsigned int opcode);
/* Returns frame number n, from 0, of an opcode, or NULL. */
const struct engine_frame *engine_nth(const struct engine *engine, unsigned int opcode,
				      unsigned int n);
unsigned int engine_events(const struct engine *engine, enum ibv_event_type type);

/* Makes every copy from or to a range of memory fail, as if it were unmapped; 0 bytes ends that. */
void engine_poison(const void *base, size_t length_bytes);

/* Makes a packet from the peer for the QP of side 0. */
struct sim_packet engine_packet(const struct engine *engine, unsigned int opcode, uint32_t psn);
/* Gives the packet a payload; span must live as long as the packet. */
void engine_payload(struct sim_packet *packet, struct sim_span *span, const void *base,
		    uint32_t bytes);
/* Hands the packet to the responder or the completer, by its opcode, and runs the instant. */
void engine_inject(struct engine *engine, const struct sim_packet *packet);
/* Injects an ACK packet with a syndrome. */
void engine_inject_ack(struct engine *engine, uint32_t psn, unsigned int syndrome);

/* splitmix64, of the tests alone. */
uint64_t engine_random(uint64_t *state);

#endif
