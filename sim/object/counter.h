/* SPDX-License-Identifier: MIT */
/*
 * The counters of a device, and the names that SoftRoCE gives them in the kernel.
 */
#ifndef SIM_OBJECT_COUNTER_H
#define SIM_OBJECT_COUNTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The enum ibv_wc_opcode of send queues are 0 to SIM_WC_OPCODES - 1. */
#define SIM_WC_OPCODES (IBV_WC_ATOMIC_WRITE + 1)

struct sim_counters {
	uint64_t none; /* always 0 */
	uint64_t sent_packets;
	uint64_t received_packets;
	uint64_t lost_packets;	  /* sent packets that did not arrive */
	uint64_t unsent_packets;  /* lost packets: the port was down, or the device dead */
	uint64_t dropped_packets; /* received packets that had no effect */
	uint64_t refused_packets; /* dropped packets that no QP took, or that had a wrong Q_Key */
	uint64_t duplicate_requests;
	uint64_t out_of_sequence_requests;
	uint64_t rnr_naks_sent;
	uint64_t rnr_naks_received;
	uint64_t sequence_naks_sent;
	uint64_t sequence_naks_received;
	uint64_t advancing_naks_received; /* sequence NAKs that acknowledged part of a message */
	uint64_t ack_timeouts;
	uint64_t retries; /* rewinds of the requester, except after an RNR NAK */
	uint64_t retries_exceeded;
	uint64_t rnr_retries_exceeded;
	uint64_t retransmitted_packets;
	uint64_t links_downed;
	uint64_t completed[SIM_WC_OPCODES]; /* work of send queues, with any status */
	uint64_t receives_completed;	    /* receives that completed with success */
	uint64_t guarded_faults;
};

struct sim_counter_info {
	const char *name;
	const char *about;
	/* Offsets in struct sim_counters; the value is the counter at `counter` without that at
	 * `less`. 0 is the counter `none`. */
	size_t counter;
	size_t less;
};

/* A row for each of SoftRoCE's counters; a row with the name NULL ends the table. */
extern const struct sim_counter_info sim_counter_info[];

/* Reads a counter by SoftRoCE's name. Returns false if no counter has that name. */
bool sim_counter_read(const struct sim_counters *counters, const char *name, uint64_t *value);

#endif
