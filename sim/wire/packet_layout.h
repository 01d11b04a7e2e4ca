/* SPDX-License-Identifier: MIT */
/*
 * Private to sim/wire. Sources of the layouts: Ethernet, IPv4 (RFC 791), IPv6 (RFC 8200), UDP (RFC
 * 768); the BTH and its extension headers as in Linux drivers/infiniband/sw/rxe/rxe_hdr.h and
 * Wireshark packet-infiniband.c; the LRH and GRH as in Linux drivers/infiniband/core/ud_header.c;
 * the Ethernet type of RoCE v1 as ETH_P_IBOE in Linux include/uapi/linux/if_ether.h.
 */
#ifndef SIM_WIRE_PACKET_LAYOUT_H
#define SIM_WIRE_PACKET_LAYOUT_H

#include "sim/wire/packet.h"

enum {
	ETHERNET_BYTES = 14,
	IPV4_BYTES = 20,
	IPV4_ID = 4, /* the offset of the identification */
	IPV6_BYTES = 40,
	UDP_BYTES = 8,
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	LRH_BYTES = 8,
	GRH_BYTES = 40,
	VCRC_BYTES = 2,

	LRH_VERSION = 0x0f,
	LRH_SL_SHIFT = 4,
	LRH_NEXT = 0x3,
	LRH_NEXT_LOCAL = 2,  /* a BTH */
	LRH_NEXT_GLOBAL = 3, /* a GRH, then a BTH */
	LRH_LENGTH = 0x7ff,
	LRH_WORD_BYTES = 4,
	GRH_NEXT_BTH = 0x1b,

	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_ROCE_V1 = 0x8915,
	PROTOCOL_UDP = 17,
	IPV4_FRAGMENTED = 0x3fff, /* more fragments, or an offset */

	BTH_SOLICITED = 0x80, /* this and the next four: of the second byte */
	BTH_MIGRATED = 0x40,
	BTH_PAD_SHIFT = 4,
	BTH_PAD = 0x3,
	BTH_VERSION = 0x0f,
	BTH_FECN = 0x80, /* this and BTH_BECN: of the byte before the QPN */
	BTH_BECN = 0x40,
	BTH_ACK_REQUEST = 0x80, /* of the byte before the PSN */

	GRH_UNDEFINED = 0xcc,
};

/* How far the bits of a packet's flags stand below those of the BTH. */
enum {
	FLAGS_CONGESTION_SHIFT = 2,
	FLAGS_ACK_REQUEST_SHIFT = 4,

	FLAGS_SECOND = SIM_PACKET_SOLICITED | SIM_PACKET_MIGRATED,
	FLAGS_CONGESTION = SIM_PACKET_FECN | SIM_PACKET_BECN,
};

_Static_assert((BTH_SOLICITED | BTH_MIGRATED) == FLAGS_SECOND &&
		       (BTH_FECN | BTH_BECN) >> FLAGS_CONGESTION_SHIFT == FLAGS_CONGESTION &&
		       BTH_ACK_REQUEST >> FLAGS_ACK_REQUEST_SHIFT == (int)SIM_PACKET_ACK_REQUEST,
	       "the flags have the order of the BTH");

#endif
