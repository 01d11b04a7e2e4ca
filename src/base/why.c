/* SPDX-License-Identifier: MIT */
/* Reasons as sentences. */
#include "src/base/why.h"

#include "src/base/bits.h"
#include "src/base/count.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>
#include <verbena/why.h>

#define WORDS_BYTES 512 /* of a value as text: the names of all bits of a mask, or why->text */

static const struct vb_reason_info reasons[] = {
#define VB_REFUSAL(number, name, error, cause, remedy, source) \
	{VB_WHY_##name, #name, error, 0, cause, remedy, source},
#define VB_FAILURE(number, name, status, cause, remedy, source) \
	{VB_WHY_##name, #name, 0, status, cause, remedy, source},
#define VB_LOSS(number, name, cause, remedy, source) \
	{VB_WHY_##name, #name, 0, 0, cause, remedy, source},
#include <verbena/reasons.def>
};

const struct vb_reason_info *vb_reason_info(enum vb_reason reason)
{
	for (size_t i = 0; i < COUNT(reasons); i++)
		if (reasons[i].reason == reason)
			return &reasons[i];
	return NULL;
}

const struct vb_reason_info *vb_reason_at(unsigned int index)
{
	return index < COUNT(reasons) ? &reasons[index] : NULL;
}

/* --- values as text --- */

typedef void write_fn(const struct vb_why *why, unsigned int value, char *text, size_t size_bytes);

static void write_decimal(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "%" PRId64, (int64_t)why->values[value]);
}

static void write_hex(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "0x%" PRIx64, why->values[value]);
}

static void write_bytes(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	const uint64_t bytes = why->values[value];

	snprintf(text, size, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
}

static void write_ns(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
	const uint64_t ns = why->values[value];
	size_t unit = 0;

	while (unit < COUNT(units) - 1 && ns < units[unit].ns)
		unit++;
	snprintf(text, size, "%.6g %s", (double)ns / (double)units[unit].ns, units[unit].name);
}

static void write_mtu(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "%u", vb_mtu_to_bytes((enum ibv_mtu)why->values[value]));
}

static void write_state(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "%s", vb_qp_state_str((enum ibv_qp_state)why->values[value]));
}

static void write_type(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "%s", vb_qp_type_str((enum ibv_qp_type)why->values[value]));
}

static void write_wr(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "%s", vb_wr_opcode_str((enum ibv_wr_opcode)why->values[value]));
}

static void write_status(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	snprintf(text, size, "%s", vb_wc_status_name((enum ibv_wc_status)why->values[value]));
}

static void write_errno(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	const int error = (int)why->values[value];

	if (strerrorname_np(error))
		snprintf(text, size, "%s (%s)", strerrorname_np(error), strerrordesc_np(error));
	else
		snprintf(text, size, "the unknown errno %d", error);
}

/* Both halves of a GID are in network order. */
static void write_gid(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	if (value + 1 >= VB_WHY_VALUES ||
	    !inet_ntop(AF_INET6, &why->values[value], text, (socklen_t)size))
		text[0] = '\0';
}

static void write_text(const struct vb_why *why, unsigned int value, char *text, size_t size)
{
	(void)value;
	snprintf(text, size, "%s", why->text ? why->text : "");
}

/* A kind has a function or the names of the bits of a mask. */
static const struct {
	const char *kind;
	write_fn *write;
	const struct bit_name *bits;
} kinds[] = {
	{"d", write_decimal, NULL},	   {"x", write_hex, NULL},
	{"bytes", write_bytes, NULL},	   {"ns", write_ns, NULL},
	{"mtu", write_mtu, NULL},	   {"state", write_state, NULL},
	{"type", write_type, NULL},	   {"wr", write_wr, NULL},
	{"status", write_status, NULL},	   {"errno", write_errno, NULL},
	{"gid", write_gid, NULL},	   {"text", write_text, NULL},
	{"mask", NULL, bits_qp_attr},	   {"access", NULL, bits_access},
	{"flags", NULL, bits_send_flags},  {"cap", NULL, bits_device_cap},
	{"wc_flags", NULL, bits_wc_flags}, {"qpinit", NULL, bits_qp_init},
	{"create", NULL, bits_qp_create},  {"ops", NULL, bits_send_ops},
	{"open", NULL, bits_qp_open},	   {"srqinit", NULL, bits_srq_init},
};

/* --- sentences --- */

struct sentence {
	char *text;
	size_t size_bytes;
	size_t used;
};

static void add(struct sentence *sentence, const char *words, size_t length_bytes)
{
	const size_t room = sentence->size_bytes - sentence->used - 1;

	if (length_bytes > room)
		length_bytes = room;
	memcpy(sentence->text + sentence->used, words, length_bytes);
	sentence->used += length_bytes;
	sentence->text[sentence->used] = '\0';
}

/* The placeholder {N:n NOUN} counts things. */
#define COUNTED "n "

static void write_count(uint64_t count, const char *noun, int noun_bytes, char *text, size_t size)
{
	snprintf(text, size, "%" PRIu64 " %.*s%s", count, noun_bytes, noun, count == 1 ? "" : "s");
}

static void write_value(const struct vb_why *why, unsigned int value, const char *kind,
			size_t kind_bytes, char *text, size_t size)
{
	const size_t noun = sizeof(COUNTED) - 1;

	text[0] = '\0';
	if (!strncmp(kind, COUNTED, noun)) {
		write_count(why->values[value], kind + noun, (int)(kind_bytes - noun), text, size);
		return;
	}
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (strlen(kinds[i].kind) != kind_bytes ||
		    strncmp(kinds[i].kind, kind, kind_bytes) != 0)
			continue;
		if (kinds[i].bits)
			bits_text(kinds[i].bits, why->values[value], text, size);
		else
			kinds[i].write(why, value, text, size);
	}
}

/* Adds the value of the placeholder that begins at @at, or "?" without values, and returns its end. */
static const char *add_value(struct sentence *sentence, const struct vb_why *why, const char *at)
{
	const char *kind = strchr(at, ':') + 1, *end = strchr(kind, '}');
	const unsigned int value = (unsigned int)strtoul(at + 1, NULL, 10);
	char words[WORDS_BYTES];

	if (!why) {
		add(sentence, "?", 1);
		return end + 1;
	}
	write_value(why, value, kind, (size_t)(end - kind), words, sizeof(words));
	add(sentence, words, strlen(words));
	return end + 1;
}

static void add_template(struct sentence *sentence, const struct vb_why *why, const char *template)
{
	while (*template) {
		const size_t plain = strcspn(template, "{");

		add(sentence, template, plain);
		template += plain;
		if (*template)
			template = add_value(sentence, why, template);
	}
}

static const char *write_template(const char *template, const struct vb_why *why, char *text,
				  size_t size_bytes)
{
	struct sentence sentence = {text, size_bytes, 0};

	text[0] = '\0';
	add_template(&sentence, why, template);
	return text;
}

const char *why_cause(const struct vb_why *why, char *text, size_t size_bytes)
{
	const struct vb_reason_info *info = vb_reason_info(why->reason);

	return write_template(info ? info->cause : "", why, text, size_bytes);
}

const char *why_remedy(const struct vb_why *why, char *text, size_t size_bytes)
{
	const struct vb_reason_info *info = vb_reason_info(why->reason);

	return write_template(info ? info->remedy : "", why, text, size_bytes);
}

const char *why_row(enum vb_reason reason, char *text, size_t size_bytes)
{
	const struct vb_reason_info *info = vb_reason_info(reason);

	return write_template(info ? info->cause : "", NULL, text, size_bytes);
}

const char *vb_why_text(const struct vb_why *why, char *text, size_t size_bytes)
{
	const struct vb_reason_info *info = vb_reason_info(why->reason);
	struct sentence sentence = {text, size_bytes, 0};

	if (!size_bytes)
		return text;
	text[0] = '\0';
	if (!info)
		return text;
	if (why->verb) {
		add(&sentence, why->verb, strlen(why->verb));
		add(&sentence, ": ", 2);
	}
	add_template(&sentence, why, info->cause);
	if (info->remedy[0])
		add(&sentence, "; ", 2);
	add_template(&sentence, why, info->remedy);
	return text;
}
