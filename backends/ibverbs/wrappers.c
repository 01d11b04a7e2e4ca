/* SPDX-License-Identifier: MIT */
/*
 * Verbs that <infiniband/verbs.h> wraps inline: through verbs_context, whose size says which of
 * them the library has (it grows at its beginning), or through context->ops. The functions here do
 * what those wrappers do, and reach for the loaded library where they fall back on an export.
 */
#include "backends/ibverbs/library.h"
#include "backends/ibverbs/real.h"

#include <stdbool.h>
#include <string.h>

/* Without the pointer, the export; it fills the first fields only, so the rest must be zeros. */
int real_query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *port_attr,
		    size_t port_attr_size)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, query_port);
	struct ibv_port_attr whole;
	int err;

	if (vctx)
		return vctx->query_port(context, port_num, port_attr, port_attr_size);
	if (!library()->query_port)
		return EOPNOTSUPP;

	memset(&whole, 0, sizeof(whole));
	err = library()->query_port(context, port_num, (struct _compat_ibv_port_attr *)&whole);
	if (err)
		return err;
	memset(port_attr, 0, port_attr_size);
	memcpy(port_attr, &whole, port_attr_size < sizeof(whole) ? port_attr_size : sizeof(whole));
	return 0;
}

int real_query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
			 struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, query_device_ex);

	if (input && input->comp_mask)
		return EINVAL;
	if (vctx) {
		int err = vctx->query_device_ex(context, input, attr, attr_size);

		if (err != EOPNOTSUPP && err != ENOSYS)
			return err;
	}
	if (attr_size < sizeof(attr->orig_attr))
		return EINVAL;

	memset(attr, 0, attr_size);
	return real_query_device(context, &attr->orig_attr);
}

/* The caller's part of an ibv_wq, which providers leave to the wrapper. */
struct ibv_wq *real_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *wq_init_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_wq);
	struct ibv_wq *wq;

	if (!vctx)
		return no_pointer();
	wq = vctx->create_wq(context, wq_init_attr);
	if (!wq)
		return NULL;
	wq->wq_context = wq_init_attr->wq_context;
	wq->events_completed = 0;
	pthread_mutex_init(&wq->mutex, NULL);
	pthread_cond_init(&wq->cond, NULL);
	return wq;
}

/* A QP with nothing but a PD needs no extended verb; both structures begin alike. */
struct ibv_qp *real_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *qp_init_attr_ex)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_qp_ex);

	if (qp_init_attr_ex->comp_mask == IBV_QP_INIT_ATTR_PD)
		return real_create_qp(qp_init_attr_ex->pd,
				      (struct ibv_qp_init_attr *)qp_init_attr_ex);
	if (!vctx)
		return no_pointer();
	return vctx->create_qp_ex(context, qp_init_attr_ex);
}

/* Whether an SRQ needs no more than its PD says. */
static bool is_basic_srq(const struct ibv_srq_init_attr_ex *attr)
{
	uint32_t known = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;

	if ((attr->comp_mask & ~known) || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD))
		return false;
	return !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) || attr->srq_type == IBV_SRQT_BASIC;
}

struct ibv_srq *real_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *srq_init_attr_ex)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_srq_ex);

	if (is_basic_srq(srq_init_attr_ex))
		return real_create_srq(srq_init_attr_ex->pd,
				       (struct ibv_srq_init_attr *)srq_init_attr_ex);
	if (!vctx)
		return no_pointer();
	return vctx->create_srq_ex(context, srq_init_attr_ex);
}

int real_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	struct verbs_context *vctx = verbs_get_ctx_op(srq->context, post_srq_ops);

	if (!vctx) {
		*bad_op = op;
		return EOPNOTSUPP;
	}
	return vctx->post_srq_ops(srq, op, bad_op);
}

int real_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *mw_bind)
{
	const struct ibv_mw_bind_info *info = &mw_bind->bind_info;

	if (mw->type != IBV_MW_TYPE_1)
		return EINVAL;
	if (!info->mr && (info->addr || info->length))
		return EINVAL;
	if (info->mr && info->mr->pd != mw->pd)
		return EPERM;
	if (!mw->context->ops.bind_mw)
		return EOPNOTSUPP;
	return mw->context->ops.bind_mw(qp, mw, mw_bind);
}

/* --- devices --- */

int real_query_rt_values_ex(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, query_rt_values);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->query_rt_values(context, values);
}

/* --- protection domains, thread domains and XRC domains --- */

struct ibv_td *real_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, alloc_td);

	if (!vctx)
		return no_pointer();
	return vctx->alloc_td(context, init_attr);
}

int real_dealloc_td(struct ibv_td *td)
{
	struct verbs_context *vctx = verbs_get_ctx_op(td->context, dealloc_td);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->dealloc_td(td);
}

struct ibv_pd *real_alloc_parent_domain(struct ibv_context *context,
					struct ibv_parent_domain_init_attr *attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, alloc_parent_domain);

	if (!vctx)
		return no_pointer();
	return vctx->alloc_parent_domain(context, attr);
}

struct ibv_xrcd *real_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *xrcd_init_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, open_xrcd);

	if (!vctx)
		return no_pointer();
	return vctx->open_xrcd(context, xrcd_init_attr);
}

int real_close_xrcd(struct ibv_xrcd *xrcd)
{
	struct verbs_context *vctx = verbs_get_ctx_op(xrcd->context, close_xrcd);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->close_xrcd(xrcd);
}

/* --- memory regions, windows and device memory --- */

struct ibv_mr *real_alloc_null_mr(struct ibv_pd *pd)
{
	struct verbs_context *vctx = verbs_get_ctx_op(pd->context, alloc_null_mr);

	if (!vctx)
		return no_pointer();
	return vctx->alloc_null_mr(pd);
}

struct ibv_mr *real_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
			      size_t length, unsigned int access)
{
	struct verbs_context *vctx = verbs_get_ctx_op(pd->context, reg_dm_mr);

	if (!vctx)
		return no_pointer();
	return vctx->reg_dm_mr(pd, dm, dm_offset, length, access);
}

int real_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		   struct ibv_sge *sg_list, uint32_t num_sge)
{
	struct verbs_context *vctx = verbs_get_ctx_op(pd->context, advise_mr);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->advise_mr(pd, advice, flags, sg_list, num_sge);
}

struct ibv_mw *real_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct ibv_context_ops *ops = &pd->context->ops;

	if (!ops->alloc_mw)
		return no_pointer();
	return ops->alloc_mw(pd, type);
}

int real_dealloc_mw(struct ibv_mw *mw)
{
	struct ibv_context_ops *ops = &mw->context->ops;

	if (!ops->dealloc_mw)
		return EOPNOTSUPP;
	return ops->dealloc_mw(mw);
}

struct ibv_dm *real_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, alloc_dm);

	if (!vctx)
		return no_pointer();
	return vctx->alloc_dm(context, attr);
}

int real_free_dm(struct ibv_dm *dm)
{
	struct verbs_context *vctx = verbs_get_ctx_op(dm->context, free_dm);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->free_dm(dm);
}

/* --- completion channels and queues --- */

struct ibv_cq_ex *real_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *cq_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_cq_ex);

	if (!vctx)
		return no_pointer();
	return vctx->create_cq_ex(context, cq_attr);
}

int real_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(cq->context, modify_cq);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->modify_cq(cq, attr);
}

int real_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct ibv_context_ops *ops = &cq->context->ops;

	if (!ops->poll_cq)
		return minus_one();
	return ops->poll_cq(cq, num_entries, wc);
}

int real_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	struct ibv_context_ops *ops = &cq->context->ops;

	if (!ops->req_notify_cq)
		return EOPNOTSUPP;
	return ops->req_notify_cq(cq, solicited_only);
}

/* --- shared receive queues --- */

int real_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
	struct verbs_context *vctx = verbs_get_ctx_op(srq->context, get_srq_num);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->get_srq_num(srq, srq_num);
}

int real_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *recv_wr,
		       struct ibv_recv_wr **bad_recv_wr)
{
	struct ibv_context_ops *ops = &srq->context->ops;

	if (!ops->post_srq_recv)
		return EOPNOTSUPP;
	return ops->post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/* --- queue pairs --- */

struct ibv_qp *real_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *qp_open_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, open_qp);

	if (!vctx)
		return no_pointer();
	return vctx->open_qp(context, qp_open_attr);
}

int real_modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(qp->context, modify_qp_rate_limit);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->modify_qp_rate_limit(qp, attr);
}

int real_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct ibv_context_ops *ops = &qp->context->ops;

	if (!ops->post_send)
		return EOPNOTSUPP;
	return ops->post_send(qp, wr, bad_wr);
}

int real_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	struct ibv_context_ops *ops = &qp->context->ops;

	if (!ops->post_recv)
		return EOPNOTSUPP;
	return ops->post_recv(qp, wr, bad_wr);
}

/* --- work queues and receive side scaling --- */

int real_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *wq_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(wq->context, modify_wq);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->modify_wq(wq, wq_attr);
}

int real_destroy_wq(struct ibv_wq *wq)
{
	struct verbs_context *vctx = verbs_get_ctx_op(wq->context, destroy_wq);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->destroy_wq(wq);
}

struct ibv_rwq_ind_table *real_create_rwq_ind_table(struct ibv_context *context,
						    struct ibv_rwq_ind_table_init_attr *init_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_rwq_ind_table);

	if (!vctx)
		return no_pointer();
	return vctx->create_rwq_ind_table(context, init_attr);
}

int real_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table)
{
	struct verbs_context *vctx =
		verbs_get_ctx_op(rwq_ind_table->context, destroy_rwq_ind_table);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->destroy_rwq_ind_table(rwq_ind_table);
}

/* --- flows and counters --- */

struct ibv_flow *real_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *flow_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(qp->context, ibv_create_flow);

	if (!vctx)
		return no_pointer();
	return vctx->ibv_create_flow(qp, flow_attr);
}

int real_destroy_flow(struct ibv_flow *flow_id)
{
	struct verbs_context *vctx = verbs_get_ctx_op(flow_id->context, ibv_destroy_flow);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->ibv_destroy_flow(flow_id);
}

struct ibv_flow_action *real_create_flow_action_esp(struct ibv_context *context,
						    struct ibv_flow_action_esp_attr *esp)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_flow_action_esp);

	if (!vctx)
		return no_pointer();
	return vctx->create_flow_action_esp(context, esp);
}

int real_modify_flow_action_esp(struct ibv_flow_action *action,
				struct ibv_flow_action_esp_attr *esp)
{
	struct verbs_context *vctx = verbs_get_ctx_op(action->context, modify_flow_action_esp);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->modify_flow_action_esp(action, esp);
}

int real_destroy_flow_action(struct ibv_flow_action *action)
{
	struct verbs_context *vctx = verbs_get_ctx_op(action->context, destroy_flow_action);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->destroy_flow_action(action);
}

struct ibv_counters *real_create_counters(struct ibv_context *context,
					  struct ibv_counters_init_attr *init_attr)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, create_counters);

	if (!vctx)
		return no_pointer();
	return vctx->create_counters(context, init_attr);
}

int real_destroy_counters(struct ibv_counters *counters)
{
	struct verbs_context *vctx = verbs_get_ctx_op(counters->context, destroy_counters);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->destroy_counters(counters);
}

int real_attach_counters_point_flow(struct ibv_counters *counters,
				    struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct verbs_context *vctx =
		verbs_get_ctx_op(counters->context, attach_counters_point_flow);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->attach_counters_point_flow(counters, attr, flow);
}

int real_read_counters(struct ibv_counters *counters, uint64_t *counters_value, uint32_t ncounters,
		       uint32_t flags)
{
	struct verbs_context *vctx = verbs_get_ctx_op(counters->context, read_counters);

	if (!vctx)
		return EOPNOTSUPP;
	return vctx->read_counters(counters, counters_value, ncounters, flags);
}
