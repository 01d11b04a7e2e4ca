/* SPDX-License-Identifier: MIT */
/*
 * Importing (ibv_import_device(3), ibv_import_pd(3), ...): a second context on the file of another,
 * and second objects for what was made in that one. Here both are of one process, and of the
 * default world. An import is an object of its own that leads to its root; what the root's end does
 * to it is what the kernel would do: it can only be unimported.
 */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <sys/stat.h>

static bool same_file(int a, int b)
{
	struct stat first, second;

	return !fstat(a, &first) && !fstat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* The context that a duplicate of its cmd_fd was made of; NULL for none. */
static struct context *find_origin(struct vb_sim *world, int cmd_fd)
{
	struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->contexts, &at)))
		if (context->origin == context && same_file(context->verbs.context.cmd_fd, cmd_fd))
			return context;
	return NULL;
}

struct ibv_context *control_import_device(int cmd_fd)
{
	struct vb_sim *world = world_default();
	struct context *origin, *context = NULL;

	if (!world)
		return NULL;
	pthread_mutex_lock(&world->mutex);
	origin = find_origin(world, cmd_fd);
	/* Whose own descriptor it is, it has to be duplicated: both contexts close theirs. */
	if (!origin || origin->verbs.context.cmd_fd == cmd_fd)
		say_null(EINVAL, "import_device: %d is no duplicate of an open context's cmd_fd",
			 cmd_fd);
	else
		context = control_share_device(origin, cmd_fd);
	pthread_mutex_unlock(&world->mutex);
	return context ? &context->verbs.context : NULL;
}

/* The object of a handle in the context's file; NULL for none. */
static void *find_root(const struct context *context, enum kind kind, uint32_t handle)
{
	if (!context_live(context) || !context_live(context->origin))
		return NULL;
	return handles_at(&context->origin->handles[kind], handle);
}

struct ibv_pd *control_import_pd(struct ibv_context *ibv, uint32_t pd_handle)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct pd *root = find_root(context, KIND_PD, pd_handle);
	struct pd *pd = NULL;
	uint32_t slot;

	if (!root || root->root || root->extends)
		say_null(EINVAL, "import_pd: the file has no PD %u", pd_handle);
	else if (!(pd = object_new(context, KIND_PD, &slot)))
		say_null(ENOMEM, "import_pd: out of memory");
	if (pd) {
		pd->ibv.context = ibv;
		pd->ibv.handle = pd_handle;
		pd->slot = slot;
		pd->number = root->number;
		pd->root = root;
		pd->next_view = root->views;
		root->views = pd;
	}
	world_unlock(context->world, locked);
	return pd ? &pd->ibv : NULL;
}

/* Of an import whose root is gone, too. */
void control_unimport_pd(struct ibv_pd *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct pd *pd = (struct pd *)ibv;

	if (pd->root && handles_has(&context->handles[KIND_PD], pd->slot, pd))
		control_end_pd(context, pd);
	world_unlock(context->world, locked);
}

struct ibv_mr *control_import_mr(struct ibv_pd *ibv, uint32_t mr_handle)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct mr *root = find_root(context, KIND_MR, mr_handle);
	struct mr *mr = NULL;
	uint32_t slot;

	if (!pd_of(ibv) || !root || root->root)
		say_null(EINVAL, "import_mr: no such PD, or the file has no MR %u", mr_handle);
	else if (!(mr = object_new(context, KIND_MR, &slot)))
		say_null(ENOMEM, "import_mr: out of memory");
	if (mr) {
		/* ibv_import_mr(3): its addr is NULL. */
		mr->ibv = (struct ibv_mr){
			.context = ibv->context,
			.pd = ibv,
			.length = root->ibv.length,
			.handle = mr_handle,
			.lkey = root->ibv.lkey,
			.rkey = root->ibv.rkey,
		};
		mr->slot = slot;
		mr->root = root;
		mr->engine = root->engine;
		mr->dm = root->dm;
	}
	world_unlock(context->world, locked);
	return mr ? &mr->ibv : NULL;
}

struct ibv_dm *control_import_dm(struct ibv_context *ibv, uint32_t dm_handle)
{
	struct context *context = context_of(ibv);
	bool locked = world_lock(context->world);
	struct dm *root = find_root(context, KIND_DM, dm_handle);
	struct dm *dm = NULL;
	uint32_t slot;

	if (!root || root->root)
		say_null(EINVAL, "import_dm: the file has no DM %u", dm_handle);
	else if (!(dm = object_new(context, KIND_DM, &slot)))
		say_null(ENOMEM, "import_dm: out of memory");
	if (dm) {
		control_fill_dm(dm, ibv, dm_handle);
		dm->slot = slot;
		dm->root = root;
		dm->bytes = root->bytes;
		dm->length_bytes = root->length_bytes;
	}
	world_unlock(context->world, locked);
	return dm ? &dm->ibv : NULL;
}

void control_unimport_dm(struct ibv_dm *ibv)
{
	struct context *context = context_of(ibv->context);
	bool locked = world_lock(context->world);
	struct dm *dm = (struct dm *)ibv;

	if (dm->root && handles_has(&context->handles[KIND_DM], dm->slot, dm))
		control_end_dm(context, dm);
	world_unlock(context->world, locked);
}
