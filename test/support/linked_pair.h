/* SPDX-License-Identifier: MIT */
/*
 * A connection of any QP type whose attributes a test chooses one by one. A requests; B responds.
 * XRC has its initiator on A and its target on B, and B's memory, SRQ and CQ are those of the first
 * SRQ.
 */
#ifndef TEST_SUPPORT_LINKED_PAIR_H
#define TEST_SUPPORT_LINKED_PAIR_H

#include "test/support/transitions.h"
#include "test/support/xrc.h"

enum { TS_A, TS_B };

struct ts_link {
	struct vt *t;
	struct ts_pair *pair;
	struct ts_xrc *xrc;	      /* NULL unless the type is one of XRC */
	struct ts_end *ends[2];	      /* A and B */
	enum ts_type types[2];	      /* of A's QP and of B's QP */
	struct ibv_qp_attr values[2]; /* what ts_link_connect() gives to A and to B */
	bool reliable;
};

/*
 * Makes the QPs, in RESET. The values: path MTU 1024, timeout 8 (1 ms), retry_cnt 2, rnr_retry 2,
 * min_rnr_timer 1 (10 us), 4 READs each way, the rights of all remote operations, P_Key index 0.
 */
struct ts_link *ts_link(struct vt *t, enum ts_type type);

/* Takes both QPs by way of RESET to RTS with the values, and forgets old completions and events. */
void ts_link_connect(struct ts_link *link);

/* The parts of ts_link_connect(): RESET of both ends, and the steps of one end to RTS. */
void ts_link_reset(struct ts_link *link);
void ts_link_walk(struct ts_link *link, int which);

/* Modifies one end by the values in attr; mask is without IBV_QP_STATE. */
void ts_link_modify(struct ts_link *link, int which, enum ibv_qp_state from, enum ibv_qp_state to,
		    const struct ibv_qp_attr *attr, int mask);

/* Replaces the QP of one end by a new one, in RESET, and names it in the other end's values. */
void ts_link_renew(struct ts_link *link, int which);

/* Post on A; post a receive where B takes it from. */
int ts_link_post(struct ts_link *link, const struct ts_wr *wr);
int ts_link_recv(struct ts_link *link, const struct ts_rr *rr);
#define TS_LINK_POST(l, op, ...)                           \
	((void)VT_OK_SAID((l)->t, VT_HERE, "posting " #op, \
			  ts_link_post(l, &(struct ts_wr){.opcode = (op), __VA_ARGS__})))
#define TS_LINK_RECV(l, ...)                                    \
	((void)VT_OK_SAID((l)->t, VT_HERE, "posting a receive", \
			  ts_link_recv(l, &(struct ts_rr){__VA_ARGS__})))

/* Sends a message from A to B and checks that it arrives. Returns the receive's completion. */
struct ibv_wc ts_link_send(struct ts_link *link, uint32_t length_bytes);

/*
 * Traffic after which everything has been used once: messages both ways, and, if the link is
 * reliable, each operation that B's rights allow, a wait for a receive, a loss and its repair.
 */
void ts_link_warm(struct ts_link *link);

#endif
