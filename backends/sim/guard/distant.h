/* SPDX-License-Identifier: MIT */
/*
 * Memory of other processes of this user. A window is a range of addresses of this process where nothing
 * is mapped: each stands for an address of the other process. A copy to or from such an address faults,
 * and is then done by the kernel through /proc/PID/mem. So the copies of other memory cost nothing.
 */
#ifndef BACKENDS_SIM_GUARD_DISTANT_H
#define BACKENDS_SIM_GUARD_DISTANT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Opens the memory of a process: this very process, even if another one has its PID later. Returns a
 * descriptor; -1 with errno: ENOENT if there is no such process, EACCES if the kernel does not let this
 * process read and write the other one (ptrace(2), "Ptrace access mode checking").
 */
int distant_open(uint32_t pid);

/* What a window shows. */
struct distant_range {
	int memory; /* of distant_open(); stays open as long as the window */
	uint64_t addr;
	size_t length_bytes;
	/* Copies fail once *stamp is another number. */
	const _Atomic uint64_t *stamp;
	uint64_t stamp_then;
};

/* Makes a window. Returns its first address; NULL without memory. */
void *distant_map(const struct distant_range *range);

/* Ends the window that begins at the address. */
void distant_unmap(void *window);

/* guard_copy() that also reaches windows. */
int distant_copy(void *dst, const void *src, size_t length_bytes);

#endif
