/* SPDX-License-Identifier: MIT */
/*
 * Measures events a second that the log writes: packets with their route, completions and calls of
 * post_send, in turn, from one thread. The reference copies as many bytes into memory.
 */
#include "bench.h"

#include "src/log/line.h"
#include "src/log/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <verbena/log.h>

#define KINDS 3

struct run {
	uint64_t count;
	const char *log;
	uint64_t bytes; /* of an event */
	char *copy;
};

static bool add_arguments(struct line *line, const void *arg)
{
	line_plain(line, "{");
	line_key(line, "qp");
	line_text(line, "qp 0x11");
	line_key(line, "wr");
	line_plain(line, "[{");
	line_key(line, "wr_id");
	line_hex(line, 12345);
	line_key(line, "opcode");
	line_word(line, "SEND");
	line_key(line, "send_flags");
	line_bits(line, bits_send_flags, IBV_SEND_SIGNALED);
	line_key(line, "num_sge");
	line_signed(line, 1);
	line_key(line, "length");
	line_decimal(line, 64);
	line_plain(line, "}]}");
	return true;
}

static bool add_result(struct line *line, const void *arg)
{
	line_signed(line, 0);
	return true;
}

static void write_events(void *arg, uint64_t count)
{
	const struct vb_packet packet = {
		.opcode_name = "RC SEND_ONLY",
		.has = VB_PACKET_HAS_GIDS,
		.ack_request = true,
		.pkey = 0xffff,
		.dest_qpn = 0x12,
		.source_qpn = 0x11,
		.payload_bytes = 64,
		.source_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.dest_gid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
	};
	const struct vb_event events[KINDS] = {
		{.kind = VB_EVENT_VERB,
		 .device = "sim0",
		 .qpn = 0x11,
		 .texts = {"post_send"},
		 .absent = 6},
		{.kind = VB_EVENT_PACKET,
		 .device = "sim0",
		 .port = 1,
		 .qpn = 0x11,
		 .packet = &packet},
		{.kind = VB_EVENT_COMPLETION,
		 .device = "sim0",
		 .qpn = 0x11,
		 .values = {12345, 0, IBV_WC_RECV, 64},
		 .absent = 0x1f0,
		 .texts = {"cq1"}},
	};

	for (uint64_t i = 0; i < count; i++) {
		struct vb_event event = events[i % KINDS];
		struct record record = {.arguments = add_arguments, .result = add_result};

		event.time_ns = i * 1000;
		log_write(&event, &record);
	}
}

/* Copies a line for each event. */
static void copy_bytes(void *arg, uint64_t count)
{
	const struct run *run = arg;

	for (uint64_t i = 0; i < count; i++) {
		memcpy(run->copy + i % 4096 * run->bytes, run->copy + 4096 * run->bytes,
		       run->bytes);
		__asm__ volatile("" ::: "memory");
	}
}

/* The time that the processors have spent on this process: the machine's load does not count. */
static uint64_t processor_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t file_bytes(const char *path)
{
	struct stat status;

	bench_check(path, stat(path, &status) ? 1 : 0);
	return (uint64_t)status.st_size;
}

int main(int argc, char **argv)
{
	struct run run = {.count = 3000000, .log = "event_log.jsonl"};
	const struct bench_option options[] = {
		{"--count", "events", &run.count, 1, UINT64_C(1) << 40, NULL},
		{"--log", "FILE the log, which is removed", NULL, 0, 0, &run.log},
		{0},
	};
	struct bench_comparison ours, theirs;
	uint64_t spent_ns;

	bench_options(argc, argv, "Events a second of the log.", options);
	bench_check(run.log, vb_log_open(run.log));
	spent_ns = processor_ns();
	ours = bench_compare(write_events, NULL, &run, run.count);
	bench_check(run.log, vb_log_close());
	spent_ns = processor_ns() - spent_ns;
	run.bytes = file_bytes(run.log) / run.count;
	unlink(run.log);
	run.copy = bench_need("memory", calloc(4097, run.bytes));
	theirs = bench_compare(NULL, copy_bytes, &run, run.count);
	printf("event_log: %" PRIu64 " events of %" PRIu64 " bytes\n", run.count, run.bytes);
	printf("speed: %.3f million events/s, %.1f ns each\n", 1e3 / ours.ours_ns, ours.ours_ns);
	printf("processor: %.3f million events in a second of its time, which the kernel's work "
	       "for "
	       "the file is a part of\n",
	       1e3 * (double)run.count / (double)spent_ns);
	printf("reference: %.1f ns to copy a line\n", theirs.theirs_ns);
	free(run.copy);
	return 0;
}
