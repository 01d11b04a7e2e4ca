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

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct log_file {
	char path[PATH_MAX]; /* absolute; "": not known */
	/* A segment is full with so many bytes, or so many lines; 0: there is no limit. */
	uint64_t bytes_max, lines_max;
	uint64_t lines; /* of the segment, but for its head */
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
 * Limits a file that was just opened to its last lines: of at most bytes_max bytes, or lines_max of them. The lines are
 * written in segments, of which the last two are kept (src/parts/tail.h): log_file_close() joins them.
 */
void log_file_limit(struct log_file *file, uint64_t bytes_max, uint64_t lines_max);

/* Returns true if the next line belongs into a new segment. */
static inline bool log_file_is_full(const struct log_file *file)
{
	return (file->bytes_max && file->piece_start + file->used_bytes >= file->bytes_max) ||
	       (file->lines_max && file->lines >= file->lines_max);
}

/*
 * Begins a new segment, which is empty. The caller writes its head, and calls log_file_turned() then. *last is the
 * segment before. If no second file can be made, the only one is emptied.
 */
void log_file_turn(struct log_file *file, struct log_file *last);

/* Gives the new segment the name of the file: a process that is killed leaves no file without a head. Returns false if
 * that is not possible: then the file is empty, and the caller writes the head again. */
bool log_file_turned(struct log_file *file, struct log_file *last);

/*
 * Returns where the next line goes, and sets *end. There is room for at least size_bytes and a
 * newline, unless file->err is set: then there is room for what is left, which may be nothing.
 */
char *log_file_room(struct log_file *file, size_t size_bytes, char **end);

/* Ends the line that was written to log_file_room() and ends before @at: adds the newline. */
void log_file_commit(struct log_file *file, char *at);

/*
 * Cuts the file behind its last line and closes it. Joins the segments, if there are two: *join_err is then 0 or the
 * errno value for which they are not joined. Sets *left_out to the number of lines that are missing at the beginning.
 *
 * Returns 0, or the errno value for which lines may be missing at the end.
 */
int log_file_close(struct log_file *file, uint64_t *left_out, int *join_err);

/* In the child of fork(): lets go of the parent's file, and leaves the file as it is. */
void log_file_abandon(struct log_file *file);

#endif /* SRC_LOG_FILE_H */
