/* SPDX-License-Identifier: MIT */
#include "src/failing/rules.h"

#include "src/verbs/dispatch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define ERRNO_MAX 4095 /* Linux include/linux/err.h, MAX_ERRNO */

/* All of these belong to the lock. Nothing is allocated while it is held, and no other lock is taken. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fail_rule rules[VB_FAIL_RULES_MAX]; /* in the order in which they were added */
static unsigned int rule_count;
static unsigned int last_id;

/* Held while a rule is added or removed: it orders the changes of the layer. */
static pthread_mutex_t change = PTHREAD_MUTEX_INITIALIZER;

/* --- a child of fork(2) has the rules, and no lock is held in it --- */

static void before_fork(void)
{
	pthread_mutex_lock(&change);
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&change);
}

static void follow_forks(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* --- matching --- */

static bool matches(const struct fail_rule *rule, const struct layer_call *call)
{
	if (!call)
		return true;
	if (rule->any_call ? !words_is_any(call->verb) : rule->verb != call->verb)
		return false;
	return !rule->device[0] || (call->device && strcmp(rule->device, call->device) == 0);
}

bool rules_ask(enum vb_fail_action action, const struct layer_call *call, struct fail_rule *fired)
{
	bool fires = false;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < rule_count && !fires; i++) {
		struct fail_rule *rule = &rules[i];

		if (rule->action != action || !matches(rule, call))
			continue;
		fires = rule->seen++ >= rule->skip && (!rule->count || rule->hits < rule->count);
		rule->hits += fires;
		if (fires)
			*fired = *rule;
	}
	pthread_mutex_unlock(&lock);
	return fires;
}

const char *rules_text(const struct fail_rule *rule, char text[RULE_TEXT_BYTES])
{
	const char *call = rule->any_call ? "any" : layer_verb_info(rule->verb)->name;
	const bool allocation = rule->action == VB_FAIL_ALLOCATION;
	size_t used =
		(size_t)snprintf(text, RULE_TEXT_BYTES, "%s", allocation ? "allocation" : call);

	if (rule->device[0])
		used += (size_t)snprintf(text + used, RULE_TEXT_BYTES - used, ",device=%s",
					 rule->device);
	if (rule->skip)
		used += (size_t)snprintf(text + used, RULE_TEXT_BYTES - used, ",skip=%" PRIu64,
					 rule->skip);
	if (rule->count)
		used += (size_t)snprintf(text + used, RULE_TEXT_BYTES - used, ",count=%" PRIu64,
					 rule->count);
	if (!allocation && strerrorname_np(rule->err))
		snprintf(text + used, RULE_TEXT_BYTES - used, ",errno=%s",
			 strerrorname_np(rule->err));
	return text;
}

/* --- refusals --- */

static int refuse_fail(const char *function, struct vb_why why)
{
	enter_slot(function, NULL);
	dispatch_why(why);
	leave();
	return errno = vb_reason_info(why.reason)->error;
}

#define REFUSE(...) refuse_fail("vb_fail_add", (struct vb_why){__VA_ARGS__})

/* Returns 0, or an errno value after it has said why the rule is refused. */
static int read_call(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	into->err = rule->err ? rule->err : ENOMEM;
	into->any_call = !rule->call;
	if (rule->call && !words_find_call(rule->call, &into->verb))
		return REFUSE(VB_WHY_FAIL_NO_CALL, .text = rule->call);
	if (into->err < 0 || into->err > ERRNO_MAX)
		return REFUSE(VB_WHY_FAIL_ERRNO, {(uint64_t)(int64_t)rule->err});
	if (rule->device && strlen(rule->device) >= sizeof(into->device))
		return REFUSE(VB_WHY_FAIL_FIELD, .text = "device of such a long name");
	snprintf(into->device, sizeof(into->device), "%s", rule->device ? rule->device : "");
	return 0;
}

static int read_allocation(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	into->err = ENOMEM;
	if (rule->call)
		return REFUSE(VB_WHY_FAIL_FIELD, .text = "call");
	if (rule->device)
		return REFUSE(VB_WHY_FAIL_FIELD, .text = "device");
	if (rule->err)
		return REFUSE(VB_WHY_FAIL_FIELD, .text = "err");
	return 0;
}

static int read_rule(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	*into = (struct fail_rule){
		.action = rule->action, .skip = rule->skip, .count = rule->count};
	switch (rule->action) {
	case VB_FAIL_CALL:
		return read_call(rule, into);
	case VB_FAIL_ALLOCATION:
		return read_allocation(rule, into);
	default:
		return REFUSE(VB_WHY_FAIL_ACTION, {rule->action});
	}
}

/* --- adding and removing --- */

/* Returns how many rules have the action. */
static unsigned int count_of(enum vb_fail_action action)
{
	unsigned int count = 0;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < rule_count; i++)
		count += rules[i].action == action;
	pthread_mutex_unlock(&lock);
	return count;
}

/* Watches what the rules are about, and nothing else. */
static void watch_less(void)
{
	if (!count_of(VB_FAIL_ALLOCATION))
		allocation_watch(false);
	if (!count_of(VB_FAIL_CALL))
		call_watch(false);
}

/* The caller holds `change`. Returns 0 or an errno value. */
static int add(struct fail_rule *rule)
{
	if (rule_count == VB_FAIL_RULES_MAX)
		return REFUSE(VB_WHY_FAIL_FULL, {rule_count});
	if (rule->action == VB_FAIL_CALL && call_watch(true))
		return REFUSE(VB_WHY_FAIL_LAYERS);
	pthread_mutex_lock(&lock);
	rule->id = ++last_id;
	rules[rule_count++] = *rule;
	pthread_mutex_unlock(&lock);
	if (rule->action != VB_FAIL_ALLOCATION || allocation_watch(true))
		return 0;
	pthread_mutex_lock(&lock);
	rule_count--;
	pthread_mutex_unlock(&lock);
	return REFUSE(VB_WHY_FAIL_STATIC);
}

int vb_fail_add(const struct vb_fail_rule *rule, unsigned int *id)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct fail_rule read;
	int err = read_rule(rule, &read);

	if (err)
		return err;
	pthread_once(&once, follow_forks);
	pthread_mutex_lock(&change);
	err = add(&read);
	pthread_mutex_unlock(&change);
	if (!err && id)
		*id = read.id;
	return err;
}

static unsigned int place_of(unsigned int id)
{
	unsigned int i = 0;

	while (i < rule_count && rules[i].id != id)
		i++;
	return i;
}

int vb_fail_remove(unsigned int id)
{
	unsigned int place;
	bool found;

	pthread_mutex_lock(&change);
	pthread_mutex_lock(&lock);
	place = place_of(id);
	found = place < rule_count;
	if (found) {
		memmove(&rules[place], &rules[place + 1],
			(rule_count - place - 1) * sizeof(rules[0]));
		rule_count--;
	}
	pthread_mutex_unlock(&lock);
	watch_less();
	pthread_mutex_unlock(&change);
	return found ? 0 : refuse_fail(__func__, (struct vb_why){VB_WHY_FAIL_NO_RULE, {id}});
}

void vb_fail_clear(void)
{
	pthread_mutex_lock(&change);
	pthread_mutex_lock(&lock);
	rule_count = 0;
	pthread_mutex_unlock(&lock);
	watch_less();
	pthread_mutex_unlock(&change);
}

/* Returns a copy of the rule; zeros if no rule has the id. */
static struct fail_rule find(unsigned int id)
{
	struct fail_rule found = {0};
	unsigned int place;

	pthread_mutex_lock(&lock);
	place = place_of(id);
	if (place < rule_count)
		found = rules[place];
	pthread_mutex_unlock(&lock);
	return found;
}

uint64_t vb_fail_hits(unsigned int id)
{
	return find(id).hits;
}

uint64_t vb_fail_seen(unsigned int id)
{
	return find(id).seen;
}
