/* SPDX-License-Identifier: MIT */
/* The sanitizer's layer: it calls the rules for each verb. */
#include "src/check/check.h"

#include "src/base/count.h"
#include "src/base/failure.h"
#include "src/check/enable.h"
#include "src/check/poison.h"
#include "src/check/track.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <verbena/verbs.h>

static const struct check_rule *const rules[] = {
	&rule_buffer,	&rule_memory, &rule_target, &rule_completion, &rule_queue, &rule_chain,
	&rule_lost,	&rule_event,  &rule_poll,   &rule_receive,    &rule_ends,  &rule_path,
	&rule_datagram, &rule_key,    &rule_thread, &rule_fork,	      &rule_limit, &rule_order,
	&rule_race,	&rule_far,    &rule_qkey,
};

#define RULE_COUNT COUNT(rules)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a rule runs */
static bool enabled;

/* The functions of the rules that are wanted, made from the table, so that a call asks no rule that does
 * not want it. */
static const struct check_hook *hooks[LAYER_VERBS][RULE_COUNT + 1];
static struct {
	void (*posted[RULE_COUNT + 1])(struct check_call *, struct check_qp *, struct work *);
	void (*done[RULE_COUNT + 1])(struct check_call *, struct check_qp *, struct work *,
				     const struct ibv_wc *);
	void (*polled[RULE_COUNT + 1])(struct check_call *, struct check_qp *, struct ibv_wc *);
	void (*dropped[RULE_COUNT + 1])(struct check_call *, struct check_qp *, struct work *);
	void (*refused[RULE_COUNT + 1])(struct check_call *, struct check_qp *, struct work *);
	void (*look[RULE_COUNT + 1])(struct check_call *);
} fns;
static const struct check_hook *tracks[LAYER_VERBS];

void check_posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	for (unsigned int i = 0; fns.posted[i]; i++)
		fns.posted[i](check, qp, work);
}

void check_done(struct check_call *check, struct check_qp *qp, struct work *work,
		const struct ibv_wc *wc)
{
	for (unsigned int i = 0; fns.done[i]; i++)
		fns.done[i](check, qp, work, wc);
}

void check_polled(struct check_call *check, struct check_qp *qp, struct ibv_wc *wc)
{
	for (unsigned int i = 0; fns.polled[i]; i++)
		fns.polled[i](check, qp, wc);
}

void check_dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	for (unsigned int i = 0; fns.dropped[i]; i++)
		fns.dropped[i](check, qp, work);
}

void check_refused(struct check_call *check, struct check_qp *qp, struct work *work)
{
	for (unsigned int i = 0; fns.refused[i]; i++)
		fns.refused[i](check, qp, work);
}

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

/* What a call of a verb needs, made from the tables. */
static struct {
	uint8_t kind; /* enum object_kind of the first argument; OBJECT_KINDS: another one */
	bool after_success, after_failure;
} needs[LAYER_VERBS];

/* A program may give any pointer: what neither the sanitizer nor the layers know is not read. */
static struct check_qp *known_qp(struct ibv_qp *qp)
{
	struct check_qp *known = object_find_qp(qp);
	struct layer_object found;

	return known || !layer_object_find(qp, &found) ? known : object_qp(qp);
}

static struct check_cq *known_cq(struct ibv_cq *cq)
{
	struct check_cq *known = object_find_cq(cq);
	struct layer_object found;

	return known || !layer_object_find(cq, &found) ? known : object_cq(cq);
}

/* Describes the call. Enters its object if that was made out of sight. */
static void describe(struct check_call *check, struct layer_call *call)
{
	*check = (struct check_call){.call = call, .state = &call->state};
	spot_take(call, &check->spot);
	if (needs[call->verb].kind == OBJECT_QP)
		check->qp = known_qp(check_pointer(check, 0));
	else if (needs[call->verb].kind == OBJECT_CQ)
		check->cq = known_cq(check_pointer(check, 0));
}

static void look(struct check_call *check)
{
	for (unsigned int i = 0; fns.look[i]; i++)
		fns.look[i](check);
}

/* Returns true if the lock is taken: a process with one thread needs none. */
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

static int before(struct layer_call *call)
{
	const struct check_hook *const *hook = hooks[call->verb];
	const struct check_hook *track = tracks[call->verb];
	struct check_call check;
	bool locked;

	locked = enter();
	describe(&check, call);
	look(&check);
	for (; *hook; hook++)
		if ((*hook)->before)
			(*hook)->before(&check);
	if (track && track->before)
		track->before(&check);
	leave(locked);
	return 0;
}

/* Such a call has freed the object; if the call has failed, track.c shows the object again. */
static bool ends_object(const struct layer_call *call)
{
	return call->verb == LAYER_destroy_qp || call->verb == LAYER_destroy_cq;
}

static void run_after(struct layer_call *call)
{
	const struct check_hook *const *hook = hooks[call->verb];
	const struct check_hook *track = tracks[call->verb];
	struct check_call check = {.call = call, .state = &call->state};

	if (ends_object(call))
		spot_take(call, &check.spot);
	else
		describe(&check, call);
	if (track && track->after)
		track->after(&check);
	for (; *hook; hook++)
		if ((*hook)->after)
			(*hook)->after(&check);
}

static void after(const struct layer_call *seen)
{
	struct layer_call call;
	bool locked;

	if (!(seen->err ? needs[seen->verb].after_failure : needs[seen->verb].after_success))
		return;
	call = *seen;
	locked = enter();
	run_after(&call);
	leave(locked);
}

static struct layer checks = {.name = "check", .before = before, .after = after};

/* --- beginning and end --- */

#define COLLECT(member)                                                 \
	do {                                                            \
		unsigned int count = 0;                                 \
                                                                        \
		for (unsigned int i = 0; i < RULE_COUNT; i++)           \
			if (rules[i]->member && is_wanted[i])           \
				fns.member[count++] = rules[i]->member; \
	} while (0)

static bool is_wanted[RULE_COUNT];

static void note_needs(const struct check_hook *hook)
{
	needs[hook->verb].after_failure |= hook->after != NULL;
	needs[hook->verb].after_success |= hook->after && !hook->after_failure_only;
}

static void collect_hooks(const struct check_rule *rule)
{
	for (const struct check_hook *hook = rule->hooks; hook && (hook->before || hook->after);
	     hook++) {
		unsigned int i = 0;

		while (hooks[hook->verb][i])
			i++;
		hooks[hook->verb][i] = hook;
		note_needs(hook);
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

static void collect(const struct vb_check_options *options)
{
	memset(hooks, 0, sizeof(hooks));
	memset(&fns, 0, sizeof(fns));
	memset(needs, 0, sizeof(needs));
	for (unsigned int i = 0; i < RULE_COUNT; i++)
		is_wanted[i] = !rules[i]->wanted || rules[i]->wanted(options);
	for (int i = 0; i < LAYER_VERBS; i++)
		needs[i].kind = (uint8_t)kind_of((enum layer_verb)i);
	for (const struct check_hook *hook = track_hooks; hook->before || hook->after; hook++) {
		tracks[hook->verb] = hook;
		note_needs(hook);
	}
	for (unsigned int i = 0; i < RULE_COUNT; i++)
		if (is_wanted[i])
			collect_hooks(rules[i]);
	COLLECT(posted);
	COLLECT(done);
	COLLECT(polled);
	COLLECT(dropped);
	COLLECT(refused);
	COLLECT(look);
}

static void hold(void)
{
	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < RULE_COUNT && enabled; i++)
		if (rules[i]->forking)
			rules[i]->forking();
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
 * fork() calls the handler first that was registered last. The sanitizer's lock is taken before those of
 * backends and tables, as in a verb: so its handler is registered when these have theirs.
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
	check_keep_loaded();
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
		if (rules[i]->begin)
			rules[i]->begin(options);
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
		if (rules[i]->end)
			rules[i]->end();
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
	vb_check_disable();
	return offence_end();
}
