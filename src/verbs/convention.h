/* SPDX-License-Identifier: MIT */
/*
 * How a verb that fails answers, by the convention of its row in <verbena/verbs.def>, and a function
 * of <verbena/cm.def> by the same names.
 */
#ifndef SRC_VERBS_CONVENTION_H
#define SRC_VERBS_CONVENTION_H

#include <infiniband/verbs.h>
#include <stddef.h>

/*
 * An expression: what a verb of this convention returns after a failure with the errno value err,
 * which is evaluated once. The verb's arguments follow.
 *
 *	return FAILED(POSTED, EINVAL, qp, wr, bad_wr);
 */
#define FAILED(convention, err, ...) FAILED_##convention(err, __VA_ARGS__)

/* A row's arguments without their parentheses: FAILED(ERRNO, err, UNPACK arguments). */
#define UNPACK(...) __VA_ARGS__

#define FAILED_ERRNO(err, ...)			(err)
#define FAILED_POSTED(err, queue, request, bad) (*(bad) = (request), (err))
#define FAILED_NEGATED(err, ...)		(-(err))
#define FAILED_NOTHING(err, ...)		((void)(err))
#define FAILED_POINTER(err, ...)		((void)(err), NULL)
#define FAILED_OPTIONAL(err, ...)		((void)(err), NULL)
#define FAILED_MINUS_ONE(err, ...)		((void)(err), -1)
#define FAILED_GAI(err, ...)			((void)(err), -1)
#define FAILED_REREG(err, ...)			((void)(err), IBV_REREG_MR_ERR_INPUT)
#define FAILED_ANSWER(err, ...)			((void)(err), 0)

#endif /* SRC_VERBS_CONVENTION_H */
