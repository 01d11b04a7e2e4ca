/* SPDX-License-Identifier: MIT */
/*
 * Serves the calls of other processes (backends/sim/world/call.h). A thread serves a call while it receives
 * packets: the call must not change the last refusal of that thread.
 */
#include "backends/sim/verb/verbs.h"

#include "backends/sim/object/users.h"

#include <stdio.h>
#include <sys/stat.h>

void verb_keep_reason(struct world_call *call, const struct vb_why *why)
{
	call->why = *why;
	snprintf(call->text, sizeof(call->text), "%s", why->text ? why->text : "");
	call->why.verb = call->why.text = NULL;
}

void verb_keep_refusal(const struct vb_sim *world, struct world_call *call, int err)
{
	struct vb_why why;

	if (!sim_take_refusal(world->driver.engine, err, &why))
		why = (struct vb_why){VB_WHY_ERRNO_ONLY, {(uint64_t)err}, .text = "sim"};
	verb_keep_reason(call, &why);
}

int verb_say_answer(const char *verb, struct world_call *call)
{
	call->why.verb = verb;
	call->why.text = call->text;
	return say_why(call->error, &call->why);
}

/* --- destroying for an importer --- */

/* Returns the context of this process whose file an importer has mapped. */
static struct context *context_of_file(const struct vb_sim *world, const uint64_t key[2])
{
	struct context *context;
	struct stat file;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->origin == context && context->description.map &&
		    !fstat(context->verbs.context.cmd_fd, &file) && file.st_dev == key[0] &&
		    file.st_ino == key[1])
			return context;
	return NULL;
}

static int refuse_users(struct world_call *call, enum vb_reason reason, enum kind kind,
			const void *object)
{
	verb_keep_reason(
		call, &(struct vb_why){reason, {call->number}, .text = users_text(kind, object)});
	return EBUSY;
}

static int destroy_pd(struct vb_sim *world, struct world_call *call, void *pd)
{
	(void)world;
	if (verb_pd_users(pd))
		return refuse_users(call, VB_WHY_PD_BUSY, KIND_PD, pd);
	verb_end_pd(pd);
	return 0;
}

static int destroy_mr(struct vb_sim *world, struct world_call *call, void *mr)
{
	int err = verb_try_end_mr(mr);

	if (err)
		verb_keep_refusal(world, call, err);
	return err;
}

static int destroy_dm(struct vb_sim *world, struct world_call *call, void *object)
{
	const struct dm *dm = object;

	(void)world;
	if (dm->users)
		return refuse_users(call, VB_WHY_DM_BUSY, KIND_DM, dm);
	verb_end_dm(object);
	return 0;
}

static const struct {
	enum description_table table; /* DESCRIBED_NONE: a kind that is not imported */
	int (*destroy)(struct vb_sim *world, struct world_call *call, void *object);
} destroyed[KINDS] = {
	[KIND_PD] = {DESCRIBED_PD, destroy_pd},
	[KIND_MR] = {DESCRIBED_MR, destroy_mr},
	[KIND_DM] = {DESCRIBED_DM, destroy_dm},
};

static void serve_destroy(struct vb_sim *world, struct world_call *call)
{
	const enum kind kind = call->mask < KINDS ? call->mask : KIND_CONTEXT;
	struct context *context = context_of_file(world, call->key);
	void *object;

	call->error = ENOENT;
	if (!context || !destroyed[kind].destroy ||
	    !description_has(&context->description, destroyed[kind].table, call->number,
			     call->stamp))
		return;
	object = handles_at(&context->handles[kind], call->number);
	if (object && object_root(kind, object) == object)
		call->error = destroyed[kind].destroy(world, call, object);
}

/* --- all calls --- */

static void serve(struct vb_sim *world, uint64_t process, struct world_call *call)
{
	if (call->what == CALL_DESTROY)
		serve_destroy(world, call);
	else if (call->what == CALL_LOOK)
		verb_serve_look(world, call);
	else
		verb_serve_target(world, process, call);
}

void verb_serve_calls(struct vb_sim *world)
{
	world->calls.serve = serve;
	world->calls.event = verb_send_event;
	world_take_calls(world);
}
