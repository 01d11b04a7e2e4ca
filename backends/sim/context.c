/* SPDX-License-Identifier: MIT */
#include "control.h"
#include "data.h"
#include "guard.h"
#include "say.h"
#include "unsupported.h"
#include "world.h"

#include <errno.h>
#include <sys/eventfd.h>
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
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->context.num_comp_vectors = COMP_VECTORS;
	verbs->context.ops.poll_cq = data_poll_cq;
	verbs->context.ops.req_notify_cq = data_req_notify_cq;
	verbs->context.ops.post_send = data_post_send;
	verbs->context.ops.post_recv = data_post_recv;
	fill_compat(&verbs->context.ops);
	pthread_mutex_init(&verbs->context.mutex, NULL);
}

static int open_descriptors(struct context *context)
{
	int err = event_queue_init(&context->async);

	if (err)
		return err;
	context->verbs.context.async_fd = context->async.fd;
	/* Nothing is read from it or written to it; it is there to be duplicated. */
	context->verbs.context.cmd_fd = eventfd(0, EFD_CLOEXEC);
	if (context->verbs.context.cmd_fd < 0) {
		err = errno;
		event_queue_end(&context->async);
	}
	return err;
}

static void close_descriptors(struct context *context)
{
	event_queue_end(&context->async);
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

static struct context *new_context(struct device *device)
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
	for (unsigned int i = 0; i < KINDS; i++)
		handles_init(&context->handles[i]);
	fill(context);
	context->verbs.context.device = &device->ibv;
	err = open_descriptors(context);
	if (!err) {
		err = enlist(world, context);
		if (err)
			close_descriptors(context);
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
	context = new_context(device);
	pthread_mutex_unlock(&device->world->mutex);
	return context ? &context->verbs.context : NULL;
}

/* A device that is closed ends what was made in it, whatever waits for it. */
static void end_objects(struct context *context)
{
	struct handles *all = context->handles;
	uint32_t at;
	void *object;

	for (at = 0; (object = handles_next(&all[KIND_QP], &at));)
		control_end_qp(context, object);
	for (at = 0; (object = handles_next(&all[KIND_CQ], &at));)
		control_end_cq(context, object);
	for (at = 0; (object = handles_next(&all[KIND_AH], &at));) {
		sim_ah_release(((struct ah *)object)->engine);
		object_end(context, KIND_AH, at - 1, object);
	}
	for (at = 0; (object = handles_next(&all[KIND_MR], &at));) {
		sim_mr_destroy(((struct mr *)object)->engine);
		object_end(context, KIND_MR, at - 1, object);
	}
	for (at = 0; (object = handles_next(&all[KIND_PD], &at));)
		object_end(context, KIND_PD, at - 1, object);
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
		close_descriptors(context);
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
