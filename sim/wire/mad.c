/* SPDX-License-Identifier: MIT */
#include "sim/wire/mad.h"

#include <assert.h>
#include <string.h>

const struct sim_cm_message_info sim_cm_message_info[SIM_CM_MESSAGES] = {
#define CM_MESSAGE(message, attribute, about) [SIM_CM_##message] = {#message, about, attribute},
#include "sim/wire/cm_fields.def"
};

#define PLACE(message, byte) \
	(uint16_t)((byte) + (SIM_CM_##message == SIM_CM_NONE ? 0 : SIM_MAD_HEADER_BYTES))

const struct sim_cm_field_info sim_cm_field_info[SIM_CM_FIELDS] = {
#define CM_FIELD(message, field, name, byte, bit, bits)                                           \
	[SIM_CM_##message##_##field] = {name, SIM_CM_##message,	       PLACE(message, byte), bit, \
					bits, ((bit) + (bits) + 7) / 8},
#define CM_BYTES(message, field, name, byte, bytes) \
	[SIM_CM_##message##_##field] = {name, SIM_CM_##message, PLACE(message, byte), 0, 0, bytes},
#include "sim/wire/cm_fields.def"
};

static uint64_t ones(unsigned int bits)
{
	return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

/* The bits behind the field in its last byte. */
static unsigned int shift_of(const struct sim_cm_field_info *info)
{
	return info->bytes * 8u - info->bit - info->bits;
}

static uint64_t load(const uint8_t *at, unsigned int bytes)
{
	uint64_t number = 0;

	for (unsigned int i = 0; i < bytes; i++)
		number = number << 8 | at[i];
	return number;
}

uint64_t sim_mad_get(const uint8_t *mad, enum sim_cm_field field)
{
	const struct sim_cm_field_info *info = &sim_cm_field_info[field];

	assert(info->bits);
	return load(mad + info->byte, info->bytes) >> shift_of(info) & ones(info->bits);
}

void sim_mad_set(uint8_t *mad, enum sim_cm_field field, uint64_t value)
{
	const struct sim_cm_field_info *info = &sim_cm_field_info[field];
	const unsigned int shift = shift_of(info);
	uint8_t *at = mad + info->byte;
	uint64_t number = load(at, info->bytes);

	assert(info->bits);
	number &= ~(ones(info->bits) << shift);
	number |= (value & ones(info->bits)) << shift;
	for (unsigned int i = info->bytes; i > 0; number >>= 8)
		at[--i] = (uint8_t)number;
}

bool sim_mad_fits(enum sim_cm_field field, uint64_t value)
{
	return value <= ones(sim_cm_field_info[field].bits);
}

void sim_mad_put(uint8_t *mad, enum sim_cm_field field, const void *from, size_t length_bytes)
{
	assert(length_bytes <= sim_cm_field_info[field].bytes);
	if (length_bytes)
		memcpy(mad + sim_cm_field_info[field].byte, from, length_bytes);
}

void sim_mad_begin(uint8_t *mad, enum sim_cm_message message, uint64_t transaction_id)
{
	memset(mad, 0, SIM_MAD_BYTES);
	sim_mad_set(mad, SIM_CM_NONE_BASE_VERSION, SIM_MAD_BASE_VERSION);
	sim_mad_set(mad, SIM_CM_NONE_CLASS, SIM_MAD_CLASS_CM);
	sim_mad_set(mad, SIM_CM_NONE_CLASS_VERSION, SIM_MAD_CM_VERSION);
	sim_mad_set(mad, SIM_CM_NONE_METHOD, SIM_MAD_METHOD_SEND);
	sim_mad_set(mad, SIM_CM_NONE_TRANSACTION_ID, transaction_id);
	sim_mad_set(mad, SIM_CM_NONE_ATTRIBUTE_ID, sim_cm_message_info[message].attribute_id);
}

enum sim_cm_message sim_mad_message(const uint8_t *mad)
{
	const uint64_t attribute_id = sim_mad_get(mad, SIM_CM_NONE_ATTRIBUTE_ID);

	for (unsigned int i = SIM_CM_NONE + 1; i < SIM_CM_MESSAGES; i++)
		if (sim_cm_message_info[i].attribute_id == attribute_id)
			return (enum sim_cm_message)i;
	return SIM_CM_NONE;
}
