/* SPDX-License-Identifier: MIT */
/*
 * Contexts of other processes. A stand-in is a context without a program's ibv_context: the origin of the
 * contexts that are imported from one file. The objects of the other process that have been imported are
 * its proxies: a PD with a number of its own, an MR whose memory is a window to the other process, device
 * memory likewise. A proxy stays until the stand-in ends, even if its object has ended: imports point to it.
 */
#include "backends/sim/guard/distant.h"
#include "backends/sim/verb/verbs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct proxy {
	struct proxy *next;
	void *object; /* a struct pd, mr or dm */
	enum kind kind;
	uint32_t handle; /* in the other process */
	uint64_t stamp;
	void *window;		      /* NULL: the object has no memory, or it was let go */
	struct sim_adoption adoption; /* of an MR */
};

struct foreign {
	struct description_owner owner;
	dev_t st_dev; /* of the file */
	ino_t st_ino;
	int memory; /* of distant_open(); -1: not opened yet */
	uint32_t contexts;
	struct proxy *proxies;
};

/* --- memory --- */

static int open_memory(const char *verb, struct foreign *foreign)
{
	const struct vb_why why = {VB_WHY_IMPORT_MEMORY, {foreign->owner.pid}};

	if (foreign->memory >= 0)
		return 0;
	/* A PID means another process in another namespace. */
	if (!foreign->owner.pid_namespace || foreign->owner.pid_namespace != world_pid_namespace())
		return refuse_why(verb,
				  (struct vb_why){VB_WHY_IMPORT_NAMESPACE, {foreign->owner.pid}});
	foreign->memory = distant_open(foreign->owner.pid);
	if (foreign->memory >= 0)
		return 0;
	return errno == EACCES || errno == EPERM
		       ? refuse_why(verb, why)
		       : refuse_system(verb, errno, "opening the memory of the other process");
}

/* Makes the proxy's window. */
static int make_window(const char *verb, struct context *origin, struct proxy *proxy,
		       enum description_table table, const struct described *object)
{
	struct foreign *foreign = origin->foreign;
	struct distant_range range = {.addr = object->addr, .length_bytes = object->length};
	int err = open_memory(verb, foreign);

	if (err)
		return err;
	/* The file was opened by the PID: it is the owner's if the owner lives now. */
	if (!world_process_lives(origin->world, foreign->owner.process))
		return refuse_why(verb, (struct vb_why){VB_WHY_IMPORT_ENDED, {foreign->owner.pid}});
	range.memory = foreign->memory;
	range.stamp = description_stamp(&origin->description, table, proxy->handle);
	range.stamp_then = proxy->stamp;
	proxy->window = distant_map(&range);
	return proxy->window ? 0 : refuse_plainly(verb, VB_WHY_NO_MEMORY);
}

/* --- proxies --- */

static struct proxy *find_proxy(const struct foreign *foreign, enum kind kind, uint32_t handle,
				uint64_t stamp)
{
	struct proxy *proxy = foreign->proxies;

	while (proxy && !(proxy->kind == kind && proxy->handle == handle && proxy->stamp == stamp))
		proxy = proxy->next;
	return proxy;
}

static int refuse_damaged(const char *verb, const struct foreign *foreign,
			  const struct proxy *proxy)
{
	return refuse_why(verb, (struct vb_why){VB_WHY_IMPORT_DAMAGED,
						{foreign->owner.pid, proxy->handle},
						.text = kind_name(proxy->kind)});
}

static int fill_pd(struct context *origin, struct proxy *proxy, const struct described *object)
{
	struct pd *pd = proxy->object;

	if (object->flags & DESCRIBED_PARENT)
		return refuse_why("import_pd",
				  (struct vb_why){VB_WHY_IMPORT_PARENT, {proxy->handle}});
	pd->number = ++origin->world->last_pd;
	pd->slot = proxy->handle;
	pd->stamp = proxy->stamp;
	return 0;
}

/* Returns true if the range is one of a process, and the keys are the owner's. */
static bool is_plausible(const struct context *origin, const struct described *object)
{
	const struct device *device = origin->device;
	const uint64_t process = origin->foreign->owner.process;
	uint64_t end;

	return !__builtin_add_overflow(object->addr, object->length, &end) && end <= INT64_MAX &&
	       !__builtin_add_overflow(object->iova, object->length, &end) &&
	       world_has_key(device, object->lkey, process) &&
	       (!object->rkey || world_has_key(device, object->rkey, process));
}

static int adopt(struct context *origin, struct proxy *proxy, const struct described *object,
		 uint32_t pd)
{
	const struct sim_mr_init init = {
		.pd = pd,
		.addr = proxy->window,
		.length = object->length,
		.iova = object->iova,
		/* The pages of another process cannot be prefetched here. */
		.access = (int)object->access & SIM_ACCESS_KNOWN & ~IBV_ACCESS_ON_DEMAND,
	};
	struct mr *mr = proxy->object;
	int err;

	proxy->adoption = (struct sim_adoption){
		.lkey = object->lkey,
		.rkey = object->rkey,
		.stamp = description_stamp(&origin->description, DESCRIBED_MR, proxy->handle),
		.stamp_then = proxy->stamp,
	};
	err = sim_mr_adopt(origin->device->engine, &init, &proxy->adoption, &mr->engine);
	return err ? say_refused(origin->world, "import_mr", err) : 0;
}

static int fill_mr(struct context *origin, struct proxy *proxy, const struct described *object)
{
	struct mr *mr = proxy->object;
	const struct pd *pd;
	int err;

	if (object->flags & DESCRIBED_NO_BYTES)
		return refuse_why("import_mr",
				  (struct vb_why){VB_WHY_IMPORT_NO_BYTES, {proxy->handle}});
	if (!is_plausible(origin, object))
		return refuse_damaged("import_mr", origin->foreign, proxy);
	pd = verb_foreign_root("import_mr", origin, KIND_PD, object->pd);
	if (!pd)
		return errno;
	err = make_window("import_mr", origin, proxy, DESCRIBED_MR, object);
	if (!err)
		err = adopt(origin, proxy, object, pd->number);
	if (err)
		return err;
	mr->ibv.length = object->length;
	mr->ibv.lkey = object->lkey;
	mr->ibv.rkey = object->rkey;
	mr->slot = proxy->handle;
	mr->stamp = proxy->stamp;
	return 0;
}

static int fill_dm(struct context *origin, struct proxy *proxy, const struct described *object)
{
	struct dm *dm = proxy->object;
	int err;

	if (object->length > DEVICE_MEMORY_BYTES || object->addr > INT64_MAX - DEVICE_MEMORY_BYTES)
		return refuse_damaged("import_dm", origin->foreign, proxy);
	err = make_window("import_dm", origin, proxy, DESCRIBED_DM, object);
	if (err)
		return err;
	dm->bytes = proxy->window;
	dm->length_bytes = object->length;
	dm->slot = proxy->handle;
	dm->stamp = proxy->stamp;
	return 0;
}

static const struct {
	enum description_table table;
	int (*fill)(struct context *origin, struct proxy *proxy, const struct described *object);
} kinds[] = {
	[KIND_PD] = {DESCRIBED_PD, fill_pd},
	[KIND_MR] = {DESCRIBED_MR, fill_mr},
	[KIND_DM] = {DESCRIBED_DM, fill_dm},
};

/* Ends the MR of the engine through which this process reaches the object. Returns false while
 * something uses the MR. */
static bool let_go(struct proxy *proxy)
{
	struct mr *mr = proxy->object;
	const struct dm *dm = proxy->object;

	if (!proxy->window)
		return true;
	if (proxy->kind == KIND_DM && dm->users)
		return false;
	if (proxy->kind == KIND_MR && mr->engine && sim_mr_destroy(mr->engine))
		return false;
	distant_unmap(proxy->window);
	proxy->window = NULL;
	return true;
}

static void let_go_of_ended(struct context *origin)
{
	struct proxy *proxy;

	for (proxy = origin->foreign->proxies; proxy; proxy = proxy->next)
		if (!description_has(&origin->description, kinds[proxy->kind].table, proxy->handle,
				     proxy->stamp))
			let_go(proxy);
}

/* Returns NULL with errno and a sentence. */
static struct proxy *new_proxy(const char *verb, struct context *origin, const struct proxy *as,
			       const struct described *object)
{
	struct pool *pool = &origin->store->pools[as->kind];
	struct proxy *proxy = malloc(sizeof(*proxy));
	int err;

	if (!proxy)
		return null_errno(refuse_plainly(verb, VB_WHY_NO_MEMORY));
	*proxy = *as;
	proxy->object = pool_take(pool);
	if (!proxy->object) {
		free(proxy);
		return null_errno(refuse_plainly(verb, VB_WHY_NO_MEMORY));
	}
	*(struct ibv_context **)proxy->object = &origin->verbs.context;
	err = kinds[as->kind].fill(origin, proxy, object);
	if (err) {
		let_go(proxy);
		pool_give(pool, proxy->object);
		free(proxy);
		return null_errno(err);
	}
	proxy->next = origin->foreign->proxies;
	origin->foreign->proxies = proxy;
	return proxy;
}

void *verb_foreign_root(const char *verb, struct context *origin, enum kind kind, uint32_t handle)
{
	struct proxy as = {.kind = kind, .handle = handle};
	struct described object;
	struct proxy *proxy;

	as.stamp = description_read(&origin->description, kinds[kind].table, handle, &object);
	if (!as.stamp)
		return null_errno(refuse_why(
			verb,
			(struct vb_why){VB_WHY_IMPORT_HANDLE, {handle}, .text = kind_name(kind)}));
	proxy = find_proxy(origin->foreign, kind, handle, as.stamp);
	if (!proxy) {
		let_go_of_ended(origin);
		proxy = new_proxy(verb, origin, &as, &object);
	}
	return proxy ? proxy->object : NULL;
}

/* Returns the proxy that has the object. */
static struct proxy *proxy_of(const void *object)
{
	struct proxy *proxy = object_context(object)->foreign->proxies;

	while (proxy->object != object)
		proxy = proxy->next;
	return proxy;
}

static void end_import(enum kind kind, void *import)
{
	if (kind == KIND_PD)
		verb_end_pd(import);
	else if (kind == KIND_MR)
		verb_end_mr(import);
	else
		verb_end_dm(import);
}

/* Ends an object of another process for its import. The object's proxy stays until the stand-in ends. */
int verb_destroy_foreign(const char *verb, enum kind kind, void *import)
{
	struct proxy *proxy = proxy_of(object_root(kind, import));
	const struct context *origin = object_context(proxy->object);
	const struct foreign *foreign = origin->foreign;
	const uint32_t pid = foreign->owner.pid;
	struct world_call call = {.what = CALL_DESTROY,
				  .number = proxy->handle,
				  .mask = kind,
				  .key = {foreign->st_dev, foreign->st_ino},
				  .stamp = proxy->stamp};
	int err = world_ask(origin->world, foreign->owner.process, &call);

	/* Another thread may have unimported it meanwhile. */
	if (!object_live(kind, import))
		return refuse_gone(verb, kind, import);
	if (err)
		return refuse_why(verb, (struct vb_why){VB_WHY_IMPORT_SILENT,
							{call.number, pid},
							.text = kind_name(kind)});
	if (call.error == ENOENT)
		return refuse_gone(verb, kind, import);
	if (call.error)
		return verb_say_answer(verb, &call);
	let_go(proxy);
	end_import(kind, import);
	return 0;
}

/* --- stand-ins --- */

/* Returns the stand-in that there is for a file, or NULL. */
static struct context *find_standin(const struct vb_sim *world, const struct stat *file)
{
	struct context *context;
	uint32_t at = 0;

	while ((context = handles_next(&world->store.contexts, &at))) {
		const struct foreign *foreign = context->origin->foreign;

		if (foreign && foreign->st_dev == file->st_dev && foreign->st_ino == file->st_ino)
			return context->origin;
	}
	return NULL;
}

static int refuse(enum vb_reason reason, uint64_t first, uint64_t second)
{
	return refuse_why("import_device", (struct vb_why){reason, {first, second}});
}

/* Opens the description behind a descriptor, and finds its device. 0, or an errno with a sentence. */
static int open_file(struct vb_sim *world, int cmd_fd, struct description *description,
		     struct description_owner *owner, struct device **device)
{
	uint32_t layout = 0;

	switch (description_open(description, cmd_fd, owner, &layout)) {
	case DESCRIPTION_FOUND:
		break;
	case DESCRIPTION_LAYOUT:
		return refuse(VB_WHY_IMPORT_LAYOUT, layout, DESCRIPTION_LAYOUT_NUMBER);
	case DESCRIPTION_NONE:
		return refuse(VB_WHY_IMPORT_DESCRIPTOR, (uint64_t)cmd_fd, 0);
	}
	if (!world_has_owner(world, owner))
		return refuse(VB_WHY_IMPORT_WORLD, owner->pid, 0);
	if (!world_process_lives(world, owner->process))
		return refuse(VB_WHY_IMPORT_ENDED, owner->pid, 0);
	*device = world_shared_device(world, owner->device);
	return *device ? 0 : refuse(VB_WHY_IMPORT_DESCRIPTOR, (uint64_t)cmd_fd, 0);
}

static struct context *new_standin(struct vb_sim *world, struct device *device,
				   const struct description *description,
				   const struct description_owner *owner, const struct stat *file)
{
	struct context *origin = pool_take(&world->store.pools[KIND_CONTEXT]);
	struct foreign *foreign = malloc(sizeof(*foreign));

	if (!origin || !foreign) {
		free(foreign);
		if (origin)
			pool_give(&world->store.pools[KIND_CONTEXT], origin);
		return null_errno(refuse_plainly("import_device", VB_WHY_NO_MEMORY));
	}
	*foreign = (struct foreign){
		.owner = *owner, .st_dev = file->st_dev, .st_ino = file->st_ino, .memory = -1};
	origin->world = world;
	origin->store = &world->store;
	origin->device = device;
	origin->origin = origin;
	origin->description = *description;
	origin->foreign = foreign;
	return origin;
}

struct context *verb_foreign_find(struct vb_sim *world, int cmd_fd)
{
	struct description description = {0};
	struct description_owner owner;
	struct device *device = NULL;
	struct context *origin;
	struct stat file;
	int err;

	if (fstat(cmd_fd, &file))
		return null_errno(refuse(VB_WHY_IMPORT_DESCRIPTOR, (uint64_t)cmd_fd, 0));
	origin = find_standin(world, &file);
	if (origin)
		return origin;
	err = world_resume_wires(world);
	if (!err)
		err = open_file(world, cmd_fd, &description, &owner, &device);
	if (!err)
		origin = new_standin(world, device, &description, &owner, &file);
	if (!origin)
		description_close(&description);
	return err ? null_errno(err) : origin;
}

static void end_standin(struct context *origin)
{
	struct foreign *foreign = origin->foreign;

	while (foreign->proxies) {
		struct proxy *proxy = foreign->proxies;

		foreign->proxies = proxy->next;
		let_go(proxy);
		pool_give(&origin->store->pools[proxy->kind], proxy->object);
		free(proxy);
	}
	if (foreign->memory >= 0)
		close(foreign->memory);
	description_close(&origin->description);
	free(foreign);
	origin->foreign = NULL;
	pool_give(&origin->store->pools[KIND_CONTEXT], origin);
}

void verb_foreign_drop(struct context *origin)
{
	if (origin->foreign && !origin->foreign->contexts)
		end_standin(origin);
}

void verb_foreign_use(struct context *origin)
{
	if (origin->foreign)
		origin->foreign->contexts++;
}

void verb_foreign_release(struct context *origin)
{
	if (origin->foreign && !--origin->foreign->contexts)
		end_standin(origin);
}
