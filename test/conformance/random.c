/* SPDX-License-Identifier: MIT */
#include "test/conformance/result.h"

#include <string.h>

/* FNV-1a. */
static uint64_t hash(uint64_t seed, const char *name)
{
	for (; *name; name++)
		seed = (seed ^ (unsigned char)*name) * 0x100000001b3;
	return seed;
}

void vt_seed_random(struct vt_run *run, uint64_t seed, const char *suite, const char *test)
{
	run->random = hash(hash(seed ^ 0xcbf29ce484222325, suite), test);
}

/* splitmix64, by Sebastiano Vigna, public domain: https://prng.di.unimi.it/splitmix64.c */
uint64_t vt_random(struct vt *t)
{
	uint64_t z = t->run->random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint64_t vt_random_below(struct vt *t, uint64_t limit)
{
	return vt_random(t) % limit;
}

void vt_random_fill(struct vt *t, void *buffer, size_t length_bytes)
{
	uint8_t *bytes = buffer;
	uint64_t value;

	for (size_t i = 0; i < length_bytes; i += sizeof(value)) {
		value = vt_random(t);
		memcpy(bytes + i, &value,
		       length_bytes - i < sizeof(value) ? length_bytes - i : sizeof(value));
	}
}
