/* SPDX-License-Identifier: MIT */
#include "test/peer/translate.h"

#include "test/peer/memory.h"

#define FOREIGN_OBJECT                                                                        \
	"two processes: the test gives B an object that is not B's, or changes a copy of an " \
	"object"
#define FOREIGN_MEMORY "two processes: the test gives B memory that only its own process has"
#define LIST_LOOP      "two processes: the list of work requests is a loop"

/* A longer list is a loop. */
#define LIST_MAX 100000

/* --- the objects in a structure --- */

typedef void visit_fn(void **object, void *arg);

#define VISIT(field) visit((void **)&(field), arg)

static void visit_qp_init_ex(struct ibv_qp_init_attr_ex *init, visit_fn *visit, void *arg)
{
	VISIT(init->send_cq);
	VISIT(init->recv_cq);
	VISIT(init->srq);
	if (init->comp_mask & IBV_QP_INIT_ATTR_PD)
		VISIT(init->pd);
	if (init->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		VISIT(init->xrcd);
	if (init->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		VISIT(init->rwq_ind_tbl);
}

static void visit_srq_init_ex(struct ibv_srq_init_attr_ex *init, visit_fn *visit, void *arg)
{
	if (init->comp_mask & IBV_SRQ_INIT_ATTR_PD)
		VISIT(init->pd);
	if (init->comp_mask & IBV_SRQ_INIT_ATTR_XRCD)
		VISIT(init->xrcd);
	if (init->comp_mask & IBV_SRQ_INIT_ATTR_CQ)
		VISIT(init->cq);
}

static void visit_sends(struct ibv_send_wr *wr, int type, visit_fn *visit, void *arg)
{
	for (; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_BIND_MW) {
			VISIT(wr->bind_mw.mw);
			VISIT(wr->bind_mw.bind_info.mr);
		} else if (type == IBV_QPT_UD) {
			VISIT(wr->wr.ud.ah);
		}
}

/* The members of event->element share one place; `man ibv_get_async_event` says which are objects. */
static void visit_event(struct ibv_async_event *event, visit_fn *visit, void *arg)
{
	switch (event->event_type) {
	case IBV_EVENT_CQ_ERR:
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
	case IBV_EVENT_WQ_FATAL:
		VISIT(event->element.qp);
		break;
	default:
		break;
	}
}

/* Calls visit() for each object that argument number i names. */
static void visit_argument(const struct call *call, unsigned int i, visit_fn *visit, void *arg)
{
	void *at = (void *)(uintptr_t)call->values[i];

	if (!at)
		return;
	switch (call->types[i]) {
	case TYPE_CQ_PLACE:
		VISIT(*(struct ibv_cq **)at);
		break;
	case TYPE_CM_ID_PLACE:
		VISIT(*(struct rdma_cm_id **)at);
		break;
	case TYPE_CM_EVENT_PLACE:
		VISIT(*(struct rdma_cm_event **)at);
		break;
	case TYPE_EVENT:
		visit_event(at, visit, arg);
		break;
	case TYPE_QP_INIT:
		VISIT(((struct ibv_qp_init_attr *)at)->send_cq);
		VISIT(((struct ibv_qp_init_attr *)at)->recv_cq);
		VISIT(((struct ibv_qp_init_attr *)at)->srq);
		break;
	case TYPE_QP_INIT_EX:
		visit_qp_init_ex(at, visit, arg);
		break;
	case TYPE_QP_OPEN:
		if (((struct ibv_qp_open_attr *)at)->comp_mask & IBV_QP_OPEN_ATTR_XRCD)
			VISIT(((struct ibv_qp_open_attr *)at)->xrcd);
		break;
	case TYPE_SRQ_INIT_EX:
		visit_srq_init_ex(at, visit, arg);
		break;
	case TYPE_CQ_INIT_EX:
		VISIT(((struct ibv_cq_init_attr_ex *)at)->channel);
		if (((struct ibv_cq_init_attr_ex *)at)->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
			VISIT(((struct ibv_cq_init_attr_ex *)at)->parent_domain);
		break;
	case TYPE_PARENT_DOMAIN:
		VISIT(((struct ibv_parent_domain_init_attr *)at)->pd);
		VISIT(((struct ibv_parent_domain_init_attr *)at)->td);
		break;
	case TYPE_SEND:
		visit_sends(at, ((struct ibv_qp *)(uintptr_t)call->values[0])->qp_type, visit, arg);
		break;
	case TYPE_MW_BIND:
		VISIT(((struct ibv_mw_bind *)at)->bind_info.mr);
		break;
	case TYPE_BIND_INFO:
		VISIT(((struct ibv_mw_bind_info *)at)->mr);
		break;
	default:
		break;
	}
}

/* Returns true if the verb only writes the argument: what stands there before has no meaning. */
static bool is_answer(const struct call *call, unsigned int i)
{
	return call->types[i] == TYPE_CQ_PLACE || call->types[i] == TYPE_CM_ID_PLACE ||
	       call->types[i] == TYPE_CM_EVENT_PLACE ||
	       (call->types[i] == TYPE_EVENT && call->row == ROW_get_async_event) ||
	       (call->types[i] == TYPE_QP_INIT && call->row == ROW_query_qp);
}

/* --- checks --- */

static bool is_common(const void *address)
{
	return !address || memory_is_common(address);
}

static void check_object(void **object, void *arg)
{
	const char **why = arg;

	if (*object && !mirror_of(*object))
		*why = FOREIGN_OBJECT;
}

static const char *check_sges(const struct ibv_sge *sges, int count, bool is_inline)
{
	if (count > 0 && !is_common(sges))
		return FOREIGN_MEMORY;
	for (int i = 0; is_inline && sges && i < count; i++)
		if (!is_common((const void *)(uintptr_t)sges[i].addr))
			return FOREIGN_MEMORY;
	return NULL;
}

static const char *check_sends(const struct ibv_send_wr *wr)
{
	const char *why = NULL;

	for (unsigned int i = 0; !why && wr; wr = wr->next, i++) {
		why = i == LIST_MAX ? LIST_LOOP : is_common(wr) ? NULL : FOREIGN_MEMORY;
		if (!why)
			why = check_sges(wr->sg_list, wr->num_sge,
					 wr->send_flags & IBV_SEND_INLINE);
	}
	return why;
}

static const char *check_recvs(const struct ibv_recv_wr *wr)
{
	const char *why = NULL;

	for (unsigned int i = 0; !why && wr; wr = wr->next, i++) {
		why = i == LIST_MAX ? LIST_LOOP : is_common(wr) ? NULL : FOREIGN_MEMORY;
		if (!why)
			why = check_sges(wr->sg_list, wr->num_sge, false);
	}
	return why;
}

/* Returns true for the test's own pointer: the only one of these functions that names no object. */
static bool is_context(const struct call *call, unsigned int i)
{
	return call->types[i] == TYPE_MEMORY &&
	       (call->row == ROW_create_cq || call->row == ROW_cm_create_id ||
		(call->row == ROW_cm_join_multicast && i == 2) ||
		(call->row == ROW_cm_join_multicast_ex && i == 2));
}

static const char *check_param(const struct rdma_conn_param *param)
{
	return is_common(param) && (!param || is_common(param->private_data)) ? NULL
									      : FOREIGN_MEMORY;
}

static const char *check_argument(const struct call *call, unsigned int i)
{
	const void *at = (const void *)(uintptr_t)call->values[i];
	const char *why = NULL;

	if (call->types[i] == TYPE_NUMBER || is_context(call, i))
		return NULL;
	if (call->row == ROW_cm_connect || call->row == ROW_cm_accept)
		why = check_param((const void *)(uintptr_t)call->values[1]);
	if (why)
		return why;
	if (call->types[i] < KINDS)
		return !at || mirror_of(at) ? NULL : FOREIGN_OBJECT;
	if (!is_common(at))
		return FOREIGN_MEMORY;
	if (call->types[i] == TYPE_SEND)
		why = check_sends(at);
	else if (call->types[i] == TYPE_RECV)
		why = check_recvs(at);
	if (!why && !is_answer(call, i))
		visit_argument(call, i, check_object, &why);
	return why;
}

const char *translate_check(const struct call *call)
{
	const char *why = NULL;

	for (unsigned int i = 0; !why && i < call->count; i++)
		why = check_argument(call, i);
	return why;
}

/* --- translation --- */

static void name_real(void **object, void *arg)
{
	const struct mirror *mirror = mirror_of(*object);

	if (mirror)
		*object = mirror->real;
}

static void name_mirror(void **object, void *arg)
{
	*object = mirror_shown(*object);
}

/* The windows that a call binds get new keys. */
struct windows {
	struct exchange *exchange;
	unsigned int used; /* of exchange->mirrors */
};

static void note_window(void **object, void *arg)
{
	struct windows *windows = arg;
	struct mirror *mirror = mirror_of(*object);

	if (mirror && mirror->kind == KIND_MW && windows->used < MIRRORS_MAX)
		windows->exchange->mirrors[windows->used++] = mirror;
}

void translate(const struct call *call, struct exchange *exchange)
{
	struct windows windows = {exchange, ARGUMENTS_MAX};

	for (unsigned int i = 0; i < call->count; i++) {
		struct mirror *mirror = NULL;

		if (call->types[i] != TYPE_NUMBER && call->types[i] < KINDS)
			mirror = mirror_of((const void *)(uintptr_t)call->values[i]);
		exchange->mirrors[i] = mirror;
		exchange->arguments[i] = mirror ? NUMBER(mirror->real) : call->values[i];
		if (is_answer(call, i))
			continue;
		visit_argument(call, i, note_window, &windows);
		visit_argument(call, i, name_real, NULL);
	}
	for (unsigned int i = call->count; i < ARGUMENTS_MAX; i++)
		exchange->mirrors[i] = NULL;
	for (unsigned int i = windows.used; i < MIRRORS_MAX; i++)
		exchange->mirrors[i] = NULL;
}

void translate_back(const struct call *call, bool good)
{
	for (unsigned int i = 0; i < call->count; i++)
		if (good || !is_answer(call, i))
			visit_argument(call, i, name_mirror, NULL);
}
