/* SPDX-License-Identifier: MIT */
/*
 * Reasons of domains, imports, multicast groups, AHs from completions, CQs, channels and events: each
 * mistake, and the whole sentence that the program gets.
 */
#include "backends/sim/world/world.h"
#include "test/unit/sim_import.h"
#include "test/unit/sim_sentence.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};

/* The errno of each eventfd(2) and fopen(3), which is fopen64() here; 0: they work. */
static int descriptor_error;

int __real_eventfd(unsigned int count, int flags);
FILE *__real_fopen64(const char *path, const char *mode);

int __wrap_eventfd(unsigned int count, int flags)
{
	errno = descriptor_error;
	return descriptor_error ? -1 : __real_eventfd(count, flags);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	errno = descriptor_error;
	return descriptor_error ? NULL : __real_fopen64(path, mode);
}

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair_and_import();
}

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, type);
	struct ibv_qp *qp = B.create_qp_ex(a.context, &attr);

	TEST_ASSERT_NOT_NULL(qp);
	return qp;
}

static struct ibv_ah *make_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.dgid = b.gid, .sgid_index = 1, .hop_limit = 64}};

	return B.create_ah(a.pd, &attr);
}

static struct ibv_td *make_td(void)
{
	return B.alloc_td(a.context, &(struct ibv_td_init_attr){0});
}

static struct ibv_pd *make_parent(struct ibv_td *td)
{
	return B.alloc_parent_domain(a.context,
				     &(struct ibv_parent_domain_init_attr){.pd = a.pd, .td = td});
}

/* --- protection domains, thread domains, parent domains --- */

void test_a_busy_pd_names_its_objects(void)
{
	struct ibv_qp *qp = make_qp(IBV_QPT_RC);
	struct ibv_pd *imported;
	struct ibv_mw *mw;

	import_device();
	imported = B.import_pd(importing, a.pd->handle);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(a.pd));
	expect_reason(VB_WHY_PD_BUSY,
		      "dealloc_pd: PD %u still has 1 QP (number 0x%x), 1 MR (lkey 0x%x); destroy "
		      "these objects first",
		      a.pd->handle, qp->qp_num, a.mr->lkey);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
	/* The MR of an import keeps the root busy, too. */
	TEST_ASSERT_NOT_NULL(B.reg_mr(imported, a.buffer, 64, 0));
	TEST_ASSERT_NOT_NULL(make_ah());
	TEST_ASSERT_NOT_NULL(make_ah());
	mw = B.alloc_mw(a.pd, IBV_MW_TYPE_1);
	TEST_ASSERT_NOT_NULL(make_parent(NULL));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(imported));
	expect_reason(
		VB_WHY_PD_BUSY,
		"dealloc_pd: PD %u still has 2 AHs (first: handle 0), 1 MW (rkey 0x%x), 2 MRs "
		"(first: lkey 0x%x), 1 parent domain (handle 1); destroy these objects first",
		a.pd->handle, mw->rkey, a.mr->lkey);
}

void test_a_busy_parent_domain_names_its_cqs(void)
{
	struct ibv_td *td = make_td();
	struct ibv_pd *parent = make_parent(td);
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
	struct ibv_cq_ex *cq = B.create_cq_ex(a.context, &attr);

	TEST_ASSERT_NOT_NULL(cq);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_pd(parent));
	expect_reason(VB_WHY_PD_BUSY,
		      "dealloc_pd: PD %u still has 1 CQ (handle %u); destroy these objects first",
		      parent->handle, cq->handle);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.dealloc_td(td));
	expect_reason(VB_WHY_TD_BUSY,
		      "dealloc_td: the thread domain is still used by 1 parent domain (handle %u); "
		      "deallocate the parent domains first, by ibv_dealloc_pd()",
		      parent->handle);
}

void test_comp_masks_of_domains(void)
{
	struct ibv_td_init_attr td = {.comp_mask = 1};
	struct ibv_parent_domain_init_attr parent = {
		.pd = a.pd, .comp_mask = 0x10 | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT};

	expect_null(EINVAL, B.alloc_td(a.context, &td));
	expect_reason(VB_WHY_COMP_MASK,
		      "alloc_td: comp_mask has the unknown bits 0x1; set only the bits of the "
		      "structure's enum in <infiniband/verbs.h>");
	expect_null(EINVAL, B.alloc_parent_domain(a.context, &parent));
	expect_reason(VB_WHY_COMP_MASK,
		      "alloc_parent_domain: comp_mask has the unknown bits 0x10; set only the bits "
		      "of the structure's enum in <infiniband/verbs.h>");
}

/* --- XRC domains --- */

static struct ibv_xrcd *open_domain(uint32_t comp_mask, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = comp_mask, .fd = fd, .oflags = oflags};

	return B.open_xrcd(a.context, &attr);
}

void test_mistakes_of_open_xrcd(void)
{
	const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	const int fd = memfd_create("domain", MFD_CLOEXEC);

	expect_null(EINVAL, open_domain(IBV_XRCD_INIT_ATTR_FD, -1, O_CREAT));
	expect_reason(VB_WHY_XRCD_COMP_MASK,
		      "open_xrcd: comp_mask is 0x1; both fd and oflags have to be set; set "
		      "comp_mask to IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS");
	expect_null(EINVAL, open_domain(both, -1, O_CREAT | O_NONBLOCK));
	expect_reason(
		VB_WHY_XRCD_OFLAGS,
		"open_xrcd: oflags has the bits 0x%x beside O_CREAT and O_EXCL; give O_CREAT, "
		"O_EXCL, both or 0",
		O_NONBLOCK);
	expect_null(EBADF, open_domain(both, 1 << 20, O_CREAT));
	expect_reason(VB_WHY_XRCD_DESCRIPTOR,
		      "open_xrcd: fd 1048576 is not open; open the file whose inode names the "
		      "domain, or give fd -1 for a domain without an inode");
	expect_null(EAGAIN, open_domain(both, fd, 0));
	expect_reason(VB_WHY_XRCD_ABSENT,
		      "open_xrcd: the inode of fd %d has no XRC domain on the device, and oflags "
		      "lacks O_CREAT; set O_CREAT to make the domain",
		      fd);
	TEST_ASSERT_NOT_NULL(open_domain(both, fd, O_CREAT));
	expect_null(EINVAL, open_domain(both, fd, O_CREAT | O_EXCL));
	expect_reason(VB_WHY_XRCD_EXISTS,
		      "open_xrcd: the inode of fd %d has an XRC domain on the device, and oflags "
		      "has O_EXCL; remove O_EXCL to share the domain, or give another file",
		      fd);
	close(fd);
	open_profile("rxe-6.1");
	expect_null(EOPNOTSUPP, open_domain(both, -1, O_CREAT));
	expect_reason(VB_WHY_XRCD_LACKING,
		      "open_xrcd: the device has no XRC: its device_cap_flags lack IBV_DEVICE_XRC; "
		      "choose a device that has XRC, or use RC QPs with an SRQ");
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

void test_a_busy_xrc_domain_names_its_objects(void)
{
	struct ibv_xrcd *xrcd =
		open_domain(IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT);
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
	struct ibv_qp *target = B.create_qp_ex(a.context, &attr);
	struct ibv_srq *srq = make_xrc_srq(xrcd);

	TEST_ASSERT_NOT_NULL(target);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.close_xrcd(xrcd));
	expect_reason(VB_WHY_XRCD_BUSY,
		      "close_xrcd: the XRC domain is still used by 1 QP (number 0x%x), 1 SRQ "
		      "(handle %u); destroy these objects first",
		      target->qp_num, srq->handle);
}

/* --- imports --- */

void test_mistakes_of_import_device(void)
{
	const int other = memfd_create("other", MFD_CLOEXEC);

	expect_null(EINVAL, B.import_device(other));
	expect_reason(VB_WHY_IMPORT_DESCRIPTOR,
		      "import_device: descriptor %d is no duplicate of the cmd_fd of an open "
		      "ibv_context; give dup(context->cmd_fd), or a descriptor that a process of "
		      "this world has passed",
		      other);
	close(other);
	expect_null(EINVAL, B.import_device(a.context->cmd_fd));
	expect_reason(VB_WHY_IMPORT_ORIGINAL,
		      "import_device: descriptor %d is the cmd_fd of an ibv_context, which closes "
		      "it; give a duplicate: dup(context->cmd_fd)",
		      a.context->cmd_fd);
}

void test_mistakes_of_imported_objects(void)
{
	struct ibv_pd *parent = make_parent(NULL), *pd;

	import_device();
	expect_null(ENOENT, B.import_pd(importing, 77));
	expect_reason(VB_WHY_IMPORT_HANDLE,
		      "import_pd: the original context has no PD of handle 77; give the handle in "
		      "the structure of the PD, while the PD is live");
	expect_null(ENOENT, B.import_dm(importing, 3));
	expect_reason(VB_WHY_IMPORT_HANDLE,
		      "import_dm: the original context has no DM of handle 3; give the handle in "
		      "the structure of the DM, while the DM is live");
	expect_null(ENOENT, B.import_pd(importing, parent->handle));
	expect_reason(VB_WHY_IMPORT_PARENT,
		      "import_pd: the PD of handle %u is a parent domain, which exists in its own "
		      "context only; import the PD that the parent domain extends",
		      parent->handle);
	/* An import in the original context itself: its number follows that of the parent. */
	TEST_ASSERT_NOT_NULL(B.import_pd(a.context, a.pd->handle));
	expect_null(ENOENT, B.import_pd(importing, parent->handle + 1));
	expect_reason(VB_WHY_IMPORT_OF_IMPORT,
		      "import_pd: the PD of handle %u is an import itself; import the original PD",
		      parent->handle + 1);
	pd = B.import_pd(importing, a.pd->handle);
	expect_null(ENOENT, B.import_mr(pd, 12));
	expect_reason(VB_WHY_IMPORT_HANDLE,
		      "import_mr: the original context has no MR of handle 12; give the handle in "
		      "the structure of the MR, while the MR is live");
	TEST_ASSERT_EQUAL_INT(0, B.close_device(a.context));
	a.context = NULL;
	expect_null(ENOENT, B.import_pd(importing, 0));
	expect_reason(VB_WHY_IMPORT_CLOSED,
		      "import_pd: the ibv_context is closed, or the original ibv_context is closed "
		      "whose cmd_fd it was made from; keep both contexts open");
}

/* --- multicast groups --- */

void test_mistakes_of_attach_mcast(void)
{
	struct ibv_qp *rc = make_qp(IBV_QPT_RC), *ud = make_qp(IBV_QPT_UD);

	TEST_ASSERT_EQUAL_INT(EINVAL, B.attach_mcast(rc, &group, 0));
	expect_reason(VB_WHY_MCAST_QP_TYPE,
		      "attach_mcast: QP 0x%x is of type RC, and only UD QPs join multicast groups; "
		      "create a QP of type IBV_QPT_UD",
		      rc->qp_num);
	TEST_ASSERT_EQUAL_INT(
		EINVAL, B.attach_mcast(ud, &(union ibv_gid){.raw = {0xfe, 0x80, [15] = 7}}, 0));
	expect_reason(VB_WHY_MCAST_GID,
		      "attach_mcast: fe80::7 is no multicast GID; give a GID that begins with ff, "
		      "or ::ffff:a.b.c.d of an IPv4 multicast address");
	TEST_ASSERT_EQUAL_INT(EINVAL, B.detach_mcast(ud, &group, 0));
	expect_reason(
		VB_WHY_MCAST_NO_MEMBER,
		"detach_mcast: QP 0x%x is not attached to the group ff0e::1; give the GID and "
		"the LID of ibv_attach_mcast()",
		ud->qp_num);
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(ud, &group, 5));
	TEST_ASSERT_EQUAL_INT(EINVAL, B.detach_mcast(ud, &group, 6));
	expect_reason(VB_WHY_MCAST_OTHER_LID,
		      "detach_mcast: QP 0x%x is attached to the group ff0e::1 with LID 0x5, not "
		      "with LID 0x6; give the LID of ibv_attach_mcast()",
		      ud->qp_num);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(rc));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.attach_mcast(rc, &group, 0));
	expect_reason(
		VB_WHY_OBJECT_GONE,
		"attach_mcast: the QP of handle %u is not live: the program has destroyed it, "
		"or gives a copy of its structure; give the pointer that the verb returned "
		"which made the QP, and only until the QP is destroyed",
		rc->handle);
}

void test_the_limits_of_groups(void)
{
	const union ibv_gid other = {.raw = {0xff, 0x0e, [15] = 2}};
	struct ibv_qp *first = make_qp(IBV_QPT_UD), *second = make_qp(IBV_QPT_UD);

	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(first, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(a.context, "max_total_mcast_qp_attach", 1));
	TEST_ASSERT_EQUAL_INT(ENOMEM, B.attach_mcast(second, &group, 0));
	expect_reason(VB_WHY_MCAST_DEVICE_FULL,
		      "attach_mcast: the device's max_total_mcast_qp_attach of 1 is reached; "
		      "detach QPs from groups that they do not need");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(a.context, "max_mcast_grp", 1));
	TEST_ASSERT_EQUAL_INT(ENOMEM, B.attach_mcast(second, &other, 0));
	expect_reason(VB_WHY_MCAST_DEVICE_FULL,
		      "attach_mcast: the device's max_mcast_grp of 1 is reached; detach QPs from "
		      "groups that they do not need");
	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(a.context, "max_mcast_qp_attach", 1));
	TEST_ASSERT_EQUAL_INT(ENOMEM, B.attach_mcast(second, &group, 0));
	expect_reason(VB_WHY_MCAST_GROUP_FULL,
		      "attach_mcast: the group has 1 QP of the device, which is the device's "
		      "max_mcast_qp_attach; detach QPs that do not need the group");
}

void test_a_group_of_infiniband_has_a_lid(void)
{
	const struct vb_sim_config config = {
		.device_count = 1,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND}}};
	struct ibv_context *context;
	struct ibv_device **list;
	struct ibv_qp_init_attr_ex attr;
	struct ibv_qp *qp;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	list = B.get_device_list(NULL);
	context = B.open_device(list[0]);
	B.free_device_list(list);
	a = (struct end){.context = context, .pd = B.alloc_pd(context)};
	a.cq = B.create_cq(context, 4, NULL, NULL, 0);
	attr = qp_attr(&a, IBV_QPT_UD);
	qp = B.create_qp_ex(context, &attr);
	TEST_ASSERT_EQUAL_INT(EINVAL, B.attach_mcast(qp, &group, 0xbfff));
	expect_reason(VB_WHY_MCAST_LID,
		      "attach_mcast: 0xbfff is no multicast LID; give the group's LID, which is "
		      "0xc000 to 0xfffe");
	TEST_ASSERT_EQUAL_INT(0, B.attach_mcast(qp, &group, 0xc000));
}

/* --- AHs from completions --- */

static int init_from(const struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh copy = *grh;
	struct ibv_ah_attr attr;

	return B.init_ah_from_wc(a.context, port_num, &wc, &copy, &attr);
}

void test_mistakes_of_ahs_from_completions(void)
{
	struct ibv_grh grh = {.version_tclass_flow = htobe32(6u << 28),
			      .next_hdr = IPPROTO_TCP,
			      .dgid = {.raw = {0xfe, 0x80, [15] = 9}}};

	TEST_ASSERT_EQUAL_INT(-1, init_from(&grh, 3));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(VB_WHY_NO_SUCH_PORT,
		      "init_ah_from_wc: port_num 3 does not exist; the device has 1 port, from 1; "
		      "give one of the device's ports");
	TEST_ASSERT_EQUAL_INT(-1, init_from(&grh, 1));
	TEST_ASSERT_EQUAL_INT(EPROTONOSUPPORT, errno);
	expect_reason(VB_WHY_WC_GRH_PROTOCOL,
		      "init_ah_from_wc: the GRH's next_hdr is 6; RoCE v1 has 27, RoCE v2 has 17; "
		      "give the first 40 bytes of the receive's buffer");
	grh.next_hdr = IPPROTO_UDP;
	TEST_ASSERT_EQUAL_INT(-1, init_from(&grh, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(VB_WHY_WC_GRH_GID,
		      "init_ah_from_wc: the GRH is addressed to fe80::9, which is not in the GID "
		      "table of port 1; give the port at which the datagram arrived");
	grh.dgid = group;
	TEST_ASSERT_EQUAL_INT(-1, init_from(&grh, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(VB_WHY_WC_GRH_MULTICAST,
		      "init_ah_from_wc: the GRH is addressed to a multicast group, so it does not "
		      "say at which GID of the port the datagram arrived; fill struct ibv_ah_attr "
		      "with the sender's GID and a sgid_index of the port");
	grh = (struct ibv_grh){0};
	TEST_ASSERT_EQUAL_INT(-1, init_from(&grh, 1));
	TEST_ASSERT_EQUAL_INT(EPROTONOSUPPORT, errno);
	expect_reason(
		VB_WHY_WC_GRH_VERSION,
		"init_ah_from_wc: the GRH holds neither an IPv6 header in its 40 bytes nor an "
		"IPv4 header in its last 20; give the first 40 bytes of the receive's buffer");
	((uint8_t *)&grh)[20] = 0x45;
	((uint8_t *)&grh)[36] = 224;
	TEST_ASSERT_EQUAL_INT(-1, init_from(&grh, 1));
	TEST_ASSERT_EQUAL_HEX(VB_WHY_WC_GRH_MULTICAST, B.last_why()->reason);
}

/* --- making and changing CQs --- */

static struct ibv_cq_ex *make_cq(struct ibv_cq_init_attr_ex attr)
{
	attr.cqe = 4;
	return B.create_cq_ex(a.context, &attr);
}

void test_mistakes_of_create_cq(void)
{
	expect_null(EINVAL, B.create_cq(a.context, 0, NULL, NULL, 0));
	expect_reason(VB_WHY_CQ_SIZE,
		      "create_cq: 0 entries do not make a CQ; the device's CQs have 1 to 1048576; "
		      "give max_cqe of ibv_query_device() at most");
	expect_null(EINVAL, make_cq((struct ibv_cq_init_attr_ex){.comp_vector = 1000}));
	expect_reason(VB_WHY_CQ_VECTOR,
		      "create_cq: comp_vector 1000 does not exist; the context has %d vector%s, "
		      "from 0; give a number below num_comp_vectors of the ibv_context",
		      a.context->num_comp_vectors, a.context->num_comp_vectors == 1 ? "" : "s");
	expect_null(EINVAL, make_cq((struct ibv_cq_init_attr_ex){
				    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = a.pd}));
	expect_reason(
		VB_WHY_CQ_PARENT,
		"create_cq: parent_domain is PD %u, which is no parent domain; give a PD of "
		"ibv_alloc_parent_domain(), or remove IBV_CQ_INIT_ATTR_MASK_PD from comp_mask",
		a.pd->handle);
	expect_null(EINVAL, make_cq((struct ibv_cq_init_attr_ex){
				    .channel = B.create_comp_channel(b.context)}));
	expect_reason(
		VB_WHY_OBJECT_FOREIGN,
		"create_cq: the channel belongs to another ibv_context than the other objects "
		"of the call; make all objects that work together in one ibv_context");
}

void test_mistakes_of_create_cq_ex(void)
{
	const uint64_t flow_tag = IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_BYTE_LEN;
	const uint64_t stamp = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;

	expect_null(EINVAL, make_cq((struct ibv_cq_init_attr_ex){.comp_mask = 0x40}));
	expect_reason(VB_WHY_COMP_MASK,
		      "create_cq_ex: comp_mask has the unknown bits 0x40; set only the bits of the "
		      "structure's enum in <infiniband/verbs.h>");
	expect_null(EOPNOTSUPP, make_cq((struct ibv_cq_init_attr_ex){.wc_flags = flow_tag}));
	expect_reason(VB_WHY_CQ_WC_FLAGS,
		      "create_cq_ex: the device's completions do not have IBV_WC_EX_WITH_FLOW_TAG "
		      "of wc_flags; remove these flags");
	expect_null(EOPNOTSUPP, make_cq((struct ibv_cq_init_attr_ex){
					.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 0x18}));
	expect_reason(
		VB_WHY_CQ_FLAGS,
		"create_cq_ex: flags has the bits 0x18, which no CQ knows; give flags of enum "
		"ibv_create_cq_attr_flags");
	TEST_ASSERT_NOT_NULL(make_cq((struct ibv_cq_init_attr_ex){.wc_flags = stamp}));
	open_profile("rxe-6.1");
	expect_null(EOPNOTSUPP, make_cq((struct ibv_cq_init_attr_ex){.wc_flags = stamp}));
	expect_reason(VB_WHY_CQ_WC_FLAGS,
		      "create_cq_ex: the device's completions do not have "
		      "IBV_WC_EX_WITH_COMPLETION_TIMESTAMP of wc_flags; remove these flags");
	expect_null(EOPNOTSUPP, make_cq((struct ibv_cq_init_attr_ex){
					.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN}));
	expect_reason(
		VB_WHY_CQ_OVERRUN_LACKING,
		"create_cq_ex: flags has IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN, and the device's "
		"CQs always report an overrun; remove the flag, and make the CQ large enough");
}

void test_mistakes_of_modify_cq(void)
{
	struct ibv_modify_cq_attr attr = {0};

	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_cq(a.cq, &attr));
	expect_reason(VB_WHY_CQ_MODIFY_NOTHING,
		      "modify_cq: attr_mask is 0, so there is nothing to change; set attr_mask to "
		      "IBV_CQ_ATTR_MODERATE");
	attr.attr_mask = 0x10 | IBV_CQ_ATTR_MODERATE;
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, B.modify_cq(a.cq, &attr));
	expect_reason(VB_WHY_CQ_MODIFY_MASK,
		      "modify_cq: attr_mask has the unknown bits 0x10; set attr_mask to "
		      "IBV_CQ_ATTR_MODERATE");
}

void test_a_busy_cq_names_its_queues(void)
{
	struct ibv_xrcd *xrcd =
		open_domain(IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, -1, O_CREAT);
	struct ibv_srq *srq = make_xrc_srq(xrcd);
	struct ibv_qp *first = make_qp(IBV_QPT_RC), *second;
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	attr.recv_cq = B.create_cq(a.context, 4, NULL, NULL, 0);
	second = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_cq(a.cq));
	expect_reason(
		VB_WHY_CQ_BUSY,
		"destroy_cq: CQ %u is still used by 2 QPs (first: number 0x%x), 1 SRQ (handle "
		"%u); destroy the QPs and SRQs first",
		a.cq->handle, first->qp_num, srq->handle);
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_cq(attr.recv_cq));
	expect_reason(VB_WHY_CQ_BUSY,
		      "destroy_cq: CQ %u is still used by 1 QP (number 0x%x); destroy the QPs and "
		      "SRQs first",
		      attr.recv_cq->handle, second->qp_num);
}

/* --- channels and events --- */

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq; /* of the channel */

static void make_channel(void)
{
	channel = B.create_comp_channel(a.context);
	cq = B.create_cq(a.context, 4, NULL, channel, 0);
	TEST_ASSERT_NOT_NULL(cq);
}

static int get_event(void)
{
	struct ibv_cq *from;
	void *user;

	return B.get_cq_event(channel, &from, &user);
}

void test_no_descriptor_is_free(void)
{
	static char big[1 << 20];

	descriptor_error = EMFILE;
	expect_null(EMFILE, B.create_comp_channel(a.context));
	expect_reason(VB_WHY_PROCESS_DESCRIPTORS,
		      "create_comp_channel: the process has no free file descriptor for a "
		      "completion channel; close descriptors, or raise the limit of the process "
		      "(ulimit -n)");
	descriptor_error = ENFILE;
	expect_null(ENFILE, B.create_comp_channel(a.context));
	expect_reason(
		VB_WHY_SYSTEM_DESCRIPTORS,
		"create_comp_channel: the system has no free file descriptor for a completion "
		"channel; close descriptors, or raise the limit of the system "
		"(/proc/sys/fs/file-max)");
	expect_null(ENFILE, B.reg_mr(a.pd, big, sizeof(big), 0));
	expect_reason(VB_WHY_SYSTEM_DESCRIPTORS,
		      "reg_mr: the system has no free file descriptor to read /proc/self/maps; "
		      "close descriptors, or raise the limit of the system "
		      "(/proc/sys/fs/file-max)");
	descriptor_error = ENODEV;
	expect_null(ENODEV, B.create_comp_channel(a.context));
	expect_reason(
		VB_WHY_SYSTEM_CALL,
		"create_comp_channel: making a file descriptor for a completion channel failed "
		"with ENODEV (No such device); look up the errno in the manual page of the "
		"call, which says what the system lacks");
	descriptor_error = ENOMEM;
	expect_null(ENOMEM, B.create_comp_channel(a.context));
	expect_reason(VB_WHY_NO_MEMORY,
		      "create_comp_channel: the process has no memory left; free memory, or raise "
		      "the limit of the process (ulimit -v)");
	descriptor_error = 0;
}

void test_a_busy_channel_names_its_cqs(void)
{
	make_channel();
	TEST_ASSERT_NOT_NULL(B.create_cq(a.context, 4, NULL, channel, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, B.destroy_comp_channel(channel));
	expect_reason(VB_WHY_CHANNEL_BUSY,
		      "destroy_comp_channel: the channel of fd %d is still used by 2 CQs (first: "
		      "handle %u); destroy the CQs first",
		      channel->fd, cq->handle);
}

void test_waits_that_nothing_can_end(void)
{
	struct ibv_async_event event;

	make_channel();
	TEST_ASSERT_EQUAL_INT(0, B.req_notify_cq(cq, 1));
	TEST_ASSERT_EQUAL_INT(-1, get_event());
	TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
	expect_reason(VB_WHY_CHANNEL_SILENT,
		      "get_cq_event: no event can come to the channel of fd %d: CQ %u (armed for "
		      "solicited, 0 completions in it); no timer or packet is due; call "
		      "ibv_req_notify_cq() before the work that completes, and post that work "
		      "before the wait",
		      channel->fd, cq->handle);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(-1, get_event());
	expect_reason(VB_WHY_CHANNEL_SILENT,
		      "get_cq_event: no event can come to the channel of fd %d: no CQ uses it; no "
		      "timer or packet is due; call ibv_req_notify_cq() before the work that "
		      "completes, and post that work before the wait",
		      channel->fd);
	TEST_ASSERT_EQUAL_INT(-1, B.get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
	expect_reason(VB_WHY_ASYNC_SILENT,
		      "get_async_event: no asynchronous event is queued, and none can come: no "
		      "timer or packet is due; look for events without waiting: set O_NONBLOCK on "
		      "async_fd");
}

void test_a_descriptor_that_does_not_block(void)
{
	struct ibv_async_event event;

	make_channel();
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	TEST_ASSERT_EQUAL_INT(-1, get_event());
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	expect_reason(
		VB_WHY_NO_EVENT,
		"get_cq_event: no event is queued, and fd %d has O_NONBLOCK; wait with poll(2) "
		"until fd %d is readable",
		channel->fd, channel->fd);
	fcntl(a.context->async_fd, F_SETFL, O_NONBLOCK);
	TEST_ASSERT_EQUAL_INT(-1, B.get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	expect_reason(VB_WHY_NO_EVENT,
		      "get_async_event: no event is queued, and fd %d has O_NONBLOCK; wait with "
		      "poll(2) until fd %d is readable",
		      a.context->async_fd, a.context->async_fd);
}

/* Reads a completion event and an asynchronous event of the CQ: it overruns. */
static void read_events(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);
	struct ibv_async_event event;
	struct ibv_qp *qp;

	attr.recv_cq = cq;
	attr.cap.max_recv_wr = 8;
	qp = B.create_qp_ex(a.context, &attr);
	connect_qp(qp, &b, 1);
	for (int i = 0; i < 8; i++) {
		struct ibv_recv_wr wr = {0}, *bad;

		TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &wr, &bad));
	}
	TEST_ASSERT_EQUAL_INT(0, B.req_notify_cq(cq, 0));
	TEST_ASSERT_EQUAL_INT(
		0, B.modify_qp(qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, get_event());
	TEST_ASSERT_EQUAL_INT(0, B.get_async_event(a.context, &event));
	TEST_ASSERT_EQUAL_INT(IBV_EVENT_CQ_ERR, event.event_type);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(qp));
}

void test_events_that_wait_to_be_acknowledged(void)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};

	make_channel();
	read_events();
	TEST_ASSERT_EQUAL_INT(EDEADLK, B.destroy_cq(cq));
	expect_reason(VB_WHY_CQ_EVENTS,
		      "destroy_cq: CQ %u has 1 completion event and 1 asynchronous event that were "
		      "read and not acknowledged, and no other thread can acknowledge them; call "
		      "ibv_ack_cq_events() and ibv_ack_async_event() for each event before "
		      "ibv_destroy_cq()",
		      cq->handle);
	B.ack_cq_events(cq, 1);
	event.element.cq = cq;
	B.ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_cq(cq));
	/* void verbs leave a sentence, too. */
	B.ack_cq_events(cq, 1);
	expect_reason(VB_WHY_OBJECT_GONE,
		      "ack_cq_events: the CQ of handle %u is not live: the program has destroyed "
		      "it, or gives a copy of its structure; give the pointer that the verb "
		      "returned which made the CQ, and only until the CQ is destroyed",
		      cq->handle);
	B.ack_async_event(&event);
	expect_reason(VB_WHY_OBJECT_GONE,
		      "ack_async_event: the CQ of handle %u is not live: the program has destroyed "
		      "it, or gives a copy of its structure; give the pointer that the verb "
		      "returned which made the CQ, and only until the CQ is destroyed",
		      cq->handle);
}

/* --- waits on the real clock --- */

static void open_real(void)
{
	const struct vb_sim_config real = {
		.device_count = 1, .devices = {{.name = "sim0"}}, .clock = VB_SIM_CLOCK_REAL};

	open_alone(&real);
	make_channel();
}

struct waiter {
	pthread_t thread;
	_Atomic bool done;
	int err;
	enum vb_reason reason;
	char sentence[256];
};

static void *wait_there(void *arg)
{
	struct waiter *waiter = arg;

	waiter->err = get_event() < 0 ? errno : 0;
	waiter->reason = B.last_why()->reason;
	vb_why_text(B.last_why(), waiter->sentence, sizeof(waiter->sentence));
	waiter->done = true;
	return NULL;
}

static void start_waiting(struct waiter *waiter)
{
	struct driver *driver = &vb_sim_of(a.context)->driver;
	bool asleep = false;

	TEST_ASSERT_EQUAL_INT(0, pthread_create(&waiter->thread, NULL, wait_there, waiter));
	while (!asleep) {
		sched_yield();
		pthread_mutex_lock(&driver->mutex);
		asleep = driver->asleep;
		pthread_mutex_unlock(&driver->mutex);
	}
}

static void ignore(int number)
{
	(void)number;
}

void test_a_signal_ends_a_wait(void)
{
	const struct sigaction action = {.sa_handler = ignore};
	struct waiter waiter = {0};
	struct sigaction old;
	char expected[256];

	open_real();
	sigaction(SIGUSR1, &action, &old);
	start_waiting(&waiter);
	/* The first signal may come before the thread is in read(2). */
	while (!waiter.done) {
		pthread_kill(waiter.thread, SIGUSR1);
		sched_yield();
	}
	TEST_ASSERT_EQUAL_INT(0, pthread_join(waiter.thread, NULL));
	sigaction(SIGUSR1, &old, NULL);
	TEST_ASSERT_EQUAL_INT(EINTR, waiter.err);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_EVENT_INTERRUPTED, waiter.reason);
	snprintf(expected, sizeof(expected),
		 "get_cq_event: a signal ended the wait for an event of fd %d; call the verb again",
		 channel->fd);
	TEST_ASSERT_EQUAL_STRING(expected, waiter.sentence);
}

void test_the_end_of_the_world_ends_a_wait(void)
{
	struct waiter waiter = {0};

	open_real();
	start_waiting(&waiter);
	vb_sim_reset();
	a.context = NULL;
	TEST_ASSERT_EQUAL_INT(0, pthread_join(waiter.thread, NULL));
	TEST_ASSERT_EQUAL_INT(ENODEV, waiter.err);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_WORLD_ENDED, waiter.reason);
	TEST_ASSERT_EQUAL_STRING("get_cq_event: the simulated world ended while the call waited; "
				 "join the threads that wait before vb_sim_close() or "
				 "vb_sim_reset()",
				 waiter.sentence);
}

void test_a_closed_descriptor(void)
{
	int kept;

	open_real();
	kept = dup(channel->fd);
	close(channel->fd);
	TEST_ASSERT_EQUAL_INT(-1, get_event());
	TEST_ASSERT_EQUAL_INT(EBADF, errno);
	expect_reason(VB_WHY_EVENT_DESCRIPTOR,
		      "get_cq_event: fd %d is closed; leave the descriptor to the verb that "
		      "destroys its channel or closes its device",
		      channel->fd);
	dup2(kept, channel->fd);
	close(kept);
}
