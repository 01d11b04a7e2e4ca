/* SPDX-License-Identifier: MIT */
/*
 * What the files of the clock share. Calls go one way: wait.c to virtual.c and real.c, both to
 * driver.c.
 */
#ifndef BACKENDS_SIM_CLOCK_PRIVATE_H
#define BACKENDS_SIM_CLOCK_PRIVATE_H

#include "backends/sim/clock/driver.h"

/* --- driver.c --- */

/* Calls the owner's function. */
void driver_ran(const struct driver *driver);

/* Sleeps until the driver changes. If the thread is cancelled, the mutex is released. */
void driver_sleep(struct driver *driver);

/* Waits until the progress thread has left the bell, and would see what has changed: afterwards the bell's memory may be
 * freed. */
void driver_leave_bell(struct driver *driver);

/* Wakes all waiters; each one that still waits counts itself again. */
void driver_wake_all(struct driver *driver);

/* --- patience.c --- */

/* Tells whoever watches that a verb blocks, and nothing is due. */
void patience_blocked(const struct driver *driver);

/* The same after each wait on the virtual clock, with which time has moved or not. */
void patience_passed(struct driver *driver, bool moved);

/* --- virtual.c --- */

void virtual_run_instant(struct driver *driver);

/* Moves time to the next event, or sleeps until another thread has moved it. Returns false if no
 * event is left. If the thread is cancelled in its sleep, the runner (NULL: none) leaves the list and
 * the mutex is released. */
bool virtual_let_time_pass(struct driver *driver, struct driver_runner *runner);

/* Returns true if the calling thread's waiting moves time: it is registered, or no thread is. */
bool virtual_counts(const struct driver *driver);

/* Returns true if another registered thread may still act. */
bool virtual_has_others(const struct driver *driver);

#endif
