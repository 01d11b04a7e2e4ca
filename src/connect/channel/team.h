/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_CHANNEL_TEAM_H
#define SRC_CONNECT_CHANNEL_TEAM_H

#include <verbena/channel.h>

/*
 * A peer is at most one barrier ahead of this node, and sends this node at most two messages in
 * each barrier.
 */
#define BARRIER_RECEIVES 4
#define BARRIER_SENDS	 8

struct barrier_step {
	bool sends; /* else the step waits for a message */
	uint32_t peer;
};

struct team_peer {
	struct vb_channel *channel; /* for the program; NULL in this node's own entry */
	struct vb_channel *barrier;
	struct vb_endpoint remote[2]; /* of the peer's channel and barrier, from its card */
	struct vb_work receives[BARRIER_RECEIVES]; /* a ring */
	uint32_t oldest;
};

struct vb_team {
	struct vb_group *group;
	uint32_t rank, size;
	struct team_peer *peers;
	bool connected;
	int broken; /* errno of the barrier that failed */

	bool entered;
	enum vb_barrier algorithm;
	uint32_t epoch;
	struct barrier_step *steps; /* of the present barrier */
	uint32_t step_count, next_step;
};

/* Room for the steps of any algorithm. */
uint32_t barrier_steps_max(uint32_t size);

/* Posts the receives of a barrier channel. 0 or errno. */
int barrier_prepare(struct team_peer *peer);

#endif /* SRC_CONNECT_CHANNEL_TEAM_H */
