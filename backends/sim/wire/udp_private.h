/* SPDX-License-Identifier: MIT */
/* Private to the wire `udp`: the parts of the wire, a file each. */
#ifndef BACKENDS_SIM_WIRE_UDP_PRIVATE_H
#define BACKENDS_SIM_WIRE_UDP_PRIVATE_H

#include "backends/sim/base/holder.h"
#include "backends/sim/wire/udp.h"

#include "sim/object/device.h"
#include "sim/wire/packet.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>

/* A device has one socket. */
#define UDP_SOCKETS_MAX 64
/* The most datagrams of a system call. */
#define UDP_BATCH 64
/* The buffer of a datagram: its first bytes are for the headers that the kernel reads and writes. */
#define UDP_HEAD_BYTES	 64
#define UDP_BUFFER_BYTES (UDP_HEAD_BYTES + 4224)
/* The longest datagram of a packet. */
#define UDP_DATAGRAM_BYTES_MAX (SIM_FRAME_BYTES_MAX - 14 - 40 - 8)

/* --- addresses: udp_address.c, udp_claim.c, udp_holder.c --- */

union udp_sockaddr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct udp_address {
	union ibv_gid gid;
	bool ipv6;
	char text[INET6_ADDRSTRLEN];
	/* Of the interface that has the address: */
	enum ibv_mtu mtu;
	unsigned int interface; /* its index; 0: not found */
};

bool udp_gid_is_ipv6(const uint8_t gid[16]);

/* Returns the length of the socket address of a GID and port 4791. */
socklen_t udp_sockaddr(const uint8_t gid[16], union udp_sockaddr *to);

/* Fills in an address from its GID. */
void udp_address_init(struct udp_address *address, const union ibv_gid *gid);

/* Finds the address that a text names. 0, or an errno value with a sentence. */
int udp_address_find(const char *text, struct udp_address *address);

/* Finds the interface that has the address. */
void udp_address_find_interface(struct udp_address *address);

/* Makes a socket with the options of the wire, which is not bound. Returns as udp_bind(). */
int udp_open_socket(bool ipv6, const char **call);

/* Binds a socket to the address. Returns the socket, or the negative errno value of the call of the system
 * that failed, whose name is in *call. */
int udp_bind(const struct udp_address *address, const char **call);

/* Claims the address that the text names. Returns the socket, or -1 with errno set and a sentence. */
int udp_claim_address(const char *text, struct udp_address *address);

/* Keeps the sentence of a failed udp_bind() and returns the errno value. */
int udp_refuse_bind(const struct udp_address *address, int error, const char *call);

/* Who has port 4791 of an address. */
struct udp_holder {
	bool everywhere; /* the socket is bound to all addresses */
	struct holder process;
};

void udp_find_holder(const struct udp_address *address, struct udp_holder *holder);

/* The BTH: the offsets of its fields, its length, and the bit before the PSN. */
enum { BTH_DEST_QPN = 5, BTH_PSN = 9, BTH_BYTES = 12, BTH_ACK_REQUEST = 0x80 };

/* --- sockets of peers on this machine: udp_queue.c --- */

/* Returns a descriptor for udp_queued_bytes(); -1: the kernel gives none, and tells nothing. */
int udp_queue_open(void);

/* Sets *bytes to what waits in the buffer of the socket that is bound to port 4791 of the address. Returns false if
 * the kernel does not tell: the socket is on another machine, for example. */
bool udp_queued_bytes(int fd, const uint8_t gid[16], uint32_t *bytes);

/* --- pacing: udp_pace.c --- */

/*
 * UDP has no credits: a burst that does not fit the receiver's buffer is lost. All QPs, connected or not, may send
 * what fits a part of the buffer, until the peer has taken it or a pause has passed.
 *
 * What the peer has taken is known from its answers: datagrams keep their order, so the peer has taken what
 * was sent before the request that it answers. Some of the requests that fly to a peer are probes, whose
 * answers are looked for. Unreliable QPs send no request that asks for an ACK. Then the kernel says what a peer on
 * this machine has taken, and any datagram from a peer on another machine counts as an answer to all requests.
 */
#define UDP_PEERS  256
#define UDP_PROBES 8

/* A pause; it doubles each time until an answer comes. */
#define UDP_PAUSE_NS	 200000
#define UDP_PAUSE_NS_MAX 12800000

/* A peer on this machine that takes nothing for so long loses packets. */
#define UDP_LAG_NS 2000000000

/* A request whose answer shows what the peer has taken. */
struct udp_probe {
	uint32_t qpn; /* of the QP that sent it */
	uint32_t psn;
	uint64_t sent_bytes; /* the bytes sent to the peer, up to this request */
};

struct udp_peer {
	uint8_t gid[16];
	bool answers; /* requests that ask for an ACK are in flight, or were until the last pause */
	bool full;    /* a QP waits for the peer to take datagrams */
	bool lags;    /* true while the peer's socket is too full; since lag_ns */
	uint64_t lag_ns;
	uint64_t full_ns, pause_ns; /* since this time of CLOCK_MONOTONIC, at most this long */
	uint64_t sent_bytes;	    /* all bytes that were sent to the peer */
	uint64_t taken_bytes; /* the bytes of them that the peer has taken, or that were given up */
	unsigned int probe_count;
	struct udp_probe probes[UDP_PROBES]; /* in the order of sending */
};

struct udp_pace {
	int queue_fd; /* of udp_queue_open() */
	uint32_t limit_bytes;
	uint32_t full_count; /* of peers */
	uint64_t resume_ns;  /* when the first pause ends */
	bool evicted;	     /* a peer for which QPs waited has lost its entry: they may send */
	struct udp_peer peers[UDP_PEERS];
};

/* fd: the socket. End the pace when the socket is closed. */
void udp_pace_init(struct udp_pace *pace, int fd);
void udp_pace_end(struct udp_pace *pace);

/* Returns how many packets of any length may be sent to the address now. */
unsigned int udp_pace_room(struct udp_pace *pace, const uint8_t gid[16]);

/* Counts a datagram, which begins with its BTH, as sent to the address. qpn is the connected QP that sends
 * it, or 0. */
void udp_pace_sent(struct udp_pace *pace, const uint8_t gid[16], uint32_t qpn, const uint8_t *bth,
		   size_t datagram_bytes);

/* Counts a datagram that has arrived from the address. Returns true if a QP was waiting for it. */
bool udp_pace_heard(struct udp_pace *pace, const uint8_t gid[16], const uint8_t *bth);

/* Returns true if QPs that wait may send again: a pause is over, or nothing is known of their peer any more. */
bool udp_pace_resumes(struct udp_pace *pace);

/* --- batches: udp_batch.c --- */

#define UDP_CONTROL_BYTES (2 * CMSG_SPACE(sizeof(int)))

/* The datagrams of one call of sendmmsg(2) or recvmmsg(2). */
struct udp_batch {
	unsigned int count;	     /* of datagrams to send */
	unsigned int requests, acks; /* how many of these are requests, and plain ACKs */
	bool request[UDP_BATCH];
	struct mmsghdr messages[UDP_BATCH];
	struct iovec parts[UDP_BATCH];
	union udp_sockaddr addresses[UDP_BATCH];
	_Alignas(struct cmsghdr) uint8_t controls[UDP_BATCH][UDP_CONTROL_BYTES];
	_Alignas(64) uint8_t buffers[UDP_BATCH][UDP_BUFFER_BYTES];
};

struct udp_socket {
	int fd; /* -1: the parent has it */
	struct udp_address address;
	struct sim_device *device; /* NULL before udp_join() */
	bool no_flow_labels;	   /* the kernel has refused one */
	/* While the program polls: */
	unsigned int rests; /* how many calls of receive() leave out the socket */
	unsigned int waits; /* how many calls of receive() the queued ACKs still wait for */
	struct udp_counters counters;
	struct udp_pace pace;
	struct udp_batch *out;
};

struct udp_batch *udp_batch_create(void);

/* Returns the buffer of the next datagram, of UDP_BUFFER_BYTES bytes; sends a full batch before. */
uint8_t *udp_next_buffer(struct udp_socket *socket);

/* Queues the datagram at `offset` in the buffer of udp_next_buffer(). The address and the fields of the
 * IP header are those of the route. */
void udp_queue(struct udp_socket *socket, size_t offset, size_t datagram_bytes,
	       const struct sim_route *route);

/* Sends the queued datagrams: requests first, for which the peer's program may wait. */
void udp_flush(struct udp_socket *socket);

/* Returns true if only ACKs are queued: the peer's program does not wait for them as it waits for a request. */
bool udp_may_wait(const struct udp_socket *socket);

/* A received datagram. */
struct udp_arrival {
	uint8_t *payload; /* behind UDP_HEAD_BYTES bytes that may be overwritten */
	size_t bytes;
	bool truncated;
	uint16_t source_port;
	uint8_t source_gid[16];
	const union ibv_gid *dest_gid; /* the device's, or a group's; set by udp.c */
	uint8_t traffic_class;
	uint8_t hop_limit;
};

/* Receives a batch from fd, the socket's or that of a group of the device. Returns the number of
 * datagrams. */
unsigned int udp_receive(struct udp_socket *socket, int fd, struct udp_batch *in);

/* Reads datagram `index` of a received batch, and makes its place ready for another one. */
void udp_take(struct udp_batch *in, unsigned int index, struct udp_arrival *arrival);

/* --- groups: udp_group.c --- */

/* The most groups that udp_groups_ready() returns. */
#define UDP_GROUPS_READY 16

/* A multicast group that QPs of a device are in. */
struct udp_group {
	struct udp_group *next;
	struct udp_socket *socket; /* of the device */
	union ibv_gid gid;
	int fd; /* -1: the parent has it */
};

struct udp_groups {
	struct udp_group *first;
	int watch_fd;	    /* epoll(7): can be read if a group's socket can */
	unsigned int rests; /* how many calls of receive() leave out the groups' sockets */
};

/* Returns true if devices with this GID reach the group: IPv4 has groups of its own. */
bool udp_group_is_of(const uint8_t group[16], const uint8_t gid[16]);

/* Makes the descriptors that are missing: after udp_groups_forked(), those of all groups. 0, or the errno
 * value of the call of the system that failed, whose name is in *call. */
int udp_groups_open(struct udp_groups *groups, const char **call);

/* Joins the group at the interface of the device's address. The group of another IP version has members
 * in this process only. 0, or an errno value whose reason the engine of the device keeps. */
int udp_groups_join(struct udp_groups *groups, struct udp_socket *socket, const union ibv_gid *gid);
void udp_groups_leave(struct udp_groups *groups, const struct udp_socket *socket,
		      const union ibv_gid *gid);

/* Writes the groups that have datagrams to ready[UDP_GROUPS_READY], and returns how many. */
unsigned int udp_groups_ready(const struct udp_groups *groups, struct udp_group **ready);

/* In the child of a fork(): closes its copies of the parent's descriptors. */
void udp_groups_forked(struct udp_groups *groups);
void udp_groups_close(struct udp_groups *groups);

/* --- frames: udp_frame.c --- */

/* Sets the MAC of a group (RFC 1112, RFC 2464), or one of local administration (IEEE 802) that stands for
 * the adapter with this GID. */
void udp_frame_mac(const uint8_t gid[16], uint8_t mac[6]);

/* Writes the headers in front of the BTH of a received datagram. Returns the frame and sets its length. */
uint8_t *udp_frame_make(const struct udp_arrival *arrival, size_t *frame_bytes);

/* Returns false if the headers before the BTH of a frame, which a filter may have changed, are not those
 * that the kernel will write. Sets the fields of *route that the kernel takes from its caller. */
bool udp_frame_reads(const uint8_t *frame, size_t frame_bytes, struct sim_route *route);

/* --- the thread that waits for datagrams: udp_listener.c --- */

struct udp_listener {
	pthread_t thread;
	bool runs;
	struct bell *bell;
	int wake_fd;	   /* wakes the thread out of its sleep on the sockets */
	_Atomic bool on;   /* somebody wants the bell to ring */
	_Atomic bool aims; /* the thread watches the sockets, or is about to */
	/* The mutex guards the rest. */
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool began, ends;
	bool hurries; /* the bell rings after a pause at the latest */
	unsigned int count;
	struct pollfd fds[UDP_SOCKETS_MAX + 2];
};

/* 0, or the errno value of the call of the system that failed, whose name is in *call. */
int udp_listener_start(struct udp_listener *listener, struct bell *bell, const char **call);

/* Forgets the thread, which the child of a fork() does not have. */
void udp_listener_forget(struct udp_listener *listener);
void udp_listener_stop(struct udp_listener *listener);

/* Sets the sockets and the descriptor of the groups that the thread watches. */
void udp_listener_watch(struct udp_listener *listener, struct udp_socket *const *sockets,
			unsigned int count, int groups_fd);

/* on: datagrams ring the bell from now on. */
void udp_listener_set(struct udp_listener *listener, bool on);

/* The bell rings after a pause, even if no datagram comes. */
void udp_listener_hurry(struct udp_listener *listener);

/* Call this when all datagrams are taken: the next one rings the bell, if it is on. */
void udp_listener_aim(struct udp_listener *listener);

/* --- the wire: udp.c --- */

struct udp {
	struct wire wire;
	int process; /* the process that claimed the addresses; in the child of a fork(), the parent */
	unsigned int count;
	struct udp_socket *sockets[UDP_SOCKETS_MAX];
	struct udp_groups groups;
	struct udp_listener listener;
	struct udp_batch *in;
};

#endif
