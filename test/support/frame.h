/* SPDX-License-Identifier: MIT */
/*
 * Frames that a test makes byte by byte and gives to a port, as if a peer had sent them. The encoder
 * shares no code with the engine.
 */
#ifndef TEST_SUPPORT_FRAME_H
#define TEST_SUPPORT_FRAME_H

#include "test/support/support.h"

#define TS_FRAME_BYTES_MAX 4234

/* BTH opcodes of RC beside those of support.h. */
enum {
	TS_SEND_LAST_IMM = 0x03,
	TS_WRITE_LAST_IMM = 0x09,
	TS_WRITE_ONLY_IMM = 0x0b,
	TS_SEND_LAST_INV = 0x16,
	TS_UD = 0x60,
	TS_XRC = 0xa0,
};

/*
 * A packet. The opcode says which headers follow the BTH; the fields of other headers are ignored.
 * Zeroed fields are right: the QPN of the receiver, P_Key 0xffff, version 0, the pad that fits.
 */
struct ts_packet {
	uint8_t opcode;
	uint32_t psn;
	uint32_t dest_qpn;
	uint16_t pkey;
	bool ack_request;
	uint32_t payload_bytes; /* the payload is that of ts_fill(), seed 1 */
	uint64_t remote_addr;	/* RETH, AtomicETH */
	uint32_t rkey;		/* RETH, AtomicETH, IETH */
	uint32_t dma_bytes;	/* RETH */
	uint64_t swap_add, compare;
	uint64_t original; /* AtomicAckETH */
	uint8_t syndrome;  /* AETH */
	uint32_t msn;
	uint32_t imm; /* host order */
	uint32_t qkey, source_qpn;
	uint32_t xrc_srqn;

	/* Wrong on purpose. */
	uint8_t version;
	uint8_t more_pad;   /* added to the pad count, modulo 4 */
	uint32_t cut_bytes; /* cut off before the ICRC; the lengths follow; a multiple of 4 */
	bool wrong_icrc;    /* and a right VCRC */
	bool wrong_vcrc;    /* InfiniBand */
	const union ibv_gid *source; /* instead of the sender's GID (Ethernet) */
	const union ibv_gid *dest;   /* instead of the receiver's GID (Ethernet) */
};

/* Writes the frame of a packet from one end to another. Returns its length. */
size_t ts_frame(const struct ts_end *from, const struct ts_end *to, const struct ts_packet *packet,
		uint8_t frame[TS_FRAME_BYTES_MAX]);

/* Gives the packet to the port of `to`. */
void ts_inject_at(struct vt_at at, const struct ts_end *from, const struct ts_end *to,
		  const struct ts_packet *packet);
#define ts_inject(from, to, ...) ts_inject_at(VT_HERE, from, to, &(struct ts_packet){__VA_ARGS__})

/* Returns how many packets a node has dropped for a cause, or for all causes if cause is NULL. */
uint64_t ts_drops(struct vt *t, struct vt_node *node, const char *cause);

#endif
