/* SPDX-License-Identifier: MIT */
/*
 * For the programs of this folder, which know libibverbs only: two connected QPs of two devices, and a
 * table of modes. Each mode that breaks a rule has a twin that keeps it, of the same name with "-kept"
 * behind it. The names in the comments behind the calls stand in the files of expected lines.
 */
#ifndef TEST_CHECKS_PAIR_H
#define TEST_CHECKS_PAIR_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QKEY	     0x11111111
#define MEMORY_BYTES 65536 /* of each end */
#define DEPTH	     16
#define REMOTE	     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define GRH_BYTES    40

/* What a mode does differently before the ends are connected. Zero is the default. */
struct plan {
	enum ibv_qp_type type; /* RC */
	int access;	       /* of both MRs and QPs; REMOTE */
	int cqe;	       /* 4 * DEPTH */
	int events;	       /* the CQs have channels */
};

struct end {
	struct ibv_context *context;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *memory;
	int gid_index;
};

static struct end ends[2];
static struct end *const here = &ends[0], *const there = &ends[1];

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static void open_end(struct end *end, struct ibv_device *device, const struct plan *plan)
{
	struct ibv_qp_init_attr init = {
		.qp_type = plan->type ? plan->type : IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
	};
	const int cqe = plan->cqe ? plan->cqe : 4 * DEPTH;

	end->memory = aligned_alloc(4096, MEMORY_BYTES);
	memset(end->memory, 0, MEMORY_BYTES);
	end->context = ibv_open_device(device);
	need(end->context != NULL, "no device");
	need(!ibv_query_port(end->context, 1, &end->port), "no port");
	end->gid_index = end->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	need(!ibv_query_gid(end->context, 1, end->gid_index, &end->gid), "no GID");
	end->pd = ibv_alloc_pd(end->context);
	end->mr = ibv_reg_mr(end->pd, end->memory, MEMORY_BYTES, /* @register-end */
			     plan->access ? plan->access : REMOTE);
	if (plan->events)
		end->channel = ibv_create_comp_channel(end->context);
	end->cq = ibv_create_cq(end->context, cqe, NULL, end->channel, 0); /* @create-cq */
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &init);
	need(end->pd && end->mr && end->cq && end->qp, "no objects");
}

static struct ibv_ah_attr path_to(const struct end *peer)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.dlid = peer->port.lid,
		.grh = {.dgid = peer->gid, .sgid_index = (uint8_t)peer->gid_index, .hop_limit = 64},
	};
}

static void to_init(struct end *end, const struct plan *plan)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = (unsigned int)(plan->access ? plan->access : REMOTE),
	};
	const int key = end->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | key),
	     "INIT");
}

static struct ibv_qp_attr rtr_attr(const struct end *peer)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.rq_psn = 100,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = path_to(peer),
	};
}

static struct ibv_qp_attr rts_attr(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 100,
		.timeout = 10,
		.retry_cnt = 2,
		.rnr_retry = 2,
		.max_rd_atomic = 1,
	};
}

#define RTR_MASK                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                               \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static void to_rtr(struct end *end, struct ibv_qp_attr *attr)
{
	const int mask = end->qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE : RTR_MASK;

	need(!ibv_modify_qp(end->qp, attr, mask), "RTR"); /* @rtr */
}

static void to_rts(struct end *end, struct ibv_qp_attr *attr)
{
	const int mask = end->qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE | IBV_QP_SQ_PSN : RTS_MASK;

	need(!ibv_modify_qp(end->qp, attr, mask), "RTS"); /* @rts */
}

static void open_ends(const struct plan *plan)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0] && list[1], "no two devices");
	for (int i = 0; i < 2; i++)
		open_end(&ends[i], list[i], plan);
	ibv_free_device_list(list);
}

static __attribute__((unused)) void connect_ends(const struct plan *plan)
{
	open_ends(plan);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

/* Destroys what connect_ends() has made. */
static __attribute__((unused)) void close_ends(void)
{
	for (int i = 0; i < 2; i++) {
		if (ends[i].qp)
			ibv_destroy_qp(ends[i].qp); /* @destroy-qp */
		ibv_destroy_cq(ends[i].cq);
		if (ends[i].mr)
			ibv_dereg_mr(ends[i].mr);
		ibv_dealloc_pd(ends[i].pd);
		if (ends[i].channel)
			ibv_destroy_comp_channel(ends[i].channel);
		ibv_close_device(ends[i].context);
		free(ends[i].memory);
	}
}

static struct ibv_sge piece(const struct end *end, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)end->memory + offset, length, end->mr->lkey};
}

/* Posts a signalled work request of 64 bytes; an RDMA operation is for the peer's memory. */
static __attribute__((unused)) void post(struct end *end, enum ibv_wr_opcode opcode, uint64_t wr_id)
{
	const struct end *peer = end == here ? there : here;
	struct ibv_sge sge = piece(end, 0, 64);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)peer->memory, peer->mr->rkey}};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(end->qp, &wr, &bad), "send"); /* @post */
}

/* Posts a receive of 64 bytes into the second half of the memory. */
static __attribute__((unused)) void receive(struct end *end, uint64_t wr_id)
{
	struct ibv_sge sge = piece(end, MEMORY_BYTES / 2, 64);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(end->qp, &wr, &bad), "receive"); /* @receive */
}

/* Polls one completion, and returns it. */
static __attribute__((unused)) struct ibv_wc wait_for(struct end *end)
{
	struct ibv_wc wc = {0};
	int found = 0;

	while (!found)
		found = ibv_poll_cq(end->cq, 1, &wc); /* @poll */
	need(found > 0, "poll");
	return wc;
}

struct mode {
	const char *name;
	void (*run)(void);
};

/* Runs the mode that the argument names; without one, prints the modes. */
static int run_mode(int argc, char **argv, const struct mode *modes)
{
	for (const struct mode *mode = modes; mode->name; mode++) {
		if (argc < 2)
			puts(mode->name);
		else if (!strcmp(argv[1], mode->name)) {
			mode->run();
			return 0;
		}
	}
	return argc < 2 ? 0 : 1;
}

#endif
