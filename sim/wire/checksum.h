/* SPDX-License-Identifier: MIT */
/* The Internet checksum (RFC 1071) of IPv4 and UDP. */
#ifndef SIM_WIRE_CHECKSUM_H
#define SIM_WIRE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Adds bytes to a sum, which begins with 0. All parts but the last have an even length. */
static inline uint64_t sim_checksum_add(uint64_t sum, const uint8_t *data, size_t length_bytes)
{
	uint32_t word = 0;

	for (; length_bytes >= sizeof(word); length_bytes -= sizeof(word), data += sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum += word;
	}
	if (length_bytes) {
		word = 0;
		memcpy(&word, data, length_bytes);
		sum += word;
	}
	return sum;
}

/* Folds the sum to the checksum. Its bytes are in network order: store it with memcpy. */
static inline uint16_t sim_checksum_end(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

#endif
