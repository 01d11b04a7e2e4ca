/* SPDX-License-Identifier: MIT */
#include "src/explain/place.h"

#include "src/base/count.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAMES_MAX 64
#define CM	   "cm_" /* begins the names of functions of the connection manager */

/* The drop-in, and how the program names its functions. The backend ibverbs calls the system's
 * libraries of these names. */
static const struct dropin {
	const char *library, *prefix;
} dropins[] = {
	{"libibverbs.so", "ibv_"},
	{"librdmacm.so", "rdma_"},
};

/* --- modules --- */

static char program_path[PATH_MAX];

struct search {
	uintptr_t address;
	struct module module;
};

static int look(struct dl_phdr_info *info, size_t size_bytes, void *arg)
{
	struct search *search = arg;

	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD ||
		    search->address - info->dlpi_addr - segment->p_vaddr >= segment->p_memsz)
			continue;
		search->module.base = info->dlpi_addr;
		search->module.path = info->dlpi_name[0] ? info->dlpi_name : program_path;
		return 1;
	}
	return 0;
}

/* dladdr(3) would wait for the loader's lock, which a thread inside dlopen(3) holds. */
static bool find_module(uintptr_t address, struct module *module)
{
	struct search search = {.address = address};

	if (!dl_iterate_phdr(look, &search))
		return false;
	*module = search.module;
	return true;
}

/* Returns NULL if the module is no library of the drop-in. */
static const struct dropin *dropin_of(const struct module *module)
{
	const char *slash = strrchr(module->path, '/');
	const char *name = slash ? slash + 1 : module->path;

	for (size_t i = 0; i < COUNT(dropins); i++)
		if (!strncmp(name, dropins[i].library, strlen(dropins[i].library)))
			return &dropins[i];
	return NULL;
}

static struct module own;
static bool has_libdw;

void place_start(void)
{
	const ssize_t length = readlink("/proc/self/exe", program_path, sizeof(program_path) - 1);
	void *frame[1];

	program_path[length < 0 ? 0 : length] = '\0';
	find_module((uintptr_t)place_start, &own);
	has_libdw = symbol_start();
	backtrace(frame, 1); /* the first call opens libgcc_s */
}

/* --- the symbols that were described, by address --- */

#define SYMBOLS_BUCKETS 256
#define SYMBOLS_MAX	4096

struct known {
	struct known *next;
	uintptr_t address;
	struct symbol symbol;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct known *buckets[SYMBOLS_BUCKETS];
static unsigned int known_count;

void place_lock(void)
{
	pthread_mutex_lock(&mutex);
}

void place_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

static const char *exported_name(uintptr_t address)
{
	Dl_info info;

	return !has_libdw && dladdr((void *)(address - 1), &info) ? info.dli_sname : NULL;
}

static void describe(uintptr_t address, const struct module *module, struct symbol *symbol)
{
	const char *exported = exported_name(address);
	struct known **bucket = &buckets[address % SYMBOLS_BUCKETS], *known;

	place_lock();
	for (known = *bucket; known && known->address != address;)
		known = known->next;
	if (known) {
		*symbol = known->symbol;
	} else {
		symbol_describe(address, module, exported, symbol);
		known = known_count < SYMBOLS_MAX ? malloc(sizeof(*known)) : NULL;
		if (known) {
			*known = (struct known){*bucket, address, *symbol};
			*bucket = known;
			known_count++;
		}
	}
	place_unlock();
}

/* --- places --- */

/* The stack of a verb, as far as its caller. */
struct walk {
	const struct dropin *dropin; /* the program called a function of this library; or NULL */
	bool through_pointer;	     /* the program called a pointer in an object */
};

/*
 * The last frame of Verbena: a function of the drop-in, vb_*(), or one behind a pointer. Verbena's
 * own functions have names only if it is not stripped; those of its interface always have them.
 */
static void note_entry(uintptr_t address, const struct module *module, struct walk *walk)
{
	struct symbol symbol;

	walk->dropin = dropin_of(module);
	walk->through_pointer = false;
	if (walk->dropin)
		return;
	describe(address, module, &symbol);
	walk->through_pointer = strncmp(symbol.text, "vb_", 3) != 0;
}

/* Names the verb as the program does. */
static void name_verb(const struct walk *walk, const char *found, const char *verb,
		      struct place *place)
{
	const bool of_cm = !strncmp(verb, CM, strlen(CM));

	if (found[0])
		snprintf(place->verb, sizeof(place->verb), "%s", found);
	else if (of_cm && walk->dropin)
		snprintf(place->verb, sizeof(place->verb), "%s%s", walk->dropin->prefix,
			 verb + strlen(CM));
	else
		snprintf(place->verb, sizeof(place->verb), "%s%s",
			 walk->dropin || (walk->through_pointer && !of_cm) ? "ibv_" : "vb_", verb);
}

static bool is_own(const void *address)
{
	struct module module;

	return find_module((uintptr_t)address - 1, &module) &&
	       (module.base == own.base || dropin_of(&module));
}

/* A program calls verbs at few places: the places outside are kept. */
bool place_is_own(const void *address)
{
	static const void *_Atomic outside[256];
	const void *_Atomic *kept = &outside[((uintptr_t)address >> 1) % COUNT(outside)];

	if (atomic_load_explicit(kept, memory_order_relaxed) == address)
		return false;
	if (is_own(address))
		return true;
	atomic_store_explicit(kept, address, memory_order_relaxed);
	return false;
}

void place_callers(const void **frames, int count)
{
	void *all[FRAMES_MAX];
	const int all_count = backtrace(all, FRAMES_MAX);
	int first = 0;

	while (first < all_count && is_own(all[first]))
		first++;
	if (first)
		first--;
	for (int i = 0; i < count; i++)
		frames[i] = first + i < all_count ? all[first + i] : NULL;
}

void place_callers_of_handler(const void **frames, int count)
{
	void *all[FRAMES_MAX];
	const int all_count = backtrace(all, FRAMES_MAX);
	struct module library = {0}, module = {0};
	int first = 0;

	while (first < all_count && is_own(all[first]))
		first++;
	if (first < all_count)
		find_module((uintptr_t)all[first] - 1, &library);
	while (first < all_count && find_module((uintptr_t)all[first] - 1, &module) &&
	       module.base == library.base)
		first++;
	for (int i = 0; i < count; i++)
		frames[i] = first + i < all_count ? all[first + i] : NULL;
}

void place_describe(const char *verb, const void *const *frames, int count, struct place *place)
{
	char found[SYMBOL_VERB_BYTES] = "";
	uintptr_t entry = 0;
	struct module entry_module = {0};
	struct walk walk = {.through_pointer = true};

	*place = (struct place){0};
	for (int i = 0; i < count && frames[i]; i++) {
		const uintptr_t address = (uintptr_t)frames[i];
		struct module module;
		struct symbol symbol;

		if (!find_module(address - 1, &module))
			break;
		if (module.base == own.base || dropin_of(&module)) {
			entry = address;
			entry_module = module;
			continue;
		}
		describe(address, &module, &symbol);
		if (symbol.verb[0])
			memcpy(found, symbol.verb, sizeof(found));
		memcpy(place->text, symbol.text, sizeof(place->text));
		if (!symbol.is_verb)
			break;
	}
	if (entry && !found[0])
		note_entry(entry, &entry_module, &walk);
	name_verb(&walk, found, verb, place);
}

void place_find(const char *verb, struct place *place)
{
	void *frames[FRAMES_MAX];
	const int count = backtrace(frames, FRAMES_MAX);

	place_describe(verb, (const void *const *)frames, count, place);
}
