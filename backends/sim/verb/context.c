/* SPDX-License-Identifier: MIT */
/* Opening and closing a device. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/verb/verbs.h"
#include "src/guard/guard.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define COMP_VECTORS 4

/* The functions that inline functions of <infiniband/verbs.h> call through the context. */
static void fill(struct context *context)
{
	struct verbs_context *verbs = &context->verbs;
	struct ibv_context_ops *ops = &verbs->context.ops;

	verbs->sz = sizeof(*verbs);
	verbs->query_port = verb_query_port;
	verbs->create_cq_ex = verb_create_cq_ex;
	verbs->query_device_ex = verb_query_device_ex;
	verbs->create_qp_ex = verb_create_qp_ex;
	verbs->open_qp = verb_open_qp;
	verbs->create_srq_ex = verb_create_srq_ex;
	verbs->get_srq_num = verb_get_srq_num;
	verbs->open_xrcd = verb_open_xrcd;
	verbs->close_xrcd = verb_close_xrcd;
	verbs->dealloc_td = verb_dealloc_td;
	verbs->free_dm = verb_free_dm;
	verbs->reg_dm_mr = verb_reg_dm_mr;
	verbs->advise_mr = verb_advise_mr;
	verbs->modify_cq = verb_modify_cq;
	verbs->alloc_dm = verb_alloc_dm;
	verbs->alloc_td = verb_alloc_td;
	verbs->alloc_parent_domain = verb_alloc_parent_domain;
	verbs->alloc_null_mr = verb_alloc_null_mr;
	verbs->query_rt_values = verb_query_rt_values_ex;
	verb_fill_lacking(verbs);
	verbs->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs->context.num_comp_vectors = COMP_VECTORS;
	ops->poll_cq = verb_poll_cq;
	ops->req_notify_cq = verb_req_notify_cq;
	ops->post_send = verb_post_send;
	ops->post_recv = verb_post_recv;
	ops->post_srq_recv = verb_post_srq_recv;
	ops->alloc_mw = verb_alloc_mw;
	ops->bind_mw = verb_bind_mw;
	ops->dealloc_mw = verb_dealloc_mw;
	/* For old binaries, as rdma-core libibverbs/device.c, set_lib_ops. */
	ops->_compat_query_device = verb_query_device;
	ops->_compat_query_port = verb_query_port_compat;
	pthread_mutex_init(&verbs->context.mutex, NULL);
}

/* A duplicate of the descriptor has the same inode. So the inode identifies the context. */
static int make_file(struct context *context)
{
	int fd = -1;

	errno = EFBIG;
	if (world_shares(context->world, context->device))
		fd = description_create(&context->description);
	/* Without a description other processes cannot import the context. */
	if (fd < 0 && errno == EFBIG) {
		context->description = (struct description){.map = NULL};
		fd = memfd_create("verbena", MFD_CLOEXEC);
	}
	return fd;
}

/* Takes cmd_fd, or makes a new one for -1. 0, or an errno with a reason. */
static int open_descriptors(struct context *context, int cmd_fd, const char *verb)
{
	int err = event_queue_init(&context->async, world_waiting_owner(context->world));

	if (err)
		return refuse_descriptor(verb, err, "for the events of the device");
	context->verbs.context.async_fd = context->async.fd;
	context->verbs.context.cmd_fd = cmd_fd >= 0 ? cmd_fd : make_file(context);
	if (context->verbs.context.cmd_fd < 0) {
		err = errno;
		event_queue_end(&context->async);
	}
	return err ? refuse_descriptor(verb, err, "for the commands of the device") : 0;
}

/* Closes the descriptors; kept, if it is one of them, stays the caller's. */
static void close_descriptors(struct context *context, int kept)
{
	int state = cancel_off();

	event_queue_end(&context->async);
	description_close(&context->description);
	if (context->verbs.context.cmd_fd != kept)
		close(context->verbs.context.cmd_fd);
	cancel_restore(state);
}

static int enlist(struct vb_sim *world, struct context *context, const char *verb)
{
	int err;

	err = world_resume_wires(world);
	if (err)
		return err;
	if (handles_add(&world->store.contexts, context, &context->handle))
		return refuse_plainly(verb, VB_WHY_NO_MEMORY);
	err = driver_start(&world->driver);
	if (!err) {
		world->inherited = false;
		return 0;
	}
	handles_remove(&world->store.contexts, context->handle);
	return refuse_system(verb, err, "making the thread of the real clock");
}

/*
 * Returns a context that shares the file of origin, and then owns cmd_fd; with NULL and -1, it has
 * a file of its own.
 */
static struct context *new_context(struct device *device, struct context *origin, int cmd_fd)
{
	const char *const verb = origin ? "import_device" : "open_device";
	struct vb_sim *world = device->world;
	struct store *store = &world->store;
	struct context *context;
	int err;

	if (world->retired)
		return null_errno(refuse_name(verb, VB_WHY_WORLD_REPLACED, device->ibv.name));
	context = pool_take(&store->pools[KIND_CONTEXT]);
	if (!context)
		return null_errno(refuse_plainly(verb, VB_WHY_NO_MEMORY));
	context->world = world;
	context->poll_cq = verb_poll_cq;
	context->store = store;
	context->device = device;
	context->origin = origin ? origin : context;
	for (unsigned int i = 0; i < KINDS; i++)
		handles_init(&context->handles[i]);
	fill(context);
	context->verbs.context.device = &device->ibv;
	err = open_descriptors(context, cmd_fd, verb);
	if (!err) {
		err = enlist(world, context, verb);
		if (err)
			close_descriptors(context, cmd_fd);
	}
	if (err) {
		pool_give(&store->pools[KIND_CONTEXT], context);
		return null_errno(err);
	}
	store->live[KIND_CONTEXT]++;
	verb_serve_calls(world);
	if (origin)
		verb_foreign_use(origin);
	else
		world_describe(context);
	return context;
}

/* The lock is taken even if the process has one thread: a second one may start here. */
struct ibv_context *verb_open_device(struct ibv_device *ibv)
{
	struct device *device = (struct device *)ibv;
	struct context *context;

	guard_install();
	pthread_mutex_lock(&device->world->driver.mutex);
	context = new_context(device, NULL, -1);
	pthread_mutex_unlock(&device->world->driver.mutex);
	return context ? &context->verbs.context : NULL;
}

struct context *verb_share_device(struct context *origin, int cmd_fd)
{
	return new_context(origin->device, origin, cmd_fd);
}

static void (*const ends[KIND_CONTEXT])(void *object) = {
	[KIND_QP] = verb_end_qp, [KIND_SRQ] = verb_end_srq,	    [KIND_CQ] = verb_end_cq,
	[KIND_AH] = verb_end_ah, [KIND_MW] = verb_end_mw,	    [KIND_MR] = verb_end_mr,
	[KIND_DM] = verb_end_dm, [KIND_XRCD] = verb_end_xrcd,	    [KIND_PD] = verb_end_pd,
	[KIND_TD] = verb_end_td, [KIND_CHANNEL] = verb_end_channel,
};

/* Ends all that was made in the context, users before what they use. The program may have written to
 * the context pointer of an object. */
static void end_objects(struct context *context)
{
	void *object;

	for (enum kind kind = 0; kind < KIND_CONTEXT; kind++)
		for (uint32_t at = 0; (object = handles_next(&context->handles[kind], &at));) {
			*(struct ibv_context **)object = &context->verbs.context;
			ends[kind](object);
		}
}

/* Returns true if the program has a context of the device. */
static bool is_open(const struct vb_sim *world, const struct device *device)
{
	const struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->device == device)
			return true;
	return false;
}

/* Returns false if the context is closed. */
static bool close_context(struct context *context)
{
	struct vb_sim *world = context->world;
	HOLD hold = world_hold(world);

	if (!context_live(context))
		return false;
	end_objects(context);
	for (unsigned int i = 0; i < KINDS; i++)
		handles_end(&context->handles[i]);
	verb_foreign_release(context->origin);
	close_descriptors(context, -1);
	handles_remove(&world->store.contexts, context->handle);
	if (!is_open(world, context->device))
		verb_end_targets(world, context->device);
	pool_give(&world->store.pools[KIND_CONTEXT], context);
	world->store.live[KIND_CONTEXT]--;
	return true;
}

int verb_close_device(struct ibv_context *ibv)
{
	struct vb_sim *world = context_of(ibv)->world;

	if (!close_context(context_of(ibv)))
		return minus_errno(refuse_plainly("close_device", VB_WHY_CONTEXT_CLOSED));
	driver_stop(&world->driver);
	return 0;
}
