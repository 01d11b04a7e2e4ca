/* SPDX-License-Identifier: MIT */
/*
 * A file of lines that survives the death of its process: the file is mapped piece by piece
 * (MAP_SHARED), so that what was written is with the kernel at once, without a system call for each
 * line. The pieces are allocated on the disk before they are mapped: a full disk is an error of
 * file_room(), and never a signal.
 *
 * The newline of a line is written last. So a process that is killed leaves whole lines, then
 * perhaps a cut line without newline, then bytes of value 0 up to the end of the piece.
 *
 * Calls for one file must not overlap.
 */
#ifndef SRC_LOG_FILE_H
#define SRC_LOG_FILE_H

#include <stddef.h>
#include <stdint.h>

struct log_file {
	int fd;
	char *piece;	      /* the mapped bytes */
	size_t piece_bytes;   /* a multiple of the page size */
	uint64_t piece_start; /* its offset in the file, a multiple of the page size */
	size_t used_bytes;    /* of the piece: whole lines */
	int err;	      /* why the file does not grow any more; 0: it grows */
};

/*
 * Creates the file or empties it. Returns 0, or an errno value: EBUSY (another process writes
 * to the file by these functions), ENODEV (no regular file, or one that cannot be mapped), ENOMEM,
 * or an error of open(2) or posix_fallocate(3).
 */
int log_file_open(struct log_file *file, const char *path);

/*
 * Returns where the next line goes, and sets *end. There is room for at least size_bytes and a
 * newline, unless file->err is set: then there is room for what is left, which may be nothing.
 */
char *log_file_room(struct log_file *file, size_t size_bytes, char **end);

/* Ends the line that was written to log_file_room() and ends before @at: adds the newline. */
void log_file_commit(struct log_file *file, char *at);

/* Cuts the file behind its last line and closes it. Returns 0, or the errno value. */
int log_file_close(struct log_file *file);

/* In the child of fork(): lets go of the parent's file, and leaves the file as it is. */
void log_file_abandon(struct log_file *file);

#endif /* SRC_LOG_FILE_H */
