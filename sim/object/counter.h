/* SPDX-License-Identifier: MIT */
/*
 * What a device counts, and what the kernel's SoftRoCE calls it.
 */
#ifndef SIM_OBJECT_COUNTER_H
#define SIM_OBJECT_COUNTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those of work that is posted to a send queue are enum ibv_wc_opcode from 0 up. */
#define SIM_WC_OPCODES (IBV_WC_ATOMIC_WRITE + 1)

struct sim_counters {
	uint64_t sent_packets;
	uint64_t received_packets;
	uint64_t lost_packets;	  /* of those sent */
	uint64_t unsent_packets;  /* of those lost: the own port was down, or the device dead */
	uint64_t dropped_packets; /* of those received */
	uint64_t refused_packets; /* of those dropped: before any QP, or by their Q_Key */
	uint64_t duplicate_requests;
	uint64_t out_of_sequence_requests;
	uint64_t rnr_naks_sent;
	uint64_t rnr_naks_received;
	uint64_t sequence_naks_sent;
	uint64_t sequence_naks_received;
	uint64_t advancing_naks_received; /* of those: they acknowledged part of a message */
	uint64_t ack_timeouts;
	uint64_t retries; /* goings back, whatever the cause; not those after an RNR NAK */
	uint64_t retries_exceeded;
	uint64_t rnr_retries_exceeded;
	uint64_t retransmitted_packets;
	uint64_t links_downed;
	uint64_t completed[SIM_WC_OPCODES]; /* work of send queues, with whatever status */
	uint64_t receives_completed;	    /* with success */
	uint64_t guarded_faults;
};

struct sim_counter_info {
	const char *name;
	const char *about;
	bool counted;	/* else it is always 0 here */
	bool reduced;	/* by what stands at less */
	size_t counter; /* in struct sim_counters */
	size_t less;
};

/* One row for each of SoftRoCE's; a NULL name ends it. */
extern const struct sim_counter_info sim_counter_info[];

/* False for a name that there is none of. */
bool sim_counter_read(const struct sim_counters *counters, const char *name, uint64_t *value);

#endif
