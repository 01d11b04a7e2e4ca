/* SPDX-License-Identifier: MIT */
#include "backends/ibverbs/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Only Verbena's own libibverbs.so.1 and librdmacm.so.1 export this symbol. */
#define DROPIN_MARK "verbena_dropin"

static _Thread_local struct vb_why last;

const struct vb_why *load_last_why(void)
{
	return &last;
}

void load_begin(void)
{
	last.reason = VB_WHY_NONE;
}

int load_fail(int error, const char *verb, struct vb_why why)
{
	last = why;
	last.verb = verb;
	return error;
}

static void *find_symbol(void *handle, const struct symbol *symbol)
{
	void *found = dlvsym(handle, symbol->name, symbol->version);

	/* Another release may have the symbol under another version: take that one. */
	return found ? found : dlsym(handle, symbol->name);
}

/* cause may be NULL. */
static void refuse(struct loaded *loaded, enum vb_reason reason, const char *file,
		   const char *cause)
{
	if (cause)
		snprintf(loaded->text, sizeof(loaded->text), "%s (%s)", file, cause);
	else
		snprintf(loaded->text, sizeof(loaded->text), "%s", file);
	loaded->why = (struct vb_why){.reason = reason, .text = loaded->text};
}

void load_library(const struct load *load, void *into, struct loaded *loaded)
{
	const char *named = getenv(load->variable);
	const char *file = named && *named ? named : load->file;
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	char cause[128];

	if (!handle) {
		refuse(loaded, load->missing, file, dlerror());
		return;
	}
	if (dlsym(handle, DROPIN_MARK)) {
		refuse(loaded, load->dropin, file, NULL);
		dlclose(handle);
		return;
	}
	if (!dlsym(handle, load->needed)) {
		snprintf(cause, sizeof(cause), "it has no %s", load->needed);
		refuse(loaded, load->missing, file, cause);
		dlclose(handle);
		return;
	}
	for (size_t i = 0; i < load->count; i++) {
		void *found = find_symbol(handle, &load->symbols[i]);

		memcpy((char *)into + load->symbols[i].place, &found, sizeof(found));
	}
}
