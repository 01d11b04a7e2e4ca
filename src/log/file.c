/* SPDX-License-Identifier: MIT */
#include "src/log/file.h"

#include "src/parts/tail.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A piece is as long as the file before it, within these bounds. */
#define PIECE_BYTES_MIN (256u << 10)
#define PIECE_BYTES_MAX (1u << 20)

/* The last piece of a segment has room for one more line. */
#define SPARE_BYTES (72u << 10)

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/*
 * Allocates the bytes on the disk. At the limit of RLIMIT_FSIZE the kernel sends SIGXFSZ, whose
 * default ends the program: this thread takes the signal back. Without signals, since one makes the kernel take back
 * what it has allocated: with a timer that is quicker than the allocation, no attempt would succeed.
 */
static int allocate(int fd, uint64_t start, size_t size_bytes)
{
	const struct timespec at_once = {0};
	sigset_t all, over, before, pending;
	int err;

	sigemptyset(&over);
	sigaddset(&over, SIGXFSZ);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	sigpending(&pending);
	err = posix_fallocate(fd, (off_t)start, (off_t)size_bytes);
	if (err == EFBIG && !sigismember(&pending, SIGXFSZ))
		sigtimedwait(&over, NULL, &at_once);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static size_t piece_bytes_at(const struct log_file *file, uint64_t start)
{
	const uint64_t end = file->bytes_max + SPARE_BYTES;
	size_t bytes = PIECE_BYTES_MAX;

	if (start <= PIECE_BYTES_MIN)
		bytes = PIECE_BYTES_MIN;
	else if (start < PIECE_BYTES_MAX)
		bytes = (size_t)start;
	if (!file->bytes_max || start + bytes <= end)
		return bytes;
	bytes = start + SPARE_BYTES < end ? (size_t)(end - start) : SPARE_BYTES;
	return bytes - bytes % page_bytes();
}

static bool is_full(int err)
{
	return err == ENOSPC || err == EFBIG || err == EDQUOT;
}

/*
 * Allocates a piece that begins at start and ends after `behind`: a shorter one than usual if the
 * disk has no more. Returns 0 and sets *size_bytes, or an errno value.
 */
static int allocate_piece(const struct log_file *file, uint64_t start, uint64_t behind,
			  size_t *size_bytes)
{
	size_t more = (size_t)(start + piece_bytes_at(file, start) - behind);
	int err;

	do {
		*size_bytes = (size_t)(behind + more - start);
		err = allocate(file->fd, start, *size_bytes);
		more /= 2;
		more -= more % page_bytes();
	} while (is_full(err) && more);
	return err;
}

/* Maps a new piece that begins with the page in which the last line ends. */
static int map_piece(struct log_file *file)
{
	const uint64_t length = file->piece_start + file->used_bytes;
	const uint64_t start = length - length % page_bytes();
	size_t size_bytes;
	void *piece;
	int err = allocate_piece(file, start, file->piece_start + file->piece_bytes, &size_bytes);

	if (err)
		return err;
	piece = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, (off_t)start);
	if (piece == MAP_FAILED)
		return errno;
	/* All page faults at once are quicker. Before Linux 5.14, each page faults by itself. */
	madvise(piece, size_bytes, MADV_POPULATE_WRITE);
	if (file->piece)
		munmap(file->piece, file->piece_bytes);
	file->piece = piece;
	file->piece_bytes = size_bytes;
	file->piece_start = start;
	file->used_bytes = (size_t)(length - start);
	return 0;
}

/*
 * Makes the file this process's own and empties it. To empty a file that another process has mapped
 * would end that process with SIGBUS, so each writer holds a lock.
 */
static int take(int fd)
{
	struct stat status;

	if (fstat(fd, &status))
		return errno;
	if (!S_ISREG(status.st_mode))
		return ENODEV;
	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return EBUSY;
	return ftruncate(fd, 0) ? errno : 0;
}

/* Unmaps the file and cuts it behind its last line. Returns 0 or an errno value. */
static int cut(struct log_file *file)
{
	const uint64_t length = file->piece_start + file->used_bytes;

	if (file->piece)
		munmap(file->piece, file->piece_bytes);
	return ftruncate(file->fd, (off_t)length) ? errno : 0;
}

/* Gives the lock back before it closes the file: a process that another thread has just forked has a copy of the
 * descriptor until it closes it. Returns what close(2) does. */
static int let_go(int fd)
{
	flock(fd, LOCK_UN);
	return close(fd);
}

/* The files beside a log that was killed are not of this one. */
static void forget_older(struct log_file *file, const char *path)
{
	char name[PATH_MAX + sizeof(TAIL_OLDER)];

	if (!realpath(path, file->path)) {
		file->path[0] = '\0';
		return;
	}
	snprintf(name, sizeof(name), "%s" TAIL_OLDER, file->path);
	unlink(name);
	snprintf(name, sizeof(name), "%s" TAIL_NEW, file->path);
	unlink(name);
}

int log_file_open(struct log_file *file, const char *path)
{
	/* O_NONBLOCK: opening a pipe that nobody reads fails, and does not hang. */
	const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int err;

	*file = (struct log_file){.fd = open(path, flags, 0666)};
	if (file->fd < 0)
		return errno;
	err = take(file->fd);
	if (!err)
		err = map_piece(file);
	if (err)
		close(file->fd);
	else
		forget_older(file, path);
	return err;
}

/* --- segments --- */

/* A segment has half of the bytes, so that two of them keep to the limit. The segments of a number of lines are as long as
 * the limit, and the join leaves out what is too much. */
void log_file_limit(struct log_file *file, uint64_t bytes_max, uint64_t lines_max)
{
	file->bytes_max = bytes_max ? bytes_max / 2 - SPARE_BYTES : 0;
	file->lines_max = lines_max;
}

/* The older segment gets its name before NAME leads to the new one, so that NAME is always there. */
static int rename_segments(const char *new_name, const char *path)
{
	char older[PATH_MAX + sizeof(TAIL_OLDER)];

	snprintf(older, sizeof(older), "%s" TAIL_OLDER, path);
	unlink(older);
	/* Some file systems have no link(2). */
	if (link(path, older) && rename(path, older))
		return errno;
	if (!rename(new_name, path))
		return 0;
	rename(older, path);
	return errno;
}

static void copy_rights(int from, int to)
{
	struct stat status;

	if (fstat(from, &status))
		return;
	(void)!fchown(to, status.st_uid, status.st_gid);
	(void)!fchmod(to, status.st_mode & 07777);
}

static void forget_piece(struct log_file *file)
{
	if (file->piece)
		munmap(file->piece, file->piece_bytes);
	file->piece = NULL;
	file->piece_bytes = file->used_bytes = file->piece_start = 0;
}

/* Makes the file of a new segment. Returns false if that is not possible. */
static bool make_segment(const struct log_file *file, struct log_file *next)
{
	char name[PATH_MAX + sizeof(TAIL_NEW)];

	*next = *file;
	next->piece = NULL;
	forget_piece(next);
	snprintf(name, sizeof(name), "%s" TAIL_NEW, file->path);
	if (!file->path[0] || (unlink(name) && errno != ENOENT))
		return false;
	next->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (next->fd < 0)
		return false;
	copy_rights(file->fd, next->fd);
	if (!take(next->fd) && !map_piece(next))
		return true;
	close(next->fd);
	unlink(name);
	return false;
}

/* Empties the file. */
static void begin_again(struct log_file *file)
{
	forget_piece(file);
	file->err = ftruncate(file->fd, 0) ? errno : map_piece(file);
	file->lines = 0;
}

void log_file_turn(struct log_file *file, struct log_file *last)
{
	struct log_file next;
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	last->fd = -1;
	if (make_segment(file, &next)) {
		*last = *file;
		*file = next;
		file->lines = 0;
	} else {
		begin_again(file);
	}
	pthread_setcancelstate(state, NULL);
}

bool log_file_turned(struct log_file *file, struct log_file *last)
{
	char name[PATH_MAX + sizeof(TAIL_NEW)];
	bool turned = true;
	int state;

	if (last->fd < 0)
		return true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	snprintf(name, sizeof(name), "%s" TAIL_NEW, file->path);
	cut(last);
	turned = !rename_segments(name, file->path);
	if (turned) {
		let_go(last->fd);
	} else {
		forget_piece(file);
		close(file->fd);
		unlink(name);
		*file = *last;
		file->piece = NULL;
		begin_again(file);
	}
	pthread_setcancelstate(state, NULL);
	return turned;
}

/* --- lines --- */

static void grow(struct log_file *file)
{
	int state;

	/* posix_fallocate(3) may be a cancellation point, and the caller holds a lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	file->err = map_piece(file);
	pthread_setcancelstate(state, NULL);
}

char *log_file_room(struct log_file *file, size_t size_bytes, char **end)
{
	if (file->piece_bytes - file->used_bytes <= size_bytes && !file->err)
		grow(file);
	/* The last byte is for the newline. */
	*end = file->piece + file->piece_bytes - 1;
	if (file->used_bytes == file->piece_bytes)
		*end = file->piece + file->used_bytes;
	return file->piece + file->used_bytes;
}

void log_file_commit(struct log_file *file, char *at)
{
	/* A signal that kills this thread finds the line complete if its newline is there. */
	atomic_signal_fence(memory_order_release);
	*at = '\n';
	file->used_bytes = (size_t)(at + 1 - file->piece);
	file->lines++;
}

int log_file_close(struct log_file *file, uint64_t *left_out, int *join_err)
{
	int err, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = cut(file);
	*left_out = 0;
	*join_err = file->path[0] && (file->bytes_max || file->lines_max)
			    ? tail_join_log(file->path, file->lines_max, left_out)
			    : 0;
	if (let_go(file->fd) && !err)
		err = errno;
	pthread_setcancelstate(state, NULL);
	return err;
}

void log_file_abandon(struct log_file *file)
{
	munmap(file->piece, file->piece_bytes);
	close(file->fd);
}
