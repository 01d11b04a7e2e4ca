/* SPDX-License-Identifier: MIT */
#include "src/base/count.h"
#include "src/differ/machine/machine.h"

#include <errno.h>
#include <string.h>

/* The call of a step's verb. */
struct call {
	struct vd_machine *machine;
	const struct vd_step *step;
	struct vd_object *object;
	struct ibv_pd *pd; /* of vd_step.pd */
	struct vd_outcome *outcome;
};

/* Returns the answer: 0, an errno or VD_SKIPPED. */
typedef int call_fn(struct call *call);

static void *object_of(const struct call *call, enum vd_kind kind, unsigned int slot)
{
	return vd_object(call->machine, kind, slot)->pointer;
}

/* Puts a new object into the slot. A NULL pointer means that the verb failed with errno. */
static int made(struct call *call, void *pointer)
{
	if (!pointer)
		return errno;
	*call->object = (struct vd_object){.pointer = pointer};
	return 0;
}

static int end(struct call *call)
{
	int answer = vd_destroy(vd_verbs[call->step->verb].kind, call->object->pointer);

	/* Keys and numbers stay: the program may still use them. */
	if (!answer)
		call->object->pointer = NULL;
	return answer;
}

/* --- domains and memory --- */

static int alloc_pd(struct call *call)
{
	return made(call, vb_alloc_pd(call->machine->context));
}

static void take_keys(struct vd_object *object)
{
	const struct ibv_mr *mr = object->pointer;

	object->lkey = mr->lkey;
	object->rkey = mr->rkey;
}

static int reg_mr(struct call *call)
{
	void *address = vd_address(call->machine, call->step->at);
	int answer = made(
		call, vb_reg_mr(call->pd, address, call->step->length, (int)call->step->access));

	if (!answer)
		take_keys(call->object);
	return answer;
}

static int rereg_mr(struct call *call)
{
	const struct vd_step *step = call->step;
	int code =
		vb_rereg_mr(call->object->pointer, (int)step->flags, call->pd,
			    vd_address(call->machine, step->at), step->length, (int)step->access);
	int answer = code ? errno : 0;

	call->outcome->values[call->outcome->value_count++] = (uint32_t)code;
	take_keys(call->object);
	return answer;
}

static int take_rkey(struct call *call, int answer)
{
	if (!answer)
		call->object->rkey = ((struct ibv_mw *)call->object->pointer)->rkey;
	return answer;
}

static int alloc_mw(struct call *call)
{
	return take_rkey(call, made(call, vb_alloc_mw(call->pd, call->step->mw_type)));
}

static int bind_mw(struct call *call)
{
	const struct vd_step *step = call->step;
	struct ibv_qp *qp = object_of(call, VD_QP, step->qp);
	struct ibv_mw_bind bind = {
		.wr_id = vd_wr_id(call->machine->step, 0, false),
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = object_of(call, VD_MR, step->mr),
			      .addr = (uintptr_t)vd_address(call->machine, step->at),
			      .length = step->length,
			      .mw_access_flags = step->access},
	};

	if (!qp || !bind.bind_info.mr)
		return VD_SKIPPED;
	return take_rkey(call, vb_bind_mw(qp, call->object->pointer, &bind));
}

/* --- completion queues --- */

static int create_cq(struct call *call)
{
	const struct vd_step *step = call->step;
	struct vd_machine *machine = call->machine;
	struct ibv_cq *cq = vb_create_cq(machine->context, (int)step->count, NULL,
					 step->flags & VD_CQ_CHANNEL ? machine->channel : NULL, 0);
	int answer = made(call, cq);

	if (!answer) {
		call->object->by_hand = step->flags & VD_CQ_BY_HAND;
		call->outcome->sizes[VD_SIZE_WR] = (uint32_t)cq->cqe;
	}
	return answer;
}

static int resize_cq(struct call *call)
{
	return vb_resize_cq(call->object->pointer, (int)call->step->count);
}

static int req_notify_cq(struct call *call)
{
	return ibv_req_notify_cq(call->object->pointer, (int)call->step->flags);
}

/* vd_observe() takes the completions. */
static int poll_cq(struct call *call)
{
	return 0;
}

/* --- shared receive queues --- */

static int create_srq(struct call *call)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = call->step->count, .max_sge = call->step->recv_sge}};
	int answer = made(call, vb_create_srq(call->pd, &init));

	if (!answer) {
		call->outcome->sizes[VD_SIZE_WR] = init.attr.max_wr;
		call->outcome->sizes[VD_SIZE_SRQ_SGE] = init.attr.max_sge;
	}
	return answer;
}

static int modify_srq(struct call *call)
{
	struct ibv_srq_attr attr = {.max_wr = call->step->count, .srq_limit = call->step->count};

	return vb_modify_srq(call->object->pointer, &attr, (int)call->step->flags);
}

/* Only the limit is compared: devices may round the sizes up. */
static int query_srq(struct call *call)
{
	struct ibv_srq_attr attr = {0};
	int answer = vb_query_srq(call->object->pointer, &attr);

	call->outcome->values[call->outcome->value_count++] = attr.srq_limit;
	return answer;
}

static int post_recv(struct call *call)
{
	return vd_post_recv(call->machine, call->object);
}

/* --- queue pairs --- */

static int create_qp(struct call *call)
{
	const struct vd_step *step = call->step;
	struct vd_machine *machine = call->machine;
	uint32_t *sizes = call->outcome->sizes;
	struct ibv_qp_init_attr init = {
		.send_cq = object_of(call, VD_CQ, step->cq),
		.recv_cq = object_of(call, VD_CQ, step->recv_cq),
		.srq = step->has_srq ? object_of(call, VD_SRQ, step->srq) : NULL,
		.cap = {.max_send_wr = step->send_wr,
			.max_recv_wr = step->count,
			.max_send_sge = step->send_sge,
			.max_recv_sge = step->recv_sge,
			.max_inline_data = step->inline_bytes},
		.qp_type = step->type,
		.sq_sig_all = step->signal_all,
	};
	struct ibv_qp *qp;

	if (!init.send_cq || !init.recv_cq || (step->has_srq && !init.srq))
		return VD_SKIPPED;
	qp = vb_create_qp(call->pd, &init);
	if (!qp)
		return errno;
	made(call, qp);
	call->object->type = step->type;
	machine->numbers[machine->number_count++] =
		(struct vd_number){.qp_num = qp->qp_num, .slot = (int)step->slot};
	sizes[VD_SIZE_WR] = init.cap.max_send_wr;
	sizes[VD_SIZE_SEND_SGE] = init.cap.max_send_sge;
	sizes[VD_SIZE_INLINE] = init.cap.max_inline_data;
	/* With an SRQ the sizes of the receive queue have no meaning. */
	if (!init.srq) {
		sizes[VD_SIZE_RECV_WR] = init.cap.max_recv_wr;
		sizes[VD_SIZE_RECV_SGE] = init.cap.max_recv_sge;
	}
	return 0;
}

/* The path to the machine's own port, or on Ethernet to another GID. */
static struct ibv_ah_attr path_to(const struct vd_machine *machine, const union ibv_gid *gid)
{
	struct ibv_ah_attr path = {.port_num = 1, .dlid = machine->port_attr.lid};

	if (machine->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET) {
		path.is_global = 1;
		path.grh.dgid = *gid;
		path.grh.sgid_index = (uint8_t)machine->gid.gid_index;
		path.grh.hop_limit = 64;
	}
	return path;
}

static struct ibv_qp_attr attributes(struct vd_machine *machine, unsigned int slot,
				     unsigned int peer_slot, const struct vd_modify *modify)
{
	const struct ibv_qp *peer = vd_object(machine, VD_QP, peer_slot)->pointer;
	struct ibv_qp_attr attr = vd_attributes(slot, peer_slot, modify);

	if (peer)
		attr.dest_qp_num = peer->qp_num | (modify->wide ? VD_WIDE : 0);
	attr.ah_attr = path_to(machine, &machine->gid.gid);
	attr.ah_attr.grh.sgid_index = (uint8_t)(attr.ah_attr.grh.sgid_index + modify->sgid_add);
	if (modify->no_grh)
		attr.ah_attr.is_global = 0;
	return attr;
}

static int modify(struct vd_machine *machine, unsigned int slot, unsigned int peer,
		  const struct vd_modify *values)
{
	struct vd_object *object = vd_object(machine, VD_QP, slot);
	struct ibv_qp_attr attr = attributes(machine, slot, peer, values);
	int mask = vd_modify_mask(object->type, values);
	int answer = vb_modify_qp(object->pointer, &attr, mask);

	if (answer)
		return answer;
	if (mask & IBV_QP_STATE && values->state == IBV_QPS_RESET)
		object->set = 0;
	else
		object->set |= mask;
	return 0;
}

static int modify_qp(struct call *call)
{
	return modify(call->machine, call->step->slot, call->step->modify.peer,
		      &call->step->modify);
}

static int connect_end(struct vd_machine *machine, unsigned int slot, unsigned int peer,
		       struct vd_modify values)
{
	int answer = 0;

	for (unsigned int i = 0; !answer && i < VD_CLIMB; i++) {
		values.state = vd_climb[i];
		answer = modify(machine, slot, peer, &values);
	}
	return answer;
}

/* Takes both ends from RESET to RTS, towards each other. */
static int connect_qp(struct call *call)
{
	const struct vd_step *step = call->step;
	int answer;

	if (!object_of(call, VD_QP, step->qp))
		return VD_SKIPPED;
	answer = connect_end(call->machine, step->slot, step->qp, step->modify);
	if (!answer && step->qp != step->slot)
		answer = connect_end(call->machine, step->qp, step->slot, step->modify);
	return answer;
}

/* An attribute has a meaning only after modify_qp has set it; the PSNs follow the traffic. */
static int query_qp(struct call *call)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {0};
	int mask = call->object->set;
	int answer = vb_query_qp(call->object->pointer, &attr, IBV_QP_STATE | mask, &init);
	const struct {
		int bit; /* of the mask; 0: always set */
		uint32_t value;
	} values[] = {
		{0, attr.qp_state},
		{IBV_QP_DEST_QPN, (uint32_t)vd_slot_of_number(call->machine, attr.dest_qp_num)},
		{IBV_QP_PATH_MTU, attr.path_mtu},
		{IBV_QP_QKEY, attr.qkey},
		{IBV_QP_ACCESS_FLAGS, attr.qp_access_flags},
		{IBV_QP_PKEY_INDEX, attr.pkey_index},
		{IBV_QP_PORT, attr.port_num},
		{IBV_QP_TIMEOUT, attr.timeout},
		{IBV_QP_RETRY_CNT, attr.retry_cnt},
		{IBV_QP_RNR_RETRY, attr.rnr_retry},
		{IBV_QP_MIN_RNR_TIMER, attr.min_rnr_timer},
		{IBV_QP_MAX_QP_RD_ATOMIC, attr.max_rd_atomic},
		{IBV_QP_MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic},
		{0, (uint32_t)init.qp_type},
	};

	for (unsigned int i = 0; !answer && i < COUNT(values); i++)
		call->outcome->values[call->outcome->value_count++] =
			values[i].bit && !(mask & values[i].bit) ? VD_UNSET : values[i].value;
	return answer;
}

static int post_send(struct call *call)
{
	return vd_post_send(call->machine, call->object);
}

static int attach_mcast(struct call *call)
{
	const union ibv_gid *gid = call->step->flags ? &call->machine->gid.gid : &vd_group;
	int answer = vb_attach_mcast(call->object->pointer, gid, 0);

	if (!answer)
		call->object->attached = true;
	return answer;
}

static int detach_mcast(struct call *call)
{
	int answer = vb_detach_mcast(call->object->pointer, &vd_group, 0);

	if (!answer)
		call->object->attached = false;
	return answer;
}

/* --- address handles --- */

static int create_ah(struct call *call)
{
	bool is_group = call->step->flags == VD_AH_GROUP;
	struct ibv_ah_attr attr =
		path_to(call->machine, is_group ? &vd_group : &call->machine->gid.gid);
	int answer;

	if (call->step->flags == VD_AH_NO_GRH)
		attr.is_global = 0;
	else if (call->step->flags == VD_AH_BAD_PORT)
		attr.port_num = 9;
	else if (call->step->flags == VD_AH_BAD_GID)
		attr.grh.sgid_index = 250;
	answer = made(call, vb_create_ah(call->pd, &attr));
	if (!answer)
		call->object->group = is_group;
	return answer;
}

static call_fn *const calls[VD_VERBS] = {
	[VD_ALLOC_PD] = alloc_pd,	  [VD_REG_MR] = reg_mr,
	[VD_REREG_MR] = rereg_mr,	  [VD_ALLOC_MW] = alloc_mw,
	[VD_BIND_MW] = bind_mw,		  [VD_CREATE_CQ] = create_cq,
	[VD_RESIZE_CQ] = resize_cq,	  [VD_REQ_NOTIFY_CQ] = req_notify_cq,
	[VD_POLL_CQ] = poll_cq,		  [VD_CREATE_SRQ] = create_srq,
	[VD_MODIFY_SRQ] = modify_srq,	  [VD_QUERY_SRQ] = query_srq,
	[VD_POST_SRQ_RECV] = post_recv,	  [VD_CREATE_QP] = create_qp,
	[VD_CONNECT_QP] = connect_qp,	  [VD_MODIFY_QP] = modify_qp,
	[VD_QUERY_QP] = query_qp,	  [VD_POST_RECV] = post_recv,
	[VD_POST_SEND] = post_send,	  [VD_ATTACH_MCAST] = attach_mcast,
	[VD_DETACH_MCAST] = detach_mcast, [VD_CREATE_AH] = create_ah,
};

int vd_execute(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	const struct vd_verb_info *verb = &vd_verbs[step->verb];
	struct call call = {
		.machine = machine,
		.step = step,
		.object = vd_object(machine, verb->kind, step->slot),
		.pd = vd_object(machine, VD_PD, step->pd)->pointer,
		.outcome = vd_outcome(machine),
	};

	if (verb->flags & VD_IN_PD && !call.pd)
		return VD_SKIPPED;
	return verb->does == VD_ENDS ? end(&call) : calls[step->verb](&call);
}
