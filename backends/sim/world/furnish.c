/* SPDX-License-Identifier: MIT */
/* Makes the devices and links of a world from its configuration. */
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void vb_sim_default_gids(unsigned int number, union ibv_gid gids[2])
{
	char text[64];

	memset(gids, 0, 2 * sizeof(gids[0]));
	snprintf(text, sizeof(text), "::ffff:10.0.%u.%u", number >> 8, number & 0xff);
	inet_pton(AF_INET6, text, gids[0].raw);
	snprintf(text, sizeof(text), "fd00::%x", number);
	inet_pton(AF_INET6, text, gids[1].raw);
}

struct device *world_find_device(const struct vb_sim *world, const char *name)
{
	for (unsigned int i = 0; i < world->device_count; i++)
		if (strcmp(world->devices[i].ibv.name, name) == 0)
			return &world->devices[i];
	return NULL;
}

/* A name that the configuration of a device gives, and the field in which it stands. */
static int refuse_named(enum vb_reason reason, const char *name, const char *field,
			const char *device)
{
	char text[VB_SIM_QUIRKS_TEXT + 128];

	snprintf(text, sizeof(text), "\"%s\", as %s of device %s says", name, field, device);
	return refuse_name(NULL, reason, text);
}

static int check_name(const struct vb_sim *world, const char *name)
{
	if (!name[0] || strnlen(name, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX)
		return refuse_why(NULL, (struct vb_why){VB_WHY_WORLD_DEVICE_NAME,
							{world->device_count, VB_SIM_NAME_MAX}});
	if (world_find_device(world, name))
		return refuse_name(NULL, VB_WHY_WORLD_DEVICE_TWICE, name);
	return 0;
}

/* Checks the numbers of ports and addresses. */
static int check_counts(const struct vb_sim_device_config *config)
{
	const struct {
		enum vb_reason reason;
		unsigned int count, limit;
	} counts[] = {
		{VB_WHY_WORLD_PORTS, config->ports, VB_SIM_PORTS_MAX},
		{VB_WHY_WORLD_GIDS, config->gid_count, VB_SIM_GIDS_MAX},
		{VB_WHY_WORLD_PKEYS, config->pkey_count, VB_SIM_PKEYS_MAX},
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		if (counts[i].count > counts[i].limit)
			return refuse_why(NULL, (struct vb_why){counts[i].reason,
								{counts[i].count, counts[i].limit},
								.text = config->name});
	return 0;
}

static int check_profile(const struct vb_sim_device_config *config)
{
	char profile[VB_SIM_NAME_MAX + 1];

	if (strnlen(config->quirks, VB_SIM_QUIRKS_TEXT) == VB_SIM_QUIRKS_TEXT)
		return refuse_why(NULL, (struct vb_why){VB_WHY_WORLD_QUIRKS_LONG,
							{VB_SIM_QUIRKS_TEXT},
							.text = config->name});
	snprintf(profile, sizeof(profile), "%.*s", VB_SIM_NAME_MAX, config->profile);
	if (strlen(profile) == VB_SIM_NAME_MAX || (profile[0] && !sim_profile_find(profile)))
		return refuse_named(VB_WHY_WORLD_PROFILE, profile, "profile", config->name);
	return 0;
}

static int check_device(const struct vb_sim *world, const struct vb_sim_device_config *config)
{
	int err = check_name(world, config->name);

	if (!err)
		err = check_counts(config);
	return err ? err : check_profile(config);
}

/* The reason of sim_device_create(), by its errno: all but link layer and MTU was checked. */
static int refuse_device(int error, const struct vb_sim_device_config *config)
{
	struct vb_why why = {VB_WHY_WORLD_MTU, {config->mtu}, .text = config->name};

	if (error == ENOMEM)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	if (config->link_layer && config->link_layer != IBV_LINK_LAYER_ETHERNET &&
	    config->link_layer != IBV_LINK_LAYER_INFINIBAND)
		why = (struct vb_why){
			VB_WHY_WORLD_LINK_LAYER, {config->link_layer}, .text = config->name};
	return refuse_why(NULL, why);
}

/* Stands in the private operations of simulated devices, and of no other device. */
static struct ibv_context *device_mark(struct ibv_device *device, int cmd_fd)
{
	return null_errno(refuse_name(NULL, VB_WHY_DEVICE_OPENED_DIRECTLY, device->name));
}

bool world_owns_device(const struct ibv_device *device)
{
	return device->_ops._dummy1 == device_mark;
}

/*
 * With the longest name that a device can have, the paths fit into IBV_SYSFS_PATH_MAX. The character
 * device is called as the kernel calls that of a machine's adapter with this number: programs look
 * for /dev/infiniband/uverbs0.
 */
static void fill_ibv_device(struct ibv_device *ibv, const char *name, unsigned int number)
{
	ibv->_ops._dummy1 = device_mark;
	ibv->node_type = IBV_NODE_CA;
	ibv->transport_type = IBV_TRANSPORT_IB;
	snprintf(ibv->name, sizeof(ibv->name), "%s", name);
	snprintf(ibv->dev_name, sizeof(ibv->dev_name), "uverbs%u", number);
	snprintf(ibv->dev_path, sizeof(ibv->dev_path), "/sys/class/infiniband_verbs/uverbs%u",
		 number);
	snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "/sys/class/infiniband/%s", name);
}

/* Sets the quirks of a comma-separated list, beside the profile's: a device is made by them. */
static int choose_quirks(const struct vb_sim_device_config *config, struct sim_quirks *quirks)
{
	const char *names = config->quirks;
	char name[VB_SIM_QUIRKS_TEXT];

	while (*names) {
		size_t length = strcspn(names, ",");
		bool *quirk;

		snprintf(name, sizeof(name), "%.*s", (int)length, names);
		quirk = sim_quirk_find(quirks, name);
		if (!quirk)
			return refuse_named(VB_WHY_WORLD_QUIRK, name, "quirks", config->name);
		*quirk = true;
		names += length + (names[length] == ',');
	}
	return 0;
}

/* The default GIDs: with an identity, IPv4 addresses of another network of 10.0.0.0/8, and IPv6
 * addresses with a random Global ID (RFC 4193, 3.2.1). */
static void choose_gids(uint64_t identity, unsigned int number, union ibv_gid gids[2])
{
	uint64_t state = identity;
	uint64_t own;

	vb_sim_default_gids(number, gids);
	if (!identity)
		return;
	own = sim_random_next(&state);
	memcpy(&gids[0].raw[13], &own, 2);
	memcpy(&gids[1].raw[1], &own, 5);
}

/*
 * Returns how many LIDs come before those of the world. The LIDs of two default worlds mostly differ, as their GIDs
 * do: a process that is given a LID of the other world does not take its own port for the peer.
 */
static uint16_t lids_before(const struct vb_sim *world, const struct vb_sim_config *config)
{
	return world->shared && !config->world[0] ? (uint16_t)(16 * (world->identity & 0xff)) : 0;
}

static int add_device(struct vb_sim *world, const struct vb_sim_config *whole,
		      const struct vb_sim_device_config *given)
{
	struct vb_sim_device_config config = *given;
	struct device *device = &world->devices[world->device_count];
	const struct sim_profile *profile;
	struct sim_device_config engine;
	struct sim_quirks quirks;
	int err;

	err = check_device(world, &config);
	if (err)
		return err;
	profile = sim_profile_find(config.profile[0] ? config.profile : "spec");
	quirks = *profile->quirks;
	err = choose_quirks(&config, &quirks);
	if (!err)
		err = world_claim_address(world, &config);
	if (err)
		return err;
	if (!config.gid_count && config.link_layer != IBV_LINK_LAYER_INFINIBAND) {
		choose_gids(world->identity, world->device_count + 1, config.gids);
		config.gid_count = 2;
	}
	engine = (struct sim_device_config){
		.name = config.name,
		.profile = profile,
		.quirks = &quirks,
		.port_count = config.ports ? config.ports : 1,
		.link_layer =
			config.link_layer ? (uint8_t)config.link_layer : IBV_LINK_LAYER_ETHERNET,
		.mtu = config.mtu ? config.mtu : IBV_MTU_4096,
		.gid_count = config.gid_count,
		.gids = config.gids,
		.pkey_count = config.pkey_count,
		.pkeys = config.pkeys,
		.lids_before = lids_before(world, whole),
		.identity = world->identity,
	};
	device->world = world;
	fill_ibv_device(&device->ibv, config.name, world->device_count);
	err = sim_device_create(world->driver.engine, &engine, device, &device->engine);
	if (err)
		return refuse_device(err, &config);
	world->device_count++;
	world_join_wire(world, &config, device->engine);
	return 0;
}

/* The reason of sim_fabric_join(), by its errno. */
static int refuse_link(int error, const struct vb_sim_link_config *config, unsigned int index)
{
	char text[2 * VB_SIM_NAME_MAX + 8];
	struct vb_why why = {VB_WHY_WORLD_LINK_TWICE, {index}, .text = text};

	if (error == ENOMEM)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	if (error == EINVAL)
		why.reason = VB_WHY_WORLD_LINK_LAYERS;
	snprintf(text, sizeof(text), "%s and %s", config->a, config->b);
	return refuse_why(NULL, why);
}

static int add_link(struct vb_sim *world, const struct vb_sim_link_config *config,
		    unsigned int index)
{
	struct device *a, *b;
	int err;

	if (strnlen(config->a, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX ||
	    strnlen(config->b, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX)
		return refuse_why(
			NULL, (struct vb_why){VB_WHY_WORLD_LINK_NAME, {index, VB_SIM_NAME_MAX}});
	a = world_find_device(world, config->a);
	b = world_find_device(world, config->b);
	if (!a || !b)
		return refuse_why(NULL, (struct vb_why){VB_WHY_WORLD_LINK_DEVICE,
							{index},
							.text = a ? config->b : config->a});
	err = sim_fabric_join(world->driver.engine, a->engine, b->engine, config->delay_ns,
			      config->bits_per_second);
	return err ? refuse_link(err, config, index) : 0;
}

int world_furnish(struct vb_sim *world, const struct vb_sim_config *config)
{
	static const struct vb_sim_device_config two[] = {{.name = "sim0"}, {.name = "sim1"}};
	const struct vb_sim_device_config *devices = config->device_count ? config->devices : two;
	unsigned int count = config->device_count ? config->device_count : 2;
	int err = 0;

	if (count > VB_SIM_DEVICES_MAX)
		return refuse_why(
			NULL, (struct vb_why){VB_WHY_WORLD_DEVICES, {count, VB_SIM_DEVICES_MAX}});
	if (config->link_count > VB_SIM_LINKS_MAX)
		return refuse_why(NULL, (struct vb_why){VB_WHY_WORLD_LINKS,
							{config->link_count, VB_SIM_LINKS_MAX}});
	world->devices = calloc(count, sizeof(*world->devices));
	if (!world->devices)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	for (unsigned int i = 0; i < count && !err; i++)
		err = add_device(world, config, &devices[i]);
	for (unsigned int i = 0; i < config->link_count && !err; i++)
		err = add_link(world, &config->links[i], i);
	return err;
}
