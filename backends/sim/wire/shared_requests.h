/* SPDX-License-Identifier: MIT */
/* Requests of connections that processes of a shared world have taken. The sender of a request repeats it to the process
 * that has taken it, also if that process listens no more. */
#ifndef BACKENDS_SIM_WIRE_SHARED_REQUESTS_H
#define BACKENDS_SIM_WIRE_SHARED_REQUESTS_H

#include "backends/sim/wire/shared_file.h"

/* Stores that this process has taken (`on`), or has forgotten, the request of a process with a communication ID. Stores
 * nothing if the file has no room, or the sender does not have the ID. */
void requests_take(const struct segment *segment, segment_id sender, uint32_t communication_id,
		   bool on);

/* Returns the living process that has taken the request with a communication ID of this process; 0: no other
 * process. */
segment_id requests_taker(const struct segment *segment, uint32_t communication_id);

#endif
