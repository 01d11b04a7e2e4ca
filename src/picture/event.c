/* SPDX-License-Identifier: MIT */
/* The text of an event. It leaves out time, device, kind and QP, which the listing has in columns. */
#include "src/picture/event.h"

#include "src/base/count.h"
#include "src/base/number.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

bool event_number(const json_t *value, uint64_t *number)
{
	if (json_is_integer(value)) {
		*number = (uint64_t)json_integer_value(value);
		return true;
	}
	return json_is_string(value) &&
	       vb_number_read(json_string_value(value), 0, UINT64_MAX, number) == VB_NUMBER_GOOD;
}

/* --- failures --- */

/* Returns true for an asynchronous event that reports an error, such as IBV_EVENT_QP_FATAL. */
static bool is_error(const char *async)
{
	const size_t length = strlen(async);

	return strstr(async, "FATAL") || (length > 4 && strcmp(async + length - 4, "_ERR") == 0);
}

bool event_is_failure(const json_t *event)
{
	const char *kind = event_string(event, "kind"), *status = event_string(event, "status");

	return strcmp(kind, "failure") == 0 || strcmp(kind, "drop") == 0 ||
	       json_object_get(event, "errno") || json_object_get(event, "why") ||
	       json_is_true(json_object_get(event, "lost")) ||
	       (*status && strcmp(status, "IBV_WC_SUCCESS") != 0) ||
	       is_error(event_string(event, "event")) ||
	       strcmp(event_string(event, "to"), "ERR") == 0 ||
	       strcmp(event_string(event, "to"), "SQE") == 0;
}

/* --- values --- */

static void print_value(const json_t *value, FILE *out);

static void print_members(const json_t *object, const char *between, FILE *out)
{
	const char *key, *gap = "";
	json_t *member;

	json_object_foreach((json_t *)object, key, member)
	{
		fprintf(out, "%s%s=", gap, key);
		print_value(member, out);
		gap = between;
	}
}

/* Prints the names of set bits as "A|B", objects as "{...}, {...}". */
static void print_array(const json_t *array, FILE *out)
{
	const bool is_bits = !json_is_object(json_array_get(array, 0));
	json_t *element;
	size_t i;

	if (!json_array_size(array))
		fputs(is_bits ? "0" : "none", out);
	json_array_foreach(array, i, element)
	{
		if (i)
			fputs(is_bits ? "|" : ", ", out);
		print_value(element, out);
	}
}

static void print_value(const json_t *value, FILE *out)
{
	if (json_is_string(value)) {
		fputs(json_string_value(value), out);
	} else if (json_is_object(value)) {
		fputs("{", out);
		print_members(value, " ", out);
		fputs("}", out);
	} else if (json_is_array(value)) {
		print_array(value, out);
	} else if (json_is_integer(value)) {
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	} else if (json_is_real(value)) {
		fprintf(out, "%g", json_real_value(value));
	} else {
		fputs(json_is_true(value) ? "true" : json_is_false(value) ? "false" : "NULL", out);
	}
}

/* Prints @before and the value, if the object has the member. */
static void print_member(const json_t *object, const char *key, const char *before, FILE *out)
{
	const json_t *member = json_object_get(object, key);

	if (!member)
		return;
	fputs(before, out);
	print_value(member, out);
}

static void print_duration(const json_t *value, FILE *out)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{NS_PER_S, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	uint64_t ns = 0;
	size_t unit = 0;

	event_number(value, &ns);
	while (unit < COUNT(units) - 1 && ns < units[unit].ns)
		unit++;
	fprintf(out, "%.6g %s", (double)ns / (double)units[unit].ns, units[unit].name);
}

/* Prints ", N bytes", if the object has the member. */
static void print_bytes(const json_t *object, const char *key, FILE *out)
{
	uint64_t bytes;

	if (event_number(json_object_get(object, key), &bytes))
		fprintf(out, ", %" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
}

/* --- reasons --- */

static void print_why(const json_t *event, const char *key, const char *before, FILE *out)
{
	const json_t *why = json_object_get(event, key);

	if (why)
		fprintf(out, "%s%s", before, event_string(why, "text"));
}

/* --- kinds --- */

static void print_log(const json_t *event, FILE *out)
{
	print_member(event, "program", "", out);
	print_member(event, "pid", ", process ", out);
	print_member(event, "started", ", ", out);
	print_member(event, "verbena", ", Verbena ", out);
}

static void print_left_out(const json_t *event, FILE *out)
{
	print_member(event, "events",
		     "the limit of the log left out events at the beginning: ", out);
}

/* Prints the arguments in the order of the parameters. The device is in a column of its own. */
static void print_arguments(const json_t *arguments, FILE *out)
{
	const char *key, *gap = "";
	json_t *argument;

	json_object_foreach((json_t *)arguments, key, argument)
	{
		if (strcmp(key, "context") == 0)
			continue;
		fputs(gap, out);
		if (json_is_object(argument) || json_is_array(argument) || !*gap)
			print_value(argument, out);
		else
			fprintf(out, "%s ", key), print_value(argument, out);
		gap = ", ";
	}
}

static void print_verb(const json_t *event, FILE *out)
{
	const char *err = event_string(event, "errno");
	const json_t *duration = json_object_get(event, "duration_ns");
	uint64_t ns;

	fprintf(out, "%s(", event_string(event, "verb"));
	print_arguments(json_object_get(event, "args"), out);
	fputs(")", out);
	if (*err)
		fprintf(out, " = %s", err);
	else
		print_member(event, "result", " = ", out);
	print_member(event, "lkey", ", lkey ", out);
	print_member(event, "rkey", ", rkey ", out);
	if (event_number(duration, &ns) && ns) {
		fputs(", ", out);
		print_duration(duration, out);
	}
	print_why(event, "why", ": ", out);
}

static void print_completion(const json_t *event, FILE *out)
{
	print_member(event, "cq", "", out);
	print_member(event, "wr_id", ": wr_id ", out);
	if (json_object_get(event, "opcode"))
		print_member(event, "opcode", " ", out);
	else
		print_member(event, "status", " ", out);
	print_bytes(event, "bytes", out);
	print_member(event, "flags", ", ", out);
	print_member(event, "imm", ", imm ", out);
	print_member(event, "invalidated_rkey", ", invalidated rkey ", out);
	print_member(event, "vendor_err", ", vendor_err ", out);
	print_why(event, "why", ": ", out);
	print_why(event, "peer_why", "; the peer: ", out);
}

static void print_connection(const json_t *event, FILE *out)
{
	print_member(event, "event", "", out);
	print_member(event, "id", " of ", out);
	print_member(event, "listener", " by ", out);
	if (json_integer_value(json_object_get(event, "status")))
		print_member(event, "status", ", status ", out);
	if (json_object_get(event, "private_bytes"))
		fputs(", private data", out);
	print_bytes(event, "private_bytes", out);
	print_why(event, "why", ": ", out);
}

/* Members of a packet that print_packet_members() leaves out or prints in words of their own. */
static const char *const special[] = {"opcode", "psn",		 "dest_qp",	"source_qp",
				      "pkey",	"payload_bytes", "source_gid",	"dest_gid",
				      "slid",	"dlid",		 "ack_request", "solicited"};

static bool is_special(const char *key)
{
	for (size_t i = 0; i < COUNT(special); i++)
		if (strcmp(key, special[i]) == 0)
			return true;
	return false;
}

static void print_packet_members(const json_t *packet, FILE *out)
{
	const char *key;
	json_t *member;

	print_member(packet, "opcode", "", out);
	print_member(packet, "psn", " PSN ", out);
	print_member(packet, "dest_qp", " to ", out);
	print_bytes(packet, "payload_bytes", out);
	if (json_object_get(packet, "ack_request"))
		fputs(", ack request", out);
	if (json_object_get(packet, "solicited"))
		fputs(", solicited", out);
	json_object_foreach((json_t *)packet, key, member)
	{
		if (is_special(key))
			continue;
		fprintf(out, ", %s ", key);
		print_value(member, out);
	}
	print_member(packet, "source_gid", ", ", out);
	print_member(packet, "dest_gid", " > ", out);
	print_member(packet, "slid", ", LID ", out);
	print_member(packet, "dlid", " > ", out);
}

static void print_packet(const json_t *event, FILE *out)
{
	if (json_object_get(event, "lost"))
		fputs("LOST ", out);
	if (json_object_get(event, "injected"))
		fputs("injected ", out);
	print_packet_members(json_object_get(event, "packet"), out);
	print_why(event, "why", ": ", out);
}

static void print_drop(const json_t *event, FILE *out)
{
	const json_t *packet = json_object_get(event, "packet");

	if (packet)
		print_packet_members(packet, out);
	print_why(event, "why", packet ? ": " : "", out);
}

static void print_state(const json_t *event, FILE *out)
{
	print_member(event, "from", "", out);
	print_member(event, "to", " -> ", out);
	print_member(event, "by", " by ", out);
	print_why(event, "why", ": ", out);
}

static void print_async(const json_t *event, FILE *out)
{
	print_member(event, "event", "", out);
	print_member(event, "object", " of ", out);
	print_why(event, "why", ": ", out);
}

static void print_timer(const json_t *event, FILE *out)
{
	const json_t *wait = json_object_get(event, "wait_ns");
	uint64_t ns;

	print_member(event, "timer", "", out);
	print_member(event, "what", " timer ", out);
	print_member(event, "psn", ": PSN ", out);
	if (event_number(wait, &ns) && ns) {
		fputs(", waits ", out);
		print_duration(wait, out);
	}
	print_member(event, "retries_left", ", retries left ", out);
}

static void print_fault(const json_t *event, FILE *out)
{
	const json_t *packet = json_object_get(event, "packet");

	print_member(event, "rule", "rule ", out);
	print_member(event, "action", ": ", out);
	if (packet) {
		fputs(" ", out);
		print_packet_members(packet, out);
	}
}

static void print_failure(const json_t *event, FILE *out)
{
	print_member(event, "queue", "", out);
	print_member(event, "wr_id", " wr_id ", out);
	print_member(event, "status", " ", out);
	print_why(event, "why", ": ", out);
	print_why(event, "peer_why", "; the peer: ", out);
}

/* Prints an event whose kind has no function of its own: "name value, name value". */
static void print_other(const json_t *event, FILE *out)
{
	static const char *const columns[] = {"n", "t", "kind", "device", "qp"};
	const char *key, *gap = "";
	json_t *member;

	json_object_foreach((json_t *)event, key, member)
	{
		bool is_column = false;

		for (size_t i = 0; i < COUNT(columns); i++)
			is_column |= strcmp(key, columns[i]) == 0;
		if (is_column)
			continue;
		fprintf(out, "%s%s ", gap, key);
		print_value(member, out);
		gap = ", ";
	}
}

static const struct {
	const char *kind;
	void (*print)(const json_t *event, FILE *out);
} kinds[] = {
	{"log", print_log},	    {"left_out", print_left_out},
	{"verb", print_verb},	    {"completion", print_completion},
	{"packet", print_packet},   {"drop", print_drop},
	{"state", print_state},	    {"async", print_async},
	{"timer", print_timer},	    {"fault", print_fault},
	{"failure", print_failure}, {"connection", print_connection},
};

void event_text(const json_t *event, FILE *out)
{
	const char *kind = event_string(event, "kind");
	size_t i = 0;

	while (i < COUNT(kinds) && strcmp(kinds[i].kind, kind) != 0)
		i++;
	(i < COUNT(kinds) ? kinds[i].print : print_other)(event, out);
}
