/* SPDX-License-Identifier: MIT */
#include "src/log/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A piece is as long as the file before it, within these bounds. */
#define PIECE_BYTES_MIN (256u << 10)
#define PIECE_BYTES_MAX (1u << 20)

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

static size_t piece_bytes_at(uint64_t start)
{
	if (start <= PIECE_BYTES_MIN)
		return PIECE_BYTES_MIN;
	return start < PIECE_BYTES_MAX ? (size_t)start : PIECE_BYTES_MAX;
}

static bool is_full(int err)
{
	return err == ENOSPC || err == EFBIG || err == EDQUOT;
}

/*
 * Allocates a piece that begins at start and ends after `behind`: a shorter one than usual if the
 * disk has no more. Returns 0 and sets *size_bytes, or an errno value.
 */
static int allocate_piece(int fd, uint64_t start, uint64_t behind, size_t *size_bytes)
{
	size_t more = (size_t)(start + piece_bytes_at(start) - behind);
	int err;

	do {
		*size_bytes = (size_t)(behind + more - start);
		err = allocate(fd, start, *size_bytes);
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
	int err =
		allocate_piece(file->fd, start, file->piece_start + file->piece_bytes, &size_bytes);

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
	return err;
}

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
}

int log_file_close(struct log_file *file)
{
	const uint64_t length = file->piece_start + file->used_bytes;
	int err = 0, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	munmap(file->piece, file->piece_bytes);
	if (ftruncate(file->fd, (off_t)length))
		err = errno;
	/* A process that another thread has just forked has a copy of the descriptor until it closes it. */
	flock(file->fd, LOCK_UN);
	if (close(file->fd) && !err)
		err = errno;
	pthread_setcancelstate(state, NULL);
	return err;
}

void log_file_abandon(struct log_file *file)
{
	munmap(file->piece, file->piece_bytes);
	close(file->fd);
}
