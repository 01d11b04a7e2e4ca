/* SPDX-License-Identifier: MIT */
/*
 * Lanes: what the network and a wire look up for the packets of a connection to a QP of another process, kept in
 * the QP. Without it, each packet asks three tables where its connection leads. A lane is a shortcut only:
 * whatever it does not do, the network does.
 */
#ifndef SIM_OBJECT_LANE_H
#define SIM_OBJECT_LANE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_lane;
struct sim_packet;
struct sim_path;

/* What a wire does on its lanes. */
struct sim_lane_ops {
	/* Returns how many packets may be sent now. 0: ask the network. */
	unsigned int (*room)(const struct sim_lane *lane);
	/* Sends a packet. Returns false if the network has to send it. A packet that is lost is counted. */
	bool (*send)(const struct sim_lane *lane, const struct sim_path *path,
		     const struct sim_packet *packet);
	/* Returns how many bytes of payload a train may have now; 0: send the packets one by one. NULL, with the next:
	 * always 0. */
	uint32_t (*train_bytes)(const struct sim_lane *lane, const struct sim_path *path);
	/* Sends a train of `count` packets (sim/wire/packet.h). Returns false if nothing was sent, and the packets are
	 * to be sent one by one. */
	bool (*send_train)(const struct sim_lane *lane, const struct sim_path *path,
			   const struct sim_packet *train, unsigned int count);
};

struct sim_lane {
	/* The engine's epoch in which the lane was found, and beyond which it is not used. The complement of the
	 * engine's epoch: there is no lane in that epoch. */
	uint64_t epoch;
	const struct sim_lane_ops *ops;
	/* The wire's. */
	void *wire;
	const void *place;
	uint64_t values[3];
};

#endif
