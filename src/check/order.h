/* SPDX-License-Identifier: MIT */
/* The part of rule_order.c that other rules call. */
#ifndef SRC_CHECK_ORDER_H
#define SRC_CHECK_ORDER_H

#include "src/check/poison.h"

/* Reports an access to bytes that AddressSanitizer watches for the rule. Returns false if the bytes are not
 * watched for it. The caller holds the sanitizer's lock. */
bool order_touched(const struct poison_access *access);

/* Stops holding back bytes of this memory. */
void order_forget(const void *memory, size_t length_bytes);

#endif /* SRC_CHECK_ORDER_H */
