/* SPDX-License-Identifier: MIT */
#include "sim/base/core.h"

/* splitmix64: its state is one word, and it works with every seed. */
uint64_t sim_random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t sim_random(struct sim_engine *engine)
{
	return sim_random_next(&engine->random);
}
