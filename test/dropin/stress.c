/* SPDX-License-Identifier: MIT */
/*
 * Four threads share a PD, a CQ with its channel, an SRQ and two connected QPs, on the real clock:
 * they post, poll, arm, take events, create and destroy, and one of them forks now and then. Every
 * message must arrive once, with success. Meant for ThreadSanitizer; it links libibverbs only.
 *
 * usage: stress [OPERATIONS [SEED]]
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS	      4
#define DEPTH	      64
#define MESSAGE_BYTES 32
#define FORKS	      16

static struct shared {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *from, *to;
	union ibv_gid gid;
	atomic_int sends, receives; /* count the posted requests that have not completed */
	atomic_uint sent, received; /* count the completions */
	atomic_uint events;
	char memory[2][MESSAGE_BYTES];
} shared;

struct worker {
	pthread_t thread;
	uint64_t random;
	unsigned int operations, forks;
};

static _Noreturn void fail(const char *what, int err)
{
	fprintf(stderr, "stress: %s: %s\n", what, strerror(err));
	_exit(1);
}

static void check(const char *what, int err)
{
	if (err)
		fail(what, err);
}

static void *need(const char *what, void *object)
{
	if (!object)
		fail(what, errno);
	return object;
}

static uint64_t next_random(struct worker *self)
{
	self->random ^= self->random << 13;
	self->random ^= self->random >> 7;
	self->random ^= self->random << 17;
	return self->random;
}

/* --- the actions of a thread --- */

/* Takes one of DEPTH places. Returns false if all are taken. */
static bool take_place(atomic_int *taken)
{
	if (atomic_fetch_add(taken, 1) < DEPTH)
		return true;
	atomic_fetch_sub(taken, 1);
	return false;
}

static void send(struct worker *self)
{
	struct ibv_sge sge = {(uintptr_t)shared.memory[0], MESSAGE_BYTES, shared.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = 1,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (take_place(&shared.sends))
		check("ibv_post_send", ibv_post_send(shared.from, &wr, &bad));
}

static void receive(struct worker *self)
{
	struct ibv_sge sge = {(uintptr_t)shared.memory[1], MESSAGE_BYTES, shared.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1};

	if (take_place(&shared.receives))
		check("ibv_post_srq_recv", ibv_post_srq_recv(shared.srq, &wr, &bad));
}

static void poll_some(struct worker *self)
{
	struct ibv_wc wc[8];
	int count = ibv_poll_cq(shared.cq, 8, wc);

	if (count < 0)
		fail("ibv_poll_cq", errno);
	for (int i = 0; i < count; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			fail(ibv_wc_status_str(wc[i].status), 0);
		if (wc[i].wr_id == 1) {
			atomic_fetch_sub(&shared.sends, 1);
			atomic_fetch_add(&shared.sent, 1);
		} else {
			atomic_fetch_sub(&shared.receives, 1);
			atomic_fetch_add(&shared.received, 1);
		}
	}
}

static void arm(struct worker *self)
{
	check("ibv_req_notify_cq", ibv_req_notify_cq(shared.cq, 0));
}

static void take_event(struct worker *self)
{
	struct ibv_cq *cq;
	void *cq_context;

	if (ibv_get_cq_event(shared.channel, &cq, &cq_context)) {
		if (errno != EAGAIN)
			fail("ibv_get_cq_event", errno);
		return;
	}
	if (cq != shared.cq || cq_context != &shared)
		fail("another CQ's event", 0);
	atomic_fetch_add(&shared.events, 1);
	ibv_ack_cq_events(cq, 1);
}

static void make_mr(struct worker *self)
{
	struct ibv_mr *mr = ibv_reg_mr(shared.pd, shared.memory, sizeof(shared.memory), 0);

	check("ibv_dereg_mr", ibv_dereg_mr(need("ibv_reg_mr", mr)));
}

static void make_cq(struct worker *self)
{
	struct ibv_cq *cq = ibv_create_cq(shared.context, 16, NULL, shared.channel, 0);

	check("ibv_resize_cq", ibv_resize_cq(need("ibv_create_cq", cq), 32));
	check("ibv_destroy_cq", ibv_destroy_cq(cq));
}

static struct ibv_ah_attr address(void)
{
	return (struct ibv_ah_attr){.is_global = 1,
				    .port_num = 1,
				    .grh = {.dgid = shared.gid, .sgid_index = 1, .hop_limit = 64}};
}

static void make_ah(struct worker *self)
{
	struct ibv_ah_attr attr = address();
	struct ibv_ah *ah = ibv_create_ah(shared.pd, &attr);

	check("ibv_destroy_ah", ibv_destroy_ah(need("ibv_create_ah", ah)));
}

static struct ibv_qp *create_qp(void)
{
	struct ibv_qp_init_attr attr = {.send_cq = shared.cq,
					.recv_cq = shared.cq,
					.srq = shared.srq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = DEPTH, .max_send_sge = 1}};

	return need("ibv_create_qp", ibv_create_qp(shared.pd, &attr));
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	check("to INIT",
	      ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

static void make_qp(struct worker *self)
{
	struct ibv_qp *qp = create_qp();

	to_init(qp);
	check("ibv_destroy_qp", ibv_destroy_qp(qp));
}

static void make_srq(struct worker *self)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_srq *srq = need("ibv_create_srq", ibv_create_srq(shared.pd, &attr));

	check("ibv_query_srq", ibv_query_srq(srq, &attr.attr));
	check("ibv_destroy_srq", ibv_destroy_srq(srq));
}

static void query(struct worker *self)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_port_attr port;

	check("ibv_query_qp", ibv_query_qp(shared.from, &attr, IBV_QP_STATE, &init));
	check("ibv_query_port", ibv_query_port(shared.context, 1, &port));
	if (attr.qp_state != IBV_QPS_RTS || port.state != IBV_PORT_ACTIVE)
		fail("a QP or port that nobody touched changed its state", 0);
}

static void open_and_close(struct worker *self)
{
	struct ibv_device **list = need("ibv_get_device_list", ibv_get_device_list(NULL));
	struct ibv_context *context = need("ibv_open_device", ibv_open_device(list[1]));
	struct ibv_pd *pd;

	ibv_free_device_list(list);
	pd = need("ibv_alloc_pd", ibv_alloc_pd(context));
	check("ibv_dealloc_pd", ibv_dealloc_pd(pd));
	check("ibv_close_device", ibv_close_device(context));
}

/* --- the threads --- */

static void (*const often[])(struct worker *) = {send, receive, poll_some, arm, take_event};

static void (*const seldom[])(struct worker *) = {make_mr,  make_cq, make_ah,	    make_qp,
						  make_srq, query,   open_and_close};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The child can use its copy of the library, whatever the other threads did during fork(). */
static void fork_once(struct worker *self)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail("fork", errno);
	if (!child) {
		open_and_close(self);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		fail("the child failed", 0);
}

static void *work(void *arg)
{
	struct worker *self = arg;
	unsigned int between = self->forks ? self->operations / self->forks : 0;

	for (unsigned int i = 0; i < self->operations; i++) {
		uint64_t random = next_random(self);

		if (random % 16)
			often[(random >> 8) % COUNT(often)](self);
		else
			seldom[(random >> 8) % COUNT(seldom)](self);
		if (between && i % between == between - 1)
			fork_once(self);
	}
	return NULL;
}

static void connect_to(struct ibv_qp *qp, uint32_t qpn)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = qpn,
				  .min_rnr_timer = 12,
				  .ah_attr = address()};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7};

	to_init(qp);
	check("to RTR", ibv_modify_qp(qp, &rtr,
				      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					      IBV_QP_MIN_RNR_TIMER));
	check("to RTS",
	      ibv_modify_qp(qp, &rts,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void set_up(void)
{
	struct ibv_device **list = need("ibv_get_device_list", ibv_get_device_list(NULL));
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

	shared.context = need("ibv_open_device", ibv_open_device(list[0]));
	ibv_free_device_list(list);
	check("ibv_query_gid", ibv_query_gid(shared.context, 1, 1, &shared.gid));
	shared.pd = need("ibv_alloc_pd", ibv_alloc_pd(shared.context));
	shared.mr = need("ibv_reg_mr", ibv_reg_mr(shared.pd, shared.memory, sizeof(shared.memory),
						  IBV_ACCESS_LOCAL_WRITE));
	shared.channel = need("channel", ibv_create_comp_channel(shared.context));
	if (fcntl(shared.channel->fd, F_SETFL, O_NONBLOCK))
		fail("fcntl", errno);
	shared.cq = need("ibv_create_cq",
			 ibv_create_cq(shared.context, 2 * DEPTH, &shared, shared.channel, 0));
	shared.srq = need("ibv_create_srq", ibv_create_srq(shared.pd, &srq));
	shared.from = create_qp();
	shared.to = create_qp();
	connect_to(shared.from, shared.to->qp_num);
	connect_to(shared.to, shared.from->qp_num);
}

/* Every posted send needs a receive. */
static void finish(struct worker *self)
{
	while (atomic_load(&shared.sends) || shared.received != shared.sent) {
		receive(self);
		poll_some(self);
	}
}

static void tear_down(void)
{
	check("ibv_destroy_qp", ibv_destroy_qp(shared.from));
	check("ibv_destroy_qp", ibv_destroy_qp(shared.to));
	check("ibv_destroy_srq", ibv_destroy_srq(shared.srq));
	check("ibv_destroy_cq", ibv_destroy_cq(shared.cq));
	check("ibv_destroy_comp_channel", ibv_destroy_comp_channel(shared.channel));
	check("ibv_dereg_mr", ibv_dereg_mr(shared.mr));
	check("ibv_dealloc_pd", ibv_dealloc_pd(shared.pd));
	check("ibv_close_device", ibv_close_device(shared.context));
}

int main(int argc, char **argv)
{
	unsigned int operations = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	struct worker workers[THREADS] = {0};
	char world[32];

	snprintf(world, sizeof(world), "stress-%d", (int)getpid());
	setenv("VERBENA_WORLD", world, 1);
	printf("stress: %u operations, seed %llu\n", operations, (unsigned long long)seed);
	fflush(stdout);
	set_up();
	for (unsigned int i = 0; i < THREADS; i++) {
		workers[i].operations = operations / THREADS;
		workers[i].random = (seed + 1) * 0x9e3779b97f4a7c15 + i;
		workers[i].forks = i ? 0 : FORKS;
		check("pthread_create",
		      pthread_create(&workers[i].thread, NULL, work, &workers[i]));
	}
	for (unsigned int i = 0; i < THREADS; i++)
		check("pthread_join", pthread_join(workers[i].thread, NULL));
	finish(&workers[0]);
	printf("%u messages, %u events\n", shared.received, shared.events);
	if (!shared.received || !shared.events)
		fail("nothing was sent, or no event came", 0);
	tear_down();
	return 0;
}
