/* SPDX-License-Identifier: MIT */
/*
 * The vendor_err of completions in error, by kind of adapter.
 */
#ifndef SIM_PROFILE_VENDOR_ERR_H
#define SIM_PROFILE_VENDOR_ERR_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* The columns of vendor_err.def. A profile has one. */
enum sim_codes {
	SIM_CODES_SPEC,
	SIM_CODES_RXE,
	SIM_CODES_MLX5,
	SIM_CODES,
};

/* Why a WR ended with its status, where an adapter has several codes for the status. */
enum sim_cause {
	SIM_CAUSE_ANY,
	SIM_CAUSE_KEY,	       /* the lkey of an SGE is of no region */
	SIM_CAUSE_PD,	       /* the lkey of an SGE is of another PD */
	SIM_CAUSE_RANGE,       /* an SGE exceeds its region */
	SIM_CAUSE_RIGHTS,      /* the region of an SGE lacks local write */
	SIM_CAUSE_FIRST_FLUSH, /* the oldest WR of a queue when the program moved the QP to ERR */
};

struct sim_vendor_err {
	enum ibv_wc_status status;
	enum sim_cause cause;
	uint32_t codes[SIM_CODES];
	const char *source; /* of the codes */
};

/* A row for each code; a row with a NULL source ends the table. */
extern const struct sim_vendor_err sim_vendor_errs[];

/* Returns the vendor_err of a completion: that of the status and the cause, else that of the status;
 * 0 if no code is known. */
uint32_t sim_vendor_err(enum sim_codes codes, enum ibv_wc_status status, enum sim_cause cause);

#endif
