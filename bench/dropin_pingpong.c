/* SPDX-License-Identifier: MIT */
/*
 * Measures half a round trip of 64 B RC SEND on the drop-in libibverbs with the real clock: one
 * thread polls both ends. Then measures the processor time of the whole process during a second in
 * which it does nothing, and a second in which a thread is blocked in ibv_get_cq_event().
 *
 * The program calls only ibv_* and is linked with the drop-in.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIZE	    64
#define ROUNDS	    200000
#define QUIET_NS    1000000000
#define TIMEOUT	    14
#define RECEIVES    16
#define CACHE_BYTES 4096

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid gid;
	_Alignas(CACHE_BYTES) char buffer[2][CACHE_BYTES];
};

static struct end ends[2];

static void need(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "dropin_pingpong: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void open_end(struct end *end, struct ibv_device *device)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = RECEIVES,
						.max_send_sge = 1,
						.max_recv_sge = 1}};

	end->context = ibv_open_device(device);
	need(end->context != NULL, "ibv_open_device");
	end->pd = ibv_alloc_pd(end->context);
	end->channel = ibv_create_comp_channel(end->context);
	end->cq = ibv_create_cq(end->context, 2 * RECEIVES, NULL, end->channel, 0);
	end->mr = ibv_reg_mr(end->pd, end->buffer, sizeof(end->buffer), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &init);
	need(end->cq && end->mr && end->qp, "objects");
	need(!ibv_query_gid(end->context, 1, 1, &end->gid), "ibv_query_gid");
}

static void connect_end(const struct end *end, const struct end *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qp->qp_num,
				  .min_rnr_timer = 12,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.dgid = peer->gid, .sgid_index = 1}}};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = TIMEOUT, .retry_cnt = 7, .rnr_retry = 7};

	need(!ibv_modify_qp(end->qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	need(!ibv_modify_qp(end->qp, &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	need(!ibv_modify_qp(end->qp, &rts,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static void post_recv(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer[1], SIZE, end->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	need(!ibv_post_recv(end->qp, &wr, &bad), "ibv_post_recv");
}

static void post_send(struct end *end)
{
	struct ibv_sge sge = {(uintptr_t)end->buffer[0], SIZE, end->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	need(!ibv_post_send(end->qp, &wr, &bad), "ibv_post_send");
}

/* Polls until `wanted` completions have come. */
static void poll(struct end *end, int wanted)
{
	struct ibv_wc wc;

	while (wanted) {
		int count = ibv_poll_cq(end->cq, 1, &wc);

		need(count >= 0 && (!count || wc.status == IBV_WC_SUCCESS), "ibv_poll_cq");
		wanted -= count;
	}
}

/* One message in each direction; waits for the completions of both sends and both receives. */
static void round_trip(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct end *from = &ends[i], *to = &ends[!i];

		post_recv(to);
		post_send(from);
		poll(to, 1);
		poll(from, 1);
	}
}

static double half_round_trip_us(void)
{
	uint64_t began_ns;

	for (unsigned int i = 0; i < ROUNDS / 10; i++)
		round_trip();
	began_ns = clock_ns(CLOCK_MONOTONIC);
	for (unsigned int i = 0; i < ROUNDS; i++)
		round_trip();
	return (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e3 / ROUNDS / 2;
}

/* Milliseconds of processor time that all threads use while this one sleeps for a second. */
static double busy_ms(void)
{
	uint64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	nanosleep(&(struct timespec){.tv_sec = QUIET_NS / 1000000000}, NULL);
	return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns) / 1e6;
}

static void *wait_for_event(void *arg)
{
	struct ibv_cq *cq;
	void *context;

	need(!ibv_get_cq_event(ends[1].channel, &cq, &context), "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

static double blocked_ms(void)
{
	pthread_t thread;
	double ms;

	need(!ibv_req_notify_cq(ends[1].cq, 0), "ibv_req_notify_cq");
	need(!pthread_create(&thread, NULL, wait_for_event, NULL), "pthread_create");
	ms = busy_ms();
	round_trip(); /* wakes the thread */
	pthread_join(thread, NULL);
	return ms;
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	need(list && list[0] && list[1], "two devices");
	for (unsigned int i = 0; i < 2; i++)
		open_end(&ends[i], list[i]);
	ibv_free_device_list(list);
	connect_end(&ends[0], &ends[1]);
	connect_end(&ends[1], &ends[0]);
	printf("dropin_pingpong: RC SEND of %d bytes, %d round trips\n", SIZE, ROUNDS);
	printf("half round trip: %.3f us\n", half_round_trip_us());
	printf("idle: %.3f ms of processor time in a second\n", busy_ms());
	printf("blocked: %.3f ms of processor time in a second\n", blocked_ms());
	return 0;
}
