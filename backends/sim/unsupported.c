/* SPDX-License-Identifier: MIT */
#include "unsupported.h"

#include "say.h"

#include <errno.h>

static int refuse(const char *verb)
{
	return say(EOPNOTSUPP, "%s: the simulator does not have this verb", verb);
}

static void *refuse_null(const char *verb)
{
	errno = refuse(verb);
	return NULL;
}

/* --- NULL with errno --- */

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	return refuse_null(__func__);
}

static struct ibv_counters *create_counters(struct ibv_context *context,
					    struct ibv_counters_init_attr *init_attr)
{
	return refuse_null(__func__);
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t dm_offset,
				size_t length, unsigned int access)
{
	return refuse_null(__func__);
}

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_flow_action *create_flow_action_esp(struct ibv_context *context,
						      struct ibv_flow_action_esp_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
					  struct ibv_parent_domain_init_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *init_attr)
{
	return refuse_null(__func__);
}

static struct ibv_rwq_ind_table *create_rwq_ind_table(struct ibv_context *context,
						      struct ibv_rwq_ind_table_init_attr *init_attr)
{
	return refuse_null(__func__);
}

static struct ibv_wq *create_wq(struct ibv_context *context, struct ibv_wq_init_attr *init_attr)
{
	return refuse_null(__func__);
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_qp *open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_srq *create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	return refuse_null(__func__);
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	return refuse_null(__func__);
}

/* --- errno returned --- */

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *sg_list, uint32_t num_sge)
{
	return refuse(__func__);
}

static int read_counters(struct ibv_counters *counters, uint64_t *values, uint32_t count,
			 uint32_t flags)
{
	return refuse(__func__);
}

static int attach_counters_point_flow(struct ibv_counters *counters,
				      struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	return refuse(__func__);
}

static int destroy_counters(struct ibv_counters *counters)
{
	return refuse(__func__);
}

static int free_dm(struct ibv_dm *dm)
{
	return refuse(__func__);
}

static int modify_flow_action_esp(struct ibv_flow_action *action,
				  struct ibv_flow_action_esp_attr *attr)
{
	return refuse(__func__);
}

static int destroy_flow_action(struct ibv_flow_action *action)
{
	return refuse(__func__);
}

static int modify_qp_rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	return refuse(__func__);
}

static int dealloc_td(struct ibv_td *td)
{
	return refuse(__func__);
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	return refuse(__func__);
}

static int destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	return refuse(__func__);
}

static int destroy_wq(struct ibv_wq *wq)
{
	return refuse(__func__);
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	return refuse(__func__);
}

static int destroy_flow(struct ibv_flow *flow)
{
	return refuse(__func__);
}

static int get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	return refuse(__func__);
}

static int close_xrcd(struct ibv_xrcd *xrcd)
{
	return refuse(__func__);
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return refuse(__func__);
}

static int dealloc_mw(struct ibv_mw *mw)
{
	return refuse(__func__);
}

/* --- errno returned, and the first one not posted --- */

static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	*bad_op = op;
	return refuse(__func__);
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	*bad_wr = wr;
	return refuse(__func__);
}

static const struct verbs_context none = {
	.alloc_null_mr = alloc_null_mr,
	.create_counters = create_counters,
	.reg_dm_mr = reg_dm_mr,
	.alloc_dm = alloc_dm,
	.create_flow_action_esp = create_flow_action_esp,
	.alloc_parent_domain = alloc_parent_domain,
	.alloc_td = alloc_td,
	.create_rwq_ind_table = create_rwq_ind_table,
	.create_wq = create_wq,
	.ibv_create_flow = create_flow,
	.open_qp = open_qp,
	.create_srq_ex = create_srq_ex,
	.open_xrcd = open_xrcd,
	.advise_mr = advise_mr,
	.read_counters = read_counters,
	.attach_counters_point_flow = attach_counters_point_flow,
	.destroy_counters = destroy_counters,
	.free_dm = free_dm,
	.modify_flow_action_esp = modify_flow_action_esp,
	.destroy_flow_action = destroy_flow_action,
	.modify_qp_rate_limit = modify_qp_rate_limit,
	.dealloc_td = dealloc_td,
	.modify_cq = modify_cq,
	.destroy_rwq_ind_table = destroy_rwq_ind_table,
	.destroy_wq = destroy_wq,
	.modify_wq = modify_wq,
	.ibv_destroy_flow = destroy_flow,
	.get_srq_num = get_srq_num,
	.close_xrcd = close_xrcd,
	.post_srq_ops = post_srq_ops,
	.context.ops =
		{
			.alloc_mw = alloc_mw,
			.bind_mw = bind_mw,
			.dealloc_mw = dealloc_mw,
			.post_srq_recv = post_srq_recv,
		},
};

void unsupported_fill(struct verbs_context *verbs)
{
	*verbs = none;
}
