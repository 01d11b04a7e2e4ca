/* SPDX-License-Identifier: MIT */
/* A trace of which only the end is kept: while it is written, after SIGKILL, and joined. */
#include "backends/sim/capture/pcapfile.h"
#include "src/parts/merge.h"
#include "src/parts/part.h"
#include "src/parts/tail.h"
#include "unity.h"

#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAME_BYTES  200
#define RECORD_BYTES (16 + FRAME_BYTES)
#define HEADER_BYTES 24
#define MIB	     (UINT64_C(1) << 20)

static char folder[64], whole[PART_NAME_BYTES], sentence[MERGE_SENTENCE_BYTES];
static uint32_t first, last, count; /* of the packets that read_back() has found */

void setUp(void)
{
	strcpy(folder, "/tmp/verbena-test-tail-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	snprintf(whole, sizeof(whole), "%s/t.pcap", folder);
}

void tearDown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static struct pcapfile *open_limited(struct pcapfile *before, uint64_t bytes, uint64_t packets)
{
	char error[256] = "";
	struct pcapfile *file = pcapfile_open(whole, false, before, error, sizeof(error));

	TEST_ASSERT_NOT_NULL_MESSAGE(file, error);
	pcapfile_limit(file, bytes, packets);
	return file;
}

/* The packets of one nanosecond must stay in their order. */
static void add(struct pcapfile *file, uint32_t from, uint32_t packets)
{
	uint8_t frame[FRAME_BYTES] = {0};

	for (uint32_t i = from; i < from + packets; i++) {
		memcpy(frame, &i, sizeof(i));
		pcapfile_frame(file, 1000, frame, sizeof(frame), 0);
	}
}

/* Reads the packets, whose numbers follow each other. */
static void read_back(void)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_open_offline(whole, why);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int status;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	count = 0;
	while ((status = pcap_next_ex(pcap, &header, &bytes)) == 1) {
		uint32_t number;

		memcpy(&number, bytes, sizeof(number));
		if (count)
			TEST_ASSERT_EQUAL_UINT(last + 1, number);
		else
			first = number;
		last = number;
		count++;
	}
	TEST_ASSERT_EQUAL_INT(PCAP_ERROR_BREAK, status);
	pcap_close(pcap);
}

static uint64_t size_of(const char *name)
{
	struct stat status;

	return stat(name, &status) ? 0 : (uint64_t)status.st_size;
}

/* The bytes of the file and of its parts. */
static uint64_t sum_of_sizes(void)
{
	uint64_t bytes = size_of(whole);
	struct parts parts;

	TEST_ASSERT_EQUAL_INT(0, parts_list(whole, &parts));
	for (unsigned int i = 0; i < parts.count; i++)
		bytes += size_of(parts.names[i]);
	parts_free(&parts);
	return bytes;
}

static void assert_no_parts(void)
{
	struct parts parts;

	TEST_ASSERT_EQUAL_INT(0, parts_list(whole, &parts));
	TEST_ASSERT_EQUAL_UINT(0, parts.count);
	parts_free(&parts);
}

void test_the_last_packets_are_kept(void)
{
	static const uint32_t packets[] = {0,	1,   99,  100, 101,  150, 199,
					   200, 201, 300, 301, 1250, 2099};

	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		struct pcapfile *file = open_limited(NULL, 0, 100);
		const uint32_t kept = packets[i] < 100 ? packets[i] : 100;

		add(file, 0, packets[i]);
		TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
		read_back();
		TEST_ASSERT_EQUAL_UINT(kept, count);
		if (kept)
			TEST_ASSERT_EQUAL_UINT(packets[i] - 1, last);
		assert_no_parts();
	}
}

void test_the_last_bytes_are_kept(void)
{
	struct pcapfile *file = open_limited(NULL, MIB, 0);

	for (uint32_t i = 0; i < 40; i++) {
		add(file, 1000 * i, 1000);
		pcapfile_flush(file);
		TEST_ASSERT_TRUE(sum_of_sizes() <= MIB + HEADER_BYTES);
	}
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
	read_back();
	TEST_ASSERT_EQUAL_UINT(39999, last);
	TEST_ASSERT_TRUE(size_of(whole) <= MIB);
	TEST_ASSERT_TRUE(size_of(whole) > MIB / 2 - RECORD_BYTES);
	assert_no_parts();
}

/* More than nine segments: their numbers have one digit, and two. */
void test_a_killed_process_leaves_its_last_packets(void)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct pcapfile *file = open_limited(NULL, 0, 100);

		add(file, 0, 950);
		pcapfile_flush(file);
		raise(SIGKILL);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	TEST_ASSERT_EQUAL_UINT64(3 * HEADER_BYTES + 150 * RECORD_BYTES, sum_of_sizes());
	read_back();
	TEST_ASSERT_EQUAL_UINT(0, count);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
	read_back();
	TEST_ASSERT_EQUAL_UINT(150, count);
	TEST_ASSERT_EQUAL_UINT(949, last);
	assert_no_parts();
}

void test_each_writer_of_a_trace_has_its_limit(void)
{
	struct pcapfile *one = open_limited(NULL, 0, 100), *other = open_limited(NULL, 0, 100);
	char why[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *header;
	const u_char *bytes;
	pcap_t *pcap;

	add(one, 0, 1000);
	add(other, 5000, 350);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(one));
	add(other, 5350, 350);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(other));
	pcap = pcap_open_offline(whole, why);
	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	for (count = 0; pcap_next_ex(pcap, &header, &bytes) == 1; count++)
		;
	pcap_close(pcap);
	TEST_ASSERT_EQUAL_UINT(200, count);
	assert_no_parts();
}

/* The next trace of the same caller empties the file, of which packets are in parts. */
void test_a_trace_begins_again_in_the_same_file(void)
{
	struct pcapfile *before = open_limited(NULL, 0, 100), *file;

	add(before, 0, 550);
	pcapfile_flush(before);
	file = open_limited(before, 0, 100);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(before));
	add(file, 7000, 20);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
	read_back();
	TEST_ASSERT_EQUAL_UINT(20, count);
	TEST_ASSERT_EQUAL_UINT(7000, first);
	assert_no_parts();
}

/* The name is too long for the name of a part: then there is one segment, which is emptied when it is full. */
void test_without_parts_the_file_is_emptied(void)
{
	struct pcapfile *file;

	snprintf(whole, sizeof(whole), "%s/%0250d", folder, 0);
	file = open_limited(NULL, 0, 100);
	add(file, 0, 1030);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
	read_back();
	TEST_ASSERT_EQUAL_UINT(30, count);
	TEST_ASSERT_EQUAL_UINT(1029, last);
}

/* A child of fork() lets go of all segments of its parent. */
void test_a_child_leaves_the_segments_to_its_parent(void)
{
	struct pcapfile *file = open_limited(NULL, 0, 100);
	int status;
	pid_t child;

	add(file, 0, 250);
	pcapfile_flush(file);
	child = fork();
	if (!child) {
		pcapfile_abandon(file);
		_exit(0);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	add(file, 250, 200);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
	read_back();
	TEST_ASSERT_EQUAL_UINT(100, count);
	TEST_ASSERT_EQUAL_UINT(449, last);
}

void test_a_capture_is_cut(void)
{
	struct pcapfile *file = open_limited(NULL, 0, 0);
	uint64_t left_out;

	add(file, 0, 500);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
	/* A process that was killed has left a record without its end. */
	TEST_ASSERT_EQUAL_INT(0, truncate(whole, HEADER_BYTES + 500 * RECORD_BYTES - 1));
	TEST_ASSERT_EQUAL_INT(0, tail_capture(whole, 499, &left_out));
	TEST_ASSERT_EQUAL_UINT64(0, left_out);
	TEST_ASSERT_EQUAL_INT(0, tail_capture(whole, 10, &left_out));
	TEST_ASSERT_EQUAL_UINT64(489, left_out);
	TEST_ASSERT_EQUAL_UINT64(HEADER_BYTES + 11 * RECORD_BYTES - 1, size_of(whole));
}

#define PACKETS_MAX 1000000
#define KILLS	    20

static void kill_while_it_writes(_Atomic uint32_t *shared, uint32_t at)
{
	pid_t child;

	*shared = 0;
	unlink(whole);
	child = fork();
	if (!child) {
		struct pcapfile *file;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		file = open_limited(NULL, 0, 100);
		while (*shared < PACKETS_MAX) {
			add(file, *shared, 1);
			pcapfile_flush(file);
			++*shared;
		}
		pause();
	}
	while (*shared < at)
		TEST_ASSERT_EQUAL_INT(0, waitpid(child, NULL, WNOHANG));
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
	read_back();
	TEST_ASSERT_TRUE(count <= 201 && count >= (*shared < 100 ? *shared : 100));
	if (*shared)
		TEST_ASSERT_TRUE(last >= *shared - 1 && last <= *shared);
	assert_no_parts();
}

void test_sigkill_at_any_moment_leaves_the_last_packets(void)
{
	const unsigned int seed = (unsigned int)getpid();
	_Atomic uint32_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	TEST_ASSERT_TRUE(shared != MAP_FAILED);
	printf("seed %u\n", seed);
	srand(seed);
	for (unsigned int i = 0; i < KILLS; i++)
		kill_while_it_writes(shared, (uint32_t)(rand() % 2000));
	munmap(shared, sizeof(*shared));
}
