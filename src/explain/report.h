/* SPDX-License-Identifier: MIT */
/* What the program has left, and what happened, printed when the program ends. */
#ifndef SRC_EXPLAIN_REPORT_H
#define SRC_EXPLAIN_REPORT_H

#include "src/explain/sink.h"

/*
 * Prepares a report at the end of the process. It is printed at exit(3), in whatever thread, and when
 * SIGTERM, SIGINT or SIGHUP ends a program that leaves these signals to their default. It is not
 * printed after _exit(2), abort(3), SIGKILL and faults.
 */
void report_start(const struct sink *sink);

/*
 * Prints the report at exit(3), once in a process. The calling thread may be inside a verb, whose lock it then keeps
 * for ever: so another thread reads the report, and a line that says so stands for it if that thread gets no lock.
 */
void report_at_exit(void);

#endif /* SRC_EXPLAIN_REPORT_H */
