/* SPDX-License-Identifier: MIT */
/*
 * Why a completion failed.
 */
#ifndef VERBENA_EXPLAIN_H
#define VERBENA_EXPLAIN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbena/why.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names of devices are valid while the device list is. */
struct vb_completion_why {
	bool send;	    /* true: of the send queue; false: of the receive queue */
	const char *device; /* of the QP, such as "sim0" */
	uint32_t qpn;
	struct vb_why why; /* what this side knows */
	const char *peer;  /* the peer's device; NULL: unknown */
	uint32_t peer_qpn;
	struct vb_why peer_why; /* what the peer knows; the reason is VB_WHY_NONE: nothing */
	/* Of a completion with IBV_WC_WR_FLUSH_ERR: the failure that moved the QP to ERR. */
	struct vb_why first;
	struct vb_why first_peer;
};

/*
 * Finds out why a completion of a QP of @context failed. @wc is a failed completion that the program
 * has polled, unchanged. Returns 0, or an errno with a sentence for vb_last_error(): EINVAL (@wc
 * succeeded), ENOENT (the device has no such QP now, or knows no values: then why->why.reason is the
 * row of vendor_err, if there is one, and all values are 0), EOPNOTSUPP (an adapter). Any thread may
 * call it at any time.
 *
 * A QP keeps the last failure of each queue, and the failure that moved it to ERR, until it is reset
 * or destroyed. A completion of an earlier failure has no values.
 */
int vb_completion_why(struct ibv_context *context, const struct ibv_wc *wc,
		      struct vb_completion_why *why);

/*
 * Returns both sides' view of a failed completion in a sentence, such as "sim0 QP 0x11, wr_id 7:
 * IBV_WC_REM_ACCESS_ERR: sim1 QP 0x12 refused RDMA WRITE at PSN 105: rkey 0x1234 is valid, but the
 * region lacks IBV_ACCESS_REMOTE_WRITE; register the region with IBV_ACCESS_REMOTE_WRITE". For a
 * completion that vb_completion_why() cannot explain, the sentence describes its status. The string is the
 * thread's, and valid until the thread's next call of vb_explain().
 */
const char *vb_explain(struct ibv_context *context, const struct ibv_wc *wc);

/*
 * Returns the reason of the completion that vb_explain() or vb_completion_why() was last called for
 * by this thread: of the side that found the error. VB_WHY_NONE: none is known.
 */
enum vb_reason vb_last_completion_reason(void);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_EXPLAIN_H */
