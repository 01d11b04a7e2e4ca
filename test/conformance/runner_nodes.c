/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"
#include "test/peer/peer.h"

#include <arpa/inet.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

static const struct {
	unsigned int need;
	const char *reason;
} needs[] = {
	{VT_NEEDS_SIM, "the test needs calls that only the simulator has"},
	{VT_NEEDS_FAULTS, "the backend has no fault rules"},
	{VT_NEEDS_VIRTUAL_CLOCK, "the clock is not virtual"},
	{VT_NEEDS_TWO_DEVICES, "A and B are the same device"},
	{VT_NEEDS_ATOMICS, "the device has no atomics (atomic_cap)"},
	{VT_NEEDS_SRQ, "the device has no SRQ (max_srq)"},
	{VT_NEEDS_ETHERNET, "the ports' link layer is not Ethernet"},
	{VT_NEEDS_INFINIBAND, "the ports' link layer is not InfiniBand"},
	{VT_NEEDS_MTU_1024, "the ports' active MTU is below 1024"},
	{VT_NEEDS_GROUPS, "the wire between A and B carries no multicasts"},
	{VT_NEEDS_MANAGER, "B's process has a connection manager of its own"},
	{VT_NEEDS_SAME_MANAGER,
	 "the connection managers of A and B are of different kinds, or in one process"},
};

/* Returns 0 for a GID that cannot be used; of the others, the test takes the highest. */
static int gid_worth(const struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff}, none[16];

	if (!memcmp(entry->gid.raw, none, 16))
		return 0;
	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 1;
	if (!memcmp(entry->gid.raw, mapped, sizeof(mapped)))
		return 4;
	return entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80 ? 2 : 3;
}

static void choose_gid(struct vt_node *node)
{
	struct ibv_gid_entry entry;
	int best = 0, worth;

	for (int i = 0; i < node->port_attr.gid_tbl_len; i++) {
		if (vb_query_gid_ex(node->ctx, node->port, i, &entry, 0, sizeof(entry)))
			continue;
		worth = gid_worth(&entry);
		if (worth > best) {
			best = worth;
			node->gid_index = i;
			node->gid = entry.gid;
		}
	}
}

void vt_node_choose(struct vt_node *node)
{
	const int index = vb_get_pkey_index(node->ctx, node->port, htons(0xffff));

	node->pkey_index = index > 0 ? (uint16_t)index : 0;
	choose_gid(node);
}

static void open_node(struct vt *t, struct vt_node *node, const char *backend, const char *name,
		      uint8_t port)
{
	struct ibv_device **list = VT_PTR(t, vb_get_device_list(backend, NULL));
	struct ibv_device *device = vt_device_named(list, name);

	node->ctx = device ? vb_open_device(device) : NULL;
	vb_free_device_list(list);
	if (!node->ctx)
		VT_FAIL(t, "device %s cannot be opened: %s", name, vb_last_error());
	node->port = port;
	VT_OK(t, vb_query_device(node->ctx, &node->device_attr));
	VT_OK(t, vb_query_port(node->ctx, port, &node->port_attr, sizeof(node->port_attr)));
	vt_node_choose(node);
}

static unsigned int find_out(const struct vt *t, const struct vt_job *job)
{
	const struct vt_node *a = &t->a, *b = &t->b;
	bool sim = vt_has_world(job->options);
	unsigned int have = 0;

	if (sim)
		have |= VT_NEEDS_SIM | VT_NEEDS_FAULTS;
	if (sim && job->options->sim->clock == VB_SIM_CLOCK_VIRTUAL)
		have |= VT_NEEDS_VIRTUAL_CLOCK;
	if (!job->options->two || !job->options->two->without_groups)
		have |= VT_NEEDS_GROUPS;
	if (!job->options->two)
		have |= VT_NEEDS_MANAGER | VT_NEEDS_SAME_MANAGER;
	else if (!job->options->two->both &&
		 strcmp(job->options->two->backend, job->options->backend) == 0)
		have |= VT_NEEDS_SAME_MANAGER;
	if (strcmp(job->place->device, job->place->peer_device) != 0)
		have |= VT_NEEDS_TWO_DEVICES;
	if (a->device_attr.atomic_cap != IBV_ATOMIC_NONE &&
	    b->device_attr.atomic_cap != IBV_ATOMIC_NONE)
		have |= VT_NEEDS_ATOMICS;
	if (a->device_attr.max_srq && b->device_attr.max_srq)
		have |= VT_NEEDS_SRQ;
	if (a->port_attr.active_mtu >= IBV_MTU_1024 && b->port_attr.active_mtu >= IBV_MTU_1024)
		have |= VT_NEEDS_MTU_1024;
	if (a->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET &&
	    b->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET)
		have |= VT_NEEDS_ETHERNET;
	if (a->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND &&
	    b->port_attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
		have |= VT_NEEDS_INFINIBAND;
	return have;
}

void vt_open_nodes(struct vt *t, const struct vt_job *job)
{
	const struct vt_options *options = job->options;

	open_node(t, &t->a, vt_backend_a(options), job->place->device, job->place->port);
	open_node(t, &t->b, vt_backend_b(options), job->place->peer_device, job->place->peer_port);
	t->have = find_out(t, job);
}

void vt_need(struct vt *t, unsigned int wanted)
{
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if (wanted & needs[i].need & ~t->have)
			VT_SKIP(t, "%s", needs[i].reason);
}

static void judge_objects(struct vt *t, const char *when, struct vb_sim_objects left)
{
	if (left.pds || left.cqs || left.qps || left.srqs || left.mrs || left.ahs ||
	    left.channels) {
		t->run->result->failures++;
		vt_find(t->run->result, "objects are left", when);
		vt_result_line(t->run->result,
			       "%s there are still %u PDs, %u CQs, %u QPs, %u SRQs, %u MRs, "
			       "%u AHs, %u channels",
			       when, left.pds, left.cqs, left.qps, left.srqs, left.mrs, left.ahs,
			       left.channels);
	}
}

static void count_objects(struct vt *t, const struct vt_job *job, const char *when)
{
	struct vb_sim_objects left = {0};

	if (vt_simulated(job->options)) {
		vb_sim_count_objects(NULL, &left);
		judge_objects(t, when, left);
	}
	if (job->options->two) {
		peer_count_objects(&left);
		judge_objects(t, when, left);
	}
}

void vt_close_nodes(struct vt *t, const struct vt_job *job)
{
	count_objects(t, job, "at the test's end");
	if (t->b.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->b.ctx));
	if (t->a.ctx)
		VT_EXPECT_OK(t, vb_close_device(t->a.ctx));
	count_objects(t, job, "after its devices were closed");
}
