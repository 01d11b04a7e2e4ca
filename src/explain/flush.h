/* SPDX-License-Identifier: MIT */
/*
 * Flushed work requests: the first one of a queue is explained, the others are counted until the
 * stream of flushes ends.
 */
#ifndef SRC_EXPLAIN_FLUSH_H
#define SRC_EXPLAIN_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

struct ibv_context;

enum flush_queue {
	FLUSH_SENDS,
	FLUSH_RECEIVES,
	FLUSH_EITHER, /* the backend does not know which of the two */
};

#define FLUSH_ALL_QPS UINT32_MAX

/* Counts a flushed work request of a queue. Returns true if it is the first of its stream. */
bool flush_count(const struct ibv_context *context, uint32_t qpn, enum flush_queue queue);

/*
 * Ends the streams of a QP, or of FLUSH_ALL_QPS of a context, or with @context NULL all streams:
 * calls @print with a sentence such as "sim0: QP 0x11: 14 more receives were flushed" for each that
 * had more than one flush. Reads nothing through @context.
 */
void flush_end(const struct ibv_context *context, uint32_t qpn,
	       void (*print)(const char *sentence));

/* Hold the lock of the streams, for fork(2). */
void flush_lock(void);
void flush_unlock(void);

#endif /* SRC_EXPLAIN_FLUSH_H */
