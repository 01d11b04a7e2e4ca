/* SPDX-License-Identifier: MIT */
/*
 * Memory windows: B binds them, A writes through them.
 */
#ifndef TEST_SUPPORT_WINDOW_H
#define TEST_SUPPORT_WINDOW_H

#include "test/support/support.h"

/* An RC pair whose regions allow binding. */
struct ts_pair *ts_window_pair(struct vt *t);

/* Skips the test if a device has no windows of the type; 2A or 2B will do for type 2. */
void ts_need_windows(struct vt *t, enum ibv_mw_type type);

/* Allocates a window in the end's PD until the test ends. */
struct ibv_mw *ts_mw(struct ts_end *end, enum ibv_mw_type type);

/* Zeroed fields: 4096 bytes from the start of the end's region, with remote write and read. */
struct ts_bind {
	uint64_t wr_id;
	struct ibv_mr *mr;
	bool no_mr;
	size_t offset;
	uint64_t address; /* instead of offset */
	uint64_t length;
	bool no_length;
	unsigned int access;
	bool no_access;
	uint32_t rkey;	    /* of type 2; 0: the window's rkey with the next low byte */
	unsigned int flags; /* in addition to IBV_SEND_SIGNALED */
	bool unsignalled;
};

/* Binds by ibv_bind_mw() or, for type 2, by IBV_WR_BIND_MW; then puts the new key into mw->rkey. */
int ts_bind(struct ts_end *end, struct ibv_mw *mw, const struct ts_bind *bind);

/* Binds and waits for the completion. */
void ts_bound_at(struct ts_end *end, struct vt_at at, struct ibv_mw *mw,
		 const struct ts_bind *bind);
#define ts_bound(e, mw, ...) ts_bound_at(e, VT_HERE, mw, &(struct ts_bind){__VA_ARGS__})

/* Binds and expects IBV_WC_MW_BIND_ERR. */
void ts_bind_fails_at(struct ts_end *end, struct vt_at at, struct ibv_mw *mw,
		      const struct ts_bind *bind);
#define ts_bind_fails(e, mw, ...) ts_bind_fails_at(e, VT_HERE, mw, &(struct ts_bind){__VA_ARGS__})

/* Posts IBV_WR_LOCAL_INV. */
int ts_local_inv(struct ts_end *end, uint64_t wr_id, uint32_t rkey);

/* A writes 8 bytes through a key: they arrive, or A is refused and both QPs go to ERR. */
void ts_reaches_at(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset);
void ts_refused_at(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset);
#define ts_reaches(pair, rkey, offset) ts_reaches_at(pair, VT_HERE, rkey, offset)
#define ts_refused(pair, rkey, offset) ts_refused_at(pair, VT_HERE, rkey, offset)

#endif
