/* SPDX-License-Identifier: MIT */
/*
 * The log of a process: what is in the file after threads, fork(), SIGKILL and a full disk. The
 * events are made by the tests.
 */
#include "src/base/count.h"
#include "src/log/log.h"
#include "unity.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/error.h>
#include <verbena/log.h>
#include <verbena/verbs.h>

#define THREADS	   4
#define EVENTS	   20000
#define KILL_SEEDS 20
#define LIMIT	   100000

/* Of each thread: more than a kill waits for. A parent that has failed, or gets no processor, must not let the log grow
 * for ever. */
#define EVENTS_OF_KILLED 200000

static char folder[64];
static char path[128];

void setUp(void)
{
	strcpy(folder, "/tmp/verbena-test-log-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/log.jsonl", folder);
}

void tearDown(void)
{
	char command[128];

	vb_log_close();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

/* Adds a timer event with two numbers that the test reads back. */
static void add(uint64_t thread, uint64_t count)
{
	const struct vb_event event = {
		.kind = VB_EVENT_TIMER,
		.time_ns = count,
		.device = "sim0",
		.qpn = (uint32_t)thread + 1,
		.values = {count, thread},
		.texts = {"ack", "started"},
	};
	struct record record = {0};

	log_write(&event, &record);
}

static uint64_t number_of(const json_t *event, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(event, key));
}

struct read_back {
	uint64_t events;
	uint64_t of_thread[THREADS];
	uint64_t cut_bytes; /* behind the last newline, without bytes of value 0 */
	bool has_zeros;
};

/*
 * Reads a log: each line is JSON, n has no hole, and the events of each thread are in order. Fails
 * unless the file begins with the head of process @pid.
 */
static struct read_back read_log(const char *name, pid_t pid)
{
	struct read_back read = {0};
	FILE *file = fopen(name, "r");
	size_t size_bytes = 0;
	char *line = NULL;
	ssize_t length;

	TEST_ASSERT_NOT_NULL_MESSAGE(file, name);
	for (uint64_t n = 0; (length = getline(&line, &size_bytes, file)) > 0; n++) {
		json_error_t error;
		json_t *event;

		if (line[length - 1] != '\n') {
			read.cut_bytes = strlen(line);
			read.has_zeros = read.cut_bytes < (uint64_t)length;
			break;
		}
		event = json_loadb(line, (size_t)length, JSON_REJECT_DUPLICATES, &error);
		TEST_ASSERT_NOT_NULL_MESSAGE(event, line);
		TEST_ASSERT_EQUAL_UINT64(n, number_of(event, "n"));
		if (n == 0) {
			TEST_ASSERT_EQUAL_UINT64((uint64_t)pid, number_of(event, "pid"));
			TEST_ASSERT_EQUAL_UINT64(VB_LOG_SCHEMA, number_of(event, "schema"));
		} else {
			const uint64_t thread = number_of(event, "wait_ns");

			TEST_ASSERT_TRUE(thread < THREADS);
			TEST_ASSERT_EQUAL_UINT64(read.of_thread[thread]++, number_of(event, "psn"));
			read.events++;
		}
		json_decref(event);
	}
	free(line);
	fclose(file);
	return read;
}

static off_t size_of(const char *name)
{
	struct stat status = {0};

	TEST_ASSERT_EQUAL_INT(0, stat(name, &status));
	return status.st_size;
}

/* --- opening and closing --- */

void test_an_empty_log_has_its_head(void)
{
	struct read_back read;

	TEST_ASSERT_EQUAL_INT(0, vb_log_open(path));
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	read = read_log(path, getpid());
	TEST_ASSERT_EQUAL_UINT64(0, read.events);
	TEST_ASSERT_TRUE(!read.cut_bytes && !read.has_zeros);
	TEST_ASSERT_TRUE(size_of(path) > 100 && size_of(path) < 1000);
}

void test_closing_no_log_is_no_error(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	add(0, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
}

void test_opening_replaces_the_file_and_ends_the_log_before(void)
{
	char other[160];

	snprintf(other, sizeof(other), "%s/other", folder);
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(path));
	for (uint64_t i = 0; i < 1000; i++)
		add(0, i);
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(other));
	add(1, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(path));
	add(2, 0);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	TEST_ASSERT_EQUAL_UINT64(1, read_log(other, getpid()).of_thread[1]);
	TEST_ASSERT_EQUAL_UINT64(1, read_log(path, getpid()).of_thread[2]);
	TEST_ASSERT_EQUAL_UINT64(1, read_log(path, getpid()).events);
}

void test_the_path_may_have_the_process_number(void)
{
	char given[160], named[160];

	snprintf(given, sizeof(given), "%s/%%p-%%p", folder);
	snprintf(named, sizeof(named), "%s/%d-%d", folder, getpid(), getpid());
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(given));
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	read_log(named, getpid());
}

static void check_refused(const char *name, int err, const char *words)
{
	TEST_ASSERT_EQUAL_INT(err, vb_log_open(name));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(vb_last_error(), words), vb_last_error());
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
}

void test_a_file_that_cannot_be_the_log_has_a_remedy(void)
{
	char fifo[160], missing[160], long_path[5000];

	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	snprintf(missing, sizeof(missing), "%s/none/log", folder);
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	TEST_ASSERT_EQUAL_INT(0, mkfifo(fifo, 0600));
	check_refused("", EINVAL, "the path is empty; name a file");
	check_refused("/dev/full", ENODEV, "name a regular file on a local disk");
	check_refused(fifo, ENODEV, "name a regular file on a local disk");
	check_refused(folder, EISDIR, "name a file in the directory");
	check_refused(missing, ENOENT, "make the directory of the file");
	check_refused(long_path, ENAMETOOLONG, "File name too long");
}

void test_the_file_of_another_process_is_left_alone(void)
{
	int ready[2], status;
	char byte = 0;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, pipe(ready));
	child = fork();
	if (child == 0) {
		if (vb_log_open(path))
			_exit(1);
		add(0, 0);
		(void)!write(ready[1], &byte, 1);
		pause();
	}
	TEST_ASSERT_EQUAL_INT(1, read(ready[0], &byte, 1));
	check_refused(path, EBUSY, "give each process a file by %p in the name");
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_UINT64(1, read_log(path, child).events);
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(path));
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	TEST_ASSERT_EQUAL_UINT64(0, read_log(path, getpid()).events);
	close(ready[0]);
	close(ready[1]);
}

/* A child that another thread has just forked has a copy of the descriptor until its handlers have run. _Fork() calls
 * no handlers. */
void test_a_child_that_has_not_run_yet_keeps_no_log(void)
{
	int ends[2], err;
	pid_t child;
	char byte;

	TEST_ASSERT_EQUAL_INT(0, vb_log_open(path));
	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	child = _Fork();
	if (child == 0) {
		close(ends[1]);
		_exit((int)read(ends[0], &byte, 1));
	}
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	err = vb_log_open(path);
	close(ends[1]);
	close(ends[0]);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, err, vb_last_error());
}

/* --- threads --- */

static void *add_many(void *thread)
{
	for (uint64_t i = 0; i < EVENTS; i++)
		add((uintptr_t)thread, i);
	return NULL;
}

void test_events_of_threads_are_all_there(void)
{
	pthread_t threads[THREADS];
	struct read_back read;

	TEST_ASSERT_EQUAL_INT(0, vb_log_open(path));
	for (uintptr_t i = 0; i < THREADS; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, add_many, (void *)i));
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	read = read_log(path, getpid());
	TEST_ASSERT_EQUAL_UINT64(THREADS * EVENTS, read.events);
	TEST_ASSERT_TRUE(!read.cut_bytes && !read.has_zeros);
}

/* --- the end of the process --- */

/* What a child writes and its parent reads while the child runs. */
static atomic_uint_fast64_t *shared;

static void *add_for_ever(void *thread)
{
	for (uint64_t i = 0; i < EVENTS_OF_KILLED; i++) {
		add((uintptr_t)thread, i);
		atomic_fetch_add(shared, 1);
	}
	pause();
	return NULL;
}

/* Kills a child that writes in two threads once it has added @at events. */
static void kill_while_it_writes(uint64_t at)
{
	pid_t child;
	struct read_back read;

	atomic_store(shared, 0);
	child = fork();
	if (child == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (vb_log_open(path) || pthread_create(&thread, NULL, add_for_ever, (void *)1))
			_exit(1);
		add_for_ever((void *)2);
	}
	TEST_ASSERT_TRUE(child > 0);
	while (atomic_load(shared) < at)
		TEST_ASSERT_EQUAL_INT(0, waitpid(child, NULL, WNOHANG));
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	read = read_log(path, child);
	/* A thread counts an event after log_write() has returned: that event must be there. */
	TEST_ASSERT_TRUE(read.events >= atomic_load(shared));
	TEST_ASSERT_TRUE(read.events <= atomic_load(shared) + 2);
	TEST_ASSERT_TRUE(read.has_zeros);
}

void test_sigkill_leaves_all_whole_lines(void)
{
	const uint64_t seed = 15;

	printf("seed %" PRIu64 "\n", seed);
	srand((unsigned int)seed);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	TEST_ASSERT_TRUE(shared != MAP_FAILED);
	for (unsigned int i = 0; i < KILL_SEEDS; i++)
		kill_while_it_writes((uint64_t)(rand() % 60000));
	munmap(shared, sizeof(*shared));
}

static int status_of(void (*body)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		body();
		_exit(90);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	return status;
}

static void write_and_exit(void)
{
	if (vb_log_open(path))
		_exit(91);
	for (uint64_t i = 0; i < 5000; i++)
		add(0, i);
	exit(0);
}

void test_exit_cuts_the_file_behind_the_last_line(void)
{
	FILE *file;
	char *text;
	size_t length;
	const int status = status_of(write_and_exit);

	TEST_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	file = fopen(path, "r");
	TEST_ASSERT_NOT_NULL(file);
	text = malloc((size_t)size_of(path));
	length = fread(text, 1, (size_t)size_of(path), file);
	fclose(file);
	TEST_ASSERT_EQUAL_INT('\n', text[length - 1]);
	TEST_ASSERT_NULL(memchr(text, 0, length));
	TEST_ASSERT_NOT_NULL(memmem(text, length, "\"n\":5000,", 9));
	free(text);
}

static void write_and_abort(void)
{
	const struct rlimit no_core = {0, 0};

	setrlimit(RLIMIT_CORE, &no_core);
	if (vb_log_open(path))
		_exit(91);
	for (uint64_t i = 0; i < 5000; i++)
		add(0, i);
	abort();
}

void test_abort_loses_nothing(void)
{
	pid_t child = fork();

	if (child == 0)
		write_and_abort();
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_UINT64(5000, read_log(path, child).events);
}

/* --- fork() --- */

static void check_children(const char *given)
{
	pid_t child;
	int status;

	TEST_ASSERT_EQUAL_INT(0, vb_log_open(given));
	add(0, 0);
	child = fork();
	if (child == 0) {
		for (uint64_t i = 0; i < 7; i++)
			add(3, i);
		_exit(vb_log_close());
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	add(0, 1);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	if (strstr(given, "%p")) {
		char named[160];

		snprintf(named, sizeof(named), "%s/%d", folder, child);
		TEST_ASSERT_EQUAL_UINT64(7, read_log(named, child).of_thread[3]);
		snprintf(named, sizeof(named), "%s/%d", folder, getpid());
		TEST_ASSERT_EQUAL_UINT64(2, read_log(named, getpid()).events);
	} else {
		TEST_ASSERT_EQUAL_UINT64(2, read_log(given, getpid()).events);
	}
}

void test_a_child_writes_nothing_into_its_parents_log(void)
{
	check_children(path);
}

void test_a_child_opens_its_own_log(void)
{
	char given[160];

	snprintf(given, sizeof(given), "%s/%%p", folder);
	check_children(given);
}

/* A child that does nothing, as before exec(), makes no file. */
void test_a_child_without_events_makes_no_file(void)
{
	char given[160], named[160];
	pid_t child;

	snprintf(given, sizeof(given), "%s/%%p", folder);
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(given));
	child = fork();
	if (child == 0)
		exit(0);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	snprintf(named, sizeof(named), "%s/%d", folder, child);
	TEST_ASSERT_TRUE(access(named, F_OK) != 0 && errno == ENOENT);
	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
}

/* --- a full disk --- */

static void fill_disk(void)
{
	const struct rlimit limit = {LIMIT, LIMIT};
	char said[160];

	snprintf(said, sizeof(said), "%s/said", folder);
	if (!freopen(said, "w", stderr) || setrlimit(RLIMIT_FSIZE, &limit) || vb_log_open(path))
		_exit(91);
	for (uint64_t i = 0; i < 3000; i++)
		add(0, i);
	if (vb_log_close() != EIO)
		_exit(92);
	if (!strstr(vb_last_error(), "events are missing after event") ||
	    !strstr(vb_last_error(), "File too large"))
		_exit(93);
	fflush(stderr);
	_exit(0);
}

/* The limit of a file's size stands in for a full disk. SIGXFSZ would end the process. */
void test_a_full_disk_keeps_the_lines_before(void)
{
	char said[160], words[1024] = "";
	pid_t child = fork();
	int status;
	FILE *file;
	struct read_back read;

	if (child == 0)
		fill_disk();
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status), "a signal has ended the process");
	TEST_ASSERT_EQUAL_INT(0, WEXITSTATUS(status));
	snprintf(said, sizeof(said), "%s/said", folder);
	file = fopen(said, "r");
	words[fread(words, 1, sizeof(words) - 1, file)] = '\0';
	fclose(file);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(words, "File too large"), words);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(words, "the program continues"), words);
	TEST_ASSERT_EQUAL_PTR(words + strlen(words) - 1, strchr(words, '\n')); /* one line */
	read = read_log(path, child);
	TEST_ASSERT_TRUE(!read.cut_bytes && !read.has_zeros);
	/* A page may stay unused: the limit is no multiple of its size. */
	TEST_ASSERT_TRUE(size_of(path) > LIMIT - 4096 - 200 && size_of(path) <= LIMIT);
}

/* --- exit(3) inside a verb --- */

#define STATUS 7

static void exit_on_signal(int number)
{
	signal(number, SIG_IGN);
	exit(STATUS); /* NOLINT(bugprone-signal-handler): programs do so */
}

/* Nobody reads standard error: the complaint that the disk is full raises SIGPIPE, under the lock of the log. */
static void log_until_the_complaint(void)
{
	struct ibv_device **list = vb_get_device_list("sim", NULL);
	struct ibv_context *context = vb_open_device(list[0]);
	int ends[2];

	alarm(60);
	signal(SIGPIPE, exit_on_signal);
	if (!context || vb_log_open(path) || pipe(ends) || dup2(ends[1], STDERR_FILENO) < 0 ||
	    setrlimit(RLIMIT_FSIZE, &(struct rlimit){LIMIT, LIMIT}))
		_exit(1);
	close(ends[0]);
	for (;;)
		vb_dealloc_pd(vb_alloc_pd(context));
}

void test_exit_inside_a_verb_ends(void)
{
	int status;
	pid_t child = fork();

	if (!child)
		log_until_the_complaint();
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(STATUS, WEXITSTATUS(status));
}
