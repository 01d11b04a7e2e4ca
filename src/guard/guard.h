/* SPDX-License-Identifier: MIT */
/*
 * Access to the application's memory, which may be unmapped when a packet needs it: these routines
 * survive a fault. Any other fault goes to the handler that the application has installed.
 */
#ifndef SRC_GUARD_GUARD_H
#define SRC_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Installs the handlers of SIGSEGV and SIGBUS, or puts them on top of handlers that the program has
 * installed since. Making a world, a device's context, an MR, device memory or a QP with ibv_wr_*()
 * calls this. Until the next such call, a handler that the program installs gets the faults of a
 * copy.
 */
void guard_install(void);

/* Held while fork() copies the process. */
void guard_lock(void);
void guard_unlock(void);

/*
 * Adds a mapping of a file that another process may shorten. If bytes behind the end of the file are touched, the whole
 * mapping is replaced by zeros that belong to this process alone, and the access is repeated: what other processes
 * write is seen there no more. Returns false without memory; then such an access is a fault as any other.
 */
bool guard_add_mapping(void *addr, size_t length_bytes);

/* Call this before the mapping is unmapped. */
void guard_remove_mapping(const void *addr);

/* Copies length_bytes from src to dst. Returns nonzero if one of the two ranges cannot be accessed; some bytes may
 * have been copied then. */
int guard_copy(void *dst, const void *src, size_t length_bytes);

/* Does *sum = *sum * factor + word for each of `count` words of 8 bytes, which need no alignment. Nonzero if
 * one of them cannot be read: *sum is not changed then. */
int guard_sum(uint64_t *sum, const void *words, size_t count, uint64_t factor);

/* 0 if [addr, addr + length) can be read and, if write is set, written; else EFAULT. A long range is
 * looked up in /proc/self/maps: the errno of fopen(3), such as EMFILE or ENOMEM, if that fails. */
int guard_probe(const void *addr, size_t length_bytes, bool write);

/* After EFAULT: returns what the first bytes are that guard_probe() could not touch ("not mapped",
 * "mapped without PROT_READ", "read-only"), and sets *hole and *hole_bytes to their part of the
 * range. NULL if /proc/self/maps cannot be read, or shows no such bytes. */
const char *guard_find_hole(const void *addr, size_t length_bytes, bool write, uintptr_t *hole,
			    size_t *hole_bytes);

/* An access that the processor has refused. */
struct guard_fault {
	void *address;
	bool writes; /* false also where the processor does not say */
	bool own;    /* one of the routines above has made it */
	/* The address behind the access, the word on top of the stack, and the return address of the frame that
	 * the frame pointer names. The last two may be any number, or NULL. */
	const void *frames[3];
};

/*
 * From now on the handler of SIGSEGV first calls `fault`, which returns true if it has made the access possible;
 * the processor then repeats the access. NULL: the handler calls nothing first. While guard_watch_faults() runs,
 * no thread may cause a fault.
 */
void guard_watch_faults(bool (*fault)(const struct guard_fault *fault));

#endif
