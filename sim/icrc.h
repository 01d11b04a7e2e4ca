/* SPDX-License-Identifier: MIT */
/*
 * The invariant CRC of RoCEv2: CRC-32 over the packet from the IP header, with eight bytes of
 * ones before it and every field that a router may change replaced by ones.
 */
#ifndef SIM_ICRC_H
#define SIM_ICRC_H

#include <stddef.h>
#include <stdint.h>

/* The ICRC of an IP datagram (IPv4 or IPv6 by its version) whose last four bytes are the ICRC's
 * own; the value is as it stands on the wire read little-endian. */
uint32_t sim_icrc(const uint8_t *datagram, size_t length_bytes);

#endif
