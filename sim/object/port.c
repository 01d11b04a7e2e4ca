/* SPDX-License-Identifier: MIT */
#include "sim/object/port.h"

#include "sim/base/core.h"
#include "sim/base/note.h"
#include "sim/object/device.h"
#include "sim/wire/packet.h"

#include <errno.h>
#include <string.h>

#define DEFAULT_PKEY 0xffff

/* The P_Keys with the quirk default_pkey_is_last: none, a limited one, and the default one. */
static const uint16_t late_pkeys[] = {0, 0x1235, DEFAULT_PKEY};

/* With the quirk gids_have_holes: the index of the first GID on Ethernet, and from one to the next. */
#define FIRST_GID 3
#define GID_STEP  2

/* With the quirk lids_are_high. */
#define HIGH_LIDS 0xa000

union ibv_gid sim_port_link_local(const struct sim_port *port)
{
	const uint8_t *mac = port->mac;
	/* RFC 4291, appendix A: the MAC with ff:fe in its middle and the universal bit turned. */
	return (union ibv_gid){.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 2, mac[1], mac[2],
				       0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

unsigned int sim_port_default_pkey(const struct sim_port *port)
{
	for (unsigned int i = 0; i < port->pkey_count; i++)
		if (port->pkeys[i] == DEFAULT_PKEY)
			return i;
	return 0;
}

/* Gives all GIDs the port's own type. With RoCE v1 a copy of each follows, of that type. */
static void set_gid_types(struct sim_port *port, const struct sim_profile *profile)
{
	const unsigned int count = port->gid_count;

	for (unsigned int i = 0; i < count; i++)
		port->gid_types[i] = (uint8_t)sim_port_gid_type(port);
	if (sim_port_is_infiniband(port) || !profile->roce_v1)
		return;
	for (unsigned int i = 0; i < count; i++) {
		port->gids[count + i] = port->gids[i];
		port->gid_types[count + i] = IBV_GID_TYPE_ROCE_V1;
	}
	port->gid_count = (uint16_t)(2 * count);
}

/* The quirk gids_have_holes, if the table has room. */
static void spread_gids(struct sim_port *port)
{
	const unsigned int count = port->gid_count;

	if (sim_port_is_infiniband(port) || FIRST_GID + GID_STEP * count > SIM_GIDS_MAX)
		return;
	for (unsigned int i = count; i-- > 0;) {
		const unsigned int to = FIRST_GID + GID_STEP * i;

		port->gids[to] = port->gids[i];
		port->gid_types[to] = port->gid_types[i];
		memset(&port->gids[i], 0, sizeof(port->gids[i]));
	}
	port->gid_count = (uint16_t)(FIRST_GID + GID_STEP * (count - 1) + 1);
}

/* Returns the lowest LID that no port of the engine had at its start. */
static uint16_t next_lid(const struct sim_engine *engine)
{
	unsigned int count = 0;

	for (const struct sim_device *device = engine->devices; device; device = device->next)
		if (sim_port_is_infiniband(&device->ports[0]))
			count += device->port_count;
	return (uint16_t)(count + 1);
}

/* A locally administered address. Devices of one engine differ in the last three bytes. */
static void set_mac(struct sim_port *port, uint64_t identity)
{
	uint64_t state = identity;
	const uint64_t own = identity ? sim_random_next(&state) : 0;
	const uint8_t mac[6] = {0x02 | (own & 0xfc),	     (uint8_t)(own >> 8),
				(uint8_t)(own >> 16),	     (uint8_t)(port->device->index >> 8),
				(uint8_t)(port->number - 1), (uint8_t)(port->device->index + 1)};

	memcpy(port->mac, mac, sizeof(mac));
}

static void set_pkeys(struct sim_port *port, const uint16_t *pkeys, unsigned int count)
{
	memcpy(port->pkeys, pkeys, count * sizeof(port->pkeys[0]));
	port->pkey_count = (uint16_t)count;
}

void sim_port_init(struct sim_port *port, struct sim_device *device, unsigned int number,
		   const struct sim_device_config *config)
{
	*port = (struct sim_port){
		.device = device,
		.number = (uint8_t)number,
		.link_layer = config->link_layer,
		.state = IBV_PORT_ACTIVE,
		.mtu = (uint8_t)config->mtu,
		.gid_count = 1,
		.pkey_count = 1,
		.pkeys = {DEFAULT_PKEY},
	};
	set_mac(port, config->identity);
	port->gids[0] = sim_port_link_local(port);
	if (sim_port_is_infiniband(port)) {
		port->lid = (uint16_t)(config->lids_before + next_lid(device->engine) + number - 1 +
				       (device->quirks.lids_are_high ? HIGH_LIDS : 0));
		port->sm_lid = 1;
	}
	if (number == 1) {
		if (config->gid_count)
			memcpy(&port->gids[1], config->gids,
			       config->gid_count * sizeof(port->gids[0]));
		port->gid_count = (uint16_t)(config->gid_count + 1);
	}
	set_gid_types(port, config->profile);
	if (device->quirks.gids_have_holes)
		spread_gids(port);
	if (config->pkey_count)
		set_pkeys(port, config->pkeys, config->pkey_count);
	else if (device->quirks.default_pkey_is_last)
		set_pkeys(port, late_pkeys, sizeof(late_pkeys) / sizeof(late_pkeys[0]));
}

void sim_port_query(const struct sim_port *port, struct ibv_port_attr *attr)
{
	const bool infiniband = sim_port_is_infiniband(port);

	*attr = (struct ibv_port_attr){
		.state = port->state,
		.max_mtu = port->mtu,
		.active_mtu = port->mtu,
		.gid_tbl_len = port->device->profile->gid_table,
		.port_cap_flags = IBV_PORT_CM_SUP |
				  (infiniband ? IBV_PORT_CLIENT_REG_SUP : IBV_PORT_IP_BASED_GIDS),
		.max_msg_sz = port->device->profile->max_message_bytes,
		.pkey_tbl_len = port->pkey_count,
		.lid = port->lid,
		.sm_lid = port->sm_lid,
		.max_vl_num = 1,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR: 25 Gbit/s a lane, 100 in all */
		.phys_state = port->state == IBV_PORT_ACTIVE ? 5 /* LinkUp */ : 3 /* Disabled */,
		.link_layer = port->link_layer,
		.flags = infiniband ? 0 : IBV_QPF_GRH_REQUIRED,
	};
}

static bool is_gid_at(const struct sim_port *port, unsigned int index, const union ibv_gid *gid,
		      enum ibv_gid_type type)
{
	return port->gid_types[index] == type && memcmp(&port->gids[index], gid, sizeof(*gid)) == 0;
}

int sim_port_find_gid(const struct sim_port *port, const union ibv_gid *gid, enum ibv_gid_type type)
{
	for (int i = 0; i < port->gid_count; i++)
		if (is_gid_at(port, (unsigned int)i, gid, type))
			return i;
	return -1;
}

unsigned int sim_port_first_gid(const struct sim_port *port)
{
	static const union ibv_gid zero;

	for (unsigned int i = 0; i < port->gid_count; i++)
		if (memcmp(&port->gids[i], &zero, sizeof(zero)) != 0)
			return i;
	return 0;
}

bool sim_port_has_gid(struct sim_port *port, const union ibv_gid *gid, enum ibv_gid_type type)
{
	int index;

	if (port->gid_found < port->gid_count && is_gid_at(port, port->gid_found, gid, type))
		return true;
	index = sim_port_find_gid(port, gid, type);
	if (index >= 0)
		port->gid_found = (uint16_t)index;
	return index >= 0;
}

bool sim_port_has_type(const struct sim_port *port, enum ibv_gid_type type)
{
	static const union ibv_gid zero;

	for (unsigned int i = 0; i < port->gid_count; i++)
		if (port->gid_types[i] == type && memcmp(&port->gids[i], &zero, sizeof(zero)) != 0)
			return true;
	return false;
}

bool sim_port_is_up(const struct sim_port *port)
{
	return port->state == IBV_PORT_ACTIVE && !port->device->dead;
}

void sim_port_event(struct sim_port *port, enum ibv_event_type type)
{
	const struct sim_host *host = &port->device->engine->host;
	const struct sim_event event = {.type = type, .port_num = port->number};

	host->async_event(host->arg, port->device, &event);
}

/* Makes paths look for their destination again, and raises the event. */
static void moved(struct sim_port *port, enum ibv_event_type type)
{
	port->device->engine->address_epoch++;
	sim_engine_changed(port->device->engine);
	sim_port_event(port, type);
}

static void note_state(const struct sim_port *port, enum ibv_port_state from)
{
	static const char *const names[] = {
		[IBV_PORT_NOP] = "NOP",	      [IBV_PORT_DOWN] = "DOWN",
		[IBV_PORT_INIT] = "INIT",     [IBV_PORT_ARMED] = "ARMED",
		[IBV_PORT_ACTIVE] = "ACTIVE", [IBV_PORT_ACTIVE_DEFER] = "ACTIVE_DEFER",
	};
	struct vb_event event = {
		.kind = VB_EVENT_PORT,
		.device = port->device->name,
		.port = port->number,
		.texts = {names[from], names[port->state]},
	};

	sim_note(port->device->engine, &event, NULL);
}

void sim_port_set_state(struct sim_port *port, enum ibv_port_state state)
{
	const enum ibv_port_state from = port->state;
	bool was_active = from == IBV_PORT_ACTIVE;
	bool is_active = state == IBV_PORT_ACTIVE;

	port->state = (uint8_t)state;
	if (from != state && sim_watched(port->device->engine))
		note_state(port, from);
	sim_engine_changed(port->device->engine);
	if (was_active && !is_active)
		port->device->counters.links_downed++;
	if (was_active != is_active)
		sim_port_event(port, is_active ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
}

void sim_port_set_lid(struct sim_port *port, uint16_t lid)
{
	port->lid = lid;
	moved(port, IBV_EVENT_LID_CHANGE);
}

static bool speaks(const struct sim_port *port, enum ibv_gid_type type)
{
	return type == sim_port_gid_type(port) ||
	       (type == IBV_GID_TYPE_ROCE_V1 && !sim_port_is_infiniband(port) &&
		port->device->profile->roce_v1);
}

int sim_port_set_gid(struct sim_port *port, unsigned int index, const union ibv_gid *gid,
		     enum ibv_gid_type type)
{
	if (index >= SIM_GIDS_MAX || !speaks(port, type))
		return EINVAL;
	port->gids[index] = *gid;
	port->gid_types[index] = (uint8_t)type;
	if (index >= port->gid_count)
		port->gid_count = (uint16_t)(index + 1);
	moved(port, IBV_EVENT_GID_CHANGE);
	return 0;
}
