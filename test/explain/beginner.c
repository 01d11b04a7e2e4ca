/* SPDX-License-Identifier: MIT */
/*
 * The mistakes of beginners, one for each mode, by a program that knows libibverbs only. It checks no
 * answer: `verbena run --explain` says what is wrong. test/explain/beginner.txt has the lines; the
 * names in the comments behind the calls stand there for the lines of this file.
 */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEMORY	     ((char *)0x200000000) /* a fixed place, so that sentences repeat */
#define MEMORY_BYTES 65536
#define HALF	     (MEMORY_BYTES / 2)
#define DEPTH	     16
#define REMOTE	     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)
#define GRH_BYTES    40

/* What a mode does differently before the ends are connected. Zero is the default. */
struct plan {
	enum ibv_qp_type type; /* RC */
	enum ibv_mtu mtu[2];   /* 1024 */
	int qp_access;	       /* of both QPs; -1: none */
	int mr_access;	       /* of the memory of end 1 */
	int cqe;
	int only_first;		 /* end 1 stays in INIT */
	int rnr_retry;		 /* 0: at once */
	uint32_t psn_off;	 /* end 0 sends from another PSN than end 1 expects */
	uint32_t qpn_off;	 /* end 0 has another destination QPN */
	int responder_resources; /* -1: none */
	uint32_t qkey_off;
};

static struct end {
	struct ibv_context *context;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	char *memory;
} ends[2];

static struct end *const here = &ends[0], *const there = &ends[1];
static int gid_index;

/* --- a pair of ends --- */

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "beginner: %s\n", what);
	exit(1);
}

static void open_end(struct end *end, struct ibv_device *device, const struct plan *plan)
{
	struct ibv_qp_init_attr init = {
		.qp_type = plan->type ? plan->type : IBV_QPT_RC,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
	};

	end->memory = MEMORY + (end == there ? HALF : 0);
	end->context = ibv_open_device(device);
	need(end->context != NULL, "no device");
	need(!ibv_query_port(end->context, 1, &end->port), "no port");
	gid_index = end->port.link_layer == IBV_LINK_LAYER_ETHERNET;
	need(!ibv_query_gid(end->context, 1, gid_index, &end->gid), "no GID");
	end->pd = ibv_alloc_pd(end->context);
	end->mr = ibv_reg_mr(end->pd, end->memory, HALF,
			     end == there && plan->mr_access ? plan->mr_access : REMOTE);
	end->cq = ibv_create_cq(end->context, plan->cqe ? plan->cqe : 4 * DEPTH, NULL, NULL, 0);
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
		.grh = {.dgid = peer->gid, .sgid_index = gid_index, .hop_limit = 64},
	};
}

static int to_init(struct end *end, const struct plan *plan)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11111111,
		.qp_access_flags = plan->qp_access < 0 ? 0 : REMOTE | plan->qp_access,
	};

	return ibv_modify_qp(
		end->qp, &attr,
		IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			(end->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_qp_attr rtr_attr(const struct end *end, const struct plan *plan)
{
	const struct end *peer = end == here ? there : here;
	const enum ibv_mtu mtu = plan->mtu[end - ends];

	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu ? mtu : IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num + (end == here ? plan->qpn_off : 0),
		.rq_psn = 100,
		.max_dest_rd_atomic = plan->responder_resources < 0 ? 0 : 1,
		.min_rnr_timer = 1,
		.ah_attr = path_to(peer),
	};
}

#define RTR_MASK                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static int to_rtr(struct end *end, const struct plan *plan)
{
	struct ibv_qp_attr attr = rtr_attr(end, plan);

	return ibv_modify_qp(end->qp, &attr,
			     end->qp->qp_type == IBV_QPT_UD ? IBV_QP_STATE : RTR_MASK);
}

static int to_rts(struct end *end, const struct plan *plan)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 100 + (end == here ? plan->psn_off : 0),
		.timeout = 10,
		.retry_cnt = 2,
		.rnr_retry = plan->rnr_retry,
		.max_rd_atomic = 1,
	};

	return ibv_modify_qp(end->qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN |
				     (end->qp->qp_type == IBV_QPT_UD
					      ? 0
					      : IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							IBV_QP_RNR_RETRY |
							IBV_QP_MAX_QP_RD_ATOMIC));
}

static void open_ends(const struct plan *plan)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0] && list[1], "no two devices");
	for (int i = 0; i < 2; i++)
		open_end(&ends[i], list[i], plan);
	ibv_free_device_list(list);
}

static void connect_ends(const struct plan *plan)
{
	open_ends(plan);
	for (int i = 0; i < 2; i++) {
		struct ibv_ah_attr path = path_to(&ends[!i]);

		need(!to_init(&ends[i], plan), "INIT");
		if (i && plan->only_first)
			return;
		need(!to_rtr(&ends[i], plan) && !to_rts(&ends[i], plan), "RTS");
		ends[i].ah = ibv_create_ah(ends[i].pd, &path);
	}
}

/* --- work --- */

static struct ibv_sge piece(const struct end *end, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)end->memory + offset, length, end->mr->lkey};
}

static struct ibv_send_wr work(enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	return (struct ibv_send_wr){
		.wr_id = 7,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)there->memory, there->mr->rkey},
	};
}

static void receive(struct end *end, uint32_t length)
{
	struct ibv_sge sge = piece(end, 0, length);
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(end->qp, &wr, &bad), "receive");
}

/* Polls until @count completions have come, or no more come. */
static void wait_for(struct end *end, int count)
{
	struct ibv_wc wc;
	int empty = 0;

	while (count && empty < 100000) {
		int found = ibv_poll_cq(end->cq, 1, &wc); /* @poll */

		if (found < 0)
			return;
		count -= found;
		empty += !found;
	}
}

/* Posts, polls the completion here, and what has come there. */
static void post_and_wait(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	ibv_post_send(here->qp, wr, &bad); /* @post */
	wait_for(here, 1);
}

static void rdma(enum ibv_wr_opcode opcode, uint64_t address, uint32_t rkey)
{
	struct ibv_sge sge = piece(here, 0, 64);
	struct ibv_send_wr wr = work(opcode, &sge);

	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = rkey;
	post_and_wait(&wr);
}

static void send_bytes(uint32_t length)
{
	struct ibv_sge sge = piece(here, 0, length);
	struct ibv_send_wr wr = work(IBV_WR_SEND, &sge);

	post_and_wait(&wr);
}

static void send_datagram(uint32_t length, uint32_t qkey)
{
	struct ibv_sge sge = piece(here, 0, length);
	struct ibv_send_wr wr = work(IBV_WR_SEND, &sge);

	wr.wr.ud.ah = here->ah;
	wr.wr.ud.remote_qpn = there->qp->qp_num;
	wr.wr.ud.remote_qkey = qkey;
	post_and_wait(&wr);
}

/* --- mistakes: ibv_modify_qp --- */

static void open_in_init(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	need(!to_init(here, &plan), "INIT");
}

static void modify_to_rtr(void (*spoil)(struct ibv_qp_attr *attr, int *mask))
{
	const struct plan plan = {0};
	struct ibv_qp_attr attr;
	int mask = RTR_MASK;

	open_in_init();
	attr = rtr_attr(here, &plan);
	spoil(&attr, &mask);
	ibv_modify_qp(here->qp, &attr, mask); /* @rtr */
}

static void without_dest_qpn(struct ibv_qp_attr *attr, int *mask)
{
	(void)attr;
	*mask &= ~IBV_QP_DEST_QPN;
}

static void with_sq_psn(struct ibv_qp_attr *attr, int *mask)
{
	(void)attr;
	*mask |= IBV_QP_SQ_PSN;
}

static void without_grh(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.is_global = 0;
	attr->ah_attr.dlid = 0;
}

static void with_mtu_0(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->path_mtu = 0;
}

static void with_mtu_in_bytes(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->path_mtu = (enum ibv_mtu)1024;
}

static void with_mtu_4096(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->path_mtu = IBV_MTU_4096;
}

static void with_gid_index(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.grh.sgid_index = 99;
}

static void with_ah_port(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.port_num = 2;
}

static void missing_mask_bit(void)
{
	modify_to_rtr(without_dest_qpn);
}

static void superfluous_mask_bit(void)
{
	modify_to_rtr(with_sq_psn);
}

static void forgotten_grh(void)
{
	modify_to_rtr(without_grh);
}

static void mtu_zero(void)
{
	modify_to_rtr(with_mtu_0);
}

static void mtu_in_bytes(void)
{
	modify_to_rtr(with_mtu_in_bytes);
}

static void mtu_above_port(void)
{
	modify_to_rtr(with_mtu_4096);
}

static void wrong_gid_index(void)
{
	modify_to_rtr(with_gid_index);
}

static void wrong_ah_port(void)
{
	modify_to_rtr(with_ah_port);
}

static void skipped_state(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	open_in_init();
	ibv_modify_qp(here->qp, &attr, IBV_QP_STATE); /* @rts */
}

static void wrong_port(void)
{
	const struct plan plan = {0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

	open_ends(&plan);
	ibv_modify_qp(here->qp, &attr, /* @init */
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

/* --- mistakes: creating and destroying --- */

static void remote_write_without_local_write(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	ibv_reg_mr(here->pd, here->memory, 64, IBV_ACCESS_REMOTE_WRITE); /* @reg */
}

static void unmapped_memory(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	ibv_reg_mr(here->pd, MEMORY + MEMORY_BYTES, 64, IBV_ACCESS_LOCAL_WRITE); /* @reg-unmapped */
}

static void create_qp(struct ibv_qp_cap cap)
{
	const struct plan plan = {0};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = cap};

	open_ends(&plan);
	init.send_cq = init.recv_cq = here->cq;
	ibv_create_qp(here->pd, &init); /* @create-qp */
}

static void too_many_send_wrs(void)
{
	create_qp((struct ibv_qp_cap){.max_send_wr = 1000000});
}

static void too_many_recv_wrs(void)
{
	create_qp((struct ibv_qp_cap){.max_recv_wr = 1000000});
}

static void too_many_send_sges(void)
{
	create_qp((struct ibv_qp_cap){.max_send_sge = 1000});
}

static void too_many_recv_sges(void)
{
	create_qp((struct ibv_qp_cap){.max_recv_sge = 1000});
}

static void too_much_inline(void)
{
	create_qp((struct ibv_qp_cap){.max_inline_data = 1000000});
}

static void too_large_cq(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	ibv_create_cq(here->context, 100000000, NULL, NULL, 0); /* @create-cq */
}

static void create_srq(struct ibv_srq_attr attr)
{
	const struct plan plan = {0};
	struct ibv_srq_init_attr init = {.attr = attr};

	open_ends(&plan);
	ibv_create_srq(here->pd, &init); /* @create-srq */
}

static void too_large_srq(void)
{
	create_srq((struct ibv_srq_attr){.max_wr = 100000000, .max_sge = 1});
}

static void too_many_srq_sges(void)
{
	create_srq((struct ibv_srq_attr){.max_wr = 16, .max_sge = 1000});
}

static void qp_without_cq(void)
{
	const struct plan plan = {0};
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC};

	open_ends(&plan);
	ibv_create_qp(here->pd, &init); /* @create-bare */
}

static void busy_pd(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	ibv_dealloc_pd(here->pd); /* @dealloc */
}

static void busy_cq(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	ibv_destroy_cq(here->cq); /* @destroy-cq */
}

static void destroyed_twice(void)
{
	const struct plan plan = {0};

	open_ends(&plan);
	ibv_destroy_qp(here->qp);
	ibv_destroy_qp(here->qp); /* @destroy-qp */
}

/* --- mistakes: posting --- */

static void send_before_rts(void)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	open_in_init();
	sge = piece(here, 0, 64);
	wr = work(IBV_WR_SEND, &sge);
	ibv_post_send(here->qp, &wr, &bad); /* @post-init */
}

static void receive_before_init(void)
{
	const struct plan plan = {0};
	struct ibv_recv_wr wr = {0}, *bad;

	open_ends(&plan);
	ibv_post_recv(here->qp, &wr, &bad); /* @receive-reset */
}

static void inline_too_large(void)
{
	const struct plan plan = {0};
	struct ibv_sge sge;
	struct ibv_send_wr wr;

	connect_ends(&plan);
	sge = piece(here, 0, 4096);
	wr = work(IBV_WR_SEND, &sge);
	wr.send_flags |= IBV_SEND_INLINE;
	post_and_wait(&wr);
}

static void too_many_sges(void)
{
	const struct plan plan = {0};
	struct ibv_sge sge[3];
	struct ibv_send_wr wr;

	connect_ends(&plan);
	for (int i = 0; i < 3; i++)
		sge[i] = piece(here, 64 * (uint32_t)i, 64);
	wr = work(IBV_WR_SEND, sge);
	wr.num_sge = 3;
	post_and_wait(&wr);
}

static void too_many_sges_of_receive(void)
{
	struct ibv_sge sge[3];
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 3}, *bad;

	open_in_init();
	for (int i = 0; i < 3; i++)
		sge[i] = piece(here, 64 * (uint32_t)i, 64);
	ibv_post_recv(here->qp, &wr, &bad); /* @receive-sges */
}

static void unsignaled_sends(void)
{
	const struct plan plan = {0};
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;
	struct ibv_wc wc;

	connect_ends(&plan);
	sge = piece(here, 0, 64);
	wr = work(IBV_WR_RDMA_WRITE, &sge);
	wr.send_flags = 0;
	for (int i = 0; i <= DEPTH; i++) {
		ibv_post_send(here->qp, &wr, &bad); /* @post-many */
		ibv_poll_cq(here->cq, 1, &wc);
	}
}

static void too_many_receives(void)
{
	struct ibv_recv_wr wr = {0}, *bad;

	open_in_init();
	for (int i = 0; i <= DEPTH; i++)
		ibv_post_recv(here->qp, &wr, &bad); /* @receive-many */
}

static void opcode_of_another_type(void)
{
	const struct plan plan = {.type = IBV_QPT_UD};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, there->mr->rkey);
}

static void datagram_without_ah(void)
{
	const struct plan plan = {.type = IBV_QPT_UD};

	connect_ends(&plan);
	here->ah = NULL;
	send_datagram(64, 0x11111111);
}

/* --- mistakes: memory --- */

static void wrong_rkey(void)
{
	const struct plan plan = {0};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, 0x1234);
}

static void own_key_as_rkey(void)
{
	const struct plan plan = {0};

	connect_ends(&plan);
	ibv_dereg_mr(here->mr);
	here->mr = ibv_reg_mr(here->pd, here->memory, HALF, REMOTE);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, here->mr->lkey);
}

static void lkey_as_rkey(void)
{
	const struct plan plan = {0};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, there->mr->lkey);
}

static void missing_right(void)
{
	const struct plan plan = {.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, there->mr->rkey);
}

static void missing_right_to_read(void)
{
	const struct plan plan = {.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_READ, (uintptr_t)there->memory, there->mr->rkey);
}

static void beyond_the_region(void)
{
	const struct plan plan = {0};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory + HALF - 32, there->mr->rkey);
}

static void missing_qp_right(void)
{
	const struct plan plan = {.qp_access = -1};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, there->mr->rkey);
}

static void deregistered_remotely(void)
{
	const struct plan plan = {0};
	uint32_t rkey;

	connect_ends(&plan);
	rkey = there->mr->rkey;
	ibv_dereg_mr(there->mr);
	rdma(IBV_WR_RDMA_WRITE, (uintptr_t)there->memory, rkey);
}

static void deregistered_locally(void)
{
	const struct plan plan = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	connect_ends(&plan);
	sge = piece(here, 0, 64);
	wr = work(IBV_WR_RDMA_WRITE, &sge);
	ibv_dereg_mr(here->mr);
	post_and_wait(&wr);
}

static void forgotten_lkey(void)
{
	const struct plan plan = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	connect_ends(&plan);
	sge = piece(here, 0, 64);
	sge.lkey = 0;
	wr = work(IBV_WR_RDMA_WRITE, &sge);
	post_and_wait(&wr);
}

static void receive_into_read_only(void)
{
	const struct plan plan = {.mr_access = IBV_ACCESS_REMOTE_READ};

	connect_ends(&plan);
	receive(there, 64);
	send_bytes(64);
	wait_for(there, 1);
}

/* --- mistakes: connections --- */

static void mtu_mismatch(void)
{
	const struct plan plan = {.mtu = {IBV_MTU_4096, IBV_MTU_1024}};

	connect_ends(&plan);
	receive(there, 4096);
	send_bytes(4096);
	wait_for(there, 1);
}

static void receive_too_short(void)
{
	const struct plan plan = {0};

	connect_ends(&plan);
	receive(there, 32);
	send_bytes(64);
	wait_for(there, 1);
}

static void no_receive(void)
{
	const struct plan plan = {0};

	connect_ends(&plan);
	send_bytes(64);
}

static void peer_not_ready(void)
{
	const struct plan plan = {.only_first = 1};

	connect_ends(&plan);
	send_bytes(64);
}

static void wrong_psn(void)
{
	const struct plan plan = {.psn_off = 1000};

	connect_ends(&plan);
	receive(there, 64);
	send_bytes(64);
}

static void wrong_qpn(void)
{
	const struct plan plan = {.qpn_off = 1000};

	connect_ends(&plan);
	send_bytes(64);
}

static void read_without_resources(void)
{
	const struct plan plan = {.responder_resources = -1};

	connect_ends(&plan);
	rdma(IBV_WR_RDMA_READ, (uintptr_t)there->memory, there->mr->rkey);
}

static void misaligned_atomic(void)
{
	const struct plan plan = {.qp_access = IBV_ACCESS_REMOTE_ATOMIC,
				  .mr_access = REMOTE | IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	connect_ends(&plan);
	sge = piece(here, 0, 8);
	wr = work(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
	wr.wr.atomic.remote_addr = (uintptr_t)there->memory + 4;
	wr.wr.atomic.rkey = there->mr->rkey;
	post_and_wait(&wr);
}

static void atomic_without_right(void)
{
	const struct plan plan = {0};
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	connect_ends(&plan);
	sge = piece(here, 0, 8);
	wr = work(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge);
	wr.wr.atomic.remote_addr = (uintptr_t)there->memory;
	wr.wr.atomic.rkey = there->mr->rkey;
	post_and_wait(&wr);
}

static void cq_too_small(void)
{
	const struct plan plan = {.cqe = 1};
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	connect_ends(&plan);
	sge = piece(here, 0, 64);
	wr = work(IBV_WR_RDMA_WRITE, &sge);
	for (int i = 0; i < 8; i++)
		ibv_post_send(here->qp, &wr, &bad);
	wait_for(here, 8);
}

static void flushed_receives(void)
{
	const struct plan plan = {0};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	connect_ends(&plan);
	for (int i = 0; i < 5; i++)
		receive(here, 64);
	ibv_modify_qp(here->qp, &attr, IBV_QP_STATE);
	wait_for(here, 5);
	ibv_destroy_qp(here->qp);
}

/* --- mistakes: datagrams --- */

static void datagram_without_40_bytes(void)
{
	const struct plan plan = {.type = IBV_QPT_UD};

	connect_ends(&plan);
	receive(there, 64);
	send_datagram(64, 0x11111111);
	wait_for(there, 1);
}

static void wrong_qkey(void)
{
	const struct plan plan = {.type = IBV_QPT_UD};

	connect_ends(&plan);
	receive(there, 64 + GRH_BYTES);
	send_datagram(64, 0x22222222);
	wait_for(there, 1);
}

static void datagram_above_mtu(void)
{
	const struct plan plan = {.type = IBV_QPT_UD};

	connect_ends(&plan);
	receive(there, 8192);
	send_datagram(8000, 0x11111111);
	wait_for(there, 1);
}

static void datagram_without_receive(void)
{
	const struct plan plan = {.type = IBV_QPT_UD};

	connect_ends(&plan);
	send_datagram(64, 0x11111111);
	wait_for(there, 1);
}

/* --- modes --- */

#define MODE(name)          \
	{                   \
#name, name \
	}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	MODE(missing_mask_bit),
	MODE(superfluous_mask_bit),
	MODE(forgotten_grh),
	MODE(mtu_zero),
	MODE(mtu_in_bytes),
	MODE(mtu_above_port),
	MODE(wrong_gid_index),
	MODE(wrong_ah_port),
	MODE(skipped_state),
	MODE(wrong_port),
	MODE(remote_write_without_local_write),
	MODE(unmapped_memory),
	MODE(too_many_send_wrs),
	MODE(too_many_recv_wrs),
	MODE(too_many_send_sges),
	MODE(too_many_recv_sges),
	MODE(too_much_inline),
	MODE(too_large_cq),
	MODE(too_large_srq),
	MODE(too_many_srq_sges),
	MODE(qp_without_cq),
	MODE(busy_pd),
	MODE(busy_cq),
	MODE(destroyed_twice),
	MODE(send_before_rts),
	MODE(receive_before_init),
	MODE(inline_too_large),
	MODE(too_many_sges),
	MODE(too_many_sges_of_receive),
	MODE(unsignaled_sends),
	MODE(too_many_receives),
	MODE(opcode_of_another_type),
	MODE(datagram_without_ah),
	MODE(wrong_rkey),
	MODE(own_key_as_rkey),
	MODE(lkey_as_rkey),
	MODE(missing_right),
	MODE(missing_right_to_read),
	MODE(beyond_the_region),
	MODE(missing_qp_right),
	MODE(deregistered_remotely),
	MODE(deregistered_locally),
	MODE(forgotten_lkey),
	MODE(receive_into_read_only),
	MODE(mtu_mismatch),
	MODE(receive_too_short),
	MODE(no_receive),
	MODE(peer_not_ready),
	MODE(wrong_psn),
	MODE(wrong_qpn),
	MODE(read_without_resources),
	MODE(misaligned_atomic),
	MODE(atomic_without_right),
	MODE(cq_too_small),
	MODE(flushed_receives),
	MODE(datagram_without_40_bytes),
	MODE(wrong_qkey),
	MODE(datagram_above_mtu),
	MODE(datagram_without_receive),
};

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	need(mmap(MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MEMORY,
	     "no memory");
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (!*name)
			puts(modes[i].name);
		if (strcmp(modes[i].name, name) == 0) {
			modes[i].run();
			return 0;
		}
	}
	return *name != '\0';
}
