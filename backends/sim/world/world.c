/* SPDX-License-Identifier: MIT */
#include "backends/sim/world/world.h"

#include "backends/sim/capture/pcapfile.h"
#include "backends/sim/guard/guard.h"
#include "backends/sim/verb/control.h"
#include "backends/sim/world/fork.h"
#include "backends/sim/world/say.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* --- what the engine asks --- */

/* A UD send names an AH of the QP's own context and PD. */
static struct sim_ah *find_ah(void *arg, const struct sim_qp *engine, struct ibv_ah *ibv)
{
	const struct qp *qp = sim_qp_user(engine);
	struct ah *ah;

	if (!ibv || ibv->context != qp->ibv.context)
		return NULL;
	ah = ah_of(ibv);
	if (!ah || (ah->engine->pd != sim_qp_pd(engine) &&
		    !sim_qp_device(engine)->quirks.foreign_ahs_end_sends))
		return NULL;
	return ah->engine;
}

static int create_engine(struct vb_sim *world, uint64_t seed)
{
	const struct sim_host host = {
		.arg = world,
		.cq_event = channel_cq_event,
		.async_event = channel_async_event,
		.find_ah = find_ah,
		.find_mw = control_find_mw,
		.memory = {.copy = guard_copy, .probe = guard_probe},
	};

	return sim_engine_create(&host, seed, &world->engine);
}

/* --- devices and links --- */

static void give_default_gids(struct vb_sim_device_config *config, unsigned int number)
{
	char text[64];

	memset(config->gids, 0, 2 * sizeof(config->gids[0]));
	snprintf(text, sizeof(text), "::ffff:10.0.%u.%u", number >> 8, number & 0xff);
	inet_pton(AF_INET6, text, config->gids[0].raw);
	snprintf(text, sizeof(text), "fd00::%x", number);
	inet_pton(AF_INET6, text, config->gids[1].raw);
	config->gid_count = 2;
}

static struct device *find_device(const struct vb_sim *world, const char *name)
{
	for (unsigned int i = 0; i < world->device_count; i++)
		if (strcmp(world->devices[i].ibv.name, name) == 0)
			return &world->devices[i];
	return NULL;
}

static bool device_fits(const struct vb_sim *world, const struct vb_sim_device_config *config)
{
	const char *name = config->name;

	if (!name[0] || strnlen(name, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX)
		say(EINVAL, "device %u has no name, or one that is too long", world->device_count);
	else if (find_device(world, name))
		say(EINVAL, "device %s: the name is given twice", name);
	else if (config->ports > VB_SIM_PORTS_MAX)
		say(EINVAL, "device %s: %u ports: at most %d", name, config->ports,
		    VB_SIM_PORTS_MAX);
	else if (config->gid_count > VB_SIM_GIDS_MAX || config->pkey_count > VB_SIM_PKEYS_MAX)
		say(EINVAL, "device %s: more than %d GIDs or %d P_Keys", name, VB_SIM_GIDS_MAX,
		    VB_SIM_PKEYS_MAX);
	else if (strnlen(config->quirks, VB_SIM_QUIRKS_TEXT) == VB_SIM_QUIRKS_TEXT)
		say(EINVAL, "device %s: the list of quirks is too long", name);
	else if (strnlen(config->profile, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX ||
		 (config->profile[0] && !sim_profile_find(config->profile)))
		say(EINVAL, "device %s: no profile is called \"%.*s\"", name, VB_SIM_NAME_MAX,
		    config->profile);
	else
		return true;
	return false;
}

struct ibv_context *world_device_mark(struct ibv_device *device, int cmd_fd)
{
	return say_null(EOPNOTSUPP, "%s is opened by ibv_open_device()", device->name);
}

/* The longest name that there is room for keeps the paths within IBV_SYSFS_PATH_MAX. */
static void fill_ibv_device(struct ibv_device *ibv, const char *name)
{
	ibv->_ops._dummy1 = world_device_mark;
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	snprintf(ibv->name, sizeof(ibv->name), "%s", name);
	snprintf(ibv->dev_name, sizeof(ibv->dev_name), "uverbs-%s", name);
	snprintf(ibv->dev_path, sizeof(ibv->dev_path), "/sys/class/infiniband_verbs/uverbs-%s",
		 name);
	snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "/sys/class/infiniband/%s", name);
}

/* Sets the quirks of a comma-separated list. */
static int set_quirks(struct device *device, const char *names)
{
	char name[VB_SIM_QUIRKS_TEXT];

	while (*names) {
		size_t length = strcspn(names, ",");
		int err;

		snprintf(name, sizeof(name), "%.*s", (int)length, names);
		err = sim_device_set_quirk(device->engine, name, true);
		if (err == ENOENT)
			return say(EINVAL, "device %s: no quirk is called \"%s\"", device->ibv.name,
				   name);
		if (err)
			return err;
		names += length + (names[length] == ',');
	}
	return 0;
}

static int add_device(struct vb_sim *world, const struct vb_sim_device_config *given)
{
	struct vb_sim_device_config config = *given;
	struct device *device = &world->devices[world->device_count];
	struct sim_device_config engine;
	int err;

	if (!device_fits(world, &config))
		return EINVAL;
	if (!config.gid_count && config.link_layer != IBV_LINK_LAYER_INFINIBAND)
		give_default_gids(&config, world->device_count + 1);
	engine = (struct sim_device_config){
		.name = config.name,
		.profile = sim_profile_find(config.profile[0] ? config.profile : "spec"),
		.port_count = config.ports ? config.ports : 1,
		.link_layer =
			config.link_layer ? (uint8_t)config.link_layer : IBV_LINK_LAYER_ETHERNET,
		.mtu = config.mtu ? config.mtu : IBV_MTU_4096,
		.gid_count = config.gid_count,
		.gids = config.gids,
		.pkey_count = config.pkey_count,
		.pkeys = config.pkeys,
	};
	device->world = world;
	fill_ibv_device(&device->ibv, config.name);
	err = sim_device_create(world->engine, &engine, device, &device->engine);
	if (err)
		return say(err, "device %s: the link layer or MTU cannot be simulated",
			   config.name);
	world->device_count++;
	return set_quirks(device, config.quirks);
}

static int add_link(struct vb_sim *world, const struct vb_sim_link_config *config)
{
	struct device *a, *b;
	int err;

	if (strnlen(config->a, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX ||
	    strnlen(config->b, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX)
		return say(EINVAL, "a link's device name is too long");
	a = find_device(world, config->a);
	b = find_device(world, config->b);
	if (!a || !b)
		return say(EINVAL, "link %s - %s: there is no device %s", config->a, config->b,
			   a ? config->b : config->a);
	err = sim_fabric_join(world->engine, a->engine, b->engine, config->delay_ns,
			      config->bits_per_second);
	if (err)
		say(err, "link %s - %s: given twice, between two link layers, or out of memory",
		    config->a, config->b);
	return err == EEXIST ? EINVAL : err;
}

static const struct vb_sim_config *defaults(void)
{
	static const struct vb_sim_config two = {
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1"}},
	};

	return &two;
}

static int furnish(struct vb_sim *world, const struct vb_sim_config *config)
{
	const struct vb_sim_config *devices = config->device_count ? config : defaults();
	int err = 0;

	if (config->device_count > VB_SIM_DEVICES_MAX || config->link_count > VB_SIM_LINKS_MAX)
		return say(EINVAL, "more than %d devices or %d links", VB_SIM_DEVICES_MAX,
			   VB_SIM_LINKS_MAX);
	world->devices = calloc(devices->device_count, sizeof(*world->devices));
	if (!world->devices)
		return say(ENOMEM, "out of memory");
	for (unsigned int i = 0; i < devices->device_count && !err; i++)
		err = add_device(world, &devices->devices[i]);
	for (unsigned int i = 0; i < config->link_count && !err; i++)
		err = add_link(world, &config->links[i]);
	if (!err && config->trace)
		err = world_trace_open(world, config->trace);
	return err;
}

/* --- a world's life --- */

static uint64_t choose_seed(const struct vb_sim_config *config)
{
	uint64_t seed = 1;

	if (config->seed_given)
		return config->seed;
	if (config->clock == VB_SIM_CLOCK_REAL)
		(void)!getrandom(&seed, sizeof(seed), 0);
	return seed;
}

static void end(struct vb_sim *world)
{
	fork_forget(world);
	world_trace_close(world);
	if (world->engine)
		sim_engine_destroy(world->engine);
	driver_end(&world->driver);
	for (unsigned int i = 0; i < KINDS; i++)
		pool_end(&world->pools[i]);
	handles_end(&world->contexts);
	pthread_mutex_destroy(&world->mutex);
	free(world->devices);
	free(world);
}

struct vb_sim *world_create(const struct vb_sim_config *config)
{
	struct vb_sim *world;
	int err;

	if (!config)
		config = defaults();
	if (config->clock != VB_SIM_CLOCK_VIRTUAL && config->clock != VB_SIM_CLOCK_REAL)
		return say_null(EINVAL, "there is no clock %d", (int)config->clock);
	world = calloc(1, sizeof(*world));
	if (!world)
		return say_null(ENOMEM, "out of memory");
	guard_install();
	pthread_mutex_init(&world->mutex, NULL);
	driver_init(&world->driver, config->clock == VB_SIM_CLOCK_REAL);
	handles_init(&world->contexts);
	for (unsigned int i = 0; i < KINDS; i++)
		pool_init(&world->pools[i], object_bytes(i));
	err = create_engine(world, choose_seed(config));
	if (err)
		say(err, "out of memory");
	else
		err = furnish(world, config);
	if (err) {
		end(world);
		errno = err;
		return NULL;
	}
	fork_watch(world);
	return world;
}

void world_retire(struct vb_sim *world)
{
	bool listed;

	pthread_mutex_lock(&world->mutex);
	world->retired = true;
	listed = world->lists > 0;
	if (listed)
		world_trace_close(world);
	pthread_mutex_unlock(&world->mutex);
	if (!listed)
		end(world);
}

/* --- device lists --- */

/* The program's array, and before it whose devices it lists. */
struct list {
	struct list *next;
	struct vb_sim *world;
	struct ibv_device *devices[];
};

/* All that are not freed. */
static pthread_mutex_t lists_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list *lists;

/* The link to a list, or to the NULL at the end. The caller holds the mutex. */
static struct list **find_list(struct ibv_device *const *devices)
{
	struct list **link = &lists;

	while (*link && (*link)->devices != devices)
		link = &(*link)->next;
	return link;
}

static void remember_list(struct list *list)
{
	pthread_mutex_lock(&lists_mutex);
	list->next = lists;
	lists = list;
	pthread_mutex_unlock(&lists_mutex);
}

/* NULL where there is none. */
static struct list *forget_list(struct ibv_device *const *devices)
{
	struct list **link, *list;

	pthread_mutex_lock(&lists_mutex);
	link = find_list(devices);
	list = *link;
	if (list)
		*link = list->next;
	pthread_mutex_unlock(&lists_mutex);
	return list;
}

bool world_owns_list(struct ibv_device *const *devices)
{
	bool found;

	pthread_mutex_lock(&lists_mutex);
	found = *find_list(devices) != NULL;
	pthread_mutex_unlock(&lists_mutex);
	return found;
}

struct ibv_device **world_list(struct vb_sim *world, int *num_devices)
{
	const size_t slots = world->device_count + 1; /* NULL ends it */
	struct list *list = calloc(1, sizeof(*list) + slots * sizeof(void *));
	bool locked;

	if (!list)
		return say_null(ENOMEM, "get_device_list: out of memory");
	for (unsigned int i = 0; i < world->device_count; i++)
		list->devices[i] = &world->devices[i].ibv;
	list->world = world;
	locked = world_lock(world);
	world->lists++;
	world_unlock(world, locked);
	remember_list(list);
	if (num_devices)
		*num_devices = (int)world->device_count;
	return list->devices;
}

void world_free_list(struct ibv_device **devices)
{
	struct list *list = forget_list(devices);
	bool locked, last;

	if (!list)
		return;
	locked = world_lock(list->world);
	last = --list->world->lists == 0 && list->world->retired;
	world_unlock(list->world, locked);
	if (last)
		end(list->world);
	free(list);
}

/* --- the trace --- */

int world_trace_close(struct vb_sim *world)
{
	struct pcapfile *trace = world->trace;
	bool failed;

	if (!trace)
		return 0;
	sim_trace_set(world->engine, SIM_TRACE_FILE, NULL);
	world->trace = NULL;
	pcapfile_flush(trace);
	failed = pcapfile_failed(trace);
	pcapfile_close(trace);
	return failed ? say(EIO, "some of the trace could not be written") : 0;
}

static bool is_infiniband(const struct device *device)
{
	return sim_port_is_infiniband(&device->engine->ports[0]);
}

int world_trace_open(struct vb_sim *world, const char *path)
{
	struct sim_trace_sink sink = {.frame = pcapfile_frame};
	bool infiniband = is_infiniband(&world->devices[0]);
	struct pcapfile *trace;
	char error[256];

	for (unsigned int i = 1; i < world->device_count; i++)
		if (is_infiniband(&world->devices[i]) != infiniband)
			return say(ENOTSUP, "%s and %s are of two link layers: a trace has one",
				   world->devices[0].ibv.name, world->devices[i].ibv.name);
	/* It may be the same file: what the old trace still holds goes there before it is emptied. */
	if (world->trace)
		pcapfile_flush(world->trace);
	trace = pcapfile_open(path, infiniband, error, sizeof(error));
	if (!trace) {
		int err = errno ? errno : EIO;

		return say(err, "%s", error);
	}
	world_trace_close(world);
	world->trace = trace;
	sink.arg = trace;
	sim_trace_set(world->engine, SIM_TRACE_FILE, &sink);
	return 0;
}

static void watch_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
			unsigned int flags)
{
	const struct vb_sim *world = arg;

	world->watch(world->watch_arg, now_ns, frame, length_bytes, flags & SIM_FRAME_LOST);
}

void world_watch(struct vb_sim *world, vb_sim_frame_fn *fn, void *arg)
{
	const struct sim_trace_sink sink = {.arg = world, .frame = watch_frame};

	world->watch = fn;
	world->watch_arg = arg;
	sim_trace_set(world->engine, SIM_TRACE_WATCHER, fn ? &sink : NULL);
}

/* --- the default world --- */

static pthread_mutex_t default_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vb_sim *default_world;
static vb_sim_default_fn *default_config;

/* NULL with errno, for a configuration that could not be had too. */
static struct vb_sim *create_default(void)
{
	const struct vb_sim_config *config;

	if (!default_config)
		return world_create(NULL);
	config = default_config();
	return config ? world_create(config)
		      : say_null(errno, "the default world's configuration is refused");
}

void world_set_default(vb_sim_default_fn *fn)
{
	pthread_mutex_lock(&default_mutex);
	default_config = fn;
	pthread_mutex_unlock(&default_mutex);
}

struct vb_sim *world_default(void)
{
	struct vb_sim *world;

	pthread_mutex_lock(&default_mutex);
	if (!default_world)
		default_world = create_default();
	world = default_world;
	pthread_mutex_unlock(&default_mutex);
	return world;
}

void world_lock_tables(void)
{
	pthread_mutex_lock(&default_mutex);
	pthread_mutex_lock(&lists_mutex);
}

void world_unlock_tables(void)
{
	pthread_mutex_unlock(&lists_mutex);
	pthread_mutex_unlock(&default_mutex);
}

struct vb_sim *world_or_default(struct vb_sim *sim)
{
	return sim ? sim : world_default();
}

static bool in_use(struct vb_sim *world)
{
	bool locked = world_lock(world);
	bool used = world->contexts.live > 0;

	world_unlock(world, locked);
	return used;
}

int world_replace_default(const struct vb_sim_config *config)
{
	struct vb_sim *old, *fresh;
	int err = 0;

	pthread_mutex_lock(&default_mutex);
	old = default_world;
	if (old && in_use(old)) {
		err = say(EBUSY, "vb_sim_configure: a device of the default world is open");
	} else {
		/* The old world's trace may be the file that the new one writes. */
		if (old)
			world_trace_close(old);
		fresh = world_create(config);
		if (fresh)
			default_world = fresh;
		else
			err = errno;
		if (fresh && old)
			world_retire(old);
	}
	pthread_mutex_unlock(&default_mutex);
	return err;
}

/* At exit; a world that is still in use is left as it is, for threads that still run. */
__attribute__((destructor)) static void end_default(void)
{
	struct vb_sim *world = default_world;

	if (!world || in_use(world) || world->lists)
		return;
	default_world = NULL;
	end(world);
}
