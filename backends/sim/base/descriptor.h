/* SPDX-License-Identifier: MIT */
/*
 * Which world has a descriptor that a program may wait for with poll(2). Only worlds on the virtual clock
 * enter their descriptors: such a wait moves their time. The table is the process's.
 */
#ifndef BACKENDS_SIM_BASE_DESCRIPTOR_H
#define BACKENDS_SIM_BASE_DESCRIPTOR_H

#include <stdbool.h>

/* Enters a descriptor of @owner. Returns 0 or ENOMEM. Any thread may call these functions. */
int descriptor_enter(int fd, void *owner);

/* Takes a descriptor out; does nothing if the table does not have it. Call it before close(2). */
void descriptor_leave(int fd);

/* Returns true if the table has a descriptor. */
bool descriptor_any(void);

/* Returns the owner; NULL: the table does not have the descriptor. A signal handler may call it. */
void *descriptor_owner(int fd);

#endif
