/* SPDX-License-Identifier: MIT */
/*
 * The worlds of this process: the default world, the device lists that programs hold, and fork().
 *
 * After fork() the parent continues undisturbed. The child has a copy of every world, at rest: no
 * lock is held there, no progress thread runs until it opens a device of its own, and traces stay
 * the parent's. As with an adapter, the child must not use what the parent made (ibv_fork_init(3)),
 * but it may end it, or exit.
 */
#ifndef BACKENDS_SIM_WORLD_PROCESS_H
#define BACKENDS_SIM_WORLD_PROCESS_H

#include "backends/sim/world/world.h"

/* The default world, which the first call makes. NULL with errno and a sentence. */
struct vb_sim *process_default(void);

/*
 * The world that a public function means; NULL stands for the default one, which is made if need
 * be.
 */
struct vb_sim *process_world(struct vb_sim *sim);

/* Holds that world. The hold's world is NULL, with errno, if the default world cannot be made. */
struct hold process_hold(struct vb_sim *sim);

/*
 * Returns the default world, which is the default no more, or NULL if there is none; the caller ends
 * it with process_retire().
 */
struct vb_sim *process_take_default(void);

/*
 * Ends a world without open devices. If the program still holds device lists of the world, it ends
 * with the last of them. A world with `kept` set stays in memory, without its trace.
 */
void process_retire(struct vb_sim *world);

/* As `watch` of struct vb_backend: the events of all worlds, those that are made later too. */
void process_watch(vb_event_fn *fn, void *arg);
/*
 * Calls fn(arg, world) for each world that is neither retired nor another process's; fn must not make
 * or end a world.
 */
void process_each(void (*fn)(void *arg, struct vb_sim *world), void *arg);

/* As ibv_get_device_list() and ibv_free_device_list(). */
struct ibv_device **process_list(struct vb_sim *world, int *num_devices);
void process_free_list(struct ibv_device **list);

/* Returns true for a list of any world that is not freed; does not follow the pointer. */
bool process_owns_list(struct ibv_device *const *list);

#endif
