/* SPDX-License-Identifier: MIT */
/* The sanitizer's layer: it calls the rules for each verb. */
#include "src/check/check.h"

#include "src/base/failure.h"
#include "src/check/enable.h"
#include "src/check/poison.h"
#include "src/check/tell.h"
#include "src/check/track.h"
#include "src/layer/watch.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <verbena/cm.h>
#include <verbena/verbs.h>

#define RULE_COUNT COUNT(tell_rules)

static const struct check_hook *const tracks[] = {track_post_hooks, track_completion_hooks,
						  track_queue_hooks, track_mr_hooks};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a rule runs */
static bool enabled;
unsigned int check_alerts;

/* The functions to call before and after a verb, collected from the tables of hooks: a call does not ask
 * rules that have no hook for its verb. NULL ends each list. */
static struct needs {
	uint8_t kind; /* enum object_kind of the first argument; OBJECT_KINDS: another one */
	bool after_success, after_failure;
	/* In before[], the hooks of track.h come last; in after[], they come first. */
	void (*before_rarely[RULE_COUNT + 1])(struct check_call *check);
	void (*before[2 * RULE_COUNT + 2])(struct check_call *check);
	void (*after[RULE_COUNT + 2])(struct check_call *check);
} needs[LAYER_VERBS];

/* --- what rules ask --- */

void check_hold(void)
{
	pthread_mutex_lock(&lock);
}

bool check_try_hold(void)
{
	return !pthread_mutex_trylock(&lock);
}

void check_release(void)
{
	pthread_mutex_unlock(&lock);
}

static void each_of(struct check_qp *qp, const struct work_queue *queue,
		    void (*fn)(struct check_qp *qp, struct work *work, void *arg), void *arg)
{
	for (uint64_t i = 0; i < work_count(queue); i++)
		if (!work_at(queue, i)->done)
			fn(qp, work_at(queue, i), arg);
}

void check_each_work(void (*fn)(struct check_qp *qp, struct work *work, void *arg), void *arg)
{
	struct object *object;

	for (object = object_first(OBJECT_QP); object; object = object->next_of_kind) {
		struct check_qp *qp = (struct check_qp *)object;

		each_of(qp, &qp->sends, fn, arg);
		each_of(qp, &qp->receives, fn, arg);
	}
	for (object = object_first(OBJECT_SRQ); object; object = object->next_of_kind)
		each_of(NULL, &((struct check_srq *)object)->receives, fn, arg);
}

const char *check_name(const void *handle, char *text, size_t size_bytes)
{
	struct layer_object found;

	if (!layer_object_find(handle, &found))
		snprintf(text, size_bytes, "an object");
	else if (found.qpn)
		snprintf(text, size_bytes, "QP 0x%x of %s", found.qpn, found.device);
	else
		snprintf(text, size_bytes, "%s%u of %s", found.kind, found.number, found.device);
	return text;
}

const char *check_work_name(const struct work *work, char *text, size_t size_bytes)
{
	snprintf(text, size_bytes, "the %s with wr_id 0x%llx",
		 work->send ? vb_wr_opcode_str(work->opcode) : "receive",
		 (unsigned long long)work->wr_id);
	return text;
}

/* --- the layer --- */

/* Returns the QP, entered if it is new. A program may give any pointer: one that neither the sanitizer nor
 * the layers know is not read. */
static CHECK_RARE struct check_qp *new_qp(struct ibv_qp *qp)
{
	struct layer_object found;

	return layer_object_find(qp, &found) ? object_qp(qp) : NULL;
}

static CHECK_RARE struct check_cq *new_cq(struct ibv_cq *cq)
{
	struct layer_object found;

	return layer_object_find(cq, &found) ? object_cq(cq) : NULL;
}

struct check_qp *check_qp_of_id(const struct check_call *check)
{
	const struct rdma_cm_id *id = check_pointer(check, 0);
	struct layer_object known;

	return layer_object_find(id, &known) ? object_find_qp(id->qp) : NULL;
}

/* Fills in the description of the call. Enters the QP or CQ of the call if it is unknown. */
static inline __attribute__((always_inline)) void describe(struct check_call *check,
							   struct layer_call *call,
							   const struct needs *need)
{
	check->call = call;
	check->state = &call->state;
	check->qp = NULL;
	check->cq = NULL;
	check->wants_after = false;
	spot_take(call, &check->spot);
	if (need->kind == OBJECT_QP) {
		check->qp = object_find_qp(check_pointer(check, 0));
		if (!check->qp)
			check->qp = new_qp(check_pointer(check, 0));
	} else if (need->kind == OBJECT_CQ) {
		check->cq = object_find_cq(check_pointer(check, 0));
		if (!check->cq)
			check->cq = new_cq(check_pointer(check, 0));
	}
}

/* Calls look() of all rules without wanted(). For rules with wanted(), look() is in the lists of before(). */
static void look(struct check_call *check)
{
	TELL_UNROLLED
	for (size_t i = 0; i < RULE_COUNT; i++)
		if (tell_rules[i]->look && !tell_rules[i]->wanted)
			tell_rules[i]->look(check);
}

/* Takes the lock unless the process has one thread. Returns true if it is taken. */
static bool enter(void)
{
	const bool locks = !__libc_single_threaded;

	if (locks)
		pthread_mutex_lock(&lock);
	return locks;
}

static void leave(bool locked)
{
	if (locked)
		pthread_mutex_unlock(&lock);
}

static void call_each(void (*const *fn)(struct check_call *check), struct check_call *check)
{
	for (; *fn; fn++)
		(*fn)(check);
}

static int before(struct layer_call *call)
{
	const struct needs *need = &needs[call->verb];
	struct check_call check;
	bool locked;

	locked = enter();
	describe(&check, call, need);
	look(&check);
	if (*need->before_rarely && (!check.qp || check.qp->alerts))
		call_each(need->before_rarely, &check);
	call_each(need->before, &check);
	call->skips_after = !check.wants_after && !need->after_success;
	leave(locked);
	return 0;
}

/* Returns true for a verb that frees its object. If the verb has failed, track_queue.c enters the object again. */
static bool ends_object(const struct layer_call *call)
{
	return call->verb == LAYER_destroy_qp || call->verb == LAYER_destroy_cq;
}

static void run_after(struct layer_call *call)
{
	struct check_call check = {.call = call, .state = &call->state};

	if (ends_object(call))
		spot_take(call, &check.spot);
	else
		describe(&check, call, &needs[call->verb]);
	call_each(needs[call->verb].after, &check);
}

static void after(const struct layer_call *seen)
{
	struct layer_call call;
	bool locked;

	if (seen->err && !needs[seen->verb].after_failure)
		return;
	call = *seen;
	locked = enter();
	run_after(&call);
	leave(locked);
}

static struct layer checks = {.name = "check", .before = before, .after = after};

/* --- beginning and end --- */

static void append(void (**list)(struct check_call *check), void (*fn)(struct check_call *check))
{
	while (*list)
		list++;
	*list = fn;
}

static void collect_before(const struct check_hook *hook)
{
	for (; hook && (hook->before || hook->after); hook++)
		if (hook->before)
			append(hook->before_rarely ? needs[hook->verb].before_rarely
						   : needs[hook->verb].before,
			       hook->before);
}

static void collect_after(const struct check_hook *hook)
{
	for (; hook && (hook->before || hook->after); hook++) {
		if (!hook->after)
			continue;
		append(needs[hook->verb].after, hook->after);
		needs[hook->verb].after_failure = true;
		needs[hook->verb].after_success |= !hook->after_failure_only;
	}
}

static enum object_kind kind_of(enum layer_verb verb)
{
	const struct layer_verb_info *info = layer_verb_info(verb);
	const char *type = info->parameter_count ? info->parameters[0].type : "";

	if (!strcmp(type, "struct ibv_qp *") || !strcmp(type, "struct ibv_qp_ex *"))
		return OBJECT_QP;
	if (!strcmp(type, "struct ibv_cq *") || !strcmp(type, "struct ibv_cq_ex *"))
		return OBJECT_CQ;
	return OBJECT_KINDS;
}

static void collect_looks(const struct check_rule *rule)
{
	for (int i = 0; rule->wanted && rule->look && i < LAYER_VERBS; i++)
		append(needs[i].before, rule->look);
}

static bool is_wanted(const struct check_rule *rule, const struct vb_check_options *options)
{
	return !rule->wanted || rule->wanted(options);
}

static void collect(const struct vb_check_options *options)
{
	memset(needs, 0, sizeof(needs));
	for (int i = 0; i < LAYER_VERBS; i++)
		needs[i].kind = (uint8_t)kind_of((enum layer_verb)i);
	for (unsigned int i = 0; i < RULE_COUNT; i++)
		if (is_wanted(tell_rules[i], options))
			collect_looks(tell_rules[i]);
	for (unsigned int i = 0; i < COUNT(tracks); i++)
		collect_after(tracks[i]);
	for (unsigned int i = 0; i < RULE_COUNT; i++)
		if (is_wanted(tell_rules[i], options)) {
			collect_before(tell_rules[i]->hooks);
			collect_after(tell_rules[i]->hooks);
		}
	for (unsigned int i = 0; i < COUNT(tracks); i++)
		collect_before(tracks[i]);
}

static void hold(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < RULE_COUNT && enabled; i++)
		if (tell_rules[i]->forking)
			tell_rules[i]->forking();
	offence_lock();
	place_lock();
}

static void release(void)
{
	place_unlock();
	offence_unlock();
	pthread_mutex_unlock(&lock);
}

/* A child of fork() has its own findings. */
static void release_child(void)
{
	offence_forget();
	release();
}

/*
 * fork() calls the handlers of pthread_atfork(3) in reverse order of their registration. The sanitizer's
 * lock must be taken before those of backends and tables, as in a verb, so this handler is registered after
 * theirs: when the first object exists.
 */
void check_watch_forks(void)
{
	static bool watches;

	if (watches)
		return;
	watches = true;
	pthread_atfork(hold, release, release_child);
}

static void start_once(void)
{
	spot_start();
	poison_start();
}

int vb_check_enable(const struct vb_check_options *options)
{
	static const struct vb_check_options defaults;
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	if (!options)
		options = &defaults;
	if (enabled)
		return fail(EALREADY, "check: the sanitizer is enabled already; call "
				      "vb_check_disable() first");
	pthread_once(&once, start_once);
	err = offence_start(options);
	if (err)
		return err;
	for (unsigned int i = 0; i < RULE_COUNT; i++)
		if (tell_rules[i]->begin)
			tell_rules[i]->begin(options);
	collect(options);
	err = layer_add(&checks);
	if (err)
		return fail(err, "check: no memory for the layer");
	enabled = true;
	return 0;
}

static void end_rules(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < RULE_COUNT; i++)
		if (tell_rules[i]->end)
			tell_rules[i]->end();
	object_forget_all();
	pthread_mutex_unlock(&lock);
}

void vb_check_disable(void)
{
	if (!enabled)
		return;
	enabled = false;
	layer_remove(&checks);
	end_rules();
}

int check_finish(void)
{
	if (!enabled)
		return 0;
	if (layer_left_inside())
		offence_say("exit(3) was called inside a verb, as by a signal handler: what is "
			    "left is not "
			    "looked at; call exit(3) outside verbs");
	else
		vb_check_disable();
	return offence_end();
}
