/* SPDX-License-Identifier: MIT */
#include "sim/wire/field.h"

#include "sim/wire/opcode.h"
#include "sim/wire/packet_layout.h"

/* The places are those of sim/wire/packet_encode.c. */
static const struct {
	enum sim_field field;
	struct sim_field_place place;
} rows[] = {
	{SIM_FIELD_OPCODE, {0, 0, 1, 0, 8}},
	{SIM_FIELD_SOLICITED, {0, 1, 1, 7, 1}},
	{SIM_FIELD_PAD, {0, 1, 1, BTH_PAD_SHIFT, 2}},
	{SIM_FIELD_VERSION, {0, 1, 1, 0, 4}},
	{SIM_FIELD_PKEY, {0, 2, 2, 0, 16}},
	{SIM_FIELD_DEST_QPN, {0, 5, 3, 0, 24}},
	{SIM_FIELD_ACK_REQUEST, {0, 8, 1, 7, 1}},
	{SIM_FIELD_PSN, {0, 9, 3, 0, 24}},
	{SIM_FIELD_SYNDROME, {SIM_OP_AETH, 0, 1, 0, 8}},
	{SIM_FIELD_MSN, {SIM_OP_AETH, 1, 3, 0, 24}},
	{SIM_FIELD_REMOTE_ADDR, {SIM_OP_RETH, 0, 8, 0, 64}},
	{SIM_FIELD_REMOTE_ADDR, {SIM_OP_ATOMICETH, 0, 8, 0, 64}},
	{SIM_FIELD_RKEY, {SIM_OP_RETH, 8, 4, 0, 32}},
	{SIM_FIELD_RKEY, {SIM_OP_ATOMICETH, 8, 4, 0, 32}},
	{SIM_FIELD_RKEY, {SIM_OP_IETH, 0, 4, 0, 32}},
	{SIM_FIELD_DMA_BYTES, {SIM_OP_RETH, 12, 4, 0, 32}},
	{SIM_FIELD_SWAP_ADD, {SIM_OP_ATOMICETH, 12, 8, 0, 64}},
	{SIM_FIELD_COMPARE, {SIM_OP_ATOMICETH, 20, 8, 0, 64}},
	{SIM_FIELD_ORIGINAL, {SIM_OP_ATOMICACKETH, 0, 8, 0, 64}},
	{SIM_FIELD_QKEY, {SIM_OP_DETH, 0, 4, 0, 32}},
	{SIM_FIELD_SOURCE_QPN, {SIM_OP_DETH, 5, 3, 0, 24}},
	{SIM_FIELD_IMM_DATA, {SIM_OP_IMMDT, 0, 4, 0, 32}},
	{SIM_FIELD_XRC_SRQN, {SIM_OP_XRCETH, 1, 3, 0, 24}},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Returns the offset, from the BTH, of an extension header of an opcode. */
static size_t header_offset(uint32_t flags, uint32_t header)
{
	size_t offset = BTH_BYTES;

	for (uint32_t bit = SIM_OP_RDETH; bit != header; bit <<= 1)
		if (flags & bit)
			offset += sim_header_bytes(bit);
	return offset;
}

const struct sim_field_place *sim_field_find(uint8_t opcode, enum sim_field field, size_t *offset)
{
	const uint32_t flags = sim_opcodes[opcode].flags;

	for (size_t i = 0; i < ROWS; i++) {
		const struct sim_field_place *place = &rows[i].place;

		if (rows[i].field != field || (place->header && !(flags & place->header)))
			continue;
		*offset = place->offset + (place->header ? header_offset(flags, place->header) : 0);
		return place;
	}
	return NULL;
}

static uint64_t ones(unsigned int bits)
{
	return bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

uint64_t sim_field_max(enum sim_field field)
{
	size_t i = 0;

	while (rows[i].field != field)
		i++;
	return ones(rows[i].place.bits);
}

void sim_field_change(uint8_t *bth, const struct sim_field_place *place, size_t offset,
		      const struct sim_bits *bits)
{
	uint8_t *at = bth + offset;
	uint64_t number = 0, field;

	for (unsigned int i = 0; i < place->bytes; i++)
		number = number << 8 | at[i];
	field = number >> place->shift & ones(place->bits);
	number ^= ((field ^ sim_bits_change(bits, field)) & ones(place->bits)) << place->shift;
	for (unsigned int i = place->bytes; i > 0; number >>= 8)
		at[--i] = (uint8_t)number;
}
