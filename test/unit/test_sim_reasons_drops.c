/* SPDX-License-Identifier: MIT */
/*
 * Why packets are dropped: each cause, and the whole sentence that the event of the drop gives. Also
 * failures of datagrams and of XRC.
 */
#include "test/unit/sim_explain.h"

#include <fcntl.h>
#include <verbena/fault.h>
#include <verbena/verbs.h>

static struct ibv_qp *from, *to; /* at a and at b */
static struct ibv_ah *way;	 /* from a to b */

/* What the watcher has seen last. */
static struct {
	unsigned int count;
	char device[32];
	char words[512];
	uint32_t qpn;
	enum vb_reason reason;
} drop, failure;

static void watch(void *arg, const struct vb_event *event)
{
	(void)arg;
	if (event->kind == VB_EVENT_DROP) {
		TEST_ASSERT_NOT_NULL(event->why);
		drop.reason = event->why->reason;
		drop.count++;
		drop.qpn = event->qpn;

		snprintf(drop.device, sizeof(drop.device), "%s", event->device);
		TEST_ASSERT_NOT_NULL(event->why);
		vb_why_text(event->why, drop.words, sizeof(drop.words));
	} else if (event->kind == VB_EVENT_FAILURE) {
		failure.count++;
		failure.qpn = event->qpn;
		vb_why_text(event->why, failure.words, sizeof(failure.words));
		snprintf(failure.device, sizeof(failure.device), "%s %s", event->device,
			 event->texts[0]);
	}
}

static void open_world(const struct vb_sim_config *config)
{
	struct ibv_qp_init_attr_ex attr;
	struct ibv_ah_attr path;
	struct ibv_device **list;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	B.free_device_list(list);
	/* The QPNs of the two devices differ by one. */
	attr = qp_attr(&b, IBV_QPT_RC);
	TEST_ASSERT_NOT_NULL(B.create_qp_ex(b.context, &attr));
	path = (struct ibv_ah_attr){.is_global = 1,
				    .port_num = 1,
				    .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};
	way = B.create_ah(a.pd, &path);
	memset(&drop, 0, sizeof(drop));
	memset(&failure, 0, sizeof(failure));
	B.watch(watch, NULL);
}

void setUp(void)
{
	open_world(NULL);
}

void tearDown(void)
{
	B.watch(NULL, NULL);
	vb_fault_clear(NULL);
	close_pair();
}

/* Connects a QP of a type at each end. */
static void connect_type(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, type);

	from = B.create_qp_ex(a.context, &attr);
	attr = qp_attr(&b, type);
	to = B.create_qp_ex(b.context, &attr);
	TEST_ASSERT_NOT_NULL(to);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
}

static void post(struct ibv_send_wr wr, uint32_t length)
{
	struct ibv_sge sge = sge_of(&a, 0, length);

	wr.wr_id = 7;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
}

static void send_one(uint32_t length)
{
	post((struct ibv_send_wr){.opcode = IBV_WR_SEND}, length);
}

static void write_one(uint32_t rkey, uint32_t length)
{
	post((struct ibv_send_wr){.opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = {(uintptr_t)b.buffer, rkey}},
	     length);
}

static void send_datagram(uint32_t qpn, uint32_t qkey, uint32_t length)
{
	post((struct ibv_send_wr){.opcode = IBV_WR_SEND,
				  .wr.ud = {.ah = way, .remote_qpn = qpn, .remote_qkey = qkey}},
	     length);
}

static void receive(uint32_t length)
{
	struct ibv_sge sge = sge_of(&b, 0, length);
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &wr, &bad));
}

/* Runs the instant, in which sim1 drops one packet. */
static void expect_drop(enum vb_reason reason, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void expect_drop(enum vb_reason reason, const char *format, ...)
{
	char expected[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof(expected), format, arguments);
	va_end(arguments);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_STRING(expected, drop.words);
	TEST_ASSERT_EQUAL_HEX(reason, drop.reason);

	TEST_ASSERT_EQUAL_STRING("sim1", drop.device);
	TEST_ASSERT_EQUAL_UINT(1, drop.count);
	memset(&drop, 0, sizeof(drop));
}

static void modify_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, IBV_QP_STATE));
}

static void corrupt(struct vb_fault_rule rule)
{
	rule.action = VB_FAULT_CORRUPT;
	rule.count = 1;
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
}

/* --- frames --- */

void test_frames_that_are_wrong(void)
{
	connect_type(IBV_QPT_UC);
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_ANY_BIT});
	send_one(8);
	expect_drop(
		VB_WHY_DROP_ICRC,
		"dropped UC SEND_ONLY at PSN 0: its ICRC is wrong; look for what changes frames "
		"on the way");
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_VERSION, .value = 3, .right_icrc = true});
	send_one(8);
	expect_drop(VB_WHY_DROP_VERSION,
		    "dropped a packet: the transport header version of its BTH is not 0; look for "
		    "what changes frames on the way");
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_OPCODE, .value = 0xff, .right_icrc = true});
	send_one(8);
	expect_drop(
		VB_WHY_DROP_OPCODE,
		"dropped a packet: the opcode 0xff is reserved; look for what changes frames on "
		"the way");
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_LENGTH, .value = 8, .right_icrc = true});
	send_one(8);
	expect_drop(VB_WHY_DROP_TRUNCATED,
		    "dropped a frame of 54 bytes, which is shorter than its headers say; look for "
		    "what cuts frames on the way");
	corrupt((struct vb_fault_rule){.change = VB_CHANGE_PAD, .value = 1, .right_icrc = true});
	send_one(0);
	expect_drop(VB_WHY_DROP_PAD,
		    "dropped UC SEND_ONLY: the pad count of its BTH does not fit the payload; look "
		    "for what changes frames on the way");
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_FRAME_BYTE, .offset = 12, .value = 0x55});
	send_one(8);
	expect_drop(VB_WHY_DROP_NETWORK_HEADER,
		    "dropped a frame of 66 bytes whose headers before the BTH are not those of the "
		    "port's link layer; look for what changes frames on the way");
}

/* --- QPs that take no such packet --- */

void test_packets_of_connections_that_do_not_fit(void)
{
	connect_type(IBV_QPT_UC);
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_PKEY, .value = 0x1234, .right_icrc = true});
	send_one(8);
	expect_drop(VB_WHY_DROP_PKEY,
		    "dropped UC SEND_ONLY: its P_Key 0x1234 does not match the 0xffff of QP 0x%x; "
		    "give both QPs P_Keys of one partition, one of them a full member",
		    to->qp_num);
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_DEST_QPN, .value = 0x999, .right_icrc = true});
	send_one(8);
	expect_drop(
		VB_WHY_DROP_NO_QP,
		"dropped UC SEND_ONLY: the port has no QP 0x999; set dest_qp_num, or remote_qpn "
		"of a datagram, to the qp_num of a QP that exists");
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_OPCODE, .value = 0x04 /* RC SEND_ONLY */, .right_icrc = true});
	send_one(8);
	expect_drop(VB_WHY_DROP_TRANSPORT,
		    "dropped RC SEND_ONLY: QP 0x%x is of type UC; connect QPs of one type",
		    to->qp_num);
	modify_state(to, IBV_QPS_ERR);
	send_one(8);
	expect_drop(
		VB_WHY_DROP_STATE_ERR,
		"dropped UC SEND_ONLY: QP 0x%x is in ERR; find out what moved the QP to ERR; take "
		"it through RESET",
		to->qp_num);
	modify_state(to, IBV_QPS_RESET);
	send_one(8);
	expect_drop(
		VB_WHY_DROP_STATE_EARLY,
		"dropped UC SEND_ONLY: QP 0x%x is in RESET, which takes no requests; move the QP "
		"to RTR before the peer sends",
		to->qp_num);
	connect_qp(to, &b, from->qp_num);
	send_one(8);
	expect_drop(
		VB_WHY_DROP_STRANGER,
		"dropped UC SEND_ONLY: QP 0x%x is connected to another port than that of the GID "
		"::ffff:10.0.0.1; set ah_attr of each QP to the address of the other",
		to->qp_num);
}

void test_an_answer_to_a_qp_that_takes_none(void)
{
	connect_type(IBV_QPT_RC);
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_OPCODE, .value = 0x11 /* ACK */, .right_icrc = true});
	modify_state(to, IBV_QPS_RESET);
	write_one(b.mr->rkey, 8);
	expect_drop(VB_WHY_DROP_STATE_ANSWER,
		    "dropped RC ACKNOWLEDGE: QP 0x%x is in RESET, and takes answers in RTS and SQD "
		    "only; keep the QP in RTS while sends are outstanding",
		    to->qp_num);
}

void test_an_address_that_the_port_has_no_more(void)
{
	union ibv_gid other = b.gid;
	const struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0"}, {.name = "sim1"}},
		.link_count = 1,
		.links = {{.a = "sim0", .b = "sim1", .delay_ns = 1000}}};

	tearDown();
	open_world(&config);
	connect_type(IBV_QPT_UC);
	send_one(8);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	other.raw[15] = 99;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(b.context, 1, 1, &other));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 1000));
	expect_drop(VB_WHY_DROP_GID,
		    "dropped UC SEND_ONLY: the port does not have the destination GID "
		    "::ffff:10.0.0.2; give the peer a GID that the port has now");
}

/* --- unreliable connections --- */

void test_messages_of_uc_that_are_dropped(void)
{
	connect_type(IBV_QPT_UC);
	send_one(8);
	expect_drop(
		VB_WHY_DROP_NO_RECEIVE,
		"dropped UC SEND_ONLY: no receive is posted to QP 0x%x or its SRQ; post receives "
		"before the peer sends",
		to->qp_num);
	write_one(0x77777777, 8);
	expect_drop(VB_WHY_RKEY_UNKNOWN,
		    "refused RDMA WRITE at PSN 1: no MR or window of the device has the rkey "
		    "0x77777777; send the rkey of a registered MR to the peer");
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(to, &(struct ibv_qp_attr){0}, IBV_QP_ACCESS_FLAGS));
	write_one(b.mr->rkey, 8);
	expect_drop(VB_WHY_REQUEST_QP_RIGHT,
		    "refused RDMA WRITE at PSN 2: the QP lacks IBV_ACCESS_REMOTE_WRITE in "
		    "qp_access_flags; set qp_access_flags by ibv_modify_qp()");
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_LENGTH, .value = 12, .skip = 1, .right_icrc = true});
	receive(4096);
	send_one(2000);
	expect_drop(VB_WHY_REQUEST_EMPTY,
		    "refused SEND at PSN 4: the last packet of a message in several packets has no "
		    "payload; look for what changes packets on the way");
}

void test_a_message_of_uc_that_was_cut(void)
{
	const struct vb_fault_rule rule = {.count = 1, .skip = 1};

	connect_type(IBV_QPT_UC);
	receive(4096);
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, NULL));
	send_one(3000);
	expect_drop(
		VB_WHY_DROP_CUT_MESSAGE,
		"dropped UC SEND_LAST at PSN 2: an earlier packet of the message did not reach QP "
		"0x%x; a UC QP does not send again; repeat the message if it matters",
		to->qp_num);
}

/* --- datagrams --- */

void test_datagrams_that_are_dropped(void)
{
	connect_type(IBV_QPT_UD);
	send_datagram(to->qp_num, QKEY, 8);
	expect_drop(
		VB_WHY_DROP_NO_RECEIVE,
		"dropped UD SEND_ONLY: no receive is posted to QP 0x%x or its SRQ; post receives "
		"before the peer sends",
		to->qp_num);
	receive(64);
	send_datagram(to->qp_num, 0x222, 8);
	expect_drop(VB_WHY_DROP_QKEY,
		    "dropped UD SEND_ONLY of QP 0x%x: its Q_Key is 0x222, and that of QP 0x%x is "
		    "0x11111111; set remote_qkey of the send to the receiver's Q_Key",
		    from->qp_num, to->qp_num);
	send_datagram(to->qp_num, QKEY, 64);
	expect_drop(VB_WHY_DROP_SHORT_RECEIVE,
		    "dropped UD SEND_ONLY of 64 bytes: with the GRH it needs 104 bytes, and the "
		    "receive of QP 0x%x has 64, 40 too few; add 40 bytes to the length of each UD "
		    "receive: the 40 bytes of the GRH come first",
		    to->qp_num);
}

void test_a_datagram_receive_that_fails(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(b.context, "short_datagram_receive_fails", true));
	connect_type(IBV_QPT_UD);
	receive(64);
	send_datagram(to->qp_num, QKEY, 64);
	expect_explained(
		&b, 3, IBV_WC_LOC_QP_OP_ERR, VB_WHY_LENGTH_DATAGRAM_RECEIVE,
		"sim1 QP 0x%x, wr_id 3: IBV_WC_LOC_QP_OP_ERR: the datagram of 64 bytes needs "
		"104 bytes with the GRH, and the receive has room for 64; add 40 bytes to the "
		"length of each UD receive: the 40 bytes of the GRH come first",
		to->qp_num);
	TEST_ASSERT_EQUAL_UINT(1, failure.count);
	TEST_ASSERT_EQUAL_STRING("sim1 receive", failure.device);
}

void test_datagrams_that_fail_at_the_sender(void)
{
	struct ibv_ah_attr path = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "long_datagrams_fail", true));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "foreign_ahs_end_sends", true));
	connect_type(IBV_QPT_UD);
	send_datagram(to->qp_num, QKEY, 4097);
	expect_explained(&a, 7, IBV_WC_LOC_LEN_ERR, VB_WHY_LENGTH_DATAGRAM,
			 "sim0 QP 0x%x, wr_id 7: IBV_WC_LOC_LEN_ERR: the datagram of 4097 bytes is "
			 "longer than the port's active MTU of 4096; send at most active_mtu of "
			 "ibv_query_port()",
			 from->qp_num);
	modify_state(from, IBV_QPS_RTS);
	way = B.create_ah(B.alloc_pd(a.context), &path);
	send_datagram(to->qp_num, QKEY, 8);
	expect_explained(
		&a, 7, IBV_WC_LOC_QP_OP_ERR, VB_WHY_OPERATION_AH,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_LOC_QP_OP_ERR: the AH of the datagram belongs "
		"to another PD than the QP; create the AH in the QP's PD",
		from->qp_num);
}

/* VB_WHY_DROP_LONG_DATAGRAM: the send completes with success, and nothing leaves. */
void test_a_datagram_that_is_not_sent(void)
{
	char expected[256];

	connect_type(IBV_QPT_UD);
	send_datagram(to->qp_num, QKEY, 4097);
	expect_wc(&a, 7, IBV_WC_SUCCESS);
	snprintf(expected, sizeof(expected),
		 "dropped the datagram of 4097 bytes that QP 0x%x was to send: the port's active "
		 "MTU "
		 "is 4096; send at most active_mtu of ibv_query_port()",
		 from->qp_num);
	TEST_ASSERT_EQUAL_STRING(expected, drop.words);
	TEST_ASSERT_EQUAL_STRING("sim0", drop.device);
	TEST_ASSERT_EQUAL_UINT32(from->qp_num, drop.qpn);
	TEST_ASSERT_EQUAL_UINT(1, drop.count);
}

/* --- XRC and SRQs --- */

void test_an_xrc_srq_that_does_not_exist(void)
{
	struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
							 IBV_XRCD_INIT_ATTR_OFLAGS,
					    .fd = -1,
					    .oflags = O_CREAT};
	struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV,
					     .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					     .xrcd = B.open_xrcd(b.context, &domain)};
	struct ibv_qp_init_attr_ex sender = qp_attr(&a, IBV_QPT_XRC_SEND);

	to = B.create_qp_ex(b.context, &target);
	from = B.create_qp_ex(a.context, &sender);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	post((struct ibv_send_wr){.opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = 0x55}, 8);
	expect_explained(
		&a, 7, IBV_WC_REM_INV_REQ_ERR, VB_WHY_REQUEST_SRQ,
		"sim0 QP 0x%x, wr_id 7: IBV_WC_REM_INV_REQ_ERR: sim1 QP 0x%x refused SEND "
		"at PSN 0: the QP's XRC domain has no SRQ with the number 0x55; set "
		"qp_type.xrc.remote_srqn to the number that ibv_get_srq_num() returns at the "
		"peer",
		from->qp_num, to->qp_num);
	corrupt((struct vb_fault_rule){
		.change = VB_CHANGE_OPCODE, .value = 0xb1 /* XRC ACK */, .right_icrc = true});
	modify_state(to, IBV_QPS_RESET);
	connect_qp(to, &a, from->qp_num);
	modify_state(from, IBV_QPS_RESET);
	connect_qp(from, &b, to->qp_num);
	memset(&drop, 0, sizeof(drop));
	post((struct ibv_send_wr){.opcode = IBV_WR_SEND, .qp_type.xrc.remote_srqn = 0x55}, 8);
	expect_drop(VB_WHY_DROP_DIRECTION,
		    "dropped XRC ACKNOWLEDGE: QP 0x%x is of type XRC_RECV, which is on the other "
		    "side of an XRC connection; connect an XRC_SEND QP with an XRC_RECV QP",
		    to->qp_num);
}

void test_a_shared_receive_of_another_pd(void)
{
	struct ibv_pd *pd = B.alloc_pd(b.context);
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = B.create_srq(pd, &init);
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;

	from = B.create_qp_ex(a.context, &attr);
	attr = qp_attr(&b, IBV_QPT_RC);
	attr.srq = srq;
	to = B.create_qp_ex(b.context, &attr);
	connect_qp(from, &b, to->qp_num);
	connect_qp(to, &a, from->qp_num);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_srq_recv(srq, &wr, &bad));
	send_one(8);
	expect_explained(
		&b, 3, IBV_WC_LOC_PROT_ERR, VB_WHY_LKEY_PD,
		"sim1 QP 0x%x, wr_id 3: IBV_WC_LOC_PROT_ERR: SGE 0 of the receive: the MR "
		"with the lkey 0x%x belongs to another PD than the work queue; sim0 QP 0x%x "
		"sent the message: SEND of 8 bytes with wr_id 7; register the memory in the "
		"PD of the QP, or for a shared receive in the PD of the SRQ",
		to->qp_num, b.mr->lkey, from->qp_num);
}

/* --- InfiniBand --- */

/* The last request that sim0 has sent. */
static struct {
	uint8_t bytes[256];
	size_t length;
} frame;

static void keep_frame(void *arg, uint64_t now_ns, const uint8_t *bytes, size_t length_bytes,
		       bool lost)
{
	(void)arg, (void)now_ns, (void)lost;
	TEST_ASSERT_TRUE(length_bytes <= sizeof(frame.bytes));
	memcpy(frame.bytes, bytes, length_bytes);
	frame.length = length_bytes;
}

static void inject(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_inject(b.context, 1, frame.bytes, frame.length));
}

/* Opens two InfiniBand devices, whose ports have the LIDs 1 and 2. */
static void open_infiniband(void)
{
	tearDown();
	open_infiniband_pair();
	B.watch(watch, NULL);
}

static void connect_lid(struct ibv_qp *qp, uint16_t dlid, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						     IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
				    .path_mtu = IBV_MTU_1024,
				    .dest_qp_num = dest_qpn,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 12,
				    .ah_attr = {.dlid = dlid, .port_num = 1}};
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						     IBV_QP_MAX_DEST_RD_ATOMIC |
						     IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1};
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr,
					     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						     IBV_QP_MAX_QP_RD_ATOMIC));
}

static void make_rc(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	from = B.create_qp_ex(a.context, &attr);
	attr = qp_attr(&b, IBV_QPT_RC);
	to = B.create_qp_ex(b.context, &attr);
}

void test_frames_of_infiniband(void)
{
	open_infiniband();
	make_rc();
	connect_lid(from, 2, 0x999);
	vb_sim_watch(NULL, keep_frame, NULL);
	send_one(8);
	expect_drop(VB_WHY_DROP_NO_QP,
		    "dropped RC SEND_ONLY: the port has no QP 0x999; set "
		    "dest_qp_num, or remote_qpn of a datagram, to the qp_num of a "
		    "QP that exists");
	vb_sim_watch(NULL, NULL, NULL);
	frame.bytes[frame.length - 1] ^= 1;
	inject();
	expect_drop(VB_WHY_DROP_VCRC, "dropped RC SEND_ONLY at PSN 0: its VCRC is wrong; look for "
				      "what changes frames on the link");
	frame.bytes[frame.length - 1] ^= 1;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_lid(b.context, 1, 9));
	inject();
	expect_drop(VB_WHY_DROP_LID, "dropped RC SEND_ONLY: the packet went to the LID 2, and the "
				     "port has the LID 9; give the peer the port's LID");
}

void test_lids_that_do_not_fit(void)
{
	struct vb_completion_why why;
	struct ibv_wc wc;
	char text[512];

	open_infiniband();
	make_rc();
	connect_lid(from, 2, to->qp_num);
	connect_lid(to, 7, from->qp_num);
	send_one(8);
	expect_drop(VB_WHY_DROP_STRANGER_LID,
		    "dropped RC SEND_ONLY: QP 0x%x is connected to the LID 7, and the packet came "
		    "from the LID 1, or only one side uses a GRH; set ah_attr of each QP to the "
		    "address of the other",
		    to->qp_num);
	make_rc();
	connect_lid(from, 99, to->qp_num);
	send_one(8);
	expect_failed(&a, 7, IBV_WC_RETRY_EXC_ERR);
	wc = expect_failed(&a, 7, IBV_WC_RETRY_EXC_ERR);
	TEST_ASSERT_EQUAL_INT(0, vb_completion_why(a.context, &wc, &why));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_WAY_NO_LID, why.peer_why.reason);
	TEST_ASSERT_EQUAL_STRING(
		"no port has the destination LID 99; set ah_attr.dlid to the peer's LID",
		vb_why_text(&why.peer_why, text, sizeof(text)));
}

/* --- events and worlds --- */

void test_failures_are_events_on_both_sides(void)
{
	connect_type(IBV_QPT_RC);
	receive(8);
	send_one(64);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_UINT(2, failure.count);
	TEST_ASSERT_EQUAL_STRING("sim0 send", failure.device);
	TEST_ASSERT_EQUAL_HEX32(from->qp_num, failure.qpn);
	TEST_ASSERT_EQUAL_STRING(
		"the peer refused SEND of 64 bytes at PSN 0 as an invalid request; "
		"compare the message with the peer's receive, path_mtu, "
		"qp_access_flags and max_dest_rd_atomic",
		failure.words);
}

void test_flushes_are_events_of_their_queue(void)
{
	connect_type(IBV_QPT_RC);
	receive(8);
	modify_state(to, IBV_QPS_ERR);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_UINT(1, failure.count);
	TEST_ASSERT_EQUAL_STRING("sim1 receive", failure.device);
	modify_state(from, IBV_QPS_ERR);
	send_one(8);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_UINT(2, failure.count);
	TEST_ASSERT_EQUAL_STRING("sim0 send", failure.device);
}

/* The default world has a QP with the number of the peer, too. */
void test_a_peer_in_another_world_is_unknown(void)
{
	struct vb_sim *world = vb_sim_open(NULL);
	struct ibv_device **list = vb_sim_device_list(world, NULL);
	struct end other;

	connect_type(IBV_QPT_RC);
	open_end(&other, list[0]);
	B.free_device_list(list);
	{
		struct ibv_qp_init_attr_ex attr = qp_attr(&other, IBV_QPT_RC);
		struct ibv_qp *lonely = B.create_qp_ex(other.context, &attr);
		struct ibv_sge sge = sge_of(&other, 0, 8);
		struct ibv_send_wr wr = {
			.wr_id = 7, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};

		TEST_ASSERT_EQUAL_HEX32(from->qp_num, lonely->qp_num);
		connect_qp(lonely, &b, to->qp_num);
		TEST_ASSERT_EQUAL_INT(0, post_wr(lonely, &wr));
		expect_explained(&other, 7, IBV_WC_RETRY_EXC_ERR, VB_WHY_RETRY_TIMEOUT,
				 "sim0 QP 0x%x, wr_id 7: IBV_WC_RETRY_EXC_ERR: no answer to PSN 0 "
				 "came in 4 ack timeouts of 67.1089 ms each (timeout 14, retry_cnt "
				 "3); sim1 dropped RC SEND_ONLY: the port has no QP 0x%x; set "
				 "dest_qp_num, or remote_qpn of a datagram, to the qp_num of a QP "
				 "that exists",
				 lonely->qp_num, to->qp_num);
	}
	B.close_device(other.context);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}
