/* SPDX-License-Identifier: MIT */
/*
 * The attributes that each transition of a QP takes, for all five types, and steps through them.
 *
 * The table is that of the Linux core (qp_state_table of drivers/infiniband/core/verbs.c), without
 * the alternate path. The suites `states` and `xrc_states` hold devices to it.
 */
#ifndef TEST_SUPPORT_TRANSITIONS_H
#define TEST_SUPPORT_TRANSITIONS_H

#include "test/support/support.h"

enum ts_type { TS_TYPE_RC, TS_TYPE_UC, TS_TYPE_UD, TS_TYPE_XRC_SEND, TS_TYPE_XRC_RECV, TS_TYPES };

extern const enum ibv_qp_type ts_types[TS_TYPES];
extern const char *const ts_type_names[TS_TYPES];

struct ts_transition {
	unsigned int types; /* bits 1 << enum ts_type */
	enum ibv_qp_state from, to;
	int required, optional; /* without IBV_QP_STATE */
};

/* The transitions that take an attribute. */
extern const struct ts_transition ts_transitions[];
extern const size_t ts_transition_count;

/* The attributes that a step towards RTS, from one state to the next, needs. */
int ts_required(enum ts_type type, enum ibv_qp_state from, enum ibv_qp_state to);

/* The attributes that every step takes and ignores: Linux drivers/infiniband/core/uverbs_cmd.c,
 * modify_qp_mask. */
int ts_ignored(enum ts_type type);

/* The name of one bit of enum ibv_qp_attr_mask, without IBV_QP_. */
const char *ts_attribute_name(int bit);

#endif
