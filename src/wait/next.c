/* SPDX-License-Identifier: MIT */
#include "src/wait/next.h"

#include <dlfcn.h>
#include <errno.h>

/* The linker makes these symbols: the section has the functions of all REAL() of this library. */
extern struct wait_next __start_libc_next[] __attribute__((visibility("hidden")));
extern struct wait_next __stop_libc_next[] __attribute__((visibility("hidden")));

/*
 * Finds a definition without memory, so no dlopen(3). RTLD_NEXT finds none if the dynamic linker has placed this
 * library behind libc: RTLD_DEFAULT then finds a definition in front of this library's.
 */
static void *look_up(struct wait_next *next)
{
	const int saved = errno;
	void *definition = dlsym(RTLD_NEXT, next->symbol);

	if (!definition)
		definition = dlsym(RTLD_DEFAULT, next->symbol);
	errno = saved;
	__atomic_store_n(&next->definition, definition, __ATOMIC_RELEASE);
	return definition;
}

void *wait_next(struct wait_next *next)
{
	void *definition = __atomic_load_n(&next->definition, __ATOMIC_ACQUIRE);

	/* Constructors of other libraries may call a function before this library's own has run. */
	return definition ? definition : look_up(next);
}

/* dlsym(3) must not be called in a signal handler, and it changes what dlerror(3) returns. */
__attribute__((constructor(101))) static void look_up_all(void)
{
	for (struct wait_next *next = __start_libc_next; next < __stop_libc_next; next++)
		wait_next(next);
}
