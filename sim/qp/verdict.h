/* SPDX-License-Identifier: MIT */
/*
 * Verdicts of the responder on a request, and what follows from each, as data. docs/semantics.md is
 * made from these tables.
 */
#ifndef SIM_QP_VERDICT_H
#define SIM_QP_VERDICT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum sim_verdict {
	SIM_ACCEPT,
	SIM_DROP,
	SIM_DUPLICATE,
	SIM_OUT_OF_SEQUENCE,
	SIM_NO_RECEIVE,
	SIM_INVALID_REQUEST,
	SIM_ACCESS_DENIED,
	SIM_TOO_LONG,
	SIM_BAD_RECEIVE,
	SIM_BAD_INVALIDATION,
	SIM_VERDICTS,
};

/*
 * What the responder does. With a status for the receive WR, the QP goes to ERR. UC sends no NAK, and
 * goes to ERR only if its own receive WR is at fault.
 */
struct sim_consequence {
	const char *name;
	const char *about;		/* when the responder comes to it */
	uint8_t syndrome;		/* of the NAK; 0: no NAK */
	enum ibv_wc_status recv_status; /* of a receive WR in progress; SUCCESS: the QP stays */
	enum ibv_event_type event;	/* if no receive WR is in progress and the QP goes to ERR */
	bool fatal_on_uc;
};

extern const struct sim_consequence sim_consequences[SIM_VERDICTS];

/* The status of a send that a NAK ends; IBV_WC_SUCCESS for a syndrome that ends no send. */
enum ibv_wc_status sim_nak_status(uint8_t syndrome);

#endif
