/* SPDX-License-Identifier: MIT */
/*
 * What is in the file when a process ends that has it open: after exit() every frame; after a
 * signal or _exit() the frames that were flushed. A process that is killed while it writes may cut
 * the last one.
 */
#include "test/support/capture.h"
#include "unity.h"

#include <pcap/pcap.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FRAMES	     500
#define BUFFER_BYTES 65536

/* 20 MB, which are more than a kill waits for. */
#define FRAMES_OF_KILLED 10000

void setUp(void)
{
	capture_begin();
}

void tearDown(void)
{
	capture_end();
}

/* Runs end in a child that has opened the file and added FRAMES frames. Returns its wait status. */
static int in_child(void (*end)(struct pcapfile *file))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		const struct rlimit no_core = {0, 0};
		struct pcapfile *file;

		setrlimit(RLIMIT_CORE, &no_core);
		file = capture_open();
		if (!file)
			_exit(99);
		capture_add(file, 0, FRAMES);
		end(file);
		_exit(98);
	}
	TEST_ASSERT_TRUE(child > 0);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	return status;
}

static void end_exit(struct pcapfile *file)
{
	(void)file;
	exit(0);
}

static void end_exit_flushed(struct pcapfile *file)
{
	pcapfile_flush(file);
	_exit(0);
}

static void *exit_from_thread(void *file)
{
	end_exit(file);
	return NULL;
}

static void end_exit_in_thread(struct pcapfile *file)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exit_from_thread, file);
	pthread_join(thread, NULL);
}

static void end_abort(struct pcapfile *file)
{
	(void)file;
	abort();
}

static void end_abort_flushed(struct pcapfile *file)
{
	pcapfile_flush(file);
	abort();
}

static void end_kill_flushed(struct pcapfile *file)
{
	pcapfile_flush(file);
	kill(getpid(), SIGKILL);
}

static void check_exit(void (*end)(struct pcapfile *))
{
	const int status = in_child(end);

	TEST_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	TEST_ASSERT_EQUAL_UINT(FRAMES, capture_read_back());
}

static void check_signal(void (*end)(struct pcapfile *), int number)
{
	const int status = in_child(end);

	TEST_ASSERT_TRUE(WIFSIGNALED(status));
	TEST_ASSERT_EQUAL_INT(number, WTERMSIG(status));
	TEST_ASSERT_EQUAL_UINT(FRAMES, capture_read_back());
}

void test_pcapfile_end_exit_loses_nothing(void)
{
	check_exit(end_exit);
}

void test_pcapfile_end_exit_in_a_thread_loses_nothing(void)
{
	check_exit(end_exit_in_thread);
}

void test_pcapfile_end_flushed_frames_survive__exit(void)
{
	check_exit(end_exit_flushed);
}

void test_pcapfile_end_flushed_frames_survive_abort(void)
{
	check_signal(end_abort_flushed, SIGABRT);
}

void test_pcapfile_end_flushed_frames_survive_sigkill(void)
{
	check_signal(end_kill_flushed, SIGKILL);
}

void test_pcapfile_end_abort_loses_at_most_the_buffer(void)
{
	const int status = in_child(end_abort);
	size_t lost_bytes = 0;

	TEST_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	for (unsigned int i = capture_read_back(); i < FRAMES; i++)
		lost_bytes += 16 + capture_frame_bytes(i);
	TEST_ASSERT_TRUE(lost_bytes > 0);
	TEST_ASSERT_TRUE(lost_bytes <= BUFFER_BYTES);
}

/*
 * SIGKILL at any moment, in the middle of a write too, leaves records that libpcap reads; the last
 * one may be cut.
 */
static void kill_while_it_writes(off_t at_bytes)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	struct pcap_pkthdr *header;
	off_t whole_bytes = 24;
	struct stat size = {0};
	const u_char *bytes;
	pid_t child;
	pcap_t *pcap;

	TEST_ASSERT_EQUAL_INT(0, truncate(capture_path, 0));
	child = fork();
	if (child == 0) {
		struct pcapfile *file;

		/* A parent that has failed, or gets no processor, must not let the file grow for ever. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		file = capture_open();
		for (unsigned int i = 0; i < FRAMES_OF_KILLED; i++)
			capture_add(file, i, 1);
		pause();
	}
	while (size.st_size < at_bytes)
		TEST_ASSERT_EQUAL_INT(0, stat(capture_path, &size));
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, stat(capture_path, &size));
	pcap = pcap_open_offline_with_tstamp_precision(capture_path, PCAP_TSTAMP_PRECISION_NANO,
						       why);
	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	for (unsigned int i = 0; pcap_next_ex(pcap, &header, &bytes) == 1; i++) {
		TEST_ASSERT_EQUAL_UINT(capture_frame_bytes(i), header->caplen);
		TEST_ASSERT_EQUAL_HEX8(i & 0xff, bytes[header->caplen - 1]);
		whole_bytes += 16 + (off_t)header->caplen;
	}
	pcap_close(pcap);
	TEST_ASSERT_TRUE(size.st_size - whole_bytes < 16 + 4200);
}

void test_pcapfile_end_sigkill_at_any_moment_cuts_one_record_at_most(void)
{
	for (off_t at_bytes = 1000; at_bytes < 8000000; at_bytes += 400000)
		kill_while_it_writes(at_bytes);
}

/* A child that closes its parent's file after a flush, and exits, adds nothing. */
static void end_after_fork(struct pcapfile *file)
{
	pid_t child;

	pcapfile_flush(file);
	child = fork();
	if (child == 0) {
		pcapfile_close(file);
		exit(0);
	}
	waitpid(child, NULL, 0);
	exit(0);
}

void test_pcapfile_end_fork_writes_nothing(void)
{
	check_exit(end_after_fork);
}

/*
 * A file size limit stands in for a full disk: the write comes back short. The child reports its
 * findings through its exit status, and the test keeps its stderr.
 */
void test_pcapfile_end_full_disk_keeps_flushed_records(void)
{
	char said[sizeof(capture_path) + 8];
	char text[512] = "";
	struct stat size;
	pid_t child;
	FILE *stream;
	int status;

	snprintf(said, sizeof(said), "%s.said", capture_path);
	child = fork();
	if (child == 0) {
		const struct rlimit limit = {100000, 100000};
		struct pcapfile *file;

		signal(SIGXFSZ, SIG_IGN);
		if (!freopen(said, "w", stderr) || setrlimit(RLIMIT_FSIZE, &limit))
			_exit(97);
		file = capture_open();
		capture_add(file, 0, 3 * FRAMES);
		if (!pcapfile_failed(file))
			_exit(96);
		pcapfile_close(file);
		exit(0);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	stream = fopen(said, "r");
	TEST_ASSERT_NOT_NULL(stream);
	text[fread(text, 1, sizeof(text) - 1, stream)] = 0;
	fclose(stream);
	unlink(said);

	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
	TEST_ASSERT_NOT_NULL(strstr(text, capture_path));
	TEST_ASSERT_NOT_NULL(strstr(text, "File too large"));
	TEST_ASSERT_EQUAL_PTR(text + strlen(text) - 1, strchr(text, '\n')); /* one line */
	TEST_ASSERT_TRUE(capture_read_back() > 0);
	TEST_ASSERT_EQUAL_INT(0, stat(capture_path, &size));
	TEST_ASSERT_TRUE(size.st_size > 100000 - BUFFER_BYTES && size.st_size <= 100000);
}
