/* SPDX-License-Identifier: MIT */
#include "src/explain/sink.h"

#include "src/base/count.h"
#include "src/base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BOLD	      "\033[1m"
#define PLAIN	      "\033[0m"
#define DESCRIPTOR    200  /* the lowest number for the copy: programs expect low ones free */
#define PATIENCE_MS   1000 /* for a reader that is slow, if standard error does not block */
#define MODE_OF_FILES 0666 /* less the umask */

/* --- standard error: a copy, and what it is a copy of --- */

static int errors = -1;
static struct stat errors_are;

static void keep_errors(void)
{
	if (errors >= 0)
		return;
	errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, DESCRIPTOR);
	if (errors < 0) /* there may be no such numbers: ulimit -n */
		errors = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (errors >= 0)
		fstat(errors, &errors_are);
}

/* Returns true unless the program has closed the copy, whose number may now be another file's. */
static bool errors_are_ours(void)
{
	struct stat now;

	return errors >= 0 && !fstat(errors, &now) && now.st_dev == errors_are.st_dev &&
	       now.st_ino == errors_are.st_ino;
}

bool sink_init(struct sink *sink, const char *value)
{
	static const char *const names[] = {"1", "-", "stderr"};
	char *folder;

	*sink = (struct sink){0};
	if (!value || !*value || !strcmp(value, "0"))
		return false;
	keep_errors();
	for (size_t i = 0; i < COUNT(names); i++)
		if (!strcmp(value, names[i])) {
			sink->coloured = errors >= 0 && isatty(errors) && !getenv("NO_COLOR");
			return true;
		}
	/* The program may change its working directory. */
	folder = *value == '/' ? NULL : getcwd(NULL, 0);
	snprintf(sink->path, sizeof(sink->path), "%s%s%s", folder ? folder : "", folder ? "/" : "",
		 value);
	free(folder);
	return true;
}

/* --- writing --- */

static void write_all(int fd, const char *line, size_t length_bytes)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};
	ssize_t written;

	while (length_bytes) {
		written = write(fd, line, length_bytes);
		if (written > 0) {
			line += written;
			length_bytes -= (size_t)written;
		} else if (errno != EINTR &&
			   (errno != EAGAIN || poll(&room, 1, PATIENCE_MS) <= 0)) {
			return;
		}
	}
}

/* Writes without a signal: a program must not die of a reader that has gone. */
static void write_quietly(int fd, const char *line, size_t length_bytes)
{
	const struct timespec now = {0};
	sigset_t pipe, before, pending;
	int cancelling;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&pending);
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	write_all(fd, line, length_bytes);
	if (!sigismember(&pending, SIGPIPE))
		sigtimedwait(&pipe, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancelling, NULL);
}

static void write_errors(const char *line, size_t length_bytes)
{
	if (errors_are_ours())
		write_quietly(errors, line, length_bytes);
}

/* Says once why the lines go to standard error. */
static void complain(const char *path, int err)
{
	static atomic_flag told = ATOMIC_FLAG_INIT;
	char line[PATH_MAX + 128];
	int length;

	if (atomic_flag_test_and_set(&told))
		return;
	length = snprintf(line, sizeof(line),
			  "verbena: cannot write to %s: %s; its lines go to standard error\n", path,
			  strerrordesc_np(err));
	write_errors(line, (size_t)length);
}

/* The file is open only while a line is written: the program may close descriptors, or fork(). */
static bool write_file(const char *pattern, const char *line, size_t length_bytes)
{
	char path[PATH_MAX + 32];
	int fd;

	path_expand(pattern, path, sizeof(path));
	/* O_NONBLOCK: opening a pipe that nobody reads fails, and does not hang. */
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
		  MODE_OF_FILES);
	if (fd < 0) {
		complain(path, errno);
		return false;
	}
	write_quietly(fd, line, length_bytes);
	close(fd);
	return true;
}

void sink_write(const struct sink *sink, const char *place, const char *sentence)
{
	const int err = errno;
	const char *on = sink->coloured ? BOLD : "", *off = sink->coloured ? PLAIN : "";
	char line[SINK_LINE_BYTES];
	int length = snprintf(line, sizeof(line) - 1, "%sverbena:%s%s%s%s %s", on,
			      *place ? " " : "", place, *place ? ":" : "", off, sentence);

	if (length > (int)sizeof(line) - 2)
		length = (int)sizeof(line) - 2;
	line[length++] = '\n';
	if (!sink->path[0] || !write_file(sink->path, line, (size_t)length))
		write_errors(line, (size_t)length);
	errno = err;
}
