/* SPDX-License-Identifier: MIT */
/*
 * Packets. Inside the engine a packet is a descriptor (struct sim_packet and struct sim_route); it
 * is encoded to bytes where a trace, a fault rule or a wire needs them.
 */
#ifndef SIM_WIRE_PACKET_H
#define SIM_WIRE_PACKET_H

#include "sim/wire/opcode.h"

#include <stddef.h>

#define SIM_UDP_PORT	 4791
#define SIM_PATH_MTU_MAX 4096
#define SIM_GRH_BYTES	 40u /* of a GRH, and before the payload of a UD receive */
#define SIM_SPANS_MAX	 32
/* The longest frame: Ethernet, IPv6, UDP, BTH, the longest extension headers, the payload, pad and
 * ICRC. The LRH, GRH and VCRC of InfiniBand are shorter than Ethernet, IPv6 and UDP. */
#define SIM_FRAME_BYTES_MAX (14 + 40 + 8 + 12 + 56 + SIM_PATH_MTU_MAX + 4 + 4)

/* The destination QPN of a packet to a group. */
#define SIM_MULTICAST_QPN 0xffffffu

/* A piece of a payload in memory, checked against its MR. */
struct sim_span {
	const void *base;
	uint32_t length_bytes;
};

/*
 * The headers before the BTH: Ethernet, IP and UDP (RoCE v2), Ethernet and a GRH (RoCE v1), or an
 * LRH with or without a GRH (InfiniBand). Numbers are in host order; MACs and GIDs are as on the
 * wire. The GIDs, traffic class, hop limit and flow label belong to the IP header or to the GRH.
 */
struct sim_route {
	uint8_t source_mac[6];
	uint8_t dest_mac[6];
	uint8_t source_gid[16]; /* ::ffff:a.b.c.d is IPv4 */
	uint8_t dest_gid[16];
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint16_t udp_source_port;
	uint16_t ip_id;		 /* IPv4 only */
	uint16_t ip_fragment;	 /* IPv4 flags and offset, as in the header; 0x4000: DF */
	uint16_t udp_checksum;	 /* used with udp_checksum_given */
	bool udp_checksum_given; /* false: 0 (none) over IPv4, computed over IPv6 */
	uint32_t flow_label;	 /* IPv6 and GRH only */
	bool roce_v1;	 /* Ethernet and a GRH; the fields of IPv4 and UDP have no meaning */
	bool infiniband; /* the fields below instead of those of Ethernet, IPv4 and UDP */
	bool has_grh;
	uint8_t sl; /* service level; the virtual lane is 0 */
	uint16_t slid;
	uint16_t dlid;
};

/* The order is that of the bits in the BTH, so that a shift takes several of them at once. */
enum sim_packet_flag {
	SIM_PACKET_SOLICITED = 1 << 7,
	SIM_PACKET_MIGRATED = 1 << 6,
	SIM_PACKET_FECN = 1 << 5,
	SIM_PACKET_BECN = 1 << 4,
	SIM_PACKET_ACK_REQUEST = 1 << 3,
};

/* What the headers from the BTH on say: a receiver learns nothing that is on no wire. */
struct sim_packet {
	uint8_t opcode;
	uint8_t flags;	  /* enum sim_packet_flag */
	uint8_t syndrome; /* AETH */
	uint8_t span_count;
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t payload_bytes; /* without the pad */
	const struct sim_span *spans;

	/* Extension headers: the fields of the headers that the opcode has. */
	uint64_t remote_addr; /* RETH, AtomicETH */
	uint32_t rkey;	      /* RETH, AtomicETH, IETH */
	uint32_t dma_bytes;   /* RETH */
	uint64_t swap_add;    /* AtomicETH */
	uint64_t compare;     /* AtomicETH */
	uint64_t original;    /* AtomicAckETH */
	uint32_t msn;	      /* AETH */
	__be32 imm_data;      /* ImmDt, in network order as in struct ibv_send_wr */
	uint32_t qkey;	      /* DETH */
	uint32_t source_qpn;  /* DETH: packets of connections do not name the QP that sends them */
	uint16_t slid;	      /* this and sl: of the LRH, which the encoder takes from the route */
	uint8_t sl;
	uint32_t xrc_srqn;   /* XRCETH */
	uint32_t ee_context; /* RDETH */
};

/*
 * A train: packets of one message that follow each other and travel together. All are middle packets of a request
 * that carries data, or of the response to a READ: each has a full payload, and they differ in their PSNs and payloads only. A struct sim_packet
 * describes the train: the headers are those of the first packet, the payload is that of all of them, and
 * SIM_PACKET_ACK_REQUEST belongs to the last one.
 */
#define SIM_TRAIN_BYTES_MAX (32u << 10) /* of the payload */

/* The AETH syndrome: a type, and as its value the credits, the RNR timer or the code of a NAK. */
enum sim_syndrome {
	SIM_AETH_ACK = 0x00,
	SIM_AETH_RNR_NAK = 0x20,
	SIM_AETH_NAK = 0x60,
	SIM_AETH_TYPE = 0xe0,
	SIM_AETH_VALUE = 0x1f,

	SIM_ACK_CREDIT_NONE = 0x1f, /* the responder grants no end-to-end credits */
	SIM_NAK_PSN_SEQUENCE = SIM_AETH_NAK | 0,
	SIM_NAK_INVALID_REQUEST = SIM_AETH_NAK | 1,
	SIM_NAK_REMOTE_ACCESS = SIM_AETH_NAK | 2,
	SIM_NAK_REMOTE_OPERATION = SIM_AETH_NAK | 3,
	SIM_NAK_INVALID_RD = SIM_AETH_NAK | 4,
	SIM_NAKS = 5,
};

enum sim_decode {
	SIM_DECODE_OK,
	SIM_DECODE_TRUNCATED, /* shorter than its headers say */
	/* Neither Ethernet/IP/UDP 4791 nor Ethernet/GRH, or a wrong checksum of the IP header. */
	SIM_DECODE_NOT_ROCE,
	SIM_DECODE_NOT_INFINIBAND, /* a raw packet, or an LRH or GRH of another version or length */
	SIM_DECODE_BAD_VERSION,	   /* the BTH has a version other than 0 */
	SIM_DECODE_BAD_OPCODE,
	SIM_DECODE_BAD_PAD, /* a pad without payload, or a payload and pad of no multiple of 4 */
	SIM_DECODE_BAD_ICRC,
	SIM_DECODE_BAD_VCRC, /* InfiniBand; the ICRC is right */
};

/* Returns the length of the pad, which fills a payload up to a multiple of four bytes. */
static inline uint32_t sim_pad_bytes(uint32_t payload_bytes)
{
	return -payload_bytes & 3;
}

/* Copies a payload out of the application's memory. Returns 0; nonzero if a byte cannot be read. */
typedef int sim_copy_fn(void *dst, const void *src, size_t length_bytes);

/* Returns the offset of the BTH in a frame. */
size_t sim_route_bytes(const struct sim_route *route);

/* Returns the length of a packet's frame. */
size_t sim_frame_bytes(const struct sim_packet *packet, const struct sim_route *route);

/*
 * Writes a whole frame and returns its length:
 *
 * RoCE v2     Ethernet, IP, UDP, BTH, extension headers, payload, pad, ICRC
 * RoCE v1     Ethernet, GRH, BTH, extension headers, payload, pad, ICRC
 * InfiniBand  LRH, GRH if has_grh, BTH, extension headers, payload, pad, ICRC, VCRC
 *
 * frame has room for SIM_FRAME_BYTES_MAX. copy reads the spans; a span that it cannot read is
 * written as zeros, and *readable is false then. readable may be NULL.
 */
size_t sim_packet_encode(const struct sim_packet *packet, const struct sim_route *route,
			 sim_copy_fn *copy, uint8_t *frame, bool *readable);

/* Writes a frame in the same way without the checksums of its end: its ICRC and its VCRC are zeros, and
 * so is the checksum of UDP over IPv6. */
size_t sim_packet_write(const struct sim_packet *packet, const struct sim_route *route,
			sim_copy_fn *copy, uint8_t *frame, bool *readable);

/* Writes a packet or a train without the headers before the BTH and without the checksums, from the BTH to the pad,
 * in the same way. Returns its length. */
size_t sim_packet_write_bare(const struct sim_packet *packet, sim_copy_fn *copy, uint8_t *bytes,
			     bool *readable);

/* Writes the headers before the BTH anew, for another number of bytes from the BTH to the ICRC.
 * Returns the length of the frame. */
size_t sim_packet_resize(uint8_t *frame, size_t transport_bytes, const struct sim_route *route);

/*
 * Makes the checksums of a changed frame right: the ICRC, the checksums of IPv4 and of UDP over
 * IPv6, and the VCRC. Leaves them if the frame's network headers are not of the route's kind, or
 * if the frame ends before its ICRC.
 */
void sim_packet_seal(uint8_t *frame, size_t frame_bytes, const struct sim_route *route);

/*
 * Returns true if the ICRC of a frame of RoCE v2 is right. The frame's network headers are right, and
 * written by the reader of a UDP socket, who knows all but the identification of IPv4, which is 0: if
 * the ICRC is right for another one, sets *identification to it and writes it into the IPv4 header.
 */
bool sim_packet_identify(uint8_t *frame, size_t frame_bytes, uint16_t *identification);

/* Makes the VCRC of a changed frame of InfiniBand right. */
void sim_packet_seal_link(uint8_t *frame, size_t frame_bytes);

/*
 * Reads a frame of Ethernet. The packet's payload is *span, which points into frame. On an error
 * the outputs hold the headers before the wrong one; after SIM_DECODE_BAD_ICRC they hold the whole
 * packet.
 */
enum sim_decode sim_packet_decode(const uint8_t *frame, size_t frame_bytes,
				  struct sim_packet *packet, struct sim_span *span,
				  struct sim_route *route);

/* Reads a frame of InfiniBand, from the LRH to the VCRC, in the same way. After
 * SIM_DECODE_BAD_VCRC, too, the outputs hold the whole packet. */
enum sim_decode sim_packet_decode_infiniband(const uint8_t *frame, size_t frame_bytes,
					     struct sim_packet *packet, struct sim_span *span,
					     struct sim_route *route);

/* Reads a frame of Ethernet or of InfiniBand in the same way, and does not look at its ICRC and VCRC. */
enum sim_decode sim_packet_read(const uint8_t *frame, size_t frame_bytes, bool infiniband,
				struct sim_packet *packet, struct sim_span *span,
				struct sim_route *route);

/* Reads the bytes of sim_packet_write_bare(), in the same way, for a route. */
enum sim_decode sim_packet_read_bare(const uint8_t *bytes, size_t length_bytes,
				     const struct sim_route *route, struct sim_packet *packet,
				     struct sim_span *span);

/* Reads the headers before the BTH only. */
enum sim_decode sim_route_read(const uint8_t *frame, size_t frame_bytes, bool infiniband,
			       struct sim_route *route);

struct vb_packet;

/* Fills in what <verbena/packet.h> says of a packet, but for `lost` and, of a connection, the QP that
 * sends the packet. */
void sim_packet_show(const struct sim_packet *packet, const struct sim_route *route,
		     struct vb_packet *shown);

/* Decodes a frame and fills in what its headers say, as far as they are right; a wrong checksum leaves
 * nothing out. */
enum sim_decode sim_frame_show(const uint8_t *frame, size_t frame_bytes, bool infiniband,
			       struct vb_packet *shown);

/* Returns an error as words, as "bad ICRC"; a static string. */
const char *sim_decode_str(enum sim_decode result);

/* Writes the 40 bytes that a UD receive has before its payload: an IPv6 header or a GRH; 20 bytes
 * 0xcc (undefined) and an IPv4 header; or 40 bytes 0xcc for a packet without a GRH. */
void sim_packet_grh(const struct sim_packet *packet, const struct sim_route *route,
		    uint8_t grh[40]);

/* Returns true if the LID is a group's: from IB_MULTICAST_LID_BASE to below IB_LID_PERMISSIVE of
 * Linux include/rdma/ib_verbs.h. */
static inline bool sim_lid_is_multicast(uint16_t lid)
{
	return lid >= 0xc000 && lid != 0xffff;
}

/* Returns true if the GID is an IPv4 address: ::ffff:a.b.c.d. */
bool sim_gid_is_ipv4(const uint8_t gid[16]);

/* Returns true if the GID is a group's: ff00::/8, or an IPv4 address of 224.0.0.0/4 (Linux
 * include/rdma/ib_addr.h, rdma_is_multicast_addr). */
bool sim_gid_is_multicast(const uint8_t gid[16]);

/* Returns the UDP source port of a connection, from the dynamic range. Both directions of a
 * connection have the same port: it is computed from the product of the two QPNs. */
uint16_t sim_udp_source_port(uint32_t qpn, uint32_t dest_qpn);

#endif
