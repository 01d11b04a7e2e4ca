/* SPDX-License-Identifier: MIT */
/* A trace that several processes write, and the joining of its parts. */
#include "backends/sim/capture/pcapfile.h"
#include "sim/net/trace.h"
#include "src/parts/merge.h"
#include "src/parts/part.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAME_BYTES 64
#define NS_PER_S    UINT64_C(1000000000)
#define FRAMES_MAX  4096

static char folder[64], whole[PART_NAME_BYTES], sentence[MERGE_SENTENCE_BYTES];
static char text[MERGE_SENTENCE_BYTES];

/* What a capture holds: the time of each packet, and the number that its bytes say. */
static struct frame {
	uint64_t time_ns;
	uint32_t number;
} frames[FRAMES_MAX];
static unsigned int frame_count;

void setUp(void)
{
	strcpy(folder, "/tmp/verbena-test-parts-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	snprintf(whole, sizeof(whole), "%s/t.pcap", folder);
	sentence[0] = '\0';
}

void tearDown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static char *in_folder(const char *name)
{
	static char paths[8][128];
	static unsigned int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static struct pcapfile *open_capture(const char *path, bool infiniband)
{
	char error[256] = "";
	struct pcapfile *file = pcapfile_open(path, infiniband, NULL, error, sizeof(error));

	TEST_ASSERT_NOT_NULL_MESSAGE(file, error);
	return file;
}

static void add(struct pcapfile *file, uint64_t time_ns, uint32_t number)
{
	uint8_t frame[FRAME_BYTES] = {0};

	memcpy(frame, &number, sizeof(number));
	pcapfile_frame(file, time_ns, frame, sizeof(frame), 0);
}

/* Writes a capture with a packet for each pair of time and number; ends with the time 0. */
static const char *write_capture(const char *name, const struct frame *given)
{
	const char *path = in_folder(name);
	struct pcapfile *file = open_capture(path, false);

	for (; given->time_ns; given++)
		add(file, given->time_ns, given->number);
	pcapfile_close(file);
	return path;
}

static void read_capture(const char *path)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap =
		pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, why);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	int status;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	frame_count = 0;
	while ((status = pcap_next_ex(pcap, &header, &bytes)) == 1) {
		struct frame *frame = &frames[frame_count++];

		TEST_ASSERT_TRUE(frame_count < FRAMES_MAX);
		frame->time_ns =
			(uint64_t)header->ts.tv_sec * NS_PER_S + (uint64_t)header->ts.tv_usec;
		memcpy(&frame->number, bytes, sizeof(frame->number));
	}
	TEST_ASSERT_EQUAL_INT_MESSAGE(PCAP_ERROR_BREAK, status, pcap_geterr(pcap));
	pcap_close(pcap);
}

/* Asserts that a capture holds exactly these packets, in this order. */
static void expect(const char *path, const struct frame *wanted)
{
	unsigned int i = 0;

	read_capture(path);
	for (; wanted[i].time_ns; i++) {
		TEST_ASSERT_TRUE_MESSAGE(i < frame_count, "a packet is missing");
		TEST_ASSERT_EQUAL_UINT64(wanted[i].time_ns, frames[i].time_ns);
		TEST_ASSERT_EQUAL_UINT(wanted[i].number, frames[i].number);
	}
	TEST_ASSERT_EQUAL_UINT(i, frame_count);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static unsigned int count_parts(void)
{
	struct parts parts;
	unsigned int count;

	TEST_ASSERT_EQUAL_INT(0, parts_list(whole, &parts));
	count = parts.count;
	parts_free(&parts);
	return count;
}

static int merge(const char *to, const char *a, const char *b, const char *c)
{
	const char *const names[] = {a, b, c};
	const struct merge_files files = {names, c ? 3 : b ? 2 : 1};

	return merge_to(to, &files, sentence);
}

/* --- joining files --- */

void test_merge_orders_by_time_and_then_by_file(void)
{
	const char *a =
		write_capture("a", (struct frame[]){{5, 1}, {NS_PER_S, 2}, {NS_PER_S, 3}, {0}});
	const char *b = write_capture("b", (struct frame[]){{NS_PER_S, 4}, {NS_PER_S + 1, 5}, {0}});
	const char *c =
		write_capture("c", (struct frame[]){{4, 6}, {5, 7}, {2 * NS_PER_S, 8}, {0}});

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge(whole, a, b, c), sentence);
	expect(whole, (struct frame[]){{4, 6},
				       {5, 1},
				       {5, 7},
				       {NS_PER_S, 2},
				       {NS_PER_S, 3},
				       {NS_PER_S, 4},
				       {NS_PER_S + 1, 5},
				       {2 * NS_PER_S, 8},
				       {0}});
	TEST_ASSERT_TRUE(exists(a) && exists(b) && exists(c));
}

void test_merge_leaves_out_a_record_that_is_cut_and_empty_files(void)
{
	const char *a = write_capture("a", (struct frame[]){{5, 1}, {8, 2}, {0}});
	const char *b = write_capture("b", (struct frame[]){{6, 3}, {0}});
	struct stat status;

	TEST_ASSERT_EQUAL_INT(0, stat(a, &status));
	for (off_t cut = 1; cut < 16 + FRAME_BYTES; cut += 13) {
		TEST_ASSERT_EQUAL_INT(0, truncate(a, status.st_size - cut));
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge(whole, a, b, NULL), sentence);
		expect(whole, (struct frame[]){{5, 1}, {6, 3}, {0}});
	}
	TEST_ASSERT_EQUAL_INT(0, truncate(a, 23));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge(whole, a, b, NULL), sentence);
	expect(whole, (struct frame[]){{6, 3}, {0}});
	TEST_ASSERT_EQUAL_INT(0, truncate(b, 0));
	unlink(whole);
	TEST_ASSERT_EQUAL_INT(ENODATA, merge(whole, a, b, NULL));
	TEST_ASSERT_FALSE(exists(whole));
}

void test_merge_refuses_two_link_layers(void)
{
	const char *a = write_capture("a", (struct frame[]){{5, 1}, {0}}), *b = in_folder("b");

	pcapfile_close(open_capture(b, true));
	write_capture("t.pcap", (struct frame[]){{9, 9}, {0}});
	TEST_ASSERT_EQUAL_INT(EINVAL, merge(whole, a, b, NULL));
	snprintf(text, sizeof(text),
		 "%s has packets of Ethernet, and %s has packets of InfiniBand (ERF): a pcap holds "
		 "one "
		 "link layer; join the files of each link layer by themselves",
		 a, b);
	TEST_ASSERT_EQUAL_STRING(text, sentence);
	expect(whole, (struct frame[]){{9, 9}, {0}});
}

void test_merge_joins_infiniband(void)
{
	const char *a = in_folder("a"), *b = in_folder("b");
	const uint8_t frame[FRAME_BYTES] = {0};
	char why[PCAP_ERRBUF_SIZE];
	struct pcapfile *file;
	pcap_t *pcap;

	for (unsigned int i = 0; i < 2; i++) {
		file = open_capture(i ? b : a, true);
		pcapfile_frame(file, 7 - i, frame, sizeof(frame), SIM_FRAME_INFINIBAND);
		pcapfile_close(file);
	}
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge(whole, a, b, NULL), sentence);
	read_capture(whole);
	TEST_ASSERT_EQUAL_UINT(2, frame_count);
	TEST_ASSERT_EQUAL_UINT64(6, frames[0].time_ns);
	pcap = pcap_open_offline(whole, why);
	TEST_ASSERT_EQUAL_INT(DLT_ERF, pcap_datalink(pcap));
	pcap_close(pcap);
}

void test_merge_refuses_what_is_no_capture_in_order(void)
{
	const char *a = write_capture("a", (struct frame[]){{5, 1}, {4, 1}, {0}});
	FILE *file;

	TEST_ASSERT_EQUAL_INT(EINVAL, merge(whole, a, NULL, NULL));
	snprintf(text, sizeof(text),
		 "%s: packet 2 has an earlier time than packet 1; sort the file first, as by "
		 "`reordercap %s SORTED`",
		 a, a);
	TEST_ASSERT_EQUAL_STRING(text, sentence);
	file = fopen(a, "w");
	fprintf(file, "{\"n\":0,\"kind\":\"log\",\"schema\":1,\"verbena\":\"0.1\"}\n");
	fclose(file);
	TEST_ASSERT_EQUAL_INT(EBADMSG, merge(whole, a, NULL, NULL));
	snprintf(text, sizeof(text), "%s is no capture (pcap): ", a);
	TEST_ASSERT_EQUAL_INT(0, strncmp(text, sentence, strlen(text)));
	TEST_ASSERT_FALSE(exists(whole));
}

/* --- who writes which file --- */

void test_the_second_writer_gets_a_part(void)
{
	struct part first, second, third;

	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &first));
	TEST_ASSERT_EQUAL_STRING(whole, first.name);
	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &second));
	snprintf(text, sizeof(text), "%s.%d.part", whole, getpid());
	TEST_ASSERT_EQUAL_STRING(text, second.name);
	TEST_ASSERT_EQUAL_STRING(whole, second.whole);
	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &third));
	snprintf(text, sizeof(text), "%s.%d.2.part", whole, getpid());
	TEST_ASSERT_EQUAL_STRING(text, third.name);
	TEST_ASSERT_EQUAL_UINT(2, count_parts());
	TEST_ASSERT_TRUE(part_is_written(second.name));
	close(second.fd);
	TEST_ASSERT_FALSE(part_is_written(second.name));
	close(first.fd);
	close(third.fd);
}

/* While one part is written the run goes on: a newcomer must not empty what the first has left. */
void test_a_run_goes_on_until_the_last_writer_ends(void)
{
	struct pcapfile *first = open_capture(whole, false), *second = open_capture(whole, false),
			*third;

	add(first, 5, 1);
	pcapfile_close(first);
	third = open_capture(whole, false);
	add(third, 6, 2);
	add(second, 4, 3);
	pcapfile_close(second);
	expect(whole, (struct frame[]){{5, 1}, {0}});
	pcapfile_close(third);
	expect(whole, (struct frame[]){{4, 3}, {5, 1}, {6, 2}, {0}});
	TEST_ASSERT_EQUAL_UINT(0, count_parts());
}

/* The same with any of two parts. */
void test_a_run_goes_on_while_one_of_two_parts_is_written(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct part first, parts[2], newcomer;
		struct stat status;

		TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &first));
		TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &parts[0]));
		TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &parts[1]));
		TEST_ASSERT_EQUAL_INT(4, write(first.fd, "1234", 4));
		close(first.fd);
		close(parts[i].fd);
		TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &newcomer));
		TEST_ASSERT_TRUE(strcmp(whole, newcomer.name) != 0);
		TEST_ASSERT_EQUAL_INT(0, stat(whole, &status));
		TEST_ASSERT_EQUAL_INT(4, status.st_size);
		close(parts[!i].fd);
		close(newcomer.fd);
	}
}

void test_a_new_run_empties_the_file_and_removes_old_parts(void)
{
	struct part first, second;
	struct pcapfile *file;

	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &first));
	TEST_ASSERT_EQUAL_INT(0, part_open(whole, O_RDWR, -1, &second));
	TEST_ASSERT_EQUAL_INT(4, write(first.fd, "1234", 4));
	close(first.fd);
	close(second.fd);
	TEST_ASSERT_EQUAL_UINT(1, count_parts());
	write_capture("t.pcap.x.part", (struct frame[]){{1, 1}, {0}});
	write_capture("t.pcap.1.2.3.part", (struct frame[]){{1, 1}, {0}});
	write_capture("t.pcapx.1.part", (struct frame[]){{1, 1}, {0}});
	file = open_capture(whole, false);
	TEST_ASSERT_EQUAL_UINT(0, count_parts());
	add(file, 7, 7);
	pcapfile_close(file);
	expect(whole, (struct frame[]){{7, 7}, {0}});
	TEST_ASSERT_TRUE(exists(in_folder("t.pcap.x.part")));
	TEST_ASSERT_TRUE(exists(in_folder("t.pcap.1.2.3.part")));
	TEST_ASSERT_TRUE(exists(in_folder("t.pcapx.1.part")));
}

/* A world may begin its trace again in the same file. */
void test_a_writer_may_begin_its_own_file_again(void)
{
	struct pcapfile *first = open_capture(whole, false), *again;
	char error[256] = "";

	add(first, 5, 1);
	pcapfile_flush(first);
	again = pcapfile_open(whole, false, first, error, sizeof(error));
	TEST_ASSERT_NOT_NULL_MESSAGE(again, error);
	TEST_ASSERT_EQUAL_UINT(0, count_parts());
	pcapfile_close(first);
	TEST_ASSERT_TRUE(part_is_written(whole));
	add(again, 3, 2);
	pcapfile_close(again);
	expect(whole, (struct frame[]){{3, 2}, {0}});
	TEST_ASSERT_FALSE(part_is_written(whole));
}

/* A symbolic link leads to the trace: the link stays, and the parts are beside the trace. */
void test_parts_follow_a_symbolic_link(void)
{
	char *link = in_folder("link");
	struct pcapfile *first, *second;
	struct stat status;

	TEST_ASSERT_EQUAL_INT(0, symlink(whole, link));
	first = open_capture(link, false);
	second = open_capture(link, false);
	TEST_ASSERT_EQUAL_UINT(1, count_parts());
	add(second, 2, 2);
	add(first, 1, 1);
	pcapfile_close(second);
	pcapfile_close(first);
	TEST_ASSERT_EQUAL_INT(0, lstat(link, &status));
	TEST_ASSERT_TRUE(S_ISLNK(status.st_mode));
	expect(whole, (struct frame[]){{1, 1}, {2, 2}, {0}});
}

void test_the_joined_file_keeps_its_rights(void)
{
	struct pcapfile *first = open_capture(whole, false), *second = open_capture(whole, false);
	struct stat status;

	TEST_ASSERT_EQUAL_INT(0, chmod(whole, 0640));
	add(second, 2, 2);
	pcapfile_close(first);
	pcapfile_close(second);
	TEST_ASSERT_EQUAL_INT(0, stat(whole, &status));
	TEST_ASSERT_EQUAL_INT(0640, status.st_mode & 0777);
	expect(whole, (struct frame[]){{2, 2}, {0}});
}

/* The parts stay if they cannot be joined. */
void test_parts_of_two_link_layers_stay(void)
{
	struct pcapfile *first = open_capture(whole, false), *second = open_capture(whole, true);
	int kept = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

	add(first, 1, 1);
	pcapfile_close(first);
	dup2(null, STDERR_FILENO);
	TEST_ASSERT_EQUAL_INT(EINVAL, pcapfile_close(second));
	dup2(kept, STDERR_FILENO);
	close(kept);
	close(null);
	TEST_ASSERT_EQUAL_UINT(1, count_parts());
	expect(whole, (struct frame[]){{1, 1}, {0}});
	TEST_ASSERT_FALSE(exists(in_folder("t.pcap.joining")));
}

/* --- processes --- */

/* Runs in a child of fork(): writes some packets, whose numbers nobody else has, and leaves. */
static void write_and_leave(unsigned int who, unsigned int rounds, bool is_killed)
{
	struct pcapfile *file = open_capture(whole, false);

	for (unsigned int i = 0; i < rounds; i++)
		add(file, 1000 + i, who * 1000 + i);
	pcapfile_flush(file);
	if (is_killed)
		kill(getpid(), SIGKILL);
	pcapfile_close(file);
	_exit(0);
}

static void check_all(unsigned int processes, unsigned int rounds)
{
	static bool seen[FRAMES_MAX * 1000];

	memset(seen, 0, sizeof(seen));
	read_capture(whole);
	TEST_ASSERT_EQUAL_UINT(processes * rounds, frame_count);
	for (unsigned int i = 0; i < frame_count; i++) {
		TEST_ASSERT_TRUE(!i || frames[i].time_ns >= frames[i - 1].time_ns);
		TEST_ASSERT_FALSE(seen[frames[i].number]);
		seen[frames[i].number] = true;
	}
	TEST_ASSERT_EQUAL_UINT(0, count_parts());
}

/* Runs processes that write parts and then leave at once. */
static void leave_at_once(unsigned int processes, bool and_first)
{
	struct pcapfile *file = open_capture(whole, false);
	int ready[2], leave[2];
	char byte;

	TEST_ASSERT_EQUAL_INT(0, pipe(ready));
	TEST_ASSERT_EQUAL_INT(0, pipe(leave));
	for (unsigned int who = 0; who < processes; who++)
		if (fork() == 0) {
			struct pcapfile *part;

			pcapfile_abandon(file);
			close(leave[1]);
			part = open_capture(whole, false);
			add(part, 1000 + who % 3, who);
			(void)!write(ready[1], "", 1);
			(void)!read(leave[0], &byte, 1);
			_exit(pcapfile_close(part));
		}
	for (unsigned int who = 0; who < processes; who++)
		TEST_ASSERT_EQUAL_INT(1, read(ready[0], &byte, 1));
	if (!and_first)
		pcapfile_close(file);
	for (unsigned int i = 0; i < 2; i++) {
		close(leave[1 - i]);
		close(ready[i]);
	}
	if (and_first)
		pcapfile_close(file);
	while (wait(NULL) > 0)
		;
}

/* Many processes leave at the same time: one of them joins all parts. */
void test_processes_that_leave_at_once_are_all_joined(void)
{
	for (unsigned int round = 0; round < 200; round++) {
		const unsigned int processes = 2 + round % 7;

		leave_at_once(processes, round % 2);
		check_all(processes, 1);
	}
}

/* Processes come and go: none loses its own packets while another one writes. */
void test_processes_come_while_others_leave(void)
{
	for (unsigned int round = 0; round < 40; round++) {
		struct pcapfile *file = open_capture(whole, false), *second;

		for (unsigned int who = 0; who < 4; who++)
			if (fork() == 0) {
				pcapfile_abandon(file);
				for (unsigned int i = 0; i < 5; i++) {
					struct pcapfile *part = open_capture(whole, false);

					add(part, 1000 + i, who * 5 + i);
					pcapfile_close(part);
				}
				_exit(0);
			}
		/* The run goes on in a part when the first one has left. */
		second = open_capture(whole, false);
		pcapfile_close(file);
		while (wait(NULL) > 0)
			;
		pcapfile_close(second);
		check_all(4, 5);
	}
}

/* The next process that leaves joins what killed processes have left. */
void test_parts_of_killed_processes_are_joined(void)
{
	struct pcapfile *file = open_capture(whole, false);

	for (unsigned int who = 0; who < 5; who++)
		if (fork() == 0) {
			pcapfile_abandon(file);
			write_and_leave(who, 4, who != 2);
		}
	while (wait(NULL) > 0)
		;
	TEST_ASSERT_EQUAL_UINT(5, count_parts());
	pcapfile_close(file);
	check_all(5, 4);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Joins in a child that is killed after some time. */
static void join_for(uint64_t duration_ns)
{
	const uint64_t end_ns = now_ns() + duration_ns;
	pid_t child = fork();

	if (child == 0)
		_exit(merge_parts(whole, sentence));
	while (now_ns() < end_ns)
		;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A join that is killed at any moment can be repeated: each packet is there once. */
void test_a_join_may_be_killed(void)
{
	const unsigned int seed = (unsigned int)getpid();

	printf("seed %u\n", seed);
	srand(seed);
	for (unsigned int round = 0; round < 100; round++) {
		struct pcapfile *file = open_capture(whole, false);

		for (unsigned int who = 0; who < 4; who++)
			if (fork() == 0) {
				pcapfile_abandon(file);
				write_and_leave(who, 200, true);
			}
		while (wait(NULL) > 0)
			;
		pcapfile_abandon(file);
		for (unsigned int i = 0; i < 3; i++)
			join_for((uint64_t)rand() % 1000000);
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
		check_all(4, 200);
		TEST_ASSERT_FALSE(exists(in_folder("t.pcap.joining")));
	}
}

/* What each step of a join leaves: first the new file, then renamed parts, then the new file is NAME. */
void test_each_step_of_a_join_can_be_repeated(void)
{
	char part[128], joining[160], beside[128];

	snprintf(part, sizeof(part), "%s/t.pcap.77.part", folder);
	snprintf(joining, sizeof(joining), "%s.joining", part);
	snprintf(beside, sizeof(beside), "%s/t.pcap.joining", folder);
	for (unsigned int step = 0; step < 3; step++) {
		write_capture("t.pcap", (struct frame[]){{1, 1}, {0}});
		write_capture("t.pcap.77.part", (struct frame[]){{2, 2}, {0}});
		write_capture("t.pcap.joining", (struct frame[]){{1, 1}, {2, 2}, {0}});
		if (step >= 1)
			TEST_ASSERT_EQUAL_INT(0, rename(part, joining));
		if (step >= 2)
			TEST_ASSERT_EQUAL_INT(0, rename(beside, whole));
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
		expect(whole, (struct frame[]){{1, 1}, {2, 2}, {0}});
		TEST_ASSERT_FALSE(exists(part) || exists(joining) || exists(beside));
	}
}

/* All were killed: merge_parts() joins them, and a second call has nothing to do. */
void test_merge_parts_joins_what_was_left(void)
{
	struct pcapfile *file;

	if (fork() == 0) {
		file = open_capture(whole, false);
		add(file, 2000, 5000);
		pcapfile_flush(file);
		for (unsigned int who = 0; who < 3; who++) {
			if (fork() == 0)
				write_and_leave(who, 2, true);
			wait(NULL);
		}
		kill(getpid(), SIGKILL);
	}
	wait(NULL);
	TEST_ASSERT_EQUAL_UINT(3, count_parts());
	for (unsigned int i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
		read_capture(whole);
		TEST_ASSERT_EQUAL_UINT(7, frame_count);
		TEST_ASSERT_EQUAL_UINT(0, count_parts());
	}
}

void test_merge_parts_waits_for_the_writer(void)
{
	struct pcapfile *first = open_capture(whole, false), *second = open_capture(whole, false);

	pcapfile_flush(second);
	TEST_ASSERT_EQUAL_INT(EWOULDBLOCK, merge_parts(whole, sentence));
	snprintf(
		text, sizeof(text),
		"%s: a process writes this trace; wait for the end of the process, or join what is "
		"there into another file by -o",
		whole);
	TEST_ASSERT_EQUAL_STRING(text, sentence);
	add(first, 1, 1);
	pcapfile_close(first);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
	TEST_ASSERT_EQUAL_UINT(1, count_parts());
	add(second, 2, 2);
	pcapfile_close(second);
	expect(whole, (struct frame[]){{1, 1}, {2, 2}, {0}});
}

/*
 * A child that another thread has just forked has copies of the descriptors until it runs for the first time, and a
 * child of posix_spawn() until it executes its program: they keep no file locked.
 */
void test_a_child_that_has_not_run_yet_keeps_no_lock(void)
{
	struct pcapfile *first = open_capture(whole, false), *second = open_capture(whole, false);
	int ends[2];
	pid_t child;
	char byte;

	add(first, 1, 1);
	add(second, 2, 2);
	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	child = fork();
	if (child == 0) {
		close(ends[1]);
		_exit((int)read(ends[0], &byte, 1));
	}
	pcapfile_close(second);
	pcapfile_close(first);
	close(ends[1]);
	close(ends[0]);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	expect(whole, (struct frame[]){{1, 1}, {2, 2}, {0}});
	TEST_ASSERT_EQUAL_UINT(0, count_parts());
}

/* The next capture of the same file has the lock of the one before. */
void test_a_capture_that_begins_again_keeps_its_lock(void)
{
	struct pcapfile *first = open_capture(whole, false), *again;
	char error[256] = "";

	again = pcapfile_open(whole, false, first, error, sizeof(error));
	TEST_ASSERT_NOT_NULL_MESSAGE(again, error);
	pcapfile_close(first);
	TEST_ASSERT_TRUE(part_is_written(whole));
	pcapfile_close(again);
	TEST_ASSERT_FALSE(part_is_written(whole));
}
