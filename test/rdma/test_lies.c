/* SPDX-License-Identifier: MIT */
/*
 * A hand-made peer that breaks the protocol. Each time the connection fails with EPROTO and a
 * reason, the peer receives ERROR, and another connection of the same agent works.
 */
#include "test/rdma/rdma.h"

#define HEAD 16

static struct ends ends;

/* The hand-made peer, on sim0. */
static struct {
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	struct vb_region *region;
	struct ibv_qp *qp;
	struct vb_rdma *server; /* the agent's end */
	unsigned int said;

} liar;

static void put(uint8_t *at, uint64_t value, int bytes)
{
	while (bytes-- > 0) {
		at[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static void post_receives(int count)
{
	struct ibv_sge sge = {(uintptr_t)liar.region->addr + 8192, 4096, liar.region->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 1, .sg_list = &sge, .num_sge = 1}, *bad;

	while (count--)
		OK(ibv_post_recv(liar.qp, &wr, &bad));
}

static size_t greeting(uint8_t bytes[64], const struct vb_endpoint *endpoint)
{
	memset(bytes, 0, 64);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(bytes, "VBG\1", 4);
	vb_endpoint_encode(endpoint, bytes + 8);
	put(bytes + 40, 4096, 4);
	put(bytes + 44, 8, 4);
	put(bytes + 48, 1 << 20, 8);
	return 64;
}

static void say_on_line(void *line, const void *bytes, size_t length)
{
	size_t moved;

	OK(vb_rdma_exchange_local()->send(line, bytes, length, &moved));
	TEST_ASSERT_EQUAL_UINT64(length, moved);
}

static void hear_on_line(void *line, void *bytes, size_t length)
{
	size_t moved = 0;
	int err = EAGAIN;

	for (int i = 0; i < 100 && err == EAGAIN; i++) {
		turn(&ends);
		err = vb_rdma_exchange_local()->receive(line, bytes, length, &moved);
	}
	OK(err);
	TEST_ASSERT_EQUAL_UINT64(length, moved);
}

static void liar_connects(void)
{
	const struct vb_rdma_exchange *local = vb_rdma_exchange_local();
	const struct vb_rdma_request accept = {.operation = VB_RDMA_ACCEPT,
					       .listener = ends.listener};
	struct vb_prepared_qp *prepared;
	struct vb_rdma_result result;
	struct vb_endpoint endpoint;
	struct vb_qp_config config;
	uint8_t bytes[64];
	void *line;

	vb_qp_config_init(&config);
	prepared = vb_qp_prepare(liar.device, liar.pd, liar.cq->cq, liar.cq->cq, &config);
	HAVE(prepared);
	OK(local->connect(ends.hall, "server", &line));
	say_on_line(line, bytes, greeting(bytes, vb_prepared_endpoint(prepared)));
	hear_on_line(line, bytes, 64);
	OK(vb_endpoint_decode(bytes + 8, VB_ENDPOINT_BYTES, &endpoint));
	liar.qp = vb_handshake(prepared, &endpoint);
	HAVE(liar.qp);
	post_receives(8);
	say_on_line(line, "VBC\1", 4);
	OK(run(&ends, &accept, &result));
	liar.server = result.rdma;
	local->close_line(line);
}

void setUp(void)
{
	ends_open(&ends, NULL, NULL);
	liar.device = vb_device_open_named("sim", "sim0", 0, VB_GID_INDEX_ANY);
	HAVE(liar.device);
	liar.pd = vb_alloc_pd(liar.device->context);
	liar.cq = vb_cq_open(liar.device, 64, NULL);
	liar.region = vb_region_alloc(liar.device, liar.pd, 16384, VB_ACCESS_DEFAULT);
	HAVE(liar.region);
	liar_connects();
}

void tearDown(void)
{
}

/* Receives the agent's next message. Returns its type; 0 if there is none. */
static uint8_t hear_type(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 10000; i++) {
		turn(&ends);
		if (vb_cq_poll(liar.cq, &wc, 1) == 1 && wc.wr_id == 1)
			return wc.status ? 0 : ((uint8_t *)liar.region->addr)[8192 + 3];
	}
	return 0;
}

static void say(const uint8_t *bytes, size_t length)
{
	uint8_t *from = (uint8_t *)liar.region->addr + liar.said++ % 16 * 512;
	struct ibv_sge sge = {(uintptr_t)from, (uint32_t)length, liar.region->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = 2,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	memcpy(from, bytes, length);
	OK(ibv_post_send(liar.qp, &wr, &bad));
}

static void finish_liar(void)
{
	OK(vb_destroy_qp(liar.qp));
	OK(vb_rdma_close(liar.server));
	OK(vb_region_free(liar.region));
	OK(vb_cq_close(liar.cq));
	OK(vb_dealloc_pd(liar.pd));
	OK(vb_device_close(liar.device));
	ends_close(&ends);
}

/* The connection has failed with these words; the agent's other connection works. */
static void is_caught(const char *words)
{
	const char *why;
	char got[8];

	for (int i = 0; i < 1000 && !vb_rdma_error(liar.server, NULL); i++)
		turn(&ends);
	FAILS(EPROTO, vb_rdma_error(liar.server, &why));
	TEST_ASSERT_MESSAGE(strstr(why, words) != NULL, why);
	FAILS(EPROTO, vb_rdma_send(liar.server, "x", 1, S));
	assert_says(words);
	TEST_ASSERT_EQUAL_UINT8(10, hear_type());
	OK(vb_rdma_send(ends.rdma[0], "fine", 5, S));
	OK(vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, S));
	finish_liar();
}

/* A message with a header that fits it. */
static uint8_t *message(uint8_t *bytes, uint8_t type, uint32_t body)
{
	memset(bytes, 0, HEAD + body);
	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(bytes, "VM\1", 3);
	bytes[3] = type;
	put(bytes + 4, body, 4);
	return bytes + HEAD;
}

static void say_data(uint64_t total, uint64_t offset, uint32_t flags, uint32_t piece)
{
	uint8_t bytes[HEAD + 24 + 256], *body = message(bytes, 1, 24 + piece);

	put(body, total, 8);
	put(body + 8, offset, 8);
	put(body + 20, flags, 4);
	say(bytes, HEAD + 24 + piece);
}

static void say_malformed(const char *words, int at, uint8_t value)
{
	uint8_t bytes[HEAD];

	message(bytes, 2, 0);
	bytes[at] = value;
	say(bytes, sizeof(bytes));
	is_caught(words);
}

void test_shorter_than_a_header(void)
{
	say((const uint8_t *)"VM\1\2", 4);
	is_caught("shorter than its header");
}

void test_another_beginning(void)
{
	say_malformed("another beginning", 0, 'X');
}

void test_another_version(void)
{
	say_malformed("another version", 2, 2);
}

void test_an_unknown_type(void)
{
	say_malformed("unknown type", 3, 11);
}

void test_a_type_of_zero(void)
{
	say_malformed("unknown type", 3, 0);
}

void test_a_length_that_lies(void)
{
	say_malformed("another length than its header", 7, 1);
}

void test_a_credit_that_lies(void)
{
	say_malformed("credit", 11, 1);
}

void test_a_body_that_is_not_of_its_type(void)
{
	uint8_t bytes[HEAD + 8];

	message(bytes, 3, 8);
	say(bytes, sizeof(bytes));
	is_caught("than its type");
}

void test_data_that_begins_in_the_middle(void)
{
	say_data(100, 50, 0, 50);
	is_caught("begin at 0");
}

void test_data_with_a_gap(void)
{
	say_data(100, 0, 0, 50);
	say_data(100, 60, 0, 40);
	is_caught("gap");
}

void test_data_of_two_lengths(void)
{
	say_data(100, 0, 0, 50);
	say_data(101, 50, 0, 50);
	is_caught("another length than its message");
}

void test_data_beyond_its_total(void)
{
	say_data(49, 0, 0, 50);
	is_caught("beyond its total");
}

void test_data_whose_offset_wraps(void)
{
	say_data(UINT64_MAX, UINT64_MAX - 10, 0, 50);
	is_caught("beyond its total");
}

void test_data_of_a_longer_message_than_is_taken(void)
{
	say_data((1ull << 30) + 1, 0, 0, 50);
	is_caught("longer message");
}

void test_data_without_bytes(void)
{
	say_data(10, 0, 0, 0);
	is_caught("without bytes");
}

void test_data_with_unknown_flags(void)
{
	say_data(10, 0, 4, 10);
	is_caught("unknown flags");
}

void test_data_beyond_the_slots(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 33; i++) {
		say_data(1, 0, 0, 1);
		TEST_ASSERT_EQUAL_INT(1, vb_cq_wait(liar.cq, &wc, 1, S));
		turn(&ends);
	}
	is_caught("beyond the slots");
}

void test_an_answer_without_a_request(void)
{
	uint8_t bytes[HEAD + 4];

	message(bytes, 7, 4);
	say(bytes, sizeof(bytes));
	is_caught("a request that does not exist");
}

void test_an_id_that_was_never_given(void)
{
	uint8_t bytes[HEAD + 8];

	put(message(bytes, 8, 8), 1, 8);
	say(bytes, sizeof(bytes));
	is_caught("never given");
}

void test_an_offer_whose_addresses_wrap(void)
{
	uint8_t bytes[HEAD + 40], *body = message(bytes, 5, 40);

	put(body + 12, UINT64_MAX, 8);
	put(body + 20, 2, 8);
	say(bytes, sizeof(bytes));
	is_caught("wrap around");
}

void test_a_request_with_unknown_access(void)
{
	uint8_t bytes[HEAD + 32], *body = message(bytes, 3, 32);

	put(body, 64, 8);
	put(body + 16, 8, 4);
	say(bytes, sizeof(bytes));
	is_caught("unknown access");
}

/* Answers the agent's request with another region than it requested. */
static void say_grant(uint64_t length, uint32_t access, uint32_t code, uint32_t tag)
{
	uint8_t bytes[HEAD + 44], *body = message(bytes, 4, 44);

	put(bytes + 12, tag, 4);
	put(body, code, 4);
	put(body + 4, access, 4);
	put(body + 8, 1, 8);
	put(body + 16, 4096, 8);
	put(body + 24, length, 8);
	put(body + 40, 0x1234, 4);
	say(bytes, sizeof(bytes));
}

static struct vb_rdma_op agent_asks(void)
{
	const struct vb_rdma_request request = {.operation = VB_RDMA_REQUEST_REMOTE_MR,
						.rdma = liar.server,
						.length_bytes = 64,
						.access = VB_MR_READ};
	struct vb_rdma_op op = start(&request);

	TEST_ASSERT_EQUAL_UINT8(3, hear_type());
	return op;
}

void test_a_grant_of_another_length(void)
{
	struct vb_rdma_op op = agent_asks();

	say_grant(65, VB_MR_READ, 0, 1);
	FAILS(EPROTO, finish(&ends, op, NULL));
	is_caught("another length");
}

void test_a_grant_of_more_access(void)
{
	struct vb_rdma_op op = agent_asks();

	say_grant(64, VB_MR_ALL, 0, 1);
	FAILS(EPROTO, finish(&ends, op, NULL));
	is_caught("another access");
}

void test_a_grant_with_an_unknown_code(void)
{
	struct vb_rdma_op op = agent_asks();

	say_grant(64, VB_MR_READ, 99, 1);
	FAILS(EPROTO, finish(&ends, op, NULL));
	is_caught("unknown code");
}

/* The key is invented: its use ends this connection and no other. */
void test_a_grant_with_a_key_that_lies(void)
{
	struct vb_rdma_op op = agent_asks();
	struct vb_local_mr *local = vb_alloc_local_mr(ends.agent[1], 64, 0);
	struct vb_rdma_result result;
	char got[8];

	say_grant(64, VB_MR_READ, 0, 1);
	OK(finish(&ends, op, &result));
	FAILS(EIO, vb_rdma_read(liar.server, &(struct vb_local_slice){local, 0, 64}, result.remote,
				0, S));
	assert_says("remote");
	vb_remote_mr_put(result.remote);
	vb_local_mr_put(local);
	OK(vb_rdma_send(ends.rdma[0], "fine", 5, S));
	OK(vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, S));
	finish_liar();
}

/* The peer dies at the request: the operation ends with the connection. */
void test_a_peer_that_dies_when_it_is_asked(void)
{
	struct vb_rdma_op op = agent_asks();
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	OK(vb_modify_qp(liar.qp, &attr, IBV_QP_STATE));
	FAILS(EIO, vb_rdma_send(liar.server, "x", 1, 100 * S));
	FAILS(EIO, vb_rdma_poll(op, NULL));
	finish_liar();
}

/* Random bytes end this connection and nothing else. */
void test_any_bytes(void)
{
	uint64_t seed = 4711;
	struct ibv_wc wc;
	uint8_t bytes[128];
	char got[8];

	printf("seed %llu\n", (unsigned long long)seed);
	for (int i = 0; i < 60; i++) {
		size_t length = next_random(&seed) % sizeof(bytes);

		fill(bytes, sizeof(bytes), next_random(&seed) | 1);
		if (length > HEAD)
			message(bytes, (uint8_t)(1 + next_random(&seed) % 10), 0);
		put(bytes + 4, length - HEAD, 4);
		fill(bytes + HEAD, sizeof(bytes) - HEAD, next_random(&seed) | 1);
		say(bytes, length);
		vb_cq_wait(liar.cq, &wc, 1, S);
		for (int j = 0; j < 10 && !vb_rdma_error(liar.server, NULL); j++)
			turn(&ends);
		if (!vb_rdma_error(liar.server, NULL))
			continue;
		OK(vb_rdma_close(liar.server));
		OK(vb_destroy_qp(liar.qp));
		liar_connects();
	}
	OK(vb_rdma_send(ends.rdma[0], "fine", 5, S));
	OK(vb_rdma_receive(ends.rdma[1], got, sizeof(got), NULL, S));
	finish_liar();
}
