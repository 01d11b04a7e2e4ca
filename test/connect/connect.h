/* SPDX-License-Identifier: MIT */
/*
 * What these tests have in common: two nodes of a fresh world, and whether they leave anything.
 */
#ifndef TEST_CONNECT_H
#define TEST_CONNECT_H

#include "unity.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/channel.h>
#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>

#define MS 1000000ull
#define S  1000000000ull

/* A call that must succeed, or fail with an errno; either way the sentence is shown if not. */
#define OK(call)	   TEST_ASSERT_EQUAL_INT_MESSAGE(0, (call), vb_last_error())
#define FAILS(error, call) TEST_ASSERT_EQUAL_INT_MESSAGE((error), (call), vb_last_error())
#define HAVE(pointer)	   TEST_ASSERT_MESSAGE((pointer) != NULL, vb_last_error())

static inline void assert_says(const char *words)
{
	TEST_ASSERT_MESSAGE(strstr(vb_last_error(), words) != NULL, vb_last_error());
}

/* A fresh default world with this many devices, sim0 and up. */
static inline void fresh_world(unsigned int devices, enum vb_sim_clock clock)
{
	struct vb_sim_config *config = calloc(1, sizeof(*config));

	config->clock = clock;
	config->device_count = devices;
	for (unsigned int i = 0; i < devices; i++)
		snprintf(config->devices[i].name, sizeof(config->devices[i].name), "sim%u", i);
	OK(vb_sim_configure(config));
	free(config);
}

static inline void assert_nothing_left(void)
{
	static const struct vb_sim_objects none;
	struct vb_sim_objects left;

	vb_fault_clear(NULL);
	vb_sim_count_objects(NULL, &left);
	TEST_ASSERT_EQUAL_MEMORY(&none, &left, sizeof(none));
}

struct node {
	struct vb_device *device;
	struct vb_group *group;
	struct vb_region *region;
	struct vb_channel *channel;
};

#define REGION_BYTES 65536

static inline void node_open(struct node *node, unsigned int device)
{
	char name[16];

	snprintf(name, sizeof(name), "sim%u", device);
	node->device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY);
	HAVE(node->device);
	node->group = vb_group_open(node->device, NULL);
	HAVE(node->group);
	node->region = vb_group_alloc(node->group, REGION_BYTES);
	HAVE(node->region);
	node->channel = NULL;
}

static inline void node_close(struct node *node)
{
	OK(vb_channel_close(node->channel));
	OK(vb_region_free(node->region));
	OK(vb_group_close(node->group));
	OK(vb_device_close(node->device));
	*node = (struct node){0};
}

/* Connects two nodes by a channel with all kinds of remote access. */
static inline void join(struct node *a, struct node *b, const struct vb_qp_config *config)
{
	struct vb_qp_config open;

	vb_qp_config_init(&open);
	vb_qp_config_allow_remote_rw(&open);
	open.access |= IBV_ACCESS_REMOTE_ATOMIC;
	a->channel = vb_channel_prepare(a->group, config ? config : &open);
	HAVE(a->channel);
	b->channel = vb_channel_prepare(b->group, config ? config : &open);
	HAVE(b->channel);
	OK(vb_channel_connect_pair(a->channel, b->channel));
}

static inline struct vb_slice slice(const struct node *node, size_t offset_bytes,
				    uint32_t length_bytes)
{
	return (struct vb_slice){node->region, offset_bytes, length_bytes};
}

static inline struct vb_remote remote(const struct node *node, size_t offset_bytes,
				      size_t length_bytes)
{
	struct vb_remote made;

	OK(vb_region_remote(node->region, offset_bytes, length_bytes, &made));
	return made;
}

static inline uint8_t *bytes(const struct node *node, size_t offset_bytes)
{
	return (uint8_t *)node->region->addr + offset_bytes;
}

/* xorshift64*; a test prints the seed that it began with. */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ull;
}

#endif
