/* SPDX-License-Identifier: MIT */
/* A network namespace of a test's own, where no other process has an address. */
#ifndef TEST_UNIT_UDP_NAMESPACE_H
#define TEST_UNIT_UDP_NAMESPACE_H

#include "test/unit/udp_peer.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* What a child ends with that may not make a namespace. */
#define NO_NAMESPACE 77

/* Enters a network namespace whose loopback interface is up and has the MTU. Returns false if this user may
 * not. Root may without a user namespace, which some systems forbid (sysctl user.max_user_namespaces). */
static inline bool enter_namespace(int mtu)
{
	struct ifreq request = {.ifr_name = "lo"};
	int fd;

	if (unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		return false;
	request.ifr_flags = IFF_UP | IFF_LOOPBACK;
	if (ioctl(fd, SIOCSIFFLAGS, &request))
		return false;
	request.ifr_mtu = mtu;
	return !ioctl(fd, SIOCSIFMTU, &request);
}

/* Gives the loopback interface of the namespace an IPv6 address (netdevice(7), struct in6_ifreq), and returns once the
 * kernel lets sockets be bound to it. */
static inline void add_address(const char *text)
{
	const struct {
		union ibv_gid address;
		uint32_t prefix_bits;
		int interface;
	} request = {udp_gid(text), 64, 1};
	const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	union udp_sockaddr at;
	const socklen_t at_bytes = udp_sockaddr(request.address.raw, &at);

	at.v6.sin6_port = 0;
	TEST_ASSERT_EQUAL_INT(0, ioctl(fd, SIOCSIFADDR, &request));
	while (bind(fd, &at.any, at_bytes))
		TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, errno);
	close(fd);
}

/* Forks a child that has a network namespace of its own. Returns 0 in the child. */
static inline int fork_into_namespace(int mtu)
{
	const int pid = fork();

	if (!pid && !enter_namespace(mtu))
		_exit(NO_NAMESPACE);
	return pid;
}

/* Waits for the child. The test is skipped if the child could not enter a namespace: unshare(2) needs CAP_SYS_ADMIN or
 * user namespaces. */
static inline void expect_namespace_end(int pid)
{
	int status;

	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	if (WEXITSTATUS(status) == NO_NAMESPACE)
		TEST_IGNORE_MESSAGE("this user may not make a network namespace");
	TEST_ASSERT_EQUAL_INT(0, status);
}

#endif
