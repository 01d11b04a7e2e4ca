/* SPDX-License-Identifier: MIT */
/* Channels: operations, results, refused requests, lost packets, and both clocks. */
#include "test/connect/connect.h"

#include <stdio.h>

static struct node a, b;

void setUp(void)
{
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	node_open(&a, 0);
	node_open(&b, 1);
	join(&a, &b, NULL);
}

void tearDown(void)
{
	node_close(&a);
	node_close(&b);
	assert_nothing_left();
}

/* --- operations --- */

void test_send_and_receive(void)
{
	struct vb_slice from = slice(&a, 0, 6), into = slice(&b, 0, 64);
	struct vb_result sent, received;
	struct vb_work send, receive;

	memcpy(bytes(&a, 0), "hello", 6);
	OK(vb_channel_receive(b.channel, &into, &receive));
	OK(vb_channel_send(a.channel, &from, &send));
	OK(vb_work_wait(receive, VB_FOREVER, &received));
	OK(vb_work_wait(send, VB_FOREVER, &sent));
	TEST_ASSERT_EQUAL_STRING("hello", (char *)bytes(&b, 0));
	TEST_ASSERT_EQUAL_INT(VB_RECEIVE, received.operation);
	TEST_ASSERT_EQUAL_UINT(6, received.length_bytes);
	TEST_ASSERT_FALSE(received.has_imm);
	TEST_ASSERT_EQUAL_INT(VB_SEND, sent.operation);
	TEST_ASSERT_EQUAL_UINT(0, sent.length_bytes);
}

void test_immediate_data(void)
{
	struct vb_slice from = slice(&a, 0, 8), into = slice(&b, 0, 64);
	struct vb_remote to = remote(&b, 128, 8);
	struct vb_result received;
	struct vb_work work[2];

	OK(vb_channel_receive(b.channel, &into, &work[0]));
	OK(vb_channel_receive(b.channel, &into, &work[1]));
	OK(vb_channel_send_imm(a.channel, &from, 0x01020304, NULL));
	OK(vb_channel_write_imm(a.channel, &from, &to, 7, NULL));
	OK(vb_work_wait(work[0], VB_FOREVER, &received));
	TEST_ASSERT_TRUE(received.has_imm);
	TEST_ASSERT_EQUAL_HEX32(0x01020304, received.imm);
	OK(vb_work_wait(work[1], VB_FOREVER, &received));
	TEST_ASSERT_EQUAL_UINT(7, received.imm);
	TEST_ASSERT_EQUAL_UINT(8, received.length_bytes);
}

void test_write_and_read(void)
{
	struct vb_slice from = slice(&a, 0, 100), into = slice(&a, 200, 100);
	struct vb_remote there = remote(&b, 1000, 100);
	struct vb_work work;

	memset(bytes(&a, 0), 0x5a, 100);
	OK(vb_channel_write(a.channel, &from, &there, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_UINT8(0x5a, *bytes(&b, 1099));
	TEST_ASSERT_EQUAL_UINT8(0, *bytes(&b, 1100));
	OK(vb_channel_read(a.channel, &into, &there, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_MEMORY(bytes(&b, 1000), bytes(&a, 200), 100);
}

void test_atomics(void)
{
	struct vb_slice old = slice(&a, 0, 8);
	struct vb_remote counter = remote(&b, 64, 8);
	struct vb_work work;

	*(uint64_t *)bytes(&b, 64) = 41;
	OK(vb_channel_fetch_add(a.channel, &old, &counter, 1, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_UINT64(41, *(uint64_t *)bytes(&a, 0));
	OK(vb_channel_compare_swap(a.channel, &old, &counter, 42, 7, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_UINT64(42, *(uint64_t *)bytes(&a, 0));
	TEST_ASSERT_EQUAL_UINT64(7, *(uint64_t *)bytes(&b, 64));
	OK(vb_channel_compare_swap(a.channel, &old, &counter, 1, 2, &work));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_UINT64(7, *(uint64_t *)bytes(&b, 64));
}

void test_several_slices_and_none(void)
{
	struct vb_slice from[3] = {slice(&a, 0, 2), slice(&a, 100, 3), slice(&a, 50, 1)};
	struct vb_slice into = slice(&b, 0, 64);
	struct vb_request request = {.operation = VB_SEND, .slices = from, .slice_count = 3};
	struct vb_result result;
	struct vb_work work[2];

	memcpy(bytes(&a, 0), "ab", 2);
	memcpy(bytes(&a, 100), "cde", 3);
	memcpy(bytes(&a, 50), "f", 1);
	OK(vb_channel_receive(b.channel, &into, &work[0]));
	OK(vb_channel_receive(b.channel, &into, &work[1]));
	OK(vb_channel_post(a.channel, &request, NULL));
	OK(vb_work_wait(work[0], VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_MEMORY("abcdef", bytes(&b, 0), 6);
	request.slice_count = 0;
	request.fenced = request.solicited = true;
	OK(vb_channel_post(a.channel, &request, NULL));
	OK(vb_work_wait(work[1], VB_FOREVER, &result));
	TEST_ASSERT_EQUAL_UINT(0, result.length_bytes);
}

void test_inline_data(void)
{
	struct vb_slice from = slice(&a, 0, 16), into = slice(&b, 0, 64);
	struct vb_qp_config config;
	struct vb_work work;

	OK(vb_channel_close(a.channel));
	OK(vb_channel_close(b.channel));
	vb_qp_config_init(&config);
	OK(vb_qp_config_set(&config, VB_QP_MAX_INLINE_DATA, 64));
	join(&a, &b, &config);
	memcpy(bytes(&a, 0), "inline", 7);
	OK(vb_channel_receive(b.channel, &into, &work));
	OK(vb_channel_send(a.channel, &from, NULL));
	OK(vb_work_wait(work, VB_FOREVER, NULL));
	TEST_ASSERT_EQUAL_STRING("inline", (char *)bytes(&b, 0));
}

/* --- results --- */

void test_a_handle_is_stale_once_its_result_is_taken(void)
{
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_remote to = remote(&b, 0, 8);
	struct vb_work first, second;

	OK(vb_channel_write(a.channel, &from, &to, &first));
	OK(vb_work_wait(first, VB_FOREVER, NULL));
	FAILS(ESTALE, vb_work_poll(first, NULL));
	FAILS(ESTALE, vb_work_wait(first, VB_FOREVER, NULL));
	/* The new work has the same slot; the old handle does not find it. */
	OK(vb_channel_write(a.channel, &from, &to, &second));
	FAILS(ESTALE, vb_work_poll(first, NULL));
	FAILS(ESTALE, vb_work_poll((struct vb_work){0}, NULL));
	FAILS(ESTALE, vb_work_poll((struct vb_work){a.channel, 1000, 1}, NULL));
	OK(vb_work_wait(second, VB_FOREVER, NULL));
}

void test_polling_until_the_end(void)
{
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_remote to = remote(&b, 0, 8);
	struct vb_work work;
	int rounds = 0, err;

	OK(vb_channel_write(a.channel, &from, &to, &work));
	TEST_ASSERT_EQUAL_UINT(1, vb_channel_pending(a.channel));
	while ((err = vb_work_poll(work, NULL)) == EAGAIN)
		TEST_ASSERT_TRUE(++rounds < 100);
	OK(err);
	TEST_ASSERT_EQUAL_UINT(0, vb_channel_pending(a.channel));
	TEST_ASSERT_EQUAL_UINT(0, vb_group_pending(a.group));
}

void test_a_wait_that_times_out_keeps_the_handle(void)
{
	struct vb_slice from = slice(&a, 0, 8), into = slice(&b, 0, 8);
	struct vb_work receive;

	OK(vb_channel_receive(b.channel, &into, &receive));
	FAILS(ETIMEDOUT, vb_work_wait(receive, 5 * MS, NULL));
	TEST_ASSERT_EQUAL_UINT64(5 * MS, vb_sim_now_ns(NULL));
	FAILS(EDEADLK, vb_work_wait(receive, VB_FOREVER, NULL));
	OK(vb_channel_send(a.channel, &from, NULL));
	OK(vb_work_wait(receive, 5 * MS, NULL));
}

void test_waiting_for_many(void)
{
	struct vb_slice from = slice(&a, 0, 8), into = slice(&b, 0, 8);
	struct vb_work sends[8], receives[8];
	struct vb_result results[8];

	for (int i = 0; i < 8; i++)
		OK(vb_channel_receive(b.channel, &into, &receives[i]));
	FAILS(ETIMEDOUT, vb_work_wait_all(receives, 8, 1 * MS, results));
	for (int i = 0; i < 8; i++)
		OK(vb_channel_send_imm(a.channel, &from, (uint32_t)i, &sends[i]));
	OK(vb_work_wait_all(receives, 8, 1 * S, results));
	for (uint32_t i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_UINT(i, results[i].imm);
	OK(vb_work_wait_all(sends, 8, 1 * S, NULL));
	FAILS(ESTALE, vb_work_wait_all(sends, 8, 1 * S, NULL));
	OK(vb_work_wait_all(sends, 0, 0, NULL));
}

void test_a_failure_names_the_operation_the_qp_and_the_status(void)
{
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_remote wrong = remote(&b, 0, 8);
	struct vb_result result;
	struct vb_work works[2];
	char wanted[80];

	wrong.rkey ^= 0x5500;
	OK(vb_channel_write(a.channel, &from, &wrong, &works[0]));
	OK(vb_channel_write(a.channel, &from, &wrong, &works[1]));
	FAILS(EIO, vb_work_wait(works[0], VB_FOREVER, &result));
	snprintf(wanted, sizeof(wanted), "driver: write on QP 0x%x: remote access error",
		 vb_channel_endpoint(a.channel)->qpn);
	TEST_ASSERT_EQUAL_STRING(wanted, vb_last_error());
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, result.status);
	FAILS(EIO, vb_work_wait(works[1], VB_FOREVER, &result));
	TEST_ASSERT_EQUAL_INT(IBV_WC_WR_FLUSH_ERR, result.status);
}

void test_works_that_nobody_asks_for_are_counted_where_they_fail(void)
{
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_remote wrong = remote(&b, 0, 8);

	wrong.rkey ^= 0x5500;
	for (int i = 0; i < 4; i++)
		OK(vb_channel_write(a.channel, &from, &wrong, NULL));
	OK(vb_channel_wait_idle(a.channel, VB_FOREVER));
	TEST_ASSERT_EQUAL_UINT64(4, vb_channel_failures(a.channel));
	TEST_ASSERT_EQUAL_UINT64(0, vb_channel_failures(b.channel));
}

/* --- what is refused --- */

static void refused(const struct vb_request *request, int err, const char *says)
{
	struct vb_work work = {0};

	FAILS(err, vb_channel_post(a.channel, request, &work));
	assert_says(says);
	TEST_ASSERT_NULL(work.channel);
	TEST_ASSERT_EQUAL_UINT(0, vb_channel_pending(a.channel));
}

void test_invalid_requests(void)
{
	struct vb_slice good = slice(&a, 0, 8), far = slice(&a, REGION_BYTES - 4, 8);
	struct vb_slice past = slice(&a, REGION_BYTES + 1, 0), none = {NULL, 0, 8};
	struct vb_slice theirs = slice(&b, 0, 8), many[17];
	struct vb_remote short_one = remote(&b, 0, 4), eight = remote(&b, 0, 8);

	for (int i = 0; i < 17; i++)
		many[i] = good;
	refused(&(struct vb_request){.operation = VB_SEND, .slices = &far, .slice_count = 1},
		EINVAL, "is not in its region");
	refused(&(struct vb_request){.operation = VB_SEND, .slices = &past, .slice_count = 1},
		EINVAL, "is not in its region");
	refused(&(struct vb_request){.operation = VB_SEND, .slices = &none, .slice_count = 1},
		EINVAL, "has no region");
	refused(&(struct vb_request){.operation = VB_SEND, .slices = &theirs, .slice_count = 1},
		EINVAL, "another protection domain");
	refused(&(struct vb_request){.operation = VB_SEND, .slices = many, .slice_count = 17},
		EINVAL, "17 slices; at most 16");
	refused(&(struct vb_request){.operation = VB_WRITE,
				     .slices = &good,
				     .slice_count = 1,
				     .remote = short_one},
		EINVAL, "the remote piece has 4");
	refused(&(struct vb_request){.operation = VB_FETCH_ADD,
				     .slices = many,
				     .slice_count = 2,
				     .remote = eight},
		EINVAL, "an atomic takes one of 8");
	refused(&(struct vb_request){.operation = VB_READ,
				     .slices = &good,
				     .slice_count = 1,
				     .remote = eight,
				     .with_imm = true},
		EINVAL, "no immediate data");
	refused(&(struct vb_request){.operation = VB_OPERATIONS}, EINVAL, "no operation 6");
}

void test_a_full_channel(void)
{
	struct vb_slice into = slice(&a, 0, 8);
	unsigned int posted = 0;
	int err;

	while (!(err = vb_channel_receive(a.channel, &into, NULL)))
		posted++;
	FAILS(ENOMEM, err);
	TEST_ASSERT_EQUAL_INT(VB_ERROR_RESOURCE, vb_last_error_kind());
	TEST_ASSERT_TRUE(posted >= 16);
	TEST_ASSERT_EQUAL_UINT(posted, vb_channel_pending(a.channel));
}

void test_a_channel_that_is_not_connected(void)
{
	struct vb_channel *channel = vb_channel_prepare(a.group, NULL);
	struct vb_slice from = slice(&a, 0, 8);

	HAVE(channel);
	FAILS(ENOTCONN, vb_channel_send(channel, &from, NULL));
	assert_says("not connected yet");
	FAILS(EISCONN, vb_channel_connect(a.channel, vb_channel_endpoint(b.channel)));
	OK(vb_channel_close(channel));
}

void test_invalid_configurations(void)
{
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.type = IBV_QPT_UD;
	TEST_ASSERT_NULL(vb_channel_prepare(a.group, &config));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	assert_says("type cannot be UD");
	vb_qp_config_init(&config);
	config.max_send_wr = config.max_recv_wr = 0;
	TEST_ASSERT_NULL(vb_channel_prepare(a.group, &config));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	vb_qp_config_init(&config);
	config.retry_cnt = 8;
	TEST_ASSERT_NULL(vb_channel_prepare(a.group, &config));
	TEST_ASSERT_EQUAL_INT(ERANGE, errno);
}

void test_a_group_with_channels_stays(void)
{
	FAILS(EBUSY, vb_group_close(a.group));
	assert_says("1 channels are in it");
}

/* --- endings --- */

void test_closing_a_channel_ends_its_works_first(void)
{
	struct vb_slice into = slice(&b, 0, 64);

	for (int i = 0; i < 8; i++)
		OK(vb_channel_receive(b.channel, &into, NULL));
	FAILS(EBUSY, vb_region_free(b.region));
	OK(vb_channel_close(b.channel));
	b.channel = NULL;
	TEST_ASSERT_EQUAL_UINT(0, vb_group_pending(b.group));
	OK(vb_region_free(b.region));
	b.region = vb_group_alloc(b.group, REGION_BYTES);
}

void test_a_peer_that_is_gone(void)
{
	struct vb_slice from = slice(&a, 0, 8);
	struct vb_result result;
	struct vb_work work;

	OK(vb_channel_close(b.channel));
	b.channel = NULL;
	OK(vb_channel_send(a.channel, &from, &work));
	FAILS(EIO, vb_work_wait(work, VB_FOREVER, &result));
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, result.status);
}

void test_a_device_that_dies(void)
{
	struct vb_slice from = slice(&a, 0, 8), into = slice(&a, 64, 8);
	struct vb_work work;

	OK(vb_channel_receive(a.channel, &into, &work));
	OK(vb_channel_send(a.channel, &from, NULL));
	OK(vb_sim_kill_device(a.device->context));
	OK(vb_channel_close(a.channel));
	a.channel = NULL;
	TEST_ASSERT_EQUAL_UINT(0, vb_group_pending(a.group));
}

/* --- faults --- */

/* Every 5th packet is lost and every 7th arrives twice; each message arrives once and in order. */
void test_messages_over_a_bad_network(void)
{
	const struct vb_fault_rule drop = {.action = VB_FAULT_DROP, .probability = 0.2};
	const struct vb_fault_rule twice = {.action = VB_FAULT_DUPLICATE, .probability = 0.15};
	struct vb_qp_config config;

	OK(vb_channel_close(a.channel));
	OK(vb_channel_close(b.channel));
	vb_qp_config_init(&config);
	config.retry_cnt = 7;
	config.path_mtu = IBV_MTU_256;
	join(&a, &b, &config);
	OK(vb_fault_add(NULL, &drop, NULL));
	OK(vb_fault_add(NULL, &twice, NULL));
	for (uint32_t i = 0; i < 200; i++) {
		struct vb_slice from = slice(&a, 0, 1000), into = slice(&b, 0, 1000);
		struct vb_result result;
		struct vb_work send, receive;

		memset(bytes(&a, 0), (int)i, 1000);
		OK(vb_channel_receive(b.channel, &into, &receive));
		OK(vb_channel_send_imm(a.channel, &from, i, &send));
		OK(vb_work_wait(receive, VB_FOREVER, &result));
		OK(vb_work_wait(send, VB_FOREVER, NULL));
		TEST_ASSERT_EQUAL_UINT(i, result.imm);
		TEST_ASSERT_EQUAL_MEMORY(bytes(&a, 0), bytes(&b, 0), 1000);
	}
}

void test_a_uc_channel_loses_what_is_lost(void)
{
	struct vb_slice from = slice(&a, 0, 8), into = slice(&b, 0, 8);
	struct vb_qp_config config;
	struct vb_work send, receive;

	OK(vb_channel_close(a.channel));
	OK(vb_channel_close(b.channel));
	vb_qp_config_init(&config);
	config.type = IBV_QPT_UC;
	join(&a, &b, &config);
	OK(vb_channel_receive(b.channel, &into, &receive));
	OK(vb_fault_add(NULL, &(struct vb_fault_rule){.action = VB_FAULT_DROP, .count = 1}, NULL));
	OK(vb_channel_send(a.channel, &from, &send));
	OK(vb_work_wait(send, VB_FOREVER, NULL));
	FAILS(EDEADLK, vb_work_wait(receive, VB_FOREVER, NULL));
	OK(vb_channel_send(a.channel, &from, &send));
	OK(vb_work_wait(receive, VB_FOREVER, NULL));
	OK(vb_work_wait(send, VB_FOREVER, NULL));
}

/* --- many --- */

void test_a_cq_grows_with_its_channels(void)
{
	struct vb_channel *channels[200];
	int cqe = vb_group_cq(a.group)->cq->cqe;

	for (int i = 0; i < 200; i++) {
		channels[i] = vb_channel_prepare(a.group, NULL);
		HAVE(channels[i]);
	}
	TEST_ASSERT_TRUE(vb_group_cq(a.group)->cq->cqe > cqe);
	TEST_ASSERT_TRUE(vb_group_cq(a.group)->cq->cqe >= 201 * 32);
	for (int i = 0; i < 200; i++)
		OK(vb_channel_close(channels[i]));
}

void test_a_thousand_works_through_a_ring_of_slots(void)
{
	struct vb_slice from = slice(&a, 0, 64);
	struct vb_remote to = remote(&b, 0, 64);
	struct vb_work ring[8];

	for (int i = 0; i < 1000; i++) {
		if (i >= 8)
			OK(vb_work_wait(ring[i % 8], VB_FOREVER, NULL));
		OK(vb_channel_write(a.channel, &from, &to, &ring[i % 8]));
	}
	OK(vb_work_wait_all(ring, 8, VB_FOREVER, NULL));
}

/* --- threads --- */

#define ROUNDS 50

struct player {
	struct node *node;
	bool serves;
	pthread_barrier_t *start;
	int err;
};

/* Sends a number and receives it back, increased by one. */
static int play(struct player *player)
{
	struct vb_slice into = slice(player->node, 0, 8), from = slice(player->node, 64, 8);
	uint64_t *got = (uint64_t *)bytes(player->node, 0);
	uint64_t *mine = (uint64_t *)bytes(player->node, 64);
	struct vb_work send, receive;
	int err = 0;

	for (uint64_t i = 0; i < ROUNDS && !err; i++) {
		err = vb_channel_receive(player->node->channel, &into, &receive);
		if (!err && !player->serves) {
			*mine = i;
			err = vb_channel_send(player->node->channel, &from, &send);
		}
		if (!err)
			err = vb_work_wait(receive, 20 * S, NULL);
		if (!err && player->serves) {
			*mine = *got + 1;
			err = vb_channel_send(player->node->channel, &from, &send);
		}
		if (!err && !player->serves && *got != i + 1)
			err = EBADMSG;
		if (!err)
			err = vb_work_wait(send, 20 * S, NULL);
	}
	return err;
}

static void *player_main(void *arg)
{
	struct player *player = arg;

	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(player->start);
	player->err = play(player);
	vb_sim_thread_leave(NULL);
	return NULL;
}

static void two_threads(void)
{
	pthread_barrier_t start;
	struct player players[2] = {{&a, false, &start, 0}, {&b, true, &start, 0}};
	pthread_t threads[2];

	pthread_barrier_init(&start, NULL, 2);
	for (int i = 0; i < 2; i++)
		OK(pthread_create(&threads[i], NULL, player_main, &players[i]));
	for (int i = 0; i < 2; i++)
		OK(pthread_join(threads[i], NULL));
	pthread_barrier_destroy(&start);
	OK(players[0].err);
	OK(players[1].err);
}

/* The client may send before the server posts its first receive: RNR retries have no limit. */
static void patient(void)
{
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	config.rnr_retry = VB_RNR_RETRY_INFINITE;
	config.timeout = 14;
	config.min_rnr_timer = VB_RNR_0_01_MS;
	join(&a, &b, &config);
}

void test_client_and_server_as_threads_on_the_virtual_clock(void)
{
	OK(vb_channel_close(a.channel));
	OK(vb_channel_close(b.channel));
	patient();
	two_threads();
}

void test_client_and_server_as_threads_on_the_real_clock(void)
{
	node_close(&a);
	node_close(&b);
	fresh_world(2, VB_SIM_CLOCK_REAL);
	node_open(&a, 0);
	node_open(&b, 1);
	patient();
	two_threads();
}
