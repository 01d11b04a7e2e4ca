/* SPDX-License-Identifier: MIT */
/*
 * The two checksums of a packet. The invariant CRC (ICRC) is a CRC-32 over the packet in which
 * every field that a switch or router may change counts as ones. The variant CRC (VCRC) is
 * InfiniBand's CRC-16 over the packet as it is on the link. Both stand little-endian on the wire.
 */
#ifndef SIM_WIRE_ICRC_H
#define SIM_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Each of the three returns the ICRC that belongs into the last four bytes of [packet, packet +
 * length_bytes); the value of these four bytes does not matter.
 *
 * sim_icrc()             RoCE v2: the packet begins with its IP header, IPv4 or IPv6
 * sim_icrc_roce_v1()     RoCE v1: the packet begins with its GRH
 * sim_icrc_infiniband()  InfiniBand: the packet begins with its LRH; the VCRC does not belong to it
 */
uint32_t sim_icrc(const uint8_t *packet, size_t length_bytes);
uint32_t sim_icrc_roce_v1(const uint8_t *packet, size_t length_bytes);
uint32_t sim_icrc_infiniband(const uint8_t *packet, size_t length_bytes);

/*
 * Finds the identification of an IPv4 header that the reader of the packet has not seen, since a UDP
 * socket hands over the payload only. The packet begins with its IPv4 header, whose identification is
 * 0. Returns true if the packet's ICRC is right for an identification, and sets *identification to it:
 * there is at most one.
 */
bool sim_icrc_identify(const uint8_t *packet, size_t length_bytes, uint16_t *identification);

/* Returns the VCRC of the bytes from the LRH to the ICRC. */
uint16_t sim_vcrc(const uint8_t *packet, size_t length_bytes);

#endif
