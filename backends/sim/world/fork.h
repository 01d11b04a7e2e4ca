/* SPDX-License-Identifier: MIT */
/*
 * fork() in a process that simulates. The parent goes on as if nothing had happened. The child has a
 * copy of every world, at rest: no lock is held there, no progress thread runs until it opens a device
 * of its own, and traces stay the parent's. As with an adapter, what the parent made is not for the
 * child to use (ibv_fork_init(3)), but it may end it, or exit.
 */
#ifndef BACKENDS_SIM_WORLD_FORK_H
#define BACKENDS_SIM_WORLD_FORK_H

struct vb_sim;

void fork_watch(struct vb_sim *world);
void fork_forget(struct vb_sim *world);

#endif
