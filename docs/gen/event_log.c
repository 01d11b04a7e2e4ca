/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/event-log.md from the table of events, or with --schema the JSON Schema of a log's
 * lines. With --check FILE behind that, compares FILE with what it would print.
 */
#include "docs/gen/page.h"
#include "src/log/form.h"
#include "src/log/record.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/log.h>
#include <verbena/why.h>

/* --- forms --- */

#define NUMBER                                                                                  \
	"{\"anyOf\": [{\"type\": \"integer\", \"minimum\": 0, \"maximum\": 9007199254740991}, " \
	"{\"$ref\": \"#/$defs/hex\"}]}"
#define HEX  "{\"$ref\": \"#/$defs/hex\"}"
#define TEXT "{\"type\": \"string\"}"

/* What a field of each form is: in the document, and in the schema. */
static const struct {
	const char *type, *schema;
} forms[] = {
	[FORM_DECIMAL] = {"number", NUMBER},
	[FORM_SIGNED] = {"number", "{\"type\": \"integer\"}"},
	[FORM_HEX] = {"hex", HEX},
	[FORM_HEX_NOT_0] = {"hex; absent if 0", HEX},
	[FORM_BOOL] = {"boolean", "{\"type\": \"boolean\"}"},
	[FORM_FLAG] = {"true; else absent", "{\"const\": true}"},
	[FORM_GID] = {"GID", TEXT},
	[FORM_SYNDROME] = {"text", TEXT},
	[FORM_NAME_STATE] = {"name", TEXT},
	[FORM_NAME_STATUS] = {"name", TEXT},
	[FORM_NAME_WC] = {"name", TEXT},
	[FORM_NAME_ASYNC] = {"name", TEXT},
	[FORM_NAME_OPCODE] = {"name", TEXT},
	[FORM_FLAGS_WC] = {"array of names", "{\"type\": \"array\", \"items\": " TEXT "}"},
	[FORM_TEXT] = {"text", TEXT},
	[FORM_ARGUMENTS] = {"object", "{\"type\": \"object\"}"},
	[FORM_RESULT] = {"number, text or null",
			 "{\"anyOf\": [{\"type\": \"integer\"}, " TEXT ", {\"type\": \"null\"}]}"},
};

/* The fields that events of all kinds have. */
static const struct {
	const char *word, *type, *schema, *about;
} common[] = {
	{"n", "number", NUMBER, "counts the events of the log from 1; 0 is the first line"},
	{"t", "number", NUMBER,
	 "nanoseconds on the device's clock; absent if the event belongs to no device that is "
	 "open"},
	{"kind", "text", NULL, "what has happened: the headings below"},
	{"device", "text", TEXT, "such as `sim0`; absent if the event belongs to none"},
	{"port", "number", NUMBER, "the port of the device; absent if the event belongs to none"},
	{"qp", "hex", HEX, "the number of the QP; absent if the event belongs to none"},
	{"packet", "object", "{\"$ref\": \"#/$defs/packet\"}",
	 "the packet that the event is about; see [Packets](#packets)"},
	{"why", "object", "{\"$ref\": \"#/$defs/why\"}",
	 "the cause of a failure, an error or a drop; see [Reasons](#reasons)"},
	{"peer_why", "object", "{\"$ref\": \"#/$defs/why\"}",
	 "the cause that the other side of a connection has found"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* --- an event of each kind --- */

static const struct vb_packet packet = {
	.opcode = 6,
	.opcode_name = "RC RDMA_WRITE_FIRST",
	.has = VB_PACKET_HAS_GIDS | VB_PACKET_HAS_RETH,
	.pkey = 0xffff,
	.dest_qpn = 0x12,
	.source_qpn = 0x11,
	.psn = 105,
	.payload_bytes = 1024,
	.remote_addr = 0x7f0000001000,
	.rkey = 0x1234,
	.dma_bytes = 4096,
	.source_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
	.dest_gid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
};

static const struct vb_why missing = {
	.reason = VB_WHY_QP_MASK_MISSING,
	.verb = "modify_qp",
	.values = {0x11, IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_DEST_QPN},
};

static const struct vb_why no_service = {.reason = VB_WHY_CM_EVENT_NO_SERVICE};

static const struct vb_why wrong_icrc = {.reason = VB_WHY_PACKET_ICRC};

static bool sample_arguments(struct line *line, const void *arg)
{
	line_plain(line, "{\"qp\":\"qp 0x11\",\"attr\":{\"qp_state\":\"RTR\",\"path_mtu\":1024},"
			 "\"attr_mask\":[\"IBV_QP_STATE\",\"IBV_QP_PATH_MTU\"]}");
	return true;
}

static bool sample_result(struct line *line, const void *arg)
{
	line_signed(line, 22);
	return true;
}

#define SIM0 .time_ns = 4096, .device = "sim0", .port = 1, .qpn = 0x11

static const struct vb_event samples[] = {
	{.kind = VB_EVENT_LOG,
	 .values = {VB_LOG_SCHEMA, 4711, 0x1234567890},
	 .texts = {"0.1.0", "./test", "2026-11-22T09:00:00.000000000Z", "device"}},
	{.kind = VB_EVENT_LEFT_OUT, .values = {5000}},
	{.kind = VB_EVENT_VERB,
	 .time_ns = 4096,
	 .device = "sim0",
	 .qpn = 0x11,
	 .absent = 6,
	 .texts = {"modify_qp", "EINVAL"},
	 .why = &missing},
	{.kind = VB_EVENT_COMPLETION,
	 .time_ns = 4096,
	 .device = "sim1",
	 .qpn = 0x12,
	 .values = {7, IBV_WC_SUCCESS, IBV_WC_RECV, 64, IBV_WC_WITH_IMM, 0xcafe},
	 .absent = 1 << 6 | 1 << 7 | 1 << 8,
	 .texts = {"cq1"}},
	{.kind = VB_EVENT_CONNECTION,
	 .time_ns = 4096,
	 .device = "sim0",
	 .values = {8, 148},
	 .texts = {"RDMA_CM_EVENT_REJECTED", "id1"},
	 .why = &no_service},
	{SIM0, .kind = VB_EVENT_PACKET, .values = {true}, .packet = &packet},
	{SIM0, .kind = VB_EVENT_DROP, .packet = &packet, .why = &wrong_icrc},
	{SIM0, .kind = VB_EVENT_STATE, .values = {IBV_QPS_RTS, IBV_QPS_ERR}, .texts = {"send"}},
	{SIM0, .kind = VB_EVENT_ASYNC, .values = {IBV_EVENT_QP_FATAL}, .texts = {"qp 0x11"}},
	{SIM0, .kind = VB_EVENT_TIMER, .values = {105, 0, 6}, .texts = {"ack", "expired"}},
	{SIM0, .kind = VB_EVENT_FAULT, .values = {1}, .texts = {"drop"}, .packet = &packet},
	{SIM0, .kind = VB_EVENT_FAILURE, .values = {7, IBV_WC_RETRY_EXC_ERR}, .texts = {"send"}},
	{SIM0, .kind = VB_EVENT_REWIND, .values = {105, 107}, .texts = {"timeout"}},
	{SIM0, .kind = VB_EVENT_PORT, .texts = {"ACTIVE", "DOWN"}},
	{SIM0, .kind = VB_EVENT_MODERATION, .values = {3, 10000}, .texts = {"cq1"}},
};

static const struct vb_event *sample_of(unsigned int kind)
{
	for (size_t i = 0; i < COUNT(samples); i++)
		if (samples[i].kind == kind)
			return &samples[i];
	return NULL;
}

/* Returns the word of a kind that has no sample yet; NULL: all have one. */
static const char *lacks_sample(void)
{
	for (unsigned int i = 0; i < FORM_KINDS; i++)
		if (form_kinds[i].word && !sample_of(i))
			return form_kinds[i].word;
	return NULL;
}

static void print_sample(FILE *out, const struct vb_event *event)
{
	const bool is_head = event->kind == VB_EVENT_LOG;
	char text[RECORD_BYTES_MAX];
	struct line line = {text, text + sizeof(text), false};
	const struct record record = {.number = is_head ? 0 : 12,
				      .no_time = is_head,
				      .arguments = sample_arguments,
				      .result = sample_result};

	record_write(&line, event, &record);
	fprintf(out, "\n    %.*s\n", (int)(line.at - text), text);
}

/* --- the document --- */

static const char intro[] =
	"# The event log\n"
	"\n"
	"`docs/gen/event_log.c` prints this from `include/verbena/events.def`; `scripts/docs` "
	"runs\n"
	"it, and a test fails if this file is stale.\n"
	"\n"
	"A log is a text file. Each line is a JSON object: one event. `verbena run --log FILE` "
	"writes\n"
	"the log of a program of libibverbs, the variable `VERBENA_LOG` that of any program that "
	"calls\n"
	"verbs through Verbena, and `vb_log_open()` begins one in the middle of a program.\n"
	"`verbena trace FILE` prints a log as text, and chooses events. The JSON Schema of a line "
	"is\n"
	"`share/verbena/event-log.schema.json`.\n"
	"\n"
	"- [Where events come from](#where-events-come-from)\n"
	"- [Times](#times)\n"
	"- [Order and repetition](#order-and-repetition)\n"
	"- [Processes that are killed, and children](#processes-that-are-killed-and-children)\n"
	"- [A log that has a limit](#a-log-that-has-a-limit)\n"
	"- [A full disk](#a-full-disk)\n"
	"- [How values are written](#how-values-are-written)\n"
	"- [Fields of all kinds](#fields-of-all-kinds)\n"
	"- [Kinds](#kinds)\n"
	"- [Packets](#packets)\n"
	"- [Reasons](#reasons)\n"
	"- [Versions](#versions)\n"
	"\n"
	"## Where events come from\n"
	"\n"
	"- Each verb that the program calls is an event, on any backend, once the verb has "
	"returned.\n"
	"  Polls are not: a completion that a poll has taken is an event, and a poll that finds "
	"nothing\n"
	"  leaves no line. Only a poll that fails is a `verb`. Of the builders `ibv_wr_*`, only\n"
	"  `wr_complete` and `wr_abort` are events.\n"
	"- The functions of the connection manager are events of the same kind, by the name of "
	"`vb_cm_*`:\n"
	"  `rdma_connect` is the `verb` named `cm_connect`. An event that `rdma_get_cm_event` has "
	"taken is\n"
	"  a `connection`; the call itself is a `verb` only if it fails.\n"
	"- A simulated device adds what happens in it: packets, drops, states, timers, faults, "
	"failures.\n"
	"  An adapter adds nothing.\n"
	"\n"
	"While no log is open, nothing of it is in the way of a verb or a packet.\n"
	"\n"
	"## Times\n"
	"\n"
	"`t` counts nanoseconds on the clock of the event's device. The clock of a simulated "
	"device\n"
	"begins at 0 with its world. The time of an adapter is CLOCK_MONOTONIC, counted from the "
	"moment\n"
	"that the first line names. Times of different worlds cannot be compared. A verb that "
	"belongs to\n"
	"no open device, such as `get_device_list`, has no `t`.\n"
	"\n"
	"## Order and repetition\n"
	"\n"
	"The lines are in the order of `n`, without a gap but that of a `left_out`. Events of one "
	"thread are in the order "
	"in which\n"
	"they happened; a verb comes after the events that it has caused.\n"
	"\n"
	"On the virtual clock, the same seed and the same actions of the program give the same "
	"bytes,\n"
	"if the addresses of the program's memory are the same: they stand in the arguments of "
	"verbs and in\n"
	"packets of RDMA operations. `verbena run --clock virtual`, and `verbena test` with "
	"`VERBENA_LOG`, run\n"
	"programs without randomisation of addresses; `setarch -R` does it for others. If "
	"`VERBENA_CLOCK` is\n"
	"`virtual`, the first line has neither process number nor date. On the real clock no log "
	"repeats.\n"
	"`verbena trace diff A B` finds the first event that differs.\n"
	"\n"
	"## Processes that are killed, and children\n"
	"\n"
	"A line is with the kernel as soon as it is written. A process that is killed leaves all "
	"lines\n"
	"that came before. Its last line may lack its end and the newline, and bytes of value 0 "
	"may follow\n"
	"up to the end of the file: a reader ignores both. A process that ends cuts the file "
	"behind the\n"
	"last line. Do not cut the file while its process runs.\n"
	"\n"
	"The child of a `fork()` writes nothing into its parent's log. If the path has a `%p`, the "
	"first\n"
	"event of the child opens a log of its own, whose `n` begins at 1; without, the events of "
	"the\n"
	"child are not logged. A program that a child executes opens its log by `VERBENA_LOG` "
	"anew, and is\n"
	"refused a file to which another process writes.\n"
	"\n"
	"## A log that has a limit\n"
	"\n"
	"`verbena run --log-limit`, the variable `VERBENA_LOG_LIMIT`, `:log_limit:` in project.yml "
	"and\n"
	"`vb_log_limit()` keep the end of a log. The second line is then a `left_out`, whose "
	"`events` "
	"counts\n"
	"the events that are missing; its `n` is that of the last one of them. A process writes "
	"such a "
	"log in\n"
	"two halves: it adds lines to the file itself, and the file `NAME.older.part` has the "
	"lines "
	"before\n"
	"them, with a first line and perhaps a `left_out` of its own. At its end the process joins "
	"them. "
	"A\n"
	"process that is killed leaves both, each a log by itself; `verbena trace NAME` reads both "
	"as "
	"one.\n"
	"\n"
	"## A full disk\n"
	"\n"
	"If the disk is full, a line on standard error says so, the log keeps what it has, and the "
	"program\n"
	"continues.\n"
	"\n"
	"## How values are written\n"
	"\n"
	"| type | what it is |\n"
	"| --- | --- |\n"
	"| number | a JSON number below 2^53; a larger number is a hex |\n"
	"| hex | a string such as `\"0x11\"`: numbers of QPs, keys, addresses, `wr_id` |\n"
	"| name | the name of a value of an enum, such as `\"RTS\"`; a hex if the value has no "
	"name |\n"
	"| GID | a string such as `\"::ffff:10.0.0.1\"` |\n"
	"| object | an object of the program: `\"pd1\"`, `\"cq2\"`, `\"mr3\"`, counted by device "
	"and kind "
	"from 1; `\"qp 0x11\"`; a hex if Verbena does not know the object |\n"
	"\n"
	"## Fields of all kinds\n"
	"\n";

static const char after_kinds[] =
	"\n"
	"## Packets\n"
	"\n"
	"The object `packet` has the fields of the headers that the packet has.\n"
	"\n";

static const char ending[] =
	"\n"
	"## Reasons\n"
	"\n"
	"The objects `why` and `peer_why` have three fields. [errors.md](errors.md) lists the "
	"reasons.\n"
	"\n"
	"| field | type | what it is |\n"
	"| --- | --- | --- |\n"
	"| `name` | text | the name of the reason, such as `QP_MASK_MISSING` |\n"
	"| `number` | hex | its number |\n"
	"| `text` | text | the sentence: what failed, why, and what to do |\n"
	"\n"
	"## Versions\n"
	"\n"
	"The first line has the version of the schema. New kinds and new fields may come without a "
	"new\n"
	"version: a reader ignores what it does not know. A kind and a field keep their meaning. "
	"The\n"
	"version counts up when an old reader would misread a new log; `verbena trace` refuses a "
	"log of a\n"
	"higher version than its own.\n";

static const char verb_notes[] =
	"\n"
	"`args` has a member for each parameter of the verb, with the "
	"parameter's name. A structure is an\n"
	"object with the members that matter, by their names in "
	"`<infiniband/verbs.h>`; of structures with\n"
	"a mask, those that the mask selects. Masks and flags are arrays "
	"of names. A list of work requests\n"
	"is an array of objects up to the first that was not posted: "
	"`length` is the sum of the lengths of\n"
	"its SGEs, and is absent for the request that was not posted. "
	"What a verb fills in is there only if\n"
	"the verb has succeeded. `path_mtu` and its kin are in bytes.\n"
	"An IP address is a text such as `\"10.0.0.1 7471\"`: the address and the port.\n"
	"A list that is too long for a line of 64 KiB ends in `\"...\"`.\n";

static void print_row(FILE *out, const char *word, const char *type, const char *about)
{
	fprintf(out, "| `%s` | %s | %s |\n", word, type, about);
}

static void print_table_head(FILE *out)
{
	fputs("| field | type | what it is |\n| --- | --- | --- |\n", out);
}

static void print_kind(FILE *out, unsigned int number)
{
	const struct form_kind *kind = &form_kinds[number];

	fprintf(out, "\n### %s\n\n%c%s.\n", kind->word, kind->about[0] - 'a' + 'A',
		kind->about + 1);
	if (kind->fields->word) {
		fputs("\n", out);
		print_table_head(out);
	}
	for (const struct form_field *field = kind->fields; field->word; field++)
		print_row(out, field->word, forms[field->form].type, field->about);
	if (number == VB_EVENT_VERB)
		fputs(verb_notes, out);
	print_sample(out, sample_of(number));
}

static void print_document(FILE *out)
{
	fputs(intro, out);
	print_table_head(out);
	for (size_t i = 0; i < COUNT(common); i++)
		print_row(out, common[i].word, common[i].type, common[i].about);
	fputs("\n## Kinds\n", out);
	for (unsigned int i = 0; i < FORM_KINDS; i++)
		if (form_kinds[i].word)
			print_kind(out, i);
	fputs(after_kinds, out);
	print_table_head(out);
	for (const struct form_packet_field *field = form_packet_fields; field->word; field++)
		print_row(out, field->word, forms[field->form].type, field->about);
	fputs(ending, out);
}

/* --- the schema --- */

static void print_property(FILE *out, const char *word, const char *schema, bool *is_first)
{
	fprintf(out, "%s\n        \"%s\": %s", *is_first ? "" : ",", word, schema);
	*is_first = false;
}

static void print_kind_schema(FILE *out, const struct form_kind *kind)
{
	bool is_first = true;

	fprintf(out, "    \"kind_%s\": {\n      \"properties\": {", kind->word);
	for (size_t i = 0; i < COUNT(common); i++) {
		char word[64];

		snprintf(word, sizeof(word), "{\"const\": \"%s\"}", kind->word);
		print_property(out, common[i].word, common[i].schema ?: word, &is_first);
	}
	for (const struct form_field *field = kind->fields; field->word; field++)
		print_property(out, field->word, forms[field->form].schema, &is_first);
	fputs("\n      }\n    },\n", out);
}

static void print_packet_schema(FILE *out)
{
	bool is_first = true;

	fputs("    \"packet\": {\n      \"type\": \"object\",\n      \"properties\": {", out);
	for (const struct form_packet_field *field = form_packet_fields; field->word; field++)
		print_property(out, field->word, forms[field->form].schema, &is_first);
	fputs("\n      },\n      \"required\": [\"opcode\", \"psn\", \"dest_qp\", \"pkey\", "
	      "\"payload_bytes\"]\n    },\n",
	      out);
}

static void print_schema(FILE *out)
{
	bool is_first = true;

	fprintf(out,
		"{\n"
		"  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
		"  \"title\": \"A line of Verbena's event log, schema %d\",\n"
		"  \"type\": \"object\",\n"
		"  \"required\": [\"n\", \"kind\"],\n"
		"  \"oneOf\": [",
		VB_LOG_SCHEMA);
	for (unsigned int i = 0; i < FORM_KINDS; i++) {
		if (!form_kinds[i].word)
			continue;
		fprintf(out, "%s\n    {\"$ref\": \"#/$defs/kind_%s\"}", is_first ? "" : ",",
			form_kinds[i].word);
		is_first = false;
	}
	fputs("\n  ],\n  \"$defs\": {\n", out);
	for (unsigned int i = 0; i < FORM_KINDS; i++)
		if (form_kinds[i].word)
			print_kind_schema(out, &form_kinds[i]);
	print_packet_schema(out);
	fputs("    \"why\": {\n"
	      "      \"type\": \"object\",\n"
	      "      \"properties\": {\n"
	      "        \"name\": " TEXT ",\n"
	      "        \"number\": " HEX ",\n"
	      "        \"text\": " TEXT "\n"
	      "      },\n"
	      "      \"required\": [\"name\", \"number\", \"text\"]\n"
	      "    },\n"
	      "    \"hex\": {\"type\": \"string\", \"pattern\": \"^0x[0-9a-f]+$\"}\n"
	      "  }\n"
	      "}\n",
	      out);
}

int main(int argc, char **argv)
{
	const bool is_schema = argc > 1 && strcmp(argv[1], "--schema") == 0;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return EXIT_FAILURE;
	if (lacks_sample()) {
		fprintf(stderr, "the kind %s has no sample; add one to docs/gen/event_log.c\n",
			lacks_sample());
		return EXIT_FAILURE;
	}
	if (is_schema)
		print_schema(out);
	else
		print_document(out);
	if (fclose(out))
		return EXIT_FAILURE;
	return page_print(argc - is_schema, argv + is_schema, text);
}
