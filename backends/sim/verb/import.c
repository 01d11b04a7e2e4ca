/* SPDX-License-Identifier: MIT */
/*
 * Importing (ibv_import_device(3), ibv_import_pd(3), ...): a second context on the file of another
 * context, and second objects for the objects of that one. The other context is of this process or, on
 * the wire shared, of another one. An import is an object of its own that points to its root; for an
 * object of another process, the root is a stand-in (foreign.c). After the root's end, an import can
 * only be unimported, as in the kernel.
 */
#include "backends/sim/verb/verbs.h"
#include "backends/sim/world/process.h"
#include "src/guard/guard.h"

#include <sys/stat.h>

static bool same_file(int a, int b)
{
	struct stat first, second;

	return !fstat(a, &first) && !fstat(b, &second) && first.st_dev == second.st_dev &&
	       first.st_ino == second.st_ino;
}

/* In the child of a fork(), the parent describes a context that the child has inherited. */
static bool is_own(const struct vb_sim *world, const struct context *context)
{
	return context->origin == context &&
	       (context->description.map || !world_shares(world, context->device));
}

/* Returns the context of this process whose cmd_fd the descriptor duplicates; NULL for none. */
static struct context *find_origin(const struct vb_sim *world, int cmd_fd)
{
	struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (is_own(world, context) && same_file(context->verbs.context.cmd_fd, cmd_fd))
			return context;
	return NULL;
}

/* Returns true if the descriptor is the cmd_fd of a context, which closes it. */
static bool is_taken(const struct vb_sim *world, int cmd_fd)
{
	const struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at)))
		if (context->verbs.context.cmd_fd == cmd_fd)
			return true;
	return false;
}

static struct context *import(struct vb_sim *world, int cmd_fd)
{
	struct context *origin = find_origin(world, cmd_fd), *context;

	if (is_taken(world, cmd_fd))
		return null_errno(
			refuse_why("import_device",
				   (struct vb_why){VB_WHY_IMPORT_ORIGINAL, {(uint64_t)cmd_fd}}));
	if (!origin)
		origin = verb_foreign_find(world, cmd_fd);
	if (!origin)
		return NULL;
	context = verb_lacks(origin, SIM_LACKS_IMPORTS, "import_device")
			  ? NULL
			  : verb_share_device(origin, cmd_fd);
	if (!context)
		verb_foreign_drop(origin);
	return context;
}

struct ibv_context *verb_import_device(int cmd_fd)
{
	struct vb_sim *world = process_default();
	struct context *context;

	if (!world)
		return NULL;
	guard_install();
	pthread_mutex_lock(&world->driver.mutex);
	context = import(world, cmd_fd);
	pthread_mutex_unlock(&world->driver.mutex);
	return context ? &context->verbs.context : NULL;
}

/*
 * Returns the object of a handle in the context's file. NULL, with ENOENT and a reason, if there is
 * none, or if it is an import itself or a parent domain.
 */
static void *find_root(const char *verb, const struct context *context, enum kind kind,
		       uint32_t handle)
{
	struct vb_why why = {VB_WHY_IMPORT_HANDLE, {handle}, .text = kind_name(kind)};
	void *root;

	if (!context_live(context) || (!context->origin->foreign && !context_live(context->origin)))
		return null_errno(refuse_plainly(verb, VB_WHY_IMPORT_CLOSED));
	if (context->origin->foreign)
		return verb_foreign_root(verb, context->origin, kind, handle);
	root = handles_at(&context->origin->handles[kind], handle);
	if (!root)
		return null_errno(refuse_why(verb, why));
	if (object_root(kind, root) != root)
		why.reason = VB_WHY_IMPORT_OF_IMPORT;
	else if (kind == KIND_PD && ((struct pd *)root)->extends)
		why.reason = VB_WHY_IMPORT_PARENT;
	else
		return root;
	return null_errno(refuse_why(verb, why));
}

/* Returns true for an import that was not unimported. Its root may have ended. */
static bool is_import(enum kind kind, const void *object, uint32_t slot, const void *root)
{
	return root && handles_has(&object_context(object)->handles[kind], slot, object);
}

struct ibv_pd *verb_import_pd(struct ibv_context *ibv, uint32_t pd_handle)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct pd *root = find_root("import_pd", context, KIND_PD, pd_handle);
	struct pd *pd;

	if (!root)
		return NULL;
	pd = object_new(context, KIND_PD, "import_pd");
	if (!pd)
		return NULL;
	pd->ibv.handle = pd_handle;
	pd->number = root->number;
	pd->root = root;
	pd->next_view = root->views;
	root->views = pd;
	return &pd->ibv;
}

void verb_unimport_pd(struct ibv_pd *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct pd *pd = (struct pd *)ibv;

	if (is_import(KIND_PD, pd, pd->slot, pd->root))
		verb_end_pd(pd);
}

struct ibv_mr *verb_import_mr(struct ibv_pd *ibv, uint32_t mr_handle)
{
	HOLD hold = context_hold(ibv->context);
	struct context *context = context_of(ibv->context);
	struct mr *mr, *root;

	if (!pd_of(ibv))
		return null_errno(refuse_gone("import_mr", KIND_PD, ibv));
	root = find_root("import_mr", context, KIND_MR, mr_handle);
	if (!root)
		return NULL;
	mr = object_new(context, KIND_MR, "import_mr");
	if (!mr)
		return NULL;
	mr->ibv = root->ibv;
	mr->ibv.context = ibv->context;
	mr->ibv.pd = ibv;
	mr->ibv.handle = mr_handle;
	mr->ibv.addr = NULL; /* ibv_import_mr(3) */
	mr->root = root;
	mr->engine = root->engine;
	mr->dm = root->dm;
	return &mr->ibv;
}

void verb_unimport_mr(struct ibv_mr *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct mr *mr = (struct mr *)ibv;

	if (is_import(KIND_MR, mr, mr->slot, mr->root))
		verb_end_mr(mr);
}

struct ibv_dm *verb_import_dm(struct ibv_context *ibv, uint32_t dm_handle)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct dm *root = find_root("import_dm", context, KIND_DM, dm_handle);
	struct dm *dm;

	if (!root)
		return NULL;
	dm = object_new(context, KIND_DM, "import_dm");
	if (!dm)
		return NULL;
	verb_fill_dm(dm, dm_handle);
	dm->root = root;
	dm->bytes = root->bytes;
	dm->length_bytes = root->length_bytes;
	return &dm->ibv;
}

void verb_unimport_dm(struct ibv_dm *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct dm *dm = (struct dm *)ibv;

	if (is_import(KIND_DM, dm, dm->slot, dm->root))
		verb_end_dm(dm);
}
