/* SPDX-License-Identifier: MIT */
#include "src/parts/part.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING	       ".part"
#define PARTS_OF_A_PID 1000
#define OPEN_FLAGS     (O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* The byte that a writer locks: behind the data of any trace, so that a file system whose locks bind hinders no reader. */
#define LOCK_BYTE (INT64_C(1) << 62)

/* After so many attempts at a file that another process removes, replaces or unlocks each time, this process gives up.
 * There are file systems that have another inode number at each look. */
#define ATTEMPTS_MAX 100

static bool are_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns true if the path leads to the open file: nobody has removed or replaced the file. */
static bool is_at(int fd, const char *path)
{
	struct stat open, there;

	return fstat(fd, &open) == 0 && stat(path, &there) == 0 && are_same(&open, &there);
}

/* Closes a descriptor and returns an errno value. */
static int give_up(int fd, int err)
{
	close(fd);
	return err;
}

/* --- the list of parts --- */

/* Skips ".DIGITS"; returns NULL if something else stands there. */
static const char *skip_number(const char *text)
{
	const size_t digits = text[0] == '.' ? strspn(text + 1, "0123456789") : 0;

	return digits ? text + 1 + digits : NULL;
}

/* Returns true for "BASE.PID.part" and "BASE.PID.N.part", if ".part" is the ending. */
static bool is_part(const char *name, const char *base, const char *ending)
{
	const size_t length = strlen(base);
	const char *rest = strncmp(name, base, length) == 0 ? skip_number(name + length) : NULL;

	if (rest && strcmp(rest, ending) != 0)
		rest = skip_number(rest);
	return rest && strcmp(rest, ending) == 0;
}

static int add(struct parts *parts, int folder_bytes, const char *whole, const char *name)
{
	char **grown = realloc(parts->names, (parts->count + 1) * sizeof(*grown));

	if (!grown)
		return ENOMEM;
	parts->names = grown;
	if (asprintf(&grown[parts->count], "%.*s%s", folder_bytes, whole, name) < 0)
		return ENOMEM;
	parts->count++;
	return 0;
}

/* "NAME.PID" stands before "NAME.PID.2" without the ending, and behind it with the ending. */
static int compare(const void *a, const void *b, void *ending)
{
	const char *const names[] = {*(char *const *)a, *(char *const *)b};
	char without[2][PART_NAME_BYTES];

	for (unsigned int i = 0; i < 2; i++)
		snprintf(without[i], sizeof(without[i]), "%.*s",
			 (int)(strlen(names[i]) - strlen(ending)), names[i]);
	return strverscmp(without[0], without[1]);
}

static int list(const char *whole, const char *ending, struct parts *parts)
{
	const char *base = strrchr(whole, '/') + 1;
	const int folder_bytes = (int)(base - whole);
	char folder[PART_NAME_BYTES];
	struct dirent *entry;
	int err = 0;
	DIR *dir;

	*parts = (struct parts){0};
	snprintf(folder, sizeof(folder), "%.*s", folder_bytes, whole);
	dir = opendir(folder);
	if (!dir)
		return errno;
	while (!err && (entry = readdir(dir)))
		if (is_part(entry->d_name, base, ending))
			err = add(parts, folder_bytes, whole, entry->d_name);
	closedir(dir);
	if (err)
		parts_free(parts);
	else if (parts->count)
		qsort_r(parts->names, parts->count, sizeof(*parts->names), compare, (void *)ending);
	return err;
}

int parts_list(const char *whole, struct parts *parts)
{
	return list(whole, ENDING, parts);
}

int parts_list_joining(const char *whole, struct parts *parts)
{
	return list(whole, ENDING PART_JOINING, parts);
}

void parts_free(struct parts *parts)
{
	for (unsigned int i = 0; i < parts->count; i++)
		free(parts->names[i]);
	free(parts->names);
	*parts = (struct parts){0};
}

/* --- locks --- */

/* l_pid must be 0 (fcntl(2), open file description locks). */
static struct flock lock_of(short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
}

/* Returns what keeps this process from the lock: EWOULDBLOCK if somebody writes the file, EBUSY if another program has a
 * lock on it; 0: nothing. No writer of a trace locks other bytes, or for reading. */
static int find_conflict(int fd, pid_t *locker)
{
	struct flock lock = lock_of(F_WRLCK);

	if (fcntl(fd, F_OFD_GETLK, &lock) || lock.l_type == F_UNLCK)
		return 0;
	*locker = lock.l_pid;
	return lock.l_type == F_WRLCK && lock.l_start == LOCK_BYTE && lock.l_len == 1 ? EWOULDBLOCK
										      : EBUSY;
}

/* Returns 0, also on a file system without locks, or what find_conflict() returns. */
static int lock(int fd)
{
	pid_t locker;
	int err = 0;

	for (unsigned int i = 0; i < ATTEMPTS_MAX && !err; i++) {
		struct flock own = lock_of(F_WRLCK);

		if (!fcntl(fd, F_OFD_SETLK, &own) || (errno != EAGAIN && errno != EACCES))
			return 0;
		err = find_conflict(fd, &locker);
	}
	return err ? err : EWOULDBLOCK;
}

static int conflict_at(const char *name, pid_t *locker)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	int conflict;

	if (fd < 0)
		return 0;
	conflict = find_conflict(fd, locker);
	close(fd);
	return conflict;
}

bool part_is_written(const char *name)
{
	pid_t locker;

	return conflict_at(name, &locker) == EWOULDBLOCK;
}

pid_t part_locker(const char *name)
{
	pid_t locker = 0;

	return conflict_at(name, &locker) && locker > 0 ? locker : 0;
}

void part_unlock(int fd)
{
	struct flock own = lock_of(F_UNLCK);

	fcntl(fd, F_OFD_SETLK, &own);
}

int part_lock(const char *name, int flags)
{
	for (unsigned int i = 0; i < ATTEMPTS_MAX; i++) {
		int fd = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0666), err;

		if (fd < 0)
			return -1;
		err = lock(fd);
		if (!err && is_at(fd, name))
			return fd;
		close(fd);
		errno = err ? err : ESTALE;
		if (err)
			return -1;
	}
	return -1;
}

/* --- opening --- */

static bool has_writer(const struct parts *parts)
{
	for (unsigned int i = 0; i < parts->count; i++)
		if (part_is_written(parts->names[i]))
			return true;
	return false;
}

/*
 * Makes the first part behind part->number that is free, and locks it. Another process may look at the part before it is
 * locked, and takes it for a finished one: then the part may be locked, or gone.
 */
static int make_part(const char *whole, int flags, struct part *part)
{
	const int pid = getpid();
	const unsigned int last = part->number + PARTS_OF_A_PID;

	for (unsigned int i = part->number + 1; i <= last; i++) {
		char number[16] = "";

		if (i > 1)
			snprintf(number, sizeof(number), ".%u", i);
		if (snprintf(part->name, sizeof(part->name), "%s.%d%s" ENDING, whole, pid,
			     number) >= (int)sizeof(part->name))
			return ENAMETOOLONG;
		part->fd = open(part->name, flags | OPEN_FLAGS | O_EXCL, 0666);
		if (part->fd < 0 && errno != EEXIST)
			return errno;
		if (part->fd < 0)
			continue;
		if (!lock(part->fd) && is_at(part->fd, part->name)) {
			part->number = i;
			return 0;
		}
		close(part->fd);
	}
	return EEXIST;
}

static void remove_all(struct parts *parts)
{
	for (unsigned int i = 0; i < parts->count; i++)
		unlink(parts->names[i]);
	parts_free(parts);
}

/* Removes a finished part. A process that has found NAME locked meanwhile may have made the part, and locks it after
 * has_writer() has looked: such a part stays. */
static void remove_finished(const char *name)
{
	int fd = part_lock(name, O_NOFOLLOW);

	if (fd < 0 && (errno == EWOULDBLOCK || errno == ENOENT))
		return;
	unlink(name);
	if (fd >= 0)
		close(fd);
}

/* Removes what the last run has left. */
static void remove_last_run(const char *whole, struct parts *parts)
{
	char joining[PART_NAME_BYTES + sizeof(PART_JOINING)];

	for (unsigned int i = 0; i < parts->count; i++)
		remove_finished(parts->names[i]);
	parts_free(parts);
	if (parts_list_joining(whole, parts) == 0)
		remove_all(parts);
	snprintf(joining, sizeof(joining), "%s" PART_JOINING, whole);
	unlink(joining);
}

/*
 * Nobody writes NAME: begins a new run, or joins the run whose parts are still written. If another program has a lock on
 * NAME, this process empties NAME but writes a part: the lock of a part says that the run is not finished.
 */
static int begin(int fd, bool is_locked, int flags, struct part *part)
{
	struct parts parts;
	bool goes_on;
	int err = parts_list(part->whole, &parts);

	/* A folder that may not be listed has no parts that anybody could put together. */
	if (err == EACCES)
		err = 0;
	goes_on = !err && has_writer(&parts);
	if (!err && !goes_on) {
		remove_last_run(part->whole, &parts);
		err = ftruncate(fd, 0) ? errno : 0;
	}
	parts_free(&parts);
	if (!err && is_locked && !goes_on) {
		part->fd = fd;
		return 0;
	}
	if (!err)
		err = make_part(part->whole, flags, part);
	return give_up(fd, err);
}

/* The caller writes NAME already: it begins again, and others may still write their parts. */
static int begin_again(int fd, int held_fd, struct part *part)
{
	close(fd);
	part->fd = fcntl(held_fd, F_DUPFD_CLOEXEC, 0);
	if (part->fd < 0)
		return errno;
	part->shares_lock = true;
	if (ftruncate(part->fd, 0) || lseek(part->fd, 0, SEEK_SET) < 0)
		return give_up(part->fd, errno);
	return 0;
}

/* The path leads to a regular file that has no name, as /proc/self/fd/N may: there can be no parts. */
static int take_unnamed(int fd, struct part *part)
{
	part->whole[0] = '\0';
	part->fd = fd;
	return ftruncate(fd, 0) ? give_up(fd, errno) : 0;
}

/* Takes an open file. EAGAIN: NAME was removed or replaced meanwhile. */
static int take(int fd, int flags, int held_fd, struct part *part)
{
	struct stat status, held;
	int err;

	if (fstat(fd, &status))
		return give_up(fd, errno);
	if (!S_ISREG(status.st_mode)) {
		part->fd = fd;
		return 0;
	}
	if (!realpath(part->name, part->whole)) {
		if (errno != ENOENT)
			return give_up(fd, errno);
		return is_at(fd, part->name) ? take_unnamed(fd, part) : give_up(fd, EAGAIN);
	}
	if (held_fd >= 0 && fstat(held_fd, &held) == 0 && are_same(&status, &held))
		return begin_again(fd, held_fd, part);
	err = lock(fd);
	if (err == EWOULDBLOCK)
		return give_up(fd, make_part(part->whole, flags, part));
	if (!is_at(fd, part->whole))
		return give_up(fd, EAGAIN);
	return begin(fd, !err, flags, part);
}

int part_open_beside(const char *whole, int flags, struct part *part)
{
	*part = (struct part){.fd = -1};
	snprintf(part->whole, sizeof(part->whole), "%s", whole);
	return make_part(part->whole, flags, part);
}

int part_open_next(const struct part *last, int flags, struct part *part)
{
	*part = (struct part){.fd = -1, .number = last->number};
	strcpy(part->whole, last->whole);
	return make_part(part->whole, flags, part);
}

int part_open(const char *path, int flags, int held_fd, struct part *part)
{
	int err = EAGAIN;

	for (unsigned int i = 0; i < ATTEMPTS_MAX && err == EAGAIN; i++) {
		int fd = open(path, flags | OPEN_FLAGS, 0666);

		*part = (struct part){.fd = -1};
		snprintf(part->name, sizeof(part->name), "%s", path);
		err = fd < 0 ? errno : take(fd, flags, held_fd, part);
	}
	return err == EAGAIN ? ESTALE : err;
}
