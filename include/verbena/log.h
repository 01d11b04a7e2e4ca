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

/*
 * Writes every event from now on to the file at @path, which is replaced: the verbs and completions
 * of all backends, and of simulated devices the packets, drops, states, asynchronous events, timers,
 * faults and failures. "%p" in @path is the number of the process. A log that is open is closed
 * first. A process that is killed leaves all events that came before. Returns 0, or an errno with a
 * sentence for vb_last_error(). No other thread may be inside a verb.
 */
int vb_log_open(const char *path);

/* Ends the log; 0 if none is open. Returns EIO with a sentence if events could not be written. */
int vb_log_close(void);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_LOG_H */
