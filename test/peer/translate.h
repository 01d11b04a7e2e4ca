/* SPDX-License-Identifier: MIT */
/* What the arguments of a verb are, and how their objects become those of B's process and back. */
#ifndef TEST_PEER_TRANSLATE_H
#define TEST_PEER_TRANSLATE_H

#include "test/peer/exchange.h"

/* The type of an argument. Those below KINDS are objects of that kind. */
enum type {
	TYPE_NUMBER = KIND_NONE,
	TYPE_MEMORY = KINDS, /* that the verb reads or writes, without objects in it */
	TYPE_CQ_PLACE,	     /* where get_cq_event writes a CQ */
	TYPE_CM_ID_PLACE,    /* where cm_create_id writes an identifier */
	TYPE_CM_EVENT_PLACE, /* where cm_get_cm_event writes an event */
	TYPE_EVENT,
	TYPE_QP_INIT,
	TYPE_QP_INIT_EX,
	TYPE_QP_OPEN,
	TYPE_SRQ_INIT_EX,
	TYPE_CQ_INIT_EX,
	TYPE_PARENT_DOMAIN,
	TYPE_XRCD_INIT,
	TYPE_SEND,
	TYPE_RECV,
	TYPE_MW_BIND,
	TYPE_BIND_INFO,
};

/* A pointer's class, in GCC and in Clang. */
#define POINTER_CLASS 5

/* clang-format off */
#define TYPE_OF(x)                                       \
	_Generic((x),                                    \
		struct ibv_device **: KIND_LIST,         \
		struct ibv_device *: KIND_DEVICE,        \
		struct ibv_context *: KIND_CONTEXT,      \
		struct ibv_pd *: KIND_PD,                \
		struct ibv_td *: KIND_TD,                \
		struct ibv_xrcd *: KIND_XRCD,            \
		struct ibv_mr *: KIND_MR,                \
		struct ibv_mw *: KIND_MW,                \
		struct ibv_dm *: KIND_DM,                \
		struct ibv_comp_channel *: KIND_CHANNEL, \
		struct ibv_cq *: KIND_CQ,                \
		struct ibv_cq_ex *: KIND_CQ_EX,          \
		struct ibv_srq *: KIND_SRQ,              \
		struct ibv_qp *: KIND_QP,                \
		struct ibv_qp_ex *: KIND_QP_EX,          \
		struct ibv_ah *: KIND_AH,                \
		struct ibv_wq *: KIND_WQ,                \
		struct ibv_rwq_ind_table *: KIND_IND_TABLE, \
		struct rdma_event_channel *: KIND_CM_CHANNEL, \
		struct rdma_cm_id *: KIND_CM_ID,         \
		struct rdma_cm_event *: KIND_CM_EVENT,   \
		struct rdma_cm_id **: TYPE_CM_ID_PLACE,  \
		struct rdma_cm_event **: TYPE_CM_EVENT_PLACE, \
		struct ibv_cq **: TYPE_CQ_PLACE,         \
		struct ibv_async_event *: TYPE_EVENT,    \
		struct ibv_qp_init_attr *: TYPE_QP_INIT, \
		struct ibv_qp_init_attr_ex *: TYPE_QP_INIT_EX,   \
		struct ibv_qp_open_attr *: TYPE_QP_OPEN,         \
		struct ibv_srq_init_attr_ex *: TYPE_SRQ_INIT_EX, \
		struct ibv_cq_init_attr_ex *: TYPE_CQ_INIT_EX,   \
		struct ibv_parent_domain_init_attr *: TYPE_PARENT_DOMAIN, \
		struct ibv_xrcd_init_attr *: TYPE_XRCD_INIT,     \
		struct ibv_send_wr *: TYPE_SEND,         \
		struct ibv_recv_wr *: TYPE_RECV,         \
		struct ibv_mw_bind *: TYPE_MW_BIND,      \
		const struct ibv_mw_bind_info *: TYPE_BIND_INFO, \
		default: __builtin_classify_type(x) == POINTER_CLASS ? TYPE_MEMORY : TYPE_NUMBER)
/* clang-format on */

/* TYPE_OF() of each argument, separated by commas, for a row of verbs.def: { TYPES arguments }. */
#define TYPES(...)                                                                           \
	NUMBERS_PICK(0, ##__VA_ARGS__, TYPES_6, TYPES_5, TYPES_4, TYPES_3, TYPES_2, TYPES_1, \
		     NUMBERS_0)                                                              \
	(__VA_ARGS__)
#define TYPES_1(a)		  TYPE_OF(a)
#define TYPES_2(a, b)		  TYPES_1(a), TYPE_OF(b)
#define TYPES_3(a, b, c)	  TYPES_2(a, b), TYPE_OF(c)
#define TYPES_4(a, b, c, d)	  TYPES_3(a, b, c), TYPE_OF(d)
#define TYPES_5(a, b, c, d, e)	  TYPES_4(a, b, c, d), TYPE_OF(e)
#define TYPES_6(a, b, c, d, e, f) TYPES_5(a, b, c, d, e), TYPE_OF(f)

/* A call, before it is translated. */
struct call {
	enum row row;
	const unsigned char *types; /* enum type */
	const uint64_t *values;
	unsigned int count;
};

/*
 * Returns NULL if B's process has all objects and all memory of the call; else why the call cannot be
 * relayed.
 */
const char *translate_check(const struct call *call);

/* Fills the arguments and the mirrors of the exchange. Structures of the call name real objects until
 * translate_back(). */
void translate(const struct call *call, struct exchange *exchange);
/* good: the verb has succeeded, so that it has written its answers. */
void translate_back(const struct call *call, bool good);

#endif
