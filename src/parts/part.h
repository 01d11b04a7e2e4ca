/* SPDX-License-Identifier: MIT */
/*
 * A file that several processes name, such as the trace of a world. The first process writes the file
 * NAME itself. A process that begins while another one writes NAME gets a part: a file NAME.PID.part
 * beside it. A reader puts NAME and its parts together.
 *
 * The process that writes a file holds an exclusive lock on a byte behind its data (fcntl(2), open file description
 * locks). The kernel releases the lock when the process ends, however it ends: a part without a lock is finished. A
 * process that finds NAME and all parts finished begins a new run: it empties NAME and removes the parts.
 *
 * Locks of other programs keep nobody from writing: flock(2) does not concern these locks. If a program locks all bytes
 * of NAME by fcntl(2), a run goes to a part, and the part is joined when that lock is gone.
 *
 * The lock belongs to the descriptor, so two writers of one process are like two processes. A child
 * of fork() closes its copy of the descriptor, and changes nothing by that.
 *
 * On a file system without locks, each writer writes NAME, as if it were alone.
 */
#ifndef SRC_PARTS_PART_H
#define SRC_PARTS_PART_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define PART_NAME_BYTES (PATH_MAX + 64)

/* A file that is open for writing. */
struct part {
	int fd;		     /* empty, locked, O_CLOEXEC */
	bool shares_lock;    /* the lock is held_fd's, too: see part_open() */
	unsigned int number; /* of the part among those of its process; 0: the file is NAME */
	/* The path of NAME, absolute; "": NAME is no regular file, or has no name. */
	char whole[PART_NAME_BYTES];
	char name[PART_NAME_BYTES]; /* the path of the file that fd writes */
};

/*
 * Opens NAME or a part of it, with O_CREAT and the given flags of open(2). O_NONBLOCK is added, so that a
 * pipe that nobody reads is an error.
 *
 * held_fd is a descriptor of the same caller, which writes NAME or another file up to now; -1: none. If it
 * has NAME, NAME is emptied, and the new descriptor has the lock too. The caller writes to held_fd no more.
 *
 * Returns 0, or an errno value; part->name is then the path that failed.
 */
int part_open(const char *path, int flags, int held_fd, struct part *part);

/* Opens a new part of the file at an absolute path, whether or not somebody writes the file. */
int part_open_beside(const char *whole, int flags, struct part *part);

/* Opens a new part of the same file, whose number is higher than that of a part that the process has opened. */
int part_open_next(const struct part *last, int flags, struct part *part);

/* The parts of a file, by the number of the process, then by the number of the part. */
struct parts {
	char **names;
	unsigned int count;
};

/* Lists the parts of the file at an absolute path. Returns 0 or an errno value. parts_free() frees the list. */
int parts_list(const char *whole, struct parts *parts);

/* Lists the parts that are being joined, or whose joining was interrupted: their names end with
 * PART_JOINING. */
int parts_list_joining(const char *whole, struct parts *parts);
#define PART_JOINING ".joining"
void parts_free(struct parts *parts);

/*
 * Gives the lock back before the descriptor is closed. To close it is not enough: a process that another thread has
 * just forked, or that is about to execute a program, has a copy of the descriptor until it closes it.
 */
void part_unlock(int fd);

/* Returns true if somebody writes the file. Takes no lock. */
bool part_is_written(const char *name);

/* Returns the process that has a lock on the file; 0: none, or the kernel does not say which process it is. */
pid_t part_locker(const char *name);

/*
 * Opens a file for reading and writing and takes its lock. Returns the descriptor; -1 with EWOULDBLOCK if
 * somebody writes the file, EBUSY if another program has a lock on it, ESTALE if the name leads to another file at
 * each look, or another errno value.
 */
int part_lock(const char *name, int flags);

#endif /* SRC_PARTS_PART_H */
