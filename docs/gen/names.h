/* SPDX-License-Identifier: MIT */
/*
 * Names of the values in <infiniband/verbs.h>, without their prefixes.
 */
#ifndef DOCS_GEN_NAMES_H
#define DOCS_GEN_NAMES_H

#include "src/base/bits.h"

#include <infiniband/verbs.h>

/* Rows are in the order of printing; a row with a NULL name ends each table. */
extern const struct bit_name header_names[]; /* enum sim_opcode_flag: extension headers */
extern const struct bit_name kind_names[];   /* enum sim_opcode_flag: kinds */

const char *wr_name(unsigned int wr_opcode);
const char *wc_opcode_name(unsigned int wc_opcode);
const char *status_name(enum ibv_wc_status status);
const char *event_name(enum ibv_event_type event);
const char *nak_name(unsigned int syndrome);

#endif
