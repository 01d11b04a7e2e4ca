/* SPDX-License-Identifier: MIT */
#include "backends/ibverbs/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_FILE "libibverbs.so.1"

/* Only Verbena's own libibverbs.so.1 exports this symbol. */
#define DROPIN_MARK "verbena_dropin"

struct symbol {
	const char *name;
	const char *version; /* the symbol's default version in libibverbs 44 */
	size_t place;	     /* in struct library */
};

static const struct symbol symbols[] = {
#define VB_VERB(...)
#define VB_EXPORT(result, name, parameters, arguments, convention, by, object, symbol, version) \
	{#symbol, version, offsetof(struct library, symbol)},
#include <verbena/verbs.def>
	{"ibv_query_port", "IBVERBS_1.1", offsetof(struct library, short_query_port)},
};

static struct library loaded;
static char error[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_symbol(void *handle, const struct symbol *symbol)
{
	void *found = dlvsym(handle, symbol->name, symbol->version);

	/* Another release may have the symbol under another version: take that one. */
	if (!found)
		found = dlsym(handle, symbol->name);
	memcpy((char *)&loaded + symbol->place, &found, sizeof(found));
}

static void say_missing(const char *file, const char *cause)
{
	snprintf(error, sizeof(error),
		 "%s cannot be loaded (%s): install libibverbs1 and ibverbs-providers (Debian, "
		 "Ubuntu) or rdma-core (Fedora, SUSE), or name the file in VERBENA_LIBIBVERBS",
		 file, cause);
}

static void load(void)
{
	const char *file = getenv("VERBENA_LIBIBVERBS");
	void *handle;

	if (!file || !*file)
		file = DEFAULT_FILE;

	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *cause = dlerror();

		say_missing(file, cause ? cause : "no reason given");
		return;
	}
	if (dlsym(handle, DROPIN_MARK)) {
		snprintf(error, sizeof(error),
			 "%s is Verbena's own drop-in, beside which the real libibverbs cannot be "
			 "loaded: run without it to reach real devices",
			 file);
		dlclose(handle);
		return;
	}

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		find_symbol(handle, &symbols[i]);
	if (!loaded.ibv_get_device_list) {
		memset(&loaded, 0, sizeof(loaded));
		say_missing(file, "it has no ibv_get_device_list");
		dlclose(handle);
	}
}

const struct library *library(void)
{
	pthread_once(&once, load);
	return &loaded;
}

bool library_loaded(void)
{
	return library()->ibv_get_device_list;
}

const char *library_error(void)
{
	library();
	return error;
}
