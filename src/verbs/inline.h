/* SPDX-License-Identifier: MIT */
/*
 * The failures of the inline verbs, such as vb_post_send(), which call the object's own functions
 * and leave no sentence.
 */
#ifndef SRC_VERBS_INLINE_H
#define SRC_VERBS_INLINE_H

struct ibv_context;

/*
 * Like fail(), after an inline verb on an object of @context has failed with @err. The sentence
 * ends with the backend's reason, or else with the description of @err.
 */
int fail_inline(int err, struct ibv_context *context, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif /* SRC_VERBS_INLINE_H */
