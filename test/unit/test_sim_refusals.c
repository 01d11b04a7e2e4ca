/* SPDX-License-Identifier: MIT */
/* What verbs and functions of <verbena/sim.h> refuse: the error code of each refusal. */
#include "test/unit/sim_pair.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <verbena/fault.h>

static struct ibv_device **list;

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair();
}

/* Replaces the default world by one of this configuration, and opens its first device. */
static struct ibv_context *open_other_world(const struct vb_sim_config *config)
{
	struct ibv_context *context;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	list = B.get_device_list(NULL);
	context = B.open_device(list[0]);
	B.free_device_list(list);
	TEST_ASSERT_NOT_NULL(context);
	return context;
}

static void close_other_world(struct ibv_context *context)
{
	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	open_pair();
}

/* --- verbs --- */

void test_attach_mcast_of_a_destroyed_qp_is_enoent(void)
{
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
	struct ibv_qp_init_attr attr = {
		.send_cq = a.cq,
		.recv_cq = a.cq,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = B.create_qp(a.pd, &attr);

	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, B.detach_mcast(qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.attach_mcast(qp, &group, 0));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.detach_mcast(qp, &group, 0));
}

void test_create_cq_takes_one_entry_and_refuses_none(void)
{
	struct ibv_cq *cq = B.create_cq(a.context, 1, NULL, NULL, 0);

	TEST_ASSERT_NOT_NULL(cq);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	expect_null(EINVAL, B.create_cq(a.context, 0, NULL, NULL, 0));
	expect_null(EINVAL, B.create_cq(a.context, -1, NULL, NULL, 0));
}

void test_create_srq_ex_refuses_unknown_bits(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_RESERVED << 1,
		.pd = a.pd,
	};

	expect_null(EINVAL, B.create_srq_ex(a.context, &attr));
}

void test_a_device_without_xrc_refuses_an_xrc_domain(void)
{
	const struct vb_sim_config rxe = {.device_count = 1,
					  .devices = {{.name = "sim0", .profile = "rxe-6.1"}}};
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_context *context = open_other_world(&rxe);
	struct ibv_pd *pd = B.alloc_pd(context);
	struct ibv_cq *cq = B.create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr sender = {
		.send_cq = cq, .cap = {.max_send_wr = 1}, .qp_type = IBV_QPT_XRC_SEND};

	expect_null(EOPNOTSUPP, B.open_xrcd(context, &attr));
	expect_null(EOPNOTSUPP, B.create_qp(pd, &sender));
	close_other_world(context);
}

/* The inline function of <infiniband/verbs.h> calls the context's operation. */
void test_only_a_device_with_time_stamps_tells_its_clock(void)
{
	const struct vb_sim_config rxe = {.device_count = 1,
					  .devices = {{.name = "sim0", .profile = "rxe-6.1"}}};
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
	struct ibv_context *context;

	TEST_ASSERT_EQUAL_INT(0, ibv_query_rt_values_ex(a.context, &values));
	TEST_ASSERT_EQUAL_HEX32(IBV_VALUES_MASK_RAW_CLOCK, values.comp_mask);
	context = open_other_world(&rxe);
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, ibv_query_rt_values_ex(context, &values));
	close_other_world(context);
}

void test_an_infiniband_device_has_no_ethernet_address_for_a_gid(void)
{
	const struct vb_sim_config infiniband = {
		.device_count = 1,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND}}};
	struct ibv_context *context = open_other_world(&infiniband);
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .dlid = 1};
	uint8_t mac[6];

	TEST_ASSERT_EQUAL_INT(0, B.query_gid(context, 1, 0, &attr.grh.dgid));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-EINVAL, B.resolve_eth_l2_from_gid(context, &attr, mac, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	close_other_world(context);
}

/* ibv_start_poll(3): ENOENT for an empty CQ; attr->comp_mask is 0. */
void test_start_poll_refuses_a_mask_and_leaves_the_cq_free(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4};
	struct ibv_cq_ex *cq = B.create_cq_ex(a.context, &attr);
	struct ibv_poll_cq_attr unknown = {.comp_mask = 1}, none = {0};

	TEST_ASSERT_NOT_NULL(cq);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_start_poll(cq, &unknown));
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(cq, &none));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(ibv_cq_ex_to_cq(cq)));
}

void test_an_empty_poll_leaves_the_sentence_of_the_last_failure(void)
{
	struct ibv_wc wc;
	char kept[256];

	expect_null(EINVAL, B.create_cq(a.context, 0, NULL, NULL, 0));
	snprintf(kept, sizeof(kept), "%s", sentence());
	TEST_ASSERT_NOT_EQUAL(0, kept[0]);
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(a.cq, 1, &wc));
	TEST_ASSERT_EQUAL_STRING(kept, sentence());
}

void test_a_device_is_imported_by_descriptor_0(void)
{
	const int kept = dup(0);
	struct ibv_context *imported;

	TEST_ASSERT_EQUAL_INT(0, dup2(a.context->cmd_fd, 0));
	imported = B.import_device(0);
	TEST_ASSERT_NOT_NULL(imported);
	TEST_ASSERT_EQUAL_INT(0, imported->cmd_fd);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(imported));
	if (kept >= 0) {
		dup2(kept, 0);
		close(kept);
	}
}

/*
 * The first 20 bytes of the GRH are undefined on RoCEv2 over IPv4. Here they look like IPv6, so that
 * only the checksum of the IPv4 header tells what the GRH is; the payload behind it is not part of
 * the header.
 */
void test_the_checksum_of_an_ipv4_grh_ends_with_its_header(void)
{
	static const uint8_t ipv4[20] = {0x45, 0, 0,  60, 0, 0, 0x40, 0, 64, 17,
					 0,    0, 10, 0,  0, 2, 10,   0, 0,  1};
	struct {
		struct ibv_grh grh;
		uint8_t payload[4];
	} received = {.payload = {0xab, 0xcd, 0xef, 0x01}};
	uint8_t *bytes = (uint8_t *)&received.grh;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH, .src_qp = 17};
	struct ibv_ah_attr attr;
	uint32_t sum = 0;

	bytes[0] = 0x60;
	memcpy(bytes + 20, ipv4, sizeof(ipv4));
	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(ipv4[i] << 8 | ipv4[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	bytes[30] = (uint8_t)(~sum >> 8);
	bytes[31] = (uint8_t)~sum;
	TEST_ASSERT_EQUAL_INT(0, B.init_ah_from_wc(a.context, 1, &wc, &received.grh, &attr));
	TEST_ASSERT_EQUAL_HEX8(0xff, attr.grh.dgid.raw[10]);
	TEST_ASSERT_EQUAL_HEX8(2, attr.grh.dgid.raw[15]);
	bytes[31] ^= 1; /* a wrong checksum: IPv6, whose addresses no port has */
	TEST_ASSERT_NOT_EQUAL(0, B.init_ah_from_wc(a.context, 1, &wc, &received.grh, &attr));
}

/* --- functions of <verbena/sim.h> --- */

void test_functions_of_sim_h_refuse_a_foreign_context(void)
{
	struct ibv_device device = {.name = "other0"};
	struct ibv_context foreign = {.device = &device};
	struct vb_sim_counters counters;
	const union ibv_gid gid = {.raw = {0xfe, 0x80}};
	uint64_t value;
	bool on;

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_port_state(&foreign, 1, true));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_lid(&foreign, 1, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_gid(&foreign, 1, 1, &gid));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_pkey(&foreign, 1, 1, 0xffff));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_port_event(&foreign, 1, IBV_EVENT_SM_CHANGE));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_kill_device(&foreign));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_quirk(&foreign, "wide_numbers_refused", true));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_quirk(&foreign, "wide_numbers_refused", &on));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_lower_limit(&foreign, "max_qp", 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_counters(&foreign, &counters));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_counter(&foreign, "sent_pkts", &value));
}

void test_functions_of_sim_h_refuse_what_the_device_does_not_have(void)
{
	const union ibv_gid gid = {.raw = {0xfe, 0x80}};
	uint64_t value;
	bool on;

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_port_state(a.context, 2, true));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_gid(a.context, 2, 1, &gid));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_gid(a.context, 1, 1 << 20, &gid));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_quirk(a.context, "no such quirk", true));
	TEST_ASSERT_EQUAL_INT(VB_WHY_SIM_QUIRK, B.last_why()->reason);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_quirk(a.context, "no such quirk", &on));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_lower_limit(a.context, "no such limit", 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_lower_limit(a.context, "max_qp", -1));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_counter(a.context, "no such counter", &value));
}

void test_a_refused_context_keeps_its_own_sentence(void)
{
	struct ibv_device device = {.name = "other0"};
	struct ibv_context foreign = {.device = &device};

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_quirk(&foreign, "no such quirk", true));
	TEST_ASSERT_EQUAL_INT(VB_WHY_SIM_FOREIGN, B.last_why()->reason);
}

void test_wait_cq_needs_a_cq_and_room_for_a_completion(void)
{
	struct ibv_cq *gone = B.create_cq(a.context, 1, NULL, NULL, 0);
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_wait_cq(a.cq, 1, &wc, 1000));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq(a.cq, 0, &wc, 1000));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq(NULL, 1, &wc, 1000));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(gone));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-1, vb_sim_wait_cq(gone, 1, &wc, 1000));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}
