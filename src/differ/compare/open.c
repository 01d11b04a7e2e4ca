/* SPDX-License-Identifier: MIT */
#include "src/differ/compare/open.h"

#include <errno.h>

/* True if the two devices gave the object of a slot different values for one of the sizes selected in
 * `which`. */
static bool told_otherwise(const struct vd_program *program, unsigned int step, enum vd_kind kind,
			   unsigned int slot, unsigned int which, const struct vd_record *left,
			   const struct vd_record *right)
{
	int at = vd_maker(program, left, step, kind, slot);

	for (unsigned int i = 0; at >= 0 && i < VD_TOLD_MAX; i++)
		if (which & 1u << i && left->outcomes[at].told[i] != right->outcomes[at].told[i])
			return true;
	return false;
}

/* The sizes that the answer to a list of WRs may depend on. */
static unsigned int sizes_of_list(const struct vd_step *step, const struct vd_outcome *left,
				  const struct vd_outcome *right)
{
	bool full = left->answer == ENOMEM || right->answer == ENOMEM;
	unsigned int which = 0;

	if (full)
		which |= step->verb == VD_POST_RECV ? 1u << VD_TOLD_RECV_WR : 1u << VD_TOLD_WR;
	for (unsigned int i = 0; i < step->wr_count; i++) {
		if (step->wrs[i].sge_count > 1)
			which |= step->verb == VD_POST_RECV   ? 1u << VD_TOLD_RECV_SGE
				 : step->verb == VD_POST_SEND ? 1u << VD_TOLD_SEND_SGE
							      : 1u << VD_TOLD_SRQ_SGE;
		if (step->verb == VD_POST_SEND && step->wrs[i].flags & IBV_SEND_INLINE)
			which |= 1u << VD_TOLD_INLINE;
	}
	return which;
}

bool vd_asks_for_nothing(const struct vd_step *step)
{
	for (unsigned int i = 0; step->verb == VD_POST_SEND && i < step->wr_count; i++)
		if (step->wrs[i].flags & IBV_SEND_INLINE &&
		    (step->wrs[i].opcode == IBV_WR_RDMA_READ || vd_is_atomic(step->wrs[i].opcode)))
			return true;
	return false;
}

bool vd_sizes_differ(const struct vd_program *program, unsigned int step,
		     const struct vd_record *left, const struct vd_record *right)
{
	const struct vd_step *at = &program->steps[step];
	unsigned int which = sizes_of_list(at, &left->outcomes[step], &right->outcomes[step]);

	switch (at->verb) {
	case VD_POST_SEND:
	case VD_POST_RECV:
		return told_otherwise(program, step, VD_QP, at->slot, which, left, right);
	case VD_BIND_MW:
		return told_otherwise(program, step, VD_QP, at->qp, which, left, right);
	case VD_POST_SRQ_RECV:
		return told_otherwise(program, step, VD_SRQ, at->slot, which, left, right);
	case VD_MODIFY_SRQ:
		return told_otherwise(program, step, VD_SRQ, at->slot, 1u << VD_TOLD_WR, left,
				      right);
	default:
		return false;
	}
}

/* True if several work queues complete to the CQ. */
static bool is_shared(const struct vd_program *program, unsigned int step, unsigned int cq)
{
	unsigned int queues = 0;

	for (unsigned int i = 0; i < step; i++) {
		const struct vd_step *made = &program->steps[i];

		if (made->verb == VD_CREATE_QP)
			queues += (made->cq == cq) + (made->recv_cq == cq);
	}
	return queues > 1;
}

bool vd_lost_any(const struct vd_program *program, unsigned int step,
		 const struct vd_record *record)
{
	for (unsigned int i = 0; i < record->event_count; i++)
		if (record->events[i].step <= step && record->events[i].type == IBV_EVENT_CQ_ERR &&
		    record->events[i].slot >= 0 &&
		    is_shared(program, step, (unsigned int)record->events[i].slot))
			return true;
	return false;
}

bool vd_overruns_differ(const struct vd_program *program, unsigned int step,
			const struct vd_record *left, const struct vd_record *right)
{
	const struct vd_record *const sides[] = {left, right};

	for (int side = 0; side < 2; side++)
		for (unsigned int i = 0; i < sides[side]->event_count; i++) {
			const struct vd_event *event = &sides[side]->events[i];

			if (event->step == step && event->type == IBV_EVENT_CQ_ERR &&
			    event->slot >= 0 &&
			    told_otherwise(program, step, VD_CQ, (unsigned int)event->slot,
					   1u << VD_TOLD_WR, left, right))
				return true;
		}
	return false;
}

/* True if the completion is of a send that was flushed because a send before it failed. */
static bool is_cut_off(const struct vd_record *record, unsigned int at)
{
	const struct vd_completion *flushed = &record->completions[at];

	if (flushed->status != IBV_WC_WR_FLUSH_ERR || vd_wr_id_receives(flushed->wr_id))
		return false;
	for (unsigned int i = 0; i < at; i++) {
		const struct vd_completion *failed = &record->completions[i];

		if (failed->step == flushed->step && failed->qp == flushed->qp &&
		    failed->status != IBV_WC_SUCCESS && failed->status != IBV_WC_WR_FLUSH_ERR &&
		    !vd_wr_id_receives(failed->wr_id))
			return true;
	}
	return false;
}

bool vd_may_have_run(unsigned int step, const struct vd_record *record)
{
	for (unsigned int i = 0; i < record->completion_count; i++)
		if (record->completions[i].step == step && is_cut_off(record, i))
			return true;
	return false;
}

bool vd_may_be_bound(const struct vd_program *program, unsigned int step,
		     const struct vd_record *record)
{
	for (unsigned int i = 0; i < record->completion_count; i++) {
		uint64_t wr_id = record->completions[i].wr_id;
		const struct vd_step *post = &program->steps[vd_wr_id_step(wr_id)];
		unsigned int opcode;

		if (record->completions[i].step > step || !is_cut_off(record, i) ||
		    post->verb != VD_POST_SEND)
			continue;
		opcode = post->wrs[vd_wr_id_wr(wr_id)].opcode;
		if (opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV)
			return true;
	}
	return false;
}

/* True if the QP of a slot was connected and later reset, up to the end of a step. */
static bool was_reset(const struct vd_program *program, unsigned int step, unsigned int slot,
		      const struct vd_record *record)
{
	int made = vd_maker(program, record, step, VD_QP, slot);
	bool connected = false;

	for (unsigned int i = (unsigned int)made; made >= 0 && i <= step; i++) {
		connected |= record->outcomes[i].states[slot] >= IBV_QPS_RTS;
		if (connected && record->outcomes[i].states[slot] == IBV_QPS_RESET)
			return true;
	}
	return false;
}

bool vd_may_be_mistaken(const struct vd_program *program, const struct vd_record *record,
			const struct vd_completion *left, const struct vd_completion *right)
{
	const struct vd_step *post = left ? &program->steps[vd_wr_id_step(left->wr_id)] : NULL;
	unsigned int opcode;

	if (!left || !right || left->wr_id != right->wr_id || post->verb != VD_POST_SEND)
		return false;
	opcode = post->wrs[vd_wr_id_wr(left->wr_id)].opcode;
	return vd_is_atomic(opcode) && left->status != right->status &&
	       (left->status == IBV_WC_SUCCESS || right->status == IBV_WC_SUCCESS) &&
	       was_reset(program, left->step, post->slot, record);
}

/* True if a QP in RESET refused a list but not its first WR: a device that checks the state before it
 * queues would name the first. */
static bool keeps_refused(const struct vd_program *program, unsigned int step,
			  const struct vd_record *record)
{
	const struct vd_step *at = &program->steps[step];
	const struct vd_outcome *outcome = &record->outcomes[step];

	return at->verb == VD_POST_SEND && outcome->answer == EINVAL && outcome->bad != 0 &&
	       outcome->states[at->slot] == IBV_QPS_RESET &&
	       was_reset(program, step, at->slot, record);
}

bool vd_may_be_dropped(const struct vd_program *program, unsigned int step,
		       const struct vd_record *record)
{
	for (unsigned int i = 0; i <= step; i++)
		if (keeps_refused(program, i, record))
			return true;
	return false;
}

static bool was_seen(const struct vd_record *record, const struct vd_completion *right)
{
	for (unsigned int i = 0; i < record->completion_count; i++)
		if (record->completions[i].step <= right->step &&
		    record->completions[i].wr_id == right->wr_id)
			return true;
	return false;
}

/* True if an RC QP sent something before a step: its timer may still run. */
static bool has_sent(const struct vd_program *program, unsigned int step, unsigned int slot,
		     const struct vd_record *record)
{
	int made = vd_maker(program, record, step, VD_QP, slot);

	if (made < 0 || program->steps[made].type != IBV_QPT_RC)
		return false;
	for (unsigned int i = (unsigned int)made + 1; i < step; i++) {
		unsigned int before = record->outcomes[i - 1].states[slot];

		if (program->steps[i].verb == VD_POST_SEND && program->steps[i].slot == slot &&
		    (before == IBV_QPS_RTS || before == IBV_QPS_SQD) && !record->outcomes[i].answer)
			return true;
	}
	return false;
}

bool vd_may_wait(const struct vd_program *program, const struct vd_record *record,
		 const struct vd_completion *right)
{
	unsigned int at;

	if (!right || right->qp < 0 || right->status != IBV_WC_WR_FLUSH_ERR ||
	    vd_wr_id_receives(right->wr_id) || was_seen(record, right))
		return false;
	at = vd_wr_id_step(right->wr_id);
	return program->steps[at].verb == VD_POST_SEND &&
	       record->outcomes[at].states[right->qp] == IBV_QPS_ERR &&
	       has_sent(program, at, (unsigned int)right->qp, record);
}
