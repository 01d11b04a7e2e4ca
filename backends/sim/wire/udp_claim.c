/* SPDX-License-Identifier: MIT */
/* Claims of the wire `udp`: a device's address is its own while its socket is bound there. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/object/refuse.h"
#include "backends/sim/wire/udp_private.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* What a socket asks for; the kernel gives at most net.core.rmem_max and wmem_max. */
#define BUFFER_BYTES (4 << 20)

/* How often, and at which interval, a claim of a taken address tries again. */
#define TRIES  20
#define TRY_NS 5000000

/* --- options --- */

struct option {
	int level, name, value;
	const char *text;
};

/*
 * The ICRC covers the identification of an IPv4 header. The kernel sends 0 if the packet has DF and the
 * socket is not connected: Linux include/net/ip.h, ip_select_ident_segs. IP_PMTUDISC_DO sets DF: Linux
 * net/ipv4/ip_output.c, __ip_make_skb.
 */
static const struct option ipv4_options[] = {
	{IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, "setsockopt(IP_MTU_DISCOVER)"},
	{IPPROTO_IP, IP_TTL, 64, "setsockopt(IP_TTL)"},
	{IPPROTO_IP, IP_MULTICAST_TTL, 64, "setsockopt(IP_MULTICAST_TTL)"},
	{IPPROTO_IP, IP_TOS, 0, "setsockopt(IP_TOS)"},
	{IPPROTO_IP, IP_RECVTOS, 1, "setsockopt(IP_RECVTOS)"},
	{IPPROTO_IP, IP_RECVTTL, 1, "setsockopt(IP_RECVTTL)"},
};

/* Packets of SoftRoCE over IPv6 have no UDP checksum (test/data/rxe-capture-ipv6.pcap); the ICRC protects
 * them. */
static const struct option ipv6_options[] = {
	{IPPROTO_IPV6, IPV6_V6ONLY, 1, "setsockopt(IPV6_V6ONLY)"},
	{IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO, "setsockopt(IPV6_MTU_DISCOVER)"},
	{IPPROTO_IPV6, IPV6_UNICAST_HOPS, 64, "setsockopt(IPV6_UNICAST_HOPS)"},
	{IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 64, "setsockopt(IPV6_MULTICAST_HOPS)"},
	{IPPROTO_IPV6, IPV6_TCLASS, 0, "setsockopt(IPV6_TCLASS)"},
	{IPPROTO_IPV6, IPV6_RECVTCLASS, 1, "setsockopt(IPV6_RECVTCLASS)"},
	{IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1, "setsockopt(IPV6_RECVHOPLIMIT)"},
	{IPPROTO_UDP, UDP_NO_CHECK6_RX, 1, "setsockopt(UDP_NO_CHECK6_RX)"},
};

static int set(int fd, const struct option *options, size_t count, const char **call)
{
	for (size_t i = 0; i < count; i++)
		if (setsockopt(fd, options[i].level, options[i].name, &options[i].value,
			       sizeof(options[i].value))) {
			*call = options[i].text;
			return errno;
		}
	return 0;
}

#ifndef IPV6_AUTOFLOWLABEL
#define IPV6_AUTOFLOWLABEL 70 /* Linux include/uapi/linux/in6.h */
#endif
#ifndef IPV6_FLOWINFO_SEND
#define IPV6_FLOWINFO_SEND 33
#endif

/* Options that a kernel may refuse: large buffers, and the flow label of each datagram. */
static void set_wishes(int fd, bool ipv6)
{
	static const int bytes = BUFFER_BYTES, off = 0, on = 1;

	/* The first of each pair may pass the limit, and needs CAP_NET_ADMIN. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (ipv6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, &off, sizeof(off));
		setsockopt(fd, IPPROTO_IPV6, IPV6_FLOWINFO_SEND, &on, sizeof(on));
	}
}

int udp_open_socket(bool ipv6, const char **call)
{
	const int fd =
		socket(ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	*call = "socket";
	if (fd < 0)
		return -errno;
	err = ipv6 ? set(fd, ipv6_options, sizeof(ipv6_options) / sizeof(ipv6_options[0]), call)
		   : set(fd, ipv4_options, sizeof(ipv4_options) / sizeof(ipv4_options[0]), call);
	if (err) {
		close(fd);
		return -err;
	}
	set_wishes(fd, ipv6);
	return fd;
}

/* IPv4 sends to groups by the interface of the bound address (Linux net/ipv4/route.c,
 * ip_route_output_key_hash_rcu); IPv6 does not. */
static int bind_to(int fd, const struct udp_address *address, const char **call)
{
	const struct option by = {IPPROTO_IPV6, IPV6_MULTICAST_IF, (int)address->interface,
				  "setsockopt(IPV6_MULTICAST_IF)"};
	union udp_sockaddr at;
	const socklen_t bytes = udp_sockaddr(address->gid.raw, &at);

	*call = "bind";
	if (bind(fd, &at.any, bytes))
		return errno;
	return address->ipv6 ? set(fd, &by, 1, call) : 0;
}

int udp_bind(const struct udp_address *address, const char **call)
{
	const int fd = udp_open_socket(address->ipv6, call);
	int err;

	if (fd < 0)
		return fd;
	err = bind_to(fd, address, call);
	if (!err)
		return fd;
	close(fd);
	return -err;
}

/* --- sentences --- */

static int refuse_taken(const struct udp_address *address)
{
	struct udp_holder holder;
	char text[128];

	udp_find_holder(address, &holder);
	if (!holder.process.pid)
		return refuse_name(NULL,
				   holder.everywhere ? VB_WHY_UDP_ADDRESS_HIDDEN
						     : VB_WHY_UDP_ADDRESS_UNSEEN,
				   address->text);
	snprintf(text, sizeof(text), "%s is taken by %s", address->text, holder.process.program);
	return refuse_why(NULL, (struct vb_why){VB_WHY_UDP_ADDRESS_TAKEN,
						{(uint64_t)holder.process.pid},
						.text = text});
}

int udp_refuse_bind(const struct udp_address *address, int error, const char *call)
{
	if (strcmp(call, "bind") != 0)
		return error == EMFILE || error == ENFILE || error == ENOMEM
			       ? refuse_descriptor(NULL, error, "for a UDP socket")
			       : refuse_system(NULL, error, call);
	switch (error) {
	case EADDRINUSE:
		return refuse_taken(address);
	case EADDRNOTAVAIL:
		return refuse_name(NULL, VB_WHY_UDP_ADDRESS_ELSEWHERE, address->text);
	case EACCES:
		return refuse_name(NULL, VB_WHY_UDP_PORT_DENIED, address->text);
	default:
		return refuse_system(NULL, error, call);
	}
}

/* --- claims --- */

/*
 * Returns the loopback address with number `index`, from 1, of this process. 127.128.0.0/9 has a network of
 * 254 addresses for each process number below 32,768. If two processes share a network, bind() decides.
 */
static void own_loopback(unsigned int index, struct udp_address *address)
{
	const uint32_t pid = (uint32_t)getpid();
	const union ibv_gid gid = {.raw = {[10] = 0xff,
					   [11] = 0xff,
					   [12] = 127,
					   [13] = (uint8_t)(0x80 | pid >> 8),
					   [14] = (uint8_t)pid,
					   [15] = (uint8_t)index}};

	udp_address_init(address, &gid);
}

static int claim_loopback(struct udp_address *address)
{
	const char *call;
	int fd = -EADDRINUSE;

	for (unsigned int index = 1; index < 255 && fd == -EADDRINUSE; index++) {
		own_loopback(index, address);
		fd = udp_bind(address, &call);
	}
	if (fd == -EADDRINUSE) {
		refuse_name(NULL, VB_WHY_UDP_LOOPBACK_FULL, address->text);
		return -1;
	}
	if (fd < 0)
		return minus_errno(udp_refuse_bind(address, -fd, call));
	udp_address_find_interface(address);
	return fd;
}

/*
 * Binds an address that was taken. After a process has ended, a child that it has just forked may still have a copy of
 * its sockets, until the child first runs and closes them: such a holder gets a moment. If no process has the port any
 * more, the last one has ended between bind() and the look.
 */
static int bind_taken(const struct udp_address *address, const char **call)
{
	static const struct timespec pause = {.tv_nsec = TRY_NS};
	struct udp_holder holder;
	int fd = -EADDRINUSE;

	for (unsigned int i = 0; i < TRIES && fd == -EADDRINUSE; i++) {
		nanosleep(&pause, NULL);
		fd = udp_bind(address, call);
	}
	if (fd != -EADDRINUSE)
		return fd;
	udp_find_holder(address, &holder);
	return holder.process.pid ? fd : udp_bind(address, call);
}

static int claim_named(const char *text, struct udp_address *address)
{
	const char *call;
	int err = udp_address_find(text, address);
	int fd;

	if (err)
		return minus_errno(err);
	udp_address_find_interface(address);
	fd = udp_bind(address, &call);
	if (fd == -EADDRINUSE)
		fd = bind_taken(address, &call);
	return fd < 0 ? minus_errno(udp_refuse_bind(address, -fd, call)) : fd;
}

int udp_claim_address(const char *text, struct udp_address *address)
{
	const int state = cancel_off();
	const int fd = text[0] ? claim_named(text, address) : claim_loopback(address);

	cancel_restore(state);
	return fd;
}

int udp_describe(const char *text, union ibv_gid *gid, enum ibv_mtu *mtu)
{
	struct udp_address address;
	int err = 0;

	if (text[0])
		err = udp_address_find(text, &address);
	else
		own_loopback(1, &address);
	if (err)
		return err;
	udp_address_find_interface(&address);
	*gid = address.gid;
	*mtu = address.mtu;
	return 0;
}
