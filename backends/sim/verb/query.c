/* SPDX-License-Identifier: MIT */
/* Queries of devices, ports and addresses. */
#include "backends/sim/verb/verbs.h"

#include <string.h>

/* IB_UVERBS_DEVICE_ATOMIC_WRITE of Linux include/uapi/rdma/ib_user_verbs.h, since 6.2 */
#define DEVICE_ATOMIC_WRITE (UINT64_C(1) << 40)

/* The caller holds the world, as in all of these. NULL if the context is closed. */
static struct sim_port *port_of(struct ibv_context *context, unsigned int number)
{
	if (!context_live(context_of(context)))
		return NULL;
	return sim_device_port(context_of(context)->device->engine, number);
}

/* Says why port_of() returned NULL. */
static int refuse_port(const char *verb, const struct context *context, unsigned int number)
{
	const struct device *device = context->device;

	if (!context_live(context))
		return refuse_plainly(verb, VB_WHY_CONTEXT_CLOSED);
	return refuse_why(verb, (struct vb_why){VB_WHY_PORT_NONE,
						{number, device->engine->port_count},
						.text = device->ibv.name});
}

/* The same for the verbs of P_Keys, with their errno. */
static int refuse_pkey_port(const char *verb, const struct context *context, unsigned int number)
{
	const struct device *device = context->device;

	return refuse_why(
		verb, (struct vb_why){context_live(context) ? VB_WHY_PKEY_PORT : VB_WHY_PKEY_CLOSED,
				      {number, device->engine->port_count},
				      .text = device->ibv.name});
}

static int refuse_gid_index(const char *verb, const struct sim_port *port, uint64_t index)
{
	return refuse_why(verb, (struct vb_why){VB_WHY_GID_INDEX,
						{index, port->number,
						 (uint64_t)port->device->profile->gid_table}});
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

int verb_query_device(struct ibv_context *ibv, struct ibv_device_attr *attr)
{
	HOLD hold = context_hold(ibv);

	if (!context_live(context_of(ibv)))
		return refuse_plainly("query_device", VB_WHY_CONTEXT_CLOSED);
	sim_device_query(context_of(ibv)->device->engine, attr);
	return 0;
}

/*
 * The fields beyond ibv_device_attr. The simulator has no offloads, receive side scaling, pacing or
 * tag matching. All memory is on demand, however it was registered; atomics have 8 bytes.
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
	/* pci_atomic_caps stays 0. */
	if (lacks & SIM_LACKS_ON_DEMAND)
		return;
	all->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	all->odp_caps.per_transport_caps.rc_odp_caps = reliable;
	all->odp_caps.per_transport_caps.uc_odp_caps = unreliable;
	all->odp_caps.per_transport_caps.ud_odp_caps = datagram;
	if (all->orig_attr.device_cap_flags & IBV_DEVICE_XRC)
		all->xrc_odp_caps = reliable;
}

int verb_query_device_ex(struct ibv_context *ibv, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	const struct sim_profile *profile = context_of(ibv)->device->engine->profile;
	struct ibv_device_attr_ex all = {0};
	int err;

	if (input && input->comp_mask)
		return refuse_why("query_device_ex",
				  (struct vb_why){VB_WHY_QUERY_INPUT, {input->comp_mask}});
	if (attr_size < sizeof(all.orig_attr))
		return refuse_why(
			"query_device_ex",
			(struct vb_why){VB_WHY_QUERY_SIZE, {attr_size, sizeof(all.orig_attr)}});
	err = verb_query_device(ibv, &all.orig_attr);
	if (err)
		return err;
	all.device_cap_flags_ex = all.orig_attr.device_cap_flags;
	if (profile->atomic_write)
		all.device_cap_flags_ex |= DEVICE_ATOMIC_WRITE;
	all.phys_port_cnt_ex = all.orig_attr.phys_port_cnt;
	fill_capabilities(&all, profile->lacks);
	all.cq_mod_caps = profile->moderation;
	memset(attr, 0, attr_size);
	memcpy(attr, &all, smaller(attr_size, sizeof(all)));
	return 0;
}

/* --- queries that wait --- */

static bool answer_differs(const void *arg)
{
	const struct question *question = arg;

	return question->digest(question->of) != question->last->digest;
}

void verb_ask(struct driver *driver, const struct question *question)
{
	struct answer *last = question->last;

	if (last->given && !answer_differs(question))
		driver_step(driver, answer_differs, question);
	*last = (struct answer){.digest = question->digest(question->of), .given = true};
}

/* --- ports --- */

static uint64_t digest_port(const void *port)
{
	struct ibv_port_attr attr = {0};
	const uint8_t *bytes = (const uint8_t *)&attr;
	uint64_t digest = 0xcbf29ce484222325; /* FNV-1a */

	sim_port_query(port, &attr);
	for (size_t i = 0; i < sizeof(attr); i++)
		digest = (digest ^ bytes[i]) * 0x100000001b3;
	return digest;
}

int verb_query_port(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr,
		    size_t attr_size)
{
	HOLD hold = context_hold(ibv);
	struct sim_port *port = port_of(ibv, port_num);
	struct ibv_port_attr all = {0};
	struct answer *last;

	if (!port)
		return refuse_port("query_port", context_of(ibv), port_num);
	last = &context_of(ibv)->port_answer[port->number - 1];
	verb_ask(&hold.world->driver, &(struct question){digest_port, port, last});
	sim_port_query(port, &all);
	memset(attr, 0, attr_size);
	memcpy(attr, &all, smaller(attr_size, sizeof(all)));
	return 0;
}

/* The structure of these programs ends before port_cap_flags2. */
int verb_query_port_compat(struct ibv_context *ibv, uint8_t port_num,
			   struct _compat_ibv_port_attr *attr)
{
	return verb_query_port(ibv, port_num, (struct ibv_port_attr *)attr,
			       offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* --- GIDs and P_Keys --- */

int verb_query_gid(struct ibv_context *ibv, uint8_t port_num, int index, union ibv_gid *gid)
{
	HOLD hold = context_hold(ibv);
	struct sim_port *port = port_of(ibv, port_num);

	if (!port)
		return minus_errno(refuse_port("query_gid", context_of(ibv), port_num));
	if (index < 0 || index >= port->device->profile->gid_table)
		return minus_errno(refuse_gid_index("query_gid", port, (uint64_t)index));
	memset(gid, 0, sizeof(*gid));
	if (index < port->gid_count)
		*gid = port->gids[index];
	return 0;
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

/* An entry is empty beyond the table's end, or after vb_sim_set_gid() with zeros. */
static bool is_empty(const struct sim_port *port, unsigned int index)
{
	static const union ibv_gid zeros;

	return index >= port->gid_count || memcmp(&port->gids[index], &zeros, sizeof(zeros)) == 0;
}

int verb_query_gid_ex(struct ibv_context *ibv, uint32_t port_num, uint32_t gid_index,
		      struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	HOLD hold = context_hold(ibv);
	struct sim_port *port = port_of(ibv, port_num);

	if (!port)
		return refuse_port("query_gid_ex", context_of(ibv), port_num);
	if (flags)
		return refuse_why("query_gid_ex", (struct vb_why){VB_WHY_GID_FLAGS, {flags}});
	if (gid_index >= port->device->profile->gid_table)
		return refuse_gid_index("query_gid_ex", port, gid_index);
	if (is_empty(port, gid_index))
		return refuse_why("query_gid_ex",
				  (struct vb_why){VB_WHY_PATH_SGID_EMPTY, {gid_index, port_num}});
	fill_entry(port, gid_index, entry, entry_size);
	return 0;
}

ssize_t verb_query_gid_table(struct ibv_context *ibv, struct ibv_gid_entry *entries,
			     size_t max_entries, uint32_t flags, size_t entry_size)
{
	HOLD hold = context_hold(ibv);
	bool live = context_live(context_of(ibv));
	const struct sim_device *device = context_of(ibv)->device->engine;
	size_t count = 0;

	for (unsigned int p = 0; live && p < device->port_count; p++)
		for (unsigned int i = 0; i < device->ports[p].gid_count; i++) {
			if (is_empty(&device->ports[p], i))
				continue;
			if (count < max_entries && !flags)
				fill_entry(&device->ports[p], i,
					   (char *)entries + count * entry_size, entry_size);
			count++;
		}
	if (!live)
		return -refuse_plainly("query_gid_table", VB_WHY_CONTEXT_CLOSED);
	if (flags)
		return -refuse_why("query_gid_table", (struct vb_why){VB_WHY_GID_FLAGS, {flags}});
	if (count > max_entries)
		return -refuse_why("query_gid_table",
				   (struct vb_why){VB_WHY_GID_ENTRIES, {max_entries, count}});
	return (ssize_t)count;
}

/* libibverbs reads one file for each index: without the file, the error is ENOENT. */
int verb_query_pkey(struct ibv_context *ibv, uint8_t port_num, int index, __be16 *pkey)
{
	HOLD hold = context_hold(ibv);
	struct sim_port *port = port_of(ibv, port_num);

	if (!port)
		return minus_errno(refuse_pkey_port("query_pkey", context_of(ibv), port_num));
	if (index < 0 || index >= port->pkey_count)
		return minus_errno(
			refuse_why("query_pkey",
				   (struct vb_why){VB_WHY_PKEY_INDEX,
						   {(uint64_t)index, port_num, port->pkey_count}}));
	*pkey = htobe16(port->pkeys[index]);
	return 0;
}

int verb_get_pkey_index(struct ibv_context *ibv, uint8_t port_num, __be16 pkey)
{
	HOLD hold = context_hold(ibv);
	struct sim_port *port = port_of(ibv, port_num);

	for (int i = 0; port && i < port->pkey_count; i++)
		if (port->pkeys[i] == be16toh(pkey))
			return i;
	if (!port)
		return minus_errno(refuse_pkey_port("get_pkey_index", context_of(ibv), port_num));
	return minus_errno(refuse_why(
		"get_pkey_index", (struct vb_why){VB_WHY_PKEY_NONE, {port_num, be16toh(pkey)}}));
}

/* --- time and addresses --- */

static uint64_t digest_clock(const void *engine)
{
	return sim_engine_now_ns(engine);
}

/* All nanoseconds are in tv_nsec: rdma-core providers/mlx5/verbs.c, mlx5_query_rt_values. */
int verb_query_rt_values_ex(struct ibv_context *ibv, struct ibv_values_ex *values)
{
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct driver *driver = &hold.world->driver;
	struct answer *last = &context->clock_answer;
	int err = verb_lacks(context, SIM_LACKS_TIMESTAMPS, "query_rt_values_ex");

	if (err)
		return err;
	if (!context_live(context))
		return refuse_plainly("query_rt_values_ex", VB_WHY_CONTEXT_CLOSED);
	values->comp_mask &= IBV_VALUES_MASK_RAW_CLOCK;
	if (!values->comp_mask)
		return 0;
	driver_catch_up(driver);
	verb_ask(driver, &(struct question){digest_clock, driver->engine, last});
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = (long)last->digest;
	return 0;
}

static struct vb_why gid_of_nobody(const struct device *device, const union ibv_gid *gid)
{
	struct vb_why why = {.reason = VB_WHY_GID_OF_NOBODY, .text = device->ibv.name};

	memcpy(why.values, gid, sizeof(*gid));
	return why;
}

int verb_resolve_eth_l2_from_gid(struct ibv_context *ibv, struct ibv_ah_attr *attr,
				 uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	const char *const verb = "resolve_eth_l2_from_gid";
	HOLD hold = context_hold(ibv);
	struct context *context = context_of(ibv);
	struct sim_path path;
	int err;

	if (!context_live(context))
		return -refuse_plainly(verb, VB_WHY_CONTEXT_CLOSED);
	err = sim_path_resolve(context->device->engine, attr, &path);
	if (err)
		return -say_refused(hold.world, verb, err);
	if (path.route.infiniband)
		return -refuse_why(verb,
				   (struct vb_why){VB_WHY_MAC_OF_INFINIBAND, {attr->port_num}});
	sim_fabric_find_way(hold.world->driver.engine, &path);
	if (!path.dest && !path.multicast && !path.beyond)
		return -refuse_why(verb, gid_of_nobody(context->device, &attr->grh.dgid));
	memcpy(eth_mac, path.route.dest_mac, ETHERNET_LL_SIZE);
	if (vid)
		*vid = 0xffff;
	return 0;
}
