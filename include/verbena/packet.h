/* SPDX-License-Identifier: MIT */
/*
 * A packet of RoCE v2, RoCE v1 or InfiniBand, decoded: what its headers say.
 */
#ifndef VERBENA_PACKET_H
#define VERBENA_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which fields of struct vb_packet the packet has. */
enum vb_packet_has {
	VB_PACKET_HAS_GIDS = 1 << 0, /* an IP header or a GRH */
	VB_PACKET_HAS_LIDS = 1 << 1, /* an LRH */
	VB_PACKET_HAS_RETH = 1 << 2, /* remote_addr, rkey, dma_bytes */
	VB_PACKET_HAS_AETH = 1 << 3, /* syndrome, msn */
	VB_PACKET_HAS_IMM = 1 << 4,
	VB_PACKET_HAS_INVALIDATE = 1 << 5, /* rkey is the key to invalidate */
	VB_PACKET_HAS_DETH = 1 << 6,	   /* qkey, source_qpn */
	VB_PACKET_HAS_ATOMIC = 1 << 7,	   /* remote_addr, rkey, swap_add, compare */
	VB_PACKET_HAS_ORIGINAL = 1 << 8,
	VB_PACKET_HAS_XRC = 1 << 9, /* xrc_srqn */
};

struct vb_packet {
	uint8_t opcode;		 /* of the BTH */
	const char *opcode_name; /* such as "RC SEND_ONLY", as in Linux include/rdma/ib_pack.h; a
				    constant string; NULL: reserved */
	unsigned int has;	 /* enum vb_packet_has */
	bool solicited;
	bool ack_request;
	bool lost; /* did not arrive: a frame of Ethernet in a trace of the simulator has a mark */
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t source_qpn; /* of the DETH; of a connection 0, unless the backend knows the QP */
	uint32_t psn;
	uint32_t payload_bytes;
	uint8_t syndrome;
	uint32_t msn;
	uint64_t remote_addr;
	uint32_t rkey;
	uint32_t dma_bytes;
	uint64_t swap_add;
	uint64_t compare;
	uint64_t original;
	uint32_t imm; /* in host order */
	uint32_t qkey;
	uint32_t xrc_srqn;
	uint8_t source_gid[16];
	uint8_t dest_gid[16];
	uint16_t slid;
	uint16_t dlid;
};

/*
 * Decodes a frame that begins with the Ethernet header, or with @infiniband with the LRH. Returns 0;
 * EBADMSG with a sentence for vb_last_error() if the frame is no packet of RoCE or InfiniBand, is
 * shorter than its headers say, or has a wrong ICRC or VCRC. vb_last_reason() says which, and *packet
 * then has the headers that are right: with a wrong ICRC or VCRC all of them. Any thread may call it
 * at any time.
 */
int vb_packet_decode(const void *frame, size_t length_bytes, bool infiniband,
		     struct vb_packet *packet);

/* The longest frame: the longest headers, and a payload of 4096 bytes. */
#define VB_FRAME_BYTES_MAX 4234

/*
 * Writes the frame of a packet: of RoCE v2; of InfiniBand if packet->has has VB_PACKET_HAS_LIDS, with a
 * GRH if it also has VB_PACKET_HAS_GIDS. The opcode decides which extension headers follow the BTH; the
 * frame has the fields of struct vb_packet that these headers have. opcode_name, lost and the other bits
 * of `has` have no meaning. payload points to packet->payload_bytes bytes. The pad, the checksums, the ICRC and the
 * VCRC are right. MAC addresses are zeros, which the caller may replace: no checksum covers them. The UDP
 * source port is 0xc000, the hop limit 64.
 *
 * frame has room for VB_FRAME_BYTES_MAX. Returns the frame's length; 0 with errno EINVAL and a sentence
 * if the opcode is reserved, or the payload is longer than 4096 bytes. Any thread may call it at any time.
 */
size_t vb_packet_encode(const struct vb_packet *packet, const void *payload,
			uint8_t frame[VB_FRAME_BYTES_MAX]);

/*
 * Writes the syndrome of an AETH as text, such as "ACK", "RNR NAK (0.64 ms)" or "NAK: remote access
 * error", into text of size_bytes bytes (32 are enough). Returns text.
 */
const char *vb_syndrome_text(uint8_t syndrome, char *text, size_t size_bytes);

/* Returns the name of an opcode, as opcode_name of struct vb_packet; NULL if it is reserved. */
const char *vb_opcode_name(uint8_t opcode);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_PACKET_H */
