/* SPDX-License-Identifier: MIT */
/*
 * A library with the symbol by which the backend knows Verbena's own libibverbs.so.1. The backend
 * must not call it.
 */
#include <infiniband/verbs.h>
#include <stdlib.h>

extern const int verbena_dropin;
const int verbena_dropin = 1;

struct ibv_device **ibv_get_device_list(int *num_devices)
{
	abort();
}
