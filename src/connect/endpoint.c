/* SPDX-License-Identifier: MIT */
/*
 * Endpoints and remote keys as bytes and as text.
 */
#include "src/connect/endpoint.h"

#include "src/connect/bytes.h"
#include "src/connect/object.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>

#define BITS_24	      0xffffff
#define ENDPOINT_HEAD "VBE"
#define REMOTE_HEAD   "VBR"

/* --- bytes --- */

int endpoint_check(const struct vb_endpoint *endpoint)
{
	if (endpoint->qpn > BITS_24)
		return fail(EBADMSG, "endpoint: qpn 0x%x has more than 24 bits", endpoint->qpn);
	if (endpoint->psn > BITS_24)
		return fail(EBADMSG, "endpoint: psn 0x%x has more than 24 bits", endpoint->psn);
	if (!vb_mtu_to_bytes(endpoint->mtu))
		return fail(EBADMSG, "endpoint: mtu %d is not a value of enum ibv_mtu",
			    (int)endpoint->mtu);
	return 0;
}

void vb_endpoint_encode(const struct vb_endpoint *endpoint, uint8_t bytes[VB_ENDPOINT_BYTES])
{
	uint8_t *at = put_head(bytes, ENDPOINT_HEAD);

	at = put32(at, (uint32_t)endpoint->mtu << 24 | endpoint->lid);
	at = put32(put32(at, endpoint->qpn), endpoint->psn);
	memcpy(at, endpoint->gid.raw, sizeof(endpoint->gid.raw));
}

static int check_length(const char *what, size_t length_bytes, size_t wanted_bytes)
{
	if (length_bytes == wanted_bytes)
		return 0;
	return fail(EMSGSIZE, "%s: %zu bytes; version 1 has %zu", what, length_bytes, wanted_bytes);
}

int vb_endpoint_decode(const void *bytes, size_t length_bytes, struct vb_endpoint *endpoint)
{
	const uint8_t *at = bytes;
	struct vb_endpoint decoded;
	int err = check_length("endpoint", length_bytes, VB_ENDPOINT_BYTES);

	if (!err)
		err = check_head("endpoint", at, ENDPOINT_HEAD);
	if (err)
		return err;
	if (at[5])
		return fail(EBADMSG, "endpoint: byte 5 is %u, not 0", at[5]);
	decoded = (struct vb_endpoint){
		.mtu = (enum ibv_mtu)at[4],
		.lid = (uint16_t)get32(at + 4),
		.qpn = get32(at + 8),
		.psn = get32(at + 12),
	};
	memcpy(decoded.gid.raw, at + 16, sizeof(decoded.gid.raw));
	err = endpoint_check(&decoded);
	if (!err)
		*endpoint = decoded;
	return err;
}

void vb_remote_encode(const struct vb_remote *remote, uint8_t bytes[VB_REMOTE_BYTES])
{
	uint8_t *at = put32(put_head(bytes, REMOTE_HEAD), remote->rkey);

	put64(put64(at, remote->addr), remote->length_bytes);
}

int vb_remote_decode(const void *bytes, size_t length_bytes, struct vb_remote *remote)
{
	const uint8_t *at = bytes;
	struct vb_remote decoded;
	int err = check_length("remote", length_bytes, VB_REMOTE_BYTES);

	if (!err)
		err = check_head("remote", at, REMOTE_HEAD);
	if (err)
		return err;
	decoded = (struct vb_remote){get64(at + 8), get64(at + 16), get32(at + 4)};
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

	/* strtoul(3) also accepts blanks and a sign. */
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
		return fail(EINVAL, "endpoint: \"%s\" is not of the form name=value", pair);
	*value++ = '\0';
	while (part < PARTS && strcmp(parts[part].name, pair) != 0)
		part++;
	if (part == PARTS)
		return fail(EINVAL, "endpoint: there is no part \"%s\"", pair);
	if (*seen & 1u << part)
		return fail(EINVAL, "endpoint: %s is given twice", pair);
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
		return fail(EINVAL, "endpoint: the text is too long: %zu characters", strlen(text));
	while (!err && (pair = strsep(&rest, ",")))
		err = parse_pair((char *)pair, &seen, &parsed);
	for (size_t i = 0; i < COUNT(parts) && !err; i++)
		if (!(seen & 1u << i))
			err = fail(EINVAL, "endpoint: %s is missing", parts[i].name);
	if (!err)
		*endpoint = parsed;
	return err;
}
