/* SPDX-License-Identifier: MIT */
/*
 * Endpoints and remote keys as bytes and as text.
 */
#include "src/connect/endpoint.h"

#include "src/base/failure.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define VERSION	     1
#define BITS_24	     0xffffff

/* --- bytes --- */

struct endpoint_bytes {
	uint8_t magic[3];
	uint8_t version;
	uint8_t mtu;
	uint8_t zero;
	uint16_t lid;
	uint32_t qpn;
	uint32_t psn;
	uint8_t gid[16];
};

struct remote_bytes {
	uint8_t magic[3];
	uint8_t version;
	uint32_t rkey;
	uint64_t addr;
	uint64_t length_bytes;
};

static_assert(sizeof(struct endpoint_bytes) == VB_ENDPOINT_BYTES, "no padding");
static_assert(sizeof(struct remote_bytes) == VB_REMOTE_BYTES, "no padding");

static const uint8_t endpoint_magic[3] = {'V', 'B', 'E'};
static const uint8_t remote_magic[3] = {'V', 'B', 'R'};

/* The beginning that both have. */
static int check_head(const char *what, const void *bytes, size_t length_bytes, size_t wanted_bytes,
		      const uint8_t magic[3])
{
	const uint8_t *head = bytes;

	if (length_bytes != wanted_bytes)
		return fail(EMSGSIZE, "%s: %zu bytes; version 1 has %zu", what, length_bytes,
			    wanted_bytes);
	if (memcmp(head, magic, 3) != 0)
		return fail(EPROTO, "%s: it begins with 0x%02x%02x%02x, not with \"%.3s\"", what,
			    head[0], head[1], head[2], (const char *)magic);
	if (head[3] != VERSION)
		return fail(EPROTONOSUPPORT, "%s: version %u; this library knows 1", what, head[3]);
	return 0;
}

int endpoint_check(const struct vb_endpoint *endpoint)
{
	if (endpoint->qpn > BITS_24)
		return fail(EBADMSG, "endpoint: qpn 0x%x has more than 24 bits", endpoint->qpn);
	if (endpoint->psn > BITS_24)
		return fail(EBADMSG, "endpoint: psn 0x%x has more than 24 bits", endpoint->psn);
	if (!vb_mtu_to_bytes(endpoint->mtu))
		return fail(EBADMSG, "endpoint: mtu %d is none", (int)endpoint->mtu);
	return 0;
}

void vb_endpoint_encode(const struct vb_endpoint *endpoint, uint8_t bytes[VB_ENDPOINT_BYTES])
{
	struct endpoint_bytes wire = {
		.version = VERSION,
		.mtu = (uint8_t)endpoint->mtu,
		.lid = htobe16(endpoint->lid),
		.qpn = htobe32(endpoint->qpn),
		.psn = htobe32(endpoint->psn),
	};

	memcpy(wire.magic, endpoint_magic, sizeof(wire.magic));
	memcpy(wire.gid, endpoint->gid.raw, sizeof(wire.gid));
	memcpy(bytes, &wire, sizeof(wire));
}

int vb_endpoint_decode(const void *bytes, size_t length_bytes, struct vb_endpoint *endpoint)
{
	struct endpoint_bytes wire;
	struct vb_endpoint decoded;
	int err;

	err = check_head("endpoint", bytes, length_bytes, sizeof(wire), endpoint_magic);
	if (err)
		return err;
	memcpy(&wire, bytes, sizeof(wire));
	if (wire.zero)
		return fail(EBADMSG, "endpoint: byte 5 is %u, not 0", wire.zero);
	decoded = (struct vb_endpoint){
		.qpn = be32toh(wire.qpn),
		.lid = be16toh(wire.lid),
		.psn = be32toh(wire.psn),
		.mtu = (enum ibv_mtu)wire.mtu,
	};
	memcpy(decoded.gid.raw, wire.gid, sizeof(wire.gid));
	err = endpoint_check(&decoded);
	if (!err)
		*endpoint = decoded;
	return err;
}

void vb_remote_encode(const struct vb_remote *remote, uint8_t bytes[VB_REMOTE_BYTES])
{
	struct remote_bytes wire = {
		.version = VERSION,
		.rkey = htobe32(remote->rkey),
		.addr = htobe64(remote->addr),
		.length_bytes = htobe64(remote->length_bytes),
	};

	memcpy(wire.magic, remote_magic, sizeof(wire.magic));
	memcpy(bytes, &wire, sizeof(wire));
}

int vb_remote_decode(const void *bytes, size_t length_bytes, struct vb_remote *remote)
{
	struct remote_bytes wire;
	struct vb_remote decoded;
	int err;

	err = check_head("remote", bytes, length_bytes, sizeof(wire), remote_magic);
	if (err)
		return err;
	memcpy(&wire, bytes, sizeof(wire));
	decoded = (struct vb_remote){be64toh(wire.addr), be64toh(wire.length_bytes),
				     be32toh(wire.rkey)};
	if (decoded.length_bytes && decoded.addr + decoded.length_bytes - 1 < decoded.addr)
		return fail(EBADMSG, "remote: %llu bytes at 0x%llx go past the end of addresses",
			    (unsigned long long)decoded.length_bytes,
			    (unsigned long long)decoded.addr);
	*remote = decoded;
	return 0;
}

bool vb_endpoint_equal(const struct vb_endpoint *a, const struct vb_endpoint *b)
{
	return a->qpn == b->qpn && a->lid == b->lid && a->psn == b->psn && a->mtu == b->mtu &&
	       memcmp(&a->gid, &b->gid, sizeof(a->gid)) == 0;
}

/* --- text --- */

const char *vb_endpoint_print(const struct vb_endpoint *endpoint, char text[VB_ENDPOINT_TEXT_MAX])
{
	char gid[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, endpoint->gid.raw, gid, sizeof(gid));
	snprintf(text, VB_ENDPOINT_TEXT_MAX, "qpn=0x%x,lid=%u,gid=%s,psn=0x%x,mtu=%u",
		 endpoint->qpn, endpoint->lid, gid, endpoint->psn, vb_mtu_to_bytes(endpoint->mtu));
	return text;
}

enum part { PART_QPN, PART_LID, PART_GID, PART_PSN, PART_MTU, PARTS };

static const struct {
	const char *name;
	unsigned long max;
} parts[PARTS] = {
	[PART_QPN] = {"qpn", BITS_24}, [PART_LID] = {"lid", UINT16_MAX}, [PART_GID] = {"gid", 0},
	[PART_PSN] = {"psn", BITS_24}, [PART_MTU] = {"mtu", UINT16_MAX},
};

static bool parse_number(const char *text, unsigned long max, unsigned long *number)
{
	char *end;

	/* strtoul(3) would take a sign and blanks. */
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoul(text, &end, 0);
	return !errno && !*end && *number <= max;
}

static bool parse_part(enum part part, const char *text, struct vb_endpoint *endpoint)
{
	unsigned long number = 0;

	if (part == PART_GID)
		return inet_pton(AF_INET6, text, endpoint->gid.raw) == 1;
	if (!parse_number(text, parts[part].max, &number))
		return false;
	if (part == PART_QPN)
		endpoint->qpn = (uint32_t)number;
	else if (part == PART_LID)
		endpoint->lid = (uint16_t)number;
	else if (part == PART_PSN)
		endpoint->psn = (uint32_t)number;
	else
		endpoint->mtu = vb_bytes_to_mtu((unsigned int)number);
	return part != PART_MTU || endpoint->mtu;
}

static int parse_pair(char *pair, unsigned int *seen, struct vb_endpoint *endpoint)
{
	char *value = strchr(pair, '=');
	enum part part = 0;

	if (!value)
		return fail(EINVAL, "endpoint: \"%s\" is no name=value", pair);
	*value++ = '\0';
	while (part < PARTS && strcmp(parts[part].name, pair) != 0)
		part++;
	if (part == PARTS)
		return fail(EINVAL, "endpoint: there is no part \"%s\"", pair);
	if (*seen & 1u << part)
		return fail(EINVAL, "endpoint: %s is there twice", pair);
	*seen |= 1u << part;
	if (!parse_part(part, value, endpoint))
		return fail(EINVAL, "endpoint: %s cannot be \"%s\"", pair, value);
	return 0;
}

int vb_endpoint_parse(const char *text, struct vb_endpoint *endpoint)
{
	char copy[VB_ENDPOINT_TEXT_MAX], *rest = copy;
	struct vb_endpoint parsed = {0};
	unsigned int seen = 0;
	const char *pair;
	int err = 0;

	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return fail(EINVAL, "endpoint: a text of %zu characters", strlen(text));
	while (!err && (pair = strsep(&rest, ",")))
		err = parse_pair((char *)pair, &seen, &parsed);
	for (size_t i = 0; i < COUNT(parts) && !err; i++)
		if (!(seen & 1u << i))
			err = fail(EINVAL, "endpoint: %s is missing", parts[i].name);
	if (!err)
		*endpoint = parsed;
	return err;
}
