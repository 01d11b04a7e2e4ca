/* SPDX-License-Identifier: MIT */
/*
 * Reasons of the simulator: each mistake, and the whole sentence that the program gets. The last
 * test holds that every reason of the table has a row here.
 */
#include "test/unit/sim_pair.h"

#include <stdio.h>

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                               \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

#define REASONS_MAX 512

static struct ibv_qp *qp;
static uint32_t qpn; /* of the last QP that was made */
static enum vb_reason seen[REASONS_MAX];
static unsigned int seen_count;

void setUp(void)
{
	struct ibv_qp_init_attr_ex attr;

	open_pair();
	attr = qp_attr(&a, IBV_QPT_RC);
	qp = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(qp);
	qpn = qp->qp_num;
}

void tearDown(void)
{
	close_pair();
}

/* Attributes that are right for each step of an RC QP. */
static struct ibv_qp_attr good(enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}},
	};
}

static void step(enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = good(state);

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, mask));
}

/* Takes the QP to the state from which the mistake is made. */
static void take_to(enum ibv_qp_state state)
{
	step(IBV_QPS_RESET, IBV_QP_STATE);
	if (state >= IBV_QPS_INIT)
		step(IBV_QPS_INIT, INIT_MASK);
	if (state >= IBV_QPS_RTR)
		step(IBV_QPS_RTR, RTR_MASK);
	if (state >= IBV_QPS_RTS)
		step(IBV_QPS_RTS, RTS_MASK);
}

/* Notes the reason of the last refusal and compares its sentence; %x stands for the QP's number. */
static void expect_sentence(enum vb_reason reason, const char *expected)
{
	char filled[512];

	snprintf(filled, sizeof(filled), expected, qpn);
	TEST_ASSERT_EQUAL_STRING(filled, sentence());
	TEST_ASSERT_EQUAL_HEX(reason, B.last_why()->reason);
	TEST_ASSERT_TRUE(seen_count < REASONS_MAX);
	seen[seen_count++] = reason;
}

/* --- ibv_modify_qp --- */

typedef void mistake_fn(struct ibv_qp_attr *attr, int *mask);

struct mistake {
	enum vb_reason reason;
	enum ibv_qp_state from, to;
	mistake_fn *make;
	const char *sentence;
};

static void none(struct ibv_qp_attr *attr, int *mask)
{
	(void)attr, (void)mask;
}

static void no_dest_qpn(struct ibv_qp_attr *attr, int *mask)
{
	(void)attr;
	*mask &= ~(IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
}

static void with_timeout(struct ibv_qp_attr *attr, int *mask)
{
	(void)attr;
	*mask |= IBV_QP_TIMEOUT;
}

static void wrong_state(struct ibv_qp_attr *attr, int *mask)
{
	attr->cur_qp_state = IBV_QPS_INIT;
	*mask |= IBV_QP_CUR_STATE;
}

static void port_2(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->port_num = 2;
}

static void pkey_60000(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->pkey_index = 60000;
}

static void unknown_access(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->qp_access_flags = 1 << 30;
}

static void mtu_0(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->path_mtu = 0;
}

static void timeout_32(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->timeout = 32;
}

static void retry_8(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->retry_cnt = 8;
}

static void rnr_retry_8(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->rnr_retry = 8;
}

static void rnr_timer_32(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->min_rnr_timer = 32;
}

static void reads_255(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->max_rd_atomic = attr->max_dest_rd_atomic = 255;
}

static void av_port_2(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.port_num = 2;
}

static void no_grh(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.is_global = 0;
}

static void sgid_200(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.grh.sgid_index = 200;
}

static void sgid_empty(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.grh.sgid_index = 9;
}

static void no_dgid(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.grh.dgid = (union ibv_gid){0};
}

static void link_local(struct ibv_qp_attr *attr, int *mask)
{
	(void)mask;
	attr->ah_attr.grh.sgid_index = 0;
}

static const struct mistake mistakes[] = {
	{VB_WHY_QP_TRANSITION, IBV_QPS_RESET, IBV_QPS_RTS, none,
	 "modify_qp: QP 0x%x (RC) cannot go from RESET to RTS; take the steps RESET, INIT, RTR, "
	 "RTS; "
	 "from any state RESET and ERR are possible"},
	{VB_WHY_QP_MASK_MISSING, IBV_QPS_INIT, IBV_QPS_RTR, no_dest_qpn,
	 "modify_qp: QP 0x%x (RC): INIT to RTR needs IBV_QP_DEST_QPN | IBV_QP_RQ_PSN; set the "
	 "attributes, and add the bits to attr_mask"},
	{VB_WHY_QP_MASK_SUPERFLUOUS, IBV_QPS_INIT, IBV_QPS_RTR, with_timeout,
	 "modify_qp: QP 0x%x (RC): INIT to RTR does not take IBV_QP_TIMEOUT; remove the bits from "
	 "attr_mask"},
	{VB_WHY_QP_CUR_STATE, IBV_QPS_RTR, IBV_QPS_RTS, wrong_state,
	 "modify_qp: QP 0x%x is in RTR, but cur_qp_state is INIT; give the QP's state, or remove "
	 "IBV_QP_CUR_STATE from attr_mask"},
	{VB_WHY_QP_PORT, IBV_QPS_RESET, IBV_QPS_INIT, port_2,
	 "modify_qp: QP 0x%x: port_num 2 does not exist; the device has 1 port(s), from 1; give "
	 "one "
	 "of the device's ports"},
	{VB_WHY_QP_PKEY_INDEX, IBV_QPS_RESET, IBV_QPS_INIT, pkey_60000,
	 "modify_qp: QP 0x%x: pkey_index 60000 is outside the port's P_Key table of 1 entries; "
	 "give "
	 "an index below pkey_tbl_len of ibv_query_port(3)"},
	{VB_WHY_QP_ACCESS_FLAGS, IBV_QPS_RESET, IBV_QPS_INIT, unknown_access,
	 "modify_qp: QP 0x%x: qp_access_flags 0x40000000 has unknown bits; give flags of enum "
	 "ibv_access_flags"},
	{VB_WHY_QP_PATH_MTU, IBV_QPS_INIT, IBV_QPS_RTR, mtu_0,
	 "modify_qp: QP 0x%x: path_mtu 0 is no value of enum ibv_mtu; set path_mtu; IBV_MTU_1024 "
	 "fits "
	 "most ports"},
	{VB_WHY_QP_TIMEOUT, IBV_QPS_RTR, IBV_QPS_RTS, timeout_32,
	 "modify_qp: QP 0x%x: timeout 32 is above 31; give a code of 0 to 31; the time is 4.096 us "
	 "* "
	 "2^timeout, and 0 waits for ever"},
	{VB_WHY_QP_RETRY_CNT, IBV_QPS_RTR, IBV_QPS_RTS, retry_8,
	 "modify_qp: QP 0x%x: retry_cnt 8 is above 7; give 0 to 7"},
	{VB_WHY_QP_RNR_RETRY, IBV_QPS_RTR, IBV_QPS_RTS, rnr_retry_8,
	 "modify_qp: QP 0x%x: rnr_retry 8 is above 7; give 0 to 7; 7 retries for ever"},
	{VB_WHY_QP_MIN_RNR_TIMER, IBV_QPS_INIT, IBV_QPS_RTR, rnr_timer_32,
	 "modify_qp: QP 0x%x: min_rnr_timer 32 is above 31; give a code of 0 to 31; 12 is 0.64 ms"},
	{VB_WHY_QP_MAX_RD_ATOMIC, IBV_QPS_RTR, IBV_QPS_RTS, reads_255,
	 "modify_qp: QP 0x%x: max_rd_atomic 255 is above the device's max_qp_init_rd_atom of 16; "
	 "give "
	 "the device's limit at most"},
	{VB_WHY_QP_MAX_DEST_RD_ATOMIC, IBV_QPS_INIT, IBV_QPS_RTR, reads_255,
	 "modify_qp: QP 0x%x: max_dest_rd_atomic 255 is above the device's max_qp_rd_atom of 16; "
	 "give "
	 "the device's limit at most"},
	{VB_WHY_QP_AV_PORT, IBV_QPS_INIT, IBV_QPS_RTR, av_port_2,
	 "modify_qp: QP 0x%x: ah_attr.port_num is 2, but the QP is on port 1; set ah_attr.port_num "
	 "to "
	 "the QP's port"},
	{VB_WHY_PATH_GRH_MISSING, IBV_QPS_INIT, IBV_QPS_RTR, no_grh,
	 "modify_qp: ah_attr.is_global is 0, but port 1 is an Ethernet port, which sends no packet "
	 "without a GRH; set is_global to 1, grh.dgid to the peer's GID and grh.sgid_index to one "
	 "of "
	 "the port's"},
	{VB_WHY_PATH_SGID_INDEX, IBV_QPS_INIT, IBV_QPS_RTR, sgid_200,
	 "modify_qp: grh.sgid_index 200 is outside the GID table of port 1, which has 64 entries; "
	 "give an index below gid_tbl_len of ibv_query_port()"},
	{VB_WHY_PATH_SGID_EMPTY, IBV_QPS_INIT, IBV_QPS_RTR, sgid_empty,
	 "modify_qp: entry 9 of the GID table of port 1 is empty; give an index that "
	 "ibv_query_gid_table() lists"},
	{VB_WHY_PATH_DGID_ZERO, IBV_QPS_INIT, IBV_QPS_RTR, no_dgid,
	 "modify_qp: grh.dgid is 0; set grh.dgid to the peer's GID, which the peer reads by "
	 "ibv_query_gid()"},
	{VB_WHY_PATH_FAMILIES, IBV_QPS_INIT, IBV_QPS_RTR, link_local,
	 "modify_qp: of the GID at grh.sgid_index 0 and grh.dgid, one is an IPv4 address and the "
	 "other is not; give an index whose GID has the kind of the peer's GID"},
};

void test_mistakes_of_modify_qp(void)
{
	static const int masks[] = {
		[IBV_QPS_INIT] = INIT_MASK, [IBV_QPS_RTR] = RTR_MASK, [IBV_QPS_RTS] = RTS_MASK};
	static const int errors[] = {EINVAL, ENODATA};

	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const struct mistake *mistake = &mistakes[i];
		struct ibv_qp_attr attr = good(mistake->to);
		int mask = masks[mistake->to];

		take_to(mistake->from);
		mistake->make(&attr, &mask);
		TEST_ASSERT_EQUAL_INT(errors[mistake->reason == VB_WHY_PATH_SGID_EMPTY],
				      B.modify_qp(qp, &attr, mask));
		expect_sentence(mistake->reason, mistake->sentence);
		TEST_ASSERT_EQUAL_INT(mistake->from, qp->state);
	}
}

void test_path_mtu_above_the_port(void)
{
	const struct vb_sim_config config = {.device_count = 1,
					     .devices = {{.name = "sim0", .mtu = IBV_MTU_1024}}};
	struct ibv_device **list;
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp_attr attr;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	B.free_device_list(list);
	b.gid = a.gid;
	init = qp_attr(&a, IBV_QPT_RC);
	qp = B.create_qp_ex(a.context, &init);
	qpn = qp->qp_num;
	take_to(IBV_QPS_INIT);
	attr = good(IBV_QPS_RTR);
	attr.path_mtu = IBV_MTU_4096;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_qp(qp, &attr, RTR_MASK));
	expect_sentence(
		VB_WHY_QP_PATH_MTU_OF_PORT,
		"modify_qp: QP 0x%x: path_mtu of 4096 bytes is above the port's active MTU of "
		"1024; give active_mtu of ibv_query_port(3) at most");
}

void test_a_draining_qp_refuses_another_state(void)
{
	struct ibv_qp_attr attr = good(IBV_QPS_RTS);
	struct ibv_sge sge = sge_of(&a, 0, 8);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "draining_refuses_changes", true));
	take_to(IBV_QPS_RTS);
	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
	step(IBV_QPS_SQD, IBV_QP_STATE);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_qp(qp, &attr, IBV_QP_STATE));
	expect_sentence(VB_WHY_QP_STILL_DRAINING,
			"modify_qp: QP 0x%x drains its send queue and cannot go to RTS; wait for "
			"IBV_EVENT_SQ_DRAINED, or poll ibv_query_qp() until sq_draining is 0");
}

void test_numbers_of_more_than_24_bits(void)
{
	struct ibv_qp_attr attr = good(IBV_QPS_RTR);

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "wide_numbers_refused", true));
	take_to(IBV_QPS_INIT);
	attr.rq_psn = 0x1000000;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_qp(qp, &attr, RTR_MASK));
	expect_sentence(
		VB_WHY_QP_WIDE_NUMBER,
		"modify_qp: QP 0x%x: the number 0x1000000 has more than 24 bits; mask PSNs and "
		"QPNs with 0xffffff");
}

void test_responder_resources_of_the_device(void)
{
	struct ibv_qp_attr attr = good(IBV_QPS_RTR);

	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(a.context, "max_res_rd_atom", 3));
	take_to(IBV_QPS_INIT);
	attr.max_dest_rd_atomic = 4;
	TEST_ASSERT_EQUAL_INT(ENOMEM, B.modify_qp(qp, &attr, RTR_MASK));
	expect_sentence(
		VB_WHY_QP_RESOURCES,
		"modify_qp: QP 0x%x: the device's max_res_rd_atom of 3 responder resources are "
		"in use; give fewer QPs a large max_dest_rd_atomic");
}

/* --- ibv_create_ah --- */

static struct ibv_ah_attr good_ah(void)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1, .grh = {.dgid = b.gid, .sgid_index = 1}};
}

void test_mistakes_of_create_ah(void)
{
	struct ibv_ah_attr attr = good_ah();

	attr.port_num = 7;
	expect_null(EINVAL, B.create_ah(a.pd, &attr));
	expect_sentence(VB_WHY_PATH_PORT,
			"create_ah: ah_attr.port_num 7 does not exist; the device has "
			"1 port(s), from 1; give one of the device's ports");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(a.context, "max_ah", 0));
	attr = good_ah();
	expect_null(ENOMEM, B.create_ah(a.pd, &attr));
	expect_sentence(VB_WHY_DEVICE_LIMIT,
			"create_ah: the device has 0 of these objects, which is its max_ah of "
			"ibv_query_device(); destroy objects that are not used");
}

void test_mistakes_of_infiniband_addresses(void)
{
	const struct vb_sim_config config = {
		.device_count = 1,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND}}};
	struct ibv_ah_attr attr = {.port_num = 1};
	struct ibv_context *context;
	struct ibv_device **list;
	struct ibv_pd *pd;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = B.get_device_list(NULL);
	context = B.open_device(list[0]);
	B.free_device_list(list);
	pd = B.alloc_pd(context);
	expect_null(EINVAL, B.create_ah(pd, &attr));
	expect_sentence(
		VB_WHY_PATH_DLID_ZERO,
		"create_ah: ah_attr.dlid is 0, and an InfiniBand packet needs a LID; set dlid to "
		"the lid of the peer's ibv_query_port()");
	attr.dlid = 1;
	attr.sl = 16;
	expect_null(EINVAL, B.create_ah(pd, &attr));
	expect_sentence(VB_WHY_PATH_SERVICE_LEVEL,
			"create_ah: ah_attr.sl 16 is above 15; give 0 to 15");
	attr.sl = 0;
	attr.dlid = 0xc001;
	expect_null(EINVAL, B.create_ah(pd, &attr));
	expect_sentence(
		VB_WHY_PATH_MULTICAST_GRH,
		"create_ah: ah_attr.dlid 0xc001 is a multicast LID, and no GRH names the group's "
		"GID; set is_global to 1, and grh.dgid to the group's GID");
	B.close_device(context);
}
