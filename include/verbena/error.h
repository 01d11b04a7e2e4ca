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

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_ERROR_H */
