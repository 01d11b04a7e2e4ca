/* SPDX-License-Identifier: MIT */
/*
 * Two ends of communications for tests of the connection manager: side 0 asks, side 1 listens. The ends are
 * in one engine, or in two that a way out joins. Each end records its events, and answers as its plan says.
 */
#ifndef TEST_SUPPORT_TALK_H
#define TEST_SUPPORT_TALK_H

#include "sim/cm/private.h"
#include "sim/net/net.h"
#include "test/support/joined.h"

#define TALK_EVENTS_MAX 64
#define TALK_SERVICE	UINT64_C(0x0000000001061234)
#define TALK_MADS_MAX	256

struct talk_event {
	enum sim_cm_event_kind kind;
	enum sim_cm_state state; /* when the event was raised */
	struct sim_cm *cm, *listener;
	struct sim_cm_event event;
	uint8_t private_data[224];
	uint8_t ari[72];
};

struct talk_end {
	struct talk *talk;
	struct sim_engine *sim;
	struct sim_device *device;
	struct sim_cm *cm; /* of the connection */
	struct sim_cm *listener;
	struct talk_event events[TALK_EVENTS_MAX];
	unsigned int count;
	enum sim_cm_verdict verdict; /* on a REQ or SIDR_REQ */
	bool silent;		     /* answers nothing by itself */
	bool no_drep;		     /* does not answer a DREQ */
};

/* A message as the fault rule of the test sees it, before the packet leaves. */
struct talk_mad {
	uint64_t now_ns;
	struct sim_route route;
	uint8_t mad[SIM_MAD_BYTES];
};

struct talk_config {
	bool joined;
	bool infiniband, grh;
	bool quiet; /* no trace: packets pass as descriptors */
	bool same_device;
	uint64_t seed;
	enum ibv_qp_type type; /* default RC */
};

struct talk {
	struct talk_config config;
	struct engine engine;
	struct joined joined;
	struct talk_end ends[2];
	/* The messages that both ends have sent; recorded only while a trace is on. */
	struct talk_mad mads[TALK_MADS_MAX];
	unsigned int mad_count;
	/* Changes the messages of an engine before they arrive; returns false: the message is lost. */
	bool (*tamper)(struct talk *talk, unsigned int engine, uint8_t *mad);
	void *tamper_arg;
};

void talk_open(struct talk *talk, const struct talk_config *config);
void talk_close(struct talk *talk);

/* Side 1 listens for TALK_SERVICE at all addresses. */
void talk_listen(struct talk *talk);

/* The REQ that side 0 sends. */
struct sim_cm_request talk_request(const struct talk *talk);
/* The REP that side 1 answers. */
struct sim_cm_reply talk_reply(void);

/* Side 0 makes its communication and sends a REQ. */
void talk_connect(struct talk *talk);
/* Both sides are ESTABLISHED afterwards. */
void talk_establish(struct talk *talk);

/* Runs the present instant; or timers until a time. */
void talk_run(struct talk *talk);
void talk_until(struct talk *talk, uint64_t until_ns);
uint64_t talk_now(const struct talk *talk);

/* Returns event n of a kind of a side; NULL. Counts events of a kind. */
const struct talk_event *talk_nth(const struct talk *talk, unsigned int side,
				  enum sim_cm_event_kind kind, unsigned int n);
unsigned int talk_count(const struct talk *talk, unsigned int side, enum sim_cm_event_kind kind);

/* Counts messages on the wire, and returns number n of a kind; NULL. */
unsigned int talk_sent(const struct talk *talk, enum sim_cm_message message);
const struct talk_mad *talk_mad(const struct talk *talk, enum sim_cm_message message,
				unsigned int n);

/* Lets a message arrive at a side's port, as if it came from the other side's QP 1. */
void talk_inject(struct talk *talk, unsigned int side, const uint8_t *mad);

#endif
