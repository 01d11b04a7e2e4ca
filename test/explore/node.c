/* SPDX-License-Identifier: MIT */
#include "test/explore/node.h"

#include <stdio.h>
#include <string.h>
#include <verbena/explore.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define RETRIES	      6
#define RECEIVE_FIRST 101
#define LATER_NS      1000000000

/* --- the beginning and the end --- */

static bool prepare(struct node *node, unsigned int retries)
{
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	vb_qp_config_allow_remote_rw(&config);
	config.access |= IBV_ACCESS_REMOTE_ATOMIC;
	config.retry_cnt = retries;
	config.path_mtu = IBV_MTU_256;
	config.max_rd_atomic = config.max_dest_rd_atomic = 4;
	config.srq = node->srq;
	node->prepared = vb_qp_prepare(node->device, node->pd, node->cq->cq, node->cq->cq, &config);
	return node->prepared;
}

static bool open_srq(struct node *node)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};

	node->srq = vb_create_srq(node->pd, &attr);
	return node->srq;
}

static bool open_node(struct node *node, const char *name, bool with_srq, unsigned int retries)
{
	node->device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY);
	if (!node->device)
		return false;
	node->pd = vb_alloc_pd(node->device->context);
	if (!node->pd)
		return false;
	node->cq = vb_cq_open(node->device, 64, NULL);
	if (!node->cq)
		return false;
	node->region =
		vb_region_alloc(node->device, node->pd, (size_t)2 * HALF_BYTES, VB_ACCESS_DEFAULT);
	if (!node->region)
		return false;
	return (!with_srq || open_srq(node)) && prepare(node, retries);
}

static void close_node(struct node *node)
{
	if (node->qp)
		vb_destroy_qp(node->qp);
	if (node->prepared)
		vb_prepared_drop(node->prepared);
	if (node->srq)
		vb_destroy_srq(node->srq);
	if (node->region)
		vb_region_free(node->region);
	if (node->cq)
		vb_cq_close(node->cq);
	if (node->pd)
		vb_dealloc_pd(node->pd);
	if (node->device)
		vb_device_close(node->device);
}

/* The handshake ends the prepared QP. */
static bool connect_node(struct node *node, const struct vb_endpoint *peer)
{
	node->qp = vb_handshake(node->prepared, peer);
	if (node->qp)
		node->prepared = NULL;
	return node->qp;
}

static bool join(struct pair *pair)
{
	const struct vb_endpoint a = *vb_prepared_endpoint(pair->a.prepared);
	const struct vb_endpoint b = *vb_prepared_endpoint(pair->b.prepared);

	return connect_node(&pair->a, &b) && connect_node(&pair->b, &a);
}

bool pair_open(struct pair *pair, bool with_srq)
{
	return pair_open_with(pair, with_srq, RETRIES);
}

bool pair_open_with(struct pair *pair, bool with_srq, unsigned int retries)
{
	*pair = (struct pair){.a = {.device = NULL}};
	if (open_node(&pair->a, "sim0", false, retries) &&
	    open_node(&pair->b, "sim1", with_srq, retries) && join(pair))
		return true;
	pair_close(pair);
	return false;
}

void pair_close(struct pair *pair)
{
	close_node(&pair->a);
	close_node(&pair->b);
}

/* --- work requests --- */

uint8_t *node_half(const struct node *node, unsigned int half)
{
	return (uint8_t *)node->region->addr + (size_t)half * HALF_BYTES;
}

bool node_receive(struct node *node, uint64_t id, uint32_t offset, uint32_t length_bytes)
{
	struct ibv_sge sge = {(uintptr_t)node_half(node, 1) + offset, length_bytes,
			      node->region->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	return node->srq ? !vb_post_srq_recv(node->srq, &wr, &bad)
			 : !vb_post_recv(node->qp, &wr, &bad);
}

static bool is_atomic(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

bool node_post(struct node *node, const struct node *peer, struct ibv_send_wr wr, uint32_t offset,
	       uint32_t length_bytes)
{
	struct ibv_sge sge = {(uintptr_t)node_half(node, 0) + offset, length_bytes,
			      node->region->mr->lkey};
	const uint64_t address = (uintptr_t)node_half(peer, 1) + offset;
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags |= IBV_SEND_SIGNALED;
	if (is_atomic(&wr)) {
		wr.wr.atomic.remote_addr = address;
		wr.wr.atomic.rkey = peer->region->mr->rkey;
	} else {
		wr.wr.rdma.remote_addr = address;
		wr.wr.rdma.rkey = peer->region->mr->rkey;
	}
	return !vb_post_send(node->qp, &wr, &bad);
}

/* --- completions --- */

static int judge(const struct ibv_wc *wc, uint64_t *send, uint64_t *receive)
{
	uint64_t *expected = wc->wr_id < RECEIVE_FIRST ? send : receive;

	if (wc->status != IBV_WC_SUCCESS)
		return vb_explore_wrong("the work request %llu ends with the status %s",
					(unsigned long long)wc->wr_id,
					vb_wc_status_str(wc->status));
	if (wc->wr_id != *expected)
		return vb_explore_wrong("the work request %llu completes, and %llu is the next",
					(unsigned long long)wc->wr_id,
					(unsigned long long)*expected);
	++*expected;
	return VB_ENDED_WELL;
}

int node_take(struct node *node, unsigned int sends, unsigned int receives, struct ibv_wc *last)
{
	uint64_t send = 1, receive = RECEIVE_FIRST;

	while (send + receive < 1 + RECEIVE_FIRST + sends + receives) {
		struct ibv_wc wc;
		const int taken = vb_poll_cq(node->cq->cq, 1, &wc);

		if (taken < 0)
			return vb_explore_wrong("poll_cq answers %d", taken);
		if (!taken)
			continue;
		if (judge(&wc, &send, &receive) != VB_ENDED_WELL)
			return VB_ENDED_WRONG;
		if (last)
			*last = wc;
	}
	if (send != 1 + sends)
		return vb_explore_wrong("%llu sends complete, and not %u",
					(unsigned long long)send - 1, sends);
	return VB_ENDED_WELL;
}

int pair_is_quiet(struct pair *pair)
{
	struct ibv_wc wc;

	vb_sim_run(NULL, LATER_NS);
	if (vb_poll_cq(pair->a.cq->cq, 1, &wc) || vb_poll_cq(pair->b.cq->cq, 1, &wc))
		return vb_explore_wrong("work request %llu completes a second time",
					(unsigned long long)wc.wr_id);
	return VB_ENDED_WELL;
}
