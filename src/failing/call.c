/* SPDX-License-Identifier: MIT */
/* The layer that makes calls fail. It is below all others, so that they see a failure as the device's. */
#include "src/failing/rules.h"

#include <string.h>

/* The rule that has made the calling thread's last call fail, and its text. */
static _Thread_local struct vb_why why;
static _Thread_local char why_text[RULE_TEXT_BYTES];

static int before(struct layer_call *call)
{
	const struct fail_question question = {.action = VB_FAIL_CALL, .call = call};
	struct fail_rule rule;

	if (!rules_ask(&question, &rule))
		return 0;
	why = (struct vb_why){
		.reason = VB_WHY_FAIL_INJECTED,
		.values = {rule.id, (uint64_t)rule.err},
		.verb = layer_verb_info(call->verb)->name,
		.text = rules_text(&rule, why_text),
	};
	call->why = &why;
	return rule.at ? post_before(call, &rule) : rule.err;
}

static uint64_t change(const struct layer_call *call)
{
	post_answer(call);
	return completion_change(call);
}

static struct layer failing = {
	.name = "failing", .before = before, .change = change, .lowest = true};

int call_watch(bool wanted)
{
	static bool watching; /* under the lock of the rules' changes */
	int err = 0;

	if (wanted && !watching)
		err = layer_add(&failing);
	if (!wanted && watching)
		layer_remove(&failing);
	if (!err)
		watching = wanted;
	return err;
}
