/* SPDX-License-Identifier: MIT */
/* In libverbena.so: its worlds, for its own functions and for those of libverbena-files.so. */
#include "src/wait/wait.h"

#include <stddef.h>
#include <verbena/sim.h>

static const struct wait_world worlds = {vb_sim_has_fd, vb_sim_wait_fd, vb_sim_wait_fd_events};

#pragma weak verbena_files_wait

/* Under `verbena run`, the functions of libverbena-files.so wait, and call those of this library for libc's. */
const struct wait_world *wait_world(void)
{
	return verbena_files_wait ? NULL : &worlds;
}

__attribute__((constructor)) static void offer(void)
{
	if (verbena_files_wait)
		verbena_files_wait(&worlds);
}
