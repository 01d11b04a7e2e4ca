/* SPDX-License-Identifier: MIT */
#include "sim/wire/opcode.h"

#include <assert.h>
#include <stddef.h>

/*
 * Sources. Opcode values and names: Linux include/rdma/ib_pack.h (IB_OPCODE_*); XRC is 0xa0 with the
 * operations of RC, as in Wireshark epan/dissectors/packet-infiniband.c. Extension headers: Linux
 * drivers/infiniband/sw/rxe/rxe_opcode.c; requests of XRC have an XRCETH before all others.
 */

/* Sizes of the BTH and the extension headers: Linux drivers/infiniband/sw/rxe/rxe_hdr.h. */
#define HEADER_BYTES(flags)                                                       \
	(12 + ((flags)&SIM_OP_RDETH ? 4 : 0) + ((flags)&SIM_OP_DETH ? 8 : 0) +    \
	 ((flags)&SIM_OP_XRCETH ? 4 : 0) + ((flags)&SIM_OP_RETH ? 16 : 0) +       \
	 ((flags)&SIM_OP_ATOMICETH ? 28 : 0) + ((flags)&SIM_OP_AETH ? 4 : 0) +    \
	 ((flags)&SIM_OP_ATOMICACKETH ? 8 : 0) + ((flags)&SIM_OP_IMMDT ? 4 : 0) + \
	 ((flags)&SIM_OP_IETH ? 4 : 0))

#define ROW(text, bits)                                         \
	{                                                       \
		.name = (text), .flags = (bits) | SIM_OP_VALID, \
		.header_bytes = HEADER_BYTES(bits),             \
	}

/* A row of a transport and an operation, which is the opcode's value on RC. */
#define OP(transport, operation, text, bits) \
	[SIM_TRANSPORT_##transport | (operation)] = ROW(#transport " " text, bits)

enum {
	FIRST = SIM_OP_START,
	MIDDLE = SIM_OP_MIDDLE,
	LAST = SIM_OP_END,
	ONLY = SIM_OP_START | SIM_OP_END,

	SEND = SIM_OP_SEND | SIM_OP_REQUEST | SIM_OP_PAYLOAD,
	WRITE = SIM_OP_WRITE | SIM_OP_REQUEST | SIM_OP_PAYLOAD,
	RESPONSE = SIM_OP_READ_RESPONSE | SIM_OP_PAYLOAD,
	ATOMIC = SIM_OP_ATOMIC | SIM_OP_REQUEST | SIM_OP_ATOMICETH | ONLY,
	STORE = SIM_OP_ATOMIC | SIM_OP_STORE | SIM_OP_REQUEST | SIM_OP_PAYLOAD | SIM_OP_RETH | ONLY,

	TAKES = SIM_OP_RECV,
	ENDS = SIM_OP_COMPLETES,
	IMM = SIM_OP_IMMDT,
	INV = SIM_OP_IETH,
	RETH = SIM_OP_RETH,
};

/* The rows of RC, UC, RD and XRC. more: the headers that the transport adds. */
#define SENDS_AND_WRITES(t, more)                                                             \
	OP(t, SIM_RC_SEND_FIRST, "SEND_FIRST", SEND | FIRST | TAKES | (more)),                \
		OP(t, SIM_RC_SEND_MIDDLE, "SEND_MIDDLE", SEND | MIDDLE | (more)),             \
		OP(t, SIM_RC_SEND_LAST, "SEND_LAST", SEND | LAST | ENDS | (more)),            \
		OP(t, SIM_RC_SEND_LAST_IMM, "SEND_LAST_WITH_IMMEDIATE",                       \
		   SEND | LAST | ENDS | IMM | (more)),                                        \
		OP(t, SIM_RC_SEND_ONLY, "SEND_ONLY", SEND | ONLY | TAKES | ENDS | (more)),    \
		OP(t, SIM_RC_SEND_ONLY_IMM, "SEND_ONLY_WITH_IMMEDIATE",                       \
		   SEND | ONLY | TAKES | ENDS | IMM | (more)),                                \
		OP(t, SIM_RC_WRITE_FIRST, "RDMA_WRITE_FIRST", WRITE | FIRST | RETH | (more)), \
		OP(t, SIM_RC_WRITE_MIDDLE, "RDMA_WRITE_MIDDLE", WRITE | MIDDLE | (more)),     \
		OP(t, SIM_RC_WRITE_LAST, "RDMA_WRITE_LAST", WRITE | LAST | (more)),           \
		OP(t, SIM_RC_WRITE_LAST_IMM, "RDMA_WRITE_LAST_WITH_IMMEDIATE",                \
		   WRITE | LAST | TAKES | ENDS | IMM | (more)),                               \
		OP(t, SIM_RC_WRITE_ONLY, "RDMA_WRITE_ONLY", WRITE | ONLY | RETH | (more)),    \
		OP(t, SIM_RC_WRITE_ONLY_IMM, "RDMA_WRITE_ONLY_WITH_IMMEDIATE",                \
		   WRITE | ONLY | RETH | TAKES | ENDS | IMM | (more))

/* The rows of RC, RD and XRC. more, back: the headers that the transport adds to requests and to
 * responses. */
#define READS_AND_ATOMICS(t, more, back)                                                    \
	OP(t, SIM_RC_READ_REQUEST, "RDMA_READ_REQUEST",                                     \
	   SIM_OP_READ | SIM_OP_REQUEST | ONLY | RETH | (more)),                            \
		OP(t, SIM_RC_READ_RESPONSE_FIRST, "RDMA_READ_RESPONSE_FIRST",               \
		   RESPONSE | FIRST | SIM_OP_AETH | (back)),                                \
		OP(t, SIM_RC_READ_RESPONSE_MIDDLE, "RDMA_READ_RESPONSE_MIDDLE",             \
		   RESPONSE | MIDDLE | (back)),                                             \
		OP(t, SIM_RC_READ_RESPONSE_LAST, "RDMA_READ_RESPONSE_LAST",                 \
		   RESPONSE | LAST | SIM_OP_AETH | (back)),                                 \
		OP(t, SIM_RC_READ_RESPONSE_ONLY, "RDMA_READ_RESPONSE_ONLY",                 \
		   RESPONSE | ONLY | SIM_OP_AETH | (back)),                                 \
		OP(t, SIM_RC_ACK, "ACKNOWLEDGE", SIM_OP_ACK | ONLY | SIM_OP_AETH | (back)), \
		OP(t, SIM_RC_ATOMIC_ACK, "ATOMIC_ACKNOWLEDGE",                              \
		   SIM_OP_ATOMIC_ACK | ONLY | SIM_OP_AETH | SIM_OP_ATOMICACKETH | (back)),  \
		OP(t, SIM_RC_COMPARE_SWAP, "COMPARE_SWAP", ATOMIC | (more)),                \
		OP(t, SIM_RC_FETCH_ADD, "FETCH_ADD", ATOMIC | SIM_OP_ADD | (more))

#define INVALIDATES(t, more)                                             \
	OP(t, SIM_RC_SEND_LAST_INV, "SEND_LAST_WITH_INVALIDATE",         \
	   SEND | LAST | ENDS | INV | (more)),                           \
		OP(t, SIM_RC_SEND_ONLY_INV, "SEND_ONLY_WITH_INVALIDATE", \
		   SEND | ONLY | TAKES | ENDS | INV | (more))

uint8_t sim_header_bytes(enum sim_opcode_flag header)
{
	return (uint8_t)(HEADER_BYTES((uint32_t)header) - HEADER_BYTES(0u));
}

/*
 * The engine does not know FLUSH (0x1c), which is reserved here. The 16 reserved bytes behind the
 * BTH of a CNP are its payload, which the sender fills with zeros.
 */
const struct sim_opcode_info sim_opcodes[256] = {
	SENDS_AND_WRITES(RC, 0),
	READS_AND_ATOMICS(RC, 0, 0),
	INVALIDATES(RC, 0),
	OP(RC, SIM_RC_ATOMIC_WRITE, "ATOMIC_WRITE", STORE),

	SENDS_AND_WRITES(UC, 0),

	SENDS_AND_WRITES(RD, SIM_OP_RDETH | SIM_OP_DETH),
	READS_AND_ATOMICS(RD, SIM_OP_RDETH | SIM_OP_DETH, SIM_OP_RDETH),
	OP(RD, SIM_RC_RESYNC, "RESYNC",
	   SIM_OP_RESYNC | SIM_OP_REQUEST | ONLY | SIM_OP_RDETH | SIM_OP_DETH),

	OP(UD, SIM_RC_SEND_ONLY, "SEND_ONLY", SEND | ONLY | TAKES | ENDS | SIM_OP_DETH),
	OP(UD, SIM_RC_SEND_ONLY_IMM, "SEND_ONLY_WITH_IMMEDIATE",
	   SEND | ONLY | TAKES | ENDS | IMM | SIM_OP_DETH),

	[SIM_CNP] = ROW("CNP", SIM_OP_CNP | ONLY | SIM_OP_PAYLOAD),

	SENDS_AND_WRITES(XRC, SIM_OP_XRCETH),
	READS_AND_ATOMICS(XRC, SIM_OP_XRCETH, 0),
	INVALIDATES(XRC, SIM_OP_XRCETH),
	OP(XRC, SIM_RC_ATOMIC_WRITE, "ATOMIC_WRITE", STORE | SIM_OP_XRCETH),
};

#define ONE_PACKET(operation)                              \
	{                                                  \
		operation, operation, operation, operation \
	}

/* By position: middle, last, first, only. */
const uint8_t sim_request_operations[][SIM_POSITIONS] = {
	[IBV_WR_SEND] = {SIM_RC_SEND_MIDDLE, SIM_RC_SEND_LAST, SIM_RC_SEND_FIRST, SIM_RC_SEND_ONLY},
	[IBV_WR_SEND_WITH_IMM] = {SIM_RC_SEND_MIDDLE, SIM_RC_SEND_LAST_IMM, SIM_RC_SEND_FIRST,
				  SIM_RC_SEND_ONLY_IMM},
	[IBV_WR_SEND_WITH_INV] = {SIM_RC_SEND_MIDDLE, SIM_RC_SEND_LAST_INV, SIM_RC_SEND_FIRST,
				  SIM_RC_SEND_ONLY_INV},
	[IBV_WR_RDMA_WRITE] = {SIM_RC_WRITE_MIDDLE, SIM_RC_WRITE_LAST, SIM_RC_WRITE_FIRST,
			       SIM_RC_WRITE_ONLY},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {SIM_RC_WRITE_MIDDLE, SIM_RC_WRITE_LAST_IMM,
					SIM_RC_WRITE_FIRST, SIM_RC_WRITE_ONLY_IMM},
	[IBV_WR_RDMA_READ] = ONE_PACKET(SIM_RC_READ_REQUEST),
	[IBV_WR_ATOMIC_CMP_AND_SWP] = ONE_PACKET(SIM_RC_COMPARE_SWAP),
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = ONE_PACKET(SIM_RC_FETCH_ADD),
	[IBV_WR_ATOMIC_WRITE] = ONE_PACKET(SIM_RC_ATOMIC_WRITE),
};

static const uint8_t response_operations[SIM_POSITIONS] = {
	[SIM_AT_FIRST] = SIM_RC_READ_RESPONSE_FIRST,
	[SIM_AT_MIDDLE] = SIM_RC_READ_RESPONSE_MIDDLE,
	[SIM_AT_LAST] = SIM_RC_READ_RESPONSE_LAST,
	[SIM_AT_ONLY] = SIM_RC_READ_RESPONSE_ONLY,
};

uint8_t sim_opcode_read_response(enum sim_transport transport, bool first, bool last)
{
	uint8_t opcode = transport | response_operations[sim_position(first, last)];

	assert(sim_opcodes[opcode].flags & SIM_OP_READ_RESPONSE);
	return opcode;
}

int sim_transport_of(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return SIM_TRANSPORT_RC;
	case IBV_QPT_UC:
		return SIM_TRANSPORT_UC;
	case IBV_QPT_UD:
		return SIM_TRANSPORT_UD;
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SIM_TRANSPORT_XRC;
	default:
		return -1;
	}
}

enum {
	ON_RC = 1 << IBV_QPT_RC | 1 << IBV_QPT_XRC_SEND,
	ON_CONNECTED = ON_RC | 1 << IBV_QPT_UC,
	ON_ANY = ON_CONNECTED | 1 << IBV_QPT_UD,

	SENDS = SIM_WR_LEGAL | SIM_WR_INLINE,
	WRITES = SENDS | SIM_WR_REMOTE,
	READS = SIM_WR_LEGAL | SIM_WR_RESPONSE | SIM_WR_REMOTE,
	ATOMICS = READS | SIM_WR_ATOMIC,
	LOCALS = SIM_WR_LEGAL | SIM_WR_LOCAL,
};

/*
 * QP types and IBV_SEND_INLINE: ibv_post_send(3). One difference: the page allows SEND_WITH_INV on
 * UC, but UC has no opcode for it (Linux include/rdma/ib_pack.h), so UC refuses it here.
 */
const struct sim_wr_row sim_wr_rows[] = {
	[IBV_WR_SEND] = {ON_ANY, {SENDS, IBV_WC_SEND}},
	[IBV_WR_SEND_WITH_IMM] = {ON_ANY, {SENDS, IBV_WC_SEND}},
	[IBV_WR_SEND_WITH_INV] = {ON_RC, {SENDS, IBV_WC_SEND}},
	[IBV_WR_RDMA_WRITE] = {ON_CONNECTED, {WRITES, IBV_WC_RDMA_WRITE}},
	[IBV_WR_RDMA_WRITE_WITH_IMM] = {ON_CONNECTED, {WRITES, IBV_WC_RDMA_WRITE}},
	[IBV_WR_RDMA_READ] = {ON_RC, {READS, IBV_WC_RDMA_READ}},
	[IBV_WR_ATOMIC_CMP_AND_SWP] = {ON_RC, {ATOMICS, IBV_WC_COMP_SWAP}},
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = {ON_RC, {ATOMICS, IBV_WC_FETCH_ADD}},
	[IBV_WR_LOCAL_INV] = {ON_CONNECTED, {LOCALS, IBV_WC_LOCAL_INV}},
	[IBV_WR_BIND_MW] = {ON_CONNECTED, {LOCALS, IBV_WC_BIND_MW}},
	[IBV_WR_ATOMIC_WRITE] = {ON_RC, {READS | SIM_WR_INLINE, IBV_WC_ATOMIC_WRITE}},
};

const size_t sim_wr_row_count = sizeof(sim_wr_rows) / sizeof(sim_wr_rows[0]);
