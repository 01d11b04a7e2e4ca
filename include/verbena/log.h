/* SPDX-License-Identifier: MIT */
/*
 * The event log: one file with everything that happens. docs/event-log.md describes the format;
 * `verbena trace` reads it.
 */
#ifndef VERBENA_LOG_H
#define VERBENA_LOG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the log's format. A reader refuses a log of a higher version. */
#define VB_LOG_SCHEMA 1

/*
 * Writes every event from now on to the file at @path, which is replaced: the verbs and completions
 * of all backends, and of simulated devices the packets, drops, states, asynchronous events, timers,
 * faults and failures. "%p" in @path is the number of the process. A log that is open is closed
 * first. No other thread may be inside a verb.
 *
 * A process that is killed leaves all lines that came before; the last line may be cut, and bytes
 * of value 0 may follow it. A child of fork() writes nothing into its parent's log: with "%p" in
 * @path, the child's first event opens a log of the child's own; without, the child's events are
 * not logged. If the file cannot be written any more, one line on stderr says so, and the program
 * continues. At the end of the process the log is closed.
 *
 * Returns 0, or an errno with a sentence for vb_last_error(): EBUSY (another process writes its log
 * into the file), ENODEV (@path is no regular file, or its file system cannot map files), ENOMEM,
 * or an error of open(2) or posix_fallocate(3).
 */
int vb_log_open(const char *path);

/*
 * Limits the logs that are opened from now on: a log keeps its last events, of at most @bytes_max bytes and at least
 * half as many, or @events_max of them. 0: no limit. An event "left_out" at the log's begin counts those that are
 * missing, and the end of the log prints a line on stderr. @bytes_max is at least 1 MiB.
 *
 * A log is written in segments, of which the last two are kept, the older one as PATH.older.part; the end of the log joins
 * them. While it is written, both have up to twice @events_max. A process that is killed, and one that ends by
 * _exit() or abort(), leaves both; `verbena trace` reads them as one log.
 */
void vb_log_limit(uint64_t bytes_max, uint64_t events_max);

/* Ends the log; 0 if none is open. Returns EIO with a sentence if events could not be written. */
int vb_log_close(void);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_LOG_H */
