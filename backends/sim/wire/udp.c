/* SPDX-License-Identifier: MIT */
/* The wire `udp`: the functions that the engine and the clock call. */
#include "backends/sim/wire/udp.h"

#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/udp_private.h"

#include "sim/wire/mad.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- data --- */

/*
 * Every verb calls receive(), and a look at a socket is a system call. While the program polls, most calls
 * leave the socket out: for a device without QPs, many calls in a row; for a socket that has just been
 * emptied, the two verbs by which a program answers a message, one that posts a receive and one that posts a
 * send. ACKs are sent a little later than that.
 */
#define REST_WITHOUT_QPS 63
#define REST_AFTER_BATCH 2
#define ACK_CALLS	 4

enum { CNP = 0x81, ECN = 0x3, ECN_CONGESTION = 0x3 };

static const struct {
	const char *name;
	size_t offset;
} counters[] = {
	{"datagrams sent", offsetof(struct udp_counters, sent)},
	{"datagrams received", offsetof(struct udp_counters, received)},
	{"datagrams not sent: longer than the MTU of the way",
	 offsetof(struct udp_counters, too_long)},
	{"datagrams not sent: no way to the address", offsetof(struct udp_counters, unreachable)},
	{"datagrams not sent: the kernel had no room", offsetof(struct udp_counters, unsent)},
	{"datagrams dropped: longer than a packet", offsetof(struct udp_counters, truncated)},
	{"datagrams dropped: from an address or port that no peer can have",
	 offsetof(struct udp_counters, foreign)},
	{"datagrams dropped: of this process, to a group", offsetof(struct udp_counters, own)},
	{"congestion notifications received",
	 offsetof(struct udp_counters, congestion_notifications)},
	{"packets received with a mark of congestion",
	 offsetof(struct udp_counters, congestion_marks)},
	{"packets received with an IPv4 identification other than 0",
	 offsetof(struct udp_counters, identified)},
};

/* --- sockets --- */

static struct udp_socket *socket_of(const struct udp *udp, const struct sim_device *device)
{
	for (unsigned int i = 0; i < udp->count; i++)
		if (udp->sockets[i]->device == device)
			return udp->sockets[i];
	return NULL;
}

static bool has(const struct wire *wire, const struct sim_device *device)
{
	return socket_of((const struct udp *)wire, device);
}

/* --- sending --- */

static bool is_loopback(const uint8_t gid[16])
{
	return sim_gid_is_ipv4(gid) ? gid[12] == 127
				    : IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)gid);
}

/* Returns true if the path is of RoCE v2 and begins at the address of the device's socket. */
static bool leaves_by(const struct udp *udp, const struct sim_path *path)
{
	const struct udp_socket *socket = socket_of(udp, path->source->device);
	const struct sim_route *route = &path->route;

	return socket && !route->infiniband && !route->roce_v1 &&
	       memcmp(route->source_gid, &socket->address.gid, sizeof(route->source_gid)) == 0;
}

static enum vb_reason barrier(void *arg, const struct sim_path *path)
{
	const struct sim_route *route = &path->route;

	if (!socket_of(arg, path->source->device) || route->infiniband)
		return VB_WHY_PATH_UNREACHABLE;
	if (!leaves_by(arg, path))
		return VB_WHY_UDP_SOURCE_GID;
	/* The kernel sends from a loopback address to loopback addresses only: Linux net/ipv4/route.c,
	 * ip_route_output_key_hash_rcu and ip_mc_validate_source. */
	if (is_loopback(route->source_gid) != is_loopback(route->dest_gid))
		return VB_WHY_UDP_LOOPBACK;
	return VB_WHY_NONE;
}

/* Returns true if packets from the port's address to a group leave the process. The wire does not
 * know the members. */
static bool reaches_group(void *arg, const struct sim_path *path)
{
	const struct sim_route *route = &path->route;

	return leaves_by(arg, path) && udp_group_is_of(route->dest_gid, route->source_gid);
}

static bool reaches(void *arg, struct sim_path *path)
{
	if (path->multicast ? !reaches_group(arg, path) : barrier(arg, path) != VB_WHY_NONE)
		return false;
	path->route.udp_source_port = SIM_UDP_PORT;
	udp_frame_mac(path->route.dest_gid, path->route.dest_mac);
	return true;
}

static unsigned int room(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	struct udp *udp = arg;
	struct udp_socket *socket;
	unsigned int packets;

	/* A message to QP 1 is short, and leaves at once: the process may end before there is room. The peer would wait
	 * long for the end of a connection. */
	if (dest_qpn == SIM_GSI_QPN)
		return UINT_MAX;
	socket = socket_of(udp, path->source->device);
	if (!socket || socket->fd < 0)
		return UINT_MAX;
	packets = udp_pace_room(&socket->pace, path->route.dest_gid);
	if (!packets)
		udp_listener_hurry(&udp->listener);
	return packets;
}

/* An ACK is short, and lets the peer's requests go on. */
static bool room_for_ack(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	(void)arg;
	(void)path;
	(void)dest_qpn;
	return true;
}

static bool send_datagram(void *arg, const struct sim_departure *departure)
{
	struct udp_socket *socket = socket_of(arg, departure->source->device);
	struct sim_route route = *departure->route;
	size_t frame_bytes, offset;
	uint8_t *frame;

	if (!socket || socket->fd < 0 ||
	    (departure->frame_bytes &&
	     !udp_frame_reads(departure->frame, departure->frame_bytes, &route)))
		return false;
	frame = udp_next_buffer(socket);
	frame_bytes = sim_departure_write(departure, true, frame);
	offset = sim_route_bytes(&route);
	if (frame_bytes <= offset)
		return false;
	if (!socket->out->count)
		socket->waits = ACK_CALLS;
	if (!sim_gid_is_multicast(route.dest_gid))
		udp_pace_sent(&socket->pace, route.dest_gid, departure->qpn, frame + offset,
			      frame_bytes - offset);
	udp_queue(socket, offset, frame_bytes - offset, &route);
	return true;
}

/* While the program polls, ACKs wait for what the program sends next: so a request does not wait for the
 * system call of an ACK. */
static void flush(struct wire *wire)
{
	struct udp *udp = (struct udp *)wire;

	for (unsigned int i = 0; i < udp->count; i++) {
		struct udp_socket *socket = udp->sockets[i];

		if (socket->out->count && (udp->listener.on || !udp_may_wait(socket)))
			udp_flush(socket);
	}
}

/* --- groups; other processes, of which the wire knows none --- */

static int join(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	struct udp *udp = arg;

	return udp_groups_join(&udp->groups, socket_of(udp, device), group);
}

static void leave(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	struct udp *udp = arg;

	udp_groups_leave(&udp->groups, socket_of(udp, device), group);
}

/* Returns false: no other process has QPs on a port of this wire. */
static bool has_members(void *arg, const struct sim_port *port)
{
	(void)arg;
	(void)port;
	return false;
}

static void joined(void *arg, const struct sim_device *device, uint32_t memberships)
{
	(void)arg;
	(void)device;
	(void)memberships;
}

static enum sim_presence find(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	(void)arg;
	(void)path;
	(void)dest_qpn;
	return SIM_PRESENCE_UNKNOWN;
}

/* --- receiving --- */

/* Returns true if a packet may come from there. */
static bool is_peer(const struct udp_arrival *arrival)
{
	return arrival->source_port && !sim_gid_is_multicast(arrival->source_gid);
}

/* Counts a packet that only reports congestion. Returns true if the packet needs no further handling. */
static bool is_congestion(struct udp_socket *socket, const struct udp_arrival *arrival,
			  uint16_t identification)
{
	socket->counters.identified += identification != 0;
	socket->counters.congestion_marks += (arrival->traffic_class & ECN) == ECN_CONGESTION;
	if (arrival->payload[0] != CNP)
		return false;
	socket->counters.congestion_notifications++;
	return true;
}

static bool is_to_group(const struct udp_arrival *arrival)
{
	return sim_gid_is_multicast(arrival->dest_gid->raw);
}

/* Returns true if a device of this process has sent the datagram to a group. The engine has given such a
 * packet to its own QPs already. */
static bool is_own(const struct udp *udp, const struct udp_arrival *arrival)
{
	for (unsigned int i = 0; i < udp->count; i++)
		if (memcmp(&udp->sockets[i]->address.gid, arrival->source_gid,
			   sizeof(arrival->source_gid)) == 0)
			return true;
	return false;
}

/* Returns true if the datagram makes room for QPs that wait: it comes from their peer and
 * acknowledges earlier datagrams. */
static bool arrive(struct udp_socket *socket, const struct udp_arrival *arrival)
{
	uint16_t identification = 0;
	bool checked, awaited = false;
	size_t frame_bytes;
	uint8_t *frame;

	if (arrival->truncated) {
		socket->counters.truncated++;
		return false;
	}
	if (!is_peer(arrival)) {
		socket->counters.foreign++;
		return false;
	}
	frame = udp_frame_make(arrival, &frame_bytes);
	checked = sim_packet_identify(frame, frame_bytes, &identification);
	if (checked) {
		awaited = !is_to_group(arrival) &&
			  udp_pace_heard(&socket->pace, arrival->source_gid, arrival->payload);
		if (is_congestion(socket, arrival, identification))
			return awaited;
	}
	/* If the ICRC is wrong, the decoder finds out why, and counts that. */
	sim_way_out_arrive(&socket->device->ports[0], frame, frame_bytes, checked, 0);
	return awaited;
}

/* Gives the engine the datagrams of a batch. Returns true if QPs were waiting for one of them. */
static bool take(struct udp *udp, struct udp_socket *socket, const union ibv_gid *dest,
		 unsigned int count)
{
	bool ready = false;

	for (unsigned int at = 0; at < count; at++) {
		struct udp_arrival arrival;

		udp_take(udp->in, at, &arrival);
		arrival.dest_gid = dest;
		if (is_to_group(&arrival) && is_own(udp, &arrival))
			socket->counters.own++;
		else
			ready |= arrive(socket, &arrival);
	}
	return ready;
}

/* Gives the engine the datagrams that have arrived at a socket. Returns true if there were any. */
static bool empty(struct udp *udp, struct udp_socket *socket)
{
	const unsigned int count = udp_receive(socket, socket->fd, udp->in);
	bool ready = take(udp, socket, &socket->address.gid, count);

	ready |= udp_pace_resumes(&socket->pace);
	if (ready)
		sim_way_out_ready(socket->device->engine);
	if (!socket->device->qps.live)
		socket->rests = REST_WITHOUT_QPS;
	else if (count && count < UDP_BATCH)
		socket->rests = REST_AFTER_BATCH;
	return count;
}

/* Gives the engine the datagrams that have arrived for groups. Returns true if there were any. */
static bool empty_groups(struct udp *udp)
{
	struct udp_group *ready[UDP_GROUPS_READY];
	const unsigned int groups = udp_groups_ready(&udp->groups, ready);
	bool came = false;

	/* A received packet ends no membership; only a verb does. */
	for (unsigned int i = 0; i < groups; i++) {
		struct udp_group *group = ready[i];
		const unsigned int count = udp_receive(group->socket, group->fd, udp->in);

		take(udp, group->socket, &group->gid, count);
		came |= count > 0;
	}
	udp->groups.rests = REST_AFTER_BATCH;
	return came;
}

/* Returns true if a socket, or the groups, are left out of this call of receive(). */
static bool rests(const struct udp *udp, unsigned int *calls)
{
	if (udp->listener.on || !*calls)
		return false;
	--*calls;
	return true;
}

static bool receive(struct wire *wire)
{
	struct udp *udp = (struct udp *)wire;
	bool came = false;

	for (unsigned int i = 0; i < udp->count; i++) {
		struct udp_socket *socket = udp->sockets[i];

		if (socket->waits)
			socket->waits--;
		if (socket->device && socket->fd >= 0 && !rests(udp, &socket->rests))
			came |= empty(udp, socket);
	}
	if (udp->groups.first && !rests(udp, &udp->groups.rests))
		came |= empty_groups(udp);
	udp_listener_aim(&udp->listener);
	return came;
}

static void set_listening(struct wire *wire, bool on)
{
	udp_listener_set(&((struct udp *)wire)->listener, on);
}

/* --- fork() --- */

/* Closes the child's copies of a parent's sockets. The parent keeps its addresses. */
static void let_go(struct udp_socket *socket)
{
	if (socket->fd >= 0) {
		close(socket->fd);
		udp_pace_end(&socket->pace);
	}
	socket->fd = -1;
	socket->out->count = socket->out->requests = socket->out->acks = 0;
}

static void forked(struct wire *wire)
{
	struct udp *udp = (struct udp *)wire;

	udp_listener_forget(&udp->listener);
	for (unsigned int i = 0; i < udp->count; i++)
		let_go(udp->sockets[i]);
	udp_groups_forked(&udp->groups);
}

/* A GID of a device does not change: the child can have the address only if the parent has ended. */
static int refuse_again(const struct udp *udp, const struct udp_address *address, int error,
			const char *call)
{
	struct udp_holder holder = {0};

	if (error == EADDRINUSE)
		udp_find_holder(address, &holder);
	if (holder.process.pid && holder.process.pid == udp->process)
		return refuse_why(NULL, (struct vb_why){VB_WHY_UDP_PARENT,
							{(uint64_t)holder.process.pid},
							.text = address->text});
	return udp_refuse_bind(address, error, call);
}

static int bind_again(struct udp *udp)
{
	for (unsigned int i = 0; i < udp->count; i++) {
		struct udp_socket *socket = udp->sockets[i];
		const char *call;
		int fd;

		if (socket->fd >= 0)
			continue;
		fd = udp_bind(&socket->address, &call);
		if (fd < 0)
			return refuse_again(udp, &socket->address, -fd, call);
		socket->fd = fd;
		udp_pace_init(&socket->pace, fd);
	}
	return 0;
}

static int join_again(struct udp *udp)
{
	const char *call;
	int err = udp_groups_open(&udp->groups, &call);

	return err ? refuse_system(NULL, err, call) : 0;
}

static int start_listener(struct udp *udp)
{
	const char *call;
	int err;

	if (udp->listener.runs)
		return 0;
	err = udp_listener_start(&udp->listener, udp->listener.bell, &call);
	return err ? refuse_system(NULL, err, call) : 0;
}

static int resume(struct wire *wire)
{
	struct udp *udp = (struct udp *)wire;
	int err = bind_again(udp);

	if (!err)
		err = join_again(udp);
	if (!err)
		err = start_listener(udp);
	if (err) {
		forked(wire);
		return err;
	}
	udp_listener_watch(&udp->listener, udp->sockets, udp->count, udp->groups.watch_fd);
	udp->process = getpid();
	return 0;
}

/* --- the wire --- */

static void close_wire(struct wire *wire)
{
	struct udp *udp = (struct udp *)wire;

	udp_listener_stop(&udp->listener);
	udp_groups_close(&udp->groups);
	for (unsigned int i = 0; i < udp->count; i++) {
		let_go(udp->sockets[i]);
		free(udp->sockets[i]->out);
		free(udp->sockets[i]);
	}
	free(udp->in);
	free(udp);
}

static const struct wire functions = {
	.name = "udp",
	.way =
		{
			.reaches = reaches,
			.room = room,
			.room_for_ack = room_for_ack,
			.send = send_datagram,
			.has_members = has_members,
			.joined = joined,
			.join = join,
			.leave = leave,
			.find = find,
			.barrier = barrier,
		},
	.has = has,
	.receive = receive,
	.flush = flush,
	.listen = set_listening,
	.forked = forked,
	.resume = resume,
	.close = close_wire,
};

int udp_open(struct bell *bell, struct wire **wire)
{
	struct udp *udp = calloc(1, sizeof(*udp));
	int err;

	if (!udp)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	udp->wire = functions;
	udp->wire.way.arg = udp;
	udp->process = getpid();
	udp->listener.bell = bell;
	udp->groups.watch_fd = -1;
	udp->in = udp_batch_create();
	err = udp->in ? join_again(udp) : refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	if (!err)
		err = start_listener(udp);
	if (err) {
		close_wire(&udp->wire);
		return err;
	}
	*wire = &udp->wire;
	return 0;
}

void udp_set_bell(struct wire *wire, struct bell *bell)
{
	struct udp_listener *listener = &((struct udp *)wire)->listener;

	if (listener->runs)
		pthread_mutex_lock(&listener->mutex);
	listener->bell = bell;
	if (listener->runs)
		pthread_mutex_unlock(&listener->mutex);
}

static struct udp_socket *make_socket(void)
{
	struct udp_socket *socket = calloc(1, sizeof(*socket));

	if (socket)
		socket->out = udp_batch_create();
	if (socket && socket->out)
		return socket;
	free(socket);
	return NULL;
}

int udp_claim(struct wire *wire, const char *text, union ibv_gid *gid)
{
	struct udp *udp = (struct udp *)wire;
	struct udp_socket *socket = make_socket();

	assert(udp->count < UDP_SOCKETS_MAX);
	if (!socket)
		return refuse_plainly(NULL, VB_WHY_NO_MEMORY);
	socket->fd = udp_claim_address(text, &socket->address);
	if (socket->fd < 0) {
		free(socket->out);
		free(socket);
		return errno;
	}
	udp_pace_init(&socket->pace, socket->fd);
	udp->sockets[udp->count++] = socket;
	udp_listener_watch(&udp->listener, udp->sockets, udp->count, udp->groups.watch_fd);
	*gid = socket->address.gid;
	return 0;
}

static struct udp_socket *last_socket(const struct wire *wire)
{
	const struct udp *udp = (const struct udp *)wire;

	assert(udp->count);
	return udp->sockets[udp->count - 1];
}

enum ibv_mtu udp_mtu(const struct wire *wire)
{
	return last_socket(wire)->address.mtu;
}

void udp_join(struct wire *wire, struct sim_device *device)
{
	last_socket(wire)->device = device;
}

const struct udp_counters *udp_counters(const struct wire *wire, const struct sim_device *device)
{
	return &socket_of((const struct udp *)wire, device)->counters;
}

const char *udp_counter(const struct udp_counters *of, unsigned int index, uint64_t *value)
{
	if (index >= sizeof(counters) / sizeof(counters[0]))
		return NULL;
	*value = *(const uint64_t *)((const char *)of + counters[index].offset);
	return counters[index].name;
}
