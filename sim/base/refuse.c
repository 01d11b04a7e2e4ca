/* SPDX-License-Identifier: MIT */
#include "sim/base/refuse.h"

#include <assert.h>
#include <errno.h>

static const struct {
	enum vb_reason reason;
	int error;
} errors[] = {
#define VB_REFUSAL(number, name, error, cause, remedy, source) {VB_WHY_##name, error},
#include <verbena/reasons.def>
};

int sim_reason_errno(enum vb_reason reason)
{
	unsigned int i = 0;

	while (errors[i].reason != reason) {
		i++;
		assert(i < sizeof(errors) / sizeof(errors[0]));
	}
	return errors[i].error;
}

int sim_refuse(struct sim_engine *engine, struct vb_why why)
{
	engine->why = why;
	return sim_reason_errno(why.reason);
}

int sim_refuse_memory(struct sim_engine *engine)
{
	return sim_refuse(engine, (struct vb_why){.reason = VB_WHY_NO_MEMORY});
}

int sim_refuse_system(struct sim_engine *engine, int error, const char *call)
{
	engine->why = (struct vb_why){VB_WHY_SYSTEM_CALL, {(uint64_t)error}, .text = call};
	return error;
}

int sim_refuse_limit(struct sim_engine *engine, const char *name, int limit)
{
	return sim_refuse(engine, (struct vb_why){.reason = VB_WHY_DEVICE_LIMIT,
						  .values = {(uint64_t)limit},
						  .text = name});
}

int sim_refuse_numbers(struct sim_engine *engine, const char *numbers)
{
	return sim_refuse(engine, (struct vb_why){.reason = VB_WHY_NUMBERS_TAKEN, .text = numbers});
}

enum vb_reason sim_descriptor_reason(int error)
{
	switch (error) {
	case EMFILE:
		return VB_WHY_PROCESS_DESCRIPTORS;
	case ENFILE:
		return VB_WHY_SYSTEM_DESCRIPTORS;
	case ENOMEM:
		return VB_WHY_NO_MEMORY;
	default:
		return VB_WHY_NONE;
	}
}

bool sim_take_refusal(struct sim_engine *engine, int error, struct vb_why *why)
{
	int expected;

	*why = engine->why;
	engine->why.reason = VB_WHY_NONE;
	if (why->reason == VB_WHY_NONE)
		return false;
	expected = why->reason == VB_WHY_SYSTEM_CALL ? (int)why->values[0]
						     : sim_reason_errno(why->reason);
	return expected == error;
}
