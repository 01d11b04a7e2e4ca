/* SPDX-License-Identifier: MIT */
/* The verbs that a script calls: work requests, windows, multicast groups. */
#include "src/script/run.h"

#include <verbena/error.h>

/* --- work requests --- */

static struct ibv_sge sge_of(const struct script_qp *qp, const struct script_line *line)
{
	const struct script_value *key = &line->values[SCRIPT_LKEY];

	return (struct ibv_sge){
		.addr = (uintptr_t)qp->buffer + line->values[SCRIPT_AT].number,
		.length = (uint32_t)script_number_or(line, SCRIPT_LENGTH, 0),
		.lkey = key->bad ? qp->mr->lkey ^ 0xffff00
				 : (uint32_t)script_number_or(line, SCRIPT_LKEY, qp->mr->lkey),
	};
}

static unsigned int flags_of(const struct script_line *line)
{
	return (line->values[SCRIPT_UNSIGNALED].number ? 0 : IBV_SEND_SIGNALED) |
	       (line->values[SCRIPT_FENCE].number ? IBV_SEND_FENCE : 0) |
	       (line->values[SCRIPT_SOLICITED].number ? IBV_SEND_SOLICITED : 0);
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void set_remote(const struct script_qp *qp, const struct script_line *line,
		       struct ibv_ah *ah, struct ibv_send_wr *wr)
{
	const uint64_t address = SCRIPT_PEER_BASE + line->values[SCRIPT_ADDR].number;
	const struct script_value *key = &line->values[SCRIPT_RKEY];
	const uint32_t rkey =
		key->bad ? SCRIPT_PEER_RKEY ^ 0xffff00
			 : (uint32_t)script_number_or(line, SCRIPT_RKEY, SCRIPT_PEER_RKEY);
	const bool swaps = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	if (qp->type == IBV_QPT_UD) {
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn =
			line->values[SCRIPT_GROUP].given ? SCRIPT_GROUP_QPN : qp->peer_qpn;
		wr->wr.ud.remote_qkey =
			(uint32_t)script_number_or(line, SCRIPT_QKEY, SCRIPT_QKEY_DEFAULT);
	} else if (is_atomic(wr->opcode)) {
		wr->wr.atomic.remote_addr = address;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add =
			line->values[swaps ? SCRIPT_COMPARE : SCRIPT_ADD].number;
		wr->wr.atomic.swap = line->values[SCRIPT_SWAP].number;
	} else {
		wr->wr.rdma.remote_addr = address;
		wr->wr.rdma.rkey = rkey;
	}
}

/* --- windows --- */

uint32_t script_key(const struct script_run *run, const struct script_line *line,
		    const struct script_value *value)
{
	const uint32_t right = run->qps[line->qp].mr ? run->qps[line->qp].mr->rkey : 0;

	if (value->is_name)
		return run->windows[value->number].rkey;
	return value->bad ? right ^ 0xffff00 : (uint32_t)value->number;
}

uint32_t script_srqn(const struct script_run *run, const struct script_value *value)
{
	uint32_t number = (uint32_t)value->number;

	if (value->is_name)
		vb_get_srq_num(run->qps[value->number].srq, &number);
	return number;
}

/* Returns whose memory a binding takes: an index of run->qps. */
static unsigned int memory_of(const struct script_line *line)
{
	return (unsigned int)script_number_or(line, SCRIPT_OF, line->qp);
}

static struct ibv_mw_bind_info binding_of(const struct script_run *run,
					  const struct script_line *line)
{
	const struct script_qp *owner = &run->qps[memory_of(line)];

	return (struct ibv_mw_bind_info){
		.mr = owner->mr,
		.addr = (uintptr_t)owner->buffer + line->values[SCRIPT_AT].number,
		.length = line->values[SCRIPT_LENGTH].number,
		.mw_access_flags = (unsigned int)script_number_or(
			line, SCRIPT_ACCESS, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
	};
}

static void set_binding(const struct script_run *run, const struct script_line *line,
			struct ibv_send_wr *wr)
{
	const struct script_window *window = &run->windows[line->values[SCRIPT_WINDOW_NAME].number];

	wr->bind_mw.mw = window->mw;
	wr->bind_mw.rkey = ibv_inc_rkey(window->rkey);
	wr->bind_mw.bind_info = binding_of(run, line);
}

/* After a binding was posted, the window's name stands for its new key. */
static bool take_key(struct script_run *run, const struct script_line *line,
		     const struct ibv_send_wr *wr, bool is_posted)
{
	struct script_window *window = &run->windows[line->values[SCRIPT_WINDOW_NAME].number];

	if (!is_posted || wr->opcode != IBV_WR_BIND_MW || line->wanted_errno)
		return is_posted;
	window->rkey = wr->bind_mw.rkey;
	window->of = memory_of(line);
	return true;
}

bool script_make_window(struct script_run *run, const struct script_line *line)
{
	struct script_window *window = &run->windows[run->window_count++];
	const enum ibv_mw_type type = (enum ibv_mw_type)line->word_value;

	window->mw = vb_alloc_mw(run->qps[line->qp].pd, type);
	if (!window->mw)
		return script_fail(run->failure, line, "%s", vb_last_error());
	window->rkey = window->mw->rkey;
	window->of = line->qp;
	return true;
}

bool script_bind(struct script_run *run, const struct script_line *line)
{
	struct script_window *window = &run->windows[line->values[SCRIPT_WINDOW_NAME].number];
	struct ibv_mw_bind bind = {
		.wr_id = line->values[SCRIPT_ID].number,
		.send_flags = flags_of(line),
		.bind_info = binding_of(run, line),
	};
	const int err = vb_bind_mw(run->qps[line->qp].qp, window->mw, &bind);

	if (!script_check_errno(run, line, "bind_mw", err))
		return false;
	window->rkey = window->mw->rkey;
	window->of = memory_of(line);
	return true;
}

/* --- posting --- */

/* The QP of an XRC_SEND names the SRQ of the receiver. */
static void set_srqn(const struct script_run *run, const struct script_qp *qp,
		     const struct script_line *line, struct ibv_send_wr *wr)
{
	if (qp->type == IBV_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = script_srqn(run, &line->values[SCRIPT_SRQN]);
}

/* Returns the AH of a UD send. One to a multicast group stays until the script ends. NULL with the failure. */
static struct ibv_ah *ah_of(struct script_run *run, const struct script_qp *qp,
			    const struct script_line *line)
{
	struct ibv_ah_attr attr = script_path(run->wire, line);
	struct ibv_ah *ah;

	if (!line->values[SCRIPT_GROUP].given)
		return qp->ah;
	if (run->ah_count == SCRIPT_QPS_MAX) {
		script_fail(run->failure, line, "a script sends to groups at most %d times",
			    SCRIPT_QPS_MAX);
		return NULL;
	}
	ah = vb_create_ah(qp->pd, &attr);
	if (ah)
		run->ahs[run->ah_count++] = ah;
	else
		script_fail(run->failure, line, "%s", vb_last_error());
	return ah;
}

bool script_post_send(struct script_run *run, const struct script_line *line)
{
	struct script_qp *qp = &run->qps[line->qp];
	struct ibv_sge sge = sge_of(qp, line);
	struct ibv_ah *ah = qp->type == IBV_QPT_UD ? ah_of(run, qp, line) : NULL;
	struct ibv_send_wr wr = {
		.wr_id = line->values[SCRIPT_ID].number,
		.sg_list = &sge,
		.opcode = (enum ibv_wr_opcode)line->word_value,
		.send_flags = flags_of(line),
	};
	struct ibv_send_wr *bad;

	if (qp->type == IBV_QPT_UD && !ah)
		return false;
	if (is_atomic(wr.opcode) && !line->values[SCRIPT_LENGTH].given)
		sge.length = 8;
	wr.num_sge = sge.length != 0 && wr.opcode != IBV_WR_BIND_MW;
	wr.imm_data = htobe32((uint32_t)line->values[SCRIPT_IMM].number);
	if (wr.opcode == IBV_WR_SEND_WITH_INV || wr.opcode == IBV_WR_LOCAL_INV)
		wr.invalidate_rkey = script_key(run, line, &line->values[SCRIPT_KEY]);
	if (wr.opcode == IBV_WR_BIND_MW)
		set_binding(run, line, &wr);
	else
		set_remote(qp, line, ah, &wr);
	set_srqn(run, qp, line, &wr);
	return take_key(
		run, line, &wr,
		script_check_errno(run, line, "post_send", vb_post_send(qp->qp, &wr, &bad)));
}

bool script_post_recv(struct script_run *run, const struct script_line *line)
{
	const struct script_qp *qp = &run->qps[line->qp];
	struct ibv_sge sge = sge_of(qp, line);
	struct ibv_recv_wr wr = {
		.wr_id = line->values[SCRIPT_ID].number,
		.sg_list = &sge,
		.num_sge = sge.length != 0,
	};
	struct ibv_recv_wr *bad;

	return script_check_errno(run, line, "post_recv",
				  qp->srq ? vb_post_srq_recv(qp->srq, &wr, &bad)
					  : vb_post_recv(qp->qp, &wr, &bad));
}

/* --- multicast groups --- */

bool script_attach(struct script_run *run, const struct script_line *line)
{
	const struct script_member member = {line->qp,
					     (unsigned int)line->values[SCRIPT_GROUP].number};
	const union ibv_gid gid = script_group_gid(run->wire, member.group);
	const int err = vb_attach_mcast(run->qps[line->qp].qp, &gid,
					script_group_lid(run->wire, member.group));

	if (!err && run->member_count < SCRIPT_MEMBERS_MAX)
		run->members[run->member_count++] = member;
	return script_check_errno(run, line, "attach_mcast", err);
}

static int detach(const struct script_run *run, unsigned int qp, uint64_t group)
{
	const union ibv_gid gid = script_group_gid(run->wire, group);

	return vb_detach_mcast(run->qps[qp].qp, &gid, script_group_lid(run->wire, group));
}

bool script_detach(struct script_run *run, const struct script_line *line)
{
	return script_check_errno(run, line, "detach_mcast",
				  detach(run, line->qp, line->values[SCRIPT_GROUP].number));
}

void script_end_work(struct script_run *run)
{
	for (unsigned int i = 0; i < run->member_count; i++)
		detach(run, run->members[i].qp, run->members[i].group);
	for (unsigned int i = 0; i < run->ah_count; i++)
		vb_destroy_ah(run->ahs[i]);
	for (unsigned int i = 0; i < run->window_count; i++)
		if (run->windows[i].mw)
			vb_dealloc_mw(run->windows[i].mw);
}
