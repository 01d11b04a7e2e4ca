/* SPDX-License-Identifier: MIT */
/*
 * The counters of a device, the names that SoftRoCE gives them in the kernel, and why packets are
 * discarded.
 */
#ifndef SIM_OBJECT_COUNTER_H
#define SIM_OBJECT_COUNTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The enum ibv_wc_opcode of send queues are 0 to SIM_WC_OPCODES - 1. */
#define SIM_WC_OPCODES (IBV_WC_ATOMIC_WRITE + 1)

/*
 * Why a port or a QP drops a packet that has come. The order is that of the checks: those of the
 * frame, of the port, of the QP, of a datagram, of a UC message and of a message to QP 1.
 */
enum sim_discard {
	SIM_DISCARD_NONE,
	SIM_DISCARD_TRUNCATED,
	SIM_DISCARD_NETWORK_HEADER,
	SIM_DISCARD_VERSION,
	SIM_DISCARD_OPCODE,
	SIM_DISCARD_PAD,
	SIM_DISCARD_ICRC,
	SIM_DISCARD_VCRC,
	SIM_DISCARD_ADDRESS,
	SIM_DISCARD_NO_QP,
	SIM_DISCARD_TRANSPORT,
	SIM_DISCARD_PKEY,
	SIM_DISCARD_STATE,
	SIM_DISCARD_DIRECTION,
	SIM_DISCARD_STRANGER,
	SIM_DISCARD_OWN_MULTICAST,
	SIM_DISCARD_QKEY,
	SIM_DISCARD_NO_RECEIVE,
	SIM_DISCARD_SHORT_RECEIVE,
	SIM_DISCARD_CUT_MESSAGE,
	SIM_DISCARD_BAD_REQUEST,
	SIM_DISCARD_ACCESS,
	SIM_DISCARD_MAD_SOURCE,
	SIM_DISCARD_MAD_LENGTH,
	SIM_DISCARD_MAD_VERSION,
	SIM_DISCARD_MAD_CLASS,
	SIM_DISCARD_MAD_METHOD,
	SIM_DISCARD_MAD_ATTRIBUTE,
	SIM_DISCARD_CM_UNKNOWN,
	SIM_DISCARD_CM_STATE,
	SIM_DISCARD_CM_FIELD,
	SIM_DISCARD_CM_FULL,
	SIM_DISCARD_CM_BACKLOG,
	SIM_DISCARDS,
};

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
	uint64_t discarded[SIM_DISCARDS]; /* of dropped_packets: the sum is that counter */
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

struct sim_discard_info {
	const char *name;
	const char *about;
};

/* By enum sim_discard; the row of SIM_DISCARD_NONE has no name. */
extern const struct sim_discard_info sim_discard_info[SIM_DISCARDS];

/* Counts a packet that a device has received and drops. */
static inline void sim_discard(struct sim_counters *counters, enum sim_discard cause)
{
	counters->dropped_packets++;
	counters->discarded[cause]++;
}

/* Reads how many packets were dropped for a cause, by its name. Returns false if no cause has that
 * name. */
bool sim_discard_read(const struct sim_counters *counters, const char *name, uint64_t *value);

/* Reads a counter by SoftRoCE's name. Returns false if no counter has that name. */
bool sim_counter_read(const struct sim_counters *counters, const char *name, uint64_t *value);

#endif
