/* SPDX-License-Identifier: MIT */
/*
 * The verbs of struct verbs_context and its ops that the simulator does not have: each answers
 * EOPNOTSUPP in its own convention.
 */
#ifndef BACKENDS_SIM_VERB_UNSUPPORTED_H
#define BACKENDS_SIM_VERB_UNSUPPORTED_H

#include <infiniband/verbs.h>

/* Fills all of them; what exists is put over them afterwards. */
void unsupported_fill(struct verbs_context *verbs);

/* Refuses what the device's profile does not have: enum sim_lack. */
void unsupported_take_out(struct verbs_context *verbs, unsigned int lacks);

#endif
