/* SPDX-License-Identifier: MIT */
/*
 * The way out of the engine. Other processes have QPs on the ports of this engine, and other machines
 * have ports that this engine does not know. The engine's owner gives the functions that carry packets
 * there, and hands over what comes from there.
 *
 * An engine without a way out knows all QPs there are. With one, a packet whose QPN no QP of this
 * engine has, and a packet whose address no port of this engine has, goes out.
 */
#ifndef SIM_NET_WIRE_H
#define SIM_NET_WIRE_H

#include "sim/net/gsi.h"
#include "sim/object/lane.h"
#include "sim/object/path.h"
#include "sim/wire/packet.h"

#include <verbena/why.h>

struct sim_device;
struct sim_engine;

/* A packet that leaves the engine. The pointers are valid during the call. */
struct sim_departure {
	const struct sim_port *source;
	/* The port of this engine whose QP another process has; NULL: a port that the engine does not
	 * know. */
	const struct sim_port *dest;
	const struct sim_route *route;
	uint32_t dest_qpn; /* 0xffffff: to a group */
	uint32_t qpn;	   /* the connected QP that sends; 0: a datagram */
	/* The receiver of a message to QP 1 of `dest`, as server() has returned it; 0: another packet. */
	uint64_t process;
	/* The whole frame, with right checksums, if a filter or a delay has encoded the packet. */
	const uint8_t *frame;
	size_t frame_bytes;		 /* 0: not encoded; then the next is the packet */
	const struct sim_packet *packet; /* NULL: encoded */
	/* Reads the spans of the packet. */
	sim_copy_fn *copy;
};

struct sim_way_out {
	void *arg;
	/* Returns true if packets on a path whose address no port of this engine has leave by this way.
	 * Asked once after each change of an address. May change the path's route: its MAC, its UDP
	 * source port. */
	bool (*reaches)(void *arg, struct sim_path *path);
	/* Returns how many packets of any length may be sent now. 0: none; the owner calls
	 * sim_way_out_ready() when it may be more. What nobody takes in has room without end, and
	 * sim_way_out.send() loses it. */
	unsigned int (*room)(void *arg, const struct sim_path *path, uint32_t dest_qpn);
	/* Returns true if an ACK or NAK may be sent now, whatever room() says of longer packets. NULL: as
	 * room() says. */
	bool (*room_for_ack)(void *arg, const struct sim_path *path, uint32_t dest_qpn);
	/* Returns true while the other end of a path has not taken all packets that were sent there, and may
	 * still take them: no answer is missing yet. NULL: never. */
	bool (*lags)(void *arg, const struct sim_path *path, uint32_t dest_qpn);
	/* Sends a packet. Returns false if it is lost here. */
	bool (*send)(void *arg, const struct sim_departure *departure);
	/* Finds the lane of a connection to a QP of another process (sim/object/lane.h): all of it but the epoch.
	 * Returns false if there is none. NULL: always false. */
	bool (*lane)(void *arg, const struct sim_path *path, uint32_t dest_qpn,
		     struct sim_lane *lane);
	/* Returns true if QPs of other processes are in multicast groups at the port. */
	bool (*has_members)(void *arg, const struct sim_port *port);
	/* The number of this engine's memberships at a device has changed. */
	void (*joined)(void *arg, const struct sim_device *device, uint32_t memberships);
	/* A device's first QP joins a group, by ibv_attach_mcast(3): packets to the group shall come from
	 * outside from now on. 0, or an errno value whose reason is kept by sim_refuse(): then the QP does
	 * not join. NULL: nothing to do. Groups that QPs have joined before sim_way_out_set() are left
	 * out. */
	int (*join)(void *arg, const struct sim_device *device, const union ibv_gid *group);
	/* A device's last QP has left a group, also one that was left out of join(). NULL with join(). */
	void (*leave)(void *arg, const struct sim_device *device, const union ibv_gid *group);
	/* Returns who has a QPN. The engine does not ask for a number of its own blocks. */
	enum sim_presence (*find)(void *arg, const struct sim_path *path, uint32_t dest_qpn);
	/* Returns the process that has a number of a device (enum sim_numbers); 0: nobody, or this one. NULL:
	 * always 0. */
	uint64_t (*holder)(void *arg, const struct sim_device *device, unsigned int numbers,
			   uint32_t number);
	/* Sends bytes to sim_way_out_relayed() of a process. Returns false if there is no room. NULL: always
	 * false. */
	bool (*relay)(void *arg, const struct sim_port *port, uint64_t process,
		      const uint8_t *bytes, size_t length);
	/* Returns why packets on a path that reaches() has refused cannot leave: a VB_REFUSAL of
	 * ENETUNREACH, for the destination GID {0} and the source GID of index {2}. VB_WHY_NONE: no wire
	 * leads to the address. May be NULL. */
	enum vb_reason (*barrier)(void *arg, const struct sim_path *path);
	/* Returns why no packet can reach a QP of another process, such as too little memory for it: a VB_REFUSAL;
	 * VB_WHY_NONE: nothing is in the way. Asked once when a connection is made. NULL: always VB_WHY_NONE. */
	struct vb_why (*hindrance)(void *arg, const struct sim_path *path, uint32_t dest_qpn);
	/* Returns the process that takes messages to QP 1 for `target`; 0: no other process.
	 * UINT64_MAX: all other processes, for SIM_GSI_EVERYBODY. NULL, with room_at(): always 0. */
	uint64_t (*server)(void *arg, const struct sim_device *device,
			   const struct sim_gsi_target *target);
	/* Returns the number of messages to QP 1 that a process has room for, as room() does. */
	unsigned int (*room_at)(void *arg, const struct sim_path *path, uint64_t process);
	/* Returns true if a process lives that server() has returned or whose frame has come, or if frames of it
	 * are still to come. Makes a system call. NULL: always true. */
	bool (*lives)(void *arg, uint64_t process);
	/* Asks the owner to call sim_cm_processes_ended() from now on when a process may have ended. Returns false
	 * if the owner cannot: then the engine asks lives() again and again. NULL: always false. */
	bool (*watches)(void *arg);
	/* Reserves a service ID at an address (sim/net/service_address.h) for this process, as
	 * sim_cm_reserve() says. 0, EADDRINUSE, EADDRNOTAVAIL, or ENOMEM. NULL, as the next two: no other
	 * process has services of these ports. */
	int (*reserve)(void *arg, uint64_t service_id, const uint8_t address[16], uint32_t flags);
	/* Takes one reservation of this process back. */
	void (*unreserve)(void *arg, uint64_t service_id, const uint8_t address[16]);
	/* Begins (`on`) or ends the listening of this process to a service ID that it has reserved: server() of
	 * other processes returns it. EADDRINUSE, EADDRNOTAVAIL: another process has the service ID. */
	int (*listen)(void *arg, uint64_t service_id, const uint8_t address[16], bool on);
	/* This process has taken (`on`), or has forgotten, the request of a process with a communication ID: server() of
	 * that process returns this one for SIM_GSI_REQUEST. Best effort. NULL with reserve(). */
	void (*take)(void *arg, uint64_t sender, uint32_t communication_id, bool on);
	/* Returns words for the process because of which the last reserve() or listen() has failed, which stay
	 * until the next call; NULL: there is none. NULL: other processes have no names. */
	const char *(*taken_by)(void *arg);
};

/* Returns true if the way out has room for a packet; process: the receiver of a message to QP 1, or 0. */
static inline bool sim_way_out_has_room(const struct sim_way_out *way, const struct sim_path *path,
					uint32_t dest_qpn, uint64_t process)
{
	return process ? way->room_at(way->arg, path, process)
		       : way->room(way->arg, path, dest_qpn);
}

/* The last request or answer of an inlet that a connected QP has taken. */
struct sim_admitted {
	/* The engine's. While it is this, the QP takes all packets with the values below. 0: none was taken. */
	uint64_t epoch;
	const struct sim_port *port;
	struct sim_qp *qp;
	uint32_t dest_qpn;
	uint16_t pkey;
	uint8_t transport; /* of the opcode */
};

/* A route by which packets come without their network headers. */
struct sim_inlet {
	struct sim_route route;
	uint64_t process; /* as sim_way_out_arrive() says */
	/* Private to sim/net: of an answer, and of a request. Zeros at first. */
	struct sim_admitted admitted[2];
};

/* Gives the engine a way out; NULL takes it away. The structure is copied. joined() learns of the
 * memberships that there are. */
void sim_way_out_set(struct sim_engine *engine, const struct sim_way_out *way);

/* Private to sim/net: the number of a device's memberships has changed. */
void sim_way_out_joined(const struct sim_device *device);

/* Private to sim/net: a device's first QP joins a group (0, or an errno value with a reason), and its last
 * one has left the group. */
int sim_way_out_join(const struct sim_device *device, const union ibv_gid *group);
void sim_way_out_leave(const struct sim_device *device, const union ibv_gid *group);

/*
 * Writes the frame of a departure into room of SIM_FRAME_BYTES_MAX bytes and returns its length; 0 if
 * the payload cannot be read, which is counted. Unless `sealed`, the checksums of a packet that is not
 * encoded yet are left out: the four bytes of its ICRC, and InfiniBand's VCRC, are zeros.
 */
size_t sim_departure_write(const struct sim_departure *departure, bool sealed, uint8_t *room);

/* Writes the packet of a departure from the BTH to the pad, without the headers before the BTH and without the
 * checksums. departure->frame_bytes is 0. Returns the length; 0: the payload cannot be read. */
size_t sim_departure_write_bare(const struct sim_departure *departure, uint8_t *room);

/* A frame comes from outside to a port. `checked`: its checksums are right or left out, and are not
 * looked at. process: the sender, as sim_way_out.lives() knows it; 0: on another machine, whose processes nobody can
 * watch. The frame goes to this engine's QPs only. */
void sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			bool checked, uint64_t process);

/* Bytes of sim_departure_write_bare() come from outside to a port. The inlet has the route of an earlier frame. */
void sim_way_out_arrive_bare(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
			     size_t length);

/* A train of `count` packets comes in the same way. */
void sim_way_out_arrive_train(struct sim_port *port, struct sim_inlet *inlet, const uint8_t *bytes,
			      size_t length, unsigned int count);

/* Bytes that another process has relayed come to a port (sim/qp/relay.h). */
void sim_way_out_relayed(struct sim_port *port, uint64_t process, const uint8_t *bytes,
			 size_t length);

/* There may be room: QPs and packets that wait for room try to leave. */
void sim_way_out_ready(struct sim_engine *engine);

/* Returns true if a packet waits for room. */
bool sim_way_out_is_awaited(const struct sim_engine *engine);

#endif
