/* SPDX-License-Identifier: MIT */
/*
 * The event log: one file with everything that happens. docs/event-log.md describes the format;
 * `verbena trace` reads it.
 */
#ifndef VERBENA_LOG_H
#define VERBENA_LOG_H

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

/* Ends the log; 0 if none is open. Returns EIO with a sentence if events could not be written. */
int vb_log_close(void);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_LOG_H */
