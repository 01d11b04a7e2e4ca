/* SPDX-License-Identifier: MIT */
/* Connections in the log: the calls of the connection manager, and its events. */
#include "src/layer/layer.h"
#include "test/unit/three_ids.h"
#include "test/unit/written_log.h"

#include <errno.h>
#include <stdarg.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

/* Objects are counted over all tests of the process. */
static char channel_name[32], listener_name[32], server_name[32], client_name[32];

static struct rdma_cm_id *new_id(char name[32])
{
	struct rdma_cm_id *id = NULL;

	TEST_ASSERT_EQUAL_INT(0, vb_cm_create_id("sim", channel, &id, NULL, RDMA_PS_TCP));
	layer_object_name(id, name, sizeof(client_name));
	return id;
}

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	begin_log();
	channel = vb_cm_create_event_channel("sim");
	TEST_ASSERT_NOT_NULL(channel);
	layer_object_name(channel, channel_name, sizeof(channel_name));
	listener = new_id(listener_name);
	client = new_id(client_name);
	server = NULL;
}

void tearDown(void)
{
	vb_fault_clear(NULL);
	end_ids();
	end_log();
	vb_sim_reset();
}

/* --- the program --- */

/* Takes and acknowledges an event. */
static void expect_event(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	TEST_ASSERT_EQUAL_INT(0, vb_cm_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_STRING(vb_cm_event_str(type), vb_cm_event_str(event->event));
	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		server = event->id;
		layer_object_name(server, server_name, sizeof(server_name));
	}
	TEST_ASSERT_EQUAL_INT(0, vb_cm_ack_cm_event(event));
}

static void listen_at_port(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_cm_bind_addr(listener, address("0.0.0.0")));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_listen(listener, 3));
}

static void resolve(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_cm_resolve_addr(client, NULL, address("127.0.0.1"), 1000));
	expect_event(RDMA_CM_EVENT_ADDR_RESOLVED);
	TEST_ASSERT_EQUAL_INT(0, vb_cm_resolve_route(client, 1000));
	expect_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void request(void)
{
	struct rdma_conn_param param = {.private_data = "hello",
					.private_data_len = 6,
					.responder_resources = 1,
					.retry_count = 2};

	TEST_ASSERT_EQUAL_INT(0, vb_cm_connect(client, &param));
}

/* --- the log --- */

/* Returns the first event of that name: a verb, or an event of the connection manager. */
static json_t *find(const char *name)
{
	for (unsigned int i = 0; i < event_count; i++) {
		const char *verb = json_string_value(json_object_get(events[i], "verb"));
		const char *event = json_string_value(json_object_get(events[i], "event"));

		if ((verb && !strcmp(verb, name)) || (event && !strcmp(event, name)))
			return events[i];
	}
	return NULL;
}

static unsigned int count(const char *verb)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < event_count; i++) {
		const char *name = json_string_value(json_object_get(events[i], "verb"));

		found += name && !strcmp(name, verb);
	}
	return found;
}

__attribute__((format(printf, 3, 4))) static void expect(const char *name, const char *member,
							 const char *format, ...)
{
	char *text = member_text(find(name), member);
	char expected[512];
	va_list values;

	TEST_ASSERT_NOT_NULL_MESSAGE(find(name), name);
	va_start(values, format);
	vsnprintf(expected, sizeof(expected), format, values);
	va_end(values);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, text, name);
	free(text);
}

static void expect_why(const char *name, const char *reason, const char *sentence)
{
	const json_t *why = json_object_get(find(name), "why");

	TEST_ASSERT_NOT_NULL_MESSAGE(why, name);
	TEST_ASSERT_EQUAL_STRING(reason, json_string_value(json_object_get(why, "name")));
	TEST_ASSERT_EQUAL_STRING(sentence, json_string_value(json_object_get(why, "text")));
}

/* --- tests --- */

void test_a_connection_from_the_channel_to_the_end(void)
{
	uint32_t qpn;

	listen_at_port();
	resolve();
	make_qp(client);
	qpn = client->qp->qp_num;
	request();
	expect_event(RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(server);
	TEST_ASSERT_EQUAL_INT(0, vb_cm_accept(server, NULL));
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	expect_event(RDMA_CM_EVENT_ESTABLISHED);
	TEST_ASSERT_EQUAL_INT(0, vb_cm_disconnect(client));
	expect_event(RDMA_CM_EVENT_DISCONNECTED);
	vb_cm_destroy_qp(client);
	vb_cm_destroy_qp(server);
	read_log();

	expect("cm_create_event_channel", "result", "\"%s\"", channel_name);
	expect("cm_create_id", "args", "{\"channel\":\"%s\",\"id\":\"%s\",\"ps\":\"RDMA_PS_TCP\"}",
	       channel_name, listener_name);
	expect("cm_bind_addr", "args", "{\"id\":\"%s\",\"addr\":\"0.0.0.0 7471\"}", listener_name);
	expect("cm_listen", "args", "{\"id\":\"%s\",\"backlog\":3}", listener_name);
	expect("cm_listen", "result", "0");
	expect("cm_resolve_addr", "args",
	       "{\"id\":\"%s\",\"src_addr\":null,\"dst_addr\":\"127.0.0.1 "
	       "7471\",\"timeout_ms\":1000}",
	       client_name);
	expect("RDMA_CM_EVENT_ADDR_RESOLVED", "device", "\"sim0\"");
	expect("RDMA_CM_EVENT_ADDR_RESOLVED", "private_bytes", "absent");
	expect("cm_resolve_route", "device", "\"sim0\"");
	expect("cm_create_qp", "qp", "\"0x%x\"", qpn);
	expect("cm_connect", "args",
	       "{\"id\":\"%s\",\"conn_param\":{\"private_data_len\":6,\"responder_resources\":1,"
	       "\"initiator_depth\":0,\"flow_control\":0,\"retry_count\":2,\"rnr_retry_count\":0,"
	       "\"srq\":0,\"qp_num\":0}}",
	       client_name);
	expect("RDMA_CM_EVENT_CONNECT_REQUEST", "id", "\"%s\"", server_name);
	expect("RDMA_CM_EVENT_CONNECT_REQUEST", "listener", "\"%s\"", listener_name);
	expect("RDMA_CM_EVENT_CONNECT_REQUEST", "private_bytes", "56");
	expect("cm_accept", "args", "{\"id\":\"%s\",\"conn_param\":null}", server_name);
	expect("RDMA_CM_EVENT_ESTABLISHED", "status", "0");
	expect("RDMA_CM_EVENT_ESTABLISHED", "listener", "absent");
	expect("RDMA_CM_EVENT_ESTABLISHED", "why", "absent");
	expect("cm_disconnect", "args", "{\"id\":\"%s\"}", client_name);
	expect("RDMA_CM_EVENT_DISCONNECTED", "why", "absent");
	expect("cm_destroy_qp", "result", "absent");
	TEST_ASSERT_NULL(find("cm_get_cm_event"));
}

/* The verbs of a context that the connection manager has opened are in the log. */
void test_verbs_of_an_identifiers_device(void)
{
	struct ibv_wc wc[2];
	struct ibv_recv_wr recv = {.wr_id = 5}, *bad;
	uint32_t qpn;

	resolve();
	make_qp(client);
	qpn = client->qp->qp_num;
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(client->qp, &recv, &bad));
	TEST_ASSERT_EQUAL_INT(0, vb_modify_qp(client->qp,
					      &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
					      IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(client->recv_cq, 2, wc));
	vb_cm_destroy_qp(client);
	read_log();
	expect("post_recv", "device", "\"sim0\"");
	expect("post_recv", "qp", "\"0x%x\"", qpn);
	expect("modify_qp", "qp", "\"0x%x\"", qpn);
}

/* vb_sim_reset() ends contexts without a verb. */
void test_verbs_of_a_device_after_a_reset(void)
{
	for (unsigned int i = 0; i < 3; i++) {
		struct ibv_recv_wr recv = {.wr_id = 5}, *bad;

		resolve();
		make_qp(client);
		TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(client->qp, &recv, &bad));
		vb_cm_destroy_qp(client);
		end_ids();
		vb_sim_reset();
		channel = vb_cm_create_event_channel("sim");
		listener = new_id(listener_name);
		client = new_id(client_name);
	}
	read_log();
	TEST_ASSERT_EQUAL_UINT(3, count("post_recv"));
}

void test_objects_of_an_identifier_end_with_it(void)
{
	const void *qp, *cq, *context;
	char name[32];

	resolve();
	context = client->verbs;
	make_qp(client);
	qp = client->qp;
	cq = client->recv_cq;
	TEST_ASSERT_NOT_EQUAL('\0', layer_object_name(qp, name, sizeof(name))[0]);
	TEST_ASSERT_NOT_EQUAL('\0', layer_object_name(cq, name, sizeof(name))[0]);
	vb_cm_destroy_qp(client);
	TEST_ASSERT_EQUAL_STRING("", layer_object_name(qp, name, sizeof(name)));
	TEST_ASSERT_EQUAL_STRING("", layer_object_name(cq, name, sizeof(name)));
	TEST_ASSERT_NOT_EQUAL('\0', layer_object_name(client, name, sizeof(name))[0]);
	qp = client;
	end_id(&client);
	TEST_ASSERT_EQUAL_STRING("", layer_object_name(qp, name, sizeof(name)));
	TEST_ASSERT_NOT_EQUAL('\0', layer_object_name(context, name, sizeof(name))[0]);
}

void test_a_call_that_fails(void)
{
	struct rdma_cm_event *event;

	TEST_ASSERT_EQUAL_INT(-1, vb_cm_connect(client, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_listen((struct rdma_cm_id *)(uintptr_t)8, 1));
	read_log();
	expect("cm_connect", "result", "-1");
	expect("cm_connect", "errno", "\"EINVAL\"");
	expect_why("cm_connect", "CM_ID_STATE",
		   "connect: the identifier is in the state IDLE, and connect needs "
		   "ROUTE_RESOLVED; wait for the event of the call "
		   "before, and follow the order of calls of rdma_cm(7)");
	expect("cm_get_cm_event", "errno", "\"EDEADLK\"");
	expect("cm_listen", "args", "{\"id\":\"0x8\",\"backlog\":1}");
	expect("cm_listen", "errno", "\"EINVAL\"");
}

void test_a_peer_that_does_not_listen(void)
{
	resolve();
	make_qp(client);
	request();
	expect_event(RDMA_CM_EVENT_REJECTED);
	vb_cm_destroy_qp(client);
	read_log();
	expect("RDMA_CM_EVENT_REJECTED", "status", "8");
	expect("RDMA_CM_EVENT_REJECTED", "private_bytes", "148");
	expect_why("RDMA_CM_EVENT_REJECTED", "CM_EVENT_NO_SERVICE",
		   "no program of the peer listens at this address and port (reason 8 of the REJ, "
		   "invalid service ID); start the program that listens first, in the same world, "
		   "and check its address, its port and its port space");
}

void test_a_peer_that_does_not_answer(void)
{
	listen_at_port();
	resolve();
	make_qp(client);
	TEST_ASSERT_EQUAL_INT(
		0, vb_fault_add(NULL, &(struct vb_fault_rule){.action = VB_FAULT_DROP}, NULL));
	request();
	expect_event(RDMA_CM_EVENT_UNREACHABLE);
	vb_cm_destroy_qp(client);
	read_log();
	expect("RDMA_CM_EVENT_UNREACHABLE", "status", "-%d", ETIMEDOUT);
	expect_why(
		"RDMA_CM_EVENT_UNREACHABLE", "CM_EVENT_SILENT",
		"the connection manager of the peer does not answer: ETIMEDOUT (Connection timed "
		"out); check the address, that the host of the peer is up, and that its program "
		"has not ended meanwhile");
}

/* --- a backend that frees identifiers at once --- */

static struct rdma_event_channel *make_channel(void)
{
	return calloc(1, sizeof(struct rdma_event_channel));
}

static void free_channel(struct rdma_event_channel *freed)
{
	free(freed);
}

static int make_id(struct rdma_event_channel *of, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	*id = calloc(1, sizeof(**id));
	(*id)->channel = of;
	return 0;
}

static int free_id(struct rdma_cm_id *id)
{
	memset(id, 0xaa, sizeof(*id));
	free(id);
	return 0;
}

static const struct vb_cm_backend freeing_cm = {
	.create_event_channel = make_channel,
	.destroy_event_channel = free_channel,
	.create_id = make_id,
	.destroy_id = free_id,
};

static const struct vb_backend freeing = {
	.name = "freeing",
	.description = "frees what it has made",
	.cm = &freeing_cm,
};

void test_an_identifier_that_has_ended_is_not_read(void)
{
	struct rdma_event_channel *own;
	struct rdma_cm_id *id;

	TEST_ASSERT_EQUAL_INT(0, vb_backend_add(&freeing));
	own = vb_cm_create_event_channel("freeing");
	TEST_ASSERT_EQUAL_INT(0, vb_cm_create_id("freeing", own, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_destroy_id(id));
	vb_cm_destroy_event_channel(own);
	read_log();
	expect("cm_destroy_id", "result", "0");
	expect("cm_destroy_id", "qp", "absent");
}
