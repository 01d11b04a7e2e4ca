/* SPDX-License-Identifier: MIT */
/* The rules of failing calls: see <verbena/fault.h>. */
#ifndef SRC_FAILING_RULES_H
#define SRC_FAILING_RULES_H

#include "src/layer/layer.h"

#include <verbena/fault.h>

#define RULE_TEXT_BYTES 192

/* A rule as the process keeps it. */
struct fail_rule {
	unsigned int id; /* 0: the place is free */
	enum vb_fail_action action;
	bool any_call; /* else only calls of `verb` */
	enum layer_verb verb;
	char device[VB_SIM_NAME_MAX]; /* "": any */
	uint64_t skip, count;
	uint64_t seen, hits;
	int err;
};

/*
 * Asks the rules of an action about a call: each rule that matches counts it, until one fires. Returns
 * false if none fires. Else *fired is a copy of the rule. call: NULL for an allocation.
 */
bool rules_ask(enum vb_fail_action action, const struct layer_call *call, struct fail_rule *fired);

/* Writes the rule in the words of --fail, such as "create_qp,skip=2,errno=ENOMEM". Returns text. */
const char *rules_text(const struct fail_rule *rule, char text[RULE_TEXT_BYTES]);

/* In words.c: finds the call of that name. Returns false if there is none that can fail. */
bool words_find_call(const char *name, enum layer_verb *verb);

/* Returns true if a rule without a name matches the call. */
bool words_is_any(enum layer_verb verb);

/* In call.c: the layer, which is added while a rule of a call exists. Returns 0 or ENOMEM. */
int call_watch(bool wanted);

/* In allocation.c: from now on, allocations ask the rules. Returns false if that is impossible. */
bool allocation_watch(bool wanted);

#endif /* SRC_FAILING_RULES_H */
