/* SPDX-License-Identifier: MIT */
/* Expected packets: the patterns, and each failure in words. */
#include "test/expect/expect.h"

static struct vb_pair *pair;

void setUp(void)
{
	fresh_world(2, VB_SIM_CLOCK_VIRTUAL);
	vb_expect_set_handler(keep_failure, NULL);
	OK(vb_expect_begin());
	pair = open_pair(&(struct vb_pair_options){.psn = 100});
	vb_expect_mark();
}

void tearDown(void)
{
	OK(vb_pair_close(pair));
	vb_expect_end();
	assert_nothing_left();
	vb_expect_set_timeout(0);
}

static void message(uint32_t length)
{
	OK(vb_pair_receive(&pair->b, 1, 0, length));
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, length));
}

/* The check waits for packets that are still to come, and moves the mark. */
void test_a_message_and_its_ack(void)
{
	message(64);
	HOLDS(vb_expect_packets("SEND_ONLY ACK"));
	message(64);
	HOLDS(vb_expect_packets("sim0:RC:SEND_ONLY[psn=101,bytes=64,ack_request] "
				"sim1:ACK[psn=%d,lost=0,qp=0x%x]",
				101, pair->a.qp->qp_num));
	HOLDS(vb_expect_no_packets());
}

/* Connects two QPs of the devices of a world. */
static void connect_in(struct vb_device *devices[2], struct ibv_pd *pds[2], struct ibv_cq *cqs[2],
		       struct ibv_qp *qps[2])
{
	struct vb_prepared_qp *prepared[2];
	struct vb_endpoint ends[2];
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	for (int i = 0; i < 2; i++) {
		pds[i] = vb_alloc_pd(devices[i]->context);
		cqs[i] = vb_create_cq(devices[i]->context, 8, NULL, NULL, 0);
		prepared[i] = vb_qp_prepare(devices[i], pds[i], cqs[i], cqs[i], &config);
		TEST_ASSERT_NOT_NULL(prepared[i]);
		ends[i] = *vb_prepared_endpoint(prepared[i]);
	}
	for (int i = 0; i < 2; i++) {
		qps[i] = vb_handshake(prepared[i], &ends[!i]);
		TEST_ASSERT_NOT_NULL(qps[i]);
	}
}

/* The wait moves the time of the context's world: the link is slow. */
void test_packets_of_another_world(void)
{
	struct vb_sim_config *config = calloc(1, sizeof(*config));
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 1};
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_SEND};
	struct vb_device *devices[2];
	struct ibv_device **list;
	struct ibv_pd *pds[2];
	struct ibv_cq *cqs[2];
	struct ibv_qp *qps[2];
	struct vb_sim *other;

	config->device_count = 2;
	config->link_count = 1;
	config->links[0] = (struct vb_sim_link_config){"other0", "other1", 10000, 0};
	strcpy(config->devices[0].name, "other0");
	strcpy(config->devices[1].name, "other1");
	other = vb_sim_open(config);
	free(config);
	TEST_ASSERT_NOT_NULL(other);
	list = vb_sim_device_list(other, NULL);
	for (int i = 0; i < 2; i++) {
		devices[i] = vb_device_open(list[i], 0, VB_GID_INDEX_ANY);
		TEST_ASSERT_NOT_NULL(devices[i]);
	}
	vb_free_device_list(list);
	connect_in(devices, pds, cqs, qps);
	OK(vb_post_recv(qps[1], &recv, &bad_recv));
	OK(vb_post_send(qps[0], &wr, &bad));
	HOLDS(vb_expect_packets_of(devices[0]->context, "other0:SEND_ONLY other1:ACK"));
	TEST_ASSERT_TRUE(vb_sim_now_ns(other) >= 10000);
	FAILS_SAYING(vb_expect_packets_of(devices[0]->context, "SEND_ONLY"), "nothing can come");
	for (int i = 0; i < 2; i++) {
		OK(vb_destroy_qp(qps[i]));
		OK(vb_destroy_cq(cqs[i]));
		OK(vb_dealloc_pd(pds[i]));
		OK(vb_device_close(devices[i]));
	}
	OK(vb_sim_close(other));
}

void test_wildcards_and_repetitions(void)
{
	const char *const patterns[] = {
		"SEND_FIRST SEND_MIDDLE{2} SEND_LAST ACKNOWLEDGE",
		"SEND_FIRST SEND_MIDDLE+ SEND_LAST ACK",
		"SEND_* ... ACK",
		"SEND_*{4} ACK",
		"*{5}",
		"...",
		"* * * * *",
		"SEND_*{1,} ACK?",
		"NAK? SEND_*{2,9} NAK? ACK",
		"(SEND_*{2}){2} ACK",
		"... SEND_LAST ...",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		message(4 * 4096);
		HOLDS(vb_expect_packets("%s", patterns[i]));
	}
}

void test_a_lost_packet(void)
{
	const struct vb_fault_rule lose = {.action = VB_FAULT_DROP, .from = "sim0", .count = 1};

	OK(vb_fault_add(NULL, &lose, NULL));
	message(64);
	HOLDS(vb_expect_packets("SEND_ONLY[lost] SEND_ONLY[lost=0] ACK"));
}

void test_naks(void)
{
	struct ibv_sge sge = {(uintptr_t)pair->a.buffer, 64, pair->a.mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .wr.rdma = {(uintptr_t)pair->b.buffer, pair->b.mr->rkey ^ 0xff00}},
			   *bad;

	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	HOLDS(vb_expect_packets("SEND_ONLY RNR_NAK"));
	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	HOLDS(vb_expect_packets("SEND_ONLY ACK"));
	OK(vb_post_send(pair->a.qp, &wr, &bad));
	HOLDS(vb_expect_packets("RDMA_READ_REQUEST NAK"));
}

void test_another_packet_came(void)
{
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	FAILS_WITH("another packet came than the pattern has\n"
		   "  expected: SEND_ONLY ACK\n"
		   "                      ^\n"
		   "  came:     SEND_ONLY RNR_NAK \n"
		   "                      ^\n"
		   "    1         0.000 us  sim0  SEND_ONLY psn=100 qp=0x10 bytes=64\n"
		   "    2         0.000 us  sim1  RNR_NAK psn=100 qp=0x10 (RNR NAK (2.56 ms))   "
		   "<-- here",
		   vb_expect_packets("SEND_ONLY ACK"));
}

/* A packet of the right name with a wrong field, from a wrong device, of a wrong transport. */
void test_fields_that_differ(void)
{
	const char *const patterns[] = {
		"SEND_ONLY[psn=99]", "SEND_ONLY[qp=1]",	     "SEND_ONLY[bytes=63]",
		"SEND_ONLY[lost]",   "SEND_ONLY[solicited]", "SEND_ONLY[ack_request=0]",
		"sim1:SEND_ONLY",    "UC:SEND_ONLY",	     "SEND_ONLY[imm=5]",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		message(64);
		FAILS_SAYING(vb_expect_packets("%s ACK", patterns[i]),
			     "another packet came than the pattern has");
	}
}

void test_a_packet_too_many(void)
{
	message(64);
	FAILS_WITH("a packet came that the pattern does not have\n"
		   "  expected: SEND_ONLY\n"
		   "                     ^\n"
		   "  came:     SEND_ONLY ACK \n"
		   "                      ^\n"
		   "    1         0.000 us  sim0  SEND_ONLY psn=100 qp=0x10 bytes=64\n"
		   "    2         0.000 us  sim1  ACK psn=100 qp=0x10   <-- here",
		   vb_expect_packets("SEND_ONLY"));
	/* The failure has moved the mark. */
	message(64);
	HOLDS(vb_expect_packets("SEND_ONLY ACK"));
}

void test_a_packet_that_does_not_come(void)
{
	message(64);
	FAILS_WITH("a packet of the pattern did not come, and nothing can come: no packet is under "
		   "way and no "
		   "timer runs\n"
		   "  in flight: sim0: CQ 0: 1 completion was never polled; "
		   "sim1: CQ 0: 1 completion was never polled\n"
		   "  expected: SEND_ONLY ACK (NAK ACK)\n"
		   "                           ^\n"
		   "  came:     SEND_ONLY ACK \n"
		   "                          ^\n"
		   "    1         0.000 us  sim0  SEND_ONLY psn=100 qp=0x10 bytes=64\n"
		   "    2         0.000 us  sim1  ACK psn=100 qp=0x10",
		   vb_expect_packets("SEND_ONLY ACK (NAK ACK)"));
	vb_expect_set_timeout(10 * MS);
	OK(vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64));
	FAILS_SAYING(vb_expect_packets("(SEND_ONLY RNR_NAK)+ ACK"),
		     "a packet of the pattern did not come within 10 ms");
	OK(vb_pair_receive(&pair->b, 1, 0, 64));
	HOLDS(vb_expect_completion(pair->a.cq, "SEND"));
}

void test_wrong_patterns(void)
{
	FAILS_WITH("the pattern of packets is wrong: no packet has this name\n"
		   "  SEND_ONLY AKC\n"
		   "            ^",
		   vb_expect_packets("SEND_ONLY AKC"));
	FAILS_SAYING(vb_expect_packets("ACK[psn]["),
		     "a blank is missing\n  ACK[psn][\n          ^");
	FAILS_SAYING(vb_expect_packets("ACK[pns=1]"), "a field is one of psn, qp");
	FAILS_SAYING(vb_expect_packets("ACK[psn=1"), "']' is missing");
	FAILS_SAYING(vb_expect_packets("ACK[psn=x]"), "a number is missing");
	FAILS_SAYING(vb_expect_packets("ACK{2"), "'}' is missing");
	FAILS_SAYING(vb_expect_packets("ACK{2,1}"), "the repetition is empty or too large");
	FAILS_SAYING(vb_expect_packets("(ACK|NAK)"), "a blank is missing");
	FAILS_SAYING(vb_expect_packets("(ACK"), "')' is missing");
	FAILS_SAYING(vb_expect_packets("ACK)"), "a packet's name is missing");
	FAILS_SAYING(vb_expect_packets("((((((((( ACK"), "the groups are too deep");
	FAILS_SAYING(vb_expect_packets("UD:ACK"), "no packet has this name");
	FAILS_SAYING(vb_expect_packets("R:SEND_ONLY"), "no packet has this name");
	FAILS_SAYING(vb_expect_packets("RCC:SEND_ONLY"), "no packet has this name");
	FAILS_SAYING(vb_expect_packets("averylongdevicename:ACK"), "the device's name is too long");
	vb_expect_end();
	FAILS_SAYING(vb_expect_packets("ACK"), "call vb_expect_begin()");
}

/* A pattern that is too long by one character is refused, and not cut. */
void test_the_longest_pattern(void)
{
	const int longest = 511;

	message(64);
	HOLDS(vb_expect_packets("SEND_ONLY%*s", longest - 9, "ACK"));
	FAILS_SAYING(vb_expect_packets("SEND_ONLY%*s", longest - 8, "ACK"),
		     "the pattern has 512 characters, and may have 511");
}

/* Patterns whose search must not take exponential time. */
void test_a_hard_pattern(void)
{
	for (int i = 0; i < 8; i++)
		message(64);
	FAILS_SAYING(vb_expect_packets("(((*{0,} *{0,})+ *{0,})+ (*{0,})+)+ RDMA_READ_REQUEST"),
		     "a packet of the pattern did not come");
}

/* The events of a test before do not count. */
void test_the_mark(void)
{
	message(64);
	HOLDS(vb_expect_completion(pair->a.cq, "SEND"));
	vb_expect_mark();
	message(64);
	HOLDS(vb_expect_packets("SEND_ONLY ACK"));
	message(64);
	HOLDS(vb_expect_completion(pair->a.cq, "SEND"));
	HOLDS(vb_expect_completion(pair->a.cq, "SEND"));
	OK(vb_expect_begin());
	HOLDS(vb_expect_no_packets());
}
