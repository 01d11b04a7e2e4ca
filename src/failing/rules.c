/* SPDX-License-Identifier: MIT */
#include "src/failing/rules.h"

#include "src/base/count.h"
#include "src/verbs/dispatch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
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

static bool matches_call(const struct fail_rule *rule, const struct layer_call *call)
{
	if (rule->any_call)
		return words_is_any(call->verb);
	return rule->verb == call->verb && (!rule->at || post_reaches(call, rule->at));
}

static bool matches(const struct fail_rule *rule, const struct fail_question *question)
{
	const struct layer_call *call = question->call;
	const struct ibv_wc *wc = question->wc;

	if (rule->action != question->action)
		return false;
	if (!call)
		return true;
	if (rule->device[0] && !(call->device && strcmp(rule->device, call->device) == 0))
		return false;
	if (wc)
		return (!rule->qpn || rule->qpn == wc->qp_num) &&
		       (!rule->wr_id_given || rule->wr_id == wc->wr_id);
	if (rule->action == VB_FAIL_EVENT)
		return matches_call(rule, call) && event_reaches(call, rule);
	return rule->action != VB_FAIL_CALL || matches_call(rule, call);
}

bool rules_ask(const struct fail_question *question, struct fail_rule *fired)
{
	bool fires = false;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < rule_count && !fires; i++) {
		struct fail_rule *rule = &rules[i];

		if (!matches(rule, question))
			continue;
		fires = rule->seen++ >= rule->skip && (!rule->count || rule->hits < rule->count);
		rule->hits += fires;
		if (fires)
			*fired = *rule;
	}
	pthread_mutex_unlock(&lock);
	return fires;
}

/* The part of a buffer that is not written yet. */
struct rest {
	char *at;
	size_t bytes;
};

__attribute__((format(printf, 2, 3))) static void add_text(struct rest *rest, const char *format,
							   ...)
{
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(rest->at, rest->bytes, format, arguments);
	va_end(arguments);
	if (wanted < 0 || (size_t)wanted >= rest->bytes)
		return;
	rest->at += wanted;
	rest->bytes -= (size_t)wanted;
}

static const char *first_word(const struct fail_rule *rule)
{
	static const char *const words[] = {
		[VB_FAIL_ALLOCATION] = "allocation", [VB_FAIL_COMPLETION] = "completion",
		[VB_FAIL_MADE] = "made_completion",  [VB_FAIL_EVENT] = "event",
		[VB_FAIL_DESCRIPTOR] = "descriptor", [VB_FAIL_THREAD] = "thread"};

	if (rule->action != VB_FAIL_CALL)
		return words[rule->action];
	return rule->any_call ? "any" : layer_verb_info(rule->verb)->name;
}

const char *rules_text(const struct fail_rule *rule, char text[RULE_TEXT_BYTES])
{
	struct rest rest = {text, RULE_TEXT_BYTES};

	add_text(&rest, "%s", first_word(rule));
	if (rule->device[0])
		add_text(&rest, ",device=%s", rule->device);
	if (rule->skip)
		add_text(&rest, ",skip=%" PRIu64, rule->skip);
	if (rule->count)
		add_text(&rest, ",count=%" PRIu64, rule->count);
	if (rule->at)
		add_text(&rest, ",at=%" PRIu32, rule->at);
	if ((rule->action == VB_FAIL_CALL || rule->action == VB_FAIL_DESCRIPTOR) &&
	    strerrorname_np(rule->err))
		add_text(&rest, ",errno=%s", strerrorname_np(rule->err));
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

/* The members of a rule that only some actions have. */
enum member {
	CALL = 1,
	DEVICE = 2,
	ERR = 4,
	AT = 8,
	COMPLETION = 16,
	EVENT = 32,
	QPN = 64,
	PORT = 128,
	OBJECT = 256,
};

/* Returns the name of a member that is set, and is none of `allowed`; NULL: there is none. */
static const char *wrong_member(const struct vb_fail_rule *rule, unsigned int allowed)
{
	const struct {
		bool set;
		enum member member;
		const char *name;
	} members[] = {
		{rule->call, CALL, "call"},
		{rule->device, DEVICE, "device"},
		{rule->err, ERR, "err"},
		{rule->at, AT, "at"},
		{rule->status, COMPLETION, "status"},
		{rule->vendor_err, COMPLETION, "vendor_err"},
		{rule->qpn, QPN, "qpn"},
		{rule->wr_id || rule->wr_id_given, COMPLETION, "wr_id"},
		{rule->event, EVENT, "event"},
		{rule->port_num, PORT, "port_num"},
		{rule->object, OBJECT, "object"},
	};

	for (unsigned int i = 0; i < COUNT(members); i++)
		if (members[i].set && !(allowed & members[i].member))
			return members[i].name;
	return NULL;
}

/* Returns 0, or an errno value after it has said why the rule is refused. */
static int read_err(const struct vb_fail_rule *rule, struct fail_rule *into, int usual)
{
	into->err = rule->err ? rule->err : usual;
	if (into->err < 0 || into->err > ERRNO_MAX)
		return REFUSE(VB_WHY_FAIL_ERRNO, {(uint64_t)(int64_t)rule->err});
	return 0;
}

static int read_call(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	into->at = rule->at;
	into->any_call = !rule->call;
	if (rule->call && !words_find_call(rule->call, &into->verb))
		return REFUSE(VB_WHY_FAIL_NO_CALL, .text = rule->call);
	if (rule->at && !(rule->call && words_is_list(into->verb)))
		return REFUSE(VB_WHY_FAIL_FIELD, .text = "at");
	return read_err(rule, into, ENOMEM);
}

/* What the library itself does not get: memory, a descriptor, a thread. */
static bool is_inside(enum vb_fail_action action)
{
	return action == VB_FAIL_ALLOCATION || action == VB_FAIL_DESCRIPTOR ||
	       action == VB_FAIL_THREAD;
}

static int read_inside(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	return read_err(rule, into,
			rule->action == VB_FAIL_ALLOCATION   ? ENOMEM
			: rule->action == VB_FAIL_DESCRIPTOR ? EMFILE
							     : EAGAIN);
}

static int read_completion(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	const bool made = rule->action == VB_FAIL_MADE;

	if ((unsigned int)rule->status > IBV_WC_TM_RNDV_INCOMPLETE)
		return REFUSE(VB_WHY_FAIL_STATUS, {(unsigned int)rule->status});
	into->status = rule->status || made ? rule->status : IBV_WC_GENERAL_ERR;
	into->vendor_err = rule->vendor_err ? rule->vendor_err
			   : made	    ? VB_WHY_FAIL_MADE
					    : VB_WHY_FAIL_COMPLETION;
	into->qpn = rule->qpn;
	into->wr_id = rule->wr_id;
	into->wr_id_given = rule->wr_id_given;
	return 0;
}

/* Returns the members that a rule of this action may have. */
static unsigned int members_of(const struct vb_fail_rule *rule)
{
	static const unsigned int members[] = {
		[VB_FAIL_CALL] = CALL | DEVICE | ERR | AT,
		[VB_FAIL_ALLOCATION] = 0,
		[VB_FAIL_COMPLETION] = DEVICE | COMPLETION | QPN,
		[VB_FAIL_MADE] = DEVICE | COMPLETION | QPN,
		[VB_FAIL_EVENT] = CALL | DEVICE | EVENT,
		[VB_FAIL_DESCRIPTOR] = ERR,
		[VB_FAIL_THREAD] = 0,
	};

	if (rule->action != VB_FAIL_EVENT)
		return members[rule->action];
	return members[rule->action] | (event_has_object(rule->event) ? OBJECT : PORT) |
	       (event_has_qp(rule->event) && !rule->object ? QPN : 0);
}

static int read_rule(const struct vb_fail_rule *rule, struct fail_rule *into)
{
	const char *wrong;

	*into = (struct fail_rule){
		.action = rule->action, .skip = rule->skip, .count = rule->count, .err = ENOMEM};
	if ((unsigned int)rule->action > VB_FAIL_THREAD)
		return REFUSE(VB_WHY_FAIL_ACTION, {rule->action});
	wrong = wrong_member(rule, members_of(rule));
	if (wrong)
		return REFUSE(VB_WHY_FAIL_FIELD, .text = wrong);
	if (rule->device && strlen(rule->device) >= sizeof(into->device))
		return REFUSE(VB_WHY_FAIL_FIELD, .text = "device of such a long name");
	snprintf(into->device, sizeof(into->device), "%s", rule->device ? rule->device : "");
	if (rule->action == VB_FAIL_EVENT && !event_is_known(rule->event))
		return REFUSE(VB_WHY_FAIL_EVENT, {rule->event});
	into->event = rule->event;
	into->port_num = rule->port_num ? rule->port_num : 1;
	into->object = rule->object;
	into->qpn = rule->qpn;
	if (rule->action == VB_FAIL_CALL || rule->action == VB_FAIL_EVENT)
		return read_call(rule, into);
	return is_inside(rule->action) ? read_inside(rule, into) : read_completion(rule, into);
}

/* --- adding and removing --- */

/* Returns true if rules of what the library does not get exist, or else rules of calls. */
static bool have(bool inside)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < rule_count; i++)
		found |= is_inside(rules[i].action) == inside;
	pthread_mutex_unlock(&lock);
	return found;
}

/* Stops watching calls or allocations for which no rule is left. */
static void watch_less(void)
{
	if (!have(true))
		allocation_watch(false);
	if (!have(false))
		call_watch(false);
}

/* The caller holds `change`. Returns 0 or an errno value. */
static int add(struct fail_rule *rule)
{
	if (rule_count == VB_FAIL_RULES_MAX)
		return REFUSE(VB_WHY_FAIL_FULL, {rule_count});
	if (!is_inside(rule->action) && call_watch(true))
		return REFUSE(VB_WHY_FAIL_LAYERS);
	pthread_mutex_lock(&lock);
	rule->id = ++last_id;
	rules[rule_count++] = *rule;
	pthread_mutex_unlock(&lock);
	if (!is_inside(rule->action) || allocation_watch(true))
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
