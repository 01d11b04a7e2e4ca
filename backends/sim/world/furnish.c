/* SPDX-License-Identifier: MIT */
/* Makes the devices and links of a world from its configuration. */
#include "backends/sim/base/say.h"
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

static bool device_fits(const struct vb_sim *world, const struct vb_sim_device_config *config)
{
	const char *name = config->name;

	if (!name[0] || strnlen(name, VB_SIM_NAME_MAX) == VB_SIM_NAME_MAX)
		say(EINVAL, "device number %u has no name, or a name that is too long",
		    world->device_count);
	else if (world_find_device(world, name))
		say(EINVAL, "device %s: the name is given twice", name);
	else if (config->ports > VB_SIM_PORTS_MAX)
		say(EINVAL, "device %s: %u ports are more than %d", name, config->ports,
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

/* Stands in the private operations of simulated devices, and of no other device. */
static struct ibv_context *device_mark(struct ibv_device *device, int cmd_fd)
{
	return say_null(EOPNOTSUPP, "%s: open it with ibv_open_device()", device->name);
}

bool world_owns_device(const struct ibv_device *device)
{
	return device->_ops._dummy1 == device_mark;
}

/* With the longest name that a device can have, the paths fit into IBV_SYSFS_PATH_MAX. */
static void fill_ibv_device(struct ibv_device *ibv, const char *name)
{
	ibv->_ops._dummy1 = device_mark;
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

static int add_device(struct vb_sim *world, const struct vb_sim_device_config *given)
{
	struct vb_sim_device_config config = *given;
	struct device *device = &world->devices[world->device_count];
	struct sim_device_config engine;
	int err;

	if (!device_fits(world, &config))
		return EINVAL;
	if (!config.gid_count && config.link_layer != IBV_LINK_LAYER_INFINIBAND) {
		choose_gids(world->identity, world->device_count + 1, config.gids);
		config.gid_count = 2;
	}
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
		.identity = world->identity,
	};
	device->world = world;
	fill_ibv_device(&device->ibv, config.name);
	err = sim_device_create(world->driver.engine, &engine, device, &device->engine);
	if (err)
		return say(err, "device %s: there is no such link layer or MTU", config.name);
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
	a = world_find_device(world, config->a);
	b = world_find_device(world, config->b);
	if (!a || !b)
		return say(EINVAL, "link %s - %s: there is no device %s", config->a, config->b,
			   a ? config->b : config->a);
	err = sim_fabric_join(world->driver.engine, a->engine, b->engine, config->delay_ns,
			      config->bits_per_second);
	if (err)
		say(err,
		    "link %s - %s: given twice, between different link layers, or out of memory",
		    config->a, config->b);
	return err == EEXIST ? EINVAL : err;
}

int world_furnish(struct vb_sim *world, const struct vb_sim_config *config)
{
	static const struct vb_sim_device_config two[] = {{.name = "sim0"}, {.name = "sim1"}};
	const struct vb_sim_device_config *devices = config->device_count ? config->devices : two;
	unsigned int count = config->device_count ? config->device_count : 2;
	int err = 0;

	if (count > VB_SIM_DEVICES_MAX || config->link_count > VB_SIM_LINKS_MAX)
		return say(EINVAL, "more than %d devices or %d links", VB_SIM_DEVICES_MAX,
			   VB_SIM_LINKS_MAX);
	world->devices = calloc(count, sizeof(*world->devices));
	if (!world->devices)
		return say(ENOMEM, "out of memory");
	for (unsigned int i = 0; i < count && !err; i++)
		err = add_device(world, &devices[i]);
	for (unsigned int i = 0; i < config->link_count && !err; i++)
		err = add_link(world, &config->links[i]);
	return err;
}
