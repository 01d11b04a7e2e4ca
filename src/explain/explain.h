/* SPDX-License-Identifier: MIT */
/*
 * Explains each verb and each completion that fails, and each packet that a device drops, in a line
 * for the person who runs the program. See verbena-run(1), --explain.
 */
#ifndef SRC_EXPLAIN_EXPLAIN_H
#define SRC_EXPLAIN_EXPLAIN_H

#include "src/explain/sink.h"

/* Begins to explain; called once, while the process has one thread. Returns 0 or ENOMEM. */
int explain_start(const struct sink *sink);

/* Prints what is still counted. */
void explain_end(void);

#endif /* SRC_EXPLAIN_EXPLAIN_H */
