/* SPDX-License-Identifier: MIT */
#include "backends/sim/verb/unsupported.h"

#include "backends/sim/world/say.h"
#include "sim/profile/profile.h"

#include <errno.h>

static int refuse(const char *verb)
{
	return say(EOPNOTSUPP, "%s: the device does not have this verb", verb);
}

static void *refuse_null(const char *verb)
{
	errno = refuse(verb);
	return NULL;
}

/* --- NULL with errno --- */

static struct ibv_counters *create_counters(struct ibv_context *context,
					    struct ibv_counters_init_attr *init_attr)
{
	return refuse_null(__func__);
}

static struct ibv_flow_action *create_flow_action_esp(struct ibv_context *context,
						      struct ibv_flow_action_esp_attr *attr)
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

static struct ibv_dm *alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_td *alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
					  struct ibv_parent_domain_init_attr *attr)
{
	return refuse_null(__func__);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	return refuse_null(__func__);
}

/* --- errno returned --- */

static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
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

/* --- errno returned, and the first one not posted --- */

static int post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	*bad_op = op;
	return refuse(__func__);
}

static const struct verbs_context none = {
	.create_counters = create_counters,
	.create_flow_action_esp = create_flow_action_esp,
	.create_rwq_ind_table = create_rwq_ind_table,
	.create_wq = create_wq,
	.ibv_create_flow = create_flow,
	.read_counters = read_counters,
	.attach_counters_point_flow = attach_counters_point_flow,
	.destroy_counters = destroy_counters,
	.modify_flow_action_esp = modify_flow_action_esp,
	.destroy_flow_action = destroy_flow_action,
	.modify_qp_rate_limit = modify_qp_rate_limit,
	.destroy_rwq_ind_table = destroy_rwq_ind_table,
	.destroy_wq = destroy_wq,
	.modify_wq = modify_wq,
	.ibv_destroy_flow = destroy_flow,
	.post_srq_ops = post_srq_ops,
};

void unsupported_fill(struct verbs_context *verbs)
{
	*verbs = none;
}

void unsupported_take_out(struct verbs_context *verbs, unsigned int lacks)
{
	if (lacks & SIM_LACKS_DEVICE_MEMORY)
		verbs->alloc_dm = alloc_dm;
	if (lacks & SIM_LACKS_DOMAINS) {
		verbs->alloc_td = alloc_td;
		verbs->alloc_parent_domain = alloc_parent_domain;
	}
	if (lacks & SIM_LACKS_NULL_REGIONS)
		verbs->alloc_null_mr = alloc_null_mr;
	if (lacks & SIM_LACKS_TIMESTAMPS)
		verbs->query_rt_values = query_rt_values;
}
