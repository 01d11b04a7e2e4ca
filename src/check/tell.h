/* SPDX-License-Identifier: MIT */
/* Tells the rules what happens to works: each function calls one function of all rules that have it. */
#ifndef SRC_CHECK_TELL_H
#define SRC_CHECK_TELL_H

#include "src/check/check.h"

/*
 * These functions name the rules instead of going through a table, so that link-time optimisation leaves only
 * the calls that are needed.
 */

/* Call the functions that have nothing to do for most works. */
CHECK_RARE void tell_posted_rarely(struct check_call *check, struct check_qp *qp,
				   struct work *work);
CHECK_RARE void tell_done_rarely(struct check_call *check, struct check_qp *qp, struct work *work,
				 const struct ibv_wc *wc);

static inline __attribute__((always_inline)) void tell_posted(struct check_call *check,
							      struct check_qp *qp,
							      struct work *work)
{
#define CALL(name)                                            \
	if (rule_##name.posted && !rule_##name.posted_rarely) \
		rule_##name.posted(check, qp, work);
	CHECK_RULES(CALL)
#undef CALL
	if (check_alerts || !work->fits || !qp || qp->alerts)
		tell_posted_rarely(check, qp, work);
}

static inline __attribute__((always_inline)) void tell_done(struct check_call *check,
							    struct check_qp *qp, struct work *work,
							    const struct ibv_wc *wc, bool failed)
{
	const bool alerted = failed || check_alerts;
	const bool targets = work->target || alerted;

#define CALL(name)                                                                     \
	if (rule_##name.done && !rule_##name.done_rarely && !rule_##name.done_targets) \
		rule_##name.done(check, qp, work, wc);
	CHECK_RULES(CALL)
#undef CALL
#define CALL(name)                                                   \
	if (targets && rule_##name.done && rule_##name.done_targets) \
		rule_##name.done(check, qp, work, wc);
	CHECK_RULES(CALL)
#undef CALL
	if (alerted || qp->alerts || qp->srq)
		tell_done_rarely(check, qp, work, wc);
}

CHECK_RARE void tell_polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc);
void tell_dropped(struct check_call *check, struct check_qp *qp, struct work *work);
void tell_refused(struct check_call *check, struct check_qp *qp, struct work *work);

#endif /* SRC_CHECK_TELL_H */
