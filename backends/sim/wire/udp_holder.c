/* SPDX-License-Identifier: MIT */
/* Finds the process that has a UDP port: by the socket's inode in proc(5), /proc/net/udp. */
#include "backends/sim/wire/udp_private.h"

#include <stdio.h>
#include <string.h>

/* The length of an IPv6 address in hexadecimal digits. */
#define DIGITS_MAX 32

/* Writes an address as /proc/net does: each word of four bytes as a number of this machine. */
static void write_words(const uint8_t *bytes, size_t count, char text[DIGITS_MAX + 1])
{
	for (size_t i = 0; i < count; i += 4) {
		uint32_t word;

		memcpy(&word, bytes + i, 4);
		snprintf(text + 2 * i, 9, "%08X", word);
	}
}

/* Returns true if a socket that is bound to `digits` keeps others from binding the address. */
static bool conflicts(const struct udp_address *address, const char *digits)
{
	char own[DIGITS_MAX + 1];

	if (strspn(digits, "0") == strlen(digits))
		return true;
	if (strlen(digits) == 8)
		write_words(address->gid.raw + 12, 4, own);
	else
		write_words(address->gid.raw, 16, own);
	return strcmp(digits, own) == 0;
}

/* Returns the inode of the socket in a file of /proc/net that has the port of the address, and sets
 * holder->everywhere; 0: none. */
static unsigned long find_inode(const char *path, const struct udp_address *address,
				struct udp_holder *holder)
{
	FILE *file = fopen(path, "re");
	unsigned long found = 0;
	char line[512];

	if (!file)
		return 0;
	while (!found && fgets(line, sizeof(line), file)) {
		char digits[DIGITS_MAX + 1];
		unsigned int port;
		unsigned long inode;

		if (sscanf(line, " %*d: %32[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %lu", digits,
			   &port, &inode) != 3 ||
		    port != SIM_UDP_PORT || !conflicts(address, digits))
			continue;
		found = inode;
		holder->everywhere = strspn(digits, "0") == strlen(digits);
	}
	fclose(file);
	return found;
}

void udp_find_holder(const struct udp_address *address, struct udp_holder *holder)
{
	unsigned long inode = 0;
	char socket[64];

	memset(holder, 0, sizeof(*holder));
	/* A socket of IPv6 that is bound to all addresses has the port of IPv4, too. */
	if (!address->ipv6)
		inode = find_inode("/proc/net/udp", address, holder);
	if (!inode)
		inode = find_inode("/proc/net/udp6", address, holder);
	if (!inode)
		return;
	snprintf(socket, sizeof(socket), "socket:[%lu]", inode);
	holder_find(socket, 0, &holder->process);
}
