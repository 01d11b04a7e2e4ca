/* SPDX-License-Identifier: MIT */
/*
 * The longest messages. Their memory is a few pages that are mapped again and again, so that 2 GiB
 * of addresses need 3 MiB of memory.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <verbena/sim.h>

#define LONGEST_BYTES (UINT64_C(1) << 31)
/* No power of 2: an offset that lost its upper bits leads to other bytes. */
#define PERIOD_BYTES (3u << 20)
#define MEMORY_MIN   (UINT64_C(4) << 30)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED true
#endif
#endif
#ifndef SANITIZED
#define SANITIZED false
#endif

/* A device may pin each page as often as it is mapped, and count it so. */
static void need_time_and_memory(struct vt *t)
{
	uint64_t memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	if (getenv("VERBENA_TEST_SHORT"))
		VT_SKIP(t, "VERBENA_TEST_SHORT leaves messages of 2 GiB out");
	if (SANITIZED)
		VT_SKIP(t, "a sanitizer makes messages of 2 GiB take too long");
	if (memory_bytes < MEMORY_MIN)
		VT_SKIP(t, "messages of 2 GiB need a machine with 4 GiB of memory");
}

struct mapping {
	uint8_t *base;
	size_t length_bytes;
};

static void unmap(void *arg)
{
	const struct mapping *mapping = arg;

	munmap(mapping->base, mapping->length_bytes);
}

/* Returns addresses whose bytes repeat after PERIOD_BYTES. */
static uint8_t *repeated(struct vt *t, size_t length_bytes)
{
	struct mapping *mapping = vt_alloc(t, sizeof(*mapping));
	int fd = memfd_create("period", MFD_CLOEXEC);

	VT_CHECK(t, fd >= 0 && !ftruncate(fd, PERIOD_BYTES));
	mapping->base = mmap(NULL, length_bytes, PROT_NONE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	mapping->length_bytes = length_bytes;
	VT_CHECK(t, mapping->base != MAP_FAILED);
	vt_defer(t, unmap, mapping);
	for (size_t at = 0; at < length_bytes; at += PERIOD_BYTES) {
		size_t left = length_bytes - at;
		size_t piece = left < PERIOD_BYTES ? left : PERIOD_BYTES;

		VT_CHECK(t, mmap(mapping->base + at, piece, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	}
	close(fd);
	return mapping->base;
}

/* The last bytes have memory of their own: only an offset with all its bits leads there. */
#define TAIL_BYTES 4096

static void add_tail(struct vt *t, uint8_t *base, size_t length_bytes)
{
	VT_CHECK(t, mmap(base + length_bytes - TAIL_BYTES, TAIL_BYTES, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
}

struct ends {
	struct ts_pair *pair;
	uint8_t *from, *to;
	struct ibv_mr *from_mr, *to_mr;
	uint32_t length;
};

/*
 * The trace would have as many bytes as the messages. At most the port's limit is sent, which is
 * 8 MiB on SoftRoCE.
 */
static struct ends long_ends(struct vt *t)
{
	uint64_t limit = t->a.port_attr.max_msg_sz;
	struct ends ends = {.length = (uint32_t)(limit < LONGEST_BYTES ? limit : LONGEST_BYTES)};

	need_time_and_memory(t);
	VT_OK(t, vb_sim_trace_close(ts_sim(t)));
	ends.pair = ts_connected(t, IBV_QPT_RC);
	ends.from = repeated(t, ends.length);
	ends.to = repeated(t, ends.length);
	add_tail(t, ends.to, ends.length);
	ends.from_mr = ts_mr(t, ends.pair->a.pd, ends.from, ends.length, TS_ACCESS_ALL);
	ends.to_mr = ts_mr(t, ends.pair->b.pd, ends.to, ends.length, TS_ACCESS_ALL);
	ts_fill(ends.from, PERIOD_BYTES, 7);
	return ends;
}

static void check_bytes(struct vt *t, const struct ends *ends)
{
	const size_t tail = ends->length - TAIL_BYTES;

	ts_verify_at(t, VT_HERE, ends->to, PERIOD_BYTES, 7);
	VT_EQ_MEM(t, ends->to + tail, ends->from + tail, TAIL_BYTES);
}

static void send_of_the_longest_message(struct vt *t)
{
	struct ends ends = long_ends(t);

	ts_recv(&ends.pair->b, .wr_id = 1, .address = (uintptr_t)ends.to, .length = ends.length,
		.lkey = ends.to_mr->lkey);
	ts_send(&ends.pair->a, .wr_id = 2, .address = (uintptr_t)ends.from, .length = ends.length,
		.lkey = ends.from_mr->lkey);
	ts_received(t, ends.pair->b.recv_cq, 1, ends.length);
	ts_done(t, ends.pair->a.send_cq, 2, IBV_WC_SEND);
	check_bytes(t, &ends);
}

static void write_of_the_longest_message(struct vt *t)
{
	struct ends ends = long_ends(t);

	ts_recv(&ends.pair->b, .wr_id = 1, .length = 0);
	ts_write_imm(&ends.pair->a, .wr_id = 2, .address = (uintptr_t)ends.from,
		     .length = ends.length, .lkey = ends.from_mr->lkey,
		     .remote_address = (uintptr_t)ends.to, .rkey = ends.to_mr->rkey, .imm = 5);
	ts_written(t, ends.pair->b.recv_cq, 1, ends.length);
	ts_done(t, ends.pair->a.send_cq, 2, IBV_WC_RDMA_WRITE);
	check_bytes(t, &ends);
}

static void read_of_the_longest_message(struct vt *t)
{
	struct ends ends = long_ends(t);
	struct ibv_wc wc;

	ts_read(&ends.pair->b, .wr_id = 1, .address = (uintptr_t)ends.to, .length = ends.length,
		.lkey = ends.to_mr->lkey, .remote_address = (uintptr_t)ends.from,
		.rkey = ends.from_mr->rkey);
	wc = ts_done(t, ends.pair->b.send_cq, 1, IBV_WC_RDMA_READ);
	VT_EQ(t, wc.byte_len, ends.length);
	check_bytes(t, &ends);
}

#define SIM    (VT_NEEDS_SIM | VT_NEEDS_VIRTUAL_CLOCK)
#define LENGTH "ibv_query_port(3): max_msg_sz; rdma-core libibverbs/verbs.h: byte_len is uint32_t"

static const struct vt_test tests[] = {
	{"send_of_the_longest_message", LENGTH, SIM, send_of_the_longest_message},
	{"write_of_the_longest_message", LENGTH, SIM, write_of_the_longest_message},
	{"read_of_the_longest_message", LENGTH, SIM, read_of_the_longest_message},
	{NULL},
};

const struct vt_suite vt_suite_long = {"long", "messages of 2 GiB", tests};
