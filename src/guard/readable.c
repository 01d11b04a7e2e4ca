/* SPDX-License-Identifier: MIT */
#include "src/guard/readable.h"

#include "src/guard/memcheck.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PAGE_BYTES = 4096, /* no machine has smaller pages */
	WORD_BYTES = 8, /* a signal mask of the kernel; a word does not cross the end of a page */
};

static bool runs_on_valgrind(void)
{
	return memcheck_ask(VALGRIND_RUNNING_ON_VALGRIND, NULL, NULL, 0);
}

/* Valgrind would report the other bytes of the word, which the program may not have written. */
static bool can_copy(uintptr_t at)
{
	char byte;
	const struct iovec to = {&byte, 1}, from = {(void *)at, 1};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

/*
 * rt_sigprocmask(2) reads the mask before it refuses the operation -1. Of the calls that read memory and then do
 * nothing it is the cheapest, and filters of system calls (seccomp(2)) permit it. It does not read a mask at NULL.
 */
static bool can_read_mask(uintptr_t at)
{
	const uintptr_t word = at & -(uintptr_t)WORD_BYTES;

	return word &&
	       (!syscall(SYS_rt_sigprocmask, -1, word, NULL, WORD_BYTES) || errno != EFAULT);
}

/* Returns true if the byte can be read, and with it the rest of its page. */
static bool is_page_readable(uintptr_t at)
{
	const int saved = errno;
	const bool readable = runs_on_valgrind() ? can_copy(at) : can_read_mask(at);

	errno = saved;
	return readable;
}

/* Returns the address as a number of which the compiler knows nothing: it takes a parameter that glibc declares
 * nonnull for nonzero, and would remove the test for NULL. */
static uintptr_t number_of(const void *address)
{
	uintptr_t number = (uintptr_t)address;

	__asm__("" : "+r"(number));
	return number;
}

static size_t rest_of_page(uintptr_t at)
{
	return PAGE_BYTES - at % PAGE_BYTES;
}

bool guard_is_readable(const void *address, size_t length_bytes)
{
	uintptr_t at = number_of(address);

	while (length_bytes) {
		const size_t part = rest_of_page(at);

		if (!is_page_readable(at))
			return false;
		if (length_bytes <= part)
			return true;
		at += part;
		length_bytes -= part;
	}
	return true;
}

ssize_t guard_string_length(const char *string, size_t max)
{
	const uintptr_t begin = number_of(string);
	size_t length = 0, part, found;

	do {
		if (!is_page_readable(begin + length))
			return -1;
		part = rest_of_page(begin + length);
		if (part > max - length)
			part = max - length;
		found = strnlen((const char *)(begin + length), part);
		length += found;
	} while (found == part && length < max);
	return (ssize_t)length;
}
