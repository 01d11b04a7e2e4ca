/* SPDX-License-Identifier: MIT */
/*
 * The application's memory, which may be gone when a packet needs it: touched by routines that
 * survive a fault. A fault anywhere else goes on to the handler that the application had.
 */
#ifndef BACKENDS_SIM_GUARD_GUARD_H
#define BACKENDS_SIM_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Installs the handlers for SIGSEGV and SIGBUS, or puts them on top again if the program has
 * installed its own since. Worlds, devices, registrations, device memory and QPs of ibv_wr_* do so
 * when they begin: a handler that is installed later gets the faults under a copy until then, unless it passes them on.
 */
void guard_install(void);

/* Held while fork() copies the process. */
void guard_lock(void);
void guard_unlock(void);

/* Copies; nonzero where a side cannot be touched, and some bytes may have been copied. */
int guard_copy(void *dst, const void *src, size_t length_bytes);

/* 0 where [addr, addr + length) can be read, and written if asked; else EFAULT. */
int guard_probe(const void *addr, size_t length_bytes, bool write);

#endif
