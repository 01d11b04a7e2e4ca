/* SPDX-License-Identifier: MIT */
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/control.h"
#include "backends/sim/verb/data.h"
#include "backends/sim/verb/unsupported.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMP_VECTORS 4

/* libibverbs keeps its own functions in the _compat entries; nothing inline calls them. */
static void fill_compat(struct ibv_context_ops *ops)
{
	ops->_compat_query_device = query_device;
	ops->_compat_query_port = query_port_compat;
	ops->_compat_alloc_pd = (void *)control_alloc_pd;
	ops->_compat_dealloc_pd = (void *)control_dealloc_pd;
	ops->_compat_reg_mr = (void *)control_reg_mr;
	ops->_compat_dereg_mr = (void *)control_dereg_mr;
	ops->_compat_create_cq = (void *)control_create_cq;
	ops->_compat_resize_cq = (void *)control_resize_cq;
	ops->_compat_destroy_cq = (void *)control_destroy_cq;
	ops->_compat_rereg_mr = (void *)control_rereg_mr;
	ops->_compat_create_srq = (void *)control_create_srq;
	ops->_compat_modify_srq = (void *)control_modify_srq;
	ops->_compat_query_srq = (void *)control_query_srq;
	ops->_compat_destroy_srq = (void *)control_destroy_srq;
	ops->_compat_attach_mcast = (void *)control_attach_mcast;
	ops->_compat_detach_mcast = (void *)control_detach_mcast;
	ops->_compat_create_qp = (void *)control_create_qp;
	ops->_compat_query_qp = (void *)control_query_qp;
	ops->_compat_modify_qp = (void *)control_modify_qp;
	ops->_compat_destroy_qp = (void *)control_destroy_qp;
	ops->_compat_create_ah = (void *)control_create_ah;
	ops->_compat_destroy_ah = (void *)control_destroy_ah;
}

static void fill(struct context *context)
{
	struct verbs_context *verbs = &context->verbs;

	unsupported_fill(verbs);
	verbs->sz = sizeof(*verbs);
	verbs->query_port = query_port;
	verbs->query_rt_values = query_rt_values;
	verbs->create_cq_ex = control_create_cq_ex;
	verbs->query_device_ex = query_device_ex;
	verbs->create_qp_ex = control_create_qp_ex;
	verbs->open_qp = control_open_qp;
	verbs->create_srq_ex = control_create_srq_ex;
	verbs->get_srq_num = control_get_srq_num;
	verbs->open_xrcd = control_open_xrcd;
	verbs->close_xrcd = control_close_xrcd;
	verbs->alloc_td = control_alloc_td;
	verbs->dealloc_td = control_dealloc_td;
	verbs->alloc_parent_domain = control_alloc_parent_domain;
	verbs->alloc_dm = control_alloc_dm;
	verbs->free_dm = control_free_dm;
	verbs->reg_dm_mr = control_reg_dm_mr;
	verbs->alloc_null_mr = control_alloc_null_mr;
	verbs->advise_mr = control_advise_mr;
	verbs->modify_cq = control_modify_cq;
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->context.num_comp_vectors = COMP_VECTORS;
	verbs->context.ops.poll_cq = data_poll_cq;
	verbs->context.ops.req_notify_cq = data_req_notify_cq;
	verbs->context.ops.post_send = data_post_send;
	verbs->context.ops.post_recv = data_post_recv;
	verbs->context.ops.post_srq_recv = data_post_srq_recv;
	verbs->context.ops.alloc_mw = control_alloc_mw;
	verbs->context.ops.bind_mw = control_bind_mw;
	verbs->context.ops.dealloc_mw = control_dealloc_mw;
	fill_compat(&verbs->context.ops);
	unsupported_take_out(verbs, context->device->engine->profile->lacks);
	pthread_mutex_init(&verbs->context.mutex, NULL);
}

/* cmd_fd is the one to own, or -1 for a new one. */
static int open_descriptors(struct context *context, int cmd_fd)
{
	int err = event_queue_init(&context->async);

	if (err)
		return err;
	context->verbs.context.async_fd = context->async.fd;
	/* Nothing is read from it or written to it; duplicates of it have its inode. */
	context->verbs.context.cmd_fd = cmd_fd >= 0 ? cmd_fd : memfd_create("verbena", MFD_CLOEXEC);
	if (context->verbs.context.cmd_fd < 0) {
		err = errno;
		event_queue_end(&context->async);
	}
	return err;
}

/* All but kept, which stays the caller's. */
static void close_descriptors(struct context *context, int kept)
{
	event_queue_end(&context->async);
	if (context->verbs.context.cmd_fd != kept)
		close(context->verbs.context.cmd_fd);
}

static int enlist(struct vb_sim *world, struct context *context)
{
	int err = handles_add(&world->contexts, context, &context->handle);

	if (err)
		return err;
	err = driver_start(world);
	if (err)
		handles_remove(&world->contexts, context->handle);
	return err;
}

/* Shares the file of origin, and then owns cmd_fd; NULL and -1 for a file of its own. */
static struct context *new_context(struct device *device, struct context *origin, int cmd_fd)
{
	struct vb_sim *world = device->world;
	struct context *context;
	int err;

	if (world->retired)
		return say_null(ENODEV, "open_device: %s is of a world that has been replaced",
				device->ibv.name);
	context = pool_take(&world->pools[KIND_CONTEXT]);
	if (!context)
		return say_null(ENOMEM, "open_device: out of memory");
	context->world = world;
	context->device = device;
	context->origin = origin ? origin : context;
	for (unsigned int i = 0; i < KINDS; i++)
		handles_init(&context->handles[i]);
	fill(context);
	context->verbs.context.device = &device->ibv;
	err = open_descriptors(context, cmd_fd);
	if (!err) {
		err = enlist(world, context);
		if (err)
			close_descriptors(context, cmd_fd);
	}
	if (err) {
		pool_give(&world->pools[KIND_CONTEXT], context);
		return say_null(err, "open_device: %s: no descriptor or no thread",
				device->ibv.name);
	}
	world->live[KIND_CONTEXT]++;
	return context;
}

struct ibv_context *control_open_device(struct ibv_device *ibv)
{
	struct device *device = (struct device *)ibv;
	struct context *context;

	guard_install();
	/* Really locked: this may start the world's thread. */
	pthread_mutex_lock(&device->world->mutex);
	context = new_context(device, NULL, -1);
	pthread_mutex_unlock(&device->world->mutex);
	return context ? &context->verbs.context : NULL;
}

struct context *control_share_device(struct context *origin, int cmd_fd)
{
	return new_context(origin->device, origin, cmd_fd);
}

static void end_queues(struct context *context)
{
	struct handles *all = context->handles;
	uint32_t at;
	void *object;

	for (at = 0; (object = handles_next(&all[KIND_QP], &at));)
		control_end_qp(context, object);
	for (at = 0; (object = handles_next(&all[KIND_SRQ], &at));)
		control_end_srq(context, object);
	for (at = 0; (object = handles_next(&all[KIND_CQ], &at));)
		control_end_cq(context, object);
	for (at = 0; (object = handles_next(&all[KIND_AH], &at));)
		control_end_ah(context, object);
}

static void end_memory(struct context *context)
{
	struct handles *all = context->handles;
	uint32_t at;
	void *object;

	for (at = 0; (object = handles_next(&all[KIND_MW], &at));)
		control_end_mw(context, object);
	for (at = 0; (object = handles_next(&all[KIND_MR], &at));)
		control_leave_mr(context, object);
	for (at = 0; (object = handles_next(&all[KIND_DM], &at));)
		control_end_dm(context, object);
}

/* A device that is closed ends what was made in it, whatever waits for it. */
static void end_objects(struct context *context)
{
	struct handles *all = context->handles;
	uint32_t at;
	void *object;

	end_queues(context);
	end_memory(context);
	for (at = 0; (object = handles_next(&all[KIND_XRCD], &at));)
		control_end_xrcd(context, object);
	for (at = 0; (object = handles_next(&all[KIND_PD], &at));)
		control_end_pd(context, object);
	for (at = 0; (object = handles_next(&all[KIND_TD], &at));)
		object_end(context, KIND_TD, at - 1, object);
	for (at = 0; (object = handles_next(&all[KIND_CHANNEL], &at));) {
		event_queue_end(&((struct channel *)object)->events);
		object_end(context, KIND_CHANNEL, at - 1, object);
	}
}

int control_close_device(struct ibv_context *ibv)
{
	struct context *context = context_of(ibv);
	struct vb_sim *world = context->world;
	bool locked = world_lock(world);
	bool live = context_live(context);

	if (live) {
		end_objects(context);
		for (unsigned int i = 0; i < KINDS; i++)
			handles_end(&context->handles[i]);
		close_descriptors(context, -1);
		handles_remove(&world->contexts, context->handle);
		pool_give(&world->pools[KIND_CONTEXT], context);
		world->live[KIND_CONTEXT]--;
	}
	world_unlock(world, locked);
	if (!live)
		return say_minus(EINVAL, "close_device: the context is closed");
	driver_stop(world);
	return 0;
}
