/* SPDX-License-Identifier: MIT */
#include "src/check/tell.h"

CHECK_RARE void tell_posted_rarely(struct check_call *check, struct check_qp *qp, struct work *work)
{
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->posted && tell_rules[i]->posted_rarely)
			tell_rules[i]->posted(check, qp, work);
}

CHECK_RARE void tell_done_rarely(struct check_call *check, struct check_qp *qp, struct work *work,
				 const struct ibv_wc *wc)
{
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->done && tell_rules[i]->done_rarely)
			tell_rules[i]->done(check, qp, work, wc);
}

CHECK_RARE void tell_polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->polled)
			tell_rules[i]->polled(check, qp, wc);
}

void tell_dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->dropped)
			tell_rules[i]->dropped(check, qp, work);
}

void tell_refused(struct check_call *check, struct check_qp *qp, struct work *work)
{
	for (size_t i = 0; i < COUNT(tell_rules); i++)
		if (tell_rules[i]->refused)
			tell_rules[i]->refused(check, qp, work);
}
