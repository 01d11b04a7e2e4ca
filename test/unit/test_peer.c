/* SPDX-License-Identifier: MIT */
/* B's process of `verbena test --two-processes`, and the backend that relays verbs to it. */
#include "test/peer/exchange.h"
#include "test/peer/memory.h"
#include "test/peer/mirror.h"
#include "test/peer/mirror_cm.h"
#include "test/peer/peer.h"
#include "test/peer/relay.h"
#include "test/peer/serve.h"
#include "test/peer/translate.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

static jmp_buf end;
static char left_out[512], death[512], error[512];
static const struct vb_sim_config world = {.clock = VB_SIM_CLOCK_REAL};

static void leave_out(void *arg, const char *reason)
{
	snprintf(left_out, sizeof(left_out), "%s", reason);
	longjmp(end, 1);
}

static void died(void *arg, const char *sentence)
{
	snprintf(death, sizeof(death), "%s", sentence);
	longjmp(end, 1);
}

static struct peer_setup setup = {
	.backend = "sim", .sim = &world, .leave_out = leave_out, .died = died};

void setUp(void)
{
	left_out[0] = death[0] = error[0] = '\0';
}

void tearDown(void)
{
	setup.network = NULL;
	setup.backend = "sim";
	if (peer_active())
		peer_end(error, sizeof(error));
}

/* What a body finds on the shared stack's thread, where no assertion may fail. */
struct found {
	struct ibv_context *context;
	struct vb_sim_objects left;
	int first, second, third;
	const void *object;
	bool good;
	char text[512];
};

typedef void body_fn(struct found *found);

struct job {
	body_fn *body;
	struct found *found;
};

static void run_body(void *arg)
{
	const struct job *job = arg;
	struct ibv_device **list;

	if (setjmp(end))
		return;
	list = vb_get_device_list(PEER_BACKEND, NULL);
	job->found->context = vb_open_device(list[0]);
	vb_free_device_list(list);
	job->body(job->found);
}

static struct found *with_peer(body_fn *body)
{
	static struct found found;
	struct job job = {body, &found};

	found = (struct found){0};
	TEST_ASSERT_TRUE_MESSAGE(peer_begin(&setup, error, sizeof(error)), error);
	peer_run(run_body, &job);
	return &found;
}

/* --- objects --- */

static void name_each_other(struct found *found)
{
	struct ibv_pd *pd = vb_alloc_pd(found->context);
	struct ibv_cq *cq = vb_create_cq(found->context, 5, found, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 3, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = vb_create_qp(pd, &init);
	struct ibv_qp_init_attr asked;
	struct ibv_qp_attr attr;

	found->good = pd->context == found->context && cq->context == found->context &&
		      cq->cq_context == found && qp->pd == pd && qp->send_cq == cq &&
		      qp->recv_cq == cq && !qp->srq && init.send_cq == cq;
	found->first = vb_query_qp(qp, &attr, IBV_QP_STATE, &asked);
	found->good = found->good && asked.send_cq == cq && asked.recv_cq == cq;
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_INIT, .port_num = 1};
	found->second = vb_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	found->third = (int)qp->state;
	peer_count_objects(&found->left);
}

void test_mirrors_name_mirrors_and_follow_their_objects(void)
{
	struct found *found = with_peer(name_each_other);

	TEST_ASSERT_TRUE(found->good);
	TEST_ASSERT_EQUAL_INT(0, found->first);
	TEST_ASSERT_EQUAL_INT(0, found->second);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_INIT, found->third);
	TEST_ASSERT_EQUAL_UINT(1, found->left.qps);
	TEST_ASSERT_EQUAL_UINT(1, found->left.cqs);
	TEST_ASSERT_EQUAL_UINT(1, found->left.pds);
	TEST_ASSERT_FALSE(peer_can_receive());
	TEST_ASSERT_TRUE_MESSAGE(peer_end(error, sizeof(error)), error);
	TEST_ASSERT_FALSE(peer_active());
}

static void open_only(struct found *found)
{
	found->good = found->context;
}

static void modify_to_rtr(struct found *found)
{
	struct ibv_pd *pd = vb_alloc_pd(found->context);
	struct ibv_cq *cq = vb_create_cq(found->context, 5, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_recv_wr = 3, .max_recv_sge = 1},
					.qp_type = IBV_QPT_UD};
	struct ibv_qp *qp = vb_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .port_num = 1};

	found->first = vb_modify_qp(qp, &attr, IBV_QP_STATE);
	found->good = !peer_can_receive();
	attr.qp_state = IBV_QPS_INIT;
	found->second = vb_modify_qp(qp, &attr,
				     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	attr.qp_state = IBV_QPS_RTR; /* not in the mask */
	found->second |= vb_modify_qp(qp, &attr, IBV_QP_QKEY);
	found->good = found->good && !peer_can_receive();
	found->third = vb_modify_qp(qp, &attr, IBV_QP_STATE);
}

void test_a_qp_in_rtr_can_receive(void)
{
	struct found *found = with_peer(modify_to_rtr);

	TEST_ASSERT_EQUAL_INT(EINVAL, found->first);
	TEST_ASSERT_EQUAL_INT(0, found->second);
	TEST_ASSERT_TRUE(found->good);
	TEST_ASSERT_EQUAL_INT(0, found->third);
	TEST_ASSERT_TRUE(peer_can_receive());
	TEST_ASSERT_TRUE_MESSAGE(peer_end(error, sizeof(error)), error);
	TEST_ASSERT_TRUE_MESSAGE(peer_begin(&setup, error, sizeof(error)), error);
	TEST_ASSERT_FALSE(peer_can_receive());
}

static void set_rkey(struct found *found)
{
	struct ibv_pd *pd = vb_alloc_pd(found->context);
	struct ibv_cq *cq = vb_create_cq(found->context, 5, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 3, .max_send_sge = 1},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = vb_create_qp(pd, &init);
	struct ibv_mw *mw = vb_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind bind = {0};
	const uint32_t rkey = mw->rkey;

	/* The verb fails, and still copies the window in both directions. */
	mw->rkey = rkey ^ 1;
	found->first = vb_bind_mw(qp, mw, &bind);
	found->good = rkey && mw->rkey == (rkey ^ 1);
	found->second = vb_dealloc_mw(mw);
}

void test_a_window_has_the_rkey_that_the_test_gave_it(void)
{
	struct found *found = with_peer(set_rkey);

	TEST_ASSERT_EQUAL_STRING("", death);
	TEST_ASSERT_EQUAL_INT(EINVAL, found->first);
	TEST_ASSERT_TRUE(found->good);
	TEST_ASSERT_EQUAL_INT(0, found->second);
}

static void use_stale_cq(struct found *found)
{
	struct ibv_cq *cq = vb_create_cq(found->context, 5, NULL, NULL, 0);

	found->first = vb_destroy_cq(cq);
	found->second = vb_destroy_cq(cq);
}

void test_a_stale_mirror_is_a_stale_object(void)
{
	struct found *found = with_peer(use_stale_cq);

	TEST_ASSERT_EQUAL_INT(0, found->first);
	TEST_ASSERT_EQUAL_INT(ENOENT, found->second);
	TEST_ASSERT_EQUAL_STRING("", death);
}

/* --- failures --- */

static void ask_for_no_entries(struct found *found)
{
	errno = 0;
	found->object = vb_create_cq(found->context, 0, NULL, NULL, 0);
	found->first = errno;
	snprintf(found->text, sizeof(found->text), "%s", vb_last_error());
}

void test_a_failure_brings_its_errno_and_its_sentence(void)
{
	struct found here = {0}, *there = with_peer(ask_for_no_entries);
	struct ibv_device **list = vb_get_device_list("sim", NULL);

	here.context = vb_open_device(list[0]);
	vb_free_device_list(list);
	ask_for_no_entries(&here);
	vb_close_device(here.context);
	vb_sim_reset();
	TEST_ASSERT_NULL(there->object);
	TEST_ASSERT_EQUAL_INT(EINVAL, there->first);
	TEST_ASSERT_EQUAL_STRING(here.text, there->text);
	TEST_ASSERT_NOT_NULL(strstr(there->text, "create_cq"));
}

/* --- descriptors --- */

static void read_empty_channel(struct found *found)
{
	struct ibv_comp_channel *channel = vb_create_comp_channel(found->context);
	struct ibv_cq *cq;
	void *cq_context;

	found->first = fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
	errno = 0;
	found->second = vb_get_cq_event(channel, &cq, &cq_context);
	found->third = errno;
	vb_destroy_comp_channel(channel);
	found->good = fcntl(channel->fd, F_GETFD) < 0;
}

void test_a_channels_descriptor_is_of_the_same_file(void)
{
	struct found *found = with_peer(read_empty_channel);

	TEST_ASSERT_EQUAL_INT(0, found->first);
	TEST_ASSERT_EQUAL_INT(-1, found->second);
	TEST_ASSERT_EQUAL_INT(EAGAIN, found->third);
	TEST_ASSERT_TRUE(found->good);
}

/* --- what cannot be relayed --- */

static unsigned char own_memory[4096];

static void register_own_memory(struct found *found)
{
	vb_reg_mr(vb_alloc_pd(found->context), own_memory, sizeof(own_memory), 0);
	found->good = true;
}

void test_memory_of_one_process_leaves_the_test_out(void)
{
	TEST_ASSERT_FALSE(with_peer(register_own_memory)->good);
	TEST_ASSERT_EQUAL_STRING(
		"two processes: the test gives B memory that only its own process has", left_out);
}

static void use_a_copy(struct found *found)
{
	struct ibv_pd copy = *vb_alloc_pd(found->context);

	vb_dealloc_pd(&copy);
	found->good = true;
}

void test_a_copy_of_an_object_leaves_the_test_out(void)
{
	TEST_ASSERT_FALSE(with_peer(use_a_copy)->good);
	TEST_ASSERT_EQUAL_STRING("two processes: the test gives B an object that is not B's, or "
				 "changes a copy of an object",
				 left_out);
}

/* --- the end of the process --- */

/* Nothing is mapped there, in either process. */
static void crash_it(struct found *found)
{
	vb_query_device(found->context, (struct ibv_device_attr *)64);
	found->good = true;
}

void test_a_dead_process_ends_the_test_with_a_sentence_and_the_next_one_begins(void)
{
	TEST_ASSERT_FALSE(with_peer(crash_it)->good);
	TEST_ASSERT_EQUAL_STRING("B's process ended in query_device: SIGSEGV (Segmentation fault)",
				 death);
	TEST_ASSERT_TRUE(peer_end(error, sizeof(error)));
	TEST_ASSERT_TRUE(with_peer(open_only)->good);
	TEST_ASSERT_TRUE_MESSAGE(peer_end(error, sizeof(error)), error);
}

void test_a_network_that_does_not_exist_is_named(void)
{
	setup.network = "/nowhere/net";
	TEST_ASSERT_FALSE(peer_begin(&setup, error, sizeof(error)));
	TEST_ASSERT_EQUAL_STRING(
		"B's process cannot begin: /nowhere/net: No such file or directory", error);
	TEST_ASSERT_FALSE(peer_active());
}
