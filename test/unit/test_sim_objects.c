/* SPDX-License-Identifier: MIT */
/* Objects of the backend sim: errors, EBUSY, stale and foreign handles. */
#include "backends/sim/backend.h"
#include "unity.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define B vb_backend_sim

static struct ibv_context *context, *other;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t buffer[8192];

void setUp(void)
{
	struct ibv_device **list;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	list = B.get_device_list(NULL);
	TEST_ASSERT_NOT_NULL(list);
	context = B.open_device(list[0]);
	other = B.open_device(list[1]);
	B.free_device_list(list);
	pd = B.alloc_pd(context);
	cq = B.create_cq(context, 16, NULL, NULL, 0);
	TEST_ASSERT_NOT_NULL(cq);
}

void tearDown(void)
{
	struct vb_sim_objects objects;
	static const struct vb_sim_objects none;

	if (context)
		B.close_device(context);
	if (other)
		B.close_device(other);
	context = other = NULL;
	vb_sim_count_objects(NULL, &objects);
	TEST_ASSERT_EQUAL_INT(0, memcmp(&objects, &none, sizeof(none)));
}

static struct ibv_qp *make_qp(struct ibv_pd *in, struct ibv_cq *to, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = to,
		.recv_cq = to,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = type,
	};

	return B.create_qp(in, &attr);
}

static void expect_null(int error, const void *pointer)
{
	TEST_ASSERT_NULL(pointer);
	TEST_ASSERT_EQUAL_INT(error, errno);
}

void test_the_default_world_has_two_devices(void)
{
	int count;
	struct ibv_device **list = B.get_device_list(&count);
	union ibv_gid gid;
	static const uint8_t ipv4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};

	TEST_ASSERT_EQUAL_INT(2, count);
	TEST_ASSERT_NULL(list[2]);
	TEST_ASSERT_EQUAL_STRING("sim0", B.get_device_name(list[0]));
	TEST_ASSERT_EQUAL_STRING("sim1", list[1]->name);
	TEST_ASSERT_EQUAL_INT(IBV_TRANSPORT_IB, list[0]->transport_type);
	TEST_ASSERT_EQUAL_INT(IBV_NODE_CA, list[0]->node_type);
	TEST_ASSERT_TRUE(B.owns_device(list[0]) && B.owns_context(context));
	TEST_ASSERT_NOT_EQUAL(B.get_device_guid(list[0]), B.get_device_guid(list[1]));
	B.free_device_list(list);
	TEST_ASSERT_EQUAL_INT(0, B.query_gid(context, 1, 1, &gid));
	TEST_ASSERT_EQUAL_MEMORY(ipv4, gid.raw, 16);
}

void test_configure_waits_for_open_devices(void)
{
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_configure(NULL));
}

void test_a_list_outlives_its_world(void)
{
	struct ibv_device **list = B.get_device_list(NULL);

	B.close_device(context);
	B.close_device(other);
	context = other = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	expect_null(ENODEV, B.open_device(list[0]));
	B.free_device_list(list);
}

void test_configurations_that_cannot_be(void)
{
	static const struct vb_sim_config twice = {.device_count = 2,
						   .devices = {{.name = "a"}, {.name = "a"}}};
	static const struct vb_sim_config unnamed = {.device_count = 1};
	static const struct vb_sim_config profile = {.device_count = 1,
						     .devices = {{.name = "a", .profile = "none"}}};
	static const struct vb_sim_config link = {.device_count = 1,
						  .devices = {{.name = "a"}},
						  .link_count = 1,
						  .links = {{.a = "a", .b = "b"}}};
	static const struct vb_sim_config clock = {.clock = 7};
	static const struct vb_sim_config trace = {.trace = "/nonexistent/trace.pcap"};
	char text[512];

	expect_null(EINVAL, vb_sim_open(&twice));
	expect_null(EINVAL, vb_sim_open(&unnamed));
	expect_null(EINVAL, vb_sim_open(&profile));
	expect_null(EINVAL, vb_sim_open(&link));
	expect_null(EINVAL, vb_sim_open(&clock));
	expect_null(ENOENT, vb_sim_open(&trace));
	TEST_ASSERT_TRUE(vb_why_text(B.last_why(), text, sizeof(text))[0]);
}

void test_a_world_beside_the_default_one(void)
{
	struct vb_sim *sim = vb_sim_open(NULL);
	struct ibv_device **list = vb_sim_device_list(sim, NULL);
	struct ibv_context *there = B.open_device(list[0]);

	TEST_ASSERT_EQUAL_PTR(sim, vb_sim_of(there));
	TEST_ASSERT_TRUE(vb_sim_of(context) != sim);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(sim, 1000));
	TEST_ASSERT_EQUAL_UINT64(1000, vb_sim_now_ns(sim));
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
	TEST_ASSERT_TRUE(B.owns_list(list));
	TEST_ASSERT_FALSE(B.owns_list(list + 1));
	B.free_device_list(list);
	TEST_ASSERT_FALSE(B.owns_list(list));
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_close(sim));
	TEST_ASSERT_EQUAL_INT(0, B.close_device(there));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(sim));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_close(NULL));
}

void test_queries(void)
{
	struct ibv_device_attr attr;
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_gid_entry entry, entries[64];
	union ibv_gid gid, zero = {0};
	__be16 pkey;
	ssize_t count;

	TEST_ASSERT_EQUAL_INT(0, B.query_device(context, &attr));
	TEST_ASSERT_TRUE(attr.max_qp > 0 && attr.phys_port_cnt == 1);
	TEST_ASSERT_EQUAL_INT(0, B.query_device_ex(context, NULL, &ex, sizeof(ex)));
	TEST_ASSERT_EQUAL_INT(attr.max_qp, ex.orig_attr.max_qp);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.query_device_ex(context, &input, &ex, sizeof(ex)));
	TEST_ASSERT_EQUAL_INT(-1, B.query_gid(context, 1, 5000, &gid));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(-1, B.query_gid(context, 2, 0, &gid));
	TEST_ASSERT_EQUAL_INT(-1, B.query_gid(context, 1, -1, &gid));
	TEST_ASSERT_EQUAL_INT(0, B.query_gid(context, 1, 20, &gid));
	TEST_ASSERT_EQUAL_MEMORY(&zero, &gid, sizeof(gid));
	TEST_ASSERT_EQUAL_INT(ENODATA, B.query_gid_ex(context, 1, 20, &entry, 0, sizeof(entry)));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.query_gid_ex(context, 1, 0, &entry, 1, sizeof(entry)));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.query_gid_ex(context, 0, 0, &entry, 0, sizeof(entry)));
	TEST_ASSERT_EQUAL_INT(0, B.query_gid_ex(context, 1, 1, &entry, 0, sizeof(entry)));
	TEST_ASSERT_EQUAL_UINT32(IBV_GID_TYPE_ROCE_V2, entry.gid_type);
	count = B.query_gid_table(context, entries, 64, 0, sizeof(entry));
	TEST_ASSERT_EQUAL_INT(6, count);
	for (int i = 0; i < count; i++)
		TEST_ASSERT_EQUAL_UINT32(i < 3 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1,
					 entries[i].gid_type);
	TEST_ASSERT_EQUAL_MEMORY(&entry.gid, &entries[1].gid, 16);
	TEST_ASSERT_EQUAL_INT(-EINVAL, B.query_gid_table(context, entries, 2, 0, sizeof(entry)));
	TEST_ASSERT_EQUAL_INT(-EINVAL, B.query_gid_table(context, entries, 64, 1, sizeof(entry)));
	TEST_ASSERT_EQUAL_INT(0, B.query_pkey(context, 1, 0, &pkey));
	TEST_ASSERT_EQUAL_HEX16(0xffff, pkey);
	TEST_ASSERT_EQUAL_INT(-1, B.query_pkey(context, 1, 100, &pkey));
	TEST_ASSERT_EQUAL_INT(0, B.get_pkey_index(context, 1, 0xffff));
	TEST_ASSERT_EQUAL_INT(-1, B.get_pkey_index(context, 1, 0x1234));
}

void test_a_short_port_attr_is_not_written_past(void)
{
	struct ibv_port_attr attr, old;
	size_t size = offsetof(struct ibv_port_attr, flags);

	memset(&old, 0xa5, sizeof(old));
	TEST_ASSERT_EQUAL_INT(0, B.query_port(context, 1, &attr, sizeof(attr)));
	TEST_ASSERT_EQUAL_INT(0, B.query_port(context, 1, &old, size));
	TEST_ASSERT_EQUAL_MEMORY(&attr, &old, size);
	TEST_ASSERT_EQUAL_HEX8(0xa5, old.flags);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.query_port(context, 0, &attr, sizeof(attr)));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.query_port(context, 2, &attr, sizeof(attr)));
}

void test_create_cq_refuses(void)
{
	struct ibv_device_attr attr;
	struct ibv_comp_channel *foreign = B.create_comp_channel(other);

	B.query_device(context, &attr);
	expect_null(EINVAL, B.create_cq(context, 0, NULL, NULL, 0));
	expect_null(EINVAL, B.create_cq(context, -1, NULL, NULL, 0));
	expect_null(EINVAL, B.create_cq(context, attr.max_cqe + 1, NULL, NULL, 0));
	expect_null(EINVAL, B.create_cq(context, 1, NULL, NULL, context->num_comp_vectors));
	expect_null(EINVAL, B.create_cq(context, 1, NULL, NULL, -1));
	expect_null(EINVAL, B.create_cq(context, 1, NULL, foreign, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.resize_cq(cq, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.resize_cq(cq, attr.max_cqe + 1));
	TEST_ASSERT_EQUAL_INT(0, B.resize_cq(cq, 100));
	TEST_ASSERT_TRUE(cq->cqe >= 100);
}

void test_create_cq_ex_refuses_what_it_cannot_serve(void)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 4, .wc_flags = IBV_WC_EX_WITH_TM_INFO};
	struct ibv_poll_cq_attr poll_attr = {0};
	struct ibv_cq_ex *ex;

	expect_null(EOPNOTSUPP, B.create_cq_ex(context, &attr));
	attr = (struct ibv_cq_init_attr_ex){.cqe = 4, .comp_mask = 1u << 20};
	expect_null(EINVAL, B.create_cq_ex(context, &attr));
	attr = (struct ibv_cq_init_attr_ex){.cqe = 4, .wc_flags = IBV_WC_STANDARD_FLAGS};
	ex = B.create_cq_ex(context, &attr);
	TEST_ASSERT_NOT_NULL(ex);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_start_poll(ex, &poll_attr));
	poll_attr.comp_mask = 1;
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_start_poll(ex, &poll_attr));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(ibv_cq_ex_to_cq(ex)));
}

void test_what_is_used_is_busy(void)
{
	struct ibv_comp_channel *channel = B.create_comp_channel(context);
	struct ibv_cq *on_channel = B.create_cq(context, 4, NULL, channel, 0);
	struct ibv_mr *mr = B.reg_mr(pd, buffer, sizeof(buffer), 0);
	struct ibv_qp *qp;

	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_comp_channel(channel));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	qp = make_qp(pd, on_channel, IBV_QPT_RC);
	TEST_ASSERT_NOT_NULL(qp);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_cq(on_channel));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(on_channel));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_comp_channel(channel));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
}

void test_an_address_handle_keeps_its_pd(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};
	struct ibv_ah *ah;

	B.query_gid(other, 1, 1, &attr.grh.dgid);
	ah = B.create_ah(pd, &attr);
	TEST_ASSERT_NOT_NULL(ah);
	attr.port_num = 2;
	expect_null(EINVAL, B.create_ah(pd, &attr));
	attr.port_num = 1;
	attr.is_global = 0;
	expect_null(EINVAL, B.create_ah(pd, &attr));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_ah(ah));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_ah(ah));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
}

void test_stale_handles_are_errors(void)
{
	struct ibv_comp_channel *channel = B.create_comp_channel(context);
	struct ibv_mr *mr = B.reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_qp *qp = make_qp(pd, cq, IBV_QPT_RC);
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND}, *bad_send = NULL;
	struct ibv_recv_wr recv = {0}, *bad_recv = NULL;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr init;
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_comp_channel(channel));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_send(qp, &send, &bad_send));
	TEST_ASSERT_EQUAL_PTR(&send, bad_send);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_recv(qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_PTR(&recv, bad_recv);
	TEST_ASSERT_EQUAL_INT(ENOENT, B.modify_qp(qp, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.query_qp(qp, &attr, 0, &init));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(mr));
	TEST_ASSERT_TRUE(ibv_poll_cq(cq, 1, &wc) < 0);
	TEST_ASSERT_EQUAL_INT(ENOENT, ibv_req_notify_cq(cq, 0));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.resize_cq(cq, 4));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_comp_channel(channel));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	expect_null(ENOENT, B.reg_mr(pd, buffer, 1, 0));
	expect_null(ENOENT, make_qp(pd, cq, IBV_QPT_RC));
}

void test_objects_of_another_context_are_refused(void)
{
	struct ibv_pd *foreign_pd = B.alloc_pd(other);
	struct ibv_cq *foreign_cq = B.create_cq(other, 4, NULL, NULL, 0);

	expect_null(EINVAL, make_qp(pd, foreign_cq, IBV_QPT_RC));
	expect_null(EINVAL, make_qp(foreign_pd, cq, IBV_QPT_RC));
	expect_null(EINVAL, make_qp(pd, NULL, IBV_QPT_RC));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
}

void test_closing_ends_the_objects_and_their_handles(void)
{
	struct ibv_qp *qp = make_qp(pd, cq, IBV_QPT_UD);
	struct ibv_context *closed = context;
	struct ibv_device_attr attr;
	struct ibv_wc wc;

	TEST_ASSERT_NOT_NULL(qp);
	TEST_ASSERT_NOT_NULL(B.reg_mr(pd, buffer, 10, 0));
	TEST_ASSERT_NOT_NULL(B.create_comp_channel(context));
	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	context = NULL;
	TEST_ASSERT_EQUAL_INT(-1, B.close_device(closed));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.destroy_qp(qp));
	TEST_ASSERT_TRUE(ibv_poll_cq(cq, 1, &wc) < 0);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.query_device(closed, &attr));
	expect_null(EINVAL, B.alloc_pd(closed));
}

void test_memory_that_cannot_be_registered(void)
{
	expect_null(EFAULT, B.reg_mr(pd, NULL, 4096, 0));
	expect_null(EINVAL, B.reg_mr(pd, buffer, 10, IBV_ACCESS_REMOTE_WRITE));
	expect_null(EFAULT, B.reg_mr(pd, (void *)UINTPTR_MAX, 4096, 0));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
}

void test_verbs_that_are_not_there_answer_in_their_convention(void)
{
	struct ibv_counters_init_attr counters = {0};
	struct ibv_wq_init_attr wq = {0};

	expect_null(EOPNOTSUPP, ibv_create_counters(context, &counters));
	expect_null(EOPNOTSUPP, ibv_create_wq(context, &wq));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, ibv_destroy_flow(&(struct ibv_flow){.context = context}));
}

void test_fault_rules_that_cannot_be(void)
{
	struct vb_fault_rule rule = {.action = 9};
	unsigned int id;

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_fault_add(NULL, &rule, &id));
	rule = (struct vb_fault_rule){.probability = 1.5};
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_fault_add(NULL, &rule, &id));
	rule = (struct vb_fault_rule){.from = "nobody"};
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_fault_add(NULL, &rule, &id));
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_fault_remove(NULL, 77));
	rule = (struct vb_fault_rule){.from = "sim0", .count = 1};
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &rule, &id));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fault_hits(NULL, id));
	TEST_ASSERT_EQUAL_INT(0, vb_fault_remove(NULL, id));
}

void test_real_time_values_are_in_ticks(void)
{
	struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK | 0x80};

	vb_sim_run(NULL, 5000000000);
	TEST_ASSERT_EQUAL_INT(0, B.query_rt_values_ex(context, &values));
	TEST_ASSERT_EQUAL_UINT32(IBV_VALUES_MASK_RAW_CLOCK, values.comp_mask);
	TEST_ASSERT_EQUAL_INT64(5000000000, values.raw_clock.tv_nsec);
}

/* A long range is looked up in /proc/self/maps. */
void test_memory_that_no_free_descriptor_can_look_up(void)
{
	const size_t length = 1 << 20;
	void *many = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
	struct ibv_mr *mr = B.reg_mr(pd, many, length, access);
	struct ibv_sge sge = {(uintptr_t)many, (uint32_t)length, mr->lkey};
	struct rlimit kept, none;
	struct ibv_mr *refused;
	int err, advised;
	char text[512];

	getrlimit(RLIMIT_NOFILE, &kept);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = kept.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	refused = B.reg_mr(pd, many, length, IBV_ACCESS_LOCAL_WRITE);
	err = errno;
	advised = B.advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1);
	setrlimit(RLIMIT_NOFILE, &kept);
	TEST_ASSERT_NULL(refused);
	TEST_ASSERT_EQUAL_INT(EMFILE, err);
	TEST_ASSERT_EQUAL_INT(EMFILE, advised);
	TEST_ASSERT_EQUAL_STRING("advise_mr: the process has no free file descriptor to read "
				 "/proc/self/maps; close descriptors, or raise the limit of the "
				 "process (ulimit -n)",
				 vb_why_text(B.last_why(), text, sizeof(text)));
	TEST_ASSERT_EQUAL_INT(0, B.advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	munmap(many, length);
	/* Memory that is not mapped stays EFAULT. */
	expect_null(EFAULT, B.reg_mr(pd, many, length, IBV_ACCESS_LOCAL_WRITE));
}
