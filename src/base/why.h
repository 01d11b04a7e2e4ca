/* SPDX-License-Identifier: MIT */
/* Parts of the sentences of <verbena/why.h>. */
#ifndef SRC_BASE_WHY_H
#define SRC_BASE_WHY_H

#include <verbena/why.h>

/* Writes the cause without the verb and the remedy; "" for VB_WHY_NONE. Returns text. */
const char *why_cause(const struct vb_why *why, char *text, size_t size_bytes);

/* Writes the remedy, in the same way. */
const char *why_remedy(const struct vb_why *why, char *text, size_t size_bytes);

/* Writes the cause of a row with "?" for each value; "" if no row has the number. Returns text. */
const char *why_row(enum vb_reason reason, char *text, size_t size_bytes);

#endif /* SRC_BASE_WHY_H */
