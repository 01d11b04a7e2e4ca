/* SPDX-License-Identifier: MIT */
/*
 * A packet: a descriptor inside the engine, bytes on a wire that somebody looks at.
 */
#ifndef SIM_WIRE_PACKET_H
#define SIM_WIRE_PACKET_H

#include "sim/wire/opcode.h"

#include <stddef.h>

#define SIM_UDP_PORT	 4791
#define SIM_PATH_MTU_MAX 4096
#define SIM_SPANS_MAX	 32
/* Ethernet, IPv6, UDP, the longest transport headers, a path MTU of payload, pad, ICRC; LRH, GRH
 * and VCRC are shorter than the first three. */
#define SIM_FRAME_BYTES_MAX (14 + 40 + 8 + 12 + 56 + SIM_PATH_MTU_MAX + 4 + 4)

/* A piece of memory that a payload comes from; already checked against its MR. */
struct sim_span {
	const void *base;
	uint32_t length_bytes;
};

/*
 * Everything below the BTH: Ethernet, IP and UDP (RoCE v2), Ethernet and a GRH (RoCE v1), or an LRH
 * and perhaps a GRH (InfiniBand). Multi-byte fields are in host order, addresses as on the wire.
 * The GIDs, traffic class, hop limit and flow label are those of the IP header or of the GRH.
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
	uint16_t ip_fragment;	 /* IPv4 flags and offset, as in the header: 0x4000 is DF */
	uint16_t udp_checksum;	 /* with udp_checksum_given only */
	bool udp_checksum_given; /* as it is, for captures; else none on IPv4, computed on IPv6 */
	uint32_t flow_label;	 /* IPv6 and GRH only */
	bool roce_v1;		 /* Ethernet, without the fields of IPv4 and UDP */
	bool infiniband;	 /* the fields below, not those of Ethernet, IPv4 and UDP */
	bool has_grh;
	uint8_t sl; /* service level; the virtual lane is 0 */
	uint16_t slid;
	uint16_t dlid;
};

enum sim_packet_flag {
	SIM_PACKET_SOLICITED = 1 << 0,
	SIM_PACKET_MIGRATED = 1 << 1,
	SIM_PACKET_ACK_REQUEST = 1 << 2,
	SIM_PACKET_FECN = 1 << 3,
	SIM_PACKET_BECN = 1 << 4,
	/* On no wire: an ACK that was drawn by repeated packets. */
	SIM_PACKET_REPEATED = 1 << 5,
};

struct sim_packet {
	uint8_t opcode;
	uint8_t flags;	  /* enum sim_packet_flag */
	uint8_t syndrome; /* AETH */
	uint8_t span_count;
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t payload_bytes; /* without the pad */
	uint32_t repeated_psn;	/* with SIM_PACKET_REPEATED: the last of those */
	const struct sim_span *spans;

	/* Extension headers; those that the opcode has are meaningful. */
	uint64_t remote_addr; /* RETH, AtomicETH */
	uint32_t rkey;	      /* RETH, AtomicETH, IETH */
	uint32_t dma_bytes;   /* RETH */
	uint64_t swap_add;    /* AtomicETH */
	uint64_t compare;     /* AtomicETH */
	uint64_t original;    /* AtomicAckETH */
	uint32_t msn;	      /* AETH */
	__be32 imm_data;      /* ImmDt, as the application gave it */
	uint32_t qkey;	      /* DETH */
	uint32_t source_qpn;  /* DETH */
	uint16_t slid;	      /* UD on InfiniBand, of the LRH; not decoded into here */
	uint8_t sl;
	uint32_t xrc_srqn;   /* XRCETH */
	uint32_t ee_context; /* RDETH */
};

/* The AETH syndrome: an ACK with its credits, an RNR NAK with its timer, a NAK with its code. */
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
};

enum sim_decode {
	SIM_DECODE_OK,
	SIM_DECODE_TRUNCATED, /* shorter than its headers say */
	/* Neither Ethernet/IP/UDP 4791 nor Ethernet/GRH, or an IP header checksum that is wrong. */
	SIM_DECODE_NOT_ROCE,
	SIM_DECODE_NOT_INFINIBAND, /* LRH or GRH of another version, of raw packets, or too short */
	SIM_DECODE_BAD_VERSION,	   /* BTH transport header version is not 0 */
	SIM_DECODE_BAD_OPCODE,
	SIM_DECODE_BAD_PAD, /* pad without payload, or more pad than payload */
	SIM_DECODE_BAD_ICRC,
	SIM_DECODE_BAD_VCRC, /* InfiniBand; the ICRC is right */
};

/* Bytes of pad behind a payload: what makes it a multiple of four. */
static inline uint32_t sim_pad_bytes(uint32_t payload_bytes)
{
	return -payload_bytes & 3;
}

/* How a payload is copied out of the application's memory; 0, or nonzero for a fault. */
typedef int sim_copy_fn(void *dst, const void *src, size_t length_bytes);

/* Where the BTH begins in a frame. */
size_t sim_route_bytes(const struct sim_route *route);

/* How long a packet's frame is, all of it. */
size_t sim_frame_bytes(const struct sim_packet *packet, const struct sim_route *route);

/*
 * Writes a whole frame: Ethernet, IP, UDP, BTH, extension headers, payload, pad, ICRC; Ethernet,
 * GRH, BTH, extension headers, payload, pad, ICRC (with roce_v1); or LRH, GRH (with has_grh), BTH,
 * extension headers, payload, pad, ICRC, VCRC (with infiniband).
 *
 * frame has room for SIM_FRAME_BYTES_MAX. copy reads the spans; bytes that it cannot read become
 * 0. Returns the length.
 */
size_t sim_packet_encode(const struct sim_packet *packet, const struct sim_route *route,
			 sim_copy_fn *copy, uint8_t *frame);

/*
 * Reads a frame back. packet's one span (held in *span) points into frame. On anything but
 * SIM_DECODE_OK the outputs hold what could be read before the fault; after BAD_ICRC, all of it.
 */
enum sim_decode sim_packet_decode(const uint8_t *frame, size_t frame_bytes,
				  struct sim_packet *packet, struct sim_span *span,
				  struct sim_route *route);

/* The same of a frame that begins with an LRH and ends with a VCRC. After BAD_VCRC, too, the
 * outputs hold all of it. */
enum sim_decode sim_packet_decode_infiniband(const uint8_t *frame, size_t frame_bytes,
					     struct sim_packet *packet, struct sim_span *span,
					     struct sim_route *route);

const char *sim_decode_str(enum sim_decode result);

/* The 40 bytes that UD puts before a payload: IPv6 or a GRH, or 20 bytes 0xCC (undefined) and
 * IPv4; of a packet without a GRH 40 bytes 0xCC. */
void sim_packet_grh(const struct sim_packet *packet, const struct sim_route *route,
		    uint8_t grh[40]);

/* The LIDs of groups: Linux include/rdma/ib_verbs.h, IB_MULTICAST_LID_BASE and IB_LID_PERMISSIVE. */
static inline bool sim_lid_is_multicast(uint16_t lid)
{
	return lid >= 0xc000 && lid != 0xffff;
}

/* True where the GID stands for an IPv4 address. */
bool sim_gid_is_ipv4(const uint8_t gid[16]);

/* True for a group: ff00::/8, or an IPv4 address of 224.0.0.0/4 (Linux include/rdma/ib_addr.h,
 * rdma_is_multicast_addr). */
bool sim_gid_is_multicast(const uint8_t gid[16]);

/*
 * A source port from the dynamic range that both directions of a connection can be told by;
 * derived from the pair of QPNs so that the two directions give the same number.
 */
uint16_t sim_udp_source_port(uint32_t qpn, uint32_t dest_qpn);

#endif
