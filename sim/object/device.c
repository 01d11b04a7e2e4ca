/* SPDX-License-Identifier: MIT */
#include "sim/object/device.h"

#include "sim/base/core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* QPNs 0 and 1 are the management QPs, also to Wireshark. */
#define FIRST_QPN	     16
#define QPN_PLACE_BITS	     18
#define SRQN_PLACE_BITS	     18
#define SRQN_GENERATION_BITS 6
#define QPN_GENERATION_BITS  6

/* The place of the first number, and how far apart the next ones are: the tables' places suffice for the
 * limits of the profile hostile. */
#define SCATTERED_FROM 0x2a5c3u
#define SCATTERED_STEP 37

static bool config_fits(const struct sim_device_config *config)
{
	return config->port_count >= 1 && config->port_count <= SIM_PORTS_MAX &&
	       (config->link_layer == IBV_LINK_LAYER_ETHERNET ||
		config->link_layer == IBV_LINK_LAYER_INFINIBAND) &&
	       config->mtu >= IBV_MTU_256 && config->mtu <= IBV_MTU_4096 &&
	       config->gid_count < SIM_GIDS_MAX / 2 && config->pkey_count <= SIM_PKEYS_MAX &&
	       strlen(config->name) < SIM_NAME_MAX;
}

/* Other engines have the device too: its numbers come from blocks. */
static void claim_numbers(struct sim_device *device)
{
	const struct sim_host *host = &device->engine->host;
	struct sim_claim claim = {
		.take = host->claim_numbers,
		.arg = host->claim_arg,
		.device_index = device->index,
		.numbers = SIM_NUMBERS_QP,
	};

	sim_table_claim(&device->qps, &claim);
	claim.numbers = SIM_NUMBERS_SRQ;
	sim_table_claim(&device->srqs, &claim);
	claim.numbers = SIM_NUMBERS_KEY;
	sim_table_claim(&device->regions, &claim);
}

/* The quirk numbers_are_scattered. */
static void scatter_numbers(struct sim_device *device)
{
	sim_table_scatter(&device->qps, SCATTERED_FROM, SCATTERED_STEP);
	sim_table_scatter(&device->srqs, SCATTERED_FROM, SCATTERED_STEP);
}

int sim_device_create(struct sim_engine *engine, const struct sim_device_config *config, void *user,
		      struct sim_device **out)
{
	struct sim_device **end = &engine->devices;
	struct sim_device *device;

	if (!config_fits(config))
		return EINVAL;
	device = calloc(1, sizeof(*device));
	if (!device)
		return ENOMEM;
	device->engine = engine;
	device->profile = config->profile;
	device->quirks = config->quirks ? *config->quirks : *config->profile->quirks;
	device->user = user;
	device->index = engine->device_count++;
	device->port_count = config->port_count;
	device->memory_epoch = 1;
	strcpy(device->name, config->name);
	sim_table_init(&device->qps, QPN_PLACE_BITS, QPN_GENERATION_BITS, FIRST_QPN,
		       (uint32_t)config->profile->limits.max_qp);
	sim_table_init(&device->srqs, SRQN_PLACE_BITS, SRQN_GENERATION_BITS, 1,
		       (uint32_t)config->profile->limits.max_srq);
	sim_table_init(&device->regions, SIM_KEY_PLACE_BITS, SIM_KEY_GENERATION_BITS, 1,
		       (1u << SIM_KEY_PLACE_BITS) - 1);
	if (engine->host.claim_numbers)
		claim_numbers(device);
	if (config->identity)
		sim_device_renumber(device, config->identity);
	if (device->quirks.numbers_are_scattered)
		scatter_numbers(device);
	for (unsigned int i = 0; i < config->port_count; i++)
		sim_port_init(&device->ports[i], device, i + 1, config);
	device->node_guid = be64toh(sim_port_link_local(&device->ports[0]).global.interface_id);
	while (*end)
		end = &(*end)->next;
	*end = device;
	*out = device;
	return engine->give_hooks(device);
}

void sim_device_renumber(struct sim_device *device, uint64_t identity)
{
	uint64_t state = identity + device->index;

	sim_table_renumber(&device->qps, (uint32_t)sim_random_next(&state));
	sim_table_renumber(&device->srqs, (uint32_t)sim_random_next(&state));
	sim_table_renumber(&device->regions, (uint32_t)sim_random_next(&state));
}

int sim_device_set_quirk(struct sim_device *device, const char *name, bool on)
{
	bool *quirk = sim_quirk_find(&device->quirks, name);

	if (!quirk)
		return ENOENT;
	*quirk = on;
	return device->engine->give_hooks(device);
}

int sim_device_lower_limit(struct sim_device *device, const char *name, int value)
{
	struct sim_profile lowered = *device->profile;
	int *limit = sim_limit_find(&lowered.limits, name);

	if (!limit || value < 0 || value > *limit)
		return EINVAL;
	*limit = value;
	device->own_profile = lowered;
	device->profile = &device->own_profile;
	device->qps.limit = (uint32_t)lowered.limits.max_qp;
	device->srqs.limit = (uint32_t)lowered.limits.max_srq;
	return 0;
}

struct sim_port *sim_device_port(struct sim_device *device, unsigned int number)
{
	return number >= 1 && number <= device->port_count ? &device->ports[number - 1] : NULL;
}

void sim_device_query(const struct sim_device *device, struct ibv_device_attr *attr)
{
	*attr = device->profile->limits;
	attr->node_guid = htobe64(device->node_guid);
	attr->sys_image_guid = attr->node_guid;
	attr->phys_port_cnt = (uint8_t)device->port_count;
}

void sim_device_free(struct sim_device *device)
{
	assert(device->qps.live == 0 && device->regions.live == 0 && !device->adopted);
	sim_table_destroy(&device->qps);
	sim_table_destroy(&device->regions);
	sim_table_destroy(&device->srqs);
	free(device);
}
