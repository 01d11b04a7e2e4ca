/* SPDX-License-Identifier: MIT */
/*
 * The fields of events as data, from the rows of <verbena/events.def>.
 */
#ifndef SRC_LOG_FORM_H
#define SRC_LOG_FORM_H

#include <stddef.h>
#include <verbena/event.h>

/* How a field is written. */
enum form {
	FORM_DECIMAL,
	FORM_SIGNED,
	FORM_HEX,
	FORM_HEX_NOT_0,
	FORM_BOOL,
	FORM_FLAG,
	FORM_GID,
	FORM_SYNDROME,
	FORM_NAME_STATE,
	FORM_NAME_STATUS,
	FORM_NAME_WC,
	FORM_NAME_ASYNC,
	FORM_NAME_OPCODE,
	FORM_FLAGS_WC,
	FORM_TEXT,
	FORM_ARGUMENTS,
	FORM_RESULT,
};

struct form_field {
	const char *word;
	const char *key; /* ,"word": */
	size_t key_bytes;
	enum form form;
	unsigned int value; /* the index in values or texts */
	const char *about;
};

struct form_kind {
	const char *word; /* the "kind"; NULL: no kind has this number */
	const char *about;
	const struct form_field *fields; /* ends with a NULL word */
};

/* A field of the object "packet". */
struct form_packet_field {
	const char *word;
	enum form form;
	unsigned int has; /* enum vb_packet_has; 0: every packet has the field */
	const char *about;
};

#define FORM_KINDS 32

/* By the number of the kind, enum vb_event_kind. */
extern const struct form_kind form_kinds[FORM_KINDS];

/* Ends with a NULL word. */
extern const struct form_packet_field form_packet_fields[];

#endif /* SRC_LOG_FORM_H */
