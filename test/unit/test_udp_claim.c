/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the wire `udp`: which a text names, who has one, and the whole sentence of each refusal.
 * Some calls of the system are the test's own (--wrap).
 */
#include "backends/sim/base/say.h"
#include "backends/sim/object/refuse.h"
#include "test/unit/udp_namespace.h"

#include <ifaddrs.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct bell bell;
static struct wire *wires[2];
static struct sim_device devices[2];
static int bind_error;	  /* of every bind(), if not 0 */
static bool no_addresses; /* getifaddrs() finds none */
static int holder_pid;	  /* the process that ends when the claim of its address sleeps; 0: none */
static int
	holder_end; /* a descriptor that keeps the address until the look in /proc has ended; -1: none */

int __real_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length);
int __wrap_nanosleep(const struct timespec *duration, struct timespec *left);
void __real_udp_find_holder(const struct udp_address *address, struct udp_holder *holder);
void __wrap_udp_find_holder(const struct udp_address *address, struct udp_holder *holder);
int __real_getifaddrs(struct ifaddrs **entries);
int __wrap_getifaddrs(struct ifaddrs **entries);
void __real_freeifaddrs(struct ifaddrs *entries);
void __wrap_freeifaddrs(struct ifaddrs *entries);
void __wrap_sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			       bool checked, uint64_t process);
void __wrap_sim_way_out_ready(struct sim_engine *engine);
size_t __wrap_sim_departure_write(const struct sim_departure *departure, bool sealed,
				  uint8_t *room);

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	if (bind_error) {
		errno = bind_error;
		return -1;
	}
	return __real_bind(fd, address, length);
}

int __wrap_nanosleep(const struct timespec *duration, struct timespec *left)
{
	(void)duration;
	(void)left;
	if (holder_pid) {
		kill(holder_pid, SIGKILL);
		waitpid(holder_pid, NULL, 0);
		holder_pid = 0;
	}
	return 0;
}

void __wrap_udp_find_holder(const struct udp_address *address, struct udp_holder *holder)
{
	__real_udp_find_holder(address, holder);
	if (holder_end >= 0)
		close(holder_end);
	holder_end = -1;
}

int __wrap_getifaddrs(struct ifaddrs **entries)
{
	*entries = NULL;
	return no_addresses ? 0 : __real_getifaddrs(entries);
}

void __wrap_freeifaddrs(struct ifaddrs *entries)
{
	if (entries)
		__real_freeifaddrs(entries);
}

void __wrap_sim_way_out_arrive(struct sim_port *port, const uint8_t *frame, size_t frame_bytes,
			       bool checked, uint64_t process)
{
	(void)process;
	(void)frame;
	(void)frame_bytes;
	port->device->counters.received_packets += checked;
}

void __wrap_sim_way_out_ready(struct sim_engine *engine)
{
	(void)engine;
}

size_t __wrap_sim_departure_write(const struct sim_departure *departure, bool sealed, uint8_t *room)
{
	(void)sealed;
	memcpy(room, departure->frame, departure->frame_bytes);
	return departure->frame_bytes;
}

static const char *sentence(void)
{
	static char text[512];

	return vb_why_text(said(), text, sizeof(text));
}

/* The name of this process as the kernel has it: at most 15 bytes. */
static const char *own_name(void)
{
	static char name[16];

	snprintf(name, sizeof(name), "%s", program_invocation_short_name);
	return name;
}

static void expect_refusal(int error, int result, enum vb_reason reason, const char *expected)
{
	TEST_ASSERT_EQUAL_STRING(expected, sentence());
	TEST_ASSERT_EQUAL_HEX(reason, said()->reason);
	TEST_ASSERT_EQUAL_INT(error, result);
}

static int claim(unsigned int index, const char *text, union ibv_gid *gid)
{
	int err = udp_claim(wires[index], text, gid);

	if (err)
		return err;
	memset(&devices[index], 0, sizeof(devices[index]));
	devices[index].ports[0].device = &devices[index];
	devices[index].qps.live = 1;
	udp_join(wires[index], &devices[index]);
	return 0;
}

static const char *text_of(const union ibv_gid *gid)
{
	static char text[INET6_ADDRSTRLEN];

	return inet_ntop(AF_INET, gid->raw + 12, text, sizeof(text));
}

static void close_wire(unsigned int index)
{
	if (wires[index])
		wires[index]->close(wires[index]);
	wires[index] = NULL;
}

void setUp(void)
{
	bind_error = 0;
	holder_pid = 0;
	holder_end = -1;
	no_addresses = false;
	for (unsigned int i = 0; i < 2; i++)
		TEST_ASSERT_EQUAL_INT(0, udp_open(&bell, &wires[i]));
}

void tearDown(void)
{
	close_wire(0);
	close_wire(1);
}

/* --- which addresses --- */

/* Devices of a process are neighbours, apart from the addresses that programs use. */
void test_free_addresses_differ(void)
{
	union ibv_gid gids[4];

	for (unsigned int i = 0; i < 4; i++) {
		TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[i / 2], "", &gids[i]));
		TEST_ASSERT_TRUE(sim_gid_is_ipv4(gids[i].raw));
		TEST_ASSERT_EQUAL_UINT(127, gids[i].raw[12]);
		TEST_ASSERT_TRUE(gids[i].raw[13] & 0x80);
		TEST_ASSERT_EQUAL_MEMORY(gids[0].raw, gids[i].raw, 15);
		TEST_ASSERT_EQUAL_UINT(gids[0].raw[15] + i, gids[i].raw[15]);
		TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, udp_mtu(wires[i / 2]));
	}
}

/* Only the named address is bound: the port is free at the others. */
void test_other_addresses_stay_free(void)
{
	union ibv_gid gid, other;
	int fd;

	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[0], "", &gid));
	other = gid;
	other.raw[15] ^= 0x80;
	fd = udp_plain(&other, SIM_UDP_PORT);
	close(fd);
	/* Nor can anybody share the port. */
	TEST_ASSERT_NOT_EQUAL(0, udp_claim(wires[1], text_of(&gid), &other));
}

static void expect_address(const char *text, const char *expected)
{
	struct udp_address address;

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, udp_address_find(text, &address), text);
	TEST_ASSERT_EQUAL_STRING(expected, address.text);
}

void test_texts_of_addresses(void)
{
	expect_address("10.1.2.3", "10.1.2.3");
	expect_address("::ffff:10.1.2.3", "10.1.2.3");
	expect_address("FD00::0:1", "fd00::1");
	expect_address("lo", "127.0.0.1");
}

void test_mtu_is_the_interfaces(void)
{
	struct udp_address address;

	TEST_ASSERT_EQUAL_INT(0, udp_address_find("lo", &address));
	udp_address_find_interface(&address);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, address.mtu);
	/* An interface that is not known is taken for Ethernet. */
	no_addresses = true;
	udp_address_find_interface(&address);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, address.mtu);
}

/* The attributes of a device can be read while another process has its address. */
void test_a_taken_address_is_described(void)
{
	union ibv_gid gid, described;
	enum ibv_mtu mtu;

	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[0], "", &gid));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, udp_claim(wires[1], text_of(&gid), &described));
	TEST_ASSERT_EQUAL_INT(0, udp_describe(text_of(&gid), &described, &mtu));
	TEST_ASSERT_EQUAL_MEMORY(gid.raw, described.raw, sizeof(gid.raw));
	TEST_ASSERT_EQUAL_INT(udp_mtu(wires[0]), mtu);
	/* Without a text: the first address of this process, taken or not. */
	memset(&described, 0, sizeof(described));
	TEST_ASSERT_EQUAL_INT(0, udp_describe("", &described, &mtu));
	TEST_ASSERT_EQUAL_MEMORY(gid.raw, described.raw, sizeof(gid.raw));
	TEST_ASSERT_EQUAL_INT(IBV_MTU_4096, mtu);
}

void test_a_described_address_stays_free(void)
{
	union ibv_gid gid;
	enum ibv_mtu mtu;
	struct udp_address address;

	TEST_ASSERT_EQUAL_INT(0, udp_describe("", &gid, &mtu));
	udp_address_init(&address, &gid);
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[0], address.text, &gid));
}

/* --- refusals --- */

static void expect_undescribed(int error, const char *text, enum vb_reason reason)
{
	enum ibv_mtu mtu;
	union ibv_gid gid;

	TEST_ASSERT_EQUAL_INT(error, udp_describe(text, &gid, &mtu));
	TEST_ASSERT_EQUAL_HEX(reason, said()->reason);
}

void test_texts_that_describe_nothing(void)
{
	expect_undescribed(EINVAL, "10.0.0.300", VB_WHY_UDP_ADDRESS);
	expect_undescribed(EINVAL, "224.0.0.1", VB_WHY_UDP_ADDRESS_KIND);
	expect_undescribed(ENODEV, "nosuch0", VB_WHY_UDP_INTERFACE);
}

static void expect_named(int error, const char *text, enum vb_reason reason, const char *expected)
{
	union ibv_gid gid;

	expect_refusal(error, udp_claim(wires[0], text, &gid), reason, expected);
}

void test_names(void)
{
	expect_named(
		EINVAL, "10.0.0.300", VB_WHY_UDP_ADDRESS,
		"\"10.0.0.300\" is no IPv4 or IPv6 address; write an address such as 10.0.0.1 or "
		"fd00::1, without a prefix length, a port or a zone; or the name of an interface");
	expect_named(
		EINVAL, "fe80::1%2", VB_WHY_UDP_ADDRESS,
		"\"fe80::1%2\" is no IPv4 or IPv6 address; write an address such as 10.0.0.1 or "
		"fd00::1, without a prefix length, a port or a zone; or the name of an interface");
	expect_named(
		ENODEV, "nosuch0", VB_WHY_UDP_INTERFACE,
		"no interface of this network namespace is called \"nosuch0\"; name an interface "
		"that `ip link` shows, or an IPv4 or IPv6 address");
	no_addresses = true;
	expect_named(
		EADDRNOTAVAIL, "lo", VB_WHY_UDP_INTERFACE_BARE,
		"the interface lo has no IPv4 address and no global IPv6 address; give it one, "
		"as by `ip address add 10.0.0.1/24 dev lo`");
}

void test_addresses_that_no_device_has(void)
{
	static const struct {
		const char *text, *expected;
	} rows[] = {
		{"0.0.0.0", "0.0.0.0 is the address that stands for all of a machine's, and cannot "
			    "be the GID of a device of the wire udp; name a unicast address of an "
			    "interface that is not link-local"},
		{"::", "the address that stands for all of a machine's"},
		{"224.0.0.1", "224.0.0.1 is the address of a group"},
		{"ff02::1", "ff02::1 is the address of a group"},
		{"fe80::1", "fe80::1 is a link-local address"},
	};

	expect_named(EINVAL, rows[0].text, VB_WHY_UDP_ADDRESS_KIND, rows[0].expected);
	for (size_t i = 1; i < sizeof(rows) / sizeof(rows[0]); i++) {
		union ibv_gid gid;

		TEST_ASSERT_EQUAL_INT(EINVAL, udp_claim(wires[0], rows[i].text, &gid));
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(sentence(), rows[i].expected), sentence());
	}
}

void test_an_address_of_another_machine(void)
{
	expect_named(
		EADDRNOTAVAIL, "192.0.2.1", VB_WHY_UDP_ADDRESS_ELSEWHERE,
		"no interface that is up has the address 192.0.2.1; name an address that `ip "
		"address` shows in this network namespace, or bring its interface up, as by `ip "
		"link set lo up`");
}

void test_a_port_that_is_denied(void)
{
	bind_error = EACCES;
	expect_named(
		EACCES, "127.0.0.1", VB_WHY_UDP_PORT_DENIED,
		"the kernel does not let this process bind UDP port 4791 of 127.0.0.1; set "
		"net.ipv4.ip_unprivileged_port_start to 4791 or less, or look for the security "
		"policy that forbids it");
}

void test_no_free_address(void)
{
	char expected[512];
	struct udp_address last;
	int fd = udp_claim_address("", &last);

	close(fd);
	bind_error = EADDRINUSE;
	last.gid.raw[15] = 254;
	snprintf(expected, sizeof(expected),
		 "UDP port 4791 is taken at each of the 254 loopback addresses that this process "
		 "tries, up to %s; name a free address; where the kernel's SoftRoCE (rdma_rxe) has "
		 "the port at every address, run in another network namespace",
		 text_of(&last.gid));
	expect_named(EADDRINUSE, "", VB_WHY_UDP_LOOPBACK_FULL, expected);
}

/* --- who has the address --- */

static void expect_taken(const char *address, int by, const char *program)
{
	char expected[512];

	snprintf(expected, sizeof(expected),
		 "UDP port 4791 of %s is taken by %s (process %d); give each process an address of "
		 "its own, or leave out the address, so that each takes a free one of the loopback "
		 "network",
		 address, program, by);
	expect_named(EADDRINUSE, address, VB_WHY_UDP_ADDRESS_TAKEN, expected);
}

void test_the_sentence_names_the_holder(void)
{
	union ibv_gid gid;

	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[1], "", &gid));
	expect_taken(text_of(&gid), getpid(), own_name());
}

/* A child claims an address, and tells it by the pipe; it ends when the parent says so. */
static int fork_holder(const char *text, union ibv_gid *gid, int *to_child)
{
	int up[2], down[2];
	int pid;

	TEST_ASSERT_EQUAL_INT(0, pipe(up));
	TEST_ASSERT_EQUAL_INT(0, pipe(down));
	pid = fork();
	if (!pid) {
		struct udp_address address;
		char byte;

		close(down[1]);
		if (udp_claim_address(text, &address) < 0 ||
		    write(up[1], &address.gid, sizeof(address.gid)) < 0)
			_exit(1);
		_exit(read(down[0], &byte, 1) != 0);
	}
	TEST_ASSERT_EQUAL_INT(sizeof(*gid), read(up[0], gid, sizeof(*gid)));
	close(up[0]);
	close(up[1]);
	close(down[0]);
	*to_child = down[1];
	return pid;
}

void test_the_sentence_names_another_process(void)
{
	union ibv_gid gid, own[2];
	int to_child, status, pid;

	/* This process has the port at other addresses. */
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[1], "", &own[0]));
	pid = fork_holder("", &gid, &to_child);
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[1], "", &own[1]));
	expect_taken(text_of(&gid), pid, own_name());
	close(to_child);
	waitpid(pid, &status, 0);
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[0], text_of(&gid), &gid));
}

/* A socket on its way to another process (unix(7), SCM_RIGHTS) is bound, and no process has it. */
static int hide(int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int pair[2];

	TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	TEST_ASSERT_EQUAL_INT(1, sendmsg(pair[0], &message, 0));
	close(pair[0]);
	close(fd);
	return pair[1];
}

void test_the_sentence_names_an_unseen_holder(void)
{
	char expected[512];
	struct udp_address address;
	const int fd = hide(udp_claim_address("", &address));

	snprintf(expected, sizeof(expected),
		 "UDP port 4791 of %s is taken by a process that /proc does not show to this one: "
		 "another user's, one of another PID namespace, or one that is ending; try again "
		 "in a moment, look for the process as root by `ss -ulnp`, or give the device "
		 "another address",
		 address.text);
	expect_named(EADDRINUSE, address.text, VB_WHY_UDP_ADDRESS_UNSEEN, expected);
	close(fd);
}

/* A child of a process that has ended has not closed its copy of the socket yet. */
void test_an_address_that_becomes_free_soon(void)
{
	struct udp_address address;
	const int fd = udp_claim_address("", &address);
	union ibv_gid gid;

	holder_pid = fork();
	if (!holder_pid) {
		alarm(60);
		for (;;)
			pause();
	}
	close(fd);
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[0], address.text, &gid));
}

void test_an_address_that_becomes_free_during_the_look(void)
{
	struct udp_address address;
	union ibv_gid gid;

	holder_end = hide(udp_claim_address("", &address));
	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[0], address.text, &gid));
}

/* Sockets that no process has are bound to other ports of the address. */
void test_the_sentence_names_the_holder_of_the_port(void)
{
	union ibv_gid gid;
	int ends[20];

	TEST_ASSERT_EQUAL_INT(0, udp_claim(wires[1], "", &gid));
	for (unsigned int i = 0; i < 20; i++)
		ends[i] = hide(udp_plain(&gid, 0));
	expect_taken(text_of(&gid), getpid(), own_name());
	for (unsigned int i = 0; i < 20; i++)
		close(ends[i]);
}

/* Runs the function in a child that has a network namespace of its own: other tests have claimed addresses in this
 * one. */
static void in_namespace(void (*run)(void))
{
	const int pid = fork_into_namespace(65536);

	if (!pid) {
		for (unsigned int i = 0; i < 2; i++)
			wires[i]->forked(wires[i]);
		run();
		_exit(0);
	}
	expect_namespace_end(pid);
}

/* Claims an address while a socket that no process has is bound to all addresses. */
static void expect_hidden(const char *address, const char *all)
{
	const union ibv_gid everywhere = udp_gid(all);
	const int end = hide(udp_plain(&everywhere, SIM_UDP_PORT));
	char expected[512];

	snprintf(expected, sizeof(expected),
		 "UDP port 4791 of %s is taken by a socket that is bound to all addresses, of the "
		 "kernel or of another user's process; SoftRoCE (rdma_rxe) has the port at every "
		 "address of the initial network namespace; give the device another address, "
		 "remove the kernel's rxe devices, or run in another network namespace",
		 address);
	expect_named(EADDRINUSE, address, VB_WHY_UDP_ADDRESS_HIDDEN, expected);
	close(end);
}

/* SoftRoCE binds the port at all addresses. A socket of IPv6 has the port of IPv4, too. */
static void claim_beside_all(void)
{
	expect_hidden("127.0.0.1", "0.0.0.0");
	expect_hidden("127.0.0.1", "::");
	expect_hidden("::1", "::");
}

void test_the_sentence_names_a_hidden_holder(void)
{
	in_namespace(claim_beside_all);
}

/* Other processes have the port at other addresses. */
static void claim_ipv6_twice(void)
{
	struct udp_address address;
	union ibv_gid gid;
	int pids[2], to_children[2];

	add_address("fd00::7f00:1"); /* its last bytes are those of 127.0.0.1 */
	pids[0] = fork_holder("127.0.0.1", &gid, &to_children[0]);
	pids[1] = fork_holder("::1", &gid, &to_children[1]);
	TEST_ASSERT_GREATER_OR_EQUAL(0, udp_claim_address("fd00::7f00:1", &address));
	expect_taken("fd00::7f00:1", getpid(), own_name());
	expect_taken("127.0.0.1", pids[0], own_name());
	expect_taken("::1", pids[1], own_name());
	for (unsigned int i = 0; i < 2; i++) {
		close(to_children[i]);
		kill(pids[i], SIGKILL);
		TEST_ASSERT_EQUAL_INT(pids[i], waitpid(pids[i], NULL, 0));
	}
	TEST_ASSERT_GREATER_OR_EQUAL(0, udp_claim_address("::1", &address));
}

void test_the_sentence_names_the_holder_of_an_ipv6_address(void)
{
	in_namespace(claim_ipv6_twice);
}

/* Returns once the first thread of the process has ended: the state behind the name in proc(5), /proc/PID/stat. */
static void wait_for_zombie(int pid)
{
	char path[64], line[512], state = 'R';

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	while (state != 'Z') {
		FILE *file = fopen(path, "re");

		TEST_ASSERT_NOT_NULL(file);
		TEST_ASSERT_NOT_NULL(fgets(line, sizeof(line), file));
		fclose(file);
		state = strrchr(line, ')')[2];
	}
}

static void *hold_on(void *pipe_end)
{
	char byte;

	_exit(read((int)(intptr_t)pipe_end, &byte, 1) != 0);
}

/* The first thread of the process has ended, and has no descriptors any more. */
void test_the_sentence_names_a_process_without_its_first_thread(void)
{
	struct udp_address address;
	const int fd = udp_claim_address("", &address);
	int ends[2], status, pid;
	pthread_t thread;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	pid = fork();
	if (!pid) {
		close(ends[1]);
		pthread_create(&thread, NULL, hold_on, (void *)(intptr_t)ends[0]);
		pthread_exit(NULL);
	}
	close(fd);
	close(ends[0]);
	wait_for_zombie(pid);
	expect_taken(address.text, pid, own_name());
	close(ends[1]);
	waitpid(pid, &status, 0);
	TEST_ASSERT_EQUAL_INT(0, status);
}

/* --- fork() --- */

/* Runs fn in a child, which has forked the wires; fails unless it returns 0. */
static void in_child(int (*fn)(int parent_ends), bool parent_closes)
{
	int ends[2], status;
	int pid;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	pid = fork();
	if (!pid) {
		close(ends[1]);
		wires[0]->forked(wires[0]);
		_exit(fn(ends[0]));
	}
	if (parent_closes)
		close_wire(0);
	close(ends[0]);
	close(ends[1]);
	waitpid(pid, &status, 0);
	TEST_ASSERT_EQUAL_INT(0, status);
}

static union ibv_gid parents;

static int is_refused(int parent_ends)
{
	char expected[512];

	(void)parent_ends;
	snprintf(expected, sizeof(expected),
		 "process %d, of which this process is a fork, has UDP port 4791 of %s, which is "
		 "the "
		 "GID of the device; open the device in one of the two processes only, or let the "
		 "child execute a program, which claims an address of its own",
		 getppid(), text_of(&parents));
	if (wires[0]->resume(wires[0]) != EADDRINUSE || said()->reason != VB_WHY_UDP_PARENT ||
	    strcmp(sentence(), expected) != 0) {
		fprintf(stderr, "%s\n", sentence());
		return 1;
	}
	wires[0]->close(wires[0]);
	return 0;
}

void test_a_child_cannot_have_its_parents_address(void)
{
	union ibv_gid other;
	struct sim_route by;
	uint8_t frame[256];
	struct sim_departure departure = {
		.source = &devices[1].ports[0], .route = &by, .frame = frame};

	TEST_ASSERT_EQUAL_INT(0, claim(0, "", &parents));
	TEST_ASSERT_EQUAL_INT(0, claim(1, "", &other));
	in_child(is_refused, false);
	/* The parent's socket is as it was. */
	by = udp_route(&other, &parents);
	departure.frame_bytes = udp_encode(&by, 1, 16, frame);
	TEST_ASSERT_TRUE(wires[1]->way.send(wires[1]->way.arg, &departure));
	wires[1]->flush(wires[1]);
	TEST_ASSERT_TRUE(wires[0]->receive(wires[0]));
	TEST_ASSERT_EQUAL_UINT(1, devices[0].counters.received_packets);
}

static int has_it_now(int parent_ends)
{
	struct bell own = {0};
	struct timespec now;
	uint32_t seen;
	char byte;
	int fd;

	if (read(parent_ends, &byte, 1) != 0)
		return 1;
	udp_set_bell(wires[0], &own);
	if (wires[0]->resume(wires[0])) {
		fprintf(stderr, "%s\n", sentence());
		return 2;
	}
	/* The child's thread rings the child's bell. */
	seen = bell_listen(&own);
	wires[0]->listen(wires[0], true);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	udp_plain_send(fd, &parents, "x", 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	bell_wait(&own, seen, (uint64_t)(now.tv_sec + 10) * 1000000000);
	if (own.rings == seen || !wires[0]->receive(wires[0]))
		return 3;
	wires[0]->close(wires[0]);
	return 0;
}

void test_a_child_has_the_address_of_a_parent_that_has_ended(void)
{
	TEST_ASSERT_EQUAL_INT(0, claim(0, "", &parents));
	in_child(has_it_now, true);
}

/* The child claims the address that its parent has left, and forks a child itself. */
static int child_of_a_child_is_refused(int parent_ends)
{
	int status, pid;
	char byte;

	if (read(parent_ends, &byte, 1) != 0 || wires[0]->resume(wires[0]))
		return 1;
	pid = fork();
	if (!pid) {
		wires[0]->forked(wires[0]);
		_exit(is_refused(parent_ends));
	}
	waitpid(pid, &status, 0);
	return status != 0;
}

void test_a_child_that_has_the_address_is_a_parent(void)
{
	TEST_ASSERT_EQUAL_INT(0, claim(0, "", &parents));
	in_child(child_of_a_child_is_refused, true);
}

/* Returns how many sockets of a kind this process has. */
static unsigned int count_sockets(int wanted)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int domain;
		socklen_t bytes = sizeof(domain);

		count +=
			!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) && domain == wanted;
	}
	return count;
}

static int has_no_sockets(int parent_ends)
{
	(void)parent_ends;
	wires[1]->forked(wires[1]);
	return count_sockets(AF_INET) || count_sockets(AF_NETLINK);
}

/* A child closes all copies of its parent's sockets. */
void test_a_child_has_no_sockets_of_its_parent(void)
{
	union ibv_gid other;

	TEST_ASSERT_EQUAL_INT(0, claim(0, "", &parents));
	TEST_ASSERT_EQUAL_INT(0, claim(1, "", &other));
	TEST_ASSERT_EQUAL_UINT(2, count_sockets(AF_INET));
	in_child(has_no_sockets, false);
}

/* Without a socket, a child sends nothing in its parent's name. */
static int sends_nothing(int parent_ends)
{
	struct sim_route by = udp_route(&parents, &parents);
	uint8_t frame[256];
	const struct sim_departure departure = {.source = &devices[0].ports[0],
						.route = &by,
						.frame = frame,
						.frame_bytes = udp_encode(&by, 1, 16, frame)};

	(void)parent_ends;
	wires[0]->flush(wires[0]); /* what the parent has queued is the parent's */
	return wires[0]->way.send(wires[0]->way.arg, &departure) ||
	       udp_counters(wires[0], &devices[0])->sent;
}

void test_a_child_does_not_send(void)
{
	struct sim_route by;
	uint8_t frame[256];
	struct sim_departure departure = {
		.source = &devices[0].ports[0], .route = &by, .frame = frame};

	TEST_ASSERT_EQUAL_INT(0, claim(0, "", &parents));
	by = udp_route(&parents, &parents);
	departure.frame_bytes = udp_encode(&by, 1, 16, frame);
	TEST_ASSERT_TRUE(wires[0]->way.send(wires[0]->way.arg, &departure));
	in_child(sends_nothing, false);
	wires[0]->flush(wires[0]);
	TEST_ASSERT_TRUE(wires[0]->receive(wires[0]));
	TEST_ASSERT_EQUAL_UINT(1, devices[0].counters.received_packets);
}
