/* SPDX-License-Identifier: MIT */
/*
 * The fields of the BTH and of the extension headers, and where each stands in the bytes of a
 * packet.
 */
#ifndef SIM_WIRE_FIELD_H
#define SIM_WIRE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_field {
	SIM_FIELD_OPCODE,
	SIM_FIELD_SOLICITED,
	SIM_FIELD_PAD,
	SIM_FIELD_VERSION,
	SIM_FIELD_PKEY,
	SIM_FIELD_DEST_QPN,
	SIM_FIELD_ACK_REQUEST,
	SIM_FIELD_PSN,
	SIM_FIELD_SYNDROME,    /* AETH */
	SIM_FIELD_MSN,	       /* AETH */
	SIM_FIELD_REMOTE_ADDR, /* RETH, AtomicETH */
	SIM_FIELD_RKEY,	       /* RETH, AtomicETH, IETH */
	SIM_FIELD_DMA_BYTES,   /* RETH */
	SIM_FIELD_SWAP_ADD,    /* AtomicETH */
	SIM_FIELD_COMPARE,     /* AtomicETH */
	SIM_FIELD_ORIGINAL,    /* AtomicAckETH */
	SIM_FIELD_QKEY,	       /* DETH */
	SIM_FIELD_SOURCE_QPN,  /* DETH */
	SIM_FIELD_IMM_DATA,    /* ImmDt */
	SIM_FIELD_XRC_SRQN,    /* XRCETH */
	SIM_FIELDS,
};

/* A change of a number: sets the bits of `mask` to those of `value`, and then inverts the bits of `flip`. */
struct sim_bits {
	uint64_t value;
	uint64_t mask;
	uint64_t flip;
};

static inline uint64_t sim_bits_change(const struct sim_bits *bits, uint64_t number)
{
	return ((number & ~bits->mask) | (bits->value & bits->mask)) ^ bits->flip;
}

/* Where a field stands: the lowest bit of a big-endian number of whole bytes, shifted. */
struct sim_field_place {
	uint32_t header; /* enum sim_opcode_flag of the extension header; 0: the BTH */
	uint8_t offset;	 /* of the number's first byte, in its header */
	uint8_t bytes;
	uint8_t shift;
	uint8_t bits;
};

/* Finds a field in the packets of an opcode; *offset counts from the BTH. NULL if they do not have
 * the field. */
const struct sim_field_place *sim_field_find(uint8_t opcode, enum sim_field field, size_t *offset);

/* Returns the widest value of a field. */
uint64_t sim_field_max(enum sim_field field);

/* Changes a field. bth is the packet's BTH; offset and place are those of sim_field_find(). */
void sim_field_change(uint8_t *bth, const struct sim_field_place *place, size_t offset,
		      const struct sim_bits *bits);

#endif
