/* SPDX-License-Identifier: MIT */
/*
 * Threads that post, poll and gather batches on their own contexts, while other threads open and close
 * contexts: each call passes the layer once. ThreadSanitizer judges the rest.
 */
#include <verbena/verbs.h>

#define B (*vb_find_backend("sim"))
#include "src/layer/layer.h"
#include "test/unit/sim_pair.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define POSTERS	 3
#define BATCHERS 3
#define OPENERS	 2
#define MESSAGES 300
#define OPENINGS 100

static atomic_uint seen[LAYER_VERBS], listed, misnamed;
static struct ibv_device *device;

static int before(struct layer_call *call)
{
	call->state = (uintptr_t)call->arguments;
	return 0;
}

static void after(const struct layer_call *call)
{
	char text[32];

	atomic_fetch_add(&seen[call->verb], 1);
	if (call->verb == LAYER_wr_complete) {
		const struct ibv_send_wr *wr = (void *)(uintptr_t)call->arguments[1];
		uint64_t wr_id = wr ? wr->wr_id : 0;

		/* All WRs of a batch have one number: those of another thread are not among them. */
		for (; wr && wr->wr_id == wr_id; wr = wr->next)
			atomic_fetch_add(&listed, 1);
	}
	if (call->verb == LAYER_post_send &&
	    !*layer_object_name((void *)(uintptr_t)call->arguments[0], text, sizeof(text)))
		atomic_fetch_add(&misnamed, 1);
}

static struct layer layer = {.name = "counter", .before = before, .after = after};

void setUp(void)
{
	struct ibv_device **list;

	memset(seen, 0, sizeof(seen));
	listed = misnamed = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	list = vb_get_device_list("sim", NULL);
	device = list[0];
	vb_free_device_list(list);
}

void tearDown(void)
{
	layer_remove(&layer);
}

static struct ibv_qp *make_qp(struct ibv_context *context, uint64_t ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = {.max_send_wr = 8, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | (ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0),
		.send_ops_flags = ops,
		.pd = vb_alloc_pd(context),
		.send_cq = vb_create_cq(context, 8, NULL, NULL, 0),
	};

	attr.recv_cq = attr.send_cq;
	return vb_create_qp_ex(context, &attr);
}

/* The QP is in RESET, so that each post fails: the way there and back is what counts. */
static void *post(void *arg)
{
	struct ibv_context *context = vb_open_device(device);
	struct ibv_qp *qp = make_qp(context, 0);
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	uintptr_t failures = 0;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		failures += ibv_post_send(qp, &wr, &bad) == EINVAL;
		failures += ibv_poll_cq(qp->send_cq, 1, &wc) == 0;
	}
	vb_destroy_qp(qp);
	vb_close_device(context);
	return (void *)failures;
}

/* The threads share one QP, which lets one of them in at a time. */
static void *gather(void *arg)
{
	struct ibv_qp_ex *ex = arg;
	uintptr_t failures = 0;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		ibv_wr_start(ex);
		ex->wr_id = (uintptr_t)pthread_self();
		ex->wr_flags = 0;
		for (unsigned int j = 0; j < 3; j++) {
			ibv_wr_rdma_write(ex, 0, 0);
			ibv_wr_set_sge(ex, 0, 0, 0);
		}
		failures += ibv_wr_complete(ex) == EINVAL;
	}
	return (void *)failures;
}

static void *open_and_close(void *arg)
{
	uintptr_t failures = 0;

	for (unsigned int i = 0; i < OPENINGS; i++) {
		struct ibv_context *context = vb_open_device(device);
		struct ibv_pd *pd = vb_alloc_pd(context);

		failures += vb_dealloc_pd(pd) || vb_close_device(context);
	}
	return (void *)failures;
}

static void join(pthread_t *threads, unsigned int count, uintptr_t wanted)
{
	for (unsigned int i = 0; i < count; i++) {
		void *result;

		pthread_join(threads[i], &result);
		TEST_ASSERT_EQUAL_UINT64(wanted, (uintptr_t)result);
	}
}

void test_layer_threads_pass_each_call_once(void)
{
	struct ibv_context *context = vb_open_device(device);
	pthread_t posters[POSTERS], batchers[BATCHERS], openers[OPENERS];
	struct ibv_qp *qp;

	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer));
	qp = make_qp(context, IBV_QP_EX_WITH_RDMA_WRITE);
	for (unsigned int i = 0; i < POSTERS; i++)
		pthread_create(&posters[i], NULL, post, NULL);
	for (unsigned int i = 0; i < BATCHERS; i++)
		pthread_create(&batchers[i], NULL, gather, vb_qp_to_qp_ex(qp));
	for (unsigned int i = 0; i < OPENERS; i++)
		pthread_create(&openers[i], NULL, open_and_close, NULL);
	join(posters, POSTERS, 2 * MESSAGES);
	join(batchers, BATCHERS, MESSAGES);
	join(openers, OPENERS, 0);
	TEST_ASSERT_EQUAL_UINT(POSTERS * MESSAGES, seen[LAYER_post_send]);
	TEST_ASSERT_EQUAL_UINT(POSTERS * MESSAGES, seen[LAYER_poll_cq]);
	TEST_ASSERT_EQUAL_UINT(BATCHERS * MESSAGES, seen[LAYER_wr_complete]);
	TEST_ASSERT_EQUAL_UINT(BATCHERS * MESSAGES * 3, listed);
	TEST_ASSERT_EQUAL_UINT(0, misnamed);
	TEST_ASSERT_EQUAL_UINT(POSTERS + OPENERS * OPENINGS, seen[LAYER_open_device]);
	TEST_ASSERT_EQUAL_UINT(POSTERS + OPENERS * OPENINGS, seen[LAYER_close_device]);
	vb_close_device(context);
}
