/* SPDX-License-Identifier: MIT */
/*
 * Objects of the verbs beyond the ordinary, given back when the test ends, and QPs made anew.
 */
#ifndef TEST_SUPPORT_KEEP_H
#define TEST_SUPPORT_KEEP_H

#include "test/support/support.h"

enum ts_kind {
	TS_PD,
	TS_CQ,
	TS_MR,
	TS_QP,
	TS_SRQ,
	TS_XRCD,
	TS_MW,
	TS_DM,
	TS_TD,
	TS_CONTEXT,
};

/* An object that the test made itself: destroyed when it ends, the last one kept first. */
void ts_keep(struct vt *t, enum ts_kind kind, void *object);

/* The test has destroyed it. */
void ts_kept_gone(void *object);

/* Ends the test as skipped unless both devices have all of enum ibv_device_cap_flags in flags. */
void ts_need_caps(struct vt *t, unsigned int flags, const char *what);

/* Ends the test as skipped where call's errno says that the backend or driver has no such verb. */
void ts_need_verb(struct vt *t, const void *object, int error, const char *what);

#define TS_PTR_OR_SKIP(t, call)                         \
	({                                              \
		errno = 0;                              \
		__typeof__(call) ts_got_ = (call);      \
		ts_need_verb(t, ts_got_, errno, #call); \
		ts_got_;                                \
	})

/* A context of its own on the same device. */
struct ibv_context *ts_context(struct vt *t, struct vt_node *node);

/*
 * Gives an end another QP, in RESET, instead of the one it has. What is zero in init is as the end
 * was made: PD, CQs, sizes, type. The end's type becomes init's.
 */
void ts_remake_qp(struct ts_end *end, const struct ibv_qp_init_attr_ex *init);

/* Destroys it before the test ends. */
void ts_end_qp(struct ts_end *end);

/* A pair in RTS whose B is in the PD of another end, on the same node. */
struct ts_pair *ts_pair_in_pd(struct vt *t, const struct ts_options *options, struct ts_end *other);

#endif
