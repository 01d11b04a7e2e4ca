/* SPDX-License-Identifier: MIT */
/* The kind of a row, and its text, which is short: it must fit between two nodes. */
#include "src/picture/ladder.h"

#include "src/base/count.h"
#include "src/picture/event.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[ROW_KINDS] = {
	[ROW_NONE] = "none",
	[ROW_PACKET] = "packet",
	[ROW_POST] = "post",
	[ROW_STATE] = "state",
	[ROW_COMPLETION] = "completion",
	[ROW_EVENT] = "event",
	[ROW_TIMER] = "timer",
	[ROW_FAULT] = "fault",
	[ROW_FAILURE] = "failure",
	[ROW_DROP] = "drop",
	[ROW_VERB] = "verb",
	[ROW_OTHER] = "other",
};

const char *row_kind_name(enum row_kind kind)
{
	return kind_names[kind];
}

/* --- groups --- */

#define LID_MULTICAST_MIN 0xc000

static bool is_ipv6_group(const char *gid)
{
	return strncmp(gid, "ff", 2) == 0 && strcspn(gid, ":") == 4;
}

/* Returns true for a GID that maps an IPv4 multicast address, 224.0.0.0/4. */
static bool is_ipv4_group(const char *gid)
{
	static const char before[] = "::ffff:";
	long first;

	if (strncmp(gid, before, strlen(before)) != 0 || !strchr(gid, '.'))
		return false;
	first = strtol(gid + strlen(before), NULL, 10);
	return first >= 224 && first < 240;
}

bool packet_is_multicast(const json_t *packet)
{
	const char *gid = event_string(packet, "dest_gid");
	uint64_t lid;

	if (event_number(json_object_get(packet, "dlid"), &lid))
		return lid >= LID_MULTICAST_MIN;
	return is_ipv6_group(gid) || is_ipv4_group(gid);
}

/* --- parts of texts --- */

/* Writes @before and the value, if the object has the member and it is a number or a string. */
static void put(const json_t *object, const char *key, const char *before, FILE *out)
{
	const json_t *member = json_object_get(object, key);

	if (json_is_string(member))
		fprintf(out, "%s%s", before, json_string_value(member));
	else if (json_is_integer(member))
		fprintf(out, "%s%" JSON_INTEGER_FORMAT, before, json_integer_value(member));
}

/* Writes @before and "N bytes", if the object has the member. */
static void put_bytes(const json_t *object, const char *key, const char *before, FILE *out)
{
	uint64_t bytes;

	if (event_number(json_object_get(object, key), &bytes))
		fprintf(out, "%s%" PRIu64 " byte%s", before, bytes, bytes == 1 ? "" : "s");
}

static void put_why(const json_t *event, FILE *out)
{
	put(json_object_get(event, "why"), "text", ": ", out);
	put(json_object_get(event, "peer_why"), "text", "; the peer: ", out);
}

static void put_qp(const json_t *event, FILE *out)
{
	if (json_object_get(event, "qp"))
		fprintf(out, "QP %s: ", event_string(event, "qp"));
}

/* Returns true for opcodes whose packets have no payload, or always one of the same size. */
static bool has_no_size(const json_t *packet)
{
	const char *opcode = event_string(packet, "opcode");

	return strstr(opcode, "READ_REQUEST") || strstr(opcode, "ACKNOWLEDGE") ||
	       strstr(opcode, "COMPARE_SWAP") || strstr(opcode, "FETCH_ADD");
}

static void put_packet(const json_t *packet, const char *source, FILE *out)
{
	put(packet, "opcode", "", out);
	put(packet, "psn", " PSN ", out);
	if (*source)
		fprintf(out, ", QP %s > ", source);
	else
		fputs(", to QP ", out);
	fputs(event_string(packet, "dest_qp"), out);
	if (!has_no_size(packet))
		put_bytes(packet, "payload_bytes", ", ", out);
	else if (json_object_get(packet, "dma_bytes"))
		put_bytes(packet, "dma_bytes", ", asks for ", out);
	put(packet, "syndrome", ", ", out);
	put(packet, "imm", ", imm ", out);
	if (json_object_get(packet, "ack_request"))
		fputs(", ack request", out);
}

/* --- kinds --- */

static void write_packet(const json_t *event, FILE *out)
{
	const json_t *packet = json_object_get(event, "packet");

	if (json_object_get(event, "injected"))
		fputs("injected: ", out);
	put_packet(packet, event_string(packet, "source_qp"), out);
	if (packet_is_multicast(packet))
		put(packet, json_object_get(packet, "dest_gid") ? "dest_gid" : "dlid",
		    ", to the group ", out);
	if (json_object_get(event, "lost"))
		fputs(", lost", out);
	put_why(event, out);
}

static void write_drop(const json_t *event, FILE *out)
{
	const json_t *packet = json_object_get(event, "packet");

	fputs("drops ", out);
	if (packet)
		put_packet(packet, event_string(packet, "source_qp"), out);
	put_why(event, out);
}

static void write_fault(const json_t *event, FILE *out)
{
	const json_t *packet = json_object_get(event, "packet");

	put(event, "rule", "fault rule ", out);
	put(event, "action", ": ", out);
	fputs(" ", out);
	put_packet(packet, event_string(packet, "source_qp"), out);
}

static const struct post_verb post_verbs[] = {
	{"post_send", "wr", false},
	{"post_recv", "wr", true},
	{"post_srq_recv", "recv_wr", true},
	{"wr_complete", "wr", false},
};

const struct post_verb *post_verb_of(const json_t *event)
{
	const char *verb = event_string(event, "verb");

	for (size_t i = 0; i < COUNT(post_verbs); i++)
		if (strcmp(verb, post_verbs[i].verb) == 0)
			return &post_verbs[i];
	return NULL;
}

static void put_request(const json_t *request, FILE *out)
{
	if (!json_is_object(request)) {
		fputs(" ...", out);
		return;
	}
	put(request, "wr_id", " ", out);
	put(request, "opcode", " ", out);
	put_bytes(request, "length", ", ", out);
}

static void write_post(const json_t *event, FILE *out)
{
	const json_t *arguments = json_object_get(event, "args");
	const json_t *requests = json_object_get(arguments, post_verb_of(event)->requests);
	json_t *request;
	size_t i;

	put_qp(event, out);
	if (json_object_get(arguments, "srq"))
		fprintf(out, "%s: ", event_string(arguments, "srq"));
	fputs(event_string(event, "verb"), out);
	json_array_foreach(requests, i, request)
	{
		fputs(i ? ";" : "", out);
		put_request(request, out);
	}
	put(event, "errno", " = ", out);
	put_why(event, out);
}

static void write_completion(const json_t *event, FILE *out)
{
	put_qp(event, out);
	put(event, "wr_id", "completion ", out);
	put(event, json_object_get(event, "opcode") ? "opcode" : "status", " ", out);
	put_bytes(event, "bytes", ", ", out);
	put(event, "imm", ", imm ", out);
	put_why(event, out);
}

static void write_state(const json_t *event, FILE *out)
{
	put_qp(event, out);
	put(event, "from", "", out);
	put(event, "to", " -> ", out);
	if (strcmp(event_string(event, "by"), "modify_qp") != 0)
		put(event, "by", " by ", out);
	put_why(event, out);
}

/* Writes the QP and the text that `verbena trace` prints. */
static void write_text(const json_t *event, FILE *out)
{
	put_qp(event, out);
	event_text(event, out);
}

/* Writes the QP, the kind, and the text that `verbena trace` prints. */
static void write_named(const json_t *event, FILE *out)
{
	put_qp(event, out);
	fprintf(out, "%s: ", event_string(event, "kind"));
	event_text(event, out);
}

static void write_rewind(const json_t *event, FILE *out)
{
	put_qp(event, out);
	put(event, "psn", "goes back to PSN ", out);
	put(event, "sent_psn", " from ", out);
	put(event, "by", " by ", out);
}

/* --- all kinds --- */

static const struct {
	const char *kind; /* of the event; NULL: any other */
	enum row_kind row;
	void (*write)(const json_t *event, FILE *out);
} kinds[] = {
	{"log", ROW_NONE, write_named},	       {"packet", ROW_PACKET, write_packet},
	{"verb", ROW_VERB, write_text},	       {"completion", ROW_COMPLETION, write_completion},
	{"state", ROW_STATE, write_state},     {"async", ROW_EVENT, write_text},
	{"connection", ROW_EVENT, write_text}, {"timer", ROW_TIMER, write_text},
	{"rewind", ROW_TIMER, write_rewind},   {"fault", ROW_FAULT, write_fault},
	{"failure", ROW_FAILURE, write_named}, {"drop", ROW_DROP, write_drop},
	{NULL, ROW_OTHER, write_named},
};

static size_t kind_index(const json_t *event)
{
	const char *kind = event_string(event, "kind");
	size_t i = 0;

	while (kinds[i].kind && strcmp(kinds[i].kind, kind) != 0)
		i++;
	return i;
}

/* Verbs and errno values that only say that there is nothing yet. Programs call such verbs in a loop, so the
 * ladder does not show them as failures. */
static const struct {
	const char *verb, *err;
} empty_answers[] = {
	{"get_async_event", "EAGAIN"}, {"get_cq_event", "EAGAIN"},  {"cm_get_cm_event", "EAGAIN"},
	{"query_gid", "ENODATA"},      {"query_gid_ex", "ENODATA"},
};

static bool found_nothing(const json_t *event)
{
	for (size_t i = 0; i < COUNT(empty_answers); i++)
		if (strcmp(event_string(event, "verb"), empty_answers[i].verb) == 0 &&
		    strcmp(event_string(event, "errno"), empty_answers[i].err) == 0)
			return true;
	return false;
}

enum row_kind row_kind_of(const json_t *event, bool with_verbs)
{
	const enum row_kind row = kinds[kind_index(event)].row;

	if (row != ROW_VERB)
		return row;
	if (post_verb_of(event))
		return ROW_POST;
	if (with_verbs)
		return ROW_VERB;
	return event_is_failure(event) && !found_nothing(event) ? ROW_VERB : ROW_NONE;
}

char *row_text(const json_t *event)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	(post_verb_of(event) ? write_post : kinds[kind_index(event)].write)(event, out);
	if (fclose(out))
		return NULL;
	ladder_clean(text);
	return text;
}
