/* SPDX-License-Identifier: MIT */
/*
 * Tells the rules what happens to works: each function calls one function of all rules that have it. The caller
 * holds the sanitizer's lock. qp is NULL for a work of an SRQ where its QP is unknown.
 */
#ifndef SRC_CHECK_TELL_H
#define SRC_CHECK_TELL_H

#include "src/base/count.h"
#include "src/check/check.h"

/* The rules, in the order of their calls. */
static const struct check_rule *const tell_rules[] = {
#define RULE(name) &rule_##name,
	CHECK_RULES(RULE)
#undef RULE
};

/*
 * Precedes a loop over tell_rules in a function that is called for each work or verb. The compiler writes the
 * loop's body once for each rule, and link-time optimisation, which knows all rules, leaves only the calls of the
 * functions that exist.
 */
#define TELL_UNROLLED _Pragma("GCC unroll 64")

/* Call the functions that have nothing to do for most works. */
CHECK_RARE void tell_posted_rarely(struct check_call *check, struct check_qp *qp,
				   struct work *work);
CHECK_RARE void tell_done_rarely(struct check_call *check, struct check_qp *qp, struct work *work,
				 const struct ibv_wc *wc);

static inline __attribute__((always_inline)) void tell_posted(struct check_call *check,
							      struct check_qp *qp,
							      struct work *work)
{
	TELL_UNROLLED
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->posted && !tell_rules[i]->posted_rarely)
			tell_rules[i]->posted(check, qp, work);
	if (check_alerts || !work->fits || !qp || qp->alerts)
		tell_posted_rarely(check, qp, work);
}

static inline __attribute__((always_inline)) void tell_done(struct check_call *check,
							    struct check_qp *qp, struct work *work,
							    const struct ibv_wc *wc, bool failed)
{
	const bool alerted = failed || check_alerts;
	const bool targets = work->target || alerted;

	TELL_UNROLLED
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->done && !tell_rules[i]->done_rarely &&
		    !tell_rules[i]->done_targets)
			tell_rules[i]->done(check, qp, work, wc);
	TELL_UNROLLED
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (targets && tell_rules[i]->done && tell_rules[i]->done_targets)
			tell_rules[i]->done(check, qp, work, wc);
	if (alerted || qp->alerts || qp->srq)
		tell_done_rarely(check, qp, work, wc);
}

CHECK_RARE void tell_polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc);
void tell_dropped(struct check_call *check, struct check_qp *qp, struct work *work);
void tell_refused(struct check_call *check, struct check_qp *qp, struct work *work);

#endif /* SRC_CHECK_TELL_H */
