/* SPDX-License-Identifier: MIT */
/* Private to the wire `shared`: the parts of the wire, a file each. */
#ifndef BACKENDS_SIM_WIRE_SHARED_PRIVATE_H
#define BACKENDS_SIM_WIRE_SHARED_PRIVATE_H

#include "backends/sim/wire/shared.h"
#include "backends/sim/wire/shared_areas.h"
#include "backends/sim/wire/shared_places.h"
#include "backends/sim/wire/shared_ring.h"
#include "backends/sim/wire/shared_watch.h"

#include "sim/net/wire.h"
#include "sim/object/device.h"

#include <stdbool.h>
#include <stdint.h>

/* The receiver of a message that goes to all other processes. */
#define SHARED_EVERYBODY UINT64_MAX

/* A ring that could not be made, or mapped, is tried again after this time. */
#define SHARED_RETRY_NS UINT64_C(200000000)

/* How long this process waits for the lock each time when packets can wait for the ring. */
#define SHARED_BARRED_PATIENCE_NS UINT64_C(1000000)

/* How long this process waits for the lock before it puts off the burial of another process. */
#define SHARED_BURIAL_PATIENCE_NS UINT64_C(1000000)

/*
 * The routes of the last frames with network headers in a ring. Both ends keep the same routes. A packet
 * whose route is known travels without these headers, and takes fewer cache lines.
 */
struct routes {
	uint32_t known; /* a bit for each number */
	struct sim_route routes[RING_ROUTES];
	/* For each route number, the lane whose packets have that route, and the lane's epoch; NULL: no lane. */
	const struct sim_lane *lanes[RING_ROUTES];
	uint64_t epochs[RING_ROUTES];
};

/* The consumer's. */
struct inlets {
	uint32_t known; /* a bit for each number */
	struct sim_inlet inlets[RING_ROUTES];
};

/* This process remembers the owners of this many blocks of QPNs to which it has sent. */
#define SHARED_OWNERS_KNOWN 16u

/* The owner of a block of QPNs, as its entry in the table said. */
struct known_owner {
	const _Atomic uint64_t *entry; /* NULL: nothing is known */
	uint64_t value;		       /* of the entry */
	segment_id id;
	uint32_t device, block;
};

/* A ring to another process. Indexed by the place of that process. */
struct outward {
	segment_id id; /* of the consumer; 0: no ring */
	struct area area;
	struct ring_out ring;
	struct routes *routes;
	bool touched; /* has frames since the last flush */
	bool waiting; /* packets wait for room */
	bool stalled; /* the consumer is dead, or has taken nothing for LAG_NS, or the lock is not free */
	bool barred; /* there is no ring yet: another process has the lock */
	/* While packets wait: the head, and the time since when the head has not moved; of a barred ring, how often a
	 * process has given the lock to another one. */
	uint32_t stuck_head;
	uint64_t stuck_since_ns;
	uint64_t life_ns; /* the time of the next check if the consumer lives */
	/* At the last ack timeout: the head, and the time since when it has not moved. */
	uint32_t lag_head;
	uint64_t lag_since_ns;
	uint64_t retry_ns; /* if no ring could be made: the time of the next attempt */
};

/* A ring from another process. */
struct inward {
	struct inward *next;
	segment_id id; /* of the producer */
	struct area area;
	struct ring_in ring;
	struct inlets inlets;
	bool touched; /* frames were taken since the last flush */
	bool behind;  /* the last look has found a frame */
	bool broken;  /* the producer, or another process, has written nonsense into the ring */
	bool gone;    /* its producer has let go */
};

struct shared {
	struct wire wire;
	struct segment segment;
	char *name, *devices_text;
	struct sim_device *devices[SEGMENT_DEVICES];
	struct sim_engine *engine; /* of the devices */
	shared_called_fn *called;
	void *called_arg;
	uint64_t identity, base_ns, wall_base_ns;
	char taker[48];		   /* the words of shared_taken_by() */
	struct bell own_bell;	   /* while not attached */
	struct shared_watch watch; /* starts when the engine asks for it */
	uint32_t news;		   /* the value of `news` when the rings were last looked at */
	uint64_t news_retry_ns;	   /* if a ring could not be mapped: the time of the next attempt */
	bool taken;		   /* an inward ring is touched */
	bool relieved;	  /* a ring with waiting packets has gone: these packets try again */
	uint32_t waiting; /* counts the rings with waiting packets; their places follow */
	uint16_t waited[SHARED_PROCESSES_MAX];
	struct inward *in;
	uint32_t in_count;
	/* The places whose outward rings are touched. */
	uint32_t touched_count;
	uint16_t touched[SHARED_PROCESSES_MAX];
	struct known_owner owners[SHARED_OWNERS_KNOWN];
	/* Counts how often this process has dropped its rings and its mapping of the file. */
	uint64_t forgotten;
	struct outward out[SHARED_PROCESSES_MAX];
};

static inline struct shared *shared_of(const struct wire *wire)
{
	return (struct shared *)wire;
}

static inline bool shared_is_attached(const struct shared *shared)
{
	return shared->segment.id;
}

/* --- shared_out.c: rings to other processes --- */

/* Returns the process that has a QPN; 0: no other process. */
segment_id shared_qpn_owner(struct shared *shared, const struct sim_device *device, uint32_t qpn);

/* Returns the remembered owner of a QPN. Call it after shared_qpn_owner() has returned a process. */
const struct known_owner *shared_known_owner(const struct shared *shared,
					     const struct sim_device *device, uint32_t qpn);

/* Returns the ring to a process, and makes it if need be; NULL if it cannot be made. Waits long for the lock, since the
 * packet is lost without the ring. */
struct outward *shared_out_to(struct shared *shared, segment_id id);

/* The same, for packets that can wait: `barred` is then set if another process has the lock. */
struct outward *shared_out_soon(struct shared *shared, segment_id id);

/* Makes the barred rings with waiting packets, all at once: many processes may want the lock. */
void shared_out_open_barred(struct shared *shared);

static inline struct outward *shared_out_at(struct shared *shared, segment_id id)
{
	return &shared->out[segment_id_place(id) % SHARED_PROCESSES_MAX];
}

/* Releases a ring. Without the lock, the area stays taken until another process buries this one. */
void shared_out_close(struct shared *shared, struct outward *out);

/* --- shared_room.c: room in the rings --- */

unsigned int shared_room(void *arg, const struct sim_path *path, uint32_t dest_qpn);
unsigned int shared_room_at(void *arg, const struct sim_path *path, uint64_t process);
bool shared_lags(void *arg, const struct sim_path *path, uint32_t dest_qpn);
struct vb_why shared_hindrance(void *arg, const struct sim_path *path, uint32_t dest_qpn);

/* Takes a ring from the list of rings with waiting packets. */
void shared_stop_waiting(struct shared *shared, struct outward *out);

/*
 * Looks at the rings with waiting packets. Returns true if these packets should try again. A process that is
 * about to sleep asks the consumers to ring its bell: it calls this after it has begun to listen, as its
 * last look for work.
 */
bool shared_look_for_room(struct shared *shared);

/* --- shared_send.c: packets to other processes --- */

bool shared_send(void *arg, const struct sim_departure *departure);
bool shared_relay(void *arg, const struct sim_port *port, uint64_t process, const uint8_t *bytes,
		  size_t length);

/* Returns the process at a place, if it is another process that has members of groups at the device; else 0. */
segment_id shared_member_at(const struct shared *shared, uint32_t place,
			    const struct sim_device *device);

/* Writes a packet's frame to the place that ring_reserve() has returned. Returns false if the packet cannot
 * be read. */
bool shared_put_at(struct shared *shared, struct outward *out, uint8_t *frame,
		   const struct sim_departure *departure);

/* Returns the number of a route. The routes of different connections between two processes have different
 * UDP source ports. */
static inline uint8_t shared_route_number(const struct sim_route *route)
{
	return (route->udp_source_port ^ route->dlid) % RING_ROUTES;
}

/* Notes that a ring has frames since the last flush. */
static inline void shared_touch(struct shared *shared, struct outward *out)
{
	if (!out->touched)
		shared->touched[shared->touched_count++] =
			(uint16_t)(segment_id_place(out->id) % SHARED_PROCESSES_MAX);
	out->touched = true;
}

/* --- shared_lane.c: packets of connected QPs, whose ring is known --- */

bool shared_lane(void *arg, const struct sim_path *path, uint32_t dest_qpn, struct sim_lane *lane);

/* --- shared_receive.c: rings from other processes --- */

bool shared_arrived(const struct wire *wire);
bool shared_receive(struct wire *wire);

/* Returns true if this process has taken all frames that a dead process has sent, and that can be taken. */
bool shared_is_heard(const struct shared *shared, segment_id id);

#endif
