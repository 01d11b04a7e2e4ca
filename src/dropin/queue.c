/* SPDX-License-Identifier: MIT */
#include "src/dropin/dropin.h"

#include <verbena/verbs.h>

struct ibv_comp_channel *dropin_create_comp_channel(struct ibv_context *context)
{
	return vb_create_comp_channel(context);
}

int dropin_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return vb_destroy_comp_channel(channel);
}

struct ibv_cq *dropin_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				struct ibv_comp_channel *channel, int comp_vector)
{
	return vb_create_cq(context, cqe, cq_context, channel, comp_vector);
}

int dropin_resize_cq(struct ibv_cq *cq, int cqe)
{
	return vb_resize_cq(cq, cqe);
}

int dropin_destroy_cq(struct ibv_cq *cq)
{
	return vb_destroy_cq(cq);
}

int dropin_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	return vb_get_cq_event(channel, cq, cq_context);
}

void dropin_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	vb_ack_cq_events(cq, nevents);
}

struct ibv_srq *dropin_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *srq_init_attr)
{
	return vb_create_srq(pd, srq_init_attr);
}

int dropin_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int srq_attr_mask)
{
	return vb_modify_srq(srq, srq_attr, srq_attr_mask);
}

int dropin_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr)
{
	return vb_query_srq(srq, srq_attr);
}

int dropin_destroy_srq(struct ibv_srq *srq)
{
	return vb_destroy_srq(srq);
}

struct ibv_qp *dropin_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	return vb_create_qp(pd, qp_init_attr);
}

struct ibv_qp_ex *dropin_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vb_qp_to_qp_ex(qp);
}

int dropin_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	return vb_modify_qp(qp, attr, attr_mask);
}

int dropin_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		    struct ibv_qp_init_attr *init_attr)
{
	return vb_query_qp(qp, attr, attr_mask, init_attr);
}

int dropin_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return vb_query_qp_data_in_order(qp, op, flags);
}

int dropin_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return vb_set_ece(qp, ece);
}

int dropin_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return vb_query_ece(qp, ece);
}

int dropin_destroy_qp(struct ibv_qp *qp)
{
	return vb_destroy_qp(qp);
}

int dropin_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return vb_attach_mcast(qp, gid, lid);
}

int dropin_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return vb_detach_mcast(qp, gid, lid);
}

struct ibv_ah *dropin_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return vb_create_ah(pd, attr);
}

int dropin_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
			   struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	return vb_init_ah_from_wc(context, port_num, wc, grh, ah_attr);
}

struct ibv_ah *dropin_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
					uint8_t port_num)
{
	return vb_create_ah_from_wc(pd, wc, grh, port_num);
}

int dropin_destroy_ah(struct ibv_ah *ah)
{
	return vb_destroy_ah(ah);
}
