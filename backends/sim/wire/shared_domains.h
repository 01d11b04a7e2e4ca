/* SPDX-License-Identifier: MIT */
/*
 * XRC domains of a world. A domain is that of an inode on a device, and exists while a living process has
 * it open. Each process that has it open has an entry.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_DOMAINS_H
#define BACKENDS_SIM_WIRE_SHARED_DOMAINS_H

#include "backends/sim/wire/shared_file.h"

struct domain_key {
	uint32_t device;
	uint64_t st_dev, st_ino;
};

/* Opens a domain for this process, which has not opened it yet. Sets *entry, for domains_close(). */
enum shared_domain domains_open(struct segment *segment, const struct domain_key *key, int oflags,
				uint32_t *entry);

/* This process has closed the domain. Does nothing for an entry of another process: the child of a fork()
 * has the numbers of its parent's entries. Needs no lock. */
void domains_close(struct segment *segment, uint32_t entry);

/* Closes all domains of a process. The caller holds the lock. */
void domains_free(struct segment *segment, segment_id owner);

#endif
