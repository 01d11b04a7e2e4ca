/* SPDX-License-Identifier: MIT */
/* The wires of a world: which of them its configuration names, and their beginning and end. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/shared.h"
#include "backends/sim/wire/udp.h"
#include "backends/sim/world/world.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the configuration --- */

static int refuse_device_wire(enum vb_reason reason, const struct vb_sim_device_config *device,
			      uint64_t value)
{
	return refuse_why(NULL, (struct vb_why){reason, {value}, .text = device->name});
}

static int check_address(const struct vb_sim_device_config *device)
{
	const size_t length = strnlen(device->address, VB_SIM_ADDRESS_MAX);

	if (length < (device->wire == VB_SIM_WIRE_UDP ? VB_SIM_ADDRESS_MAX : 1))
		return 0;
	return refuse_why(NULL, (struct vb_why){VB_WHY_WIRE_ADDRESS,
						{length, device->wire, VB_SIM_ADDRESS_MAX - 1},
						.text = device->name});
}

static int check_wire(const struct vb_sim_device_config *device)
{
	if ((unsigned int)device->wire > VB_SIM_WIRE_UDP)
		return refuse_device_wire(VB_WHY_WIRE_UNKNOWN, device, (unsigned int)device->wire);
	if (device->wire == VB_SIM_WIRE_UDP && device->link_layer == IBV_LINK_LAYER_INFINIBAND)
		return refuse_device_wire(VB_WHY_WIRE_UDP_LAYER, device, 0);
	if (device->wire == VB_SIM_WIRE_UDP && device->gid_count)
		return refuse_device_wire(VB_WHY_WIRE_UDP_GIDS, device, device->gid_count);
	return check_address(device);
}

static int check_clock(const struct vb_sim_config *config,
		       const struct vb_sim_device_config *device)
{
	char text[VB_SIM_NAME_MAX + 32];

	if (device->wire == VB_SIM_WIRE_MEMORY || config->clock == VB_SIM_CLOCK_REAL)
		return 0;
	snprintf(text, sizeof(text), "device %s has the wire %s", device->name,
		 device->wire == VB_SIM_WIRE_SHARED ? "shared" : "udp");
	return refuse_name(NULL, VB_WHY_WIRE_CLOCK, text);
}

static int check_world(const char *name)
{
	char text[VB_SIM_NAME_MAX + 1];
	size_t length = 0;

	while (length < VB_SIM_NAME_MAX && (isalnum((unsigned char)name[length]) ||
					    (name[length] && strchr("_-.", name[length]))))
		length++;
	if (length < VB_SIM_NAME_MAX && !name[length])
		return 0;
	snprintf(text, sizeof(text), "%.*s", VB_SIM_NAME_MAX, name);
	return refuse_why(NULL,
			  (struct vb_why){VB_WHY_WIRE_WORLD, {VB_SIM_NAME_MAX - 1}, .text = text});
}

/* world_furnish() refuses a configuration with too many devices. */
static unsigned int count_devices(const struct vb_sim_config *config)
{
	return config->device_count > VB_SIM_DEVICES_MAX ? 0 : config->device_count;
}

/* Returns true if a device has the wire. */
static bool names(const struct vb_sim_config *config, enum vb_sim_wire wire)
{
	for (unsigned int i = 0; i < count_devices(config); i++)
		if (config->devices[i].wire == wire)
			return true;
	return false;
}

static int check_config(const struct vb_sim_config *config)
{
	int err = check_world(config->world);

	for (unsigned int i = 0; i < count_devices(config) && !err; i++) {
		const struct vb_sim_device_config *device = &config->devices[i];

		/* world_furnish() refuses the name. */
		if (strnlen(device->name, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX)
			break;
		err = check_wire(device);
		if (!err)
			err = check_clock(config, device);
	}
	return err;
}

/* --- what the processes of a world agree on --- */

static void describe_addresses(FILE *out, const struct vb_sim_device_config *device)
{
	char text[INET6_ADDRSTRLEN];

	for (unsigned int i = 0; i < device->gid_count && i < VB_SIM_GIDS_MAX; i++)
		fprintf(out, " gid %s",
			inet_ntop(AF_INET6, device->gids[i].raw, text, sizeof(text)));
	for (unsigned int i = 0; i < device->pkey_count && i < VB_SIM_PKEYS_MAX; i++)
		fprintf(out, " pkey 0x%04x", device->pkeys[i]);
}

static void describe_device(FILE *out, const struct vb_sim_device_config *device,
			    unsigned int index)
{
	fprintf(out, "%u %.*s: %s, %u ports, mtu %u, profile %.*s", index, VB_SIM_NAME_MAX,
		device->name,
		device->link_layer == IBV_LINK_LAYER_INFINIBAND ? "infiniband" : "ethernet",
		device->ports ? device->ports : 1,
		128u << (device->mtu ? device->mtu : IBV_MTU_4096), VB_SIM_NAME_MAX,
		device->profile[0] ? device->profile : "spec");
	if (device->quirks[0])
		fprintf(out, ", quirks %.*s", VB_SIM_QUIRKS_TEXT, device->quirks);
	describe_addresses(out, device);
	fputc('\n', out);
}

/* A line for each device of the wire shared. The caller frees the text; NULL without memory. */
static char *describe(const struct vb_sim_config *config)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	for (unsigned int i = 0; i < count_devices(config); i++)
		if (config->devices[i].wire == VB_SIM_WIRE_SHARED)
			describe_device(out, &config->devices[i], i);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* --- beginning --- */

/* Writes a name that no other world has, if the configuration asks for a new world. */
static const char *choose_name(const struct vb_sim_config *config, char name[VB_SIM_NAME_MAX])
{
	uint64_t number = 0;

	if (strcmp(config->world, VB_SIM_WORLD_NEW) != 0)
		return config->world;
	(void)!getrandom(&number, sizeof(number), 0);
	snprintf(name, VB_SIM_NAME_MAX, VB_SIM_WORLD_NEW "-%016" PRIx64, number);
	return name;
}

static int open_shared(struct vb_sim *world, const struct vb_sim_config *config)
{
	char *devices = describe(config), name[VB_SIM_NAME_MAX];
	const struct shared_config shared = {.world = choose_name(config, name),
					     .devices = devices};
	uint64_t base_ns, wall_base_ns;
	int err;

	if (!devices)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	err = shared_open(&shared, &world->shared);
	free(devices);
	if (err) {
		world->shared = NULL;
		return err;
	}
	world->identity = shared_identity(world->shared);
	shared_base_ns(world->shared, &base_ns, &wall_base_ns);
	driver_set_base(&world->driver, base_ns, wall_base_ns);
	return 0;
}

/* The bell that wires ring for this process. */
static struct bell *bell_of(struct vb_sim *world)
{
	return world->shared ? shared_bell(world->shared) : driver_bell(&world->driver);
}

int world_open_wires(struct vb_sim *world, const struct vb_sim_config *config)
{
	int err = check_config(config);

	if (!err && names(config, VB_SIM_WIRE_SHARED))
		err = open_shared(world, config);
	if (!err && names(config, VB_SIM_WIRE_UDP) && !config->attributes_only) {
		err = udp_open(bell_of(world), &world->udp);
		if (err)
			world->udp = NULL;
	}
	return err;
}

static bool have_arrivals(void *arg)
{
	return wires_have_arrivals(arg);
}

static bool receive(void *arg)
{
	return wires_receive(arg);
}

static void flush(void *arg)
{
	wires_flush(arg);
}

static void set_listening(void *arg, bool on)
{
	wires_listen(arg, on);
}

static void connect_clock(struct vb_sim *world)
{
	const struct driver_wires wires = {
		.arg = &world->wires,
		.arrived = have_arrivals,
		.receive = receive,
		.flush = flush,
		.listen = set_listening,
	};

	driver_set_wires(&world->driver, &wires, bell_of(world));
}

void world_connect_wires(struct vb_sim *world)
{
	if (world->shared)
		wires_add(&world->wires, world->driver.engine, world->shared);
	if (world->udp)
		wires_add(&world->wires, world->driver.engine, world->udp);
	if (world->wires.first) {
		connect_clock(world);
		driver_catch_up(&world->driver);
	}
}

/* --- devices --- */

/* Gives the device the GID and the MTU of its address; without the wire, the address is not claimed. */
static int find_address(struct vb_sim *world, struct vb_sim_device_config *config,
			enum ibv_mtu *mtu)
{
	int err;

	if (!world->udp)
		return udp_describe(config->address, &config->gids[0], mtu);
	err = udp_claim(world->udp, config->address, &config->gids[0]);
	if (!err)
		*mtu = udp_mtu(world->udp);
	return err;
}

int world_claim_address(struct vb_sim *world, struct vb_sim_device_config *config)
{
	enum ibv_mtu mtu;
	int err;

	if (config->wire != VB_SIM_WIRE_UDP)
		return 0;
	config->gid_count = 1;
	err = find_address(world, config, &mtu);
	if (!err && (!config->mtu || config->mtu > mtu))
		config->mtu = mtu;
	return err;
}

void world_join_wire(struct vb_sim *world, const struct vb_sim_device_config *config,
		     struct sim_device *device)
{
	if (config->wire == VB_SIM_WIRE_SHARED)
		shared_join(world->shared, device);
	else if (config->wire == VB_SIM_WIRE_UDP && world->udp)
		udp_join(world->udp, device);
}

/* --- XRC domains --- */

int world_open_domain(const struct device *device, const struct stat *inode, int oflags,
		      uint32_t *entry)
{
	const struct vb_sim *world = device->world;

	if (!world_shares(world, device))
		return oflags & O_CREAT ? 0 : EAGAIN;
	switch (shared_open_domain(world->shared, device->engine, inode, oflags, entry)) {
	case SHARED_DOMAIN_OPENED:
		return 0;
	case SHARED_DOMAIN_ABSENT:
		return EAGAIN;
	case SHARED_DOMAIN_EXISTS:
		return EEXIST;
	case SHARED_DOMAIN_FULL:
	default:
		return ENOMEM;
	}
}

void world_close_domain(const struct device *device, uint32_t entry)
{
	if (world_shares(device->world, device))
		shared_close_domain(device->world->shared, entry);
}

/* The child of a fork() has its parent's domains open, too. */
static void reopen_domains(struct vb_sim *world)
{
	for (unsigned int i = 0; i < world->device_count; i++)
		for (struct domain *domain = world->devices[i].domains; domain;
		     domain = domain->next) {
			const struct stat inode = {.st_dev = domain->st_dev,
						   .st_ino = domain->st_ino};

			domain->entry = UINT32_MAX;
			if (domain->has_inode)
				world_open_domain(&world->devices[i], &inode, O_CREAT,
						  &domain->entry);
		}
}

/* --- end, fork() --- */

/* A wire that wires_add() has not taken is closed by itself. */
static void close_alone(struct wire **wire)
{
	if (*wire)
		(*wire)->close(*wire);
	*wire = NULL;
}

void world_close_wires(struct vb_sim *world)
{
	driver_set_wires(&world->driver, NULL, NULL);
	if (world->wires.first) {
		wires_close(&world->wires);
		world->shared = world->udp = NULL;
	}
	close_alone(&world->shared);
	close_alone(&world->udp);
}

void world_fork_wires(struct vb_sim *world)
{
	struct context *context;
	uint32_t at = 0;

	/* The contexts that have a file are described by the parent. */
	while ((context = handles_next(&world->store.contexts, &at)))
		if (!context->foreign && context->origin == context)
			description_close(&context->description);
	wires_forked(&world->wires);
	/* These structures are on the stacks of threads of the parent. */
	world->calls.waits = NULL;
	if (world->wires.first)
		sim_cm_forked(world->driver.engine);
	world->wires_forked = world->wires.first;
}

int world_resume_wires(struct vb_sim *world)
{
	int err;

	if (world->wires_left)
		return refuse_plainly(NULL, VB_WHY_WORLD_ENDED);
	if (!world->wires_forked)
		return 0;
	/* The bell of the wire shared is the parent's until the child has a place of its own. */
	if (world->udp)
		udp_set_bell(world->udp, driver_bell(&world->driver));
	err = wires_resume(&world->wires);
	if (err)
		return err;
	if (world->udp)
		udp_set_bell(world->udp, bell_of(world));
	connect_clock(world);
	world->wires_forked = false;
	reopen_domains(world);
	return world_trace_resume(world);
}

/* --- contexts of other processes --- */

uint64_t world_pid_namespace(void)
{
	struct stat status;

	return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

static void world_times(const struct vb_sim *world, struct description_owner *owner)
{
	uint64_t wall_base_ns;

	owner->identity = shared_identity(world->shared);
	shared_base_ns(world->shared, &owner->base_ns, &wall_base_ns);
}

bool world_shares(const struct vb_sim *world, const struct device *device)
{
	return world->shared && world->shared->has(world->shared, device->engine);
}

struct device *world_shared_device(const struct vb_sim *world, uint32_t index)
{
	for (unsigned int i = 0; i < world->device_count; i++)
		if (world->devices[i].engine->index == index &&
		    world_shares(world, &world->devices[i]))
			return &world->devices[i];
	return NULL;
}

void world_describe(struct context *context)
{
	struct description_owner owner = {
		.pid_namespace = world_pid_namespace(),
		.pid = (uint32_t)getpid(),
		.device = context->device->engine->index,
	};

	/* exit(3) may have closed the wire while the clock's thread began. */
	if (!context->description.map || !context->world->shared)
		return;
	owner.process = shared_process(context->world->shared);
	world_times(context->world, &owner);
	description_sign(&context->description, &owner);
}

bool world_has_owner(const struct vb_sim *world, const struct description_owner *owner)
{
	struct description_owner here;

	if (!world->shared)
		return false;
	world_times(world, &here);
	return owner->identity == here.identity && owner->base_ns == here.base_ns;
}

bool world_has_key(const struct device *device, uint32_t key, uint64_t process)
{
	const struct vb_sim *world = device->world;
	enum sim_key_kind kind;
	const uint32_t number = sim_key_number(key, &kind);

	return world_shares(world, device) &&
	       shared_owner(world->shared, device->engine, SIM_NUMBERS_KEY, number) == process;
}

bool world_process_lives(const struct vb_sim *world, uint64_t process)
{
	return world->shared && shared_process_lives(world->shared, process);
}

bool world_claim_numbers(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
			 uint16_t *generation)
{
	struct vb_sim *world = arg;

	return !world_resume_wires(world) &&
	       shared_claim(world->shared, device_index, numbers, block, generation);
}
