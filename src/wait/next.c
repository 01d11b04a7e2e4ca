/* SPDX-License-Identifier: MIT */
#include "src/wait/next.h"

#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <stddef.h>

/* RTLD_NEXT finds nothing if the dynamic linker has placed this library behind libc. */
static void *find_in_libc(const char *symbol)
{
	void *libc = dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
	void *definition = libc ? dlsym(libc, symbol) : NULL;

	if (libc)
		dlclose(libc);
	return definition;
}

void *wait_next(void **found, const char *symbol)
{
	void *next = __atomic_load_n(found, __ATOMIC_ACQUIRE);

	if (!next) {
		next = dlsym(RTLD_NEXT, symbol);
		if (!next)
			next = find_in_libc(symbol);
		__atomic_store_n(found, next, __ATOMIC_RELEASE);
	}
	return next;
}
