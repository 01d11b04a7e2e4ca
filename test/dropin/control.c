/* SPDX-License-Identifier: MIT */
/*
 * A user's own test: it calls the verbs of libibverbs and the simulator's control API. A fault rule
 * of the control API loses the packets of the verbs, so both use one world.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "control: %s\n", what);
	exit(1);
}

static struct ibv_qp *connect_to_itself(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr create = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp = ibv_create_qp(pd, &create);
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 7};

	need(qp && !ibv_query_gid(pd->context, 1, 0, &rtr.ah_attr.grh.dgid), "no QP, or no GID");
	rtr.dest_qp_num = qp->qp_num;
	need(!ibv_modify_qp(qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	need(!ibv_modify_qp(qp, &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	need(!ibv_modify_qp(qp, &rts,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
	return qp;
}

static void send_one(struct ibv_qp *qp, struct ibv_cq *cq)
{
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1};
	struct ibv_send_wr *bad_send,
		send = {.wr_id = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;

	need(!ibv_post_recv(qp, &recv, &bad_recv) && !ibv_post_send(qp, &send, &bad_send), "post");
	for (int done = 0; done < 2;) {
		int count = ibv_poll_cq(cq, 1, &wc);

		need(count >= 0 && (!count || wc.status == IBV_WC_SUCCESS), "a completion failed");
		done += count;
	}
}

int main(void)
{
	const struct vb_fault_rule drop = {.action = VB_FAULT_DROP, .count = 1};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list ? ibv_open_device(list[0]) : NULL;
	struct vb_sim_counters counters;
	struct ibv_async_event event;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	need(context != NULL, "no device");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	need(pd && cq, "no PD, or no CQ");
	need(!vb_fault_add(NULL, &drop, NULL), "vb_fault_add");
	send_one(connect_to_itself(pd, cq), cq);
	need(!vb_sim_counters(context, &counters), "vb_sim_counters");
	need(counters.lost_packets == 1 && counters.retransmitted_packets >= 1,
	     "the packet that was to be lost arrived");
	need(!vb_sim_port_state(context, 1, false), "vb_sim_port_state");
	need(!ibv_get_async_event(context, &event) && event.event_type == IBV_EVENT_PORT_ERR,
	     "no event of the port");
	ibv_ack_async_event(&event);
	puts("one world");
	return 0;
}
