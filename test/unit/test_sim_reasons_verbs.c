/* SPDX-License-Identifier: MIT */
/*
 * Reasons of queries, QPs and SRQs: each mistake, and the whole sentence that the program gets. The
 * mistakes of ibv_modify_qp() and of posting are in test_sim_reasons.c.
 */
#include "test/unit/sim_sentence.h"

#include <fcntl.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair();
}

/* --- queries --- */

static int device_input(void)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 6};
	struct ibv_device_attr_ex attr;

	return B.query_device_ex(a.context, &input, &attr, sizeof(attr));
}

static int device_size(void)
{
	struct ibv_device_attr_ex attr;

	return B.query_device_ex(a.context, NULL, &attr, 100);
}

static int port_3(void)
{
	struct ibv_port_attr attr;

	return B.query_port(a.context, 3, &attr, sizeof(attr));
}

static int gid_of_port_3(void)
{
	union ibv_gid gid;

	return B.query_gid(a.context, 3, 0, &gid) ? errno : 0;
}

static int gid_before_the_table(void)
{
	union ibv_gid gid;

	return B.query_gid(a.context, 1, -1, &gid) ? errno : 0;
}

static int gid_64(void)
{
	struct ibv_gid_entry entry;

	return B.query_gid_ex(a.context, 1, 64, &entry, 0, sizeof(entry));
}

static int gid_empty(void)
{
	struct ibv_gid_entry entry;

	return B.query_gid_ex(a.context, 1, 9, &entry, 0, sizeof(entry));
}

static int gid_flags(void)
{
	struct ibv_gid_entry entry;

	return B.query_gid_ex(a.context, 1, 0, &entry, 4, sizeof(entry));
}

static int gid_entries(void)
{
	struct ibv_gid_entry entry;

	return -(int)B.query_gid_table(a.context, &entry, 1, 0, sizeof(entry));
}

static int gid_table_flags(void)
{
	return -(int)B.query_gid_table(a.context, NULL, 0, 8, sizeof(struct ibv_gid_entry));
}

static int pkey_7(void)
{
	__be16 pkey;

	return B.query_pkey(a.context, 1, 7, &pkey) ? errno : 0;
}

static int pkey_of_port_3(void)
{
	__be16 pkey;

	return B.query_pkey(a.context, 3, 0, &pkey) ? errno : 0;
}

static int unknown_pkey(void)
{
	return B.get_pkey_index(a.context, 1, htobe16(0x8123)) < 0 ? errno : 0;
}

static int mac_of_nobody(void)
{
	struct ibv_ah_attr way = {
		.is_global = 1, .port_num = 1, .grh = {.dgid = b.gid, .sgid_index = 1}};
	uint8_t mac[6];

	way.grh.dgid.raw[15] = 99;
	return -B.resolve_eth_l2_from_gid(a.context, &way, mac, NULL);
}

static int mac_over_port_3(void)
{
	struct ibv_ah_attr way = {.is_global = 1, .port_num = 3};
	uint8_t mac[6];

	return -B.resolve_eth_l2_from_gid(a.context, &way, mac, NULL);
}

void test_mistakes_of_queries(void)
{
	static const struct {
		enum vb_reason reason;
		int error;
		int (*make)(void);
		const char *sentence;
	} mistakes[] = {
		{VB_WHY_QUERY_INPUT, EINVAL, device_input,
		 "query_device_ex: comp_mask of struct ibv_query_device_ex_input is 0x6, and no "
		 "bit is defined; give NULL for the input, or set its comp_mask to 0"},
		{VB_WHY_QUERY_SIZE, EINVAL, device_size,
		 "query_device_ex: attr_size is 100 bytes, less than the 232 of struct "
		 "ibv_device_attr; give sizeof(struct ibv_device_attr_ex)"},
		{VB_WHY_PORT_NONE, EINVAL, port_3,
		 "query_port: port 3 of sim0 does not exist; the device has 1 port, from 1; "
		 "give one of the device's ports"},
		{VB_WHY_PORT_NONE, EINVAL, gid_of_port_3,
		 "query_gid: port 3 of sim0 does not exist; the device has 1 port, from 1; give "
		 "one of the device's ports"},
		{VB_WHY_GID_INDEX, EINVAL, gid_before_the_table,
		 "query_gid: GID index -1 is outside the GID table of port 1, which has 64 "
		 "entries; give an index below gid_tbl_len of ibv_query_port()"},
		{VB_WHY_GID_INDEX, EINVAL, gid_64,
		 "query_gid_ex: GID index 64 is outside the GID table of port 1, which has 64 "
		 "entries; give an index below gid_tbl_len of ibv_query_port()"},
		{VB_WHY_PATH_SGID_EMPTY, ENODATA, gid_empty,
		 "query_gid_ex: entry 9 of the GID table of port 1 is empty; give an index that "
		 "ibv_query_gid_table() lists"},
		{VB_WHY_GID_FLAGS, EINVAL, gid_flags,
		 "query_gid_ex: flags is 0x4, and no flag is defined; set flags to 0"},
		{VB_WHY_GID_ENTRIES, EINVAL, gid_entries,
		 "query_gid_table: max_entries is 1, and the device's ports have 6 GIDs; give an "
		 "array with an entry for each GID: the sum of gid_tbl_len over the ports is "
		 "always enough"},
		{VB_WHY_GID_FLAGS, EINVAL, gid_table_flags,
		 "query_gid_table: flags is 0x8, and no flag is defined; set flags to 0"},
		{VB_WHY_PKEY_INDEX, ENOENT, pkey_7,
		 "query_pkey: P_Key index 7 is outside the P_Key table of port 1, which has 1 "
		 "entries; give an index below pkey_tbl_len of ibv_query_port()"},
		{VB_WHY_PKEY_PORT, ENOENT, pkey_of_port_3,
		 "query_pkey: the P_Keys of port 3 cannot be read, because sim0 has 1 port, "
		 "from 1; give one of the device's ports"},
		{VB_WHY_PKEY_NONE, ENOENT, unknown_pkey,
		 "get_pkey_index: the P_Key table of port 1 has no entry 0x8123; give a P_Key that "
		 "ibv_query_pkey() returns, in network order"},
		{VB_WHY_GID_OF_NOBODY, EHOSTUNREACH, mac_of_nobody,
		 "resolve_eth_l2_from_gid: no port that sim0 can reach has the GID "
		 "::ffff:10.0.0.99; set grh.dgid to a GID of the peer's port, and check the links "
		 "of the world"},
		{VB_WHY_PATH_PORT, EINVAL, mac_over_port_3,
		 "resolve_eth_l2_from_gid: ah_attr.port_num 3 does not exist; the device has 1 "
		 "port, from 1; give one of the device's ports"},
	};

	for (size_t i = 0; i < COUNT(mistakes); i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(mistakes[i].error, mistakes[i].make(),
					      mistakes[i].sentence);
		expect_reason(mistakes[i].reason, "%s", mistakes[i].sentence);
	}
}

void test_there_is_no_mac_address_on_infiniband(void)
{
	const struct vb_sim_config config = {
		.device_count = 1,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND}}};
	struct ibv_ah_attr way = {.port_num = 1, .dlid = 1};
	uint8_t mac[6];

	open_alone(&config);
	TEST_ASSERT_EQUAL_INT(-EINVAL, B.resolve_eth_l2_from_gid(a.context, &way, mac, NULL));
	expect_reason(
		VB_WHY_MAC_OF_INFINIBAND,
		"resolve_eth_l2_from_gid: port 1 is an InfiniBand port, and its peers have no "
		"MAC address; resolve addresses on Ethernet ports only; on InfiniBand, give "
		"the LID");
}

void test_a_closed_context_has_no_pkeys(void)
{
	struct ibv_context *context = a.context;
	__be16 pkey;

	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	a.context = NULL;
	TEST_ASSERT_EQUAL_INT(-1, B.query_pkey(context, 1, 0, &pkey));
	expect_reason(VB_WHY_PKEY_CLOSED,
		      "query_pkey: the ibv_context is closed, and its port 1 has no P_Keys; close "
		      "the device after the last use of its context");
	TEST_ASSERT_EQUAL_INT(-1, B.close_device(context));
	expect_reason(
		VB_WHY_CONTEXT_CLOSED,
		"close_device: the ibv_context is closed; close the device after the last use "
		"of its context");
}

void test_a_verb_that_a_device_lacks(void)
{
	struct ibv_wq_init_attr wq = {0};
	struct ibv_td_init_attr td = {0};

	expect_null(EOPNOTSUPP, ibv_create_wq(a.context, &wq));
	expect_reason(VB_WHY_VERB_LACKING,
		      "create_wq: a simulated device does not have this verb; do without the verb "
		      "when it fails with EOPNOTSUPP, or use a device that has it");
	open_profile("rxe-6.1");
	expect_null(EOPNOTSUPP, ibv_alloc_td(a.context, &td));
	expect_reason(VB_WHY_VERB_LACKING_PROFILE,
		      "alloc_td: sim0 with the profile \"rxe-6.1\" does not have this verb, like "
		      "the device that it imitates; do without the verb when it fails with "
		      "EOPNOTSUPP, or use a simulated device with the profile spec");
}

/* --- making QPs --- */

static struct ibv_srq *make_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = B.create_srq(a.pd, &attr);

	TEST_ASSERT_NOT_NULL(srq);
	return srq;
}

static struct ibv_xrcd *open_domain(void)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};

	return B.open_xrcd(a.context, &attr);
}

static struct ibv_srq *make_xrc_srq(struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = a.pd,
		.xrcd = xrcd,
		.cq = a.cq,
	};

	return B.create_srq_ex(a.context, &attr);
}

static void with_rss(struct ibv_qp_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
}

static void with_fcs(struct ibv_qp_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr->create_flags = IBV_QP_CREATE_SCATTER_FCS;
}

static void with_loopback(struct ibv_qp_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	attr->create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
}

static void with_tso(struct ibv_qp_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	attr->max_tso_header = 64;
}

static void target_that_sends(struct ibv_qp_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr->qp_type = IBV_QPT_XRC_RECV;
}

static void uc_that_reads(struct ibv_qp_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr->qp_type = IBV_QPT_UC;
	attr->send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
}

static void uc_with_srq(struct ibv_qp_init_attr_ex *attr)
{
	attr->qp_type = IBV_QPT_UC;
	attr->srq = make_srq();
}

static void xrc_send_with_srq(struct ibv_qp_init_attr_ex *attr)
{
	attr->qp_type = IBV_QPT_XRC_SEND;
	attr->srq = make_srq();
}

static void with_xrc_srq(struct ibv_qp_init_attr_ex *attr)
{
	attr->srq = make_xrc_srq(open_domain());
	TEST_ASSERT_NOT_NULL(attr->srq);
}

void test_mistakes_of_create_qp(void)
{
	static const struct {
		enum vb_reason reason;
		int error;
		void (*make)(struct ibv_qp_init_attr_ex *attr);
		const char *sentence;
	} mistakes[] = {
		{VB_WHY_QP_COMP_MASK, EOPNOTSUPP, with_rss,
		 "create_qp_ex: comp_mask has IBV_QP_INIT_ATTR_IND_TABLE | "
		 "IBV_QP_INIT_ATTR_RX_HASH, which simulated devices do not have; remove the bits "
		 "from comp_mask"},
		{VB_WHY_QP_CREATE_FLAGS, EOPNOTSUPP, with_fcs,
		 "create_qp_ex: create_flags has IBV_QP_CREATE_SCATTER_FCS, which the device does "
		 "not have; remove the flags from create_flags, or create the QP without them when "
		 "this fails with EOPNOTSUPP"},
		{VB_WHY_QP_LOOPBACK_TYPE, EINVAL, with_loopback,
		 "create_qp_ex: IBV_QP_CREATE_BLOCK_SELF_MCAST_LB is for UD QPs, and the type is "
		 "RC; remove the flag from create_flags"},
		{VB_WHY_QP_TSO, EOPNOTSUPP, with_tso,
		 "create_qp_ex: max_tso_header is 64, and the device has no segmentation offload; "
		 "set max_tso_header to 0, or remove IBV_QP_INIT_ATTR_MAX_TSO_HEADER from "
		 "comp_mask"},
		{VB_WHY_QP_TARGET_OPS, EINVAL, target_that_sends,
		 "create_qp_ex: an XRC_RECV QP sends nothing, and comp_mask has "
		 "IBV_QP_INIT_ATTR_SEND_OPS_FLAGS; remove the bit from comp_mask"},
		{VB_WHY_QP_SEND_OPS, EOPNOTSUPP, uc_that_reads,
		 "create_qp_ex: send_ops_flags has IBV_QP_EX_WITH_RDMA_READ, which a QP of type UC "
		 "of this device cannot do; remove the flags from send_ops_flags"},
		{VB_WHY_QP_TYPE_SRQ, EINVAL, uc_with_srq,
		 "create_qp: a QP of type UC takes no SRQ; leave srq NULL, or create an RC or UD "
		 "QP"},
		{VB_WHY_QP_TYPE_SRQ, EINVAL, xrc_send_with_srq,
		 "create_qp: a QP of type XRC_SEND takes no SRQ; leave srq NULL, or create an RC "
		 "or UD QP"},
		{VB_WHY_QP_SRQ_IS_XRC, EINVAL, with_xrc_srq,
		 "create_qp: the SRQ of the QP is an XRC SRQ; give a basic SRQ; XRC sends find an "
		 "XRC SRQ by its number"},
	};

	for (size_t i = 0; i < COUNT(mistakes); i++) {
		struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

		mistakes[i].make(&attr);
		expect_null(mistakes[i].error, B.create_qp_ex(a.context, &attr));
		expect_reason(mistakes[i].reason, "%s", mistakes[i].sentence);
	}
}

void test_mistakes_of_open_qp(void)
{
	static const struct {
		enum vb_reason reason;
		uint32_t without, with;
		enum ibv_qp_type type;
		const char *sentence;
	} mistakes[] = {
		{VB_WHY_QP_OPEN_MISSING, IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE, 0,
		 IBV_QPT_XRC_RECV,
		 "open_qp: comp_mask lacks IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_TYPE; set "
		 "qp_num, xrcd and qp_type, and name them in comp_mask"},
		{VB_WHY_COMP_MASK, 0, 0x80, IBV_QPT_XRC_RECV,
		 "open_qp: comp_mask has the unknown bits 0x80; set only the bits of the "
		 "structure's enum in <infiniband/verbs.h>"},
		{VB_WHY_QP_OPEN_TYPE, 0, 0, IBV_QPT_RC,
		 "open_qp: qp_type is RC, and only QPs of type XRC_RECV are shared; set qp_type to "
		 "IBV_QPT_XRC_RECV"},
		{VB_WHY_QP_OPEN_NONE, 0, 0, IBV_QPT_XRC_RECV,
		 "open_qp: the XRC domain has no QP 0x77 of type XRC_RECV; give the qp_num of an "
		 "XRC_RECV QP that was created with a domain of the same inode, and that is not "
		 "destroyed"},
	};
	struct ibv_xrcd *xrcd = open_domain();

	for (size_t i = 0; i < COUNT(mistakes); i++) {
		struct ibv_qp_open_attr attr = {.comp_mask = IBV_QP_OPEN_ATTR_NUM |
							     IBV_QP_OPEN_ATTR_XRCD |
							     IBV_QP_OPEN_ATTR_TYPE,
						.qp_num = 0x77,
						.xrcd = xrcd,
						.qp_type = mistakes[i].type};

		attr.comp_mask &= ~mistakes[i].without;
		attr.comp_mask |= mistakes[i].with;
		expect_null(EINVAL, B.open_qp(a.context, &attr));
		expect_reason(mistakes[i].reason, "%s", mistakes[i].sentence);
	}
}

/* --- ending QPs and SRQs --- */

void test_a_member_of_a_multicast_group(void)
{
	const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 7}};
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_UD);
	struct ibv_qp *qp = B.create_qp_ex(a.context, &attr);

	TEST_ASSERT_NOT_NULL(qp);
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_qp(qp));
	expect_reason(VB_WHY_QP_IN_MULTICAST,
		      "destroy_qp: QP 0x%x is attached to a multicast group; detach the QP by "
		      "ibv_detach_mcast() first",
		      qp->qp_num);
	TEST_ASSERT_EQUAL_INT(0, B.detach_mcast(qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
}

void test_an_event_that_is_not_acknowledged(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;
	struct ibv_qp *from, *to;

	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0,
			      B.modify_qp(from, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	TEST_ASSERT_EQUAL_INT(0, B.get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(EDEADLK, B.destroy_qp(from));
	expect_reason(VB_WHY_EVENTS_UNACKED,
		      "destroy_qp: the QP has 1 asynchronous event to acknowledge, and no other "
		      "thread can acknowledge them; call "
		      "ibv_ack_async_event() for each event of ibv_get_async_event() first");
	B.ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(from));
}

void test_an_srq_with_qps(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	attr.srq = make_srq();
	TEST_ASSERT_NOT_NULL(B.create_qp_ex(a.context, &attr));
	TEST_ASSERT_NOT_NULL(B.create_qp_ex(a.context, &attr));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_srq(attr.srq));
	expect_reason(VB_WHY_SRQ_BUSY, "destroy_srq: the SRQ still gives receives to 2 QPs; "
				       "destroy the QPs first");
}

/* --- SRQs --- */

static void srq_bits(struct ibv_srq_init_attr_ex *attr)
{
	attr->comp_mask |= 1 << 9;
}

static void srq_tags(struct ibv_srq_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_TM;
}

static void srq_type_9(struct ibv_srq_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
	attr->srq_type = 9;
}

static void srq_without_pd(struct ibv_srq_init_attr_ex *attr)
{
	attr->comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_PD;
}

static void xrc_srq_without_parts(struct ibv_srq_init_attr_ex *attr)
{
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
	attr->srq_type = IBV_SRQT_XRC;
}

void test_mistakes_of_create_srq_ex(void)
{
	static const struct {
		enum vb_reason reason;
		int error;
		void (*make)(struct ibv_srq_init_attr_ex *attr);
		const char *sentence;
	} mistakes[] = {
		{VB_WHY_COMP_MASK, EINVAL, srq_bits,
		 "create_srq_ex: comp_mask has the unknown bits 0x200; set only the bits of the "
		 "structure's enum in <infiniband/verbs.h>"},
		{VB_WHY_SRQ_TAG_MATCHING, EOPNOTSUPP, srq_tags,
		 "create_srq_ex: the device has no tag matching; create a basic SRQ, without "
		 "IBV_SRQ_INIT_ATTR_TM; tm_caps of ibv_query_device_ex() says what a device has"},
		{VB_WHY_SRQ_TYPE, EINVAL, srq_type_9,
		 "create_srq_ex: 9 is no SRQ type; set srq_type to IBV_SRQT_BASIC or "
		 "IBV_SRQT_XRC"},
		{VB_WHY_SRQ_PARTS, EINVAL, srq_without_pd,
		 "create_srq_ex: comp_mask lacks IBV_SRQ_INIT_ATTR_PD; set pd, and for an XRC SRQ "
		 "xrcd and cq, and name them in comp_mask"},
		{VB_WHY_SRQ_PARTS, EINVAL, xrc_srq_without_parts,
		 "create_srq_ex: comp_mask lacks IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ; "
		 "set pd, and for an XRC SRQ xrcd and cq, and name them in comp_mask"},
	};

	for (size_t i = 0; i < COUNT(mistakes); i++) {
		struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 4, .max_sge = 1},
						    .comp_mask = IBV_SRQ_INIT_ATTR_PD,
						    .pd = a.pd};

		mistakes[i].make(&attr);
		expect_null(mistakes[i].error, B.create_srq_ex(a.context, &attr));
		expect_reason(mistakes[i].reason, "%s", mistakes[i].sentence);
	}
}

void test_a_basic_srq_has_no_number(void)
{
	uint32_t number;

	TEST_ASSERT_EQUAL_INT(EINVAL, B.get_srq_num(make_srq(), &number));
	expect_reason(
		VB_WHY_SRQ_NOT_XRC,
		"get_srq_num: the SRQ is a basic SRQ, which has no number; ask for the number "
		"of an SRQ that was created with IBV_SRQT_XRC");
}

void test_a_device_that_cannot_resize_an_srq(void)
{
	struct ibv_srq_attr attr = {.max_wr = 8};

	open_profile("mlx5");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_srq(make_srq(), &attr, IBV_SRQ_MAX_WR));
	expect_reason(VB_WHY_SRQ_RESIZE_NONE,
		      "modify_srq: the device cannot resize an SRQ: it has no "
		      "IBV_DEVICE_SRQ_RESIZE; create an SRQ that is large enough");
}
