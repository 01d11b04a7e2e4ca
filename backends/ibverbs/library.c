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
static struct vb_why why; /* of a library that cannot be used */
static char text[384];	  /* of why */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_symbol(void *handle, const struct symbol *symbol)
{
	void *found = dlvsym(handle, symbol->name, symbol->version);

	/* Another release may have the symbol under another version: take that one. */
	if (!found)
		found = dlsym(handle, symbol->name);
	memcpy((char *)&loaded + symbol->place, &found, sizeof(found));
}

/* cause may be NULL. */
static void fail(enum vb_reason reason, const char *file, const char *cause)
{
	if (cause)
		snprintf(text, sizeof(text), "%s (%s)", file, cause);
	else
		snprintf(text, sizeof(text), "%s", file);
	why = (struct vb_why){.reason = reason, .text = text};
}

static void load(void)
{
	const char *file = getenv("VERBENA_LIBIBVERBS");
	void *handle;

	if (!file || !*file)
		file = DEFAULT_FILE;

	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fail(VB_WHY_LIBRARY_MISSING, file, dlerror());
		return;
	}
	if (dlsym(handle, DROPIN_MARK)) {
		fail(VB_WHY_LIBRARY_IS_DROPIN, file, NULL);
		dlclose(handle);
		return;
	}

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		find_symbol(handle, &symbols[i]);
	if (!loaded.ibv_get_device_list) {
		memset(&loaded, 0, sizeof(loaded));
		fail(VB_WHY_LIBRARY_MISSING, file, "it has no ibv_get_device_list");
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

struct vb_why library_why(void)
{
	library();
	return why;
}
