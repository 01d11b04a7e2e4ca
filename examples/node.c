/* SPDX-License-Identifier: MIT */
#include "node.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define FIRST_PSN      100
#define REMOTE_BASE    0x10000 /* the address of the first byte of the buffer in its MR */
#define TIMEOUT_CODE   8       /* 4.096 us * 2^8, about 1 ms: man ibv_modify_qp(3) */
#define RNR_TIMER_CODE 4       /* 0.04 ms: man ibv_modify_qp(3) */
#define POLL_MAX       16
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

void node_fail(const char *what, int err)
{
	fflush(stdout);
	fprintf(stderr, "story: %s: %s (%s)\n", what, strerror(err), vb_last_error());
	exit(1);
}

static void check(const char *what, int err)
{
	if (err)
		node_fail(what, err);
}

static void *need(const char *what, void *object)
{
	if (!object)
		node_fail(what, errno);
	return object;
}

static void note(struct node *node, enum ladder_mood mood, const char *text)
{
	ladder_note(node->ladder, vb_sim_now_ns(NULL), node->side, mood, "%s", text);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = need("device list", vb_get_device_list("sim", NULL));
	struct ibv_context *context = NULL;

	for (int i = 0; list[i]; i++)
		if (strcmp(vb_get_device_name(list[i]), name) == 0)
			context = vb_open_device(list[i]);
	vb_free_device_list(list);
	return need(name, context);
}

static void do_not_block(int fd)
{
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK))
		node_fail("fcntl", errno);
}

void node_open(struct node *node, const char *name, enum ladder_side side, struct ladder *ladder)
{
	*node = (struct node){.side = side, .name = name, .ladder = ladder, .watched = true};
	node->context = open_device(name);
	do_not_block(node->context->async_fd);
	node->pd = need("PD", vb_alloc_pd(node->context));
	node->channel = need("channel", vb_create_comp_channel(node->context));
	do_not_block(node->channel->fd);
	node->mr = need("MR", vb_reg_mr_iova(node->pd, node->buffer, sizeof(node->buffer),
					     REMOTE_BASE, ACCESS));
	/* Index 0 is the link-local address, 1 the IPv4 one. */
	check("GID", vb_query_gid(node->context, 1, 1, &node->gid) ? errno : 0);
}

static void drop_qp(struct node *node)
{
	if (node->qp) {
		check("destroy QP", vb_destroy_qp(node->qp));
		check("destroy CQ", vb_destroy_cq(node->cq));
	}
}

void node_close(struct node *node)
{
	drop_qp(node);
	check("deregister MR", vb_dereg_mr(node->mr));
	check("destroy channel", vb_destroy_comp_channel(node->channel));
	check("deallocate PD", vb_dealloc_pd(node->pd));
	check("close", vb_close_device(node->context) ? errno : 0);
}

void node_make_qp(struct node *node, int cqe)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	drop_qp(node);
	node->cq = need("CQ", vb_create_cq(node->context, cqe, NULL, node->channel, 0));
	check("arm", ibv_req_notify_cq(node->cq, 0));
	init.send_cq = init.recv_cq = node->cq;
	node->qp = need("QP", vb_create_qp(node->pd, &init));
}

static void change(struct node *node, struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state before = node->qp->state;

	check("modify QP", vb_modify_qp(node->qp, attr, mask));
	ladder_note(node->ladder, vb_sim_now_ns(NULL), node->side, LADDER_PLAIN, "QP %u: %s -> %s",
		    node->qp->qp_num, vb_qp_state_str(before), vb_qp_state_str(attr->qp_state));
}

void node_to_init(struct node *node)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};

	change(node, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

void node_to_rtr(struct node *node, const struct node *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = FIRST_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER_CODE,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};

	change(node, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

void node_to_rts(struct node *node)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = FIRST_PSN,
		.timeout = TIMEOUT_CODE,
		.retry_cnt = 1,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	change(node, &attr,
	       IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

/* An SGE of the MR. Its owner, too, addresses the MR from REMOTE_BASE. */
static struct ibv_sge piece(const struct node *node, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){
		.addr = REMOTE_BASE + offset, .length = length, .lkey = node->mr->lkey};
}

void node_post_recv(struct node *node, uint64_t wr_id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = piece(node, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	ladder_note(node->ladder, vb_sim_now_ns(NULL), node->side, LADDER_PLAIN,
		    "post_recv %llu: room for %u bytes", (unsigned long long)wr_id, length);
	check("post_recv", ibv_post_recv(node->qp, &wr, &bad));
}

void node_post(struct node *node, enum ibv_wr_opcode opcode, uint64_t wr_id, uint32_t offset,
	       uint32_t length, const struct node *peer)
{
	struct ibv_sge sge = piece(node, offset, length);
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = REMOTE_BASE + offset;
		wr.wr.atomic.rkey = peer->mr->rkey;
		wr.wr.atomic.compare_add = 1;
	} else if (opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = REMOTE_BASE + offset;
		wr.wr.rdma.rkey = peer->mr->rkey;
	}
	ladder_note(node->ladder, vb_sim_now_ns(NULL), node->side, LADDER_PLAIN,
		    "post_send %llu: %s, %u bytes", (unsigned long long)wr_id,
		    vb_wr_opcode_str(opcode), length);
	check("post_send", ibv_post_send(node->qp, &wr, &bad));
}

static bool readable(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

static void note_completion(struct node *node, const struct ibv_wc *wc)
{
	char text[128];

	node->completions++;
	node->last_status = wc->status;
	if (wc->status == IBV_WC_SUCCESS)
		snprintf(text, sizeof(text), "completion %llu: %s, success",
			 (unsigned long long)wc->wr_id, vb_wc_opcode_str(wc->opcode));
	else
		snprintf(text, sizeof(text), "completion %llu: %s", (unsigned long long)wc->wr_id,
			 vb_wc_status_str(wc->status));
	note(node, wc->status == IBV_WC_SUCCESS ? LADDER_GOOD : LADDER_BAD, text);
}

/* After an event the CQ is not empty, so this poll does not move time. */
static void take_completions(struct node *node)
{
	struct ibv_wc wc[POLL_MAX];
	struct ibv_cq *cq;
	void *ignored;
	int taken;

	check("get_cq_event", vb_get_cq_event(node->channel, &cq, &ignored) ? errno : 0);
	vb_ack_cq_events(cq, 1);
	if (!node->watched)
		return;
	check("arm", ibv_req_notify_cq(cq, 0));
	taken = ibv_poll_cq(cq, POLL_MAX, wc);
	if (taken < 0)
		node_fail("poll_cq", EIO);
	for (int i = 0; i < taken; i++)
		note_completion(node, &wc[i]);
}

static void take_event(struct node *node)
{
	struct ibv_async_event event;

	check("get_async_event", vb_get_async_event(node->context, &event) ? errno : 0);
	ladder_note(node->ladder, vb_sim_now_ns(NULL), node->side,
		    event.event_type == IBV_EVENT_COMM_EST ? LADDER_PLAIN : LADDER_BAD, "event: %s",
		    vb_event_type_str(event.event_type));
	vb_ack_async_event(&event);
}

void node_look(struct node *node)
{
	while (readable(node->channel->fd))
		take_completions(node);
	while (readable(node->context->async_fd))
		take_event(node);
}
