/* SPDX-License-Identifier: MIT */
#include "src/cli/trace.h"

#include "src/picture/event.h"

#include <string.h>
#include <strings.h>

static bool is_number(const json_t *value, uint64_t wanted)
{
	uint64_t number;

	return event_number(value, &number) && number == wanted;
}

/* Returns true if the words, with commas between, have the word. */
static bool has_word(const char *words, const char *word)
{
	const size_t length = strlen(word);

	while (*words) {
		const size_t size = strcspn(words, ",");

		if (size == length && strncmp(words, word, length) == 0)
			return true;
		words += size + (words[size] == ',');
	}
	return false;
}

/* Returns true if a string in the value, or in what it holds, is the name of the object. */
static bool names(const json_t *value, const char *object)
{
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_string(value))
		return strcasecmp(json_string_value(value), object) == 0;
	json_array_foreach(value, i, member) if (names(member, object)) return true;
	json_object_foreach((json_t *)value, key, member) if (names(member, object)) return true;
	return false;
}

/* A packet belongs to the QP that sends it and to the QP that it is for. */
static bool is_of_qp(const json_t *event, uint64_t qpn)
{
	const json_t *packet = json_object_get(event, "packet");

	return is_number(json_object_get(event, "qp"), qpn) ||
	       is_number(json_object_get(packet, "dest_qp"), qpn) ||
	       is_number(json_object_get(packet, "source_qp"), qpn);
}

/* A packet goes from one of the QPs to the other; that of a capture may not say where from. */
static bool is_between(const struct trace_choice *choice, const json_t *event)
{
	const json_t *packet = json_object_get(event, "packet");
	uint64_t number, source, dest;

	if (!packet)
		return event_number(json_object_get(event, "qp"), &number) &&
		       (number == choice->ends[0] || number == choice->ends[1]);
	if (!event_number(json_object_get(packet, "dest_qp"), &dest))
		return false;
	if (!event_number(json_object_get(packet, "source_qp"), &source))
		return dest == choice->ends[0] || dest == choice->ends[1];
	return (source == choice->ends[0] && dest == choice->ends[1]) ||
	       (source == choice->ends[1] && dest == choice->ends[0]);
}

static bool is_in_time(struct trace_choice *choice, const json_t *event)
{
	/* A verb without a device has no time: it comes with what was before it. */
	event_number(json_object_get(event, "t"), &choice->last_ns);
	return choice->last_ns >= choice->from_ns && choice->last_ns <= choice->to_ns;
}

bool trace_chosen(struct trace_choice *choice, const json_t *event)
{
	if (!is_in_time(choice, event))
		return false;
	if (choice->device && strcmp(event_string(event, "device"), choice->device) != 0)
		return false;
	if (choice->kinds && !has_word(choice->kinds, event_string(event, "kind")))
		return false;
	if (choice->has_qpn && !is_of_qp(event, choice->qpn))
		return false;
	if (choice->has_connection && !is_between(choice, event))
		return false;
	if (choice->object && !names(event, choice->object))
		return false;
	return !choice->failed || event_is_failure(event);
}
