/* SPDX-License-Identifier: MIT */
/*
 * Where two devices may differ although both conform to the specification: verbena-differ(1) lists
 * it. A difference there ends the comparison of a program without a verdict.
 */
#ifndef SRC_DIFFER_COMPARE_OPEN_H
#define SRC_DIFFER_COMPARE_OPEN_H

#include "src/differ/compare/compare.h"

/* One step of a program and the records of both sides. */
struct vd_sides {
	const struct vd_program *program;
	unsigned int step;
	const struct vd_record *left, *right;
	struct vd_difference *difference; /* may be NULL */
};

/* True if a list asks for IBV_SEND_INLINE where it has no meaning: ibv_post_send(3) defines it
 * for SEND and RDMA WRITE. */
bool vd_asks_for_nothing(const struct vd_sides *sides);

/* True if the answer may differ because one side's queue or inline data has more room. */
bool vd_sizes_differ(const struct vd_sides *sides);

/* True if a CQ of several work queues has overrun: the completions that found no room depend on
 * the queues' order, which is open. */
bool vd_lost_any(const struct vd_sides *sides);

/* True if a CQ overran in the step and the sides gave it different room. */
bool vd_overruns_differ(const struct vd_sides *sides);

/* True if a send was flushed in the step behind a failed one. It may have run all the same, and
 * may have changed the peer's memory and used a receive. */
bool vd_may_have_run(const struct vd_sides *sides);

/* True if, up to the step, a flushed send that may have run binds or invalidates a window: that
 * shows whenever the window or its region is used. */
bool vd_may_be_bound(const struct vd_sides *sides);

/* True if the completion is of an atomic whose PSN the peer may know from another request, from
 * before a reset of the atomic's QP. Completions may be NULL. */
bool vd_may_be_mistaken(const struct vd_sides *sides, const struct vd_completion *left,
			const struct vd_completion *right);

/* True if a device may have kept sends that it refused in RESET, as SoftRoCE does until a timer
 * of the previous connection empties the queue (Linux drivers/infiniband/sw/rxe/rxe_comp.c,
 * rxe_completer). The moment depends on timing. */
bool vd_may_be_dropped(const struct vd_sides *sides);

/* True if only the right side has flushed a send that was posted in ERR: SoftRoCE may keep it
 * until a timer of earlier sends empties the queue (see vd_may_be_dropped). right may be NULL. */
bool vd_may_wait(const struct vd_sides *sides, const struct vd_completion *right);

#endif
