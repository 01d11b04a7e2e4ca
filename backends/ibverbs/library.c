/* SPDX-License-Identifier: MIT */
#include "backends/ibverbs/library.h"

#include "backends/ibverbs/load.h"

#include <pthread.h>
#include <stddef.h>

static const struct symbol symbols[] = {
#define VB_VERB(...)
#define VB_EXPORT(result, name, parameters, arguments, convention, by, object, symbol, version) \
	{#symbol, version, offsetof(struct library, symbol)},
#include <verbena/verbs.def>
	{"ibv_query_port", "IBVERBS_1.1", offsetof(struct library, short_query_port)},
};

static const struct load what = {
	.variable = "VERBENA_LIBIBVERBS",
	.file = "libibverbs.so.1",
	.needed = "ibv_get_device_list",
	.missing = VB_WHY_LIBRARY_MISSING,
	.dropin = VB_WHY_LIBRARY_IS_DROPIN,
	.symbols = symbols,
	.count = sizeof(symbols) / sizeof(symbols[0]),
};

static struct library pointers;
static struct loaded loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load(void)
{
	load_library(&what, &pointers, &loaded);
}

const struct library *library(void)
{
	pthread_once(&once, load);
	return &pointers;
}

bool library_loaded(void)
{
	return library()->ibv_get_device_list;
}

struct vb_why library_why(void)
{
	library();
	return loaded.why;
}
