/* SPDX-License-Identifier: MIT */
#include "backends/sim/world/process.h"

#include "backends/sim/base/cancel.h"
#include "backends/sim/base/clock_now.h"
#include "backends/sim/capture/pcapfile.h"
#include "backends/sim/object/refuse.h"
#include "src/guard/guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <time.h>
#include <unistd.h>

/* How long exit(3) waits for a lock: on a busy machine its holder may not run for long. It waits shortly before it
 * looks whether the holder waits for this thread. */
#define LEAVE_NS_MAX UINT64_C(5000000000)
#define LEAVE_NS     UINT64_C(50000000)

/* An array of devices that the program holds. The array is a block of its own: a program may free it
 * with free(3), and then its entry stays until another array has the same address. */
struct list {
	struct list *next;
	struct vb_sim *world;
	struct ibv_device **devices;
};

/* The order of locks everywhere: default_mutex, tables_mutex, a world, the guard. */
static pthread_mutex_t default_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_sim *default_world;
static vb_sim_default_fn *_Atomic default_config;

static pthread_mutex_t tables_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_sim *worlds;
static struct list *lists; /* all that are not freed */
static vb_event_fn *watcher;
static void *watcher_arg;

/* Returns true if the program holds a device list of the world. The caller holds tables_mutex. */
static bool is_listed(const struct vb_sim *world)
{
	const struct list *list = lists;

	while (list && list->world != world)
		list = list->next;
	return list;
}

/* --- fork() --- */

/* The child must neither write what a trace holds a second time nor send the parent's ACK. */
static void before_fork(void)
{
	pthread_mutex_lock(&default_mutex);
	pthread_mutex_lock(&tables_mutex);
	for (struct vb_sim *world = worlds; world; world = world->next) {
		pthread_mutex_lock(&world->driver.mutex);
		driver_settle(&world->driver);
		if (world->trace)
			pcapfile_flush(world->trace);
	}
	guard_lock();
}

static void after_fork(void)
{
	guard_unlock();
	for (struct vb_sim *world = worlds; world; world = world->next)
		pthread_mutex_unlock(&world->driver.mutex);
	pthread_mutex_unlock(&tables_mutex);
	pthread_mutex_unlock(&default_mutex);
}

static void after_fork_in_child(void)
{
	int state = cancel_off();

	for (struct vb_sim *world = worlds; world; world = world->next) {
		driver_forked(&world->driver);
		world_trace_forked(world);
		world_fork_wires(world);
		world_renumber(world);
		world->inherited = true;
	}
	after_fork();
	cancel_restore(state);
}

static void watch_fork(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* --- worlds --- */

/* The caller holds tables_mutex. */
static void give_events(struct vb_sim *world)
{
	HOLD hold = world_hold(world);

	world_note(hold.world, watcher, watcher_arg);
}

struct vb_sim *vb_sim_open(const struct vb_sim_config *config)
{
	static pthread_once_t watched = PTHREAD_ONCE_INIT;
	struct vb_sim *world = world_create(config);

	if (!world)
		return NULL;
	pthread_once(&watched, watch_fork);
	pthread_mutex_lock(&tables_mutex);
	world->next = worlds;
	worlds = world;
	if (watcher)
		give_events(world);
	pthread_mutex_unlock(&tables_mutex);
	return world;
}

void process_watch(vb_event_fn *fn, void *arg)
{
	pthread_mutex_lock(&tables_mutex);
	watcher = fn;
	watcher_arg = arg;
	for (struct vb_sim *world = worlds; world; world = world->next)
		give_events(world);
	pthread_mutex_unlock(&tables_mutex);
}

static void end(struct vb_sim *world)
{
	struct vb_sim **link = &worlds;

	pthread_mutex_lock(&tables_mutex);
	while (*link != world)
		link = &(*link)->next;
	*link = world->next;
	pthread_mutex_unlock(&tables_mutex);
	world_destroy(world);
}

void process_retire(struct vb_sim *world)
{
	bool listed;

	pthread_mutex_lock(&tables_mutex);
	pthread_mutex_lock(&world->driver.mutex);
	world->retired = true;
	listed = is_listed(world);
	world_close_wires(world);
	if (listed || world->kept)
		world_trace_close(world);
	pthread_mutex_unlock(&world->driver.mutex);
	pthread_mutex_unlock(&tables_mutex);
	if (!listed && !world->kept)
		end(world);
}

struct vb_sim *process_take_default(void)
{
	struct vb_sim *world;

	pthread_mutex_lock(&default_mutex);
	world = default_world;
	default_world = NULL;
	pthread_mutex_unlock(&default_mutex);
	return world;
}

static bool is_default(const struct vb_sim *world)
{
	bool same;

	pthread_mutex_lock(&default_mutex);
	same = world == default_world;
	pthread_mutex_unlock(&default_mutex);
	return same;
}

static int refuse_in_use(struct vb_sim *world, const char *function, enum vb_reason reason)
{
	char open[300];

	world_name_open(world, open, sizeof(open));
	return refuse_name(function, reason, open);
}

int vb_sim_close(struct vb_sim *sim)
{
	if (!sim || is_default(sim))
		return refuse_plainly(__func__, VB_WHY_WORLD_NOT_OPENED);
	if (world_in_use(sim))
		return refuse_in_use(sim, __func__, VB_WHY_WORLD_BUSY);
	process_retire(sim);
	return 0;
}

void process_each(void (*fn)(void *arg, struct vb_sim *world), void *arg)
{
	pthread_mutex_lock(&tables_mutex);
	for (struct vb_sim *world = worlds; world; world = world->next)
		if (!world->retired && !world->inherited)
			fn(arg, world);
	pthread_mutex_unlock(&tables_mutex);
}

/* --- locks at exit --- */

/* Returns true if this thread has the lock. */
static bool is_own(const pthread_mutex_t *mutex)
{
#ifdef __GLIBC__
	return mutex->__data.__owner == gettid();
#else
	(void)mutex;
	return false;
#endif
}

/*
 * Takes a lock at exit, if its holder gives it up within patience_ns. A thread that exit(3) has interrupted keeps
 * the lock for ever: one whose signal handler, or whose function that a verb calls, calls exit(3). By
 * CLOCK_REALTIME, because ThreadSanitizer does not know pthread_mutex_clocklock().
 */
static bool lock_to_leave(pthread_mutex_t *mutex, uint64_t patience_ns)
{
	const uint64_t until_ns = clock_now_ns(CLOCK_REALTIME) + patience_ns;
	const struct timespec until = {(time_t)(until_ns / 1000000000),
				       (long)(until_ns % 1000000000)};

	return !is_own(mutex) && !pthread_mutex_timedlock(mutex, &until);
}

/* --- the default world --- */

/* The drop-in's destructor calls this, too: exit(3) may have interrupted this thread while it makes the default
 * world. */
void vb_sim_set_default(vb_sim_default_fn *fn)
{
	const bool locked = lock_to_leave(&default_mutex, LEAVE_NS_MAX);

	atomic_store(&default_config, fn);
	if (locked)
		pthread_mutex_unlock(&default_mutex);
}

/* The function of vb_sim_set_default() gave no configuration; errno says why. */
static void refuse_default(void)
{
	const int error = errno;

	say_why(error, &(struct vb_why){VB_WHY_WORLD_DEFAULT_NONE, {(uint64_t)error}});
}

/* The program's function may read files. */
static struct vb_sim *create_default(void)
{
	vb_sim_default_fn *const configure = atomic_load(&default_config);
	const struct vb_sim_config *config = NULL;
	int state = cancel_off();
	struct vb_sim *world = NULL;

	if (configure)
		config = configure();
	if (config || !configure)
		world = vb_sim_open(config);
	else
		refuse_default();
	cancel_restore(state);
	return world;
}

struct vb_sim *process_default(void)
{
	struct vb_sim *world;

	pthread_mutex_lock(&default_mutex);
	if (!default_world)
		default_world = create_default();
	world = default_world;
	pthread_mutex_unlock(&default_mutex);
	return world;
}

struct vb_sim *process_world(struct vb_sim *sim)
{
	return sim ? sim : process_default();
}

struct hold process_hold(struct vb_sim *sim)
{
	struct vb_sim *world = process_world(sim);

	return world ? world_hold(world) : (struct hold){.world = NULL};
}

/* The caller holds default_mutex. */
static int replace_default(const struct vb_sim_config *config)
{
	struct vb_sim *old = default_world, *fresh;

	if (old && world_in_use(old))
		return refuse_in_use(old, "vb_sim_configure", VB_WHY_WORLD_DEFAULT_BUSY);
	/* Both worlds may name the same trace file. */
	if (old)
		world_trace_close(old);
	/* The process cannot have an address twice, and other devices in a shared world that it is in. */
	if (old && old->wires.first) {
		default_world = NULL;
		process_retire(old);
		old = NULL;
	}
	fresh = vb_sim_open(config);
	if (!fresh)
		return errno;
	default_world = fresh;
	if (old)
		process_retire(old);
	return 0;
}

int vb_sim_configure(const struct vb_sim_config *config)
{
	int state = cancel_off();
	int err;

	pthread_mutex_lock(&default_mutex);
	err = replace_default(config);
	pthread_mutex_unlock(&default_mutex);
	cancel_restore(state);
	return err;
}

/* --- at exit --- */

/* Returns true if exit(3) has interrupted this thread in a verb. */
static bool is_in_verb(void)
{
	const struct vb_sim *world = worlds;

	while (world && !is_own(&world->driver.mutex))
		world = world->next;
	return world;
}

/* Takes tables_mutex at exit. A thread that has it may wait for a world that this thread has locked, and then never
 * gives it up: as the thread of a report. */
static bool lock_tables_to_leave(void)
{
	return lock_to_leave(&tables_mutex, LEAVE_NS) ||
	       (!is_in_verb() && lock_to_leave(&tables_mutex, LEAVE_NS_MAX));
}

/*
 * Joins the trace with those of other processes, and makes them see at once that the QPs and the connections of this
 * process are gone, even if the program has not closed its devices. If exit(3) has interrupted this thread in a verb,
 * the engine is in the middle of a change: the process only leaves its worlds' files, as if it had died. If another
 * thread keeps the lock, the other processes see from the kernel's file locks that this process has ended.
 */
static void leave(struct vb_sim *world)
{
	if (is_own(&world->driver.mutex)) {
		wires_abandon(&world->wires);
		return;
	}
	if (!lock_to_leave(&world->driver.mutex, LEAVE_NS_MAX))
		return;
	/* As Linux drivers/infiniband/core/ucma.c, ucma_close(), when the kernel closes the files of a process. */
	if (world->wires.first && sim_cm_leave(world->driver.engine))
		driver_catch_up(&world->driver);
	driver_settle(&world->driver);
	/* Not only if there are parts: a process that begins and ends from now on would leave its part to this one. */
	world_trace_close(world);
	world->wires_left = world->wires.first;
	world_close_wires(world);
	pthread_mutex_unlock(&world->driver.mutex);
}

/*
 * A world stays in memory if a thread may still use it: while the process has more than one thread, any of them may
 * be inside a verb, and a verb of a world in use may have been interrupted by exit(3). The priority is the last:
 * other destructors of the library may want to look at the world.
 */
__attribute__((destructor(101))) static void end_default(void)
{
	struct vb_sim *world = default_world;
	bool locked;

	if (world && __libc_single_threaded && !world_in_use(world) && !is_listed(world)) {
		default_world = NULL;
		end(world);
	}
	locked = lock_tables_to_leave();
	for (world = worlds; world; world = world->next)
		leave(world);
	if (locked)
		pthread_mutex_unlock(&tables_mutex);
}

/* --- device lists --- */

/* The link to a list, or to the NULL at the end. The caller holds tables_mutex. */
static struct list **find_list(struct ibv_device *const *devices)
{
	struct list **link = &lists;

	while (*link && (*link)->devices != devices)
		link = &(*link)->next;
	return link;
}

bool process_owns_list(struct ibv_device *const *devices)
{
	bool found;

	pthread_mutex_lock(&tables_mutex);
	found = *find_list(devices) != NULL;
	pthread_mutex_unlock(&tables_mutex);
	return found;
}

/*
 * Takes an array out of the lists, and ends its world if that is retired and this was the last of its
 * lists. Returns false if the array is in none.
 */
static bool forget_list(struct ibv_device *const *devices)
{
	struct list **link, *list;
	bool last = false;

	pthread_mutex_lock(&tables_mutex);
	link = find_list(devices);
	list = *link;
	if (list) {
		*link = list->next;
		last = list->world->retired && !list->world->kept && !is_listed(list->world);
	}
	pthread_mutex_unlock(&tables_mutex);
	if (last)
		end(list->world);
	free(list);
	return list != NULL;
}

struct ibv_device **process_list(struct vb_sim *world, int *num_devices)
{
	const unsigned int count = world->device_count;
	struct ibv_device **devices = malloc((count + 1) * sizeof(struct ibv_device *));
	struct list *list = malloc(sizeof(*list));

	if (!devices || !list) {
		free(devices);
		free(list);
		return null_errno(refuse_plainly("get_device_list", VB_WHY_NO_MEMORY));
	}
	for (unsigned int i = 0; i < count; i++)
		devices[i] = &world->devices[i].ibv;
	devices[count] = NULL;
	/* An old entry is of an array that the program has freed. */
	forget_list(devices);
	*list = (struct list){.world = world, .devices = devices};
	pthread_mutex_lock(&tables_mutex);
	list->next = lists;
	lists = list;
	pthread_mutex_unlock(&tables_mutex);
	if (num_devices)
		*num_devices = (int)count;
	return devices;
}

void process_free_list(struct ibv_device **devices)
{
	if (forget_list(devices))
		free(devices);
}

struct ibv_device **vb_sim_device_list(struct vb_sim *sim, int *num_devices)
{
	struct vb_sim *world = process_world(sim);

	return world ? process_list(world, num_devices) : NULL;
}
