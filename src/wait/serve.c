/* SPDX-License-Identifier: MIT */
/* For libverbena.so: serves its worlds to its own copy of wait.c, or to that of libverbena-files.so. */
#include "src/wait/wait.h"

#include <stddef.h>
#include <verbena/sim.h>

static const struct wait_world worlds = {vb_sim_has_fd, vb_sim_wait_fd, vb_sim_wait_fd_events};

#pragma weak verbena_files_wait

/* Under `verbena run` the copy in libverbena-files.so does the waiting. The functions that it calls as libc's
 * are those of this library, which must then leave the call alone. */
const struct wait_world *wait_world(void)
{
	return verbena_files_wait ? NULL : &worlds;
}

__attribute__((constructor)) static void offer(void)
{
	if (verbena_files_wait)
		verbena_files_wait(&worlds);
}
