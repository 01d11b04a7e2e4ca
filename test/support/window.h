/* SPDX-License-Identifier: MIT */
/*
 * Memory windows: B binds, A reaches through them.
 */
#ifndef TEST_SUPPORT_WINDOW_H
#define TEST_SUPPORT_WINDOW_H

#include "test/support/support.h"

/* An RC pair whose regions allow binding. */
struct ts_pair *ts_window_pair(struct vt *t);

/* Skips where the device has no windows of the type (of 2: 2A or 2B). */
void ts_need_windows(struct vt *t, enum ibv_mw_type type);

/* In the end's PD; ends with the test. */
struct ibv_mw *ts_mw(struct ts_end *end, enum ibv_mw_type type);

/* Zeroed fields: the end's region from its start, 4096 bytes of it, and remote write and read. */
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
	uint32_t rkey;	    /* type 2; zero: the window's with the next low byte */
	unsigned int flags; /* beside IBV_SEND_SIGNALED */
	bool unsignalled;
};

/* ibv_bind_mw(), or IBV_WR_BIND_MW for type 2, which leaves the new key in mw->rkey. */
int ts_bind(struct ts_end *end, struct ibv_mw *mw, const struct ts_bind *bind);

/* Binds and awaits the completion. */
void ts_bound_at(struct ts_end *end, struct vt_at at, struct ibv_mw *mw,
		 const struct ts_bind *bind);
#define ts_bound(e, mw, ...) ts_bound_at(e, VT_HERE, mw, &(struct ts_bind){__VA_ARGS__})

/* A binding that completes with IBV_WC_MW_BIND_ERR. */
void ts_bind_fails_at(struct ts_end *end, struct vt_at at, struct ibv_mw *mw,
		      const struct ts_bind *bind);
#define ts_bind_fails(e, mw, ...) ts_bind_fails_at(e, VT_HERE, mw, &(struct ts_bind){__VA_ARGS__})

/* Posts IBV_WR_LOCAL_INV. */
int ts_local_inv(struct ts_end *end, uint64_t wr_id, uint32_t rkey);

/* A writes 8 bytes through a key and they are there; A is refused and both QPs end in ERR. */
void ts_reaches_at(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset);
void ts_refused_at(struct ts_pair *pair, struct vt_at at, uint32_t rkey, size_t offset);
#define ts_reaches(pair, rkey, offset) ts_reaches_at(pair, VT_HERE, rkey, offset)
#define ts_refused(pair, rkey, offset) ts_refused_at(pair, VT_HERE, rkey, offset)

#endif
