/* SPDX-License-Identifier: MIT */
/*
 * Target QPs that several processes have opened (ibv_open_qp(3)). The QP stays in the process that has created
 * it. There, one handle more in the ring of its handles stands for all openers in other processes: the QP lives
 * while that handle is there. An opener's handle has a stand-in for the engine's QP, and asks the QP's process
 * to do each verb.
 */
#include "backends/sim/verb/verbs.h"

#include "sim/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The process of a handle whose QP has ended. */
#define NO_PROCESS UINT64_MAX

/* A process that has opened a target QP of this process. */
struct opener {
	struct opener *next;
	uint64_t process;
	uint32_t handles;
};

/* A target QP of this process that others have opened. */
struct target {
	struct target *next;
	struct qp handle; /* stands for all openers in the ring of handles; has no context */
	struct device *device;
	struct domain *domain;
	struct opener *openers;
};

/* --- the process of the QP --- */

static struct domain *domain_of(const struct device *device, const uint64_t key[2])
{
	struct domain *domain = device->domains;

	while (domain && !(domain->engine->shared &&
			   !memcmp(domain->engine->key, key, sizeof(domain->engine->key))))
		domain = domain->next;
	return domain;
}

static struct target *target_of(const struct vb_sim *world, const struct sim_qp *engine)
{
	struct target *target = world->calls.targets;

	while (target && target->handle.engine != engine)
		target = target->next;
	return target;
}

static struct opener *opener_of(const struct target *target, uint64_t process)
{
	struct opener *opener = target->openers;

	while (opener && opener->process != process)
		opener = opener->next;
	return opener;
}

static struct target *new_target(struct vb_sim *world, struct device *device, struct domain *domain,
				 struct qp *qp)
{
	struct target *target = calloc(1, sizeof(*target));

	if (!target)
		return NULL;
	target->device = device;
	target->domain = domain;
	domain->handles++;
	target->handle.engine = qp->engine;
	target->handle.ibv.qp_num = qp->ibv.qp_num;
	target->handle.ibv.qp_type = IBV_QPT_XRC_RECV;
	target->handle.next_handle = qp->next_handle;
	qp->next_handle = &target->handle;
	target->next = world->calls.targets;
	world->calls.targets = target;
	return target;
}

/* The last opener has gone, or the device is closed. */
static void end_target(struct vb_sim *world, struct target *target)
{
	struct target **at = &world->calls.targets;

	while (*at != target)
		at = &(*at)->next;
	*at = target->next;
	if (verb_leave_ring(&target->handle))
		sim_qp_destroy(target->handle.engine);
	verb_release_domain(target->device, target->domain);
	free(target);
}

static struct opener *add_opener(struct target *target, uint64_t process)
{
	struct opener *opener = opener_of(target, process);

	if (opener)
		return opener;
	opener = calloc(1, sizeof(*opener));
	if (!opener)
		return NULL;
	opener->process = process;
	opener->next = target->openers;
	target->openers = opener;
	return opener;
}

static void drop_opener(struct vb_sim *world, struct target *target, struct opener *opener)
{
	struct opener **at = &target->openers;

	while (*at != opener)
		at = &(*at)->next;
	*at = opener->next;
	free(opener);
	if (!target->openers)
		end_target(world, target);
}

/* Returns a handle of a target QP of the domain, and its device and domain; NULL for none. */
static struct qp *find(const struct vb_sim *world, const struct world_call *call,
		       struct device **device, struct domain **domain)
{
	*device = world_shared_device(world, call->device);
	*domain = *device ? domain_of(*device, call->key) : NULL;
	return *domain ? verb_find_target(*device, *domain, call->number) : NULL;
}

static int serve_open(struct vb_sim *world, uint64_t process, struct world_call *call)
{
	struct opener *opener = NULL;
	struct device *device;
	struct domain *domain;
	struct qp *qp = find(world, call, &device, &domain);
	struct target *target;

	if (!qp)
		return EINVAL;
	target = target_of(world, qp->engine);
	if (!target)
		target = new_target(world, device, domain, qp);
	if (target)
		opener = add_opener(target, process);
	if (!opener) {
		if (target && !target->openers)
			end_target(world, target);
		return ENOMEM;
	}
	opener->handles++;
	sim_qp_query(qp->engine, &call->attr);
	return 0;
}

static int serve_modify(struct vb_sim *world, struct target *target, struct world_call *call)
{
	int err = sim_qp_modify(target->handle.engine, &call->attr, (int)call->mask);

	if (err)
		verb_keep_refusal(world, call, err);
	return err;
}

static void serve_close(struct vb_sim *world, struct target *target, struct opener *opener)
{
	if (!--opener->handles)
		drop_opener(world, target, opener);
}

/* --- the process of an opener --- */

/* Events go to each handle of the QP. */
static void take_event(struct vb_sim *world, uint64_t process, const struct world_call *call)
{
	struct queued_event event = {.type = call->what == CALL_EVENT ? call->mask
								      : IBV_EVENT_QP_FATAL};
	struct context *context;
	uint32_t at = 0, place;
	struct qp *qp;

	if (event_kind(event.type) != KIND_QP)
		return;
	while ((context = handles_next(&world->store.contexts, &at)))
		for (place = 0; (qp = handles_next(&context->handles[KIND_QP], &place));) {
			if (qp->process != process || qp->ibv.qp_num != call->number ||
			    context->device->engine->index != call->device)
				continue;
			event.object = qp;
			event_queue_push(&context->async, &event);
			if (call->what == CALL_END)
				qp->process = NO_PROCESS;
		}
	driver_changed(&world->driver);
}

void verb_serve_target(struct vb_sim *world, uint64_t process, struct world_call *call)
{
	struct device *device;
	struct domain *domain;
	struct qp *qp;
	struct target *target;
	struct opener *opener;

	if (call->what == CALL_OPEN) {
		call->error = serve_open(world, process, call);
		return;
	}
	if (call->what == CALL_EVENT || call->what == CALL_END) {
		take_event(world, process, call);
		return;
	}
	qp = find(world, call, &device, &domain);
	target = qp ? target_of(world, qp->engine) : NULL;
	opener = target ? opener_of(target, process) : NULL;
	if (!opener) {
		call->error = EIO;
		return;
	}
	call->error = 0;
	if (call->what == CALL_MODIFY)
		call->error = serve_modify(world, target, call);
	else if (call->what == CALL_QUERY)
		sim_qp_query(qp->engine, &call->attr);
	else if (call->what == CALL_CLOSE)
		serve_close(world, target, opener);
}

static int refuse_silence(const char *verb, int err, uint32_t number)
{
	return refuse_why(verb,
			  (struct vb_why){err == EIO ? VB_WHY_QP_FAR_ENDED : VB_WHY_QP_FAR_SILENT,
					  {number, WORLD_CALL_S}});
}

static struct world_call call_for(const struct device *device, const struct sim_xrcd *xrcd,
				  uint32_t number, enum verb_call what)
{
	return (struct world_call){.what = what,
				   .device = device->engine->index,
				   .number = number,
				   .key = {xrcd->key[0], xrcd->key[1]}};
}

int verb_open_far_target(struct context *context, struct qp *qp, uint32_t number,
			 enum ibv_qp_state *state)
{
	const struct domain *domain = qp->xrcd->domain;
	const struct device *device = context->device;
	const uint64_t process = world_qp_process(context->world, device->engine, number);
	struct world_call call = call_for(device, domain->engine, number, CALL_OPEN);
	int err;

	if (!process || !domain->engine->shared)
		return refuse_why("open_qp", (struct vb_why){VB_WHY_QP_OPEN_NONE, {number}});
	err = world_ask(context->world, process, &call);
	if (err)
		return refuse_silence("open_qp", err, number);
	if (call.error == EINVAL)
		return refuse_why("open_qp", (struct vb_why){VB_WHY_QP_OPEN_NONE, {number}});
	qp->ibv.qp_num = number;
	qp->process = process;
	if (call.error || sim_qp_create_proxy(device->engine, number, &qp->engine)) {
		if (!call.error)
			verb_close_far_target(qp);
		return refuse_plainly("open_qp", VB_WHY_NO_MEMORY);
	}
	*state = call.attr.qp_state;
	return 0;
}

/* As world_ask(). */
static int ask(const struct qp *qp, struct world_call *call)
{
	return qp->process == NO_PROCESS ? EIO
					 : world_ask(object_context(qp)->world, qp->process, call);
}

static struct world_call call_of(const struct qp *qp, enum verb_call what)
{
	return call_for(object_context(qp)->device, qp->xrcd->domain->engine, qp->ibv.qp_num, what);
}

int verb_modify_far_target(struct qp *qp, const struct ibv_qp_attr *attr, int attr_mask)
{
	struct world_call call = call_of(qp, CALL_MODIFY);
	const uint32_t number = qp->ibv.qp_num;
	int err;

	call.attr = *attr;
	call.mask = (uint32_t)attr_mask;
	err = ask(qp, &call);
	if (err || (call.error && !call.why.reason))
		return refuse_silence("modify_qp", err ? err : EIO, number);
	return call.error ? verb_say_answer("modify_qp", &call) : 0;
}

int verb_query_far_target(struct qp *qp, struct ibv_qp_attr *attr)
{
	struct world_call call = call_of(qp, CALL_QUERY);
	const uint32_t number = qp->ibv.qp_num;
	int err = ask(qp, &call);

	if (err || call.error)
		return refuse_silence("query_qp", err ? err : EIO, number);
	*attr = call.attr;
	return 0;
}

void verb_close_far_target(const struct qp *qp)
{
	const struct world_call call = call_of(qp, CALL_CLOSE);

	if (qp->process != NO_PROCESS)
		world_tell(object_context(qp)->world, qp->process, &call);
}

/* --- the ends of processes and devices --- */

static void tell_openers(struct vb_sim *world, const struct target *target, enum verb_call what,
			 uint32_t mask)
{
	struct world_call call =
		call_for(target->device, target->domain->engine, target->handle.ibv.qp_num, what);

	call.mask = mask;
	for (const struct opener *opener = target->openers; opener; opener = opener->next)
		world_tell(world, opener->process, &call);
}

void verb_send_event(struct vb_sim *world, const struct qp *handle, enum ibv_event_type type)
{
	const struct target *target = target_of(world, handle->engine);

	if (target)
		tell_openers(world, target, CALL_EVENT, type);
}

/* Returns an opener whose process has ended, and its target. */
static struct opener *find_dead(const struct vb_sim *world, struct target **target)
{
	for (*target = world->calls.targets; *target; *target = (*target)->next)
		for (struct opener *opener = (*target)->openers; opener; opener = opener->next)
			if (!world_process_lives(world, opener->process))
				return opener;
	return NULL;
}

void verb_bury_openers(struct vb_sim *world)
{
	struct target *target;
	struct opener *opener;

	while ((opener = find_dead(world, &target)))
		drop_opener(world, target, opener);
}

void verb_end_targets(struct vb_sim *world, const struct device *device)
{
	struct target *target = world->calls.targets;

	while (target) {
		struct target *next = target->next;

		if (target->device == device) {
			tell_openers(world, target, CALL_END, 0);
			/* The target goes with its last opener. */
			for (struct opener *opener = target->openers, *later; opener;
			     opener = later) {
				later = opener->next;
				drop_opener(world, target, opener);
			}
		}
		target = next;
	}
}
