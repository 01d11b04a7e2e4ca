/* SPDX-License-Identifier: MIT */
/*
 * Files of which only the last part is kept. Their writer writes segments, and drops all but the last two: so a
 * process that is killed leaves at least the last segment, and no more than two.
 *
 * The segments of a trace are parts (part.h), which merge.h joins. The segments of a log are NAME, to which the
 * writer adds lines, and NAME.older.part. Both begin with the head of the log, and then, unless the segment is the log's
 * first, with a line that counts the events before it:
 *
 *	{"n":5000,"kind":"left_out","events":5000}
 */
#ifndef SRC_PARTS_TAIL_H
#define SRC_PARTS_TAIL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define TAIL_OLDER ".older.part"
#define TAIL_NEW   ".new.part" /* a segment before it gets the name of the log */

/*
 * Removes all packets of a capture (pcap, in the order of bytes of this machine) but the last `count`. The new file
 * replaces the old one by rename(2).
 *
 * Returns 0, or an errno value: then the file is as it was. Sets *left_out to the number of removed packets.
 */
int tail_capture(const char *path, uint64_t count, uint64_t *left_out);

/*
 * Opens a log for reading. If it has two segments, this is a temporary file with the events of both. Returns NULL
 * with errno.
 */
FILE *tail_open_log(const char *path);

/*
 * Joins the segments of a log into NAME, which nobody writes any more, or only the caller. Keeps the last `count`
 * events; 0: all.
 *
 * Returns 0, or an errno value: then the files are as they were. Sets *left_out to the number of events that are
 * missing before the first one.
 */
int tail_join_log(const char *path, uint64_t count, uint64_t *left_out);

#endif /* SRC_PARTS_TAIL_H */
