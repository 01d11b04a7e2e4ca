/* SPDX-License-Identifier: MIT */
/*
 * Where two devices that do as the specification says may part: verbena-differ(1) lists it. What parts
 * there ends the comparison of a program without a verdict.
 */
#ifndef SRC_DIFFER_COMPARE_OPEN_H
#define SRC_DIFFER_COMPARE_OPEN_H

#include "src/differ/model/record.h"

/* IBV_SEND_INLINE where it has no meaning: ibv_post_send(3) has it for SEND and RDMA WRITE. */
bool vd_asks_for_nothing(const struct vd_step *step);

/* Posting into queues, and inline data, where one side has more room. */
bool vd_sizes_differ(const struct vd_program *program, unsigned int step,
		     const struct vd_record *left, const struct vd_record *right);

/* Whose completion found no room in a CQ of several work queues is a matter of their order, and what
 * follows from it. */
bool vd_lost_any(const struct vd_program *program, unsigned int step,
		 const struct vd_record *record);

/* A CQ that overran on one side, where the sides gave it different room. */
bool vd_overruns_differ(const struct vd_program *program, unsigned int step,
			const struct vd_record *left, const struct vd_record *right);

/* Sends that were flushed behind a failed one in a step may have run all the same: what the peer's memory
 * and receives show of that. */
bool vd_may_have_run(unsigned int step, const struct vd_record *record);

/* The same up to a step of what binds a window, or ends that: it shows whenever the window or region is
 * used. */
bool vd_may_be_bound(const struct vd_program *program, unsigned int step,
		     const struct vd_record *record);

/* An atomic that may have had the PSN of another request, from before a reset of its QP that the peer does
 * not know of. Completions may be NULL. */
bool vd_may_be_mistaken(const struct vd_program *program, const struct vd_record *record,
			const struct vd_completion *left, const struct vd_completion *right);

/* A device keeps sends that it refused in RESET, as SoftRoCE does until the timer of the connection before
 * empties the queue (Linux drivers/infiniband/sw/rxe/rxe_comp.c, rxe_completer), and when that was is a
 * matter of time. */
bool vd_may_be_dropped(const struct vd_program *program, unsigned int step,
		       const struct vd_record *record);

/* A send posted in ERR that the left side does not flush, where SoftRoCE may keep it until a timer of what
 * was sent before empties the queue (see vd_may_be_dropped). right may be NULL. */
bool vd_may_wait(const struct vd_program *program, const struct vd_record *record,
		 const struct vd_completion *right);

#endif
