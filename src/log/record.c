/* SPDX-License-Identifier: MIT */
#include "src/log/record.h"

#include "src/log/form.h"

#include <verbena/packet.h>
#include <verbena/verbs.h>

#define SYNDROME_BYTES 48
#define SENTENCE_BYTES 768

/* --- fields of a number --- */

static void add_number(struct line *line, enum form form, uint64_t value)
{
	switch (form) {
	case FORM_SIGNED:
		line_signed(line, (int64_t)value);
		break;
	case FORM_HEX:
	case FORM_HEX_NOT_0:
		line_hex(line, value);
		break;
	case FORM_BOOL:
	case FORM_FLAG:
		line_bool(line, value);
		break;
	case FORM_NAME_STATE:
		line_name(line, vb_qp_state_str((enum ibv_qp_state)value), value);
		break;
	case FORM_NAME_STATUS:
		line_name(line, vb_wc_status_name((enum ibv_wc_status)value), value);
		break;
	case FORM_NAME_WC:
		line_name(line, vb_wc_opcode_str((enum ibv_wc_opcode)value), value);
		break;
	case FORM_NAME_ASYNC:
		line_name(line, vb_event_type_name((enum ibv_event_type)value), value);
		break;
	case FORM_FLAGS_WC:
		line_bits(line, bits_wc, value);
		break;
	default:
		line_decimal(line, value);
		break;
	}
}

/* Returns true if a field of the form is left out for this value. */
static bool is_left_out(enum form form, uint64_t value)
{
	return (form == FORM_FLAG || form == FORM_HEX_NOT_0) && !value;
}

/* --- packets --- */

static void add_syndrome(struct line *line, uint8_t syndrome)
{
	char text[SYNDROME_BYTES];

	line_text(line, vb_syndrome_text(syndrome, text, sizeof(text)));
}

static void add_opcode(struct line *line, const struct vb_packet *packet)
{
	if (packet->opcode_name)
		line_word(line, packet->opcode_name);
	else
		line_hex(line, packet->opcode);
}

/* How the value of a member is added, by the form of its row. */
#define ADD_DECIMAL(member)	line_decimal(line, packet->member)
#define ADD_HEX(member)		line_hex(line, packet->member)
#define ADD_HEX_NOT_0(member)	line_hex(line, packet->member)
#define ADD_FLAG(member)	line_bool(line, packet->member)
#define ADD_GID(member)		line_gid(line, packet->member)
#define ADD_SYNDROME(member)	add_syndrome(line, packet->member)
#define ADD_NAME_OPCODE(member) add_opcode(line, packet)

/* Which values are left out, by the form. */
#define OUT_DECIMAL(member)	false
#define OUT_HEX(member)		false
#define OUT_HEX_NOT_0(member)	(!packet->member)
#define OUT_FLAG(member)	(!packet->member)
#define OUT_GID(member)		false
#define OUT_SYNDROME(member)	false
#define OUT_NAME_OPCODE(member) false

static void add_packet(struct line *line, const struct vb_packet *packet)
{
	const char *gap = "";

	line_plain(line, ",\"packet\":{");
#define VB_PACKET_FIELD(word, member, form, bits, about)                  \
	if ((!(bits) || (packet->has & (bits))) && !OUT_##form(member)) { \
		line_plain(line, gap);                                    \
		line_plain(line, "\"" word "\":");                        \
		ADD_##form(member);                                       \
		gap = ",";                                                \
	}
#include <verbena/events.def>
	line_plain(line, "}");
}

/* --- reasons --- */

static void add_why(struct line *line, const char *word, const struct vb_why *why)
{
	const struct vb_reason_info *info = vb_reason_info(why->reason);
	char sentence[SENTENCE_BYTES];

	if (why->reason == VB_WHY_NONE)
		return;
	line_key(line, word);
	line_plain(line, "{\"name\":");
	line_word(line, info ? info->name : "unknown");
	line_plain(line, ",\"number\":");
	line_hex(line, why->reason);
	line_plain(line, ",\"text\":");
	line_text(line, vb_why_text(why, sentence, sizeof(sentence)));
	line_plain(line, "}");
}

/* --- events --- */

static void add_key(struct line *line, const struct form_field *field)
{
	line_bytes(line, field->key, field->key_bytes);
}

static void add_call_field(struct line *line, const struct form_field *field,
			   bool (*add)(struct line *line, const void *arg), const void *arg)
{
	char *before = line->at;

	if (!add)
		return;
	add_key(line, field);
	if (!add(line, arg))
		line->at = before;
}

static void add_field(struct line *line, const struct form_field *field,
		      const struct vb_event *event, const struct record *record)
{
	const uint64_t value = event->values[field->value];

	switch (field->form) {
	case FORM_TEXT:
		if (!event->texts[field->value])
			return;
		add_key(line, field);
		line_text(line, event->texts[field->value]);
		break;
	case FORM_ARGUMENTS:
		add_call_field(line, field, record->arguments, record->arg);
		break;
	case FORM_RESULT:
		add_call_field(line, field, record->result, record->arg);
		break;
	default:
		if ((event->absent & 1u << field->value) || is_left_out(field->form, value))
			return;
		add_key(line, field);
		add_number(line, field->form, value);
		break;
	}
}

static void add_common(struct line *line, const struct form_kind *kind,
		       const struct vb_event *event, const struct record *record)
{
	line_plain(line, "{\"n\":");
	line_decimal(line, record->number);
	if (!record->no_time) {
		line_plain(line, ",\"t\":");
		line_decimal(line, event->time_ns);
	}
	line_plain(line, ",\"kind\":");
	line_word(line, kind->word);
	if (event->device) {
		line_plain(line, ",\"device\":");
		line_text(line, event->device);
	}
	if (event->port) {
		line_plain(line, ",\"port\":");
		line_decimal(line, event->port);
	}
	if (event->qpn) {
		line_plain(line, ",\"qp\":");
		line_hex(line, event->qpn);
	}
}

void record_write(struct line *line, const struct vb_event *event, const struct record *record)
{
	const struct form_kind *kind = &form_kinds[event->kind];

	add_common(line, kind, event, record);
	for (const struct form_field *field = kind->fields; field->word; field++)
		add_field(line, field, event, record);
	if (event->packet)
		add_packet(line, event->packet);
	if (event->why)
		add_why(line, "why", event->why);
	if (event->peer_why)
		add_why(line, "peer_why", event->peer_why);
	line_plain(line, "}");
}
