/* SPDX-License-Identifier: MIT */
/* What the log says of verbs and completions that test/log/pingpong.c does not call. */
#include "src/layer/layer.h"
#include "test/unit/written_log.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

static char buffer[4096];
static struct ibv_context *context;
static struct ibv_pd *pd;

void setUp(void)
{
	struct ibv_device **list;

	begin_log();
	list = vb_get_device_list("sim", NULL);
	context = vb_open_device(list[0]);
	vb_free_device_list(list);
	pd = vb_alloc_pd(context);
	TEST_ASSERT_NOT_NULL(pd);
}

void tearDown(void)
{
	end_log();
	vb_sim_reset();
}

/* Returns event number @which, from 0, of a kind, or of the verb of that name. */
static json_t *find(const char *word, unsigned int which)
{
	for (unsigned int i = 0; i < event_count; i++) {
		const char *kind = json_string_value(json_object_get(events[i], "kind"));
		const char *verb = json_string_value(json_object_get(events[i], "verb"));

		if (strcmp(verb ? verb : kind, word) == 0 && !which--)
			return events[i];
	}
	return NULL;
}

/* Objects are counted over all tests of the process. Returns the name as JSON. */
static const char *named(const void *object)
{
	static char names[4][40];
	static unsigned int next;
	char *text = names[next++ % 4], name[32];

	snprintf(text, sizeof(names[0]), "\"%s\"", layer_object_name(object, name, sizeof(name)));
	return text;
}

static void expect(const char *word, unsigned int which, const char *member, const char *expected)
{
	const json_t *event = find(word, which);
	char *text = member_text(event, member);

	TEST_ASSERT_NOT_NULL_MESSAGE(event, word);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, text, word);
	free(text);
}

static struct ibv_qp *create_qp(enum ibv_qp_type type, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = type,
	};
	struct ibv_qp *qp = vb_create_qp(pd, &init);

	TEST_ASSERT_NOT_NULL(qp);
	return qp;
}

/* Takes a UD QP to RTS. */
static void ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x1234};

	TEST_ASSERT_EQUAL_INT(
		0, vb_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
}

static struct ibv_ah *create_ah(void)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 3}};

	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 0, &attr.grh.dgid));
	return vb_create_ah(pd, &attr);
}

void test_polls_that_find_nothing_are_not_logged(void)
{
	struct ibv_cq *cq = vb_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_wc wc;

	for (unsigned int i = 0; i < 10; i++)
		TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(cq, 1, &wc));
	read_log();
	TEST_ASSERT_NULL(find("poll_cq", 0));
	TEST_ASSERT_NULL(find("completion", 0));
}

void test_sizes_and_keys_of_regions_and_windows(void)
{
	struct ibv_mr *mr =
		vb_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = vb_alloc_mw(pd, IBV_MW_TYPE_2);
	char rkey[32], args[256], region[40], window[40];

	TEST_ASSERT_TRUE(mr && mw);
	snprintf(rkey, sizeof(rkey), "\"0x%x\"", mw->rkey);
	snprintf(args, sizeof(args),
		 "{\"pd\":%s,\"addr\":\"0x0\",\"length\":\"0xffffffffffffffff\","
		 "\"access\":[\"IBV_ACCESS_LOCAL_WRITE\",\"IBV_ACCESS_ON_DEMAND\"]}",
		 named(pd));
	strcpy(region, named(mr));
	strcpy(window, named(mw));
	read_log();
	expect("reg_mr", 0, "args", args);
	expect("reg_mr", 0, "result", region);
	expect("alloc_mw", 0, "result", window);
	expect("alloc_mw", 0, "rkey", rkey);
	expect("alloc_mw", 0, "lkey", "absent");
	expect("alloc_pd", 0, "rkey", "absent");
}

/* A verb that has failed has no result, and what it would have filled in is not there. */
void test_failures_in_each_convention(void)
{
	struct ibv_mr *mr = vb_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_REMOTE_WRITE);
	union ibv_gid gid;
	struct ibv_port_attr port;
	char text[] = "no GID";

	TEST_ASSERT_NULL(mr);
	memcpy(gid.raw, text, sizeof(text));
	TEST_ASSERT_EQUAL_INT(-1, vb_query_gid(context, 1, 4711, &gid));
	TEST_ASSERT_TRUE(vb_query_port(context, 9, &port, sizeof(port)) != 0);
	TEST_ASSERT_NOT_NULL(vb_reg_mr(pd, buffer, 8, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_dealloc_pd(pd));
	read_log();
	expect("reg_mr", 0, "result", "null");
	expect("reg_mr", 0, "errno", "\"EINVAL\"");
	expect("query_gid", 0, "args", "{\"context\":\"sim0\",\"port_num\":1,\"index\":4711}");
	expect("query_gid", 0, "result", "-1");
	expect("query_port", 0, "errno", "\"EINVAL\"");
	expect("query_port", 0, "args", "{\"context\":\"sim0\",\"port_num\":9}");
	expect("dealloc_pd", 0, "result", "16");
	expect("dealloc_pd", 0, "errno", "\"EBUSY\"");
}

/* Of two requests the second is wrong: the list ends there, and its SGEs are not read. */
void test_a_list_of_requests_ends_at_the_bad_one(void)
{
	struct ibv_cq *cq = vb_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_qp *qp = create_qp(IBV_QPT_UD, cq);
	struct ibv_mr *mr = vb_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sges[2] = {{(uintptr_t)buffer, 100, mr->lkey},
				  {(uintptr_t)buffer + 200, 28, mr->lkey}};
	struct ibv_recv_wr never = {.wr_id = 3}, *bad;
	/* The SGEs of the second are at an address that cannot be read. */
	struct ibv_recv_wr second = {
		.wr_id = 2, .next = &never, .sg_list = (void *)16, .num_sge = 1000};
	struct ibv_recv_wr first = {.wr_id = 1, .next = &second, .sg_list = sges, .num_sge = 2};
	char expected[256];

	ready(qp);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_post_recv(qp, &first, &bad));
	TEST_ASSERT_EQUAL_PTR(&second, bad);
	read_log();
	expect("post_recv", 0, "errno", "\"EINVAL\"");
	snprintf(expected, sizeof(expected),
		 "{\"qp\":\"qp 0x%x\",\"wr\":[{\"wr_id\":\"0x1\",\"num_sge\":2,\"length\":128},"
		 "{\"wr_id\":\"0x2\",\"num_sge\":1000}],\"bad_wr\":\"0x2\"}",
		 qp->qp_num);
	expect("post_recv", 0, "args", expected);
}

void test_a_list_of_sends_ends_at_the_bad_one(void)
{
	struct ibv_cq *cq = vb_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_qp *qp = create_qp(IBV_QPT_UD, cq);
	struct ibv_ah *ah = create_ah();
	struct ibv_send_wr never = {.wr_id = 3}, *bad;
	struct ibv_send_wr second = {.wr_id = 2,
				     .next = &never,
				     .sg_list = (void *)16,
				     .num_sge = 1000,
				     .opcode = IBV_WR_SEND,
				     .wr.ud.ah = ah};
	struct ibv_send_wr first = {
		.wr_id = 1, .next = &second, .opcode = IBV_WR_SEND, .wr.ud.ah = ah};
	const json_t *wrs;

	ready(qp);
	TEST_ASSERT_TRUE(vb_post_send(qp, &first, &bad) != 0);
	TEST_ASSERT_EQUAL_PTR(&second, bad);
	read_log();
	expect("post_send", 0, "errno", "\"EINVAL\"");
	wrs = json_object_get(json_object_get(find("post_send", 0), "args"), "wr");
	TEST_ASSERT_EQUAL_UINT(2, json_array_size(wrs));
	TEST_ASSERT_NOT_NULL(json_object_get(json_array_get(wrs, 0), "length"));
	TEST_ASSERT_NULL(json_object_get(json_array_get(wrs, 1), "length"));
}

/* A list that is too long for a line ends in "...". */
void test_a_long_list_is_cut(void)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4000, .max_sge = 1}};
	struct ibv_srq *srq = vb_create_srq(pd, &init);
	struct ibv_recv_wr *list = calloc(4000, sizeof(*list)), *bad;
	char args[256];
	const json_t *written;

	TEST_ASSERT_TRUE(srq && list);
	snprintf(args, sizeof(args),
		 "{\"pd\":%s,\"srq_init_attr\":{\"attr\":{\"max_wr\":%u,\"max_sge\":%u}}}",
		 named(pd), init.attr.max_wr, init.attr.max_sge);
	for (unsigned int i = 0; i < 4000; i++) {
		list[i].wr_id = i;
		list[i].next = i < 3999 ? &list[i + 1] : NULL;
	}
	TEST_ASSERT_EQUAL_INT(0, vb_post_srq_recv(srq, list, &bad));
	free(list);
	read_log();
	written = json_object_get(json_object_get(find("post_srq_recv", 0), "args"), "recv_wr");
	TEST_ASSERT_TRUE(json_array_size(written) > 1000 && json_array_size(written) < 4000);
	TEST_ASSERT_EQUAL_STRING(
		"...", json_string_value(json_array_get(written, json_array_size(written) - 1)));
	expect("create_srq", 0, "args", args);
}

void test_a_datagram_and_its_completions(void)
{
	struct ibv_cq *cq = vb_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_qp *qp = create_qp(IBV_QPT_UD, cq);
	struct ibv_mr *mr = vb_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)buffer, 100, mr->lkey};
	struct ibv_recv_wr recv = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr *bad, send = {.wr_id = 6,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND_WITH_IMM,
					 .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
					 .imm_data = htobe32(0xcafe),
					 .wr.ud = {.ah = create_ah(),
						   .remote_qpn = qp->qp_num,
						   .remote_qkey = 0x1234}};
	struct ibv_wc wc[4];
	char expected[512], queue[40];
	int found = 0;

	ready(qp);
	sge.length = 60;
	recv.sg_list = &(struct ibv_sge){(uintptr_t)buffer + 1000, 200, mr->lkey};
	TEST_ASSERT_EQUAL_INT(0, vb_post_recv(qp, &recv, &bad_recv));
	TEST_ASSERT_EQUAL_INT(0, vb_post_send(qp, &send, &bad));
	while (found < 2)
		found += ibv_poll_cq(cq, 4, wc + found);
	strcpy(queue, named(cq));
	snprintf(expected, sizeof(expected),
		 "{\"qp\":\"qp 0x%x\",\"wr\":[{\"wr_id\":\"0x6\",\"opcode\":\"SEND_WITH_IMM\","
		 "\"send_flags\":[\"IBV_SEND_SIGNALED\",\"IBV_SEND_SOLICITED\"],\"num_sge\":1,"
		 "\"length\":60,\"imm\":\"0xcafe\",\"ah\":%s,\"remote_qpn\":\"0x%x\","
		 "\"remote_qkey\":\"0x1234\"}]}",
		 qp->qp_num, named(send.wr.ud.ah), qp->qp_num);
	read_log();
	expect("post_send", 0, "args", expected);
	for (unsigned int i = 0; i < 2; i++) {
		const bool is_receive = json_object_get(find("completion", i), "bytes") != NULL;

		expect("completion", i, "status", "\"IBV_WC_SUCCESS\"");
		expect("completion", i, "cq", queue);
		expect("completion", i, "wr_id", is_receive ? "\"0x5\"" : "\"0x6\"");
		expect("completion", i, "opcode", is_receive ? "\"RECV\"" : "\"SEND\"");
		expect("completion", i, "bytes", is_receive ? "100" : "absent");
		expect("completion", i, "imm", is_receive ? "\"0xcafe\"" : "absent");
		expect("completion", i, "flags",
		       is_receive ? "[\"IBV_WC_GRH\",\"IBV_WC_WITH_IMM\"]" : "absent");
	}
	TEST_ASSERT_NULL(find("completion", 2));
	TEST_ASSERT_NULL(find("poll_cq", 0));
}

/* Takes an RC QP of the own port to RTS. */
static void connect(struct ibv_qp *qp, uint32_t dest_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ};

	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr,
					      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						      IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_dest_rd_atomic = 4,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 3}},
	};
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid));
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr,
					      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						      IBV_QP_MAX_DEST_RD_ATOMIC |
						      IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 1, .max_rd_atomic = 4};
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(qp, &attr,
					      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
						      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
						      IBV_QP_MAX_QP_RD_ATOMIC));
}

static void post_read(struct ibv_qp *qp, const struct ibv_mr *mr, uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = {(uintptr_t)buffer, length, mr->lkey};
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_READ,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {(uintptr_t)buffer + 2048, mr->rkey}};
	struct ibv_send_wr *bad;

	TEST_ASSERT_EQUAL_INT(0, vb_post_send(qp, &wr, &bad));
}

/* One call takes two completions: each is an event with its own members. */
void test_completions_of_reads_have_their_bytes(void)
{
	struct ibv_cq *cq = vb_create_cq(context, 8, NULL, NULL, 0);
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, cq);
	struct ibv_mr *mr = vb_reg_mr(pd, buffer, sizeof(buffer),
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_wc wcs[2];

	connect(qp, qp->qp_num);
	post_read(qp, mr, 0x21, 100);
	post_read(qp, mr, 0x22, 200);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(2, vb_poll_cq(cq, 2, wcs));
	read_log();
	expect("completion", 0, "wr_id", "\"0x21\"");
	expect("completion", 0, "opcode", "\"RDMA_READ\"");
	expect("completion", 0, "bytes", "100");
	expect("completion", 1, "wr_id", "\"0x22\"");
	expect("completion", 1, "bytes", "200");
}

/* The verb waits until the send has no retry left, for 4096 ns * 2. */
void test_a_verb_that_waits_has_a_duration(void)
{
	struct ibv_comp_channel *channel = vb_create_comp_channel(context);
	struct ibv_cq *of, *cq = vb_create_cq(context, 8, NULL, channel, 0);
	struct ibv_qp *qp = create_qp(IBV_QPT_RC, cq);
	struct ibv_mr *mr = vb_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	void *arg;

	connect(qp, 0x999);
	TEST_ASSERT_EQUAL_INT(0, vb_req_notify_cq(cq, 0));
	post_read(qp, mr, 1, 8);
	TEST_ASSERT_EQUAL_INT(0, vb_get_cq_event(channel, &of, &arg));
	vb_ack_cq_events(cq, 1);
	read_log();
	expect("get_cq_event", 0, "duration_ns", "8192");
	TEST_ASSERT_EQUAL_INT(json_integer_value(json_object_get(find("post_send", 0), "t")) + 8192,
			      json_integer_value(json_object_get(find("get_cq_event", 0), "t")));
}

/* The name of a CQ is no handle: a handle is used again after a CQ is destroyed. */
void test_an_event_of_a_device_names_the_object_as_the_verbs_do(void)
{
	struct ibv_cq *cq = vb_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_send_wr *bad, send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
	struct ibv_qp *qp;
	struct ibv_wc wc;
	char expected[40];

	TEST_ASSERT_EQUAL_INT(0, vb_destroy_cq(cq));
	cq = vb_create_cq(context, 1, NULL, NULL, 0);
	qp = create_qp(IBV_QPT_UD, cq);
	ready(qp);
	send.wr.ud.ah = create_ah();
	send.wr.ud.remote_qpn = qp->qp_num;
	for (unsigned int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_post_send(qp, &send, &bad));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(1, vb_poll_cq(cq, 1, &wc));
	TEST_ASSERT_TRUE(vb_poll_cq(cq, 1, &wc) < 0);
	strcpy(expected, named(cq));
	read_log();
	expect("poll_cq", 0, "errno", "\"EIO\"");
	expect("async", 0, "event", "\"IBV_EVENT_CQ_ERR\"");
	expect("async", 0, "object", expected);
}

/* ibv_wr_* and ibv_start_poll(): the batch is one event, and each completion is one. */
void test_builders_and_extended_polls(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 8, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
	struct ibv_cq_ex *cq = vb_create_cq_ex(context, &cq_attr);
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(cq),
		.recv_cq = ibv_cq_ex_to_cq(cq),
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = vb_create_qp_ex(context, &attr);
	struct ibv_qp_ex *qpx = vb_qp_to_qp_ex(qp);
	struct ibv_mr *mr = vb_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_ah *ah = create_ah();
	struct ibv_poll_cq_attr poll = {0};
	char queue[40];
	const json_t *wr;
	unsigned int found = 0;

	ready(qp);
	ibv_wr_start(qpx);
	for (unsigned int i = 0; i < 3; i++) {
		qpx->wr_id = 70 + i;
		qpx->wr_flags = IBV_SEND_SIGNALED;
		ibv_wr_send(qpx);
		ibv_wr_set_ud_addr(qpx, ah, qp->qp_num, 0x1234);
		ibv_wr_set_sge(qpx, mr->lkey, (uintptr_t)buffer, 10 + i);
	}
	TEST_ASSERT_EQUAL_INT(0, ibv_wr_complete(qpx));
	while (found < 3) {
		if (ibv_start_poll(cq, &poll))
			continue;
		do
			found++;
		while (ibv_next_poll(cq) == 0);
		ibv_end_poll(cq);
	}
	strcpy(queue, named(cq));
	read_log();
	TEST_ASSERT_NULL(find("wr_start", 0));
	TEST_ASSERT_NULL(find("end_poll", 0));
	TEST_ASSERT_NULL(find("wr_complete", 1));
	wr = json_object_get(json_object_get(find("wr_complete", 0), "args"), "wr");
	TEST_ASSERT_EQUAL_UINT(3, json_array_size(wr));
	for (unsigned int i = 0; i < 3; i++) {
		char id[32];

		TEST_ASSERT_EQUAL_INT(10 + i, json_integer_value(json_object_get(
						      json_array_get(wr, i), "length")));
		snprintf(id, sizeof(id), "\"0x%x\"", 70 + i);
		expect("completion", i, "wr_id", id);
		expect("completion", i, "cq", queue);
	}
	TEST_ASSERT_NULL(find("completion", 3));
}
