/* SPDX-License-Identifier: MIT */
/*
 * Measures the wire `shared` between two processes, each on a processor of its own:
 *
 * - half a round trip of RC SEND, while both processes poll;
 * - the messages of RC SEND a second: posts of `list` WRs, of which the last is signalled;
 * - the bandwidth of RDMA WRITE, while the receiver sleeps, and that of memcpy() of the same buffer.
 *
 * Each figure is the median of rounds.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define LIST_MAX     64
#define RECEIVES     512
#define SENDS	     128
#define WRITE_BYTES  (1u << 20)
#define WRITES_AHEAD 16

/* One of the two processes. The parent measures, the child does what the parent says. */
struct side {
	bool parent;
	int peer; /* a pair of sockets, for what is not measured */
	uint64_t size, list;
	struct bench_pair pair; /* a is this process's device, b has the address of the other's */
	uint64_t peer_at;	/* the other's buffer */
	uint32_t peer_rkey;
	uint64_t posted; /* receives */
	uint8_t *copy;	 /* of WRITE_BYTES */
};

/* What the parent asks for; both processes have a part in it. */
typedef void way_fn(struct side *side, uint64_t count);

static void need(bool good, const char *what)
{
	if (!good)
		bench_fail(what, errno);
}

static void tell(const struct side *side, const void *bytes, size_t length)
{
	need(write(side->peer, bytes, length) == (ssize_t)length, "write to the other process");
}

static void hear(const struct side *side, void *bytes, size_t length)
{
	need(recv(side->peer, bytes, length, MSG_WAITALL) == (ssize_t)length,
	     "read from the other process");
}

/* Both processes are here. */
static void meet(const struct side *side)
{
	char byte = 0;

	tell(side, &byte, 1);
	hear(side, &byte, 1);
}

/* --- messages --- */

/* Posts `count` receives at once. */
static void post_receives(struct side *side, unsigned int count)
{
	struct bench_node *node = &side->pair.a;
	struct ibv_sge sges[BENCH_POLL_MAX];
	struct ibv_recv_wr receives[BENCH_POLL_MAX], *bad;

	for (unsigned int i = 0; i < count; i++) {
		sges[i] = (struct ibv_sge){(uintptr_t)node->buffer +
						   side->posted++ % RECEIVES * side->size,
					   (uint32_t)side->size, node->mr->lkey};
		receives[i] = (struct ibv_recv_wr){.next = i + 1 < count ? &receives[i + 1] : NULL,
						   .sg_list = &sges[i],
						   .num_sge = 1};
	}
	if (count)
		bench_check("post_recv", ibv_post_recv(node->qp, receives, &bad));
}

/* Posts `count` sends at once. Only the last is signalled. */
static void post_sends(struct side *side, uint64_t count)
{
	struct bench_node *node = &side->pair.a;
	struct ibv_sge sge = {(uintptr_t)node->buffer + RECEIVES * side->size, (uint32_t)side->size,
			      node->mr->lkey};
	struct ibv_send_wr sends[LIST_MAX], *bad;

	for (uint64_t i = 0; i < count; i++)
		sends[i] =
			(struct ibv_send_wr){.next = i + 1 < count ? &sends[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED};
	bench_check("post_send", ibv_post_send(node->qp, sends, &bad));
}

/* Polls once. Returns how many receives have completed, for each of which another one is posted; adds
 * those of sends to *sent. */
static unsigned int poll_some(struct side *side, uint64_t *sent)
{
	struct ibv_wc done[BENCH_POLL_MAX];
	const int taken = ibv_poll_cq(side->pair.a.cq, BENCH_POLL_MAX, done);
	unsigned int received = 0;

	for (int i = 0; i < taken; i++) {
		need(done[i].status == IBV_WC_SUCCESS, vb_wc_status_str(done[i].status));
		if (done[i].opcode & IBV_WC_RECV)
			received++;
		else
			++*sent;
	}
	post_receives(side, received);
	return received;
}

static void pingpong(struct side *side, uint64_t count)
{
	uint64_t sent = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (side->parent)
			post_sends(side, 1);
		while (!poll_some(side, &sent))
			;
		if (!side->parent)
			post_sends(side, 1);
	}
	while (sent < count)
		poll_some(side, &sent);
}

/* The child keeps its send queue full. */
static void stream(struct side *side, uint64_t count)
{
	const uint64_t lists = count / side->list + 1;
	uint64_t sent = 0, received = 0;

	if (side->parent) {
		while (received < lists * side->list)
			received += poll_some(side, &sent);
		return;
	}
	for (uint64_t posted = 0; sent < lists;) {
		if (posted < lists && (posted - sent + 1) * side->list <= SENDS) {
			post_sends(side, side->list);
			posted++;
		} else {
			poll_some(side, &sent);
		}
	}
}

/* --- one-sided work --- */

static void post_write(struct side *side)
{
	struct bench_node *node = &side->pair.a;
	struct ibv_sge sge = {(uintptr_t)node->buffer, WRITE_BYTES, node->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {side->peer_at, side->peer_rkey},
				 };

	bench_check("post_send", ibv_post_send(node->qp, &wr, &bad));
}

/* The parent writes into the memory of the child, which sleeps. */
static void write_all(struct side *side, uint64_t count)
{
	uint64_t written = 0;

	if (!side->parent)
		return;
	for (uint64_t posted = 0; written < count;) {
		for (; posted < count && posted - written < WRITES_AHEAD; posted++)
			post_write(side);
		poll_some(side, &written);
	}
}

static void copy_all(struct side *side, uint64_t count)
{
	for (uint64_t i = 0; i < count && side->parent; i++) {
		memcpy(side->copy, side->pair.a.buffer, WRITE_BYTES);
		__asm__ volatile("" ::: "memory");
	}
}

/* --- both processes --- */

static way_fn *const ways[] = {pingpong, stream, write_all, copy_all};

enum { PINGPONG, STREAM, WRITE, COPY, NO_WAY };

struct order {
	uint64_t way, count;
};

static void go(struct side *side, uint64_t way, uint64_t count)
{
	const struct order order = {way, count};

	tell(side, &order, sizeof(order));
	ways[way](side, count);
	meet(side);
}

static void obey(struct side *side)
{
	struct order order;

	for (hear(side, &order, sizeof(order)); order.way != NO_WAY;
	     hear(side, &order, sizeof(order))) {
		ways[order.way](side, order.count);
		meet(side);
	}
}

static void go_pingpong(void *arg, uint64_t count)
{
	go(arg, PINGPONG, count);
}

static void go_stream(void *arg, uint64_t count)
{
	go(arg, STREAM, count);
}

static void go_write(void *arg, uint64_t count)
{
	go(arg, WRITE, count);
}

static void go_copy(void *arg, uint64_t count)
{
	go(arg, COPY, count);
}

/* The processes share the devices: both open sim0. */
static void open_wire(struct side *side, pid_t first)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 1,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_SHARED}},
	};
	struct bench_node *own = &side->pair.a, *peer = &side->pair.b;
	struct {
		uint64_t at;
		uint32_t qpn, rkey;
		union ibv_gid gid;
	} here, there;

	snprintf(config.world, sizeof(config.world), "bench-%d", (int)first);
	bench_check("configure", vb_sim_configure(&config));
	bench_open_node(own, "sim0", WRITE_BYTES, 2 * RECEIVES);
	own->qp = bench_qp(own, RECEIVES);
	here.at = (uintptr_t)own->buffer;
	here.qpn = own->qp->qp_num;
	here.rkey = own->mr->rkey;
	here.gid = own->gid;
	tell(side, &here, sizeof(here));
	hear(side, &there, sizeof(there));
	peer->gid = there.gid;
	side->peer_at = there.at;
	side->peer_rkey = there.rkey;
	bench_connect(own->qp, peer, there.qpn);
	for (unsigned int i = 0; i < RECEIVES; i += BENCH_POLL_MAX)
		post_receives(side, BENCH_POLL_MAX);
	meet(side);
}

static void check_written(struct side *side)
{
	uint8_t *expected = side->copy;

	for (uint32_t i = 0; i < WRITE_BYTES; i++)
		expected[i] = (uint8_t)(i * 31 + i / 251);
	if (side->parent)
		memcpy(side->pair.a.buffer, expected, WRITE_BYTES);
	meet(side);
	write_all(side, 1);
	meet(side);
	if (memcmp(side->pair.a.buffer, expected, WRITE_BYTES) == 0)
		return;
	fprintf(stderr, "shared_wire: the data that arrived differ from the written data\n");
	exit(1);
}

static void measure(struct side *side, uint64_t count, uint64_t writes)
{
	const struct order end = {NO_WAY, 0};
	struct bench_comparison found;

	found = bench_compare(go_pingpong, NULL, side, count);
	printf("half round trip: %.3f us\n", found.ours_ns / 2000);
	found = bench_compare(go_stream, NULL, side, count * 4);
	printf("messages: %.3f million/s\n", 1000 / found.ours_ns);
	found = bench_compare(go_write, go_copy, side, writes);
	printf("writes: %.2f GB/s, memcpy %.2f GB/s\n", WRITE_BYTES / found.ours_ns,
	       WRITE_BYTES / found.theirs_ns);
	printf("write ratio: %.3f\n", 1 / found.ratio);
	tell(side, &end, sizeof(end));
}

/* Puts this process and its threads on one of the processors that it may use. */
static void stay(unsigned int number)
{
	cpu_set_t all, one;

	need(!sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	number %= (unsigned int)CPU_COUNT(&all);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !number--)
			CPU_SET(cpu, &one);
	need(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

int main(int argc, char **argv)
{
	static struct side side = {.size = 64, .list = 16};
	uint64_t count = 1000000, writes = 2000;
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &side.size, 1, 1024, NULL},
		{"--count", "round trips", &count, 100, UINT32_MAX, NULL},
		{"--list", "sends of a post", &side.list, 1, LIST_MAX, NULL},
		{"--writes", "RDMA WRITEs of 1 MiB", &writes, 20, UINT32_MAX, NULL},
		{0},
	};
	const pid_t first = getpid();
	int pair[2], status = 0;

	bench_options(argc, argv, "Measures the wire `shared` between two processes.", options);
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	side.parent = fork();
	side.peer = pair[!side.parent];
	close(pair[side.parent]);
	stay(side.parent);
	side.copy = bench_need("memory", malloc(WRITE_BYTES));
	open_wire(&side, first);
	if (side.parent)
		measure(&side, count, writes);
	else
		obey(&side);
	check_written(&side);
	meet(&side);
	bench_close_node(&side.pair.a);
	if (side.parent)
		need(wait(&status) > 0, "wait");
	return status ? 1 : 0;
}
