/* SPDX-License-Identifier: MIT */
#ifndef TEST_IBVERBS_CASES_H
#define TEST_IBVERBS_CASES_H

#include "backends/ibverbs/backend.h"
#include "test/ibverbs/standin.h"

#include <stddef.h>
#include <string.h>

/* How a verb reports a failure; see <verbena/backend.h>. NUMBER stands for ANSWER in verbs.def. */
enum convention { ERRNO, POINTER, MINUS_ONE, NEGATED, REREG, NOTHING, NUMBER };

/* The verb falls back on an export if the context does not have the operation. */
#define FALLS_BACK 1

struct verb_case {
	const char *verb;
	const char *target; /* as in struct standin_call */
	enum convention convention;
	int flags;
	uint64_t (*call)(void); /* returns the answer; a negative one is sign extended */
	unsigned int count;
	uint64_t args[STANDIN_ARGS];
};

extern const struct verb_case cases[];
extern const size_t case_count;

/* The objects of the cases. All belong to the context a_vctx, which the test fills. */
extern const struct vb_backend *backend;
extern struct verbs_context a_vctx;
extern struct ibv_device a_device;
extern struct ibv_mw a_mw;
extern struct ibv_mw_bind a_mw_bind;
extern struct ibv_qp_ex a_qp_ex;
extern struct ibv_pd a_pd;
extern struct ibv_srq a_srq;
extern struct ibv_qp_init_attr_ex a_qp_init_attr_ex;
extern struct ibv_srq_init_attr_ex a_srq_init_attr_ex;
extern struct ibv_ops_wr a_ops_wr;
extern struct ibv_ops_wr *a_ops_wr_p;
extern struct ibv_wq_init_attr a_wq_init_attr;

/* Initialises all objects; each test calls it first. */
void cases_set_up(void);

#endif /* TEST_IBVERBS_CASES_H */
