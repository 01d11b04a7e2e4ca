/* SPDX-License-Identifier: MIT */
/* A log of which only the end is kept: while it is written, after SIGKILL, and joined. */
#include "src/log/log.h"
#include "src/parts/tail.h"
#include "unity.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/log.h>

#define MIB (UINT64_C(1) << 20)

static char folder[64], path[128], older[160];
static uint64_t first, last,
	left_out; /* as read_back() has found them; left_out 0: no line counts */

void setUp(void)
{
	strcpy(folder, "/tmp/verbena-test-log-limit-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log.jsonl", folder);
	snprintf(older, sizeof(older), "%s" TAIL_OLDER, path);
}

void tearDown(void)
{
	char command[128];

	vb_log_close();
	vb_log_limit(0, 0);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void open_log(uint64_t bytes, uint64_t events)
{
	vb_log_limit(bytes, events);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_log_open(path), vb_last_error());
}

static void add(uint64_t events)
{
	const struct vb_event event = {
		.kind = VB_EVENT_TIMER, .device = "sim0", .qpn = 0x11, .texts = {"ack", "started"}};

	for (uint64_t i = 0; i < events; i++) {
		struct record record = {0};

		log_write(&event, &record);
	}
}

/* Reads a log: the head, the line that counts, and events whose numbers follow each other. */
static void read_log(FILE *file)
{
	char line[1024];

	TEST_ASSERT_NOT_NULL(file);
	TEST_ASSERT_NOT_NULL(fgets(line, sizeof(line), file));
	TEST_ASSERT_TRUE(!strncmp("{\"n\":0,\"kind\":\"log\",", line, 20));
	first = last = left_out = 0;
	while (fgets(line, sizeof(line), file) && line[0]) {
		uint64_t number;

		TEST_ASSERT_EQUAL_INT(1, sscanf(line, "{\"n\":%" SCNu64 ",", &number));
		if (strstr(line, "\"kind\":\"left_out\"")) {
			TEST_ASSERT_EQUAL_UINT64(0, last);
			TEST_ASSERT_EQUAL_INT(1, sscanf(strstr(line, "\"events\""),
							"\"events\":%" SCNu64 "}", &left_out));
			TEST_ASSERT_EQUAL_UINT64(left_out, number);
			continue;
		}
		if (!first)
			first = number;
		TEST_ASSERT_EQUAL_UINT64(last ? last + 1 : left_out + 1, number);
		last = number;
	}
	fclose(file);
}

static uint64_t bytes_on_disk(const char *name)
{
	struct stat status;

	return stat(name, &status) ? 0 : (uint64_t)status.st_blocks * 512;
}

void test_the_last_events_are_kept(void)
{
	static const uint64_t events[] = {0, 1, 99, 100, 101, 150, 199, 200, 201, 300, 301, 1250};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		const uint64_t missing = events[i] > 100 ? events[i] - 100 : 0;

		open_log(0, 100);
		add(events[i]);
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, vb_log_close(), vb_last_error());
		read_log(fopen(path, "r"));
		TEST_ASSERT_EQUAL_UINT64(events[i], last);
		TEST_ASSERT_EQUAL_UINT64(missing, left_out);
		TEST_ASSERT_EQUAL_UINT64(events[i] ? missing + 1 : 0, first);
		TEST_ASSERT_NOT_EQUAL(0, access(older, F_OK));
	}
}

void test_the_last_bytes_are_kept(void)
{
	open_log(MIB, 0);
	for (uint64_t i = 0; i < 100; i++) {
		add(500);
		TEST_ASSERT_TRUE(bytes_on_disk(path) + bytes_on_disk(older) <= MIB);
	}
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	read_log(fopen(path, "r"));
	TEST_ASSERT_EQUAL_UINT64(50000, last);
	TEST_ASSERT_TRUE(bytes_on_disk(path) <= MIB);
	TEST_ASSERT_TRUE(bytes_on_disk(path) > MIB / 3);
}

/* Writes events in a process that is killed. */
static void write_and_die(uint64_t events)
{
	int status;
	pid_t child = fork();

	if (!child) {
		open_log(0, 100);
		add(events);
		raise(SIGKILL);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFSIGNALED(status));
}

void test_a_killed_process_leaves_its_last_events(void)
{
	uint64_t missing;

	write_and_die(950);
	read_log(fopen(path, "r"));
	TEST_ASSERT_EQUAL_UINT64(900, left_out);
	TEST_ASSERT_EQUAL_UINT64(950, last);
	/* Both halves together. */
	read_log(tail_open_log(path));
	TEST_ASSERT_EQUAL_UINT64(800, left_out);
	TEST_ASSERT_EQUAL_UINT64(950, last);
	TEST_ASSERT_EQUAL_INT(0, tail_join_log(path, 100, &missing));
	TEST_ASSERT_EQUAL_UINT64(850, missing);
	read_log(fopen(path, "r"));
	TEST_ASSERT_EQUAL_UINT64(850, left_out);
	TEST_ASSERT_EQUAL_UINT64(950, last);
	TEST_ASSERT_NOT_EQUAL(0, access(older, F_OK));
}

/* The first segment of a log counts nothing. */
void test_the_first_segment_is_joined(void)
{
	uint64_t missing;

	write_and_die(150);
	TEST_ASSERT_EQUAL_INT(0, tail_join_log(path, 0, &missing));
	TEST_ASSERT_EQUAL_UINT64(0, missing);
	read_log(fopen(path, "r"));
	TEST_ASSERT_EQUAL_UINT64(1, first);
	TEST_ASSERT_EQUAL_UINT64(150, last);
}

/* The older half of a killed log must not become the older half of the next one. */
void test_the_next_log_removes_the_older_half(void)
{
	write_and_die(950);
	TEST_ASSERT_EQUAL_INT(0, access(older, F_OK));
	open_log(0, 0);
	TEST_ASSERT_NOT_EQUAL(0, access(older, F_OK));
	add(3);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	read_log(tail_open_log(path));
	TEST_ASSERT_EQUAL_UINT64(1, first);
	TEST_ASSERT_EQUAL_UINT64(3, last);
}

/* Halves of two logs do not belong together. */
void test_halves_with_a_gap_are_not_joined(void)
{
	char other[160];

	write_and_die(950);
	snprintf(other, sizeof(other), "%s/kept", folder);
	TEST_ASSERT_EQUAL_INT(0, rename(older, other));
	write_and_die(450);
	TEST_ASSERT_EQUAL_INT(0, rename(other, older));
	read_log(tail_open_log(path));
	TEST_ASSERT_EQUAL_UINT64(400, left_out);
	TEST_ASSERT_EQUAL_UINT64(450, last);
}

/* A folder has the name of the older half: then there is one segment, which is emptied when it is full. */
void test_without_an_older_half_the_log_is_emptied(void)
{
	TEST_ASSERT_EQUAL_INT(0, mkdir(older, 0777));
	open_log(0, 100);
	add(1030);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	read_log(fopen(path, "r"));
	TEST_ASSERT_EQUAL_UINT64(1000, left_out);
	TEST_ASSERT_EQUAL_UINT64(1030, last);
}

/* A process was killed after the older half had got its name, and before the file led to the new half. The join
 * leaves one name. */
void test_one_file_with_both_names_is_read_once(void)
{
	uint64_t missing;

	write_and_die(950);
	TEST_ASSERT_EQUAL_INT(0, unlink(older));
	TEST_ASSERT_EQUAL_INT(0, link(path, older));
	read_log(tail_open_log(path));
	TEST_ASSERT_EQUAL_UINT64(900, left_out);
	TEST_ASSERT_EQUAL_UINT64(950, last);
	TEST_ASSERT_EQUAL_INT(0, tail_join_log(path, 100, &missing));
	TEST_ASSERT_EQUAL_UINT64(900, missing);
	TEST_ASSERT_NOT_EQUAL(0, access(older, F_OK));
	read_log(fopen(path, "r"));
	TEST_ASSERT_EQUAL_UINT64(950, last);
}

#define EVENTS_MAX 1000000
#define KILLS	   20

static void kill_while_it_writes(_Atomic uint64_t *shared, uint64_t at)
{
	pid_t child;

	*shared = 0;
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		open_log(0, 100);
		while (*shared < EVENTS_MAX) {
			add(1);
			++*shared;
		}
		pause();
	}
	while (*shared < at)
		TEST_ASSERT_EQUAL_INT(0, waitpid(child, NULL, WNOHANG));
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	read_log(tail_open_log(path));
	TEST_ASSERT_TRUE(last >= *shared && last <= *shared + 1);
	TEST_ASSERT_TRUE(last - left_out >= (last < 100 ? last : 100));
	TEST_ASSERT_TRUE(last - left_out <= 200);
}

/* A segment has 100 events: about half of the time goes into making them. */
void test_sigkill_at_any_moment_leaves_the_last_events(void)
{
	const unsigned int seed = (unsigned int)getpid();
	_Atomic uint64_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT_TRUE(shared != MAP_FAILED);
	printf("seed %u\n", seed);
	srand(seed);
	for (unsigned int i = 0; i < KILLS; i++)
		kill_while_it_writes(shared, (uint64_t)(rand() % 2000));
	munmap(shared, sizeof(*shared));
}
