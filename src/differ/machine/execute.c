/* SPDX-License-Identifier: MIT */
#include "src/base/count.h"
#include "src/differ/machine/machine.h"

#include <errno.h>
#include <string.h>

/* Calls the step's verb; returns the answer: 0, an errno or VD_SKIPPED. */
typedef int call_fn(struct vd_machine *machine);

static void *object_of(struct vd_machine *machine, enum vd_kind kind, unsigned int slot)
{
	return vd_object(machine, kind, slot)->pointer;
}

static void add_value(struct vd_machine *machine, uint32_t value)
{
	struct vd_outcome *outcome = vd_outcome(machine);

	outcome->values[outcome->value_count++] = value;
}

/* Puts a new object into the slot. A NULL pointer means that the verb failed with errno. */
static int made(struct vd_machine *machine, void *pointer)
{
	if (!pointer)
		return errno;
	*machine->object = (struct vd_object){.pointer = pointer};
	return 0;
}

static int end(struct vd_machine *machine)
{
	int answer = vd_destroy(vd_verbs[vd_step(machine)->verb].kind, machine->object->pointer);

	/* Keys and numbers stay: the program may still use them. */
	if (!answer)
		machine->object->pointer = NULL;
	return answer;
}

/* --- domains and memory --- */

static int alloc_pd(struct vd_machine *machine)
{
	return made(machine, vb_alloc_pd(machine->context));
}

static void take_keys(struct vd_object *object)
{
	const struct ibv_mr *mr = object->pointer;

	object->lkey = mr->lkey;
	object->rkey = mr->rkey;
}

static int reg_mr(struct vd_machine *machine)
{
	void *address = vd_address(machine, vd_step(machine)->at);
	int answer = made(machine, vb_reg_mr(machine->pd, address, vd_step(machine)->length,
					     (int)vd_step(machine)->access));

	if (!answer)
		take_keys(machine->object);
	return answer;
}

static int rereg_mr(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	int code = vb_rereg_mr(machine->object->pointer, (int)step->flags, machine->pd,
			       vd_address(machine, step->at), step->length, (int)step->access);
	int answer = code ? errno : 0;

	add_value(machine, (uint32_t)code);
	take_keys(machine->object);
	return answer;
}

static int take_rkey(struct vd_machine *machine, int answer)
{
	if (!answer)
		machine->object->rkey = ((struct ibv_mw *)machine->object->pointer)->rkey;
	return answer;
}

static int alloc_mw(struct vd_machine *machine)
{
	return take_rkey(machine,
			 made(machine, vb_alloc_mw(machine->pd, vd_step(machine)->mw_type)));
}

static int bind_mw(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	struct ibv_qp *qp = object_of(machine, VD_QP, step->qp);
	struct ibv_mw_bind bind = {
		.wr_id = vd_wr_id(machine->step, 0, false),
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = object_of(machine, VD_MR, step->mr),
			      .addr = (uintptr_t)vd_address(machine, step->at),
			      .length = step->length,
			      .mw_access_flags = step->access},
	};

	if (!qp || !bind.bind_info.mr)
		return VD_SKIPPED;
	return take_rkey(machine, vb_bind_mw(qp, machine->object->pointer, &bind));
}

/* --- completion queues --- */

static int create_cq(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	struct ibv_cq *cq = vb_create_cq(machine->context, (int)step->count, NULL,
					 step->flags & VD_CQ_CHANNEL ? machine->channel : NULL, 0);
	int answer = made(machine, cq);

	if (!answer) {
		machine->object->by_hand = step->flags & VD_CQ_BY_HAND;
		vd_outcome(machine)->sizes[VD_SIZE_WR] = (uint32_t)cq->cqe;
	}
	return answer;
}

static int resize_cq(struct vd_machine *machine)
{
	return vb_resize_cq(machine->object->pointer, (int)vd_step(machine)->count);
}

static int req_notify_cq(struct vd_machine *machine)
{
	return ibv_req_notify_cq(machine->object->pointer, (int)vd_step(machine)->flags);
}

/* vd_observe() takes the completions. */
static int poll_cq(struct vd_machine *machine)
{
	return 0;
}

/* --- shared receive queues --- */

static int create_srq(struct vd_machine *machine)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = vd_step(machine)->count, .max_sge = vd_step(machine)->recv_sge}};
	int answer = made(machine, vb_create_srq(machine->pd, &init));

	if (!answer) {
		vd_outcome(machine)->sizes[VD_SIZE_WR] = init.attr.max_wr;
		vd_outcome(machine)->sizes[VD_SIZE_SRQ_SGE] = init.attr.max_sge;
	}
	return answer;
}

static int modify_srq(struct vd_machine *machine)
{
	struct ibv_srq_attr attr = {.max_wr = vd_step(machine)->count,
				    .srq_limit = vd_step(machine)->count};

	return vb_modify_srq(machine->object->pointer, &attr, (int)vd_step(machine)->flags);
}

/* Only the limit is compared: devices may round the sizes up. */
static int query_srq(struct vd_machine *machine)
{
	struct ibv_srq_attr attr = {0};
	int answer = vb_query_srq(machine->object->pointer, &attr);

	add_value(machine, attr.srq_limit);
	return answer;
}

/* --- queue pairs --- */

static int create_qp(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	uint32_t *sizes = vd_outcome(machine)->sizes;
	struct ibv_qp_init_attr init = {
		.send_cq = object_of(machine, VD_CQ, step->cq),
		.recv_cq = object_of(machine, VD_CQ, step->recv_cq),
		.srq = step->has_srq ? object_of(machine, VD_SRQ, step->srq) : NULL,
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
	qp = vb_create_qp(machine->pd, &init);
	if (!qp)
		return errno;
	made(machine, qp);
	machine->object->type = step->type;
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

static int modify_qp(struct vd_machine *machine)
{
	return modify(machine, vd_step(machine)->slot, vd_step(machine)->modify.peer,
		      &vd_step(machine)->modify);
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
static int connect_qp(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	int answer;

	if (!object_of(machine, VD_QP, step->qp))
		return VD_SKIPPED;
	answer = connect_end(machine, step->slot, step->qp, step->modify);
	if (!answer && step->qp != step->slot)
		answer = connect_end(machine, step->qp, step->slot, step->modify);
	return answer;
}

/* An attribute has a meaning only after modify_qp has set it; the PSNs follow the traffic. */
static int query_qp(struct vd_machine *machine)
{
	struct ibv_qp_init_attr init = {0};
	struct ibv_qp_attr attr = {0};
	int mask = machine->object->set;
	int answer = vb_query_qp(machine->object->pointer, &attr, IBV_QP_STATE | mask, &init);
	const struct {
		int bit; /* of the mask; 0: always set */
		uint32_t value;
	} values[] = {
		{0, attr.qp_state},
		{IBV_QP_DEST_QPN, (uint32_t)vd_slot_of_number(machine, attr.dest_qp_num)},
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
		add_value(machine,
			  values[i].bit && !(mask & values[i].bit) ? VD_UNSET : values[i].value);
	return answer;
}

static int attach_mcast(struct vd_machine *machine)
{
	const union ibv_gid *gid = vd_step(machine)->flags ? &machine->gid.gid : &vd_group;
	int answer = vb_attach_mcast(machine->object->pointer, gid, 0);

	if (!answer)
		machine->object->attached = true;
	return answer;
}

static int detach_mcast(struct vd_machine *machine)
{
	int answer = vb_detach_mcast(machine->object->pointer, &vd_group, 0);

	if (!answer)
		machine->object->attached = false;
	return answer;
}

/* --- address handles --- */

static int create_ah(struct vd_machine *machine)
{
	bool is_group = vd_step(machine)->flags == VD_AH_GROUP;
	struct ibv_ah_attr attr = path_to(machine, is_group ? &vd_group : &machine->gid.gid);
	int answer;

	if (vd_step(machine)->flags == VD_AH_NO_GRH)
		attr.is_global = 0;
	else if (vd_step(machine)->flags == VD_AH_BAD_PORT)
		attr.port_num = 9;
	else if (vd_step(machine)->flags == VD_AH_BAD_GID)
		attr.grh.sgid_index = 250;
	answer = made(machine, vb_create_ah(machine->pd, &attr));
	if (!answer)
		machine->object->group = is_group;
	return answer;
}

/* The verbs that make or use an object. */
static call_fn *const calls[VD_VERBS] = {
	[VD_ALLOC_PD] = alloc_pd,	  [VD_REG_MR] = reg_mr,
	[VD_REREG_MR] = rereg_mr,	  [VD_ALLOC_MW] = alloc_mw,
	[VD_BIND_MW] = bind_mw,		  [VD_CREATE_CQ] = create_cq,
	[VD_RESIZE_CQ] = resize_cq,	  [VD_REQ_NOTIFY_CQ] = req_notify_cq,
	[VD_POLL_CQ] = poll_cq,		  [VD_CREATE_SRQ] = create_srq,
	[VD_MODIFY_SRQ] = modify_srq,	  [VD_QUERY_SRQ] = query_srq,
	[VD_POST_SRQ_RECV] = vd_post,	  [VD_CREATE_QP] = create_qp,
	[VD_CONNECT_QP] = connect_qp,	  [VD_MODIFY_QP] = modify_qp,
	[VD_QUERY_QP] = query_qp,	  [VD_POST_RECV] = vd_post,
	[VD_POST_SEND] = vd_post,	  [VD_ATTACH_MCAST] = attach_mcast,
	[VD_DETACH_MCAST] = detach_mcast, [VD_CREATE_AH] = create_ah,
};

int vd_execute(struct vd_machine *machine)
{
	const struct vd_step *step = vd_step(machine);
	const struct vd_verb_info *verb = &vd_verbs[step->verb];

	machine->object = vd_object(machine, verb->kind, step->slot);
	machine->pd = object_of(machine, VD_PD, step->pd);
	if ((machine->object->pointer != NULL) == vd_makes(step->verb) ||
	    (verb->flags & VD_IN_PD && !machine->pd))
		return VD_SKIPPED;
	return verb->does == VD_ENDS ? end(machine) : calls[step->verb](machine);
}
