/* SPDX-License-Identifier: MIT */
#include "src/log/form.h"

#define KEY(word) ",\"" word "\":"

/* All fields, in the order of the rows. An empty row stands before those of each kind. */
static const struct form_field fields[] = {
#define VB_EVENT(number, name, word, about) {0},
#define VB_FIELD(value, word, form, about) \
	{word, KEY(word), sizeof(KEY(word)) - 1, FORM_##form, value, about},
#include <verbena/events.def>
	{0},
};

/* BEFORE_X is the index in fields of the empty row before those of the kind X. */
#define PASTE(a, b) a##b
#define ROW(line)   PASTE(ROW_, line)
enum {
#define VB_EVENT(number, name, word, about) BEFORE_##name,
#define VB_FIELD(value, word, form, about)  ROW(__LINE__),
#include <verbena/events.def>
};

const struct form_kind form_kinds[FORM_KINDS] = {
#define VB_EVENT(number, name, word, about) [number] = {word, about, fields + BEFORE_##name + 1},
#include <verbena/events.def>
};

const struct form_packet_field form_packet_fields[] = {
#define VB_PACKET_FIELD(word, member, form, has, about) {word, FORM_##form, has, about},
#include <verbena/events.def>
	{0},
};
