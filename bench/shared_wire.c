/* SPDX-License-Identifier: MIT */
/*
 * Measures the wire `shared` between two processes, each on a processor of its own:
 *
 * - half a round trip of RC SEND, while both processes poll;
 * - the messages of RC SEND a second: posts of `list` WRs, of which the last is signalled;
 * - the bandwidth of RDMA WRITE, while the receiver sleeps, that of memcpy() of the same buffer, and that of
 *   memcpy() into a ring by one process and out of it by the other: what the processors can carry.
 *
 * Each figure is the median of rounds.
 */
#include "sides.h"

#include <errno.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define RECEIVES     512
#define SENDS	     128
#define WRITE_BYTES  (1u << 20)
#define WRITES_AHEAD 16

/* As the rings of the wire. */
#define RING_BYTES  (2u << 20)
#define CHUNK_BYTES 4096u

/* A ring in memory of both processes. Positions count bytes. */
struct ring {
	alignas(128) _Atomic uint64_t head; /* the child has taken everything before it */
	alignas(128) _Atomic uint64_t tail;
	alignas(128) uint8_t bytes[RING_BYTES];
};

/* One of the two processes. */
struct side {
	struct bench_side both;
	uint64_t size, list;
	struct bench_pair pair; /* a is this process's device, b has the address of the other's */
	uint64_t peer_at;	/* the other's buffer */
	uint32_t peer_rkey;
	uint64_t posted; /* receives */
	uint8_t *copy;	 /* of WRITE_BYTES */
	struct ring *ring;
};

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

static void post_sends(struct side *side, uint64_t count)
{
	bench_post_sends(&side->pair.a, RECEIVES * side->size, side->size, count);
}

/* Polls once. Returns how many receives have completed, for each of which another one is posted; adds
 * those of sends to *sent. */
static unsigned int poll_some(struct side *side, uint64_t *sent)
{
	struct ibv_wc done[BENCH_POLL_MAX];
	const int taken = ibv_poll_cq(side->pair.a.cq, BENCH_POLL_MAX, done);
	unsigned int received = 0;

	for (int i = 0; i < taken; i++) {
		bench_expect(done[i].status == IBV_WC_SUCCESS, vb_wc_status_str(done[i].status));
		if (done[i].opcode & IBV_WC_RECV)
			received++;
		else
			++*sent;
	}
	post_receives(side, received);
	return received;
}

static void pingpong(void *arg, uint64_t count)
{
	struct side *side = arg;
	uint64_t sent = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (side->both.parent)
			post_sends(side, 1);
		while (!poll_some(side, &sent))
			;
		if (!side->both.parent)
			post_sends(side, 1);
	}
	while (sent < count)
		poll_some(side, &sent);
}

/* The child keeps its send queue full. */
static void stream(void *arg, uint64_t count)
{
	struct side *side = arg;
	const uint64_t lists = count / side->list + 1;
	uint64_t sent = 0, received = 0;

	if (side->both.parent) {
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
static void write_all(void *arg, uint64_t count)
{
	struct side *side = arg;
	uint64_t written = 0;

	if (!side->both.parent)
		return;
	for (uint64_t posted = 0; written < count;) {
		for (; posted < count && posted - written < WRITES_AHEAD; posted++)
			post_write(side);
		poll_some(side, &written);
	}
}

static void copy_all(void *arg, uint64_t count)
{
	struct side *side = arg;
	for (uint64_t i = 0; i < count && side->both.parent; i++) {
		memcpy(side->copy, side->pair.a.buffer, WRITE_BYTES);
		__asm__ volatile("" ::: "memory");
	}
}

/* The parent copies into the ring and the child out of it; both are busy. */
static void carry_all(void *arg, uint64_t count)
{
	struct side *side = arg;
	struct ring *ring = side->ring;
	const bool parent = side->both.parent;
	_Atomic uint64_t *own = parent ? &ring->tail : &ring->head;
	const _Atomic uint64_t *peers = parent ? &ring->head : &ring->tail;
	const uint64_t ahead_bytes = parent ? RING_BYTES : 0;
	uint64_t at = atomic_load_explicit(own, memory_order_relaxed);

	for (const uint64_t end = at + count * WRITE_BYTES; at < end;) {
		uint8_t *chunk = ring->bytes + at % RING_BYTES;
		uint8_t *buffer = side->copy + at % WRITE_BYTES;

		at += CHUNK_BYTES;
		while (atomic_load_explicit(peers, memory_order_acquire) + ahead_bytes < at)
			;
		memcpy(parent ? chunk : buffer, parent ? buffer : chunk, CHUNK_BYTES);
		atomic_store_explicit(own, at, memory_order_release);
	}
}

/* --- both processes --- */

static bench_way *const table[] = {pingpong, stream, write_all, copy_all, carry_all};

enum { PINGPONG, STREAM, WRITE, COPY, CARRY };

static const struct bench_ways ways = {table, sizeof(table) / sizeof(table[0])};

static void go(void *arg, unsigned int way, uint64_t count)
{
	const struct side *side = arg;

	bench_go(&side->both, &ways, way, arg, count);
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

static void go_carry(void *arg, uint64_t count)
{
	go(arg, CARRY, count);
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
	bench_tell(&side->both, &here, sizeof(here));
	bench_hear(&side->both, &there, sizeof(there));
	peer->gid = there.gid;
	side->peer_at = there.at;
	side->peer_rkey = there.rkey;
	bench_connect(own->qp, peer, there.qpn);
	for (unsigned int i = 0; i < RECEIVES; i += BENCH_POLL_MAX)
		post_receives(side, BENCH_POLL_MAX);
	bench_meet(&side->both);
}

static void check_written(struct side *side)
{
	uint8_t *expected = side->copy;

	for (uint32_t i = 0; i < WRITE_BYTES; i++)
		expected[i] = (uint8_t)(i * 31 + i / 251);
	if (side->both.parent)
		memcpy(side->pair.a.buffer, expected, WRITE_BYTES);
	bench_meet(&side->both);
	write_all(side, 1);
	bench_meet(&side->both);
	if (memcmp(side->pair.a.buffer, expected, WRITE_BYTES) == 0)
		return;
	fprintf(stderr, "shared_wire: the data that arrived differ from the written data\n");
	exit(1);
}

static void measure(struct side *side, uint64_t count, uint64_t writes)
{
	struct bench_comparison found;

	found = bench_compare(go_pingpong, NULL, side, count);
	printf("half round trip: %.3f us\n", found.ours_ns / 2000);
	found = bench_compare(go_stream, NULL, side, count * 4);
	printf("messages: %.3f million/s\n", 1000 / found.ours_ns);
	found = bench_compare(go_write, go_copy, side, writes);
	printf("writes: %.2f GB/s, memcpy %.2f GB/s\n", WRITE_BYTES / found.ours_ns,
	       WRITE_BYTES / found.theirs_ns);
	printf("write ratio: %.3f\n", 1 / found.ratio);
	found = bench_compare(go_write, go_carry, side, writes);
	printf("memcpy through a ring: %.2f GB/s\n", WRITE_BYTES / found.theirs_ns);
	printf("write to ring ratio: %.3f\n", 1 / found.ratio);
	bench_dismiss(&side->both, &ways);
}

/* Puts this process and its threads on one of the processors that it may use. */
static void stay(unsigned int number)
{
	cpu_set_t all, one;

	bench_expect(!sched_getaffinity(0, sizeof(all), &all), "sched_getaffinity");
	number %= (unsigned int)CPU_COUNT(&all);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !number--)
			CPU_SET(cpu, &one);
	bench_expect(!sched_setaffinity(0, sizeof(one), &one), "sched_setaffinity");
}

int main(int argc, char **argv)
{
	static struct side side = {.size = 64, .list = 16};
	uint64_t count = 1000000, writes = 2000;
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &side.size, 1, 1024, NULL},
		{"--count", "round trips", &count, 100, UINT32_MAX, NULL},
		{"--list", "sends of a post", &side.list, 1, BENCH_LIST_MAX, NULL},
		{"--writes", "RDMA WRITEs of 1 MiB", &writes, 20, UINT32_MAX, NULL},
		{0},
	};
	const pid_t first = getpid();

	bench_options(argc, argv, "Measures the wire `shared` between two processes.", options);
	side.ring = mmap(NULL, sizeof(*side.ring), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (side.ring == MAP_FAILED)
		bench_fail("mmap", errno);
	bench_split(&side.both);
	stay(side.both.parent);
	side.copy = bench_need("memory", malloc(WRITE_BYTES));
	open_wire(&side, first);
	if (side.both.parent)
		measure(&side, count, writes);
	else
		bench_obey(&side.both, &ways, &side);
	check_written(&side);
	bench_meet(&side.both);
	bench_close_node(&side.pair.a);
	return bench_unite(&side.both);
}
