/* SPDX-License-Identifier: MIT */
/* A shared world of a test's own: no other process has its name. */
#ifndef TEST_UNIT_SHARED_WORLD_H
#define TEST_UNIT_SHARED_WORLD_H

#include "backends/sim/base/say.h"
#include "backends/sim/wire/shared_areas.h"
#include "backends/sim/wire/shared_blocks.h"
#include "backends/sim/wire/shared_places.h"
#include "test/unit/child.h"
#include "unity.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <verbena/sim.h>

static char world_name[VB_SIM_NAME_MAX];
static char world_path[128];

/* Gives the world a new name. */
static inline void name_world(void)
{
	static unsigned int count;

	snprintf(world_name, sizeof(world_name), "test-%d-%u", (int)getpid(), ++count);
	snprintf(world_path, sizeof(world_path), "/dev/shm/verbena-%u-%s", (unsigned int)geteuid(),
		 world_name);
}

static inline bool world_exists(void)
{
	return access(world_path, F_OK) == 0;
}

/* The last refusal has this reason and this whole sentence. */
__attribute__((format(printf, 2, 3))) static inline void expect_reason(enum vb_reason reason,
								       const char *format, ...)
{
	char expected[512], sentence[512];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	TEST_ASSERT_EQUAL_STRING(expected, vb_why_text(said(), sentence, sizeof(sentence)));
	TEST_ASSERT_EQUAL_HEX(reason, said()->reason);
}

/* Attaches to the test's world. 0 or an errno value. */
static inline int attach_with(struct segment *segment, const char *devices)
{
	const struct segment_world world = {.name = world_name, .devices = devices};
	int err = segment_open(segment, &world);

	if (err)
		return err;
	err = places_attach(segment);
	if (err) {
		segment_drop(segment);
		return err;
	}
	segment_unlock(segment);
	return 0;
}

static inline void attach(struct segment *segment)
{
	TEST_ASSERT_EQUAL_INT(0, attach_with(segment, "devices\n"));
}

/* Takes the addresses that a child of a fork has just freed: what it maps again comes to other ones. */
static inline void occupy_mappings(void)
{
	for (unsigned int i = 0; i < 4; i++)
		(void)mmap(NULL, SEGMENT_HEADER_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
}

#endif
