/* SPDX-License-Identifier: MIT */
/* rule_order.c, for other rules. */
#ifndef SRC_CHECK_ORDER_H
#define SRC_CHECK_ORDER_H

#include "src/check/poison.h"

/* Reports an access of bytes that AddressSanitizer watches for the rule. Returns false if these are no such
 * bytes. The caller holds the sanitizer's lock. */
bool order_touched(const struct poison_access *access);

/* Holds no byte of this memory any more. */
void order_forget(const void *memory, size_t length_bytes);

#endif /* SRC_CHECK_ORDER_H */
