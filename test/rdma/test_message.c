/* SPDX-License-Identifier: MIT */
/* vb_rdma_send() and vb_rdma_receive(), and the life of connections. */
#include "test/rdma/rdma.h"

static struct ends ends;

void setUp(void)
{
	ends_open(&ends, NULL, NULL);
}

void tearDown(void)
{
}

void test_a_message(void)
{
	char got[64] = "";
	struct vb_rdma_message message;

	OK(vb_rdma_send(ends.rdma[0], "hello", 6, S));
	OK(vb_rdma_receive(ends.rdma[1], got, sizeof(got), &message, S));
	TEST_ASSERT_EQUAL_STRING("hello", got);
	TEST_ASSERT_EQUAL_UINT64(6, message.length_bytes);
	TEST_ASSERT_FALSE(message.has_imm);
	ends_close(&ends);
}

void test_immediate_data_and_an_empty_message(void)
{
	struct vb_rdma_message message;

	OK(vb_rdma_send_imm(ends.rdma[1], NULL, 0, 0x12345678, S));
	OK(vb_rdma_receive(ends.rdma[0], NULL, 0, &message, S));
	TEST_ASSERT_TRUE(message.has_imm);
	TEST_ASSERT_EQUAL_HEX32(0x12345678, message.imm);
	TEST_ASSERT_EQUAL_UINT64(0, message.length_bytes);
	ends_close(&ends);
}

/* Longer than the slots, so that sending and receiving take turns. */
static void send_long(size_t length)
{
	uint8_t *from = malloc(length), *into = calloc(1, length);
	const struct vb_rdma_request send = {.operation = VB_RDMA_SEND,
					     .rdma = ends.rdma[0],
					     .from = from,
					     .length_bytes = length};
	const struct vb_rdma_request receive = {.operation = VB_RDMA_RECEIVE,
						.rdma = ends.rdma[1],
						.into = into,
						.length_bytes = length};
	struct vb_rdma_op sending, receiving;
	struct vb_rdma_result result;

	fill(from, length, 7);
	sending = start(&send);
	receiving = start(&receive);
	OK(finish(&ends, receiving, &result));
	OK(finish(&ends, sending, NULL));
	TEST_ASSERT_EQUAL_UINT64(length, result.message.length_bytes);
	TEST_ASSERT_EQUAL_MEMORY(from, into, length);
	free(from);
	free(into);
}

void test_lengths_around_the_pieces(void)
{
	static const size_t piece = 4096 - 40;

	send_long(1);
	send_long(piece - 1);
	send_long(piece);
	send_long(piece + 1);
	send_long(2 * piece);
	send_long(1000003);
	ends_close(&ends);
}

void test_messages_in_order_in_both_directions(void)
{
	uint32_t number;

	for (uint32_t round = 0; round < 200; round++) {
		for (int side = 0; side < 2; side++)
			OK(vb_rdma_send(ends.rdma[side], &round, sizeof(round), S));
		for (int side = 0; side < 2; side++) {
			OK(vb_rdma_receive(ends.rdma[side], &number, sizeof(number), NULL, S));
			TEST_ASSERT_EQUAL_UINT32(round, number);
		}
	}
	ends_close(&ends);
}

void test_a_sender_waits_for_slots(void)
{
	uint32_t number = 0;

	for (number = 0; number < 32; number++)
		OK(vb_rdma_send(ends.rdma[0], &number, sizeof(number), S));
	FAILS(ETIMEDOUT, vb_rdma_send(ends.rdma[0], &number, sizeof(number), MS));
	for (uint32_t i = 0; i < 32; i++) {
		OK(vb_rdma_receive(ends.rdma[1], &number, sizeof(number), NULL, S));
		TEST_ASSERT_EQUAL_UINT32(i, number);
	}
	number = 77;
	OK(vb_rdma_send(ends.rdma[0], &number, sizeof(number), S));
	OK(vb_rdma_receive(ends.rdma[1], &number, sizeof(number), NULL, S));
	TEST_ASSERT_EQUAL_UINT32(77, number);
	ends_close(&ends);
}

void test_a_message_that_is_too_long_for_the_room_stays(void)
{
	struct vb_rdma_message message;
	char got[8];

	OK(vb_rdma_send(ends.rdma[0], "1234567", 8, S));
	FAILS(EMSGSIZE, vb_rdma_receive(ends.rdma[1], got, 4, &message, S));
	TEST_ASSERT_EQUAL_UINT64(8, message.length_bytes);
	OK(vb_rdma_receive(ends.rdma[1], got, 8, NULL, S));
	TEST_ASSERT_EQUAL_STRING("1234567", got);
	ends_close(&ends);
}

void test_a_long_message_taken_back_is_void_at_the_peer(void)
{
	size_t length = 400000;
	uint8_t *bytes = calloc(1, length);

	/* No receive is called, so sending stops when the slots are full. */
	FAILS(ETIMEDOUT, vb_rdma_send(ends.rdma[0], bytes, length, MS));
	OK(vb_rdma_start(&(struct vb_rdma_request){.operation = VB_RDMA_SEND,
						   .rdma = ends.rdma[0],
						   .from = "next",
						   .length_bytes = 5},
			 &(struct vb_rdma_op){0}));
	OK(run(&ends,
	       &(struct vb_rdma_request){.operation = VB_RDMA_RECEIVE,
					 .rdma = ends.rdma[1],
					 .into = bytes,
					 .length_bytes = length},
	       NULL));
	TEST_ASSERT_EQUAL_STRING("next", (char *)bytes);
	free(bytes);
	ends_close(&ends);
}

void test_a_receive_taken_back_in_the_middle_loses_that_message_only(void)
{
	size_t length = 400000;
	uint8_t *bytes = calloc(1, length), *into = calloc(1, length);
	const struct vb_rdma_request send = {.operation = VB_RDMA_SEND,
					     .rdma = ends.rdma[0],
					     .from = bytes,
					     .length_bytes = length};
	const struct vb_rdma_request receive = {.operation = VB_RDMA_RECEIVE,
						.rdma = ends.rdma[1],
						.into = into,
						.length_bytes = length};
	struct vb_rdma_op sending = start(&send), receiving;
	char got[8] = "";

	for (int i = 0; i < 1000; i++)
		OK(vb_rdma_progress(ends.agent[0], 0));
	receiving = start(&receive);
	OK(vb_rdma_progress(ends.agent[1], 0));
	OK(vb_rdma_progress(ends.agent[1], 0));
	OK(vb_rdma_cancel(receiving));
	FAILS(ESTALE, vb_rdma_poll(receiving, NULL));
	OK(finish(&ends, sending, NULL));
	OK(vb_rdma_send(ends.rdma[0], "next", 5, S));
	OK(vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, S));
	TEST_ASSERT_EQUAL_STRING("next", got);
	free(bytes);
	free(into);
	ends_close(&ends);
}

void test_packets_are_lost(void)
{
	const struct vb_fault_rule rule = {.action = VB_FAULT_DROP, .probability = 0.05};
	unsigned int id;

	OK(vb_fault_add(NULL, &rule, &id));
	send_long(300000);
	TEST_ASSERT_TRUE(vb_fault_hits(NULL, id) > 0);
	ends_close(&ends);
}

void test_what_was_sent_before_the_end_arrives(void)
{
	char got[8] = "";

	OK(vb_rdma_send(ends.rdma[0], "last", 5, S));
	OK(vb_rdma_close(ends.rdma[0]));
	ends.rdma[0] = NULL;
	OK(vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, S));
	TEST_ASSERT_EQUAL_STRING("last", got);
	FAILS(ECONNRESET, vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, S));
	assert_says("closed the connection");
	FAILS(ECONNRESET, vb_rdma_send(ends.rdma[1], got, 1, S));
	ends_close(&ends);
}

void test_a_peer_that_dies_is_noticed_when_something_is_sent(void)
{
	const char *why;

	OK(vb_sim_kill_device(vb_rdma_agent_device(ends.agent[1])->context));
	FAILS(EIO, vb_rdma_send(ends.rdma[0], "hello", 6, 100 * S));
	FAILS(EIO, vb_rdma_error(ends.rdma[0], &why));
	TEST_ASSERT_NOT_NULL(strstr(why, "retry"));
	ends_close(&ends);
}

void test_waiting_for_what_cannot_come(void)
{
	char got[8];

	FAILS(ETIMEDOUT, vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, MS));
	FAILS(EDEADLK, vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, VB_FOREVER));
	ends_close(&ends);
}

/* The other end is on the same thread and is not driven. */
void test_each_wait_without_a_limit_ends_where_nothing_can_come(void)
{
	struct vb_remote_mr *remote = request_mr(&ends, 0, 64, VB_MR_ALL, 0);
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[0], 64, 0);
	struct vb_rdma *rdma = ends.rdma[0];
	char got[8];

	for (int i = 0; i < 32; i++)
		OK(vb_rdma_send(rdma, "x", 1, VB_FOREVER));
	FAILS(EDEADLK, vb_rdma_send(rdma, "x", 1, VB_FOREVER));
	assert_says("nothing can come");
	FAILS(EDEADLK, vb_rdma_send_imm(rdma, "x", 1, 7, VB_FOREVER));
	FAILS(EDEADLK, vb_rdma_receive(rdma, got, sizeof(got), NULL, VB_FOREVER));
	FAILS(EDEADLK, vb_send_mr(rdma, remote, VB_FOREVER));
	FAILS(EDEADLK, vb_send_local_mr(rdma, local, VB_MR_READ, 0, VB_FOREVER));
	FAILS(EDEADLK, vb_receive_local_mr(rdma, VB_FOREVER) ? 0 : errno);
	FAILS(EDEADLK, vb_receive_remote_mr(rdma, VB_FOREVER) ? 0 : errno);
	FAILS(EDEADLK, vb_request_remote_mr(rdma, 8, 0, VB_MR_READ, 0, VB_FOREVER) ? 0 : errno);
	assert_says("nothing can come");
	FAILS(EDEADLK, vb_rdma_progress(ends.agent[0], VB_FOREVER));
	FAILS(EDEADLK, vb_rdma_connect(ends.agent[0], "server", VB_FOREVER) ? 0 : errno);
	assert_says("nothing can come");
	FAILS(EDEADLK, vb_rdma_accept(ends.listener, VB_FOREVER) ? 0 : errno);
	assert_says("nothing can come");
	OK(vb_rdma_fetch_add(rdma, remote, 0, 1, NULL, VB_FOREVER));
	vb_remote_mr_put(remote);
	vb_local_mr_put(local);
	ends_close(&ends);
}

static void count_calls(void *arg, const struct vb_rdma_result *result)
{
	TEST_ASSERT_EQUAL_INT(0, result->err);
	(*(unsigned int *)arg)++;
}

void test_callbacks(void)
{
	unsigned int sent = 0, received = 0;
	char got[16];
	struct vb_rdma_request send = {.operation = VB_RDMA_SEND,
				       .rdma = ends.rdma[0],
				       .from = "hello",
				       .length_bytes = 6,
				       .callback = count_calls,
				       .arg = &sent};
	struct vb_rdma_request receive = {.operation = VB_RDMA_RECEIVE,
					  .rdma = ends.rdma[1],
					  .into = got,
					  .length_bytes = sizeof(got),
					  .callback = count_calls,
					  .arg = &received};

	for (int i = 0; i < 5; i++) {
		OK(vb_rdma_start(&receive, NULL));
		OK(vb_rdma_start(&send, NULL));
	}
	for (int i = 0; i < 1000; i++)
		turn(&ends);
	TEST_ASSERT_EQUAL_UINT(5, sent);
	TEST_ASSERT_EQUAL_UINT(5, received);
	send.callback = NULL;
	FAILS(EINVAL, vb_rdma_start(&send, NULL));
	ends_close(&ends);
}

void test_too_many_operations(void)
{
	struct vb_rdma_request receive = {.operation = VB_RDMA_RECEIVE, .rdma = ends.rdma[1]};
	struct vb_rdma_op ops[256], more;

	for (int i = 0; i < 256; i++)
		OK(vb_rdma_start(&receive, &ops[i]));
	FAILS(ENOBUFS, vb_rdma_start(&receive, &more));
	for (int i = 0; i < 256; i++)
		OK(vb_rdma_cancel(ops[i]));
	OK(vb_rdma_send(ends.rdma[0], "hello", 6, S));
	ends_close(&ends);
}

void test_an_agent_in_use_stays(void)
{
	FAILS(EBUSY, vb_rdma_agent_close(ends.agent[0]));
	FAILS(EBUSY, vb_rdma_agent_close(ends.agent[1]));
	ends_close(&ends);
}
