/* SPDX-License-Identifier: MIT */
/*
 * The invariant CRC: CRC-32 over a packet with every field that switches and routers may change
 * replaced by ones. And the variant CRC of InfiniBand's links.
 */
#ifndef SIM_WIRE_ICRC_H
#define SIM_WIRE_ICRC_H

#include <stddef.h>
#include <stdint.h>

/* RoCEv2: the ICRC of an IP datagram (IPv4 or IPv6 by its version) whose last four bytes are the
 * ICRC's own; the value is as it stands on the wire read little-endian. Eight bytes of ones go
 * before the datagram. */
uint32_t sim_icrc(const uint8_t *datagram, size_t length_bytes);

/* RoCE v1: the ICRC of a packet from the GRH to the ICRC itself, whose four bytes are the last; read
 * little-endian. Eight bytes of ones go before it, as if they were an LRH. */
uint32_t sim_icrc_roce_v1(const uint8_t *packet, size_t length_bytes);

/* InfiniBand: the ICRC of a packet from the LRH to the ICRC itself, whose four bytes are the last;
 * read little-endian. With a GRH the whole LRH counts as ones. */
uint32_t sim_icrc_infiniband(const uint8_t *packet, size_t length_bytes);

/* The VCRC of the bytes from the LRH to the ICRC; on the wire it stands little-endian. */
uint16_t sim_vcrc(const uint8_t *packet, size_t length_bytes);

#endif
