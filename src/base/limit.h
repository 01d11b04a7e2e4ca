/* SPDX-License-Identifier: MIT */
/* How much a log or a trace keeps, as people write it. */
#ifndef SRC_BASE_LIMIT_H
#define SRC_BASE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* At most one of the two is not 0. */
struct vb_limit {
	uint64_t bytes_max;
	uint64_t count_max; /* of events or packets */
};

/* What vb_limit_read() takes, for messages. */
#define VB_LIMIT_ALLOWED \
	"a number of events or packets from 100 on, a size from 1M on, or 0 for no limit"

/* Reads a number of events or packets, such as "10000", or a size, such as "100M": K, M and G are powers of 1024.
 * Returns false if the text is neither. */
bool vb_limit_read(const char *text, struct vb_limit *limit);

#endif /* SRC_BASE_LIMIT_H */
