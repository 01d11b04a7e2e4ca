/* SPDX-License-Identifier: MIT */
/* Completions that a rule changes or makes. */
#include "src/failing/rules.h"

static void change_one(const struct layer_call *call, struct ibv_wc *wc)
{
	const struct fail_question question = {
		.action = VB_FAIL_COMPLETION, .call = call, .wc = wc};
	struct fail_rule rule;

	if (wc->status != IBV_WC_SUCCESS || !rules_ask(&question, &rule))
		return;
	wc->status = rule.status;
	wc->vendor_err = rule.vendor_err;
}

/* Returns true if it has made a completion. */
static bool make_one(const struct layer_call *call, struct ibv_wc *wc)
{
	const struct fail_question question = {.action = VB_FAIL_MADE, .call = call};
	struct fail_rule rule;

	if (!rules_ask(&question, &rule))
		return false;
	*wc = (struct ibv_wc){.wr_id = rule.wr_id, .status = rule.status, .qp_num = rule.qpn};
	if (wc->status != IBV_WC_SUCCESS)
		wc->vendor_err = rule.vendor_err;
	return true;
}

static uint64_t change_poll(const struct layer_call *call)
{
	struct ibv_wc *wc = (struct ibv_wc *)(uintptr_t)call->arguments[2];
	const int room = (int)call->arguments[1], found = (int)call->result;

	if (found < 0)
		return call->result;
	for (int i = 0; i < found; i++)
		change_one(call, &wc[i]);
	if (found < room && make_one(call, &wc[found]))
		return (uint64_t)found + 1;
	return call->result;
}

/* Of ibv_start_poll() and ibv_next_poll(). The arguments after the call are the layers' own, and may change. */
static uint64_t change_step(const struct layer_call *call)
{
	uint64_t *arguments = (uint64_t *)(uintptr_t)call->arguments;

	if (!call->result && arguments[1])
		change_one(call, (struct ibv_wc *)(uintptr_t)arguments[1]);
	if (!call->result || !arguments[2] ||
	    !make_one(call, (struct ibv_wc *)(uintptr_t)arguments[2]))
		return call->result;
	arguments[1] = arguments[2];
	return 0;
}

uint64_t completion_change(const struct layer_call *call)
{
	if (call->verb == LAYER_poll_cq)
		return change_poll(call);
	if (call->verb == LAYER_start_poll || call->verb == LAYER_next_poll)
		return change_step(call);
	return call->result;
}
