/* SPDX-License-Identifier: MIT */
/* Whole sentences of refusals, for tests of the backend sim. */
#ifndef TEST_UNIT_SIM_SENTENCE_H
#define TEST_UNIT_SIM_SENTENCE_H

#include "backends/sim/object/objects.h"
#include "test/unit/sim_pair.h"

#include <stdarg.h>
#include <stdio.h>

/* The last refusal has this reason and this whole sentence. */
__attribute__((format(printf, 2, 3))) static inline void expect_reason(enum vb_reason reason,
								       const char *format, ...)
{
	char expected[512];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	TEST_ASSERT_EQUAL_STRING(expected, sentence());
	TEST_ASSERT_EQUAL_HEX(reason, B.last_why()->reason);
}

/* Replaces the pair by end a on the one device of a world. */
static inline void open_alone(const struct vb_sim_config *config)
{
	struct ibv_device **list;

	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	B.free_device_list(list);
	b.gid = a.gid;
}

static inline void open_profile(const char *profile)
{
	struct vb_sim_config config = {.device_count = 1, .devices = {{.name = "sim0"}}};

	snprintf(config.devices[0].profile, sizeof(config.devices[0].profile), "%s", profile);
	open_alone(&config);
}

/* Returns the device's profile, for a test that changes it. */
static inline struct sim_profile *own_profile(struct ibv_context *context)
{
	struct sim_device *device = context_of(context)->device->engine;

	if (device->profile != &device->own_profile)
		device->own_profile = *device->profile;
	device->profile = &device->own_profile;
	return &device->own_profile;
}

#endif
