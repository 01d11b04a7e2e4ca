/* SPDX-License-Identifier: MIT */
/* Pacing of the wire `udp`: how much may be on its way to an address. */
#include "backends/sim/wire/udp_private.h"

#include "backends/sim/base/clock_now.h"

#include "sim/wire/bytes.h"
#include "sim/wire/opcode.h"
#include "sim/wire/psn.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * A datagram takes a block of a power of two, and some administration, of a socket's buffer (Linux
 * net/core/sock.c, sock_rmalloc; net/ipv4/udp.c, __udp_enqueue_schedule_skb). These numbers are about that.
 */
#define COST_BYTES_LEAST 768
#define COST_BYTES_MOST	 8704

/* If the kernel does not say how large a buffer is. */
#define BUFFER_BYTES_DEFAULT 212992

/* The size of the peer's buffer is unknown, and taken to be that of this socket. A third of it may be
 * filled, since an answer may be on its way while as much is sent again. */
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
	pace->queue_fd = udp_queue_open();
}

void udp_pace_end(struct udp_pace *pace)
{
	if (pace->queue_fd >= 0)
		close(pace->queue_fd);
	pace->queue_fd = -1;
}

/* Returns the peer with this address. Addresses may share an entry, which the newest address then has. */
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

static void set_full(struct udp_pace *pace, struct udp_peer *peer)
{
	if (peer->full)
		return;
	peer->full = true;
	peer->full_ns = clock_now_ns(CLOCK_MONOTONIC);
	if (!pace->full_count++ || peer->full_ns + peer->pause_ns < pace->resume_ns)
		pace->resume_ns = peer->full_ns + peer->pause_ns;
}

static void set_ready(struct udp_pace *pace, struct udp_peer *peer)
{
	pace->full_count -= peer->full;
	peer->full = peer->lags = false;
}

unsigned int udp_pace_room(struct udp_pace *pace, const uint8_t gid[16])
{
	struct udp_peer *peer = peer_at(pace, gid);
	const uint64_t flying = is_peer(peer, gid) ? peer->sent_bytes - peer->taken_bytes : 0;

	if (flying < pace->limit_bytes)
		return (unsigned int)((pace->limit_bytes - flying + COST_BYTES_MOST - 1) /
				      COST_BYTES_MOST);
	set_full(pace, peer);
	return 0;
}

static uint32_t psn_at(const uint8_t *bth)
{
	return sim_load_be24(bth + BTH_PSN);
}

/* Adds a probe, far enough from the last one that all probes together cover the datagrams that may be in
 * flight. */
static void add_probe(const struct udp_pace *pace, struct udp_peer *peer, uint32_t qpn,
		      uint32_t psn)
{
	const unsigned int count = peer->probe_count;
	const uint64_t last_bytes = count ? peer->probes[count - 1].sent_bytes : peer->taken_bytes;

	peer->answers = true;
	if (count == UDP_PROBES ||
	    (count && peer->sent_bytes - last_bytes < pace->limit_bytes / UDP_PROBES))
		return;
	peer->probes[count] = (struct udp_probe){qpn, psn, peer->sent_bytes};
	peer->probe_count++;
}

void udp_pace_sent(struct udp_pace *pace, const uint8_t gid[16], uint32_t qpn, const uint8_t *bth,
		   size_t datagram_bytes)
{
	struct udp_peer *peer = peer_at(pace, gid);

	if (!is_peer(peer, gid)) {
		pace->evicted |= peer->full;
		set_ready(pace, peer);
		*peer = (struct udp_peer){.pause_ns = UDP_PAUSE_NS};
		memcpy(peer->gid, gid, sizeof(peer->gid));
	}
	peer->sent_bytes += cost_of(datagram_bytes);
	if (qpn && bth[BTH_PSN - 1] & BTH_ACK_REQUEST && sim_opcodes[bth[0]].flags & SIM_OP_REQUEST)
		add_probe(pace, peer, qpn, psn_at(bth));
}

/* Returns true if a datagram answers a probe. A NAK does, too: the peer has taken all datagrams before the
 * NAK's request. */
static bool answers(const struct udp_probe *probe, const uint8_t *bth)
{
	const uint32_t flags = sim_opcodes[bth[0]].flags;

	return sim_load_be24(bth + BTH_DEST_QPN) == probe->qpn &&
	       (sim_psn_diff(psn_at(bth), probe->psn) >= 0 ||
		(flags & SIM_OP_ACK && (bth[BTH_BYTES] & SIM_AETH_TYPE) != SIM_AETH_ACK));
}

/* Returns how many probes, from the oldest one, a datagram answers. */
static unsigned int answered(const struct udp_peer *peer, const uint8_t *bth)
{
	const uint32_t flags = sim_opcodes[bth[0]].flags;
	unsigned int count = peer->probe_count;

	if (!flags || flags & SIM_OP_REQUEST)
		return 0;
	while (count && !answers(&peer->probes[count - 1], bth))
		count--;
	return count;
}

/*
 * Looks at the socket of a peer on this machine. Returns true if it is still too full, and has been for less than
 * UDP_LAG_NS: then the datagrams in flight wait there, and more of them could be lost.
 */
static bool lags(const struct udp_pace *pace, struct udp_peer *peer, uint64_t now)
{
	uint32_t queued_bytes;

	if (!udp_queued_bytes(pace->queue_fd, peer->gid, &queued_bytes) ||
	    queued_bytes < pace->limit_bytes / 2) {
		peer->lags = false;
		return false;
	}
	if (!peer->lags)
		peer->lag_ns = now;
	peer->lags = true;
	return now - peer->lag_ns < UDP_LAG_NS;
}

/*
 * For a peer to which no request flies that asks for an ACK: its datagrams answer no request. Returns true if the
 * peer has taken the datagrams in flight, or if the kernel does not know. Returns false without asking the kernel
 * while less than half of limit_bytes is in flight: then there is room.
 */
static bool has_taken(const struct udp_pace *pace, struct udp_peer *peer)
{
	if (peer->sent_bytes - peer->taken_bytes < pace->limit_bytes / 2 || peer->lags)
		return false;
	return !lags(pace, peer, clock_now_ns(CLOCK_MONOTONIC));
}

bool udp_pace_heard(struct udp_pace *pace, const uint8_t gid[16], const uint8_t *bth)
{
	struct udp_peer *peer = peer_at(pace, gid);
	const bool waits = peer->full;
	unsigned int count;

	if (!is_peer(peer, gid))
		return false;
	count = answered(peer, bth);
	if (!count && (peer->answers || !has_taken(pace, peer)))
		return false;
	peer->taken_bytes = count ? peer->probes[count - 1].sent_bytes : peer->sent_bytes;
	peer->probe_count -= count;
	memmove(peer->probes, peer->probes + count, peer->probe_count * sizeof(*peer->probes));
	peer->pause_ns = UDP_PAUSE_NS;
	set_ready(pace, peer);
	return waits;
}

/*
 * Gives up waiting for a silent peer, which may be gone or busy. If no answer was to be expected, all
 * datagrams in flight count as taken; else a part, so that what a busy peer has not taken still fits its
 * buffer.
 */
static void give_up(struct udp_pace *pace, struct udp_peer *peer)
{
	const uint64_t allowance = pace->limit_bytes / (peer->answers ? 8 : 1);

	peer->taken_bytes = peer->sent_bytes - pace->limit_bytes + allowance;
	if (peer->answers && peer->pause_ns < UDP_PAUSE_NS_MAX)
		peer->pause_ns *= 2;
	peer->answers = peer->probe_count;
	peer->probe_count = 0;
	set_ready(pace, peer);
}

bool udp_pace_resumes(struct udp_pace *pace)
{
	bool resumes = pace->evicted;
	uint64_t now;

	pace->evicted = false;
	if (!pace->full_count)
		return resumes;
	now = clock_now_ns(CLOCK_MONOTONIC);
	if (now < pace->resume_ns)
		return resumes;
	pace->resume_ns = UINT64_MAX;
	for (struct udp_peer *peer = pace->peers; peer < pace->peers + UDP_PEERS; peer++) {
		if (!peer->full)
			continue;
		if (now - peer->full_ns >= peer->pause_ns && lags(pace, peer, now))
			peer->full_ns = now;
		if (now - peer->full_ns >= peer->pause_ns) {
			give_up(pace, peer);
			resumes = true;
		} else if (peer->full_ns + peer->pause_ns < pace->resume_ns) {
			pace->resume_ns = peer->full_ns + peer->pause_ns;
		}
	}
	return resumes;
}
