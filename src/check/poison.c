/* SPDX-License-Identifier: MIT */
#include "src/check/poison.h"

#include "src/guard/memcheck.h"

#include <dlfcn.h>
#include <string.h>

/* On x86-64 the guard copies without instrumented functions. On other processors its copies go through
 * functions that AddressSanitizer replaces. */
#if defined(__x86_64__)
#define COPIES_UNSEEN true
#else
#define COPIES_UNSEEN false
#endif

/* What bytes of the shadow say: <sanitizer/asan_interface.h> and the tool's reports. */
#define SHADOW_FREED	   0xfd
#define SHADOW_AFTER_SCOPE 0xf8
#define SHADOW_RETURNED	   0xf5
#define SHADOW_USER	   0xf7

#define GRANULE	   8
#define BITS_BYTES 256 /* bytes for which memcheck is asked at once */

/* The functions of AddressSanitizer's run-time library, which is part of the program. */
static struct {
	void (*poison)(const volatile void *memory, size_t length_bytes);
	void (*unpoison)(const volatile void *memory, size_t length_bytes);
	void *(*find_poisoned)(void *memory, size_t length_bytes);
	void (*mapping)(size_t *scale, size_t *offset);
	void (*set_callback)(void (*callback)(const char *report));
	void *(*report_address)(void);
	void *(*report_pc)(void);
	int (*report_access_type)(void);
	size_t (*report_access_size)(void);
} asan;

bool poison_active;
static bool asan_found, memcheck_found;
static size_t shadow_scale, shadow_offset;
static void (*touched_fn)(const struct poison_access *access);

/* --- which tool --- */

static bool find_asan(void)
{
	const struct {
		const char *name;
		void *place;
	} functions[] = {
		{"__asan_poison_memory_region", &asan.poison},
		{"__asan_unpoison_memory_region", &asan.unpoison},
		{"__asan_region_is_poisoned", &asan.find_poisoned},
		{"__asan_get_shadow_mapping", &asan.mapping},
		{"__asan_set_error_report_callback", &asan.set_callback},
		{"__asan_get_report_address", &asan.report_address},
		{"__asan_get_report_pc", &asan.report_pc},
		{"__asan_get_report_access_type", &asan.report_access_type},
		{"__asan_get_report_access_size", &asan.report_access_size},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *found = dlsym(RTLD_DEFAULT, functions[i].name);

		if (!found)
			return false;
		memcpy(functions[i].place, &found, sizeof(found));
	}
	asan.mapping(&shadow_scale, &shadow_offset);
	return (size_t)1 << shadow_scale == GRANULE;
}

/* Valgrind's other tools do not answer. */
static bool is_memcheck(void)
{
	char byte = 0, bits;

	return memcheck_ask(MEMCHECK_GET_VBITS, &byte, &bits, 1) == 1;
}

void poison_start(void)
{
	asan_found = COPIES_UNSEEN && find_asan();
	memcheck_found = is_memcheck();
	poison_active = asan_found || memcheck_found;
}

/* --- AddressSanitizer --- */

/* The shadow has no shadow: an instrumented load of it crashes. */
__attribute__((no_sanitize_address)) static uint8_t shadow_of(uintptr_t granule)
{
	return *(const uint8_t *)((granule >> shadow_scale) + shadow_offset);
}

/* The whole granules of a range. */
struct granules {
	uintptr_t begin, end;
};

static struct granules whole_granules(const void *memory, size_t length_bytes)
{
	const uintptr_t first = (uintptr_t)memory;

	return (struct granules){
		.begin = (first + GRANULE - 1) / GRANULE * GRANULE,
		.end = (first + length_bytes) / GRANULE * GRANULE,
	};
}

static bool is_poisoned(const void *memory, size_t length_bytes)
{
	return asan.find_poisoned((void *)memory, length_bytes);
}

static bool asan_is_freed(const void *memory, size_t length_bytes)
{
	const uintptr_t first = (uintptr_t)memory / GRANULE * GRANULE;

	if (!is_poisoned(memory, length_bytes))
		return false;
	for (uintptr_t at = first; at < (uintptr_t)memory + length_bytes; at += GRANULE)
		switch (shadow_of(at)) {
		case SHADOW_FREED:
		case SHADOW_AFTER_SCOPE:
		case SHADOW_RETURNED:
			return true;
		}
	return false;
}

/* Calls fn, if it is not NULL, for each run of whole granules whose shadow byte has the value. Returns true
 * if there is such a run. */
static bool each_run(const void *memory, size_t length_bytes, uint8_t value,
		     void (*fn)(const volatile void *memory, size_t length_bytes))
{
	const struct granules range = whole_granules(memory, length_bytes);
	bool found = false;

	for (uintptr_t at = range.begin, next; at < range.end; at = next) {
		const bool wanted = shadow_of(at) == value;

		for (next = at + GRANULE; next < range.end && (shadow_of(next) == value) == wanted;)
			next += GRANULE;
		if (wanted && fn)
			fn((const void *)at, next - at);
		found |= wanted;
	}
	return found;
}

static void on_report(const char *report)
{
	const struct poison_access access = {
		.address = asan.report_address(),
		.size_bytes = asan.report_access_size(),
		.writes = asan.report_access_type(),
		.caller = asan.report_pc(),
	};

	if (touched_fn)
		touched_fn(&access);
}

void poison_watch(void (*touched)(const struct poison_access *access))
{
	if (!asan_found)
		return;
	touched_fn = touched;
	asan.set_callback(touched ? on_report : NULL);
}

/* --- memcheck --- */

/* Returns true if memcheck says that all bytes can be accessed. */
static bool is_addressable(const void *memory, size_t length_bytes)
{
	const char *bytes = memory;
	char bits[BITS_BYTES];

	for (size_t part; length_bytes; bytes += part, length_bytes -= part) {
		part = length_bytes < sizeof(bits) ? length_bytes : sizeof(bits);
		if (memcheck_ask(MEMCHECK_GET_VBITS, bytes, bits, part) != 1)
			return false;
	}
	return true;
}

void poison_make_undefined(void *memory, size_t length_bytes)
{
	if (memcheck_found)
		memcheck_ask(MEMCHECK_MAKE_MEM_UNDEFINED, memory, NULL, length_bytes);
}

void poison_make_defined(void *memory, size_t length_bytes)
{
	if (memcheck_found)
		memcheck_ask(MEMCHECK_MAKE_MEM_DEFINED_IF_ADDRESSABLE, memory, NULL, length_bytes);
}

/* --- either --- */

bool poison_is_freed(const void *memory, size_t length_bytes)
{
	if (asan_found)
		return asan_is_freed(memory, length_bytes);
	return memcheck_found && !is_addressable(memory, length_bytes);
}

bool poison_hide(const void *memory, size_t length_bytes)
{
	if (asan_found)
		return each_run(memory, length_bytes, 0, asan.poison);
	if (!memcheck_found || !is_addressable(memory, length_bytes))
		return false;
	poison_make_undefined((void *)memory, length_bytes);
	return true;
}

bool poison_is_hidden(const void *memory, size_t length_bytes)
{
	if (!asan_found)
		return memcheck_found;
	return is_poisoned(memory, length_bytes) &&
	       each_run(memory, length_bytes, SHADOW_USER, NULL);
}

void poison_show(const void *memory, size_t length_bytes, size_t written_bytes)
{
	if (asan_found)
		each_run(memory, length_bytes, SHADOW_USER, asan.unpoison);
	else if (written_bytes < length_bytes)
		poison_make_defined((char *)memory + written_bytes, length_bytes - written_bytes);
}
