/* SPDX-License-Identifier: MIT */
/* On the virtual clock, a run gives the same log and the same packets each time. */
#ifndef SRC_CLI_REPEAT_H
#define SRC_CLI_REPEAT_H

/*
 * Before a program is executed on the virtual clock: logs and packets show the program's addresses, so
 * the kernel must not choose them at random. A kernel that refuses gets a message if there is a log or a
 * trace.
 */
void repeat_run(void);

/*
 * Makes `verbena test` write a log that repeats: executes it once more, with fixed addresses. Returns if
 * no log is asked for, or if the kernel refuses.
 */
void repeat_test(int argc, char **argv);

#endif /* SRC_CLI_REPEAT_H */
