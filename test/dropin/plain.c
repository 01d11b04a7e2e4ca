/* SPDX-License-Identifier: MIT */
/* A program that knows libibverbs only: RC with an SRQ and UD, event-driven, in one process. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(what) ((what) ? (void)0 : (fprintf(stderr, "%s\n", #what), exit(1)))

static char memory[256] = "hello";
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_ah_attr self = {.is_global = 1, .port_num = 1, .grh.hop_limit = 1};

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = type, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};
	int rc = type == IBV_QPT_RC;

	NEED(qp);
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (rc ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY)));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = qp->qp_num,
				    .ah_attr = self};
	NEED(!ibv_modify_qp(
		qp, &attr,
		IBV_QP_STATE | (rc ? IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
				   : 0)));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7};
	NEED(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN |
				    (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_MAX_QP_RD_ATOMIC
					: 0)));
	return qp;
}

/*
 * Sends 64 bytes to itself and sleeps until both ends complete. @extra is 40 for UD, for the GRH.
 */
static void exchange(struct ibv_qp *qp, struct ibv_ah *ah, struct ibv_comp_channel *channel)
{
	struct ibv_sge from = {(uintptr_t)memory, 64, mr->lkey}, to = from;
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1, .sg_list = &to, .num_sge = 1};
	struct ibv_send_wr *bad, send = {.wr_id = 2,
					 .sg_list = &from,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	int done = 0, extra = ah ? 40 : 0, count;
	struct ibv_wc wc;
	void *context;

	to.addr += 64;
	to.length += extra;
	if (ah) {
		send.wr.ud.ah = ah;
		send.wr.ud.remote_qpn = qp->qp_num;
		send.wr.ud.remote_qkey = 7;
	}
	memset(memory + 64, 0, 128);
	NEED(!ibv_req_notify_cq(cq, 0));
	NEED(!ibv_post_srq_recv(srq, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad));
	while (done < 2) {
		NEED(!ibv_get_cq_event(channel, &cq, &context));
		ibv_ack_cq_events(cq, 1);
		NEED(!ibv_req_notify_cq(cq, 0));
		while ((count = ibv_poll_cq(cq, 1, &wc)) > 0) {
			NEED(wc.status == IBV_WC_SUCCESS);
			done++;
		}
		NEED(!count);
	}
	NEED(!memcmp(memory, memory + 64 + extra, 64));
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_comp_channel *channel;
	struct ibv_port_attr port;
	struct ibv_ah *ah;
	struct ibv_qp *rc, *ud;

	NEED(context);
	ibv_free_device_list(list);
	NEED(!ibv_query_gid(context, 1, 0, &self.grh.dgid) && !ibv_query_port(context, 1, &port));
	self.dlid = port.lid;
	NEED(channel = ibv_create_comp_channel(context));
	NEED(pd = ibv_alloc_pd(context));
	NEED(mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE));
	NEED(cq = ibv_create_cq(context, 8, NULL, channel, 0));
	NEED(srq = ibv_create_srq(pd, &attr));
	NEED(ah = ibv_create_ah(pd, &self));
	exchange(rc = make_qp(IBV_QPT_RC), NULL, channel);
	exchange(ud = make_qp(IBV_QPT_UD), ah, channel);
	NEED(!ibv_destroy_qp(rc) && !ibv_destroy_qp(ud) && !ibv_destroy_ah(ah));
	NEED(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
	NEED(!ibv_destroy_comp_channel(channel) && !ibv_dealloc_pd(pd));
	NEED(!ibv_close_device(context));
	puts("RC, UD, SRQ and events");
	return 0;
}
