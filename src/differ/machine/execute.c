/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/machine.h"

#include <errno.h>
#include <string.h>

typedef void execute_fn(struct vd_machine *machine, const struct vd_step *step,
			struct vd_object *object, struct vd_outcome *outcome);

/* A verb that makes: the object goes into its slot, or errno is the answer. */
static bool made(struct vd_object *object, void *pointer, struct vd_outcome *outcome)
{
	if (!pointer) {
		outcome->answer = errno;
		return false;
	}
	*object = (struct vd_object){.pointer = pointer};
	return true;
}

/* A verb that ends: keys and numbers stay, since a program may use them still. */
static void ended(struct vd_object *object, int answer, struct vd_outcome *outcome)
{
	outcome->answer = answer;
	if (!answer)
		object->pointer = NULL;
}

/* --- domains and memory --- */

static void alloc_pd(struct vd_machine *machine, const struct vd_step *step,
		     struct vd_object *object, struct vd_outcome *outcome)
{
	made(object, vb_alloc_pd(machine->context), outcome);
}

static void dealloc_pd(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_dealloc_pd(object->pointer), outcome);
}

static void take_keys(struct vd_object *object)
{
	const struct ibv_mr *mr = object->pointer;

	object->lkey = mr->lkey;
	object->rkey = mr->rkey;
}

static void reg_mr(struct vd_machine *machine, const struct vd_step *step, struct vd_object *object,
		   struct vd_outcome *outcome)
{
	struct ibv_pd *pd = vd_object(machine, VD_PD, step->pd)->pointer;

	if (!pd)
		outcome->answer = VD_SKIPPED;
	else if (made(object,
		      vb_reg_mr(pd, vd_address(machine, step->at), step->length, (int)step->access),
		      outcome))
		take_keys(object);
}

static void rereg_mr(struct vd_machine *machine, const struct vd_step *step,
		     struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_pd *pd = vd_object(machine, VD_PD, step->pd)->pointer;
	int code;

	if (!pd) {
		outcome->answer = VD_SKIPPED;
		return;
	}
	code = vb_rereg_mr(object->pointer, (int)step->flags, pd, vd_address(machine, step->at),
			   step->length, (int)step->access);
	outcome->answer = code ? errno : 0;
	outcome->values[outcome->value_count++] = (uint32_t)code;
	take_keys(object);
}

static void dereg_mr(struct vd_machine *machine, const struct vd_step *step,
		     struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_dereg_mr(object->pointer), outcome);
}

static void alloc_mw(struct vd_machine *machine, const struct vd_step *step,
		     struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_pd *pd = vd_object(machine, VD_PD, step->pd)->pointer;

	if (!pd)
		outcome->answer = VD_SKIPPED;
	else if (made(object, vb_alloc_mw(pd, step->mw_type), outcome))
		object->rkey = ((struct ibv_mw *)object->pointer)->rkey;
}

static void bind_mw(struct vd_machine *machine, const struct vd_step *step,
		    struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_qp *qp = vd_object(machine, VD_QP, step->qp)->pointer;
	struct ibv_mr *mr = vd_object(machine, VD_MR, step->mr)->pointer;
	struct ibv_mw_bind bind = {
		.wr_id = vd_wr_id(machine->step, 0, false),
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = mr,
			      .addr = (uintptr_t)vd_address(machine, step->at),
			      .length = step->length,
			      .mw_access_flags = step->access},
	};

	if (!qp || !mr) {
		outcome->answer = VD_SKIPPED;
		return;
	}
	outcome->answer = vb_bind_mw(qp, object->pointer, &bind);
	if (!outcome->answer)
		object->rkey = ((struct ibv_mw *)object->pointer)->rkey;
}

static void dealloc_mw(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_dealloc_mw(object->pointer), outcome);
}

/* --- completion queues --- */

static void create_cq(struct vd_machine *machine, const struct vd_step *step,
		      struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_comp_channel *channel = step->flags & VD_CQ_CHANNEL ? machine->channel : NULL;

	if (!made(object, vb_create_cq(machine->context, (int)step->count, NULL, channel, 0),
		  outcome))
		return;
	object->by_hand = step->flags & VD_CQ_BY_HAND;
	outcome->told[VD_TOLD_WR] = (uint32_t)((struct ibv_cq *)object->pointer)->cqe;
}

static void resize_cq(struct vd_machine *machine, const struct vd_step *step,
		      struct vd_object *object, struct vd_outcome *outcome)
{
	outcome->answer = vb_resize_cq(object->pointer, (int)step->count);
}

static void req_notify_cq(struct vd_machine *machine, const struct vd_step *step,
			  struct vd_object *object, struct vd_outcome *outcome)
{
	outcome->answer = ibv_req_notify_cq(object->pointer, (int)step->flags);
}

/* What it takes, vd_observe() takes. */
static void poll_cq(struct vd_machine *machine, const struct vd_step *step,
		    struct vd_object *object, struct vd_outcome *outcome)
{
}

static void destroy_cq(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_destroy_cq(object->pointer), outcome);
}

/* --- shared receive queues --- */

static void create_srq(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_pd *pd = vd_object(machine, VD_PD, step->pd)->pointer;
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = step->count, .max_sge = step->recv_sge}};

	if (!pd)
		outcome->answer = VD_SKIPPED;
	else if (made(object, vb_create_srq(pd, &init), outcome)) {
		outcome->told[VD_TOLD_WR] = init.attr.max_wr;
		outcome->told[VD_TOLD_SRQ_SGE] = init.attr.max_sge;
	}
}

static void modify_srq(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_srq_attr attr = {.max_wr = step->count, .srq_limit = step->count};

	outcome->answer = vb_modify_srq(object->pointer, &attr, (int)step->flags);
}

static void query_srq(struct vd_machine *machine, const struct vd_step *step,
		      struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_srq_attr attr = {0};

	outcome->answer = vb_query_srq(object->pointer, &attr);
	/* The sizes may be rounded up. */
	outcome->values[outcome->value_count++] = attr.srq_limit;
}

static void destroy_srq(struct vd_machine *machine, const struct vd_step *step,
			struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_destroy_srq(object->pointer), outcome);
}

/* --- queue pairs --- */

static void create_qp(struct vd_machine *machine, const struct vd_step *step,
		      struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_pd *pd = vd_object(machine, VD_PD, step->pd)->pointer;
	struct ibv_qp_init_attr init = {
		.send_cq = vd_object(machine, VD_CQ, step->cq)->pointer,
		.recv_cq = vd_object(machine, VD_CQ, step->recv_cq)->pointer,
		.srq = step->has_srq ? vd_object(machine, VD_SRQ, step->srq)->pointer : NULL,
		.cap = {.max_send_wr = step->send_wr,
			.max_recv_wr = step->count,
			.max_send_sge = step->send_sge,
			.max_recv_sge = step->recv_sge,
			.max_inline_data = step->inline_bytes},
		.qp_type = step->type,
		.sq_sig_all = step->signal_all,
	};
	struct ibv_qp *qp;

	if (!pd || !init.send_cq || !init.recv_cq || (step->has_srq && !init.srq)) {
		outcome->answer = VD_SKIPPED;
		return;
	}
	qp = vb_create_qp(pd, &init);
	if (!made(object, qp, outcome))
		return;
	object->type = step->type;
	machine->numbers[machine->number_count++] =
		(struct vd_number){.qp_num = qp->qp_num, .slot = (int)step->slot};
	outcome->told[VD_TOLD_WR] = init.cap.max_send_wr;
	/* With an SRQ they say nothing. */
	outcome->told[VD_TOLD_RECV_WR] = init.srq ? 0 : init.cap.max_recv_wr;
	outcome->told[VD_TOLD_SEND_SGE] = init.cap.max_send_sge;
	outcome->told[VD_TOLD_RECV_SGE] = init.srq ? 0 : init.cap.max_recv_sge;
	outcome->told[VD_TOLD_INLINE] = init.cap.max_inline_data;
}

static struct ibv_ah_attr way(const struct vd_machine *machine, const union ibv_gid *to)
{
	struct ibv_ah_attr way = {.port_num = 1, .dlid = machine->port_attr.lid};

	if (machine->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
		way.is_global = 1;
		way.grh.dgid = *to;
		way.grh.sgid_index = (uint8_t)machine->gid.gid_index;
		way.grh.hop_limit = 64;
	}
	return way;
}

static struct ibv_qp_attr attributes(struct vd_machine *machine, unsigned int slot,
				     unsigned int peer_slot, const struct vd_modify *modify)
{
	const struct ibv_qp *peer = vd_object(machine, VD_QP, peer_slot)->pointer;
	struct ibv_qp_attr attr = {
		.qp_state = modify->state,
		.cur_qp_state = IBV_QPS_RTS,
		.en_sqd_async_notify = 1,
		.path_mtu = modify->mtu,
		.qkey = modify->qkey,
		.rq_psn = (vd_first_psn(peer_slot % vd_slots[VD_QP]) + modify->psn_add) & 0xffffff,
		.sq_psn = vd_first_psn(slot % vd_slots[VD_QP]) & 0xffffff,
		.dest_qp_num = peer ? peer->qp_num : 0xfffff0,
		.qp_access_flags = modify->access,
		.ah_attr = way(machine, &machine->gid.gid),
		.pkey_index = modify->pkey_index,
		.max_rd_atomic = modify->reads,
		.max_dest_rd_atomic = modify->dest_reads,
		.min_rnr_timer = modify->rnr_timer,
		.port_num = modify->port,
		.timeout = modify->timeout,
		.retry_cnt = modify->retry,
		.rnr_retry = modify->rnr_retry,
	};

	attr.ah_attr.grh.sgid_index = (uint8_t)(attr.ah_attr.grh.sgid_index + modify->sgid_add);
	if (modify->wide) {
		attr.rq_psn |= VD_WIDE;
		attr.sq_psn |= VD_WIDE;
		attr.dest_qp_num |= VD_WIDE;
	}
	if (modify->no_grh)
		attr.ah_attr.is_global = 0;
	return attr;
}

static int modify(struct vd_machine *machine, unsigned int slot, unsigned int peer,
		  const struct vd_modify *modify, int mask)
{
	struct vd_object *object = vd_object(machine, VD_QP, slot);
	struct ibv_qp_attr attr = attributes(machine, slot, peer, modify);
	int answer = vb_modify_qp(object->pointer, &attr, mask);

	if (answer)
		return answer;
	if (mask & IBV_QP_STATE && modify->state == IBV_QPS_RESET)
		object->set = 0;
	else
		object->set |= mask;
	if (mask & IBV_QP_DEST_QPN)
		object->peer = peer;
	return 0;
}

static void modify_qp(struct vd_machine *machine, const struct vd_step *step,
		      struct vd_object *object, struct vd_outcome *outcome)
{
	int mask = vd_required_mask(object->type, step->modify.state) ^ (int)step->modify.flip;

	if (step->modify.stateless)
		mask &= ~IBV_QP_STATE;
	outcome->answer = modify(machine, step->slot, step->modify.peer, &step->modify, mask);
}

static int connect_end(struct vd_machine *machine, unsigned int slot, unsigned int peer,
		       struct vd_modify values)
{
	static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	enum ibv_qp_type type = vd_object(machine, VD_QP, slot)->type;

	for (unsigned int i = 0; i < 3; i++) {
		int answer;

		values.state = states[i];
		answer = modify(machine, slot, peer, &values, vd_required_mask(type, states[i]));
		if (answer)
			return answer;
	}
	return 0;
}

/* Both ends from RESET to RTS, towards each other. */
static void connect_qp(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	if (!vd_object(machine, VD_QP, step->qp)->pointer) {
		outcome->answer = VD_SKIPPED;
		return;
	}
	outcome->answer = connect_end(machine, step->slot, step->qp, step->modify);
	if (!outcome->answer && step->qp != step->slot)
		outcome->answer = connect_end(machine, step->qp, step->slot, step->modify);
}

/* Only what modify_qp has set says something, and the PSNs go on with the traffic. */
static void query_qp(struct vd_machine *machine, const struct vd_step *step,
		     struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {0};
	uint32_t *values = outcome->values;
	int mask = object->set, dest;

	outcome->answer = vb_query_qp(object->pointer, &attr, IBV_QP_STATE | mask, &init);
	if (outcome->answer)
		return;
	dest = vd_slot_of_number(machine, attr.dest_qp_num);
	values[0] = attr.qp_state;
	values[1] = mask & IBV_QP_DEST_QPN ? (uint32_t)dest : VD_UNSET;
	values[2] = mask & IBV_QP_PATH_MTU ? attr.path_mtu : VD_UNSET;
	values[3] = mask & IBV_QP_QKEY ? attr.qkey : VD_UNSET;
	values[4] = mask & IBV_QP_ACCESS_FLAGS ? attr.qp_access_flags : VD_UNSET;
	values[5] = mask & IBV_QP_PKEY_INDEX ? attr.pkey_index : VD_UNSET;
	values[6] = mask & IBV_QP_PORT ? attr.port_num : VD_UNSET;
	values[7] = mask & IBV_QP_TIMEOUT ? attr.timeout : VD_UNSET;
	values[8] = mask & IBV_QP_RETRY_CNT ? attr.retry_cnt : VD_UNSET;
	values[9] = mask & IBV_QP_RNR_RETRY ? attr.rnr_retry : VD_UNSET;
	values[10] = mask & IBV_QP_MIN_RNR_TIMER ? attr.min_rnr_timer : VD_UNSET;
	values[11] = mask & IBV_QP_MAX_QP_RD_ATOMIC ? attr.max_rd_atomic : VD_UNSET;
	values[12] = mask & IBV_QP_MAX_DEST_RD_ATOMIC ? attr.max_dest_rd_atomic : VD_UNSET;
	values[13] = (uint32_t)init.qp_type;
	outcome->value_count = 14;
}

static void post(struct vd_machine *machine, const struct vd_step *step, struct vd_object *object,
		 struct vd_outcome *outcome)
{
	vd_post(machine, step, outcome);
}

static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};

static void attach_mcast(struct vd_machine *machine, const struct vd_step *step,
			 struct vd_object *object, struct vd_outcome *outcome)
{
	outcome->answer =
		vb_attach_mcast(object->pointer, step->flags ? &machine->gid.gid : &group, 0);
	if (!outcome->answer)
		object->attached = true;
}

static void detach_mcast(struct vd_machine *machine, const struct vd_step *step,
			 struct vd_object *object, struct vd_outcome *outcome)
{
	outcome->answer = vb_detach_mcast(object->pointer, &group, 0);
	if (!outcome->answer)
		object->attached = false;
}

static void destroy_qp(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_destroy_qp(object->pointer), outcome);
}

/* --- address handles --- */

static void create_ah(struct vd_machine *machine, const struct vd_step *step,
		      struct vd_object *object, struct vd_outcome *outcome)
{
	struct ibv_pd *pd = vd_object(machine, VD_PD, step->pd)->pointer;
	struct ibv_ah_attr attr =
		way(machine, step->flags == VD_AH_GROUP ? &group : &machine->gid.gid);

	if (!pd) {
		outcome->answer = VD_SKIPPED;
		return;
	}
	if (step->flags == VD_AH_NO_GRH)
		attr.is_global = 0;
	else if (step->flags == VD_AH_BAD_PORT)
		attr.port_num = 9;
	else if (step->flags == VD_AH_BAD_GID)
		attr.grh.sgid_index = 250;
	if (made(object, vb_create_ah(pd, &attr), outcome))
		object->group = step->flags == VD_AH_GROUP;
}

static void destroy_ah(struct vd_machine *machine, const struct vd_step *step,
		       struct vd_object *object, struct vd_outcome *outcome)
{
	ended(object, vb_destroy_ah(object->pointer), outcome);
}

static execute_fn *const table[VD_VERBS] = {
	[VD_ALLOC_PD] = alloc_pd,
	[VD_DEALLOC_PD] = dealloc_pd,
	[VD_REG_MR] = reg_mr,
	[VD_REREG_MR] = rereg_mr,
	[VD_DEREG_MR] = dereg_mr,
	[VD_ALLOC_MW] = alloc_mw,
	[VD_BIND_MW] = bind_mw,
	[VD_DEALLOC_MW] = dealloc_mw,
	[VD_CREATE_CQ] = create_cq,
	[VD_RESIZE_CQ] = resize_cq,
	[VD_REQ_NOTIFY_CQ] = req_notify_cq,
	[VD_POLL_CQ] = poll_cq,
	[VD_DESTROY_CQ] = destroy_cq,
	[VD_CREATE_SRQ] = create_srq,
	[VD_MODIFY_SRQ] = modify_srq,
	[VD_QUERY_SRQ] = query_srq,
	[VD_POST_SRQ_RECV] = post,
	[VD_DESTROY_SRQ] = destroy_srq,
	[VD_CREATE_QP] = create_qp,
	[VD_CONNECT_QP] = connect_qp,
	[VD_MODIFY_QP] = modify_qp,
	[VD_QUERY_QP] = query_qp,
	[VD_POST_RECV] = post,
	[VD_POST_SEND] = post,
	[VD_ATTACH_MCAST] = attach_mcast,
	[VD_DETACH_MCAST] = detach_mcast,
	[VD_DESTROY_QP] = destroy_qp,
	[VD_CREATE_AH] = create_ah,
	[VD_DESTROY_AH] = destroy_ah,
};

void vd_execute(struct vd_machine *machine, const struct vd_step *step, struct vd_outcome *outcome)
{
	struct vd_object *object = vd_object(machine, vd_verbs[step->verb].kind, step->slot);

	table[step->verb](machine, step, object, outcome);
}
