/* SPDX-License-Identifier: MIT */
/*
 * Where the log's events come from: the layer of the verbs sees calls and completions, and the
 * backends tell the events of their devices.
 */
#ifndef SRC_LOG_SOURCE_H
#define SRC_LOG_SOURCE_H

/*
 * Gives all events to log_write() from now on. No thread may be inside a verb. Returns 0, or the
 * errno value of layer_add() or layer_watch().
 */
int source_start(void);

/* Ends that. No thread may be inside a verb. */
void source_stop(void);

#endif /* SRC_LOG_SOURCE_H */
