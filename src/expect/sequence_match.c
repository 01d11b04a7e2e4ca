/* SPDX-License-Identifier: MIT */
/* Comparing packets with a pattern. */
#include "src/expect/sequence.h"

#include "src/base/count.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AETH_KIND_MASK 0x60
#define AETH_RNR_NAK   0x20
#define AETH_NAK       0x60

static bool is_ack(const struct vb_packet *packet)
{
	return packet->opcode_name && strstr(packet->opcode_name, " ACKNOWLEDGE") &&
	       packet->has & VB_PACKET_HAS_AETH;
}

static const char *ack_name(const struct vb_packet *packet)
{
	switch (packet->syndrome & AETH_KIND_MASK) {
	case AETH_RNR_NAK:
		return "RNR_NAK";
	case AETH_NAK:
		return "NAK";
	default:
		return "ACK";
	}
}

const char *sequence_opcode(const struct vb_packet *packet, char *text, size_t size_bytes)
{
	const char *blank = packet->opcode_name ? strchr(packet->opcode_name, ' ') : NULL;

	if (is_ack(packet))
		snprintf(text, size_bytes, "%s", ack_name(packet));
	else if (blank)
		snprintf(text, size_bytes, "%s", blank + 1);
	else
		snprintf(text, size_bytes, "0x%02x", packet->opcode);
	return text;
}

const char *sequence_name(const struct record *record, char *text, size_t size_bytes)
{
	char name[48];

	sequence_opcode(&record->packet, name, sizeof(name));
	snprintf(text, size_bytes, "%s:%s%s", record->device, name,
		 record->packet.lost ? "[lost]" : "");
	return text;
}

/* pattern: "RC:SEND_*" or "SEND_*"; full: "RC SEND_ONLY". */
static bool fits(const char *pattern, const char *full, const char *other)
{
	const char *colon = strchr(pattern, ':'), *blank = strchr(full, ' ');
	const char *name = colon ? colon + 1 : pattern;

	if (!blank)
		return !strcmp(name, "*");
	if (colon && (strncmp(pattern, full, (size_t)(blank - full)) != 0 ||
		      colon - pattern != blank - full))
		return false;
	return !fnmatch(name, blank + 1, 0) || (other && !fnmatch(name, other, 0));
}

bool sequence_knows(const char *name)
{
	static const char *const acks[] = {"ACK", "NAK", "RNR_NAK"};
	const char *full;

	if (!strcmp(name, "*"))
		return true;
	for (unsigned int opcode = 0; opcode < 256; opcode++) {
		full = vb_opcode_name((uint8_t)opcode);
		for (unsigned int i = 0; full && i < COUNT(acks); i++)
			if (fits(name, full, strstr(full, " ACKNOWLEDGE") ? acks[i] : NULL))
				return true;
	}
	return false;
}

/* --- comparing --- */

static bool fits_fields(const struct sequence_item *item, const struct vb_packet *packet)
{
	const uint64_t values[] = {
		[SEQUENCE_PSN] = packet->psn,
		[SEQUENCE_QP] = packet->dest_qpn,
		[SEQUENCE_BYTES] = packet->payload_bytes,
		[SEQUENCE_IMM] = packet->imm,
		[SEQUENCE_LOST] = packet->lost,
		[SEQUENCE_SOLICITED] = packet->solicited,
		[SEQUENCE_ACK_REQUEST] = packet->ack_request,
	};

	for (unsigned int i = 0; i < COUNT(values); i++)
		if (item->given >> i & 1 && item->values[i] != values[i])
			return false;
	return true;
}

static bool fits_packet(const struct sequence_item *item, const struct record *record)
{
	const struct vb_packet *packet = &record->packet;

	if (item->device[0] && strcmp(item->device, record->device) != 0)
		return false;
	if (strcmp(item->name, "*") != 0 &&
	    !fits(item->name, packet->opcode_name ? packet->opcode_name : "",
		  is_ack(packet) ? ack_name(packet) : NULL))
		return false;
	return fits_fields(item, packet);
}

/*
 * A search that goes back would take exponential time. So an item is compared with all places at once: set[i]
 * is true if the first i packets go with the pattern up to the item.
 */
struct search {
	const struct sequence *sequence;
	const struct record *packets;
	size_t count;
	struct sequence_match *match;
	bool wants_more; /* at the last packet, something more could have followed */
};

static void note(struct search *search, const bool *set, const struct sequence_item *item)
{
	for (size_t i = search->count + 1; i-- > 0;) {
		if (!set[i])
			continue;
		if (i > search->match->packets || search->match->at < 0) {
			search->match->packets = i;
			search->match->at = item->at;
		}
		if (i == search->count)
			search->wants_more = true;
		return;
	}
}

static bool is_empty(const bool *set, size_t count)
{
	for (size_t i = 0; i <= count; i++)
		if (set[i])
			return false;
	return true;
}

static bool run(struct search *search, int begin, int end, bool *set);

/* One repetition of an item: set becomes the places behind it. Returns false without memory. */
static bool step(struct search *search, int index, bool *set)
{
	const struct sequence_item *item = &search->sequence->items[index];

	if (item->group_end)
		return run(search, index + 1, item->group_end, set);
	note(search, set, item);
	for (size_t i = search->count; i > 0; i--)
		set[i] = set[i - 1] && fits_packet(item, &search->packets[i - 1]);
	set[0] = false;
	return true;
}

/* Adds the places of `more` to `set`. Returns true if there was a new one. */
static bool join(bool *set, const bool *more, size_t count)
{
	bool grown = false;

	for (size_t i = 0; i <= count; i++) {
		grown |= more[i] && !set[i];
		set[i] |= more[i];
	}
	return grown;
}

static bool repeat(struct search *search, int index, bool *set)
{
	const struct sequence_item *item = &search->sequence->items[index];
	const size_t bytes = (search->count + 1) * sizeof(bool);
	bool *now = malloc(bytes), *all = calloc(search->count + 1, sizeof(bool));
	bool good = now && all;

	if (good) {
		memcpy(now, set, bytes);
		if (!item->least)
			join(all, now, search->count);
	}
	for (unsigned int i = 1; good && i <= item->most && !is_empty(now, search->count); i++) {
		good = step(search, index, now);
		/* Beyond the least number, a repetition that adds nothing ends the loop. */
		if (i >= item->least && !join(all, now, search->count))
			break;
	}
	if (good)
		memcpy(set, all, bytes);
	free(now);
	free(all);
	return good;
}

static bool run(struct search *search, int begin, int end, bool *set)
{
	bool good = true;

	for (int i = begin; good && i < end;) {
		const int group_end = search->sequence->items[i].group_end;

		good = repeat(search, i, set);
		i = group_end ? group_end : i + 1;
	}
	return good;
}

struct sequence_match sequence_compare(const struct sequence *sequence,
				       const struct record *packets, size_t count)
{
	struct sequence_match match = {.at = -1};
	struct search search = {sequence, packets, count, &match, false};
	bool *set = calloc(count + 1, sizeof(bool));

	if (!set)
		return match;
	set[0] = true;
	run(&search, 0, sequence->count, set);
	match.whole = set[count];
	match.may_follow = search.wants_more;
	/* The end of the pattern is the furthest place if packets follow it. */
	for (size_t i = count + 1; i-- > 0;)
		if (set[i] && i >= match.packets) {
			match.packets = i;
			match.at = i < count ? (int)strlen(sequence->text) : match.at;
			break;
		}
	if (match.at < 0)
		match.at = (int)strlen(sequence->text);
	free(set);
	return match;
}
