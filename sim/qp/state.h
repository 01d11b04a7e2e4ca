/* SPDX-License-Identifier: MIT */
/*
 * The transitions of ibv_modify_qp(3) as data: for a QP type and a pair of states, the attributes
 * that the program must give and those that it may give.
 */
#ifndef SIM_QP_STATE_H
#define SIM_QP_STATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define SIM_QP_STATES 7 /* RESET, INIT, RTR, RTS, SQD, SQE, ERR */

struct sim_transition {
	bool valid;
	int required; /* enum ibv_qp_attr_mask */
	int optional;
};

/* Never NULL. IBV_QP_STATE and IBV_QP_CUR_STATE are not in the masks. */
const struct sim_transition *sim_transition(enum ibv_qp_type type, enum ibv_qp_state from,
					    enum ibv_qp_state to);

/* Returns every bit that attr_mask may have in a transition to a state. */
int sim_transition_mask(const struct sim_transition *cell, enum ibv_qp_state to);

/* True if attr_mask may take a QP of the type from one state to the other. */
bool sim_transition_allowed(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
			    int attr_mask);

/* Returns the bits of attr_mask that the kernel ignores for a QP type: what XRC_SEND has no responder for,
 * and what XRC_RECV has no requester for. */
int sim_attributes_ignored(enum ibv_qp_type type);

const char *sim_qp_state_str(enum ibv_qp_state state);

#endif
