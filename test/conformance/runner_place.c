/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"
#include "test/peer/peer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

bool vt_simulated(const struct vt_options *options)
{
	const struct vb_backend *backend = vb_find_backend(options->backend);

	return backend && backend->capabilities & VB_BACKEND_SIMULATED;
}

bool vt_has_world(const struct vt_options *options)
{
	return vt_simulated(options) && !options->two;
}

const char *vt_backend_a(const struct vt_options *options)
{
	return options->two && options->two->both ? PEER_BACKEND : options->backend;
}

const char *vt_backend_b(const struct vt_options *options)
{
	return options->two ? PEER_BACKEND : options->backend;
}

struct ibv_device *vt_device_named(struct ibv_device **list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(vb_get_device_name(*list), name))
			return *list;
	return NULL;
}

/* Returns the first active port, or 0. */
static uint8_t active_port(struct ibv_context *ctx)
{
	struct ibv_device_attr device_attr;
	struct ibv_port_attr port_attr;

	if (vb_query_device(ctx, &device_attr))
		return 0;
	for (unsigned int port = 1; port <= device_attr.phys_port_cnt; port++)
		if (!vb_query_port(ctx, port, &port_attr, sizeof(port_attr)) &&
		    port_attr.state == IBV_PORT_ACTIVE)
			return port;
	return 0;
}

/* Returns true if the port has an address to connect from. */
static bool has_address(struct ibv_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr;
	struct ibv_gid_entry entry;

	if (vb_query_port(ctx, port, &attr, sizeof(attr)) ||
	    attr.link_layer != IBV_LINK_LAYER_ETHERNET)
		return true;
	for (int i = 0; i < attr.gid_tbl_len; i++)
		if (!vb_query_gid_ex(ctx, port, i, &entry, 0, sizeof(entry)) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2)
			return true;
	return false;
}

#define REGISTERED_BYTES (1024 * 1024)

/* Returns true if the process may register as much memory as a test does. */
static bool can_register(struct ibv_context *ctx)
{
	struct ibv_pd *pd = vb_alloc_pd(ctx);
	void *own = peer_active() ? NULL : malloc(REGISTERED_BYTES);
	void *memory = peer_active() ? peer_alloc(REGISTERED_BYTES) : own;
	struct ibv_mr *mr = NULL;
	int error = 0;

	if (pd && memory) {
		mr = vb_reg_mr(pd, memory, REGISTERED_BYTES, IBV_ACCESS_LOCAL_WRITE);
		error = errno;
	}
	if (mr)
		vb_dereg_mr(mr);
	free(own);
	if (pd)
		vb_dealloc_pd(pd);
	errno = error;
	return mr != NULL;
}

static void explain_no_open(struct ibv_device *device, char *error)
{
	const char *name = vb_get_device_name(device);
	int reason = errno;
	char path[64 + IBV_SYSFS_NAME_MAX];

	snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
	if (access(path, F_OK) == 0 && access(path, R_OK | W_OK) != 0)
		snprintf(error, VT_LINE_MAX,
			 "device %s cannot be opened: no permission on %s: run as root, or have "
			 "its owner allow you to read and write it",
			 name, path);
	else
		snprintf(error, VT_LINE_MAX, "device %s cannot be opened: %s%s%s", name,
			 strerror(reason), vb_last_error()[0] ? ": " : "", vb_last_error());
}

static void explain_no_memory(const char *name, char *error)
{
	int reason = errno;
	struct rlimit limit = {0};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	snprintf(error, VT_LINE_MAX,
		 "device %s cannot register %d KiB of memory (%s); the process may lock %llu KiB: "
		 "raise "
		 "the limit (ulimit -l unlimited, or memlock in /etc/security/limits.conf)",
		 name, REGISTERED_BYTES / 1024, strerror(reason),
		 (unsigned long long)limit.rlim_cur / 1024);
}

static int link_layer_of(struct ibv_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr = {0};

	vb_query_port(ctx, port, &attr, sizeof(attr));
	return attr.link_layer;
}

/*
 * Opens the device and checks what every test needs. Returns the active port, or 0 with an error.
 */
static uint8_t try_device(struct ibv_device *device, int *link_layer, char *error)
{
	struct ibv_context *ctx = vb_open_device(device);
	const char *name = vb_get_device_name(device);
	uint8_t port;

	if (!ctx) {
		explain_no_open(device, error);
		return 0;
	}
	port = active_port(ctx);
	if (!port)
		snprintf(error, VT_LINE_MAX,
			 "device %s has no active port: bring its network interface or subnet "
			 "manager up",
			 name);
	else if (!has_address(ctx, port))
		snprintf(error, VT_LINE_MAX,
			 "port %u of device %s has no RoCE v2 GID: give its network interface an "
			 "IP address",
			 port, name);
	else if (!can_register(ctx))
		explain_no_memory(name, error);
	if (port)
		*link_layer = link_layer_of(ctx, port);
	vb_close_device(ctx);
	return error[0] ? 0 : port;
}

static void explain_no_device(const struct vt_options *options, char *error)
{
	snprintf(error, VT_LINE_MAX,
		 "backend %s has no device: load an adapter's driver, make a SoftRoCE device "
		 "(rdma link add rxe0 type rxe netdev NAME), or use --backend sim",
		 options->backend);
}

static const char *default_peer(const struct vt_options *options, int count,
				struct ibv_device **peer_list, const char *a)
{
	if (options->two && strcmp(options->two->backend, options->backend) != 0)
		return peer_list[0] ? vb_get_device_name(peer_list[0]) : "";
	return !options->device && count > 1 && vt_simulated(options)
		       ? vb_get_device_name(peer_list[1])
		       : a;
}

static void choose(const struct vt_options *options, struct ibv_device **list, int count,
		   struct ibv_device **peer_list, struct vt_place *place)
{
	const char *a = options->device, *b = options->peer_device;
	struct ibv_device *devices[2];
	int link_layers[2] = {0};

	if (!count) {
		explain_no_device(options, place->error);
		return;
	}
	if (!a)
		a = vb_get_device_name(list[0]);
	if (!b)
		b = default_peer(options, count, peer_list, a);
	snprintf(place->device, sizeof(place->device), "%s", a);
	snprintf(place->peer_device, sizeof(place->peer_device), "%s", b);
	devices[0] = vt_device_named(list, a);
	devices[1] = vt_device_named(peer_list, b);
	if (!devices[0] || !devices[1]) {
		snprintf(place->error, sizeof(place->error),
			 "backend %s has no device '%s': 'verbena devices --backend %s' lists them",
			 options->backend, devices[0] ? b : a, options->backend);
		return;
	}
	place->port = try_device(devices[0], &link_layers[0], place->error);
	if (place->port)
		place->peer_port = try_device(devices[1], &link_layers[1], place->error);
	if (link_layers[0] == link_layers[1])
		place->link_layer = link_layers[0];
}

struct vb_sim_config vt_world_of(const struct vt_options *options, const struct vb_sim_config *sim)
{
	struct vb_sim_config config = *sim;

	config.trace = NULL;
	config.seed = options->seed;
	config.seed_given = true;
	return config;
}

bool vt_make_world(const struct vt_options *options, char *error)
{
	struct vb_sim_config config;
	int rc;

	if (!vt_simulated(options))
		return true;
	config = vt_world_of(options, options->sim);
	rc = vb_sim_configure(&config);
	if (rc)
		snprintf(error, VT_LINE_MAX, "the simulated world cannot be made: %s%s%s",
			 strerror(rc), vb_last_error()[0] ? ": " : "", vb_last_error());
	return !rc;
}

/* Returns the sentence of vb_last_error() or, if there is none, that of errno. */
static const char *why(void)
{
	int error = errno;
	const char *sentence = vb_last_error();

	return sentence[0] ? sentence : strerror(error);
}

struct search {
	const struct vt_options *options;
	struct vt_place *place;
};

/* Returns NULL with a sentence in place->error. */
static struct ibv_device **list_devices(const char *backend, int *count, struct vt_place *place)
{
	struct ibv_device **list = vb_get_device_list(backend, count);

	if (!list)
		snprintf(place->error, sizeof(place->error),
			 "backend %s cannot list devices: %s; use --backend sim", backend, why());
	return list;
}

static void search_lists(void *arg)
{
	const struct search *s = arg;
	struct ibv_device **list, **peer_list;
	int count = 0;

	if (!vt_make_world(s->options, s->place->error))
		return;
	list = list_devices(vt_backend_a(s->options), &count, s->place);
	peer_list = list ? list_devices(vt_backend_b(s->options), NULL, s->place) : NULL;
	if (peer_list)
		choose(s->options, list, count, peer_list, s->place);
	vb_free_device_list(peer_list);
	vb_free_device_list(list);
}

static void search_devices(void *arg)
{
	const struct search *s = arg;
	struct vt *no_test = NULL;
	char error[VT_LINE_MAX] = "";

	if (!vt_run_beside(s->options, search_lists, arg, &no_test, error) && !s->place->error[0])
		memcpy(s->place->error, error, sizeof(error));
}

void vt_find_place(const struct vt_options *options, struct vt_place *place)
{
	struct vt_place *shared = vt_shared(sizeof(*shared));
	struct search search = {options, shared};
	struct vt_ending ending;

	memset(place, 0, sizeof(*place));
	if (!shared) {
		snprintf(place->error, sizeof(place->error), "out of memory");
		return;
	}
	if (options->no_fork)
		search_devices(&search);
	else if (!vt_in_child(search_devices, &search, -1, options->timeout_s, &ending))
		snprintf(shared->error, sizeof(shared->error),
			 "cannot make a process for the tests: %s", strerror(errno));
	else if (ending.timed_out || ending.status)
		snprintf(shared->error, sizeof(shared->error),
			 "opening the devices of backend %s %s", options->backend,
			 ending.timed_out ? "takes too long" : "crashes");
	*place = *shared;
	munmap(shared, sizeof(*shared));
}
