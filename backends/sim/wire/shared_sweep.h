/* SPDX-License-Identifier: MIT */
/*
 * What killed processes leave: the file of a world whose last process was killed keeps its name. A process
 * of that world takes the file over; if none ever comes, the maker of any other world removes it.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_SWEEP_H
#define BACKENDS_SIM_WIRE_SHARED_SWEEP_H

/* Removes the files of this user's worlds that no process has. Any thread may call it. */
void shared_sweep(void);

#endif
