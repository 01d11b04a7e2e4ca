/* SPDX-License-Identifier: MIT */
/* Reasons of the simulator: each mistake, and the whole sentence that the program gets. */
#include "src/guard/guard.h"
#include "test/unit/sim_sentence.h"

#include <fcntl.h>

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                               \
	(IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static struct ibv_qp *qp;
static uint32_t qpn; /* of the last QP that was made */

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

/* The last refusal has this reason and this whole sentence, in which %x is the QP's number. */
static void expect_sentence(enum vb_reason reason, const char *expected)
{
	char filled[512];

	snprintf(filled, sizeof(filled), expected, qpn);
	expect_reason(reason, "%s", filled);
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
	 "modify_qp: QP 0x%x: port_num 2 does not exist; the device has 1 port, from 1; give "
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
	struct ibv_qp_init_attr_ex init;
	struct ibv_qp_attr attr;

	open_alone(&config);
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
			"1 port, from 1; give one of the device's ports");
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

/* --- completion queues --- */

void test_mistakes_of_cqs(void)
{
	struct ibv_cq *cq = B.create_cq(a.context, 4, NULL, NULL, 0);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {0}, *bad;

	TEST_ASSERT_EQUAL_INT(EINVAL, B.resize_cq(cq, 0));
	expect_sentence(VB_WHY_CQ_SIZE,
			"resize_cq: 0 entries do not make a CQ; the device's CQs have 1 "
			"to 1048576; give max_cqe of ibv_query_device() at most");
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	take_to(IBV_QPS_INIT);
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &wr, &bad));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.resize_cq(a.cq, 2));
	expect_sentence(
		VB_WHY_CQ_RESIZE_BELOW,
		"resize_cq: the CQ holds 3 completions, more than the new size of 2; poll the CQ "
		"first");
}

/* Replaces the world by one whose only device has a profile. */
/* Replaces the pair by an RC QP on a device of the profile. */
static void open_qp(const char *profile)
{
	struct ibv_qp_init_attr_ex init;

	open_profile(profile);
	init = qp_attr(&a, IBV_QPT_RC);
	qp = B.create_qp_ex(a.context, &init);
	TEST_ASSERT_NOT_NULL(qp);
	qpn = qp->qp_num;
}

void test_mistakes_of_cq_moderation(void)
{
	struct ibv_modify_cq_attr moderation = {.attr_mask = IBV_CQ_ATTR_MODERATE,
						.moderate = {.cq_count = 2, .cq_period = 65535}};

	open_qp("mlx5");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_cq(a.cq, &moderation));
	expect_sentence(
		VB_WHY_CQ_MODERATION_RANGE,
		"modify_cq: cq_count 2 or cq_period 65535 us is above the device's limit of 65535 "
		"completions or 4095 us; give cq_mod_caps of ibv_query_device_ex() at most");
	open_qp("rxe-6.1");
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, B.modify_cq(a.cq, &moderation));
	expect_sentence(
		VB_WHY_CQ_MODERATION_NONE,
		"modify_cq: the device cannot delay the events of a CQ; leave out ibv_modify_cq(), "
		"or choose a device whose max_cq_count of ibv_query_device_ex() is above 0");
}

/* --- shared receive queues --- */

static struct ibv_srq *make_srq(uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};

	return B.create_srq(a.pd, &attr);
}

static int post_srq(struct ibv_srq *srq, int num_sge)
{
	struct ibv_sge sges[4] = {0};
	struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = num_sge}, *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

void test_mistakes_of_srqs(void)
{
	struct ibv_srq_attr attr = {.max_wr = 1, .srq_limit = 3};
	struct ibv_srq *srq;

	expect_null(EINVAL, make_srq(0, 1));
	expect_sentence(VB_WHY_SRQ_MAX_WR,
			"create_srq: max_wr 0 is outside 1 to 32768, the device's "
			"max_srq_wr; give a number in this range");
	expect_null(EINVAL, make_srq(1, 1000));
	expect_sentence(VB_WHY_SRQ_MAX_SGE,
			"create_srq: max_sge 1000 is above the device's max_srq_sge "
			"of 32; give the device's limit at most");
	srq = make_srq(2, 1);
	TEST_ASSERT_NOT_NULL(srq);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(srq, &attr, 1 << 7));
	expect_sentence(VB_WHY_SRQ_MASK, "modify_srq: srq_attr_mask 0x80 has unknown bits; give "
					 "IBV_SRQ_MAX_WR, IBV_SRQ_LIMIT or both");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(srq, &attr, IBV_SRQ_LIMIT));
	expect_sentence(VB_WHY_SRQ_LIMIT,
			"modify_srq: srq_limit 3 is above max_wr of 2; give max_wr at most");
	TEST_ASSERT_EQUAL_INT(EINVAL, post_srq(srq, 2));
	expect_sentence(
		VB_WHY_SRQ_SGES,
		"post_srq_recv: num_sge 2 of the receive is outside 0 to 1, the max_sge of the "
		"SRQ; post fewer SGEs, or create the SRQ with a larger max_sge");
	TEST_ASSERT_EQUAL_INT(0, post_srq(srq, 0));
	TEST_ASSERT_EQUAL_INT(0, post_srq(srq, 0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post_srq(srq, 0));
	expect_sentence(
		VB_WHY_SRQ_FULL,
		"post_srq_recv: the SRQ has no free slot: 2 receives are posted or wait for their "
		"completion to be polled; poll the completions of receives, or create the SRQ "
		"with a larger max_wr");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(srq, &attr, IBV_SRQ_MAX_WR));
	expect_sentence(VB_WHY_SRQ_RESIZE_BELOW,
			"modify_srq: the SRQ holds 2 receives, more than the new max_wr of 1; let "
			"receives complete first");
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(srq));
}

/* --- ibv_create_qp --- */

static struct ibv_qp *make_qp(enum ibv_qp_type type, const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = a.cq, .recv_cq = a.cq, .cap = *cap, .qp_type = type};

	return B.create_qp(a.pd, &attr);
}

void test_mistakes_of_create_qp(void)
{
	const struct {
		enum vb_reason reason;
		struct ibv_qp_cap cap;
		const char *sentence;
	} rows[] = {
		{VB_WHY_QP_CAP_SEND_WR,
		 {.max_send_wr = 1u << 20},
		 "create_qp: cap.max_send_wr 1048576 is above the device's max_qp_wr of 32768; "
		 "give the "
		 "device's limit at most"},
		{VB_WHY_QP_CAP_RECV_WR,
		 {.max_recv_wr = 1u << 20},
		 "create_qp: cap.max_recv_wr 1048576 is above the device's max_qp_wr of 32768; "
		 "give the "
		 "device's limit at most"},
		{VB_WHY_QP_CAP_SEND_SGE,
		 {.max_send_sge = 100},
		 "create_qp: cap.max_send_sge 100 is above the device's max_sge of 32; give the "
		 "device's "
		 "limit at most"},
		{VB_WHY_QP_CAP_RECV_SGE,
		 {.max_recv_sge = 100},
		 "create_qp: cap.max_recv_sge 100 is above the device's max_sge of 32; give the "
		 "device's "
		 "limit at most"},
		{VB_WHY_QP_CAP_INLINE,
		 {.max_inline_data = 1u << 20},
		 "create_qp: cap.max_inline_data 1048576 is above the 1024 bytes that the device "
		 "can hold; "
		 "ask for less; no query returns this limit"},
	};
	const struct ibv_qp_cap small = {.max_send_wr = 1};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		expect_null(EINVAL, make_qp(IBV_QPT_RC, &rows[i].cap));
		expect_sentence(rows[i].reason, rows[i].sentence);
	}
	expect_null(EINVAL, make_qp(77, &small));
	expect_sentence(VB_WHY_QP_TYPE_UNKNOWN,
			"create_qp: 77 is no QP type; set qp_type to a value of enum ibv_qp_type");
	expect_null(EOPNOTSUPP, make_qp(IBV_QPT_RAW_PACKET, &small));
	expect_sentence(VB_WHY_QP_TYPE_LACKING,
			"create_qp: the device has no QPs of type RAW_PACKET; use "
			"IBV_QPT_RC, IBV_QPT_UC or IBV_QPT_UD");
}

/* --- posting --- */

static int post_send(struct ibv_send_wr wr, int num_sge, uint32_t length)
{
	struct ibv_sge sges[4] = {sge_of(&a, 0, length)};
	struct ibv_send_wr *bad;

	wr.sg_list = sges;
	wr.num_sge = num_sge;
	return ibv_post_send(qp, &wr, &bad);
}

void test_mistakes_of_post_send(void)
{
	const struct ibv_send_wr plain = {.opcode = IBV_WR_SEND};
	const struct ibv_send_wr inlined = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE};
	const struct ibv_send_wr read = {.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_INLINE};
	struct ibv_sge nowhere = {.addr = 16, .length = 8};
	struct ibv_send_wr fault = inlined, *bad;

	guard_install(); /* above the test framework's own handler */
	take_to(IBV_QPS_RTR);
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(plain, 1, 8));
	expect_sentence(VB_WHY_SEND_STATE,
			"post_send: QP 0x%x is in RTR and takes no sends before RTS; "
			"take the QP to RTS by ibv_modify_qp() first");
	step(IBV_QPS_RTS, RTS_MASK);
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(plain, 3, 8));
	expect_sentence(
		VB_WHY_SEND_SGES,
		"post_send: QP 0x%x: num_sge 3 of the send is outside 0 to 2, the QP's "
		"max_send_sge; post fewer SGEs, or create the QP with a larger cap.max_send_sge");
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(inlined, 1, 65));
	expect_sentence(
		VB_WHY_SEND_INLINE_LENGTH,
		"post_send: QP 0x%x: 65 bytes of inline data are more than the QP's "
		"max_inline_data of 64; remove IBV_SEND_INLINE, or create the QP with a larger "
		"cap.max_inline_data");
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(read, 1, 8));
	expect_sentence(
		VB_WHY_SEND_INLINE_OPCODE,
		"post_send: QP 0x%x: RDMA_READ takes no IBV_SEND_INLINE; remove the flag; only "
		"SEND and RDMA WRITE carry inline data");
	fault.sg_list = &nowhere;
	fault.num_sge = 1;
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_post_send(qp, &fault, &bad));
	expect_sentence(
		VB_WHY_SEND_INLINE_FAULT,
		"post_send: QP 0x%x: the inline data of SGE 0 at 0x10 is not readable memory; give "
		"the address of the data");
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, post_send(plain, 1, 8));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post_send(plain, 1, 8));
	expect_sentence(
		VB_WHY_SEND_FULL,
		"post_send: the send queue of QP 0x%x is full: each of its 8 slots has a send "
		"whose completion has not been polled; poll the send CQ; a slot becomes free with "
		"the completion of its send or of a later one, so signal some sends");
}

static int post_recv(int num_sge)
{
	struct ibv_sge sges[4] = {0};
	struct ibv_recv_wr wr = {.sg_list = sges, .num_sge = num_sge}, *bad;

	return ibv_post_recv(qp, &wr, &bad);
}

void test_mistakes_of_post_recv(void)
{
	TEST_ASSERT_EQUAL_INT(EINVAL, post_recv(0));
	expect_sentence(VB_WHY_RECV_STATE,
			"post_recv: QP 0x%x is in RESET and takes no receives; take the "
			"QP to INIT by ibv_modify_qp() first");
	take_to(IBV_QPS_INIT);
	TEST_ASSERT_EQUAL_INT(EINVAL, post_recv(2));
	expect_sentence(
		VB_WHY_RECV_SGES,
		"post_recv: QP 0x%x: num_sge 2 of the receive is outside 0 to 1, the QP's "
		"max_recv_sge; post fewer SGEs, or create the QP with a larger cap.max_recv_sge");
	for (int i = 0; i < 8; i++)
		TEST_ASSERT_EQUAL_INT(0, post_recv(0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, post_recv(0));
	expect_sentence(
		VB_WHY_RECV_FULL,
		"post_recv: the receive queue of QP 0x%x is full: each of its 8 slots has a "
		"receive whose completion has not been polled; poll the receive CQ, or create the "
		"QP with a larger cap.max_recv_wr");
}

void test_a_queue_of_softroce_looks_at_the_wr_first(void)
{
	struct ibv_send_wr atomic = {.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	open_qp("rxe-6.1");
	take_to(IBV_QPS_RTS);
	atomic.wr.atomic.remote_addr = 4;
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(atomic, 1, 8));
	expect_sentence(
		VB_WHY_SEND_ATOMIC,
		"post_send: QP 0x%x: the atomic's buffer has 8 bytes, or its remote address is not "
		"a multiple of 8; give 8 bytes, and a remote address that is a multiple of 8");
}

/* --- datagrams, windows, XRC --- */

void test_mistakes_of_datagrams(void)
{
	const struct ibv_qp_cap cap = {.max_send_wr = 4, .max_send_sge = 1};
	struct ibv_qp *ud = make_qp(IBV_QPT_UD, &cap);
	struct ibv_ah_attr way = good_ah();
	struct ibv_ah *ah = B.create_ah(b.pd, &way);
	struct ibv_send_wr datagram = {.opcode = IBV_WR_SEND, .wr.ud = {.ah = ah}};
	struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE};

	connect_qp(ud, &b, 0);
	qp = ud;
	qpn = ud->qp_num;
	TEST_ASSERT_NOT_NULL(ah);
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(datagram, 1, 8));
	expect_sentence(
		VB_WHY_SEND_AH,
		"post_send: QP 0x%x: wr.ud.ah is no AH that the QP may use; create the AH on the "
		"QP's device and PD, and keep it until it is posted");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, "forbidden_opcodes_refused", true));
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(write, 1, 8));
	expect_sentence(
		VB_WHY_SEND_OPCODE,
		"post_send: QP 0x%x: a QP of type UD cannot send RDMA_WRITE; use an opcode that "
		"ibv_post_send(3) allows for the QP's type");
}

void test_mistakes_of_bindings(void)
{
	struct ibv_mw *mw = B.alloc_mw(a.pd, IBV_MW_TYPE_1);
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW, .bind_mw = {.mw = mw}};
	struct ibv_mw_bind bind = {.bind_info = {.mr = a.mr,
						 .addr = (uintptr_t)a.buffer,
						 .length = 8,
						 .mw_access_flags = IBV_ACCESS_REMOTE_READ}};

	TEST_ASSERT_NOT_NULL(mw);
	take_to(IBV_QPS_RTS);
	TEST_ASSERT_EQUAL_INT(EINVAL, post_send(wr, 0, 0));
	expect_sentence(
		VB_WHY_SEND_BIND,
		"post_send: QP 0x%x: the binding names no window of type 2 and no MR that the QP "
		"may use; give a window of ibv_alloc_mw(IBV_MW_TYPE_2) and an MR of the QP's "
		"device; bind type 1 by ibv_bind_mw()");
	qp = make_qp(IBV_QPT_UD, &(struct ibv_qp_cap){.max_send_wr = 1});
	qpn = qp->qp_num;
	TEST_ASSERT_EQUAL_INT(EINVAL, B.bind_mw(qp, mw, &bind));
	expect_sentence(
		VB_WHY_BIND_TYPE,
		"bind_mw: QP 0x%x: the window is not of type 1, or a QP of type UD cannot bind it; "
		"bind windows of type 2 by ibv_post_send(IBV_WR_BIND_MW), and type 1 on an RC or "
		"UC QP");
}

void test_xrc_and_srq_qps_have_one_queue_or_none(void)
{
	struct ibv_xrcd_init_attr domain = {.comp_mask = IBV_XRCD_INIT_ATTR_FD |
							 IBV_XRCD_INIT_ATTR_OFLAGS,
					    .fd = -1,
					    .oflags = O_CREAT};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					   .xrcd = B.open_xrcd(a.context, &domain)};

	qp = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(qp);
	qpn = qp->qp_num;
	/* In a state in which no QP takes sends, and in one in which others do. */
	for (int i = 0; i < 2; i++) {
		for (int num_sge = 0; num_sge < 2; num_sge++) {
			TEST_ASSERT_EQUAL_INT(
				EINVAL,
				post_send((struct ibv_send_wr){.opcode = IBV_WR_SEND}, num_sge, 8));
			expect_sentence(VB_WHY_SEND_TARGET,
					"post_send: QP 0x%x is an XRC target QP, which has no send "
					"queue; post to the XRC send QP");
		}
		take_to(IBV_QPS_INIT);
		step(IBV_QPS_ERR, IBV_QP_STATE);
	}
	TEST_ASSERT_EQUAL_INT(EINVAL, post_recv(0));
	expect_sentence(VB_WHY_RECV_NONE,
			"post_recv: QP 0x%x (XRC_RECV) has no receive queue of its "
			"own; post receives to its SRQ by ibv_post_srq_recv()");
}
