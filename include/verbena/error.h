/* SPDX-License-Identifier: MIT */
/*
 * Why the last call failed, in words.
 */
#ifndef VERBENA_ERROR_H
#define VERBENA_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One sentence on the calling thread's last failed vb_* call: the verb, the object and the cause,
 * such as "modify_qp: QP 0x11: RTR needs IBV_QP_DEST_QPN". "" if nothing has failed on this thread,
 * or if the backend says nothing about it. The sentence belongs to the library and stays valid
 * until the thread's next vb_* call. Inline ones (vb_post_send, vb_poll_cq, ...) go straight to the
 * object: after them it is the sentence of the backend last reached through another vb_* call on
 * this thread. Thread-safe; needs no matching call; does not touch errno.
 */
const char *vb_last_error(void);

/*
 * What sort of failure it was, as the libraries over ibverbs sort them: where to look for the
 * remedy.
 */
enum vb_error_kind {
	VB_ERROR_NONE,		/* nothing failed */
	VB_ERROR_INVALID_INPUT, /* an argument, a setting, or what a peer sent */
	VB_ERROR_RESOURCE,	/* memory, descriptors, room in a queue, an object in use */
	VB_ERROR_PERMISSION,	/* this user may not, or this key does not allow it */
	VB_ERROR_DRIVER,	/* all else: the device, its driver, the network, the peer */
};

/* The kind of an errno value; 0 is VB_ERROR_NONE. Pure; needs no device. */
enum vb_error_kind vb_error_kind(int err);

/* "invalid input", "resource", "permission", "driver"; "no error" for all else. Constant. */
const char *vb_error_kind_str(enum vb_error_kind kind);

/*
 * The kind of the failure that vb_last_error() describes. The functions of <verbena/connect.h> and
 * <verbena/channel.h> also begin their sentences with it. Thread-safe; does not touch errno.
 */
enum vb_error_kind vb_last_error_kind(void);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_ERROR_H */
