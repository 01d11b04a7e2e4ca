/* SPDX-License-Identifier: MIT */
/*
 * Why the last call failed: a sentence, and the kind of the failure.
 */
#ifndef VERBENA_ERROR_H
#define VERBENA_ERROR_H

#include <verbena/why.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns a sentence on the calling thread's last failed vb_* call: the verb, the object and the
 * cause, such as "modify_qp: QP 0x11: RTR needs IBV_QP_DEST_QPN". Returns "" if no call has failed
 * on this thread. The library owns the string, which is valid until the thread's next vb_* call.
 *
 * Inline functions (vb_post_send(), ibv_alloc_td(), ...) call the object directly. After one has
 * failed, a simulated device has a sentence; an adapter has none, and the sentence is that of an
 * earlier call.
 *
 * Any thread may call it at any time. It does not change errno.
 */
const char *vb_last_error(void);

/*
 * Returns the reason of the failure that vb_last_error() describes, for programs that act on it:
 * VB_WHY_NONE if no call has failed on this thread; VB_WHY_ERRNO_ONLY if the backend knows nothing
 * but the errno; VB_WHY_SAID for a failure that has a sentence and no row in <verbena/reasons.def>.
 * docs/errors.md lists the reasons.
 *
 * Any thread may call it at any time. It does not change errno.
 */
enum vb_reason vb_last_reason(void);

/* The kinds of failure: where to look for the remedy. */
enum vb_error_kind {
	VB_ERROR_NONE,		/* nothing failed */
	VB_ERROR_INVALID_INPUT, /* an argument, a setting, or data that a peer sent */
	VB_ERROR_RESOURCE,	/* memory, descriptors, room in a queue, an object in use */
	VB_ERROR_PERMISSION,	/* the user's rights, or the rights of a key */
	VB_ERROR_DRIVER,	/* all else: the device, its driver, the network, the peer */
};

/* Returns the kind of an errno value; VB_ERROR_NONE for 0. Needs no device. */
enum vb_error_kind vb_error_kind(int err);

/*
 * Returns "invalid input", "resource", "permission" or "driver", or "no error" for any other value.
 * The string is constant.
 */
const char *vb_error_kind_str(enum vb_error_kind kind);

/*
 * Returns the kind of the failure that vb_last_error() describes. The functions of
 * <verbena/connect.h> and <verbena/channel.h> begin their sentences with its name. Any thread may
 * call it at any time. It does not change errno.
 */
enum vb_error_kind vb_last_error_kind(void);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_ERROR_H */
