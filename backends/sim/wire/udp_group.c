/* SPDX-License-Identifier: MIT */
/*
 * Multicast groups of the wire `udp`. The kernel gives a datagram to a group to sockets only that are bound
 * to the group's address or to none (Linux net/ipv4/udp.c, __udp_is_mcast_sock): so a device has a socket
 * for each group that its QPs are in, beside the socket that is bound to the device's address and sends.
 */
#include "backends/sim/base/cancel.h"
#include "backends/sim/wire/udp_private.h"

#include "sim/base/refuse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62 /* Linux include/uapi/asm-generic/socket.h */
#endif

bool udp_group_is_of(const uint8_t group[16], const uint8_t gid[16])
{
	return sim_gid_is_multicast(group) && udp_gid_is_ipv6(group) == udp_gid_is_ipv6(gid);
}

/* --- the socket of a group --- */

static int join_ipv4(int fd, const struct udp_address *address, const union ibv_gid *gid)
{
	struct ip_mreqn request = {.imr_ifindex = 0};

	memcpy(&request.imr_multiaddr, gid->raw + 12, 4);
	memcpy(&request.imr_address, address->gid.raw + 12, 4);
	return setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &request, sizeof(request)) ? errno : 0;
}

static int join_ipv6(int fd, const struct udp_address *address, const union ibv_gid *gid)
{
	struct ipv6_mreq request = {.ipv6mr_interface = address->interface};

	memcpy(&request.ipv6mr_multiaddr, gid->raw, 16);
	return setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &request, sizeof(request)) ? errno : 0;
}

/* Other processes and devices bind the same address: each of their sockets gets each datagram that comes by
 * an interface where the socket has joined. */
static int share(int fd, const struct udp_address *address, const char **call)
{
	static const int on = 1, off = 0;

	*call = "setsockopt(SO_REUSEADDR)";
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return errno;
	*call = "setsockopt(IP_MULTICAST_ALL)";
	if (!address->ipv6)
		return setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off)) ? errno : 0;
	/* The kernel compares the group of an IPv6 socket, and not the interface where the socket has joined (Linux
	 * net/ipv6/mcast.c, inet6_mc_check). So the socket is bound to the interface. Before Linux 5.7, this needs
	 * CAP_NET_RAW; without it, the socket gets the datagrams of other interfaces, too. */
	setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &address->interface,
		   sizeof(address->interface));
	return 0;
}

static int bind_and_join(int fd, const struct udp_address *address, const union ibv_gid *gid,
			 const char **call)
{
	union udp_sockaddr at;
	const socklen_t bytes = udp_sockaddr(gid->raw, &at);

	if (address->ipv6)
		at.v6.sin6_scope_id = address->interface;
	*call = "bind";
	if (bind(fd, &at.any, bytes))
		return errno;
	*call = address->ipv6 ? "setsockopt(IPV6_JOIN_GROUP)" : "setsockopt(IP_ADD_MEMBERSHIP)";
	return (address->ipv6 ? join_ipv6 : join_ipv4)(fd, address, gid);
}

static int watch(int watch_fd, struct udp_group *group, const char **call)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = group};

	*call = "epoll_ctl";
	return epoll_ctl(watch_fd, EPOLL_CTL_ADD, group->fd, &event) ? errno : 0;
}

/* Opens the group's socket. 0, or the errno value of the call of the system that failed, whose name is in
 * *call. */
static int open_group(const struct udp_groups *groups, struct udp_group *group, const char **call)
{
	const struct udp_address *address = &group->socket->address;
	const int fd = udp_open_socket(address->ipv6, call);
	int err;

	if (fd < 0)
		return -fd;
	group->fd = fd;
	err = share(fd, address, call);
	if (!err)
		err = bind_and_join(fd, address, &group->gid, call);
	if (!err)
		err = watch(groups->watch_fd, group, call);
	if (!err)
		return 0;
	close(fd);
	group->fd = -1;
	return err;
}

/* --- groups --- */

static int open_watch(struct udp_groups *groups, const char **call)
{
	*call = "epoll_create1";
	groups->watch_fd = epoll_create1(EPOLL_CLOEXEC);
	return groups->watch_fd < 0 ? errno : 0;
}

static int refuse(struct sim_engine *engine, const union ibv_gid *gid, int error, const char *call)
{
	struct vb_why why = {.reason = VB_WHY_UDP_GROUP_TAKEN};
	const bool binds = strcmp(call, "bind") == 0;

	if (sim_descriptor_reason(error) != VB_WHY_NONE)
		return sim_refuse(engine, (struct vb_why){.reason = sim_descriptor_reason(error),
							  .text = "for the UDP socket of a group"});
	if (!binds || error != EADDRINUSE)
		return sim_refuse_system(engine, error, call);
	memcpy(why.values, gid->raw, sizeof(gid->raw));
	return sim_refuse(engine, why);
}

int udp_groups_join(struct udp_groups *groups, struct udp_socket *socket, const union ibv_gid *gid)
{
	struct sim_engine *engine = socket->device->engine;
	struct udp_group *group;
	const char *call;
	int state, err;

	if (!udp_group_is_of(gid->raw, socket->address.gid.raw))
		return 0;
	group = calloc(1, sizeof(*group));
	if (!group)
		return sim_refuse_memory(engine);
	*group = (struct udp_group){.socket = socket, .gid = *gid, .fd = -1};
	state = cancel_off();
	err = socket->fd >= 0 ? open_group(groups, group, &call) : 0;
	cancel_restore(state);
	if (err) {
		free(group);
		return refuse(engine, gid, err, call);
	}
	group->next = groups->first;
	groups->first = group;
	return 0;
}

static void let_go(struct udp_group *group)
{
	if (group->fd >= 0)
		close(group->fd);
	group->fd = -1;
}

/* To close the socket is not enough: a process that another thread has just forked has a copy of the descriptor, and
 * the kernel goes on to report the group until that one is closed, too: epoll(7). */
static void unwatch(const struct udp_groups *groups, const struct udp_group *group)
{
	if (group->fd >= 0 && groups->watch_fd >= 0)
		epoll_ctl(groups->watch_fd, EPOLL_CTL_DEL, group->fd, NULL);
}

void udp_groups_leave(struct udp_groups *groups, const struct udp_socket *socket,
		      const union ibv_gid *gid)
{
	struct udp_group **link = &groups->first;
	struct udp_group *group;

	while (*link &&
	       ((*link)->socket != socket || memcmp(&(*link)->gid, gid, sizeof(*gid)) != 0))
		link = &(*link)->next;
	group = *link;
	if (!group)
		return;
	*link = group->next;
	unwatch(groups, group);
	let_go(group);
	free(group);
}

unsigned int udp_groups_ready(const struct udp_groups *groups, struct udp_group **ready)
{
	struct epoll_event events[UDP_GROUPS_READY];
	int state, count;

	if (!groups->first || groups->watch_fd < 0)
		return 0;
	state = cancel_off();
	count = epoll_wait(groups->watch_fd, events, UDP_GROUPS_READY, 0);
	cancel_restore(state);
	for (int i = 0; i < count; i++)
		ready[i] = events[i].data.ptr;
	return count > 0 ? (unsigned int)count : 0;
}

void udp_groups_forked(struct udp_groups *groups)
{
	for (struct udp_group *group = groups->first; group; group = group->next)
		let_go(group);
	if (groups->watch_fd >= 0)
		close(groups->watch_fd);
	groups->watch_fd = -1;
}

int udp_groups_open(struct udp_groups *groups, const char **call)
{
	int err = groups->watch_fd < 0 ? open_watch(groups, call) : 0;

	for (struct udp_group *group = groups->first; group && !err; group = group->next)
		if (group->fd < 0)
			err = open_group(groups, group, call);
	return err;
}

void udp_groups_close(struct udp_groups *groups)
{
	udp_groups_forked(groups);
	while (groups->first) {
		struct udp_group *group = groups->first;

		groups->first = group->next;
		free(group);
	}
}
