/* SPDX-License-Identifier: MIT */
/*
 * Names of parts that can be neither locked nor removed, and locks of other programs: a run begins and ends in bounded
 * time, joins all other parts, and says what to do about these. Each row runs in a child, as an ordinary user in a
 * sticky folder where it says so.
 */
#include "backends/sim/capture/pcapfile.h"
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
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S	    60 /* a child that has not ended by then spins or blocks */
#define FRAME_BYTES 64
#define USER	    65534

static char folder[64], whole[PART_NAME_BYTES], part[128], complaint[128];
static char said[1 << 14], sentence[MERGE_SENTENCE_BYTES];

void setUp(void)
{
	strcpy(folder, "/tmp/verbena-test-stuck-XXXXXX");
	TEST_ASSERT_NOT_NULL(mkdtemp(folder));
	TEST_ASSERT_EQUAL_INT(0, chmod(folder, 01777));
	snprintf(whole, sizeof(whole), "%s/t.pcap", folder);
	snprintf(part, sizeof(part), "%s/t.pcap.78.part", folder);
	snprintf(complaint, sizeof(complaint), "%s/stderr", folder);
}

void tearDown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

/* --- what stands at the name of the part --- */

static void write_at(const char *path, mode_t mode)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	TEST_ASSERT_EQUAL_INT(5, write(fd, "text\n", 5));
	TEST_ASSERT_EQUAL_INT(0, fchmod(fd, mode));
	close(fd);
}

static void make_folder(void)
{
	TEST_ASSERT_EQUAL_INT(0, mkdir(part, 0755));
}

static void make_pipe(void)
{
	TEST_ASSERT_EQUAL_INT(0, mkfifo(part, 0666));
}

static void make_dangling_link(void)
{
	TEST_ASSERT_EQUAL_INT(0, symlink("nowhere", part));
}

static void make_link_to_itself(void)
{
	TEST_ASSERT_EQUAL_INT(0, symlink(part, part));
}

static void make_link_to_trace(void)
{
	TEST_ASSERT_EQUAL_INT(0, symlink(whole, part));
}

static void make_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, part, strlen(part));
	TEST_ASSERT_EQUAL_INT(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
	close(fd);
}

static void make_readable_file(void)
{
	write_at(part, 0644);
}

static void make_unreadable_file(void)
{
	write_at(part, 0600);
}

static void make_writable_file(void)
{
	write_at(part, 0666);
}

/* --- locks of another program --- */

static pid_t locker;

static void lock_all_bytes(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_SETLK, &lock))
		_exit(1);
}

static void lock_all_bytes_for_reading(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	if (fcntl(fd, F_SETLK, &lock))
		_exit(1);
}

static void lock_by_flock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB))
		_exit(1);
}

/* The child that runs the row has a child of its own, which locks the file until it is killed. */
static void let_lock(const char *path, void (*lock)(int fd))
{
	int ready[2];
	char byte;

	TEST_ASSERT_EQUAL_INT(0, pipe(ready));
	locker = fork();
	if (!locker) {
		alarm(LIMIT_S);
		lock(open(path, O_RDWR | O_CREAT, 0666));
		(void)!write(ready[1], "", 1);
		pause();
	}
	close(ready[1]);
	TEST_ASSERT_EQUAL_INT(1, read(ready[0], &byte, 1));
	close(ready[0]);
}

static void lock_trace(void)
{
	let_lock(whole, lock_all_bytes);
}

static void lock_trace_for_reading(void)
{
	let_lock(whole, lock_all_bytes_for_reading);
}

static void flock_trace(void)
{
	let_lock(whole, lock_by_flock);
}

static void lock_part(void)
{
	let_lock(part, lock_all_bytes);
}

static void flock_part(void)
{
	let_lock(part, lock_by_flock);
}

/* --- a run --- */

static struct pcapfile *open_capture(void)
{
	char error[256] = "";
	struct pcapfile *file = pcapfile_open(whole, false, NULL, error, sizeof(error));

	if (!file)
		fprintf(stderr, "%s\n", error);
	return file;
}

static void add(struct pcapfile *file, uint64_t time_ns)
{
	static const uint8_t frame[FRAME_BYTES];

	pcapfile_frame(file, time_ns, frame, sizeof(frame), 0);
}

/* Two writers of one run. Makes the obstacle before, or while they write; make NULL: it is there. */
static int write_both(void (*make)(void), bool before)
{
	struct pcapfile *first, *second;

	if (make && before)
		make();
	if (!(first = open_capture()) || !(second = open_capture()))
		return 9;
	if (make && !before)
		make();
	add(second, 1);
	add(first, 2);
	pcapfile_close(second);
	pcapfile_close(first);
	if (locker) {
		kill(locker, SIGKILL);
		waitpid(locker, NULL, 0);
	}
	return 0;
}

static void read_said(void)
{
	FILE *file = fopen(complaint, "r");

	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
}

/* as_user: another user, root, has made the obstacle before. */
static void run(const char *name, void (*make)(void), bool before, bool as_user)
{
	int status;
	pid_t child;

	if (as_user)
		make();
	child = fork();
	if (!child) {
		alarm(LIMIT_S);
		if (as_user && (setgid(USER) || setuid(USER)))
			_exit(8);
		if (dup2(open(complaint, O_WRONLY | O_CREAT | O_TRUNC, 0666), STDERR_FILENO) < 0)
			_exit(7);
		_exit(write_both(as_user ? NULL : make, before));
	}
	waitpid(child, &status, 0);
	read_said();
	printf("%s: %s\n", name, said);
	TEST_ASSERT_TRUE_MESSAGE(WIFEXITED(status), name);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, WEXITSTATUS(status), name);
}

static unsigned int count_packets(void)
{
	char why[PCAP_ERRBUF_SIZE];
	pcap_t *pcap = pcap_open_offline(whole, why);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	unsigned int count = 0;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	while (pcap_next_ex(pcap, &header, &bytes) == 1)
		count++;
	pcap_close(pcap);
	return count;
}

static void clean(void)
{
	char command[160];

	snprintf(command, sizeof(command), "cd %s && rm -rf t.pcap* stderr", folder);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

/* An obstacle that comes while the run writes: all else is joined, and the sentence names the obstacle. */
void test_what_stands_at_the_name_of_a_part_stays_with_a_sentence(void)
{
	static const struct {
		const char *name;
		void (*make)(void);
		const char *sentence;
	} rows[] = {
		{"a folder", make_folder, "is a folder; remove it"},
		{"a pipe", make_pipe, "is a pipe; remove it"},
		{"a dangling link", make_dangling_link, "is a symbolic link; remove it"},
		{"a link to itself", make_link_to_itself, "is a symbolic link; remove it"},
		{"a link to the trace", make_link_to_trace, "is a symbolic link; remove it"},
		{"a socket", make_socket, "is no regular file; remove it"},
		{"a locked part", lock_part,
		 "has a lock on the file (fcntl(2)) and does not write"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat status;

		locker = 0;
		run(rows[i].name, rows[i].make, false, false);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, rows[i].sentence), rows[i].name);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, part), rows[i].name);
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, lstat(part, &status), rows[i].name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(2, count_packets(), rows[i].name);
		clean();
	}
}

/* A new run removes what can be removed, and keeps no lock that another program has given itself. */
void test_what_can_be_removed_costs_nothing(void)
{
	static const struct {
		const char *name;
		void (*make)(void);
	} rows[] = {
		{"a pipe", make_pipe},
		{"a dangling link", make_dangling_link},
		{"a link to itself", make_link_to_itself},
		{"a link to the trace", make_link_to_trace},
		{"a socket", make_socket},
		{"a read-only file", make_readable_file},
		{"a file without rights", make_unreadable_file},
		{"a part with flock()", flock_part},
		{"a part with a lock", lock_part},
		{"a trace with flock()", flock_trace},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat status;

		locker = 0;
		run(rows[i].name, rows[i].make, true, false);
		TEST_ASSERT_EQUAL_STRING_MESSAGE("", said, rows[i].name);
		TEST_ASSERT_NOT_EQUAL(0, lstat(part, &status));
		TEST_ASSERT_EQUAL_UINT_MESSAGE(2, count_packets(), rows[i].name);
		clean();
	}
}

/* The run goes to parts: the packets of an older run are gone, and nothing is lost when the lock is. */
void test_a_trace_that_another_program_locks(void)
{
	static void (*const ways[])(void) = {lock_trace, lock_trace_for_reading};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct pcapfile *file = open_capture();

		add(file, 5);
		pcapfile_close(file);
		locker = 0;
		run("a locked trace", ways[i], true, false);
		TEST_ASSERT_NOT_NULL(strstr(said, "has a lock on the file (fcntl(2)) and does not "
						  "write the trace; end that process"));
		TEST_ASSERT_EQUAL_INT_MESSAGE(0, merge_parts(whole, sentence), sentence);
		TEST_ASSERT_EQUAL_UINT(2, count_packets());
		clean();
	}
}

/* What root has left in a folder like /tmp. */
void test_parts_of_another_user_stay_with_a_sentence(void)
{
	static const struct {
		const char *name;
		void (*make)(void);
	} rows[] = {
		{"readable", make_readable_file},
		{"unreadable", make_unreadable_file},
		{"writable", make_writable_file},
		{"a folder", make_folder},
	};

	if (geteuid())
		TEST_IGNORE_MESSAGE("needs root");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stat status;

		locker = 0;
		run(rows[i].name, rows[i].make, true, true);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, part), rows[i].name);
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, "remove it"), rows[i].name);
		TEST_ASSERT_EQUAL_INT(0, lstat(part, &status));
		clean();
	}
}

/* A path of a file that has no name leads to the file: nobody can write a part of it. */
void test_a_trace_that_was_removed_is_written(void)
{
	const int fd = open(whole, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct pcapfile *file;
	char error[256] = "", path[64];
	struct stat status;

	TEST_ASSERT_EQUAL_INT(0, unlink(whole));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = pcapfile_open(path, false, NULL, error, sizeof(error));
	TEST_ASSERT_NOT_NULL_MESSAGE(file, error);
	add(file, 1);
	TEST_ASSERT_EQUAL_INT(0, pcapfile_close(file));
	TEST_ASSERT_EQUAL_INT(0, fstat(fd, &status));
	TEST_ASSERT_EQUAL_INT(24 + 16 + FRAME_BYTES, status.st_size);
	close(fd);
}
