/* SPDX-License-Identifier: MIT */
/* Which process has which service IDs, and who takes a message to QP 1. An entry whose process has left or was
 * buried is free: its place has another generation. */
#ifndef BACKENDS_SIM_WIRE_SHARED_SERVICES_H
#define BACKENDS_SIM_WIRE_SHARED_SERVICES_H

#include "backends/sim/wire/shared_file.h"

/* struct sim_way_out, reserve(), unreserve() and listen(), for this process. They take the lock. */
int services_reserve(struct segment *segment, uint64_t service_id, const uint8_t address[16],
		     uint32_t flags);
void services_unreserve(struct segment *segment, uint64_t service_id, const uint8_t address[16]);
int services_listen(struct segment *segment, uint64_t service_id, const uint8_t address[16],
		    bool on);

/* Returns the other process that takes a message for one process; 0: none that lives. */
segment_id services_owner(struct segment *segment, const struct sim_gsi_target *target);

#endif
