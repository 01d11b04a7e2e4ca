/* SPDX-License-Identifier: MIT */
/*
 * A test that is explored: node A sends a message to node B. The QP has the ack timeout 0, with which the
 * requester waits for ever, so the loss of a packet is never repaired. With the argument "right" it has
 * another. docs/exploration.md tells the story.
 */
#include <stdio.h>
#include <string.h>
#include <verbena/connect.h>
#include <verbena/explore.h>
#include <verbena/verbs.h>

#define BYTES 1024

struct node {
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	struct vb_region *region;
	struct vb_prepared_qp *prepared;
	struct vb_endpoint endpoint;
	struct ibv_qp *qp;
};

static void open_node(struct node *node, const char *name, unsigned int timeout)
{
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.timeout = timeout;
	config.path_mtu = IBV_MTU_512;
	node->device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY);
	node->pd = vb_alloc_pd(node->device->context);
	node->cq = vb_cq_open(node->device, 4, NULL);
	node->region = vb_region_alloc(node->device, node->pd, BYTES, VB_ACCESS_DEFAULT);
	node->prepared = vb_qp_prepare(node->device, node->pd, node->cq->cq, node->cq->cq, &config);
	node->endpoint = *vb_prepared_endpoint(node->prepared);
}

static void close_node(struct node *node)
{
	vb_destroy_qp(node->qp);
	vb_region_free(node->region);
	vb_cq_close(node->cq);
	vb_dealloc_pd(node->pd);
	vb_device_close(node->device);
}

/* Waits for one completion. */
static int wait_for(struct node *node)
{
	struct ibv_wc wc;

	while (!vb_poll_cq(node->cq->cq, 1, &wc))
		;
	if (wc.status != IBV_WC_SUCCESS)
		return vb_explore_wrong("the status is %s", vb_wc_status_str(wc.status));
	return VB_ENDED_WELL;
}

static int send_message(struct node *a, struct node *b)
{
	struct ibv_sge from = {(uintptr_t)a->region->addr, BYTES, a->region->mr->lkey};
	struct ibv_sge into = {(uintptr_t)b->region->addr, BYTES, b->region->mr->lkey};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &into, .num_sge = 1};
	struct ibv_send_wr *bad_send, send = {.sg_list = &from,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};

	memset(a->region->addr, 0x5a, BYTES);
	if (vb_post_recv(b->qp, &recv, &bad_recv) || vb_post_send(a->qp, &send, &bad_send))
		return VB_ENDED_REPORTED;
	if (wait_for(a) || wait_for(b))
		return VB_ENDED_WRONG;
	if (memcmp(a->region->addr, b->region->addr, BYTES) != 0)
		return vb_explore_wrong("B has received other bytes");
	return VB_ENDED_WELL;
}

/* One run: it makes all that it uses, and ends it. */
static int transfer(void *arg)
{
	const unsigned int timeout = *(const unsigned int *)arg;
	struct node a, b;
	int end;

	open_node(&a, "sim0", timeout);
	open_node(&b, "sim1", timeout);
	a.qp = vb_handshake(a.prepared, &b.endpoint);
	b.qp = vb_handshake(b.prepared, &a.endpoint);
	end = send_message(&a, &b);
	close_node(&a);
	close_node(&b);
	return end;
}

int main(int argc, char **argv)
{
	unsigned int timeout = argc > 1 && !strcmp(argv[1], "right") ? 14 : 0;
	const struct vb_explore explore = {
		.name = "transfer", .test = transfer, .arg = &timeout, .pairs_max = 1000};

	return vb_explore(&explore, NULL) ? 1 : 0;
}
