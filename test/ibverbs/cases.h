/* SPDX-License-Identifier: MIT */
#ifndef TEST_IBVERBS_CASES_H
#define TEST_IBVERBS_CASES_H

#include "backends/ibverbs/backend.h"
#include "standin.h"

#include <stddef.h>
#include <string.h>

/* How a verb tells of failure; see <verbena/backend.h>. */
enum convention { ERRNO, POINTER, MINUS_ONE, NEGATED, REREG, NOTHING, NUMBER };

/* Without the context's operation, the verb goes to an export instead. */
#define FALLS_BACK 1

struct verb_case {
	const char *verb;
	const char *target; /* as in struct standin_call */
	enum convention convention;
	int flags;
	uint64_t (*call)(void); /* the answer, signed ones extended */
	unsigned int count;
	uint64_t args[STANDIN_ARGS];
};

extern const struct verb_case cases[];
extern const size_t case_count;

/* What the cases are called on: all objects are of a_vctx, which the test fills. */
extern const struct vb_backend *backend;
extern struct verbs_context a_vctx;
extern struct ibv_device a_device;
extern struct ibv_mw a_mw;
extern struct ibv_mw_bind a_mw_bind;
extern struct ibv_qp a_qp;
extern struct ibv_pd a_pd;
extern struct ibv_srq a_srq;
extern struct ibv_qp_init_attr_ex a_qp_init_attr_ex;
extern struct ibv_srq_init_attr_ex a_srq_init_attr_ex;
extern struct ibv_ops_wr a_ops_wr;
extern struct ibv_ops_wr *a_ops_wr_p;
extern struct ibv_wq_init_attr a_wq_init_attr;

/* Puts all of them in their first state; to be called before each test. */
void cases_set_up(void);

#endif /* TEST_IBVERBS_CASES_H */
