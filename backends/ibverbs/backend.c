/* SPDX-License-Identifier: MIT */
/*
 * The verbs of the real libibverbs. pass_<verb>() hands a call to the library or to the device's
 * provider, as the verb's row in verbs.def says, and returns the answer. If the library's header or
 * Verbena does more for a verb, wrap_<verb>() does that and calls pass_<verb>().
 */
#include "backends/ibverbs/backend.h"

#include "backends/ibverbs/library.h"
#include "backends/ibverbs/load.h"
#include "backends/ibverbs/rdmacm.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Returns the errno value for a verb that the library or the provider does not have, and keeps the
 * reason. Without a library it is ENOSYS, like libibverbs on a kernel without RDMA support: man
 * ibv_get_device_list(3).
 */
static int missing(const char *verb)
{
	if (library_loaded())
		return load_fail(EOPNOTSUPP, verb,
				 (struct vb_why){.reason = VB_WHY_VERB_LACKING,
						 .text = "libibverbs or the driver of the device"});
	return load_fail(ENOSYS, verb, library_why());
}

/* --- handing calls on --- */

/* What a missing verb answers, by its convention; called with the verb's arguments, where `missed`
 * is its errno. */
#define MISSING_ERRNO(...) return missed
#define MISSING_POSTED(queue, request, bad) \
	*(bad) = (request);                 \
	return missed
#define MISSING_NEGATED(...) return (-missed)
#define MISSING_NOTHING(...) \
	(void)missed;        \
	return
#define MISSING_ANSWER(...) \
	(void)missed;       \
	return 0
#define MISSING_WITH(answer) \
	errno = missed;      \
	return answer
#define MISSING_POINTER(...)   MISSING_WITH(NULL)
#define MISSING_OPTIONAL(...)  MISSING_WITH(NULL)
#define MISSING_MINUS_ONE(...) MISSING_WITH(-1)
#define MISSING_REREG(...)     MISSING_WITH(IBV_REREG_MR_ERR_INPUT)

/* The context of a row's object. */
#define CONTEXT_OF_CONTEXT(object) (object)
#define CONTEXT_OF_OBJECT(object)  ((object)->context)
#define CONTEXT_OF_INLINE(object)  ((object)->context)

#define PASS(result, name, parameters, arguments, convention, pointer) \
	static result pass_##name parameters                           \
	{                                                              \
		__typeof__(result parameters) *verb = pointer;         \
                                                                       \
		load_begin();                                          \
		if (!verb) {                                           \
			const int missed = missing(#name);             \
                                                                       \
			MISSING_##convention arguments;                \
		}                                                      \
		return verb arguments;                                 \
	}

/* NULL if the context has no such operation: verbs_context::sz says which operations it has. */
#define EXTENDED(context, op)                                                   \
	({                                                                      \
		struct verbs_context *extended = verbs_get_ctx_op(context, op); \
		extended ? extended->op : NULL;                                 \
	})

#define VB_EXPORT(result, name, parameters, arguments, convention, by, object, symbol, version) \
	PASS(result, name, parameters, arguments, convention, library()->symbol)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	PASS(result, name, parameters, arguments, convention, EXTENDED(CONTEXT_OF_##by(object), op))
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	PASS(result, name, parameters, arguments, convention, CONTEXT_OF_##by(object)->ops.name)
#include <verbena/verbs.def>

/* --- the verbs with a wrapper --- */

static struct ibv_device **wrap_get_device_list(int *num_devices)
{
	struct ibv_device **list = pass_get_device_list(num_devices);

	if (!list && errno == ENOSYS && library_loaded())
		load_fail(ENOSYS, "get_device_list", (struct vb_why){VB_WHY_KERNEL_WITHOUT_RDMA});
	return list;
}

/* These two do what the header's macros do: the exports do not know the optional flags. */
static struct ibv_mr *wrap_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	if (access & IBV_ACCESS_OPTIONAL_RANGE)
		return pass_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
	return pass_reg_mr(pd, addr, length, access);
}

static struct ibv_mr *wrap_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				       int access)
{
	if (access & IBV_ACCESS_OPTIONAL_RANGE)
		return pass_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
	return pass_reg_mr_iova(pd, addr, length, iova, access);
}

/* Falls back on the export, which fills the first fields only; the others are then 0. */
static int wrap_query_port(struct ibv_context *context, uint8_t port_num,
			   struct ibv_port_attr *port_attr, size_t port_attr_size)
{
	struct ibv_port_attr whole = {0};
	int err;

	if (verbs_get_ctx_op(context, query_port))
		return pass_query_port(context, port_num, port_attr, port_attr_size);
	if (!library()->short_query_port)
		return missing("query_port");

	load_begin();
	err = library()->short_query_port(context, port_num,
					  (struct _compat_ibv_port_attr *)&whole);
	if (err)
		return err;
	memset(port_attr, 0, port_attr_size);
	memcpy(port_attr, &whole, port_attr_size < sizeof(whole) ? port_attr_size : sizeof(whole));
	return 0;
}

/* Falls back on query_device. A provider without the verb answers EOPNOTSUPP, an old one ENOSYS. */
static int wrap_query_device_ex(struct ibv_context *context,
				const struct ibv_query_device_ex_input *input,
				struct ibv_device_attr_ex *attr, size_t attr_size)
{
	int err;

	if (input && input->comp_mask)
		return load_fail(EINVAL, "query_device_ex",
				 (struct vb_why){VB_WHY_QUERY_INPUT, {input->comp_mask}});
	err = pass_query_device_ex(context, input, attr, attr_size);
	if (err != EOPNOTSUPP && err != ENOSYS)
		return err;
	if (attr_size < sizeof(attr->orig_attr))
		return load_fail(
			EINVAL, "query_device_ex",
			(struct vb_why){VB_WHY_QUERY_SIZE, {attr_size, sizeof(attr->orig_attr)}});

	memset(attr, 0, attr_size);
	return pass_query_device(context, &attr->orig_attr);
}

/* Fills the fields that providers leave to the caller. */
static struct ibv_wq *wrap_create_wq(struct ibv_context *context,
				     struct ibv_wq_init_attr *wq_init_attr)
{
	struct ibv_wq *wq = pass_create_wq(context, wq_init_attr);

	if (!wq)
		return NULL;
	wq->wq_context = wq_init_attr->wq_context;
	wq->events_completed = 0;
	pthread_mutex_init(&wq->mutex, NULL);
	pthread_cond_init(&wq->cond, NULL);
	return wq;
}

/* A QP with only a PD needs no extended verb. Both structures begin with the same fields. */
static struct ibv_qp *wrap_create_qp_ex(struct ibv_context *context,
					struct ibv_qp_init_attr_ex *qp_init_attr_ex)
{
	if (qp_init_attr_ex->comp_mask == IBV_QP_INIT_ATTR_PD)
		return pass_create_qp(qp_init_attr_ex->pd,
				      (struct ibv_qp_init_attr *)qp_init_attr_ex);
	return pass_create_qp_ex(context, qp_init_attr_ex);
}

/* Returns true if the SRQ is a basic one with only a PD, which create_srq can create. */
static bool is_basic_srq(const struct ibv_srq_init_attr_ex *attr)
{
	uint32_t known = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;

	if ((attr->comp_mask & ~known) || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return false;
	return !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC;
}

static struct ibv_srq *wrap_create_srq_ex(struct ibv_context *context,
					  struct ibv_srq_init_attr_ex *srq_init_attr_ex)
{
	if (is_basic_srq(srq_init_attr_ex))
		return pass_create_srq(srq_init_attr_ex->pd,
				       (struct ibv_srq_init_attr *)srq_init_attr_ex);
	return pass_create_srq_ex(context, srq_init_attr_ex);
}

static int wrap_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	const struct ibv_mw_bind_info *info = &mw_bind->bind_info;

	if (mw->type != IBV_MW_TYPE_1)
		return load_fail(EINVAL, "bind_mw",
				 (struct vb_why){VB_WHY_BIND_MW_TYPE, {mw->rkey}});
	if (!info->mr && (info->addr || info->length))
		return load_fail(EINVAL, "bind_mw",
				 (struct vb_why){VB_WHY_BIND_MW_NO_MR, {info->length, info->addr}});
	if (info->mr && info->mr->pd != mw->pd)
		return load_fail(EPERM, "bind_mw",
				 (struct vb_why){VB_WHY_BIND_MW_PD, {info->mr->lkey, mw->rkey}});
	return pass_bind_mw(qp, mw, mw_bind);
}

/* The initialisers of the wrapping functions come later and replace those of the table. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"

const struct vb_backend vb_backend_ibverbs = {
	.name = "ibverbs",
	.description = "the real libibverbs and its devices",
	.last_why = load_last_why,
	.cm = &rdmacm_backend,
#define VB_VERB(result, name, parameters, arguments, convention, by, object) .name = pass_##name,
#include <verbena/verbs.def>
	.get_device_list = wrap_get_device_list,
	.query_port = wrap_query_port,
	.query_device_ex = wrap_query_device_ex,
	.reg_mr = wrap_reg_mr,
	.reg_mr_iova = wrap_reg_mr_iova,
	.bind_mw = wrap_bind_mw,
	.create_srq_ex = wrap_create_srq_ex,
	.create_qp_ex = wrap_create_qp_ex,
	.create_wq = wrap_create_wq,
};

#pragma GCC diagnostic pop
