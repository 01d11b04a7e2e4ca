/* SPDX-License-Identifier: MIT */
/* Finds memory that several works in flight use. */
#ifndef SRC_CHECK_SHARE_H
#define SRC_CHECK_SHARE_H

#include "src/check/check.h"

/* Returns true if another work has a buffer in this memory of a work, and adapters write to one of the two. */
bool share_found(const struct work *work, const void *memory, size_t length_bytes);

#endif /* SRC_CHECK_SHARE_H */
