/* SPDX-License-Identifier: MIT */
/* Events as lines: each kind of events.def with each of its fields, and the headers of packets. */
#include "src/base/count.h"
#include "src/log/form.h"
#include "src/log/record.h"
#include "unity.h"

#include <infiniband/verbs.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static char text[RECORD_BYTES_MAX];

void setUp(void)
{
}

void tearDown(void)
{
}

static const char *write_record(const struct vb_event *event, const struct record *record)
{
	struct line line = {text, text + sizeof(text) - 1, false};

	record_write(&line, event, record);
	TEST_ASSERT_FALSE(line.cut);
	*line.at = '\0';
	return text;
}

static json_t *parse(const struct vb_event *event, const struct record *record)
{
	json_error_t error;
	json_t *object = json_loads(write_record(event, record), JSON_REJECT_DUPLICATES, &error);

	TEST_ASSERT_NOT_NULL_MESSAGE(object, error.text);
	return object;
}

static bool add_arguments(struct line *line, const void *arg)
{
	line_plain(line, "{\"a\":");
	line_text(line, arg);
	line_plain(line, "}");
	return true;
}

static bool add_result(struct line *line, const void *arg)
{
	line_text(line, arg);
	return true;
}

static bool add_nothing(struct line *line, const void *arg)
{
	return false;
}

/* --- each kind and field of the table --- */

/* Values that differ, and that each form can tell apart from others. */
static struct vb_event event_of(enum vb_event_kind kind)
{
	struct vb_event event = {
		.kind = kind,
		.time_ns = 123456789,
		.device = "sim\"0",
		.port = 2,
		.qpn = 0xabc,
		.texts = {"text 0", "text 1", "text 2", "text 3"},
	};

	for (unsigned int i = 0; i < VB_EVENT_VALUES; i++)
		event.values[i] = i + 1;
	return event;
}

/* What a field has to be for the value or the text of that number. */
static void expect(enum form form, unsigned int i, char *expected, size_t size_bytes)
{
	static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	static const char *const statuses[] = {
		"IBV_WC_SUCCESS",	 "IBV_WC_LOC_LEN_ERR",	"IBV_WC_LOC_QP_OP_ERR",
		"IBV_WC_LOC_EEC_OP_ERR", "IBV_WC_LOC_PROT_ERR",
	};
	static const char *const opcodes[] = {"SEND", "RDMA_WRITE", "RDMA_READ", "COMP_SWAP",
					      "FETCH_ADD"};
	static const char *const events[] = {"IBV_EVENT_CQ_ERR", "IBV_EVENT_QP_FATAL"};
	static const char *const flags[] = {
		"[]",
		"[\"IBV_WC_GRH\"]",
		"[\"IBV_WC_WITH_IMM\"]",
		"[\"IBV_WC_GRH\",\"IBV_WC_WITH_IMM\"]",
		"[\"IBV_WC_IP_CSUM_OK\"]",
		"[\"IBV_WC_GRH\",\"IBV_WC_IP_CSUM_OK\"]",
	};
	const unsigned int value = i + 1;

	switch (form) {
	case FORM_DECIMAL:
	case FORM_SIGNED:
		snprintf(expected, size_bytes, "%u", value);
		break;
	case FORM_HEX:
	case FORM_HEX_NOT_0:
		snprintf(expected, size_bytes, "\"0x%x\"", value);
		break;
	case FORM_BOOL:
	case FORM_FLAG:
		snprintf(expected, size_bytes, "true");
		break;
	case FORM_NAME_STATE:
		snprintf(expected, size_bytes, "\"%s\"", states[value]);
		break;
	case FORM_NAME_STATUS:
		snprintf(expected, size_bytes, "\"%s\"", statuses[value]);
		break;
	case FORM_NAME_WC:
		snprintf(expected, size_bytes, "\"%s\"", opcodes[value]);
		break;
	case FORM_NAME_ASYNC:
		snprintf(expected, size_bytes, "\"%s\"", events[value]);
		break;
	case FORM_FLAGS_WC:
		snprintf(expected, size_bytes, "%s", flags[value]);
		break;
	case FORM_TEXT:
		snprintf(expected, size_bytes, "\"text %u\"", i);
		break;
	case FORM_ARGUMENTS:
		snprintf(expected, size_bytes, "{\"a\":\"call\"}");
		break;
	case FORM_RESULT:
		snprintf(expected, size_bytes, "\"call\"");
		break;
	default:
		TEST_FAIL_MESSAGE("a field of an event has a form of packets");
	}
}

static void check_field(const json_t *object, const char *word, const char *expected)
{
	const json_t *member = json_object_get(object, word);
	char *written;

	TEST_ASSERT_NOT_NULL_MESSAGE(member, word);
	written = json_dumps(member, JSON_COMPACT | JSON_ENCODE_ANY);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(expected, written, word);
	free(written);
}

static void check_kind(enum vb_event_kind kind)
{
	const struct vb_event event = event_of(kind);
	const struct record record = {
		.number = 77, .arguments = add_arguments, .result = add_result, .arg = "call"};
	json_t *object = parse(&event, &record);
	const struct form_field *field = form_kinds[kind].fields;
	size_t count = 6;
	char expected[128];

	check_field(object, "n", "77");
	check_field(object, "t", "123456789");
	snprintf(expected, sizeof(expected), "\"%s\"", form_kinds[kind].word);
	check_field(object, "kind", expected);
	check_field(object, "device", "\"sim\\\"0\"");
	check_field(object, "port", "2");
	check_field(object, "qp", "\"0xabc\"");
	for (; field->word; field++, count++) {
		expect(field->form, field->value, expected, sizeof(expected));
		check_field(object, field->word, expected);
	}
	TEST_ASSERT_EQUAL_UINT(count, json_object_size(object));
	json_decref(object);
}

void test_each_kind_has_all_its_fields(void)
{
	unsigned int kinds = 0;

	for (unsigned int i = 1; i < FORM_KINDS; i++) {
		if (!form_kinds[i].word)
			continue;
		kinds++;
		check_kind((enum vb_event_kind)i);
	}
	TEST_ASSERT_TRUE(kinds >= 13);
}

/* --- fields that are left out --- */

void test_an_event_without_device_port_and_qp(void)
{
	const struct vb_event event = {.kind = VB_EVENT_DROP};
	const struct record record = {.number = 1, .no_time = true};

	TEST_ASSERT_EQUAL_STRING("{\"n\":1,\"kind\":\"drop\"}", write_record(&event, &record));
}

void test_absent_values_and_texts(void)
{
	struct vb_event event = {.kind = VB_EVENT_COMPLETION, .absent = ~0u};
	const struct record record = {.number = 1};

	TEST_ASSERT_EQUAL_STRING("{\"n\":1,\"t\":0,\"kind\":\"completion\"}",
				 write_record(&event, &record));
	event.absent = ~1u;
	event.values[0] = UINT64_MAX;
	TEST_ASSERT_EQUAL_STRING(
		"{\"n\":1,\"t\":0,\"kind\":\"completion\",\"wr_id\":\"0xffffffffffffffff\"}",
		write_record(&event, &record));
}

void test_a_call_without_arguments_and_result(void)
{
	const struct vb_event event = {.kind = VB_EVENT_VERB, .texts = {"fork_init"}, .absent = 7};
	const struct record record = {
		.number = 1, .arguments = add_nothing, .result = add_nothing, .no_time = true};

	TEST_ASSERT_EQUAL_STRING("{\"n\":1,\"kind\":\"verb\",\"verb\":\"fork_init\"}",
				 write_record(&event, &record));
}

void test_values_that_are_out_of_range(void)
{
	const struct vb_event event = {
		.kind = VB_EVENT_STATE, .values = {UINT64_MAX, 42}, .time_ns = UINT64_MAX};
	const struct record record = {.number = (UINT64_C(1) << 53) - 1};

	TEST_ASSERT_EQUAL_STRING(
		"{\"n\":9007199254740991,\"t\":\"0xffffffffffffffff\","
		"\"kind\":\"state\",\"from\":\"0xffffffffffffffff\",\"to\":\"0x2a\"}",
		write_record(&event, &record));
}

/* --- reasons --- */

void test_reasons_have_name_number_and_sentence(void)
{
	const struct vb_why why = {.reason = VB_WHY_SAID, .text = "the \"first\" cause"};
	const struct vb_why peer = {
		.reason = VB_WHY_QP_TRANSITION,
		.values = {0x11, IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTS},
		.verb = "modify_qp",
	};
	const struct vb_event event = {.kind = VB_EVENT_DROP, .why = &why, .peer_why = &peer};
	const struct record record = {.number = 1};

	TEST_ASSERT_EQUAL_STRING(
		"{\"n\":1,\"t\":0,\"kind\":\"drop\",\"why\":{\"name\":\"SAID\",\"number\":"
		"\"0x1fff\","
		"\"text\":\"the \\\"first\\\" cause\"},\"peer_why\":{\"name\":\"QP_TRANSITION\","
		"\"number\":\"0x1000\",\"text\":\"modify_qp: QP 0x11 (RC) cannot go from RESET to "
		"RTS; "
		"take the steps RESET, INIT, RTR, RTS; from any state RESET and ERR are "
		"possible\"}}",
		write_record(&event, &record));
}

void test_no_reason_leaves_no_field(void)
{
	const struct vb_why why = {.reason = VB_WHY_NONE};
	const struct vb_event event = {.kind = VB_EVENT_DROP, .why = &why, .peer_why = &why};
	const struct record record = {.number = 1};

	TEST_ASSERT_EQUAL_STRING("{\"n\":1,\"t\":0,\"kind\":\"drop\"}",
				 write_record(&event, &record));
}

/* --- packets --- */

#define HEAD  "{\"n\":1,\"t\":0,\"kind\":\"packet\",\"packet\":{\"opcode\":"
#define BTH   ",\"psn\":16777215,\"dest_qp\":\"0x12\",\"pkey\":\"0xffff\",\"payload_bytes\":1024"
#define OTHER 0x5a5a /* of a member that the packet does not have */

static void check_packet(struct vb_packet packet, const char *expected)
{
	const struct vb_event event = {.kind = VB_EVENT_PACKET, .packet = &packet};
	const struct record record = {.number = 1};
	char whole[1024];

	packet.psn = 0xffffff;
	packet.dest_qpn = 0x12;
	packet.pkey = 0xffff;
	packet.payload_bytes = 1024;
	snprintf(whole, sizeof(whole), HEAD "%s}}", expected);
	TEST_ASSERT_EQUAL_STRING(whole, write_record(&event, &record));
}

void test_a_packet_without_extension_headers(void)
{
	check_packet(
		(struct vb_packet){.opcode_name = "RC SEND_MIDDLE", .rkey = OTHER, .msn = OTHER},
		"\"RC SEND_MIDDLE\"" BTH);
	check_packet(
		(struct vb_packet){
			.opcode = 0xfe, .ack_request = true, .solicited = true, .source_qpn = 0x34},
		"\"0xfe\",\"psn\":16777215,\"dest_qp\":\"0x12\",\"source_qp\":\"0x34\","
		"\"pkey\":\"0xffff\",\"payload_bytes\":1024,\"ack_request\":true,"
		"\"solicited\":true");
}

void test_the_route_of_a_packet(void)
{
	check_packet((struct vb_packet){.opcode_name = "X",
					.has = VB_PACKET_HAS_GIDS,
					.source_gid = {0xfe, 0x80, [15] = 1},
					.dest_gid = {[10] = 0xff, 0xff, 192, 0, 2, 255}},
		     "\"X\"" BTH ",\"source_gid\":\"fe80::1\",\"dest_gid\":\"::ffff:192.0.2.255\"");
	check_packet(
		(struct vb_packet){
			.opcode_name = "X", .has = VB_PACKET_HAS_LIDS, .slid = 0xffff, .dlid = 7},
		"\"X\"" BTH ",\"slid\":65535,\"dlid\":7");
}

/* Each extension header alone: its fields are there, and those of others are not. */
void test_each_extension_header_of_a_packet(void)
{
	static const struct {
		unsigned int has;
		const char *fields;
	} rows[] = {
		{VB_PACKET_HAS_RETH, ",\"remote_addr\":\"0xffffffffffff1234\",\"rkey\":\"0xa1\","
				     "\"dma_bytes\":4294967295"},
		{VB_PACKET_HAS_AETH, ",\"syndrome\":\"NAK: remote access error\",\"msn\":9"},
		{VB_PACKET_HAS_IMM, ",\"imm\":\"0xdeadbeef\""},
		{VB_PACKET_HAS_INVALIDATE, ",\"invalidate_rkey\":\"0xa1\""},
		{VB_PACKET_HAS_DETH, ",\"qkey\":\"0x80010000\""},
		{VB_PACKET_HAS_ATOMIC, ",\"remote_addr\":\"0xffffffffffff1234\",\"rkey\":\"0xa1\","
				       "\"swap_add\":\"0x8000000000000000\",\"compare\":\"0x1\""},
		{VB_PACKET_HAS_ORIGINAL, ",\"original\":\"0xffffffffffffffff\""},
		{VB_PACKET_HAS_XRC, ",\"xrc_srqn\":\"0xffffff\""},
	};
	char expected[512];

	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(expected, sizeof(expected), "\"X\"" BTH "%s", rows[i].fields);
		check_packet((struct vb_packet){.opcode_name = "X",
						.has = rows[i].has,
						.remote_addr = UINT64_C(0xffffffffffff1234),
						.rkey = 0xa1,
						.dma_bytes = UINT32_MAX,
						.syndrome = 0x62,
						.msn = 9,
						.imm = 0xdeadbeef,
						.qkey = 0x80010000,
						.swap_add = UINT64_C(1) << 63,
						.compare = 1,
						.original = UINT64_MAX,
						.xrc_srqn = 0xffffff},
			     expected);
	}
}

void test_an_event_that_does_not_fit_is_cut(void)
{
	const struct vb_event event = event_of(VB_EVENT_TIMER);
	const struct record record = {.number = 1};
	const size_t length = strlen(write_record(&event, &record));

	for (size_t room = 0; room < length; room++) {
		struct line line = {text, text + room, false};

		text[room] = '#';
		record_write(&line, &event, &record);
		TEST_ASSERT_TRUE(line.cut);
		TEST_ASSERT_EQUAL_INT('#', text[room]);
	}
}
