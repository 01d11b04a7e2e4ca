/* SPDX-License-Identifier: MIT */
/* Service IDs of the processes of a world, and the process that receives a message to QP 1. An entry is free
 * if its process has left or was buried, because the place then has another generation. */
#ifndef BACKENDS_SIM_WIRE_SHARED_SERVICES_H
#define BACKENDS_SIM_WIRE_SHARED_SERVICES_H

#include "backends/sim/wire/shared_file.h"

/* reserve(), unreserve() and listen() of struct sim_way_out, for this process. They take the lock. */
int services_reserve(struct segment *segment, uint64_t service_id, const uint8_t address[16],
		     uint32_t flags);
void services_unreserve(struct segment *segment, uint64_t service_id, const uint8_t address[16]);
int services_listen(struct segment *segment, uint64_t service_id, const uint8_t address[16],
		    bool on);

/* Returns the other process that receives a message; 0 if no other living process does. */
segment_id services_owner(struct segment *segment, const struct sim_gsi_target *target);

#endif
