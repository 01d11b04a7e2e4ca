/* SPDX-License-Identifier: MIT */
/*
 * A program whose log is checked: it connects two devices, sends three messages and writes one, makes
 * two mistakes, and prints a line for each verb and completion. It is built twice: with ibv_* for the
 * drop-in, and with vb_* (PINGPONG_VB), where its arguments are a capture file and a log.
 *
 *	verb DEVICE NAME
 *	completion DEVICE WR_ID STATUS
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef PINGPONG_VB
#include <verbena/log.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define V(name)			  vb_##name
#define QUERY_PORT(context, port) vb_query_port(context, 1, port, sizeof(*(port)))
#else
#define V(name)			  ibv_##name
#define QUERY_PORT(context, port) ibv_query_port(context, 1, port)
#endif

#define BYTES  4096
#define ROUNDS 3

struct end {
	const char *name;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	char *buffer;
};

static void called(const char *device, const char *verb)
{
	printf("verb %s %s\n", device, verb);
}

static void need(int good, const char *what)
{
	if (good)
		return;
	printf("%s failed\n", what);
	exit(1);
}

/* Two devices: the first two of the list. */
static void open_both(struct end ends[2])
{
#ifdef PINGPONG_VB
	struct ibv_device **list = vb_get_device_list("sim", NULL);
#else
	struct ibv_device **list = ibv_get_device_list(NULL);
#endif

	called("-", "get_device_list");
	need(list && list[0] && list[1], "list");
	for (int i = 0; i < 2; i++) {
		ends[i].name = strdup(V(get_device_name)(list[i]));
		called(ends[i].name, "get_device_name");
		ends[i].context = V(open_device)(list[i]);
		called(ends[i].name, "open_device");
		need(ends[i].context != NULL, "open");
	}
	V(free_device_list)(list);
	called("-", "free_device_list");
}

static void furnish(struct end *end)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	end->buffer = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	end->pd = V(alloc_pd)(end->context);
	called(end->name, "alloc_pd");
	end->mr = V(reg_mr)(end->pd, end->buffer, BYTES, access);
	called(end->name, "reg_mr");
	end->cq = V(create_cq)(end->context, 16, NULL, NULL, 0);
	called(end->name, "create_cq");
	init.send_cq = init.recv_cq = end->cq;
	end->qp = V(create_qp)(end->pd, &init);
	called(end->name, "create_qp");
	need(end->mr && end->qp, "objects");
	need(!QUERY_PORT(end->context, &end->port), "query_port");
	called(end->name, "query_port");
	need(!V(query_gid)(end->context, 1, 0, &end->gid), "query_gid");
	called(end->name, "query_gid");
}

static int modify(struct end *end, struct ibv_qp_attr *attr, int mask)
{
	const int err = V(modify_qp)(end->qp, attr, mask);

	called(end->name, "modify_qp");
	return err;
}

static void connect(struct end *end, const struct end *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	need(!modify(end, &attr,
		     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 100,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .dlid = peer->port.lid,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 1}},
	};
	/* The first mistake: a mask without the QPN of the peer. */
	need(modify(end, &attr, rtr & ~IBV_QP_DEST_QPN), "RTR without QPN to fail");
	need(!modify(end, &attr, rtr), "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 1,
		.rnr_retry = 1,
		.sq_psn = 100,
		.max_rd_atomic = 1,
	};
	need(!modify(end, &attr,
		     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void post_recv(struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, BYTES, end->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!V(post_recv)(end->qp, &wr, &bad), "post_recv");
	called(end->name, "post_recv");
}

static void post_send(struct end *end, uint64_t wr_id, uint32_t length, const struct end *target,
		      uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer, length, end->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = wr_id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = target ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (target) {
		wr.wr.rdma.remote_addr = (uintptr_t)target->buffer;
		wr.wr.rdma.rkey = rkey;
	}
	need(!V(post_send)(end->qp, &wr, &bad), "post_send");
	called(end->name, "post_send");
}

static void poll(struct end *end)
{
	struct ibv_wc wc;
	int found;

	do
		found = V(poll_cq)(end->cq, 1, &wc);
	while (!found);
	need(found == 1, "poll");
	printf("completion %s 0x%llx %d\n", end->name, (unsigned long long)wc.wr_id, wc.status);
}

static void leave(struct end *end)
{
	need(!V(destroy_qp)(end->qp), "destroy_qp");
	called(end->name, "destroy_qp");
	need(!V(destroy_cq)(end->cq), "destroy_cq");
	called(end->name, "destroy_cq");
	need(!V(dereg_mr)(end->mr), "dereg_mr");
	called(end->name, "dereg_mr");
	need(!V(dealloc_pd)(end->pd), "dealloc_pd");
	called(end->name, "dealloc_pd");
	need(!V(close_device)(end->context), "close_device");
	called(end->name, "close_device");
}

int main(int argc, char **argv)
{
	struct end ends[2] = {0};

#ifdef PINGPONG_VB
	if (argc > 1)
		need(!vb_sim_trace_open(NULL, argv[1]), "trace");
	if (argc > 2)
		need(!vb_log_open(argv[2]), "log");
#endif
	open_both(ends);
	furnish(&ends[0]);
	furnish(&ends[1]);
	connect(&ends[0], &ends[1]);
	connect(&ends[1], &ends[0]);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		post_recv(&ends[1], 100 + i);
		post_send(&ends[0], i, 600, NULL, 0);
		poll(&ends[0]);
		poll(&ends[1]);
	}
	post_send(&ends[0], UINT64_MAX, 100, &ends[1], ends[1].mr->rkey);
	poll(&ends[0]);
	/* The second mistake: a key that no MR has. */
	post_send(&ends[0], 50, 100, &ends[1], ends[1].mr->rkey ^ 0x100);
	poll(&ends[0]);
	leave(&ends[0]);
	leave(&ends[1]);
#ifdef PINGPONG_VB
	need(!vb_log_close(), "log_close");
#endif
	return 0;
}
