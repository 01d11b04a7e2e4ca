/* SPDX-License-Identifier: MIT */
#include "src/check/tell.h"

CHECK_RARE void tell_posted_rarely(struct check_call *check, struct check_qp *qp, struct work *work)
{
#define CALL(name)                                           \
	if (rule_##name.posted && rule_##name.posted_rarely) \
		rule_##name.posted(check, qp, work);
	CHECK_RULES(CALL)
#undef CALL
}

CHECK_RARE void tell_done_rarely(struct check_call *check, struct check_qp *qp, struct work *work,
				 const struct ibv_wc *wc)
{
#define CALL(name)                                       \
	if (rule_##name.done && rule_##name.done_rarely) \
		rule_##name.done(check, qp, work, wc);
	CHECK_RULES(CALL)
#undef CALL
}

CHECK_RARE void tell_polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
#define CALL(name)              \
	if (rule_##name.polled) \
		rule_##name.polled(check, qp, wc);
	CHECK_RULES(CALL)
#undef CALL
}

void tell_dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
#define CALL(name)               \
	if (rule_##name.dropped) \
		rule_##name.dropped(check, qp, work);
	CHECK_RULES(CALL)
#undef CALL
}

void tell_refused(struct check_call *check, struct check_qp *qp, struct work *work)
{
#define CALL(name)               \
	if (rule_##name.refused) \
		rule_##name.refused(check, qp, work);
	CHECK_RULES(CALL)
#undef CALL
}
