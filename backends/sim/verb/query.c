/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/control.h"
#include "backends/sim/world/say.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <string.h>

/* IB_UVERBS_DEVICE_ATOMIC_WRITE of Linux include/uapi/rdma/ib_user_verbs.h, since 6.2 */
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

/* The context's lock and liveness: each query begins and ends so. */
static struct context *enter(struct ibv_context *ibv, bool *locked)
{
	struct context *context = context_of(ibv);

	*locked = world_lock(context->world);
	return context_live(context) ? context : NULL;
}

static struct sim_port *port_of(struct context *context, unsigned int number)
{
	return context ? sim_device_port(context->device->engine, number) : NULL;
}

static void leave(struct ibv_context *ibv, bool locked)
{
	world_unlock(context_of(ibv)->world, locked);
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

int query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
	bool locked;
	struct context *context = enter(ibv, &locked);

	if (context)
		sim_device_query(context->device->engine, attr);
	leave(ibv, locked);
	return context ? 0 : say(EINVAL, "query_device: the context is closed");
}

/*
 * Beyond ibv_device_attr. Nothing of offloads, receive side scaling, pacing and tag matching. All
 * memory is on demand here, whatever it was registered with; atomics are of 8 bytes.
 */
static void fill_capabilities(struct ibv_device_attr_ex *all, unsigned int lacks)
{
	const uint32_t datagram =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
	const uint32_t unreliable = datagram | IBV_ODP_SUPPORT_WRITE;
	const uint32_t reliable = unreliable | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

	if (!(lacks & SIM_LACKS_TIMESTAMPS)) {
		all->completion_timestamp_mask = UINT64_MAX;
		all->hca_core_clock = 1000000; /* kHz */
	}
	if (!(lacks & SIM_LACKS_DEVICE_MEMORY))
		all->max_dm_size = DEVICE_MEMORY_BYTES;
	/* Those over PCI, which a device asks of another: none. */
	if (lacks & SIM_LACKS_ON_DEMAND)
		return;
	all->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	all->odp_caps.per_transport_caps.rc_odp_caps = reliable;
	all->odp_caps.per_transport_caps.uc_odp_caps = unreliable;
	all->odp_caps.per_transport_caps.ud_odp_caps = datagram;
	if (all->orig_attr.device_cap_flags & IBV_DEVICE_XRC)
		all->xrc_odp_caps = reliable;
}

int query_device_ex(struct ibv_context *ibv, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t attr_size)
{
	const struct sim_profile *profile = context_of(ibv)->device->engine->profile;
	struct ibv_device_attr_ex all = {0};
	int err;

	if ((input && input->comp_mask) || attr_size < sizeof(all.orig_attr))
		return say(EINVAL, "query_device_ex: a comp_mask, or a size below ibv_device_attr");
	err = query_device(ibv, &all.orig_attr);
	if (err)
		return err;
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
	if (context_of(ibv)->device->engine->profile->atomic_write)
		all.device_cap_flags_ex |= DEVICE_ATOMIC_WRITE;
	all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
	fill_capabilities(&all, profile->lacks);
	all.cq_mod_caps = profile->moderation;
	memset(attr, 0, attr_size);
	memcpy(attr, &all, smaller(attr_size, sizeof(all)));
	return 0;
}

/* --- ports --- */

struct port_question {
	const struct sim_port *port;
	const struct answer *last;
};

static uint64_t digest_port(const struct sim_port *port, struct ibv_port_attr *attr)
{
	const uint8_t *bytes = (const uint8_t *)attr;
	uint64_t digest = 0xcbf29ce484222325; /* FNV-1a */

	memset(attr, 0, sizeof(*attr));
	sim_port_query(port, attr);
	for (size_t i = 0; i < sizeof(*attr); i++)
		digest = (digest ^ bytes[i]) * 0x100000001b3;
	return digest;
}

static bool port_changed(const void *arg)
{
	const struct port_question *question = arg;
	struct ibv_port_attr attr;

	return digest_port(question->port, &attr) != question->last->digest;
}

static void ask_port(struct context *context, const struct sim_port *port,
		     struct ibv_port_attr *attr)
{
	struct answer *last = &context->port_answer[port->number - 1];
	const struct port_question question = {.port = port, .last = last};
	uint64_t digest = digest_port(port, attr);

	if (last->given && last->digest == digest) {
		driver_step(context->world, port_changed, &question);
		digest = digest_port(port, attr);
	}
	*last = (struct answer){.digest = digest, .given = true};
}

int query_port(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr,
	       size_t attr_size)
{
	struct ibv_port_attr all = {0};
	bool locked;
	struct context *context = enter(ibv, &locked);
	struct sim_port *port = port_of(context, port_num);

	if (port) {
		ask_port(context, port, &all);
		memset(attr, 0, attr_size);
		memcpy(attr, &all, smaller(attr_size, sizeof(all)));
	}
	leave(ibv, locked);
	return port ? 0 : say(EINVAL, "query_port: no port %u", port_num);
}

/* The structure of libibverbs before version 1.1.0 of its symbols ends before link_layer. */
int query_port_compat(struct ibv_context *ibv, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return query_port(ibv, port_num, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* --- GIDs and P_Keys --- */

int query_gid(struct ibv_context *ibv, uint8_t port_num, int index, union ibv_gid *gid)
{
	bool locked;
	struct sim_port *port = port_of(enter(ibv, &locked), port_num);
	bool good = port && index >= 0 && index < port->device->profile->gid_table;

	if (good) {
		memset(gid, 0, sizeof(*gid));
		if (index < port->gid_count)
			*gid = port->gids[index];
	}
	leave(ibv, locked);
	return good ? 0 : say_minus(EINVAL, "query_gid: no port %u with index %d", port_num, index);
}

static void fill_entry(const struct sim_port *port, unsigned int index, void *entry,
		       size_t entry_size)
{
	const struct ibv_gid_entry all = {
		.gid = port->gids[index],
		.gid_index = index,
		.port_num = port->number,
		.gid_type = port->gid_types[index],
	};

	memset(entry, 0, entry_size);
	memcpy(entry, &all, smaller(entry_size, sizeof(all)));
}

/* Behind the table's end, or emptied by vb_sim_set_gid(). */
static bool is_empty(const struct sim_port *port, unsigned int index)
{
	static const union ibv_gid zeros;

	return index >= port->gid_count || memcmp(&port->gids[index], &zeros, sizeof(zeros)) == 0;
}

int query_gid_ex(struct ibv_context *ibv, uint32_t port_num, uint32_t gid_index,
		 struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	bool locked;
	struct sim_port *port = port_of(enter(ibv, &locked), port_num);
	int err = 0;

	if (!port || flags || gid_index >= port->device->profile->gid_table)
		err = say(EINVAL, "query_gid_ex: no port %u with index %u, or flags", port_num,
			  gid_index);
	else if (is_empty(port, gid_index))
		err = say(ENODATA, "query_gid_ex: index %u of port %u is empty", gid_index,
			  port_num);
	else
		fill_entry(port, gid_index, entry, entry_size);
	leave(ibv, locked);
	return err;
}

ssize_t query_gid_table(struct ibv_context *ibv, struct ibv_gid_entry *entries, size_t max_entries,
			uint32_t flags, size_t entry_size)
{
	bool locked;
	struct context *context = enter(ibv, &locked);
	struct sim_device *device = context ? context->device->engine : NULL;
	size_t count = 0;

	for (unsigned int p = 0; device && p < device->port_count; p++)
		for (unsigned int i = 0; i < device->ports[p].gid_count; i++) {
			if (is_empty(&device->ports[p], i))
				continue;
			if (count < max_entries && !flags)
				fill_entry(&device->ports[p], i,
					   (char *)entries + count * entry_size, entry_size);
			count++;
		}
	leave(ibv, locked);
	if (!device || flags || count > max_entries)
		return -say(EINVAL, "query_gid_table: flags, or less room than %zu entries", count);
	return (ssize_t)count;
}

/* libibverbs reads a file per index: a missing one is ENOENT, as on SoftRoCE. */
int query_pkey(struct ibv_context *ibv, uint8_t port_num, int index, __be16 *pkey)
{
	bool locked;
	struct sim_port *port = port_of(enter(ibv, &locked), port_num);
	bool good = port && index >= 0 && index < port->pkey_count;

	if (good)
		*pkey = htobe16(port->pkeys[index]);
	leave(ibv, locked);
	return good ? 0
		    : say_minus(ENOENT, "query_pkey: no port %u with index %d", port_num, index);
}

int query_pkey_index(struct ibv_context *ibv, uint8_t port_num, __be16 pkey)
{
	bool locked;
	struct sim_port *port = port_of(enter(ibv, &locked), port_num);
	int index = -1;

	for (int i = 0; port && i < port->pkey_count && index < 0; i++)
		if (port->pkeys[i] == be16toh(pkey))
			index = i;
	leave(ibv, locked);
	return index >= 0 ? index
			  : say_minus(ENOENT, "get_pkey_index: port %u has no P_Key 0x%x", port_num,
				      be16toh(pkey));
}

/* --- time and addresses --- */

struct clock_question {
	const struct vb_sim *world;
	uint64_t last_ns;
};

static bool clock_moved(const void *arg)
{
	const struct clock_question *question = arg;

	return sim_engine_now_ns(question->world->engine) != question->last_ns;
}

/*
 * The clock in nanoseconds all in tv_nsec: rdma-core providers/mlx5/verbs.c, mlx5_query_rt_values.
 */
int query_rt_values(struct ibv_context *ibv, struct ibv_values_ex *values)
{
	bool locked;
	struct context *context = enter(ibv, &locked);
	uint32_t asked = values->comp_mask;

	if (context && asked & IBV_VALUES_MASK_RAW_CLOCK) {
		struct vb_sim *world = context->world;
		struct answer *last = &context->clock_answer;
		struct clock_question question = {.world = world, .last_ns = last->digest};

		driver_catch_up(world);
		if (last->given && !clock_moved(&question))
			driver_step(world, clock_moved, &question);
		*last = (struct answer){.digest = sim_engine_now_ns(world->engine), .given = true};
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)last->digest;
	}
	if (context)
		values->comp_mask = asked & IBV_VALUES_MASK_RAW_CLOCK;
	leave(ibv, locked);
	return context ? 0 : say(EINVAL, "query_rt_values_ex: the context is closed");
}

int query_eth_l2(struct ibv_context *ibv, struct ibv_ah_attr *attr,
		 uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	bool locked;
	struct context *context = enter(ibv, &locked);
	struct sim_path path;
	int err = context ? sim_path_resolve(context->device->engine, attr, &path) : EINVAL;

	if (!err && path.route.infiniband)
		err = EINVAL;
	if (!err && !path.dest)
		err = EHOSTUNREACH;
	if (!err) {
		memcpy(eth_mac, path.dest->mac, ETHERNET_LL_SIZE);
		if (vid)
			*vid = 0xffff;
	}
	leave(ibv, locked);
	if (err)
		errno = say(err, "resolve_eth_l2_from_gid: nobody has that GID");
	return -err;
}
