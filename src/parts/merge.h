/* SPDX-License-Identifier: MIT */
/*
 * Joins captures (pcap) in time order: the parts of a trace, or any captures of one link layer.
 *
 * Packets of the same nanosecond come in the order of the files. The last record of a process that was killed
 * may be cut short; it is left out.
 */
#ifndef SRC_PARTS_MERGE_H
#define SRC_PARTS_MERGE_H

#include <stddef.h>
#include <stdio.h>

#define MERGE_SENTENCE_BYTES 8448

struct merge_files {
	const char *const *names;
	unsigned int count;
};

/*
 * Writes the packets of all files to a stream, with times in nanoseconds. Holds one packet of each file in
 * memory. Files without a header are left out; if no file has one, nothing is written.
 *
 * Returns 0, or an errno value with a sentence.
 */
int merge_write(FILE *out, const struct merge_files *files, char sentence[MERGE_SENTENCE_BYTES]);

/* Writes as merge_write() to the file `path`, which may be one of `files`: it is replaced when all packets are
 * written. A pipe or a device is written directly. */
int merge_to(const char *path, const struct merge_files *files,
	     char sentence[MERGE_SENTENCE_BYTES]);

/*
 * Joins the finished parts of the file at an absolute path into the file, and removes the parts.
 *
 * Returns 0, also if no part is finished; EWOULDBLOCK if a process writes the file, or an errno value, each
 * with a sentence. A part that nobody writes and that cannot be locked or removed is an error; the others are joined.
 */
int merge_parts(const char *whole, char sentence[MERGE_SENTENCE_BYTES]);

/*
 * Call this after closing a part of the file at an absolute path, or the file. The last caller to do so joins the
 * parts, as merge_parts() does.
 *
 * Returns 0, also if other processes still write their parts, or an errno value with a sentence.
 */
int merge_at_end(const char *whole, char sentence[MERGE_SENTENCE_BYTES]);

#endif /* SRC_PARTS_MERGE_H */
