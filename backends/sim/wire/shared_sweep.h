/* SPDX-License-Identifier: MIT */
/*
 * Removes the files that killed processes leave behind. If the last process of a world is killed, the
 * world's file stays. The next process of that world takes the file over; if there is none, the maker of any
 * other world removes it.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_SWEEP_H
#define BACKENDS_SIM_WIRE_SHARED_SWEEP_H

/* Removes the files of this user's worlds that no process uses. Any thread may call it. */
void shared_sweep(void);

#endif
