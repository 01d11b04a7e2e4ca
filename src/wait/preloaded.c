/* SPDX-License-Identifier: MIT */
/* For libverbena-files.so: gets the worlds of libverbena.so when the process loads that library. */
#include "src/wait/wait.h"

#include <stdatomic.h>
#include <stddef.h>

static _Atomic(const struct wait_world *) offered;

const struct wait_world *wait_world(void)
{
	return atomic_load_explicit(&offered, memory_order_acquire);
}

__attribute__((visibility("default"))) void verbena_files_wait(const struct wait_world *world)
{
	atomic_store_explicit(&offered, world, memory_order_release);
}
