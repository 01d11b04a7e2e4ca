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
	uint32_t at;
	enum ibv_wc_status status;
	uint32_t vendor_err, qpn;
	bool wr_id_given;
	uint64_t wr_id;
	enum ibv_event_type event;
	uint32_t port_num, object;
};

/* A call or an allocation for which the rules are asked. */
struct fail_question {
	enum vb_fail_action action;
	const struct layer_call *call; /* NULL: an allocation */
	const struct ibv_wc *wc;       /* of VB_FAIL_COMPLETION */
};

/*
 * Asks the rules of an action: each rule that matches counts it, until one fires. Returns false if none
 * fires. Else *fired is a copy of the rule.
 */
bool rules_ask(const struct fail_question *question, struct fail_rule *fired);

/* Writes the rule in the words of --fail, such as "create_qp,skip=2,errno=ENOMEM". Returns text. */
const char *rules_text(const struct fail_rule *rule, char text[RULE_TEXT_BYTES]);

/* In words.c: finds the call of that name. Returns false if there is none that can fail. */
bool words_find_call(const char *name, enum layer_verb *verb);

/* Returns true if a rule without a name matches the call. */
bool words_is_any(enum layer_verb verb);

/* Returns true if the call posts a list of WRs of which the first ones may be posted. */
bool words_is_list(enum layer_verb verb);

/* In post.c: returns true if the call's list has a WR at this place. */
bool post_reaches(const struct layer_call *call, uint32_t at);

/* Posts the WRs before rule->at. Returns the errno with which the call fails. */
int post_before(struct layer_call *call, const struct fail_rule *rule);

/* Sets *bad_wr of a call that post_before() has made fail. */
void post_answer(const struct layer_call *call);

/* In completion.c: changes and makes completions. Returns what the poll returns. */
uint64_t completion_change(const struct layer_call *call);

/* In event.c: raises events after a call. */
void event_raise(const struct layer_call *call);

/* Returns true if a rule may raise the event. */
bool event_is_known(enum ibv_event_type event);

/* Return true if the event is of a QP, CQ or SRQ; of a QP. */
bool event_has_object(enum ibv_event_type event);
bool event_has_qp(enum ibv_event_type event);

/* Returns true if the event is of no object, or if the object exists. */
bool event_reaches(const struct layer_call *call, const struct fail_rule *rule);

/* In call.c: the layer, which is added while a rule of a call exists. Returns 0 or ENOMEM. */
int call_watch(bool wanted);

/* In allocation.c: from now on, allocations ask the rules. Returns false if that is impossible. */
bool allocation_watch(bool wanted);

#endif /* SRC_FAILING_RULES_H */
