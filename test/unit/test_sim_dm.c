/* SPDX-License-Identifier: MIT */
/* Device memory, null and on-demand regions, parent domains, multicast and ports of the backend
 * sim. */
#include "test/unit/sim_pair.h"

#include <unistd.h>

static struct ibv_qp *from, *to;

void setUp(void)
{
	open_pair();
	connect_pair(&from, &to);
}

void tearDown(void)
{
	close_pair();
}

static struct ibv_dm *make_dm(struct end *end, size_t length)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = 3};

	return B.alloc_dm(end->context, &attr);
}

/* An RDMA operation of A on B. */
static enum ibv_wc_status move(enum ibv_wr_opcode opcode, struct ibv_sge sge, uint64_t remote_addr,
			       uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = remote_addr, .rkey = rkey},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(from, &wr));
	return wait_wc(&a).status;
}

/* --- device memory: ibv_alloc_dm(3) --- */

void test_device_memory_is_copied_to_and_from(void)
{
	struct ibv_dm *dm = make_dm(&a, 128);
	uint8_t out[16] = "0123456789abcde", in[16] = {0};

	TEST_ASSERT_NOT_NULL(dm);
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_to_dm(dm, 112, out, 16));
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_from_dm(in, dm, 112, 16));
	TEST_ASSERT_EQUAL_MEMORY(out, in, 16);
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_to_dm(dm, 116, out, 16));
	/* Copies have whole words of 4 bytes. */
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_to_dm(dm, 2, out, 4));
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_from_dm(in, dm, 4, 6));
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_from_dm(in, dm, UINT64_MAX, 16));
	TEST_ASSERT_EQUAL_INT(EFAULT, ibv_memcpy_to_dm(dm, 0, (void *)4096, 16));
	TEST_ASSERT_EQUAL_INT(0, B.free_dm(dm));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.free_dm(dm));
}

void test_a_region_of_device_memory_is_zero_based(void)
{
	struct ibv_dm *dm = make_dm(&b, 128);
	struct ibv_mr *mr;
	uint8_t in[8];

	expect_null(EINVAL, B.reg_dm_mr(b.pd, dm, 64, 64, ACCESS_ALL));
	expect_null(EINVAL, B.reg_dm_mr(b.pd, dm, 65, 64, ACCESS_ALL | IBV_ACCESS_ZERO_BASED));
	mr = B.reg_dm_mr(b.pd, dm, 64, 64, ACCESS_ALL | IBV_ACCESS_ZERO_BASED);
	TEST_ASSERT_NOT_NULL(mr);
	memset(a.buffer, 6, 8);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
			      move(IBV_WR_RDMA_WRITE, sge_of(&a, 0, 8), 56, mr->rkey));
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_from_dm(in, dm, 120, 8));
	TEST_ASSERT_EQUAL_MEMORY(a.buffer, in, 8);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.free_dm(dm));
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT,
			      B.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR,
			      move(IBV_WR_RDMA_WRITE, sge_of(&a, 0, 8), 57, mr->rkey));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(0, B.free_dm(dm));
}

void test_device_memory_ends_at_what_the_device_says(void)
{
	struct ibv_device_attr_ex attr;
	struct ibv_dm *all;

	TEST_ASSERT_EQUAL_INT(0, B.query_device_ex(a.context, NULL, &attr, sizeof(attr)));
	TEST_ASSERT_TRUE(attr.max_dm_size > 0);
	all = make_dm(&a, attr.max_dm_size);
	TEST_ASSERT_NOT_NULL(all);
	expect_null(ENOMEM, make_dm(&a, 1));
	TEST_ASSERT_EQUAL_INT(0, B.free_dm(all));
	TEST_ASSERT_NOT_NULL(make_dm(&a, 1));
	expect_null(EINVAL, make_dm(&a, 0));
}

/* --- null and on-demand regions --- */

/* ibv_alloc_null_mr(3): writes are discarded, reads are zeros, only the lkey is valid. */
void test_a_null_region_swallows_and_gives_zeros(void)
{
	struct ibv_mr *null = B.alloc_null_mr(a.pd);
	struct ibv_sge sge = {.addr = 0x1234, .length = 8};

	TEST_ASSERT_NOT_NULL(null);
	sge.lkey = null->lkey;
	memset(b.buffer, 5, 16);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
			      move(IBV_WR_RDMA_WRITE, sge, (uintptr_t)b.buffer, b.mr->rkey));
	TEST_ASSERT_EQUAL_INT(0, b.buffer[7]);
	TEST_ASSERT_EQUAL_INT(5, b.buffer[8]);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
			      move(IBV_WR_RDMA_READ, sge, (uintptr_t)b.buffer + 8, b.mr->rkey));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(null));
}

/* ibv_reg_mr(3): address 0 and SIZE_MAX with ON_DEMAND reach every address. */
void test_implicit_on_demand_reaches_everything(void)
{
	static uint8_t anywhere[64];
	struct ibv_mr *all = B.reg_mr(b.pd, NULL, SIZE_MAX, ACCESS_ALL | IBV_ACCESS_ON_DEMAND);

	TEST_ASSERT_NOT_NULL(all);
	memset(a.buffer, 8, 8);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, move(IBV_WR_RDMA_WRITE, sge_of(&a, 0, 8),
						   (uintptr_t)anywhere, all->rkey));
	TEST_ASSERT_EQUAL_INT(8, anywhere[7]);
}

/* ibv_advise_mr(3). */
void test_advice_is_for_on_demand_regions(void)
{
	struct ibv_mr *mr =
		B.reg_mr(a.pd, a.buffer, 4096, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *fixed = B.reg_mr(a.pd, a.buffer, 4096, 0);
	struct ibv_mr *readable = B.reg_mr(a.pd, a.buffer, 4096, IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = {(uintptr_t)a.buffer, 4096, 0};
	const enum ibv_advise_mr_advice fetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
	struct ibv_pd *other = B.alloc_pd(a.context);

	TEST_ASSERT_NOT_NULL(mr);
	sge.lkey = mr->lkey;
	TEST_ASSERT_EQUAL_INT(0, B.advise_mr(a.pd, fetch, 0, &sge, 1));
	TEST_ASSERT_EQUAL_INT(0, B.advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.advise_mr(a.pd, fetch, 1 << 7, &sge, 1));
	TEST_ASSERT_EQUAL_INT(ENOTSUP, B.advise_mr(a.pd, 99, 0, &sge, 1));
	TEST_ASSERT_EQUAL_INT(EPERM, B.advise_mr(other, fetch, 0, &sge, 1));
	sge.length = 4097;
	TEST_ASSERT_EQUAL_INT(EFAULT, B.advise_mr(a.pd, fetch, 0, &sge, 1));
	sge.length = 4096;
	sge.lkey = fixed->lkey;
	TEST_ASSERT_EQUAL_INT(ENOENT, B.advise_mr(a.pd, fetch, 0, &sge, 1));
	sge.lkey = readable->lkey;
	TEST_ASSERT_EQUAL_INT(EPERM,
			      B.advise_mr(a.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(fixed));
	sge.lkey = fixed->lkey;
	TEST_ASSERT_EQUAL_INT(ENOENT, B.advise_mr(a.pd, fetch, 0, &sge, 1));
}

/* --- thread and parent domains --- */

/* ibv_alloc_parent_domain(3): interchangeable with the PD; what is made in it goes first. */
void test_a_parent_domain_stands_in_for_its_pd(void)
{
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = B.alloc_td(a.context, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = a.pd, .td = td};
	struct ibv_pd *parent = B.alloc_parent_domain(a.context, &attr);
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
	struct ibv_cq_ex *cq;
	struct ibv_mr *mr;

	TEST_ASSERT_NOT_NULL(parent);
	mr = B.reg_mr(parent, a.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
	TEST_ASSERT_NOT_NULL(mr);
	TEST_ASSERT_EQUAL_PTR(parent, mr->pd);
	/* An MR of the parent domain serves a QP of the PD. */
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
			      move(IBV_WR_RDMA_READ,
				   (struct ibv_sge){(uintptr_t)a.buffer, 8, mr->lkey},
				   (uintptr_t)b.buffer, b.mr->rkey));
	cq = B.create_cq_ex(a.context, &cq_attr);
	TEST_ASSERT_NOT_NULL(cq);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_td(td));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(parent));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(parent));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq((struct ibv_cq *)cq));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(parent));
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_td(td));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_td(td));
	cq_attr.parent_domain = a.pd; /* not a parent domain */
	expect_null(EINVAL, B.create_cq_ex(a.context, &cq_attr));
	attr.td = td;
	expect_null(ENOENT, B.alloc_parent_domain(a.context, &attr));
}

void test_moderation_is_accepted(void)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {.cq_count = 8, .cq_period = 100}};

	TEST_ASSERT_EQUAL_INT(0, B.modify_cq(a.cq, &attr));
	attr.attr_mask = 1 << 4;
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, B.modify_cq(a.cq, &attr));
}

/* No byte beyond the length that the caller passes is written, as in libibverbs. */
void test_query_device_ex_fills_what_there_is_room_for(void)
{
	struct ibv_device_attr_ex attr;
	const size_t half = offsetof(struct ibv_device_attr_ex, tso_caps);

	memset(&attr, 0xee, sizeof(attr));
	TEST_ASSERT_EQUAL_INT(0, B.query_device_ex(a.context, NULL, &attr, half));
	TEST_ASSERT_TRUE(attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
	TEST_ASSERT_EQUAL_UINT32(0xeeeeeeee, attr.tso_caps.max_tso);
	TEST_ASSERT_EQUAL_INT(0, B.query_device_ex(a.context, NULL, &attr, sizeof(attr)));
	TEST_ASSERT_EQUAL_UINT32(0, attr.tso_caps.max_tso);
	TEST_ASSERT_EQUAL_UINT32(0, attr.tm_caps.max_num_tags);
	TEST_ASSERT_EQUAL_UINT32(1, attr.phys_port_cnt_ex);
}

/* --- multicast: ibv_attach_mcast(3) --- */

void test_a_qp_in_a_group_gets_its_messages_once_and_is_busy(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&b, IBV_QPT_UD);
	struct ibv_qp *member = B.create_qp_ex(b.context, &attr), *sender;
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
	struct ibv_sge sge = sge_of(&b, 0, 128);
	struct ibv_recv_wr *bad, recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1};
	struct ibv_ah_attr to_group = {.is_global = 1, .port_num = 1, .grh.sgid_index = 1};

	attr = qp_attr(&a, IBV_QPT_UD);
	sender = B.create_qp_ex(a.context, &attr);
	connect_qp(member, &a, 0);
	connect_qp(sender, &b, 0);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.attach_mcast(to, &group, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.attach_mcast(member, &a.gid, 0));
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(member, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(member, &group, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_qp(member));
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(member, &recv, &bad));
	recv.wr_id = 2;
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(member, &recv, &bad));
	to_group.grh.dgid = group;
	send.wr.ud.ah = B.create_ah(a.pd, &to_group);
	TEST_ASSERT_NOT_NULL(send.wr.ud.ah);
	send.wr.ud.remote_qpn = 0xffffff;
	send.wr.ud.remote_qkey = QKEY;
	sge = sge_of(&a, 0, 8);
	TEST_ASSERT_EQUAL_INT(0, post_wr(sender, &send));
	expect_wc(&a, 0, IBV_WC_SUCCESS);
	expect_wc(&b, 1, IBV_WC_SUCCESS);
	expect_nothing(&b);
	TEST_ASSERT_EQUAL_INT(0, B.detach_mcast(member, &group, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.detach_mcast(member, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(member));
}

/* --- acting on the world: sim.h --- */

static void expect_event(struct end *end, enum ibv_event_type type)
{
	struct ibv_async_event event;

	do {
		TEST_ASSERT_EQUAL_INT(0, B.get_async_event(end->context, &event));
		B.ack_async_event(&event);
	} while (event.event_type == IBV_EVENT_COMM_EST);
	TEST_ASSERT_EQUAL_INT(type, event.event_type);
}

void test_a_port_goes_down_and_comes_up(void)
{
	struct ibv_port_attr attr;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(b.context, 1, false));
	expect_event(&b, IBV_EVENT_PORT_ERR);
	TEST_ASSERT_EQUAL_INT(0, B.query_port(b.context, 1, &attr, sizeof(attr)));
	TEST_ASSERT_EQUAL_INT(IBV_PORT_DOWN, attr.state);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, move(IBV_WR_RDMA_WRITE, sge_of(&a, 0, 8),
							 (uintptr_t)b.buffer, b.mr->rkey));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(b.context, 1, true));
	expect_event(&b, IBV_EVENT_PORT_ACTIVE);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_port_state(b.context, 2, true));
}

void test_addresses_change_with_an_event(void)
{
	const union ibv_gid gid = {.raw = {0xfd, [15] = 9}};
	struct ibv_port_attr port;
	union ibv_gid found;
	__be16 pkey;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(a.context, 1, 2, &gid));
	expect_event(&a, IBV_EVENT_GID_CHANGE);
	TEST_ASSERT_EQUAL_INT(0, B.query_gid(a.context, 1, 2, &found));
	TEST_ASSERT_EQUAL_MEMORY(&gid, &found, sizeof(gid));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_gid(a.context, 1, 1000, &gid));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_pkey(a.context, 1, 0, 0x8001));
	expect_event(&a, IBV_EVENT_PKEY_CHANGE);
	TEST_ASSERT_EQUAL_INT(0, B.query_pkey(a.context, 1, 0, &pkey));
	TEST_ASSERT_EQUAL_INT(0x8001, be16toh(pkey));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_lid(a.context, 1, 77));
	expect_event(&a, IBV_EVENT_LID_CHANGE);
	TEST_ASSERT_EQUAL_INT(0, B.query_port(a.context, 1, &port, sizeof(port)));
	TEST_ASSERT_EQUAL_INT(77, port.lid);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_event(a.context, 1, IBV_EVENT_SM_CHANGE));
	expect_event(&a, IBV_EVENT_SM_CHANGE);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_port_event(a.context, 1, IBV_EVENT_QP_FATAL));
}

void test_a_killed_device_flushes_and_can_be_cleared_away(void)
{
	struct ibv_sge sge = sge_of(&b, 0, 64);
	struct ibv_recv_wr *bad, recv = {.wr_id = 1, .sg_list = &sge, .num_sge = 1};

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(to, &recv, &bad));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(b.context));
	expect_event(&b, IBV_EVENT_DEVICE_FATAL);
	expect_wc(&b, 1, IBV_WC_WR_FLUSH_ERR);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, move(IBV_WR_RDMA_WRITE, sge_of(&a, 0, 8),
							 (uintptr_t)b.buffer, b.mr->rkey));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(to));
}

void test_quirks_are_set_by_name(void)
{
	const char *name = "local_write_not_required";
	const char *about = NULL;
	unsigned int count = 0;
	bool on = true;
	struct ibv_mr *mr;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_quirk(a.context, name, &on));
	TEST_ASSERT_FALSE(on);
	expect_null(EINVAL, B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_REMOTE_WRITE));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(a.context, name, true));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_quirk(a.context, name, &on));
	TEST_ASSERT_TRUE(on);
	mr = B.reg_mr(a.pd, a.buffer, 64, IBV_ACCESS_REMOTE_WRITE);
	TEST_ASSERT_NOT_NULL(mr);
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_sim_set_quirk(a.context, "no such", true));
	while (vb_sim_quirk_name(count, &about)) {
		TEST_ASSERT_NOT_NULL(about);
		count++;
	}
	TEST_ASSERT_TRUE(count > 10);
}

/* --- ibv_import_device(3), ibv_import_pd(3), ibv_import_mr(3), ibv_import_dm(3) --- */

void test_objects_of_a_shared_file_are_imported(void)
{
	struct ibv_context *second = B.import_device(dup(a.context->cmd_fd));
	struct ibv_dm *dm = make_dm(&a, 64), *dm_again;
	struct ibv_pd *pd;
	struct ibv_mr *mr, *own;
	uint32_t word = 3, back = 0;

	TEST_ASSERT_NOT_NULL(second);
	pd = B.import_pd(second, a.pd->handle);
	TEST_ASSERT_NOT_NULL(pd);
	TEST_ASSERT_EQUAL_UINT32(a.pd->handle, pd->handle);
	mr = B.import_mr(pd, a.mr->handle);
	TEST_ASSERT_NOT_NULL(mr);
	TEST_ASSERT_EQUAL_UINT32(a.mr->lkey, mr->lkey);
	TEST_ASSERT_NULL(mr->addr);
	dm_again = B.import_dm(second, dm->handle);
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_to_dm(dm, 8, &word, 4));
	TEST_ASSERT_EQUAL_INT(0, ibv_memcpy_from_dm(&back, dm_again, 8, 4));
	TEST_ASSERT_EQUAL_INT(3, back);
	/* Objects made in the import belong to the same PD. */
	own = B.reg_mr(pd, a.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS,
			      move(IBV_WR_RDMA_READ,
				   (struct ibv_sge){(uintptr_t)a.buffer, 8, own->lkey},
				   (uintptr_t)b.buffer, b.mr->rkey));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(own));
	/* The first of them to end ends the object; the others can then only be unimported. */
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dereg_mr(a.mr));
	B.destroy_qp(from);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(a.pd));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	B.unimport_pd(pd);
	TEST_ASSERT_EQUAL_INT(0, B.free_dm(dm_again));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.free_dm(dm));
	expect_null(ENOENT, B.import_pd(second, 77));
	TEST_ASSERT_EQUAL_INT(0, B.close_device(second));
	expect_null(EINVAL, B.import_device(a.context->cmd_fd));
	expect_null(EINVAL, B.import_device(-1));
}

void test_unimporting_leaves_the_object(void)
{
	struct ibv_context *second = B.import_device(dup(a.context->cmd_fd));
	struct ibv_pd *pd = B.import_pd(second, a.pd->handle);
	struct ibv_mr *mr = B.import_mr(pd, a.mr->handle);

	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT,
			      B.rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	B.unimport_mr(mr);
	B.unimport_pd(pd);
	mr = B.import_mr(B.import_pd(second, a.pd->handle), a.mr->handle);
	TEST_ASSERT_NOT_NULL(mr);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(second)); /* ends its imports only */
	TEST_ASSERT_EQUAL_INT(0, B.dereg_mr(a.mr));
}
