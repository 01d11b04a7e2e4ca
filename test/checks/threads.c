/* SPDX-License-Identifier: MIT */
/* Objects of one thread domain, or of a single thread, that two threads use at the same time. */
#include "pair.h"

#include <errno.h>
#include <pthread.h>

static const struct plan plan = {0};

static struct ibv_td *td[2];
static struct ibv_pd *parent[2];
static struct ibv_qp *qps[2]; /* of `here` */

static void run_in_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, fn, arg), "thread");
	pthread_join(thread, NULL);
}

/* Makes two QPs in parent domains, of one thread domain or of two. */
static void open_domains(int count)
{
	struct ibv_qp_init_attr_ex qp_init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = here->cq,
		.recv_cq = here->cq,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};

	for (int i = 0; i < 2; i++) {
		struct ibv_td_init_attr td_init = {0};
		struct ibv_parent_domain_init_attr init = {.pd = here->pd};

		if (i < count)
			td[i] = ibv_alloc_td(here->context, &td_init);
		init.td = count ? td[i % count] : NULL;
		parent[i] = ibv_alloc_parent_domain(here->context, &init);
		need(parent[i] != NULL, "parent domain");
	}
	for (int i = 0; i < 2; i++) {
		qp_init.pd = parent[i];
		qps[i] = ibv_create_qp_ex(here->context, &qp_init);
		need(qps[i] != NULL, "QP");
	}
}

static void to_init_state(struct ibv_qp *qp)
{
	struct ibv_qp *old = here->qp;

	here->qp = qp;
	to_init(here, &plan);
	here->qp = old;
}

static void *receive_on(void *arg)
{
	struct ibv_sge sge = piece(here, 0, 64);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	need(!ibv_post_recv(arg, &wr, &bad), "receive"); /* @receive-on */
	return NULL;
}

static void start(struct ibv_qp *qp)
{
	ibv_wr_start(ibv_qp_to_qp_ex(qp)); /* @start */
}

/* A thread is between ibv_wr_start() and ibv_wr_abort(), and another one receives. */
static void use_two(int domain_count)
{
	open_ends(&plan);
	open_domains(domain_count);
	to_init_state(qps[1]);
	start(qps[0]);
	receive_on(qps[1]);
	for (int i = 0; i < 2; i++)
		run_in_thread(receive_on, qps[1]);
	ibv_wr_abort(ibv_qp_to_qp_ex(qps[0]));
	exit(0);
}

static void domain(void)
{
	use_two(1);
}

static void domain_kept(void)
{
	use_two(2);
}

/* Without a thread domain, objects have locks. */
static void no_domain(void)
{
	use_two(1);
}

static void no_domain_kept(void)
{
	use_two(0);
}

/* The threads take turns. */
static void take_turns(int leave)
{
	open_ends(&plan);
	open_domains(1);
	to_init_state(qps[0]);
	to_init_state(qps[1]);
	for (int i = 0; i < 3; i++) {
		receive_on(qps[0]);
		run_in_thread(receive_on, qps[1]);
	}
	start(qps[0]);
	if (leave == 1)
		ibv_wr_abort(ibv_qp_to_qp_ex(qps[0]));
	else if (leave == 2)
		need(!ibv_wr_complete(ibv_qp_to_qp_ex(qps[0])), "complete");
	run_in_thread(receive_on, qps[1]);
	exit(0);
}

static void turns(void)
{
	take_turns(0);
}

static void turns_kept(void)
{
	take_turns(1);
}

/* --- CQs --- */

static struct ibv_cq_ex *cq;

static void open_cq(uint32_t flags, struct ibv_pd *pd)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = DEPTH,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = flags,
		.parent_domain = pd,
	};

	if (pd)
		init.comp_mask |= IBV_CQ_INIT_ATTR_MASK_PD;
	ibv_destroy_qp(here->qp);
	ibv_destroy_cq(here->cq);
	cq = ibv_create_cq_ex(here->context, &init);
	need(cq != NULL, "CQ");
	here->cq = ibv_cq_ex_to_cq(cq);
}

static void connect_cq(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = here->cq,
		.recv_cq = here->cq,
		.cap = {DEPTH, DEPTH, 2, 2, 64},
	};

	here->qp = ibv_create_qp(parent[0] ? parent[0] : here->pd, &init);
	need(here->qp != NULL, "QP");
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = rtr_attr(&ends[!i]), rts = rts_attr();

		to_init(&ends[i], &plan);
		to_rtr(&ends[i], &rtr);
		to_rts(&ends[i], &rts);
	}
}

static void *arm(void *arg)
{
	need(!ibv_req_notify_cq(here->cq, 0), "notify"); /* @arm */
	return NULL;
}

/* A thread polls a completion, and another one arms the CQ, before ibv_end_poll() or after it. */
static void use_cq(uint32_t flags, int end_first)
{
	struct ibv_poll_cq_attr attr = {0};

	open_ends(&plan);
	open_cq(flags, NULL);
	connect_cq();
	need(ibv_start_poll(cq, &attr) == ENOENT, "an empty CQ");
	run_in_thread(arm, NULL);
	post(here, IBV_WR_RDMA_WRITE, 1);
	while (ibv_start_poll(cq, &attr)) /* @start-poll */
		;
	arm(NULL);
	if (end_first)
		ibv_end_poll(cq);
	run_in_thread(arm, NULL);
	if (!end_first)
		ibv_end_poll(cq);
	close_ends();
}

static void single(void)
{
	use_cq(IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 0);
}

static void single_kept(void)
{
	use_cq(IBV_CREATE_CQ_ATTR_SINGLE_THREADED, 1);
}

/* The CQ and the QPs are of one thread domain: the CQ and a QP may be used at the same time. */
static void use_domain_cq(int same_cq)
{
	struct ibv_poll_cq_attr attr = {0};

	open_ends(&plan);
	open_domains(1);
	for (int i = 0; i < 2; i++)
		ibv_destroy_qp(qps[i]);
	open_cq(0, parent[0]);
	connect_cq();
	post(here, IBV_WR_RDMA_WRITE, 1);
	while (ibv_start_poll(cq, &attr)) /* @start-poll-domain */
		;
	if (same_cq)
		run_in_thread(arm, NULL);
	else
		run_in_thread(receive_on, here->qp);
	ibv_end_poll(cq);
	run_in_thread(arm, NULL);
	exit(0);
}

static void domain_cq(void)
{
	use_domain_cq(1);
}

static void domain_cq_kept(void)
{
	use_domain_cq(0);
}

static const struct mode modes[] = {
	{"domain", domain},
	{"domain-kept", domain_kept},
	{"no-domain", no_domain},
	{"no-domain-kept", no_domain_kept},
	{"turns", turns},
	{"turns-kept", turns_kept},
	{"single", single},
	{"single-kept", single_kept},
	{"domain-cq", domain_cq},
	{"domain-cq-kept", domain_cq_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
