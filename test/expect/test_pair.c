/* SPDX-License-Identifier: MIT */
/* Connected pairs of all types, and what a test leaves behind. */
#include "test/expect/expect.h"

#include <errno.h>
#include <verbena/cm.h>
#include <verbena/fault.h>

void setUp(void)
{
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	vb_expect_set_handler(keep_failure, NULL);
	OK(vb_expect_begin());
}

void tearDown(void)
{
	vb_expect_end();
	vb_sim_reset();
}

/* Data goes both ways, and nothing is left afterwards. */
static void exchange(const struct vb_pair_options *options)
{
	const size_t grh = options->type == IBV_QPT_UD ? 40 : 0;
	struct vb_pair *pair = open_pair(options);
	struct vb_pair_end *const ends[2] = {&pair->a, &pair->b};

	for (int round = 0; round < 4; round++) {
		struct vb_pair_end *from = ends[round % 2], *to = from->peer;

		memset(from->buffer, 'a' + round, 256);
		OK(vb_pair_receive(to, 1, 1024, 64 + (uint32_t)grh));
		OK(vb_pair_post(from, 2, IBV_WR_SEND, 0, 64));
		HOLDS(vb_expect_completion(to->cq, "RECV wr_id=1 length=%zu", 64 + grh));
		HOLDS(vb_expect_completion(from->cq, "SEND wr_id=2"));
		TEST_ASSERT_EQUAL_MEMORY(from->buffer, to->buffer + 1024 + grh, 64);
	}
	OK(vb_pair_close(pair));
	HOLDS(vb_expect_no_leaks());
	assert_nothing_left();
}

void test_pairs_of_each_type(void)
{
	static const enum ibv_qp_type types[] = {0, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						 IBV_QPT_XRC_SEND};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		exchange(&(struct vb_pair_options){.type = types[i]});
}

void test_pairs_with_an_srq(void)
{
	exchange(&(struct vb_pair_options){.type = IBV_QPT_RC, .srq = true});
	exchange(&(struct vb_pair_options){.type = IBV_QPT_UD, .srq = true});
}

void test_pairs_of_infiniband(void)
{
	struct vb_sim_config *config = calloc(1, sizeof(*config));
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
						 IBV_QPT_XRC_SEND};

	config->device_count = 2;
	strcpy(config->devices[0].name, "ib0");
	strcpy(config->devices[1].name, "ib1");
	config->devices[0].link_layer = config->devices[1].link_layer = IBV_LINK_LAYER_INFINIBAND;
	OK(vb_sim_configure(config));
	free(config);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		exchange(&(struct vb_pair_options){.type = types[i]});
}

/* The connection manager's pairs, with and without an SRQ. Of UD QPs, a knows b. */
void test_pairs_of_the_connection_manager(void)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UD};

	for (unsigned int i = 0; i < 4; i++) {
		const bool ud = types[i / 2] == IBV_QPT_UD;
		struct vb_pair *pair = open_pair(
			&(struct vb_pair_options){.cm = true, .type = types[i / 2], .srq = i % 2});

		TEST_ASSERT_EQUAL_INT(i % 2, pair->b.srq != NULL);
		memset(pair->a.buffer, 'a', 64);
		OK(vb_pair_receive(&pair->b, 1, 1024, 64 + (ud ? 40 : 0)));
		OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
		HOLDS(vb_expect_completion(pair->b.cq, "RECV wr_id=1 length=%d", ud ? 104 : 64));
		HOLDS(vb_expect_completion(pair->a.cq, "SEND wr_id=2"));
		TEST_ASSERT_EQUAL_MEMORY(pair->a.buffer, pair->b.buffer + 1024 + (ud ? 40 : 0), 64);
		if (ud)
			TEST_ASSERT_EQUAL_UINT32(pair->b.qp->qp_num, pair->a.remote_qpn);
		OK(vb_pair_close(pair));
		HOLDS(vb_expect_no_leaks());
	}
}

void test_a_pair_of_the_connection_manager(void)
{
	struct vb_pair *pair = open_pair(&(struct vb_pair_options){.cm = true});

	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	HOLDS(vb_expect_completion(pair->b.cq, "RECV wr_id=1"));
	HOLDS(vb_expect_completion(pair->a.cq, "SEND wr_id=2"));
	OK(vb_pair_close(pair));
	HOLDS(vb_expect_no_leaks());
}

void test_rdma_and_atomics(void)
{
	struct vb_pair *pair = open_pair(NULL);

	memset(pair->a.buffer, 'x', 64);
	OK(vb_pair_post(&pair->a, 1, IBV_WR_RDMA_WRITE, 0, 64));
	HOLDS(vb_expect_completion(pair->a.cq, "RDMA_WRITE"));
	TEST_ASSERT_EQUAL_MEMORY(pair->a.buffer, pair->b.buffer, 64);
	memset(pair->b.buffer, 'y', 64);
	OK(vb_pair_post(&pair->a, 2, IBV_WR_RDMA_READ, 0, 64));
	HOLDS(vb_expect_completion(pair->a.cq, "RDMA_READ"));
	TEST_ASSERT_EQUAL_MEMORY(pair->b.buffer, pair->a.buffer, 64);
	memset(pair->b.buffer, 0, 8);
	OK(vb_pair_post(&pair->a, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8));
	OK(vb_pair_post(&pair->a, 4, IBV_WR_ATOMIC_CMP_AND_SWP, 8, 8));
	HOLDS(vb_expect_completion(pair->a.cq, "FETCH_ADD"));
	HOLDS(vb_expect_completion(pair->a.cq, "COMP_SWAP"));
	TEST_ASSERT_EQUAL_UINT64(1, *(uint64_t *)pair->b.buffer);
	FAILS(EINVAL, vb_pair_post(&pair->a, 5, IBV_WR_BIND_MW, 0, 8));
	OK(vb_pair_close(pair));
}

/* On the real clock the checks sleep. */
void test_the_real_clock(void)
{
	struct vb_pair *pair;

	fresh_world(2, VB_SIM_CLOCK_REAL);
	OK(vb_expect_begin());
	pair = open_pair(NULL);
	vb_expect_mark();
	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	HOLDS(vb_expect_completion(pair->b.cq, "RECV wr_id=1"));
	HOLDS(vb_expect_completion(pair->a.cq, "SEND wr_id=2"));
	HOLDS(vb_expect_packets("SEND_ONLY ACK"));
	OK(vb_sim_port_state(pair->a.context, 1, false));
	HOLDS(vb_expect_event(pair->a.context, "PORT_ERR"));
	vb_expect_set_timeout(5 * MS);
	HOLDS(vb_expect_no_event(pair->a.context, 1 * MS));
	HOLDS(vb_expect_no_completion(pair->a.cq, 1 * MS));
	FAILS_SAYING(vb_expect_completion(pair->a.cq, "SEND"), "none came within 5 ms");
	FAILS_SAYING(vb_expect_packets("ACK"), "a packet of the pattern did not come within 5 ms");
	vb_expect_set_timeout(0);
	OK(vb_pair_close(pair));
	HOLDS(vb_expect_no_leaks());
}

void test_options(void)
{
	const struct vb_pair_options options = {.device = {"sim1", "sim0"},
						.buffer_bytes = 100,
						.depth = 2,
						.rnr_retry = 8,
						.psn = 5};
	struct vb_pair *pair = open_pair(&options);

	TEST_ASSERT_EQUAL_STRING("sim1", vb_get_device_name(pair->a.context->device));
	TEST_ASSERT_EQUAL_UINT64(100, pair->a.mr->length);
	/* rnr_retry 8 stands for 0: the first RNR NAK ends the send. */
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	HOLDS(vb_expect_completion(pair->a.cq, "RNR_RETRY_EXC_ERR"));
	OK(vb_pair_close(pair));
}

void test_pairs_that_cannot_be(void)
{
	FAILS_SAYING(vb_expect_pair(&(struct vb_pair_options){.device = {"sim7"}}),
		     "expected a connected pair: ", "pair_open: opening a device", "sim7");
	FAILS_SAYING(vb_expect_pair(&(struct vb_pair_options){.type = IBV_QPT_UC, .srq = true}),
		     "UC QPs have no SRQ; clear `srq`");
	FAILS_SAYING(vb_expect_pair(&(struct vb_pair_options){.type = 99}),
		     "type 99; give IBV_QPT_RC, _UC, _UD or _XRC_SEND");
	FAILS_SAYING(vb_expect_pair(&(struct vb_pair_options){.type = IBV_QPT_UC, .cm = true}),
		     "with `cm`, the type is IBV_QPT_RC or IBV_QPT_UD");
	FAILS_SAYING(vb_expect_pair(&(struct vb_pair_options){.timeout = 32}),
		     "timeout is 31 at most");
	FAILS_SAYING(vb_expect_pair(&(struct vb_pair_options){.depth = 1u << 21}), "max_cqe");
	OK(vb_pair_close(NULL));
	HOLDS(vb_expect_no_leaks());
	assert_nothing_left();
}

/* --- leaks --- */

static struct ibv_pd *forget_a_pd(struct vb_device *device)
{
	return vb_alloc_pd(device->context);
}

void test_leaks(void)
{
	struct vb_device *device = vb_device_open_named("sim", "sim0", 0, VB_GID_INDEX_ANY);
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	OK(vb_expect_begin());
	pd = forget_a_pd(device);
	cq = vb_create_cq(device->context, 4, NULL, NULL, 0);
	HAVE(pd);
	HAVE(cq);
	OK(vb_destroy_cq(cq));
	FAILS_SAYING(vb_expect_no_leaks(),
		     "1 object is left, which the program has made and not destroyed:", "\n  pd",
		     " of sim0, made by ", "alloc_pd in ");
	/* A leak is reported once. */
	HOLDS(vb_expect_no_leaks());
	OK(vb_dealloc_pd(pd));
	OK(vb_device_close(device));
}

/* Closing a device ends what the program has left in it, which is a leak all the same. */
void test_a_leak_in_a_closed_device(void)
{
	struct vb_pair *pair = open_pair(NULL);

	HAVE(vb_alloc_pd(pair->a.context));
	OK(vb_pair_close(pair));
	FAILS_SAYING(vb_expect_no_leaks(), "1 object is left", "pd", " of sim0, made by ",
		     "alloc_pd");
	/* The next object may have its address. */
	exchange(&(struct vb_pair_options){.type = IBV_QPT_RC});
}

/* A device that could not be closed still has its objects, which the program ends as ever. */
void test_objects_of_a_device_that_could_not_be_closed(void)
{
	const struct vb_fail_rule rule = {.call = "close_device", .err = EIO, .count = 1};
	struct vb_device *device = vb_device_open_named("sim", "sim0", 0, VB_GID_INDEX_ANY);
	struct ibv_pd *pd;

	OK(vb_expect_begin());
	pd = forget_a_pd(device);
	HAVE(pd);
	OK(vb_fail_add(&rule, NULL));
	TEST_ASSERT_EQUAL_INT(-1, vb_close_device(device->context));
	vb_fail_clear();
	OK(vb_dealloc_pd(pd));
	HOLDS(vb_expect_no_leaks());
	OK(vb_device_close(device));
}

void test_leaks_of_the_connection_manager(void)
{
	struct rdma_event_channel *channel = vb_cm_create_event_channel("sim");
	struct rdma_cm_id *id;

	HAVE(channel);
	OK(vb_cm_create_id(NULL, channel, &id, NULL, RDMA_PS_TCP));
	FAILS_SAYING(vb_expect_no_leaks(), "2 objects are left", "made by ", "made by ");
	OK(vb_cm_destroy_id(id));
	vb_cm_destroy_event_channel(channel);
	HOLDS(vb_expect_no_leaks());
}

void test_leaks_need_a_beginning(void)
{
	vb_expect_end();
	FAILS_SAYING(vb_expect_no_leaks(), "call vb_expect_begin()");
}

/* Objects of the time before do not count. */
void test_a_new_beginning(void)
{
	struct vb_pair *pair = open_pair(NULL);

	OK(vb_expect_begin());
	HOLDS(vb_expect_no_leaks());
	OK(vb_pair_close(pair));
}
