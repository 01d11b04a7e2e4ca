/* SPDX-License-Identifier: MIT */
/*
 * The opcodes of the Base Transport Header (BTH), and the operations of work requests, as tables.
 * The rest of the engine asks the tables and never looks at the bits of an opcode.
 */
#ifndef SIM_WIRE_OPCODE_H
#define SIM_WIRE_OPCODE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_transport {
	SIM_TRANSPORT_RC = 0x00,
	SIM_TRANSPORT_UC = 0x20,
	SIM_TRANSPORT_RD = 0x40,
	SIM_TRANSPORT_UD = 0x60,
	SIM_TRANSPORT_CNP = 0x80,
	SIM_TRANSPORT_XRC = 0xa0,
	SIM_TRANSPORT_MASK = 0xe0,
};

/* The properties of a packet. A valid opcode has exactly one kind. */
enum sim_opcode_flag {
	SIM_OP_SEND = 1 << 0,
	SIM_OP_WRITE = 1 << 1,
	SIM_OP_READ = 1 << 2,	/* the request */
	SIM_OP_ATOMIC = 1 << 3, /* the request */
	SIM_OP_READ_RESPONSE = 1 << 4,
	SIM_OP_ATOMIC_ACK = 1 << 5,
	SIM_OP_ACK = 1 << 6,
	SIM_OP_RESYNC = 1 << 7,
	SIM_OP_CNP = 1 << 8,
	SIM_OP_KIND = 0x1ff,

	SIM_OP_START = 1 << 9, /* FIRST or ONLY */
	SIM_OP_END = 1 << 10,  /* LAST or ONLY */
	SIM_OP_MIDDLE = 1 << 11,

	SIM_OP_REQUEST = 1 << 12,   /* for the responder; other packets are for the requester */
	SIM_OP_PAYLOAD = 1 << 13,   /* may carry a payload */
	SIM_OP_RECV = 1 << 14,	    /* the responder needs a receive WR for this packet */
	SIM_OP_COMPLETES = 1 << 15, /* this packet completes the receive WR */
	SIM_OP_VALID = 1 << 16,
	SIM_OP_ADD = 1 << 17, /* the atomic is FETCH ADD */
	SIM_OP_STORE =
		1 << 18, /* the atomic is ATOMIC WRITE; without ADD and STORE: COMPARE SWAP */

	/* Extension headers, in their order on the wire. */
	SIM_OP_RDETH = 1 << 20,
	SIM_OP_DETH = 1 << 21,
	SIM_OP_XRCETH = 1 << 22,
	SIM_OP_RETH = 1 << 23,
	SIM_OP_ATOMICETH = 1 << 24,
	SIM_OP_AETH = 1 << 25,
	SIM_OP_ATOMICACKETH = 1 << 26,
	SIM_OP_IMMDT = 1 << 27,
	SIM_OP_IETH = 1 << 28,
};

#define SIM_OP_HEADERS (0x1ffu << 20)

/* Returns the length of an extension header. */
uint8_t sim_header_bytes(enum sim_opcode_flag header);

enum sim_opcode {
	SIM_RC_SEND_FIRST = 0x00,
	SIM_RC_SEND_MIDDLE,
	SIM_RC_SEND_LAST,
	SIM_RC_SEND_LAST_IMM,
	SIM_RC_SEND_ONLY,
	SIM_RC_SEND_ONLY_IMM,
	SIM_RC_WRITE_FIRST,
	SIM_RC_WRITE_MIDDLE,
	SIM_RC_WRITE_LAST,
	SIM_RC_WRITE_LAST_IMM,
	SIM_RC_WRITE_ONLY,
	SIM_RC_WRITE_ONLY_IMM,
	SIM_RC_READ_REQUEST,
	SIM_RC_READ_RESPONSE_FIRST,
	SIM_RC_READ_RESPONSE_MIDDLE,
	SIM_RC_READ_RESPONSE_LAST,
	SIM_RC_READ_RESPONSE_ONLY,
	SIM_RC_ACK,
	SIM_RC_ATOMIC_ACK,
	SIM_RC_COMPARE_SWAP,
	SIM_RC_FETCH_ADD,
	SIM_RC_RESYNC,
	SIM_RC_SEND_LAST_INV,
	SIM_RC_SEND_ONLY_INV,
	SIM_RC_ATOMIC_WRITE = 0x1d,
	SIM_UD_SEND_ONLY = 0x64,
	SIM_UD_SEND_ONLY_IMM = 0x65,
	SIM_CNP = 0x81,
};

struct sim_opcode_info {
	const char *name;     /* "RC SEND_FIRST"; NULL for a reserved value */
	uint32_t flags;	      /* enum sim_opcode_flag */
	uint8_t header_bytes; /* the BTH and all extension headers */
};

/* By opcode. */
extern const struct sim_opcode_info sim_opcodes[256];

/* The bytes that an atomic operation reads and writes. */
#define SIM_ATOMIC_BYTES 8u

/* The position of a packet in its message. */
enum sim_position {
	SIM_AT_MIDDLE,
	SIM_AT_LAST,
	SIM_AT_FIRST,
	SIM_AT_ONLY,
	SIM_POSITIONS,
};

static inline enum sim_position sim_position(bool first, bool last)
{
	return (enum sim_position)(first << 1 | last);
}

/* Opcodes without their transport, by enum ibv_wr_opcode and position. */
extern const uint8_t sim_request_operations[][SIM_POSITIONS];

/*
 * Returns the opcode of one packet of a request. wr_opcode is the operation of the work request:
 * SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ,
 * ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD or ATOMIC_WRITE.
 */
static inline uint8_t sim_opcode_request(enum sim_transport transport, enum ibv_wr_opcode wr_opcode,
					 bool first, bool last)
{
	return transport | sim_request_operations[wr_opcode][sim_position(first, last)];
}

/* Returns the opcode of one packet of a READ response. */
uint8_t sim_opcode_read_response(enum sim_transport transport, bool first, bool last);

/* Returns the enum sim_transport of a QP type; -1 for a type that the engine does not know. */
int sim_transport_of(enum ibv_qp_type type);

/* The properties of a send WR. */
enum sim_wr_flag {
	SIM_WR_LEGAL = 1 << 0,
	SIM_WR_INLINE = 1 << 1,	  /* IBV_SEND_INLINE is allowed */
	SIM_WR_RESPONSE = 1 << 2, /* a response of its own completes the WR: READ and the atomics */
	SIM_WR_LOCAL = 1 << 3,	  /* sends no packet: LOCAL_INV, BIND_MW */
	SIM_WR_REMOTE = 1 << 4,	  /* names remote memory */
	SIM_WR_ATOMIC = 1 << 5,	  /* its response carries SIM_ATOMIC_BYTES */
};

struct sim_wr_info {
	uint8_t flags;	   /* enum sim_wr_flag */
	uint8_t wc_opcode; /* enum ibv_wc_opcode of its completion */
};

struct sim_wr_row {
	uint32_t types; /* the QP types that allow the WR: 1 << enum ibv_qp_type */
	struct sim_wr_info info;
};

extern const struct sim_wr_row sim_wr_rows[]; /* by enum ibv_wr_opcode */
extern const size_t sim_wr_row_count;

/* Returns the row of a WR on a QP of a type. flags is 0 if the QP does not allow the WR. */
static inline const struct sim_wr_info *sim_wr_info(enum ibv_qp_type type, unsigned int wr_opcode)
{
	/* Such a WR completes in error, where wc.opcode has no meaning. No WR completes as TSO. */
	static const struct sim_wr_info none = {.wc_opcode = IBV_WC_TSO};

	if (wr_opcode >= sim_wr_row_count || (unsigned int)type >= 32 ||
	    !(sim_wr_rows[wr_opcode].types & 1u << type))
		return &none;
	return &sim_wr_rows[wr_opcode].info;
}

#endif
