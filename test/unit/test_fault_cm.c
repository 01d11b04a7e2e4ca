/* SPDX-License-Identifier: MIT */
/*
 * Fault rules that name messages of the connection manager: the events of both ends when a message is lost,
 * repeated, late, changed or rejected.
 */
#include "test/unit/three_ids.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define TALK_MAX 1024

static unsigned int established;
static const char *source_address, *server_address = "127.0.0.1";

/* The events of both ends: "s" for the server or "c" for the client stands before each event. */
static char seen[TALK_MAX];
static uint64_t established_ns; /* when the last end was established */
static int status;		/* of the last event with one */
static unsigned int rule_id;

/* At this event of the client or of the server, the way between them ends. */
static enum rdma_cm_event_type dies_at;
static bool dies_at_client;

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	channel = vb_cm_create_event_channel("sim");
	TEST_ASSERT_NOT_NULL(channel);
	listener = server = client = NULL;
	seen[0] = '\0';
	established = 0;
	established_ns = 0;
	dies_at = RDMA_CM_EVENT_DEVICE_REMOVAL;
	status = 0;
}

void tearDown(void)
{
	vb_fault_clear(NULL);
	end_ids();
	vb_sim_reset();
}

/* --- the two ends --- */

static void note(const struct rdma_cm_event *event)
{
	const size_t length = strlen(seen);
	const char *name = vb_cm_event_str(event->event) + strlen("RDMA_CM_EVENT_");

	snprintf(seen + length, sizeof(seen) - length, "%s%c %s", length ? ", " : "",
		 event->id == client ? 'c' : 's', name);
	if (event->status)
		status = event->status;
}

/* The server accepts; the client ends the connection, and the server answers that. */
static void react(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		end_id(&server);
		server = event->id;
		make_qp(server);
		TEST_ASSERT_EQUAL_INT(
			0, vb_cm_accept(server, &(struct rdma_conn_param){.rnr_retry_count = 7}));
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established_ns = vb_sim_now_ns(NULL);
		if (++established == 2)
			TEST_ASSERT_EQUAL_INT(0, vb_cm_disconnect(client));
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (event->id == server)
			TEST_ASSERT_EQUAL_INT(0, vb_cm_disconnect(server));
		break;
	default:
		break;
	}
}

static void add(struct vb_fault_rule rule)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_fault_add(NULL, &rule, &rule_id), rule.message);
}

static bool take(void)
{
	struct rdma_cm_event *event = NULL;
	bool failed;

	if (vb_cm_get_cm_event(channel, &event)) {
		TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
		return false;
	}
	note(event);
	if (event->event == dies_at && (event->id == client) == dies_at_client)
		add((struct vb_fault_rule){.action = VB_FAULT_DROP});
	react(event);
	failed = event->id == server && (event->event == RDMA_CM_EVENT_REJECTED ||
					 event->event == RDMA_CM_EVENT_UNREACHABLE);
	TEST_ASSERT_EQUAL_INT(0, vb_cm_ack_cm_event(event));
	if (failed)
		end_id(&server);
	return true;
}

static void open_ids(enum rdma_port_space ps)
{
	struct sockaddr_in source = {0};

	TEST_ASSERT_EQUAL_INT(0, vb_cm_create_id("sim", channel, &listener, NULL, ps));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_bind_addr(listener, address("0.0.0.0")));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_listen(listener, 4));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_create_id("sim", channel, &client, NULL, ps));
	if (source_address)
		source = *(struct sockaddr_in *)address(source_address);
	source.sin_port = 0;
	TEST_ASSERT_EQUAL_INT(
		0, vb_cm_resolve_addr(client, source_address ? (struct sockaddr *)&source : NULL,
				      address(server_address), 1000));
	TEST_ASSERT_TRUE(take());
	TEST_ASSERT_EQUAL_INT(0, vb_cm_resolve_route(client, 1000));
	TEST_ASSERT_TRUE(take());
	make_qp(client);
	seen[0] = '\0';
}

/* Runs until both ends have had their last event. */
static void run(void)
{
	struct rdma_conn_param param = {.private_data = "hello",
					.private_data_len = 6,
					.retry_count = 7,
					.rnr_retry_count = 7};

	TEST_ASSERT_EQUAL_INT(0, vb_cm_connect(client, &param));
	while (take())
		;
}

static void again(void)
{
	tearDown();
	setUp();
}

/* --- lost, repeated, late and rejected --- */

#define UP   "s CONNECT_REQUEST, c ESTABLISHED, s ESTABLISHED"
#define DOWN ", s DISCONNECTED, c DISCONNECTED, s TIMEWAIT_EXIT, c TIMEWAIT_EXIT"
#define GOOD UP DOWN
/* The client ends without a DREP. */
#define ALONE UP ", s DISCONNECTED, s TIMEWAIT_EXIT, c DISCONNECTED, c TIMEWAIT_EXIT"

#define LOSE(name, ...)                                               \
	{                                                             \
		.action = VB_FAULT_DROP, .message = name, __VA_ARGS__ \
	}
#define REPEAT(name, ...)                                       \
	{                                                       \
		.action = VB_FAULT_DUPLICATE, .message = (name) \
	}
#define LATE(name, ms)                                                                           \
	{                                                                                        \
		.action = VB_FAULT_DELAY, .message = (name), .delay_ns = (ms)*UINT64_C(1000000), \
		.count = 1                                                                       \
	}
#define REJECT(name, why, ...)                                                         \
	{                                                                              \
		.action = VB_FAULT_REJECT, .message = name, .reason = why, __VA_ARGS__ \
	}

/* The timeouts of connections: a REQ is repeated after 4.8 s, a REP after 4.3 s. */
#define REQ_NS UINT64_C(4831838208)
#define REP_NS UINT64_C(4294967296)

static const struct {
	struct vb_fault_rule rule;
	const char *seen;
	uint64_t established_ns; /* after the beginning */
	uint64_t hits;
	int status; /* of the last event that has one */
} rows[] = {
	{LOSE("LAP"), GOOD, 0, 0, 0},
	{LOSE("REQ", .count = 1), GOOD, REQ_NS, 1, 0},
	{LOSE("REP", .count = 1), GOOD, REP_NS, 1, 0},
	{LOSE("RTU", .count = 1), GOOD, REP_NS, 1, 0},
	{LOSE("DREQ", .count = 1), GOOD, 0, 1, 0},
	{LOSE("DREP", .count = 1), ALONE, 0, 1, 0},
	/* From this message on, the peer is dead. */
	{LOSE("REQ"), "c UNREACHABLE", 0, 16, -ETIMEDOUT},
	{LOSE("RTU"), "s CONNECT_REQUEST, c ESTABLISHED, s UNREACHABLE", 0, 16, -ETIMEDOUT},
	{LOSE("DREQ"), UP ", c DISCONNECTED, c TIMEWAIT_EXIT", 0, 16, -ETIMEDOUT},
	{LOSE("DREP"), ALONE, 0, 16, -ETIMEDOUT},
	{REPEAT("REQ"), GOOD, 0, 1, 0},
	{REPEAT("REP"), GOOD, 0, 1, 0},
	{REPEAT("RTU"), GOOD, 0, 1, 0},
	{REPEAT("DREQ"), GOOD, 0, 1, 0},
	{REPEAT("DREP"), GOOD, 0, 1, 0},
	{LATE("REQ", 5), GOOD, 5000000, 1, 0},
	{LATE("REP", 5), GOOD, 5000000, 1, 0},
	{LATE("RTU", 5), GOOD, 5000000, 1, 0},
	{LATE("DREQ", 5), GOOD, 0, 1, 0},
	{LATE("DREP", 5), GOOD, 0, 1, 0},
	/* The message comes when its sender has given up: the receiver drops it. */
	{LATE("REP", 10000), GOOD, REP_NS, 1, 0},
	{LATE("RTU", 10000), GOOD, REP_NS, 1, 0},
	{REJECT("REQ", 28), "c REJECTED", 0, 1, 28},
	{REJECT("REQ", 8), "c REJECTED", 0, 1, 8},
	{REJECT("REQ", 65535), "c REJECTED", 0, 1, 65535},
	/* The client repeats its REQ, of which it has heard nothing. */
	{REJECT("REP", 3, .count = 1), "s CONNECT_REQUEST, s REJECTED, " GOOD, REQ_NS, 1, 3},
};

void test_what_both_ends_see(void)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "%s %s", vb_fault_action_name(rows[i].rule.action),
			 rows[i].rule.message);
		open_ids(RDMA_PS_TCP);
		add(rows[i].rule);
		run();
		TEST_ASSERT_EQUAL_STRING_MESSAGE(rows[i].seen, seen, text);
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(rows[i].hits, vb_fault_hits(NULL, rule_id), text);
		if (established == 2)
			TEST_ASSERT_EQUAL_UINT64_MESSAGE(rows[i].established_ns, established_ns,
							 text);
		TEST_ASSERT_EQUAL_INT_MESSAGE(rows[i].status, status, text);
		again();
	}
}

/* From an event of the survivor on, all packets are lost: the other end is dead. */
void test_a_peer_that_dies_in_each_state(void)
{
	static const struct {
		enum rdma_cm_event_type event; /* of any end; 0: from the beginning */
		bool at_client;
		const char *seen;
	} deaths[] = {
		{RDMA_CM_EVENT_ADDR_RESOLVED, true, "c UNREACHABLE"},
		{RDMA_CM_EVENT_CONNECT_REQUEST, false,
		 "s CONNECT_REQUEST, s UNREACHABLE, c UNREACHABLE"},
		{RDMA_CM_EVENT_ESTABLISHED, true, UP ", c DISCONNECTED, c TIMEWAIT_EXIT"},
		{RDMA_CM_EVENT_DISCONNECTED, false, ALONE},
	};

	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		open_ids(RDMA_PS_TCP);
		dies_at = deaths[i].event;
		dies_at_client = deaths[i].at_client;
		if (dies_at == RDMA_CM_EVENT_ADDR_RESOLVED)
			add((struct vb_fault_rule){.action = VB_FAULT_DROP});
		run();
		TEST_ASSERT_EQUAL_STRING(deaths[i].seen, seen);
		TEST_ASSERT_EQUAL_INT(-ETIMEDOUT, status);
		again();
	}
}

/* Two devices with an address each, in the place of the default ones. */
static void configure(int link_layer)
{
	struct vb_sim_config config = {.device_count = 2};

	for (unsigned int i = 0; i < 2; i++) {
		struct vb_sim_device_config *device = &config.devices[i];

		snprintf(device->name, sizeof(device->name), "device%u", i);
		device->link_layer = link_layer;
		device->gid_count = 1;
		memset(device->gids[0].raw + 10, 0xff, 2);
		memcpy(device->gids[0].raw + 12, (const uint8_t[]){10, 0, 0, (uint8_t)(i + 1)}, 4);
	}
	vb_cm_destroy_event_channel(channel);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	channel = vb_cm_create_event_channel("sim");
}

/* The REJ goes back to the sender's device, with the addresses of both. */
void test_a_rejection_from_another_device(void)
{
	static const int layers[] = {IBV_LINK_LAYER_ETHERNET, IBV_LINK_LAYER_INFINIBAND};

	source_address = "10.0.0.1";
	server_address = "10.0.0.2";
	for (unsigned int i = 0; i < 2; i++) {
		configure(layers[i]);
		open_ids(RDMA_PS_TCP);
		TEST_ASSERT_EQUAL_STRING("device0", client->verbs->device->name);
		add((struct vb_fault_rule)REJECT("REQ", 26));
		run();
		TEST_ASSERT_EQUAL_STRING("c REJECTED", seen);
		TEST_ASSERT_EQUAL_INT(26, status);
		again();
		configure(layers[i]);
		open_ids(RDMA_PS_TCP);
		add((struct vb_fault_rule)REJECT("REP", 26, .count = 1));
		run();
		TEST_ASSERT_EQUAL_STRING("s CONNECT_REQUEST, s REJECTED, " GOOD, seen);
		again();
	}
	source_address = NULL;
	server_address = "127.0.0.1";
}

/* A service of datagrams: the client learns the QP from the SIDR_REP. */
void test_messages_of_datagram_services(void)
{
	static const struct {
		struct vb_fault_rule rule;
		const char *seen;
		uint64_t hits;
	} datagrams[] = {
		{LOSE("REQ"), "s CONNECT_REQUEST, c ESTABLISHED", 0},
		{LOSE("SIDR_REQ", .count = 1), "s CONNECT_REQUEST, c ESTABLISHED", 1},
		/* The server has answered the first request and forgotten it. */
		{LOSE("SIDR_REP", .count = 1),
		 "s CONNECT_REQUEST, s CONNECT_REQUEST, c ESTABLISHED", 1},
		{LOSE("SIDR_REQ"), "c UNREACHABLE", 16},
		{REPEAT("SIDR_REQ"), "s CONNECT_REQUEST, c ESTABLISHED", 1},
		{REPEAT("SIDR_REP"), "s CONNECT_REQUEST, c ESTABLISHED", 1},
	};

	for (size_t i = 0; i < sizeof(datagrams) / sizeof(datagrams[0]); i++) {
		open_ids(RDMA_PS_UDP);
		add(datagrams[i].rule);
		run();
		TEST_ASSERT_EQUAL_STRING_MESSAGE(datagrams[i].seen, seen,
						 datagrams[i].rule.message);
		TEST_ASSERT_EQUAL_UINT64(datagrams[i].hits, vb_fault_hits(NULL, rule_id));
		again();
	}
}

/* A rule fires on its message alone, and skips and counts as any rule. */
void test_a_rule_skips_and_counts_messages(void)
{
	open_ids(RDMA_PS_TCP);
	add((struct vb_fault_rule)LOSE("REQ", .skip = 1));
	run();
	TEST_ASSERT_EQUAL_STRING(GOOD, seen);
	TEST_ASSERT_EQUAL_UINT64(0, vb_fault_hits(NULL, rule_id));
}

/* --- changed --- */

static void change(const char *message, const char *field, uint64_t value, bool right_icrc)
{
	add((struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
				   .message = message,
				   .change = VB_CHANGE_MESSAGE_FIELD,
				   .field = field,
				   .value = value,
				   .count = 1,
				   .right_icrc = right_icrc});
}

/* Takes events until the client is established; returns attributes of both QPs. */
static void connect_only(struct ibv_qp_attr *of_server, struct ibv_qp_attr *of_client)
{
	struct ibv_qp_init_attr init;

	established = 1;
	TEST_ASSERT_EQUAL_INT(0,
			      vb_cm_connect(client, &(struct rdma_conn_param){.retry_count = 7}));
	TEST_ASSERT_TRUE(take());
	TEST_ASSERT_NOT_NULL(server);
	TEST_ASSERT_EQUAL_INT(0,
			      vb_query_qp(server->qp, of_server,
					  IBV_QP_SQ_PSN | IBV_QP_RQ_PSN | IBV_QP_DEST_QPN, &init));
	established = 3;
	TEST_ASSERT_TRUE(take());
	TEST_ASSERT_EQUAL_INT(0,
			      vb_query_qp(client->qp, of_client,
					  IBV_QP_SQ_PSN | IBV_QP_RQ_PSN | IBV_QP_DEST_QPN, &init));
}

void test_a_changed_field_of_a_req_comes_to_the_server(void)
{
	struct ibv_qp_attr of_server, of_client;

	open_ids(RDMA_PS_TCP);
	change("REQ", "starting_psn", 0x123456, true);
	connect_only(&of_server, &of_client);
	/* The PSN that the client awaits first. */
	TEST_ASSERT_EQUAL_HEX32(0x123456, of_server.sq_psn);
	TEST_ASSERT_TRUE(of_client.rq_psn != 0x123456);
	TEST_ASSERT_EQUAL_HEX32(client->qp->qp_num, of_server.dest_qp_num);
}

void test_a_changed_field_of_a_rep_comes_to_the_client(void)
{
	struct ibv_qp_attr of_server, of_client;

	open_ids(RDMA_PS_TCP);
	change("REP", "local_qpn", 0xabc, true);
	connect_only(&of_server, &of_client);
	TEST_ASSERT_EQUAL_HEX32(0xabc, of_client.dest_qp_num);
	TEST_ASSERT_EQUAL_HEX32(client->qp->qp_num, of_server.dest_qp_num);
}

/* Bits of a number that does not begin at a byte: the neighbours stay. */
void test_mask_and_flip_of_a_field(void)
{
	struct ibv_qp_attr of_server, of_client;
	struct vb_fault_rule rule = {.action = VB_FAULT_CORRUPT,
				     .message = "REQ",
				     .change = VB_CHANGE_MESSAGE_FIELD,
				     .field = "starting_psn",
				     .value = 0x5,
				     .mask = 0xf,
				     .flip = 0x800000,
				     .right_icrc = true};

	open_ids(RDMA_PS_TCP);
	add(rule);
	connect_only(&of_server, &of_client);
	TEST_ASSERT_EQUAL_HEX32(((of_client.rq_psn & 0xfffff0) | 0x5) ^ 0x800000, of_server.sq_psn);
}

/* The IP header is 36 bytes of the private data of a REQ: rdma_cm(7), private data. */
void test_a_changed_byte_of_private_data(void)
{
	struct rdma_conn_param param = {.private_data = "hello", .private_data_len = 6};
	struct rdma_cm_event *event;

	open_ids(RDMA_PS_TCP);
	add((struct vb_fault_rule){.action = VB_FAULT_CORRUPT,
				   .message = "REQ",
				   .change = VB_CHANGE_MESSAGE_FIELD,
				   .field = "private_data",
				   .offset = 36,
				   .value = 'j',
				   .right_icrc = true});
	TEST_ASSERT_EQUAL_INT(0, vb_cm_connect(client, &param));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_STRING("jello", event->param.conn.private_data);
	server = event->id;
	TEST_ASSERT_EQUAL_INT(0, vb_cm_ack_cm_event(event));
}

void test_a_changed_service_id_is_that_of_no_listener(void)
{
	open_ids(RDMA_PS_TCP);
	change("REQ", "service_id", 0x1060001, true);
	run();
	TEST_ASSERT_EQUAL_STRING("c REJECTED", seen);
	TEST_ASSERT_EQUAL_INT(8, status);
}

void test_a_changed_header(void)
{
	open_ids(RDMA_PS_TCP);
	change("REQ", "class_version", 9, true);
	run();
	TEST_ASSERT_EQUAL_STRING(GOOD, seen);
	TEST_ASSERT_EQUAL_UINT64(REQ_NS, established_ns);
}

/* A REJ from the peer itself, with another reason. */
void test_a_changed_reason_of_a_rej(void)
{
	open_ids(RDMA_PS_TCP);
	end_id(&listener);
	change("REJ", "reason", 33, true);
	run();
	TEST_ASSERT_EQUAL_STRING("c REJECTED", seen);
	TEST_ASSERT_EQUAL_INT(33, status);
}

/* With a wrong ICRC the message is lost. */
void test_a_changed_field_with_a_wrong_icrc(void)
{
	open_ids(RDMA_PS_TCP);
	change("REQ", "starting_psn", 0x123456, false);
	run();
	TEST_ASSERT_EQUAL_STRING(GOOD, seen);
	TEST_ASSERT_EQUAL_UINT64(REQ_NS, established_ns);
}

/* --- names --- */

void test_names_of_messages_and_fields(void)
{
	static const char *const messages[] = {"REQ",  "MRA",	   "REJ",      "REP", "RTU", "DREQ",
					       "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR"};
	unsigned int i;

	for (i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		TEST_ASSERT_EQUAL_STRING(messages[i], vb_fault_message_name(i));
	TEST_ASSERT_NULL(vb_fault_message_name(i));
	TEST_ASSERT_EQUAL_STRING("local_comm_id", vb_fault_field_name("RTU", 0));
	TEST_ASSERT_EQUAL_STRING("private_data", vb_fault_field_name("RTU", 2));
	TEST_ASSERT_EQUAL_STRING("base_version", vb_fault_field_name("RTU", 3));
	TEST_ASSERT_EQUAL_STRING("attribute_modifier", vb_fault_field_name("RTU", 10));
	TEST_ASSERT_NULL(vb_fault_field_name("RTU", 11));
	TEST_ASSERT_NULL(vb_fault_field_name("NONE", 0));
	TEST_ASSERT_EQUAL_HEX64(0xffffff, vb_fault_field_max("REQ", "starting_psn"));
	TEST_ASSERT_EQUAL_HEX64(7, vb_fault_field_max("REQ", "retry_count"));
	TEST_ASSERT_EQUAL_HEX64(UINT64_MAX, vb_fault_field_max("REQ", "service_id"));
	TEST_ASSERT_EQUAL_HEX64(0xff, vb_fault_field_max("REQ", "private_data"));
	TEST_ASSERT_EQUAL_HEX64(0, vb_fault_field_max("RTU", "starting_psn"));
}
