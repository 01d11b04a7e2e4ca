/* SPDX-License-Identifier: MIT */
/*
 * Where QPs send: the network, which stands above them, gives these functions.
 */
#ifndef SIM_QP_OUTLET_H
#define SIM_QP_OUTLET_H

#include "sim/object/lane.h"
#include "sim/object/path.h"

struct sim_engine;
struct sim_qp;

struct sim_outlet {
	/* Sends a packet. The network reads its spans before it returns. */
	void (*send)(struct sim_engine *engine, struct sim_path *path,
		     const struct sim_packet *packet);
	/* The QP that has dest_qpn at the other end of a path, if packets reach it at once and
	 * unobserved, so that nothing but its admission decides; else NULL. */
	struct sim_qp *(*direct)(struct sim_engine *engine, struct sim_path *path,
				 uint32_t dest_qpn);
	/* Finds out where a path leads now. */
	void (*find_way)(struct sim_engine *engine, struct sim_path *path);
	/* Returns how many packets may be sent on a path now; 0: the QP waits, and gets a turn when there
	 * may be room. NULL: there is always room. */
	unsigned int (*room)(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn);
	/* Returns true if an ACK or NAK may be sent on a path now. NULL with room. */
	bool (*room_for_ack)(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn);
	/* Finds the lane of a connection, which is used while filters and delays are not. Returns false if there is
	 * none. NULL with room. */
	bool (*lane)(struct sim_engine *engine, struct sim_path *path, uint32_t dest_qpn,
		     struct sim_lane *lane);
	/* Returns true while packets of a path wait for a receiver that does not run. NULL: never. */
	bool (*lags)(struct sim_engine *engine, const struct sim_path *path, uint32_t dest_qpn);
	/* Returns who has a QPN at the end of a path, if no QP of the engine has it. NULL: nobody. */
	enum sim_presence (*find)(struct sim_engine *engine, const struct sim_path *path,
				  uint32_t dest_qpn);
	/* Returns why no packet can reach a QP at the end of a path, if no QP of the engine has the number. NULL:
	 * nothing is ever in the way. */
	struct vb_why (*hindrance)(struct sim_engine *engine, const struct sim_path *path,
				   uint32_t dest_qpn);
	/* Returns the process that has a number of a device; 0: nobody, or this one. Both functions are NULL
	 * if no other process has QPs here. */
	uint64_t (*holder)(struct sim_engine *engine, const struct sim_device *device,
			   unsigned int numbers, uint32_t number);
	/* Sends bytes to the relay of a process (sim/qp/relay.h). Returns false if there is no room. */
	bool (*relay)(struct sim_engine *engine, const struct sim_port *port, uint64_t process,
		      const uint8_t *bytes, size_t length);
	/* A UD QP ends: it leaves its multicast groups. */
	void (*forget)(struct sim_qp *qp);
};

#endif
