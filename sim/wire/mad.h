/* SPDX-License-Identifier: MIT */
/*
 * Management datagrams (MADs) of the connection manager: 256 bytes in a UD SEND from QP 1 to QP 1.
 * sim/wire/cm_fields.def says where each field stands.
 */
#ifndef SIM_WIRE_MAD_H
#define SIM_WIRE_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_MAD_BYTES	     256u
#define SIM_MAD_HEADER_BYTES 24u

/* The general services QP of each port, and its Q_Key. */
#define SIM_GSI_QPN  1u
#define SIM_GSI_QKEY 0x80010000u

enum {
	SIM_MAD_BASE_VERSION = 1,
	SIM_MAD_CLASS_CM = 0x07,
	SIM_MAD_CM_VERSION = 2,
	SIM_MAD_METHOD_SEND = 0x03,
};

enum sim_cm_message {
#define CM_MESSAGE(message, attribute, about) SIM_CM_##message,
#include "sim/wire/cm_fields.def"
	SIM_CM_MESSAGES,
};

/* SIM_CM_REQ_QPN is the field QPN of the REQ; SIM_CM_NONE_CLASS is one of the header. */
enum sim_cm_field {
#define CM_FIELD(message, field, name, byte, bit, bits) SIM_CM_##message##_##field,
#define CM_BYTES(message, field, name, byte, bytes)	SIM_CM_##message##_##field,
#include "sim/wire/cm_fields.def"
	SIM_CM_FIELDS,
};

struct sim_cm_message_info {
	const char *name;
	const char *about;
	uint16_t attribute_id;
};

struct sim_cm_field_info {
	const char *name;
	enum sim_cm_message message;
	uint16_t byte; /* from the beginning of the MAD */
	uint8_t bit;
	uint8_t bits; /* 0: bytes without a byte order */
	uint16_t bytes;
};

extern const struct sim_cm_message_info sim_cm_message_info[SIM_CM_MESSAGES];
extern const struct sim_cm_field_info sim_cm_field_info[SIM_CM_FIELDS];

/* Returns the number in a field of at most 64 bits. */
uint64_t sim_mad_get(const uint8_t *mad, enum sim_cm_field field);

/* Stores the low bits of a value. */
void sim_mad_set(uint8_t *mad, enum sim_cm_field field, uint64_t value);

/* Returns true if the field can hold the number. */
bool sim_mad_fits(enum sim_cm_field field, uint64_t value);

/* Returns the bytes of a field. */
static inline const uint8_t *sim_mad_bytes(const uint8_t *mad, enum sim_cm_field field)
{
	return mad + sim_cm_field_info[field].byte;
}

/* Copies bytes to the beginning of a field; the field is as long or longer. */
void sim_mad_put(uint8_t *mad, enum sim_cm_field field, const void *from, size_t length_bytes);

/* Writes the header of a message, and zeros behind it. */
void sim_mad_begin(uint8_t *mad, enum sim_cm_message message, uint64_t transaction_id);

/* The message that a REJ or an MRA answers: Linux drivers/infiniband/core/cm.c, enum cm_msg_response. */
enum sim_cm_answered {
	SIM_CM_ANSWERS_REQ = 0,
	SIM_CM_ANSWERS_REP = 1,
	SIM_CM_ANSWERS_OTHER = 2,
};

/* Returns the message of a MAD by its attribute ID; SIM_CM_NONE if no message has the ID. */
enum sim_cm_message sim_mad_message(const uint8_t *mad);

#endif
