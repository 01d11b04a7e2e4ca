/* SPDX-License-Identifier: MIT */
/*
 * An XRC connection: an initiator QP on A, a target QP on B, and two XRC SRQs behind it, each with
 * a CQ of its own.
 */
#ifndef TEST_SUPPORT_XRC_H
#define TEST_SUPPORT_XRC_H

#include "test/support/srq.h"

#define TS_XRC_SRQS 2

struct ts_xrc {
	struct vt *t;
	struct ts_pair *pair; /* a.qp is XRC_SEND, b.qp XRC_RECV */
	struct ibv_xrcd *xrcd;
	struct ts_shared *shared[TS_XRC_SRQS];
	struct ibv_cq *cq[TS_XRC_SRQS];
	uint32_t srqn[TS_XRC_SRQS];
};

/* Skips the test if a device has no XRC. */
void ts_need_xrc(struct vt *t);

struct ibv_xrcd *ts_xrcd(struct vt *t, struct ibv_context *ctx, int fd, int oflags);

/* A PD, buffer and XRC SRQ on B; completions go to cq. */
struct ts_shared *ts_xrc_srq(struct vt *t, struct ibv_xrcd *xrcd, struct ibv_cq *cq);
uint32_t ts_srqn(struct vt *t, struct ibv_srq *srq);

/* A connection whose QPs are in RESET, or in RTS. */
struct ts_xrc *ts_xrc_reset(struct vt *t, const struct ts_options *options);
struct ts_xrc *ts_xrc(struct vt *t);
struct ts_xrc *ts_xrc_with(struct vt *t, const struct ts_options *options);

/* The steps of the target QP, which differ from those of an RC QP. */
int ts_target_rtr_attr(struct ts_end *end, struct ibv_qp_attr *attr);
int ts_target_rts_attr(struct ts_end *end, struct ibv_qp_attr *attr);
void ts_connect_target(struct ts_end *end);

/* Posts a WR for the SRQ with the number. The target writes and reads in the PD of that SRQ. */
int ts_xrc_post(struct ts_xrc *xrc, uint32_t srqn, const struct ts_wr *wr);
#define TS_XRC_POST(x, n, op, ...)                         \
	((void)VT_OK_SAID((x)->t, VT_HERE, "posting " #op, \
			  ts_xrc_post(x, n, &(struct ts_wr){.opcode = (op), __VA_ARGS__})))

#endif
