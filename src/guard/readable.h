/* SPDX-License-Identifier: MIT */
/*
 * Asks the kernel whether the application's memory can be read. Functions that stand before libc's ask before they
 * read an argument: the kernel answers EFAULT where a read would end the program. They run in each program of
 * `verbena run`, so they install no handler of SIGSEGV.
 *
 * A question costs as much as getppid(2). Signal handlers and the child of vfork(2) may call these functions, and so
 * may constructors. errno stays.
 */
#ifndef SRC_GUARD_READABLE_H
#define SRC_GUARD_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Returns true if all bytes of [address, address + length_bytes) can be read. NULL is a valid argument, even if the
 * compiler knows it as the parameter of a function that glibc declares nonnull. */
bool guard_is_readable(const void *address, size_t length_bytes);

/* Returns the length of a string, at most @max; -1 if it cannot be read up to there. NULL is as above. */
ssize_t guard_string_length(const char *string, size_t max);

#endif
