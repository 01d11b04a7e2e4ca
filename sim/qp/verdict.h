/* SPDX-License-Identifier: MIT */
/*
 * What the responder may find when it looks at a request, and what follows from it, as data. The
 * documentation prints these tables; the responder and the completer follow them.
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
 * What a responder does. Where there is a status for the receive WR, the QP moves to ERR. On UC there
 * are no NAKs, and what is not the fault of its own receive WR costs the message only.
 */
struct sim_consequence {
	const char *name;
	const char *about;		/* when it is found */
	uint8_t syndrome;		/* of the NAK; 0 for none */
	enum ibv_wc_status recv_status; /* of a receive WR in progress; SUCCESS: the QP goes on */
	enum ibv_event_type event;	/* with none in progress, where the QP does not go on */
	bool fatal_on_uc;
};

extern const struct sim_consequence sim_consequences[SIM_VERDICTS];

/* What a NAK that ends the QP tells its send; IBV_WC_SUCCESS for a syndrome that does not. */
enum ibv_wc_status sim_nak_status(uint8_t syndrome);

#endif
