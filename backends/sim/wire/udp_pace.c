/* SPDX-License-Identifier: MIT */
/* Pacing of the wire `udp`: how much may be on its way to an address. */
#include "backends/sim/wire/udp_private.h"

#include <string.h>
#include <time.h>

/*
 * The kernel counts against a socket's buffer what a datagram occupies in memory: a block of a power of
 * two, and its administration (Linux net/core/sock.c, sock_rmalloc; net/ipv4/udp.c,
 * __udp_enqueue_schedule_skb). These are about that.
 */
#define COST_BYTES_LEAST 768
#define COST_BYTES_MOST	 8704

/* If the kernel does not say how large a buffer is. */
#define BUFFER_BYTES_DEFAULT 212992

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The peer's buffer is not known. It is taken to be as large as the socket's own. A third of it may be
 * filled, since an answer may come while as much is under way. */
void udp_pace_init(struct udp_pace *pace, int fd)
{
	int bytes = 0;
	socklen_t size = sizeof(bytes);

	memset(pace, 0, sizeof(*pace));
	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size) || bytes <= 0)
		bytes = BUFFER_BYTES_DEFAULT;
	pace->limit_bytes = (uint32_t)bytes / 3;
	if (pace->limit_bytes < COST_BYTES_MOST)
		pace->limit_bytes = COST_BYTES_MOST;
}

/* Addresses may share a place: then the newest has it. */
static struct udp_peer *peer_at(struct udp_pace *pace, const uint8_t gid[16])
{
	return &pace->peers[(gid[15] ^ gid[14] * 7u ^ gid[13] * 31u ^ gid[7]) % UDP_PEERS];
}

static bool is_peer(const struct udp_peer *peer, const uint8_t gid[16])
{
	return memcmp(peer->gid, gid, sizeof(peer->gid)) == 0;
}

static uint32_t cost_of(size_t datagram_bytes)
{
	uint32_t cost = COST_BYTES_LEAST;

	while (cost < datagram_bytes + 512)
		cost *= 2;
	return cost > COST_BYTES_MOST ? COST_BYTES_MOST : cost;
}

unsigned int udp_pace_room(struct udp_pace *pace, const uint8_t gid[16])
{
	struct udp_peer *peer = peer_at(pace, gid);
	const uint32_t flying = is_peer(peer, gid) ? peer->flying_bytes : 0;

	if (flying < pace->limit_bytes)
		return (pace->limit_bytes - flying + COST_BYTES_MOST - 1) / COST_BYTES_MOST;
	peer->full = true;
	if (!pace->full) {
		pace->full = true;
		pace->full_ns = now_ns();
	}
	return 0;
}

void udp_pace_sent(struct udp_pace *pace, const uint8_t gid[16], size_t datagram_bytes)
{
	struct udp_peer *peer = peer_at(pace, gid);

	if (!is_peer(peer, gid)) {
		memcpy(peer->gid, gid, sizeof(peer->gid));
		peer->flying_bytes = 0;
	}
	peer->flying_bytes += cost_of(datagram_bytes);
}

bool udp_pace_heard(struct udp_pace *pace, const uint8_t gid[16])
{
	struct udp_peer *peer = peer_at(pace, gid);
	const bool waits = peer->full;

	if (!is_peer(peer, gid))
		return false;
	peer->flying_bytes = 0;
	peer->full = false;
	return waits;
}

bool udp_pace_resumes(struct udp_pace *pace)
{
	if (!pace->full || now_ns() - pace->full_ns < UDP_PAUSE_NS)
		return false;
	pace->full = false;
	for (struct udp_peer *peer = pace->peers; peer < pace->peers + UDP_PEERS; peer++)
		if (peer->full) {
			peer->full = false;
			peer->flying_bytes = 0;
		}
	return true;
}
