/* SPDX-License-Identifier: MIT */
/*
 * fork-unsafe. After fork(2) a page of an MR may belong to the child, while the parent writes to a copy
 * that the adapter does not know: ibv_fork_init(3). A library that answers IBV_FORK_ENABLED or
 * IBV_FORK_UNNEEDED is trusted. A simulated device has no such pages, so that there the program has to have
 * called ibv_fork_init() before its first MR, or has to have asked ibv_is_fork_initialized(), or the user has
 * set a variable. posix_spawn(3), vfork(2), system(3) and popen(3) of glibc run no handlers, and do no harm.
 */
#include "src/check/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>

#define LINE_BYTES 512

static bool prepared; /* the program has asked for safe pages, or whether they are safe */

static void after_init(struct check_call *check)
{
	if (!check->call->err && !object_first(OBJECT_MR))
		prepared = true;
}

static void after_question(struct check_call *check)
{
	if (check->call->result != IBV_FORK_DISABLED)
		prepared = true;
}

static bool is_safe_device(const struct check_mr *mr)
{
	const struct vb_backend *backend = vb_context_backend(mr->object.context);

	if (!backend)
		return true;
	if (backend->capabilities & VB_BACKEND_SIMULATED)
		return prepared || getenv("RDMAV_FORK_SAFE") || getenv("IBV_FORK_SAFE");
	return backend->is_fork_initialized() != IBV_FORK_DISABLED;
}

/* Reads the lines of one mapping in /proc/self/smaps: proc(5). Returns false at the end of the file. */
static bool read_mapping(FILE *file, uintptr_t *begin, uintptr_t *end, bool *copied)
{
	char line[LINE_BYTES], rights[5];

	do {
		if (!fgets(line, sizeof(line), file))
			return false;
	} while (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", begin, end, rights) != 3);
	do {
		if (!fgets(line, sizeof(line), file))
			return false;
	} while (strncmp(line, "VmFlags:", 8) != 0);
	*copied = rights[3] == 'p' && !strstr(line, " dc");
	return true;
}

/* Returns true if fork(2) shares the page copy-on-write: the mapping is private, and the program has not called
 * madvise(2) with MADV_DONTFORK for it. */
static bool is_copied(uintptr_t page)
{
	FILE *file = fopen("/proc/self/smaps", "re");
	uintptr_t begin, end;
	bool copied = false;

	if (!file)
		return false;
	while (read_mapping(file, &begin, &end, &copied))
		if (page >= begin && page < end)
			break;
		else
			copied = false;
	fclose(file);
	return copied;
}

static void report(const struct check_mr *mr)
{
	struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "forked"},
		{.label = "registered", .spot = mr->object.made},
	};
	char name[64];

	spot_take_fork(&places[0].spot);
	offence_report(VB_RULE_FORK, places,
		       "%s: the process calls fork() while this MR has %" PRIu64
		       " bytes of private memory",
		       check_name(mr->object.handle, name, sizeof(name)), mr->length_bytes);
}

static void forking(void)
{
	const int err = errno;

	for (struct object *object = object_first(OBJECT_MR); object;
	     object = object->next_of_kind) {
		const struct check_mr *mr = (const struct check_mr *)object;

		if (mr->memory && mr->length_bytes && !is_safe_device(mr) &&
		    is_copied((uintptr_t)mr->memory)) {
			report(mr);
			break;
		}
	}
	errno = err;
}

static void end(void)
{
	prepared = false;
}

static const struct check_hook hooks[] = {
	{LAYER_fork_init, NULL, after_init},
	{LAYER_is_fork_initialized, NULL, after_question},
	{0},
};

const struct check_rule rule_fork = {.hooks = hooks, .forking = forking, .end = end};
