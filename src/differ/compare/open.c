/* SPDX-License-Identifier: MIT */
#include "src/differ/compare/open.h"

#include "src/base/count.h"

#include <errno.h>

static const struct vd_step *step_of(const struct vd_sides *sides)
{
	return &sides->program->steps[sides->step];
}

/* The opcode of the send that a completion is of; -1 for other completions. */
static int opcode_of(const struct vd_sides *sides, uint64_t wr_id)
{
	const struct vd_step *post = &sides->program->steps[vd_wr_id_step(wr_id)];

	return post->verb == VD_POST_SEND ? (int)post->wrs[vd_wr_id_wr(wr_id)].opcode : -1;
}

/* True if the two devices gave the object of a slot different values for one of the sizes
 * selected in `which`. */
static bool has_other_size(const struct vd_sides *sides, enum vd_kind kind, unsigned int slot,
			   unsigned int which)
{
	int at = vd_maker(sides->program, sides->left, sides->step, kind, slot);

	for (unsigned int i = 0; at >= 0 && i < VD_SIZE_MAX; i++)
		if (which & 1u << i &&
		    sides->left->outcomes[at].sizes[i] != sides->right->outcomes[at].sizes[i])
			return true;
	return false;
}

/* The sizes that the answer to a list of WRs may depend on. */
static unsigned int sizes_of_list(const struct vd_sides *sides)
{
	const struct vd_step *step = step_of(sides);
	enum vd_size room = step->verb == VD_POST_RECV ? VD_SIZE_RECV_WR : VD_SIZE_WR;
	enum vd_size sges = step->verb == VD_POST_RECV	 ? VD_SIZE_RECV_SGE
			    : step->verb == VD_POST_SEND ? VD_SIZE_SEND_SGE
							 : VD_SIZE_SRQ_SGE;
	unsigned int which = 0;

	if (sides->left->outcomes[sides->step].answer == ENOMEM ||
	    sides->right->outcomes[sides->step].answer == ENOMEM)
		which |= 1u << room;
	for (unsigned int i = 0; i < step->wr_count; i++) {
		if (step->wrs[i].sge_count > 1)
			which |= 1u << sges;
		if (step->verb == VD_POST_SEND && step->wrs[i].flags & IBV_SEND_INLINE)
			which |= 1u << VD_SIZE_INLINE;
	}
	return which;
}

/* True if a list asks for IBV_SEND_INLINE where it has no meaning: ibv_post_send(3) defines it
 * for SEND and RDMA WRITE. */
static bool asks_for_nothing(const struct vd_sides *sides)
{
	const struct vd_step *step = step_of(sides);

	for (unsigned int i = 0; step->verb == VD_POST_SEND && i < step->wr_count; i++)
		if (step->wrs[i].flags & IBV_SEND_INLINE &&
		    (step->wrs[i].opcode == IBV_WR_RDMA_READ || vd_is_atomic(step->wrs[i].opcode)))
			return true;
	return false;
}

/* True if the answer may differ because one side's queue or inline data has more room. */
static bool sizes_differ(const struct vd_sides *sides)
{
	const struct vd_step *step = step_of(sides);
	unsigned int which = sizes_of_list(sides);

	switch (step->verb) {
	case VD_POST_SEND:
	case VD_POST_RECV:
		return has_other_size(sides, VD_QP, step->slot, which);
	case VD_BIND_MW:
		return has_other_size(sides, VD_QP, step->qp, which);
	case VD_POST_SRQ_RECV:
		return has_other_size(sides, VD_SRQ, step->slot, which);
	case VD_MODIFY_SRQ:
		return has_other_size(sides, VD_SRQ, step->slot, 1u << VD_SIZE_WR);
	default:
		return false;
	}
}

/* True if several work queues complete to the CQ. */
static bool is_shared(const struct vd_sides *sides, unsigned int cq)
{
	unsigned int queues = 0;

	for (unsigned int i = 0; i < sides->step; i++) {
		const struct vd_step *made = &sides->program->steps[i];

		if (made->verb == VD_CREATE_QP)
			queues += (made->cq == cq) + (made->recv_cq == cq);
	}
	return queues > 1;
}

static bool is_overrun(const struct vd_event *event)
{
	return event->type == IBV_EVENT_CQ_ERR && event->slot >= 0;
}

/* True if a CQ of several work queues has overrun: the completions that found no room depend on
 * the queues' order, which is open. */
static bool lost_any(const struct vd_sides *sides)
{
	for (unsigned int i = 0; i < sides->left->event_count; i++) {
		const struct vd_event *event = &sides->left->events[i];

		if (event->step <= sides->step && is_overrun(event) &&
		    is_shared(sides, (unsigned int)event->slot))
			return true;
	}
	return false;
}

static bool has_other_room(const struct vd_sides *sides, const struct vd_record *record)
{
	for (unsigned int i = 0; i < record->event_count; i++) {
		const struct vd_event *event = &record->events[i];

		if (event->step == sides->step && is_overrun(event) &&
		    has_other_size(sides, VD_CQ, (unsigned int)event->slot, 1u << VD_SIZE_WR))
			return true;
	}
	return false;
}

/* True if a CQ overran in the step and the sides gave it different room. */
static bool overruns_differ(const struct vd_sides *sides)
{
	return has_other_room(sides, sides->left) || has_other_room(sides, sides->right);
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

/* True if a send was flushed in the step behind a failed one. It may have run all the same, and
 * may have changed the peer's memory and used a receive. */
static bool may_have_run(const struct vd_sides *sides)
{
	for (unsigned int i = 0; i < sides->left->completion_count; i++)
		if (sides->left->completions[i].step == sides->step && is_cut_off(sides->left, i))
			return true;
	return false;
}

/* True if, up to the step, a flushed send that may have run binds or invalidates a window: that
 * shows whenever the window or its region is used. */
static bool may_be_bound(const struct vd_sides *sides)
{
	for (unsigned int i = 0; i < sides->left->completion_count; i++) {
		const struct vd_completion *completion = &sides->left->completions[i];
		int opcode = opcode_of(sides, completion->wr_id);

		if (completion->step <= sides->step && is_cut_off(sides->left, i) &&
		    (opcode == IBV_WR_BIND_MW || opcode == IBV_WR_LOCAL_INV))
			return true;
	}
	return false;
}

/* True if the QP of a slot was connected and later reset, up to the end of a step. */
static bool was_reset(const struct vd_sides *sides, unsigned int step, unsigned int slot)
{
	int made = vd_maker(sides->program, sides->left, step, VD_QP, slot);
	bool connected = false;

	for (unsigned int i = (unsigned int)made; made >= 0 && i <= step; i++) {
		unsigned int state = sides->left->outcomes[i].states[slot];

		connected |= state >= IBV_QPS_RTS;
		if (connected && state == IBV_QPS_RESET)
			return true;
	}
	return false;
}

/* True if the completion is of an atomic whose PSN the peer may know from another request, from
 * before a reset of the atomic's QP. */
static bool may_be_mistaken(const struct vd_sides *sides)
{
	const struct vd_completion *left = sides->completions[0], *right = sides->completions[1];
	int opcode;

	if (!left || !right || left->wr_id != right->wr_id)
		return false;
	opcode = opcode_of(sides, left->wr_id);
	return opcode >= 0 && vd_is_atomic((unsigned int)opcode) && left->status != right->status &&
	       (left->status == IBV_WC_SUCCESS || right->status == IBV_WC_SUCCESS) &&
	       was_reset(sides, left->step, sides->program->steps[vd_wr_id_step(left->wr_id)].slot);
}

/* True if a QP in RESET refused a list but not its first WR: a device that checks the state
 * before it queues would name the first. */
static bool keeps_refused(const struct vd_sides *sides, unsigned int step)
{
	const struct vd_step *at = &sides->program->steps[step];
	const struct vd_outcome *outcome = &sides->left->outcomes[step];

	return at->verb == VD_POST_SEND && outcome->answer == EINVAL && outcome->bad != 0 &&
	       outcome->states[at->slot] == IBV_QPS_RESET && was_reset(sides, step, at->slot);
}

/* True if a device may have kept sends that it refused in RESET, as SoftRoCE does until a timer
 * of the previous connection empties the queue (Linux drivers/infiniband/sw/rxe/rxe_comp.c,
 * rxe_completer). The moment depends on timing. */
static bool may_be_dropped(const struct vd_sides *sides)
{
	for (unsigned int i = 0; i <= sides->step; i++)
		if (keeps_refused(sides, i))
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
static bool has_sent(const struct vd_sides *sides, unsigned int step, unsigned int slot)
{
	int made = vd_maker(sides->program, sides->left, step, VD_QP, slot);

	if (made < 0 || sides->program->steps[made].type != IBV_QPT_RC)
		return false;
	for (unsigned int i = (unsigned int)made + 1; i < step; i++) {
		const struct vd_step *at = &sides->program->steps[i];
		unsigned int before = sides->left->outcomes[i - 1].states[slot];

		if (at->verb == VD_POST_SEND && at->slot == slot &&
		    (before == IBV_QPS_RTS || before == IBV_QPS_SQD) &&
		    !sides->left->outcomes[i].answer)
			return true;
	}
	return false;
}

/* True if only the right side has flushed a send that was posted in ERR: SoftRoCE may keep it
 * until a timer of earlier sends empties the queue (see may_be_dropped()). */
static bool may_wait(const struct vd_sides *sides)
{
	const struct vd_completion *right = sides->completions[1];
	unsigned int at;

	if (!right || right->qp < 0 || right->status != IBV_WC_WR_FLUSH_ERR ||
	    vd_wr_id_receives(right->wr_id) || was_seen(sides->left, right))
		return false;
	at = vd_wr_id_step(right->wr_id);
	return sides->program->steps[at].verb == VD_POST_SEND &&
	       sides->left->outcomes[at].states[right->qp] == IBV_QPS_ERR &&
	       has_sent(sides, at, (unsigned int)right->qp);
}

/* True if the left side has BAD_RESP_ERR. Only ends with different path MTUs get this status, and
 * no rule says what a requester does with responses that are too short. */
static bool is_response_short(const struct vd_sides *sides)
{
	return sides->completions[0] && sides->completions[0]->status == IBV_WC_BAD_RESP_ERR;
}

/* True if the sides differ in a receive, which a send that may have run has used or not. */
static bool receives_differ(const struct vd_sides *sides)
{
	const struct vd_completion *left = sides->completions[0], *right = sides->completions[1];
	bool right_first = !left || (right && vd_queue_of(right) < vd_queue_of(left));

	return vd_wr_id_receives((right_first ? right : left)->wr_id) && may_have_run(sides);
}

static bool is_limit(const struct vd_event *event)
{
	return event && event->type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

/* True if only one side has reached an SRQ's limit, which depends on the receives that were
 * used. */
static bool limits_differ(const struct vd_sides *sides)
{
	return is_limit(sides->events[0]) != is_limit(sides->events[1]) && may_have_run(sides);
}

#define ABOUT(subject) (1u << VD_##subject)
#define ANSWERS	       (ABOUT(ANSWER) | ABOUT(BAD_WR) | ABOUT(VALUE))
#define STATES	       (ABOUT(EVENT) | ABOUT(STATE) | ABOUT(MEMORY))
#define EFFECTS	       (ABOUT(COMPLETION) | STATES)

/* What leaves a difference open, and the subjects of such differences. */
static const struct {
	unsigned int abouts; /* bits of enum vd_about */
	bool (*applies)(const struct vd_sides *sides);
} rules[] = {
	{ANSWERS, asks_for_nothing},
	{ANSWERS, sizes_differ},
	{ABOUT(COMPLETION), is_response_short},
	{ABOUT(COMPLETION), receives_differ},
	{ABOUT(COMPLETION), may_be_mistaken},
	{ABOUT(COMPLETION), may_wait},
	{ABOUT(EVENT), limits_differ},
	{ABOUT(MEMORY), may_have_run},
	{STATES, lost_any},
	{EFFECTS, overruns_differ},
	{ANSWERS | EFFECTS, may_be_bound},
	{ANSWERS | EFFECTS, may_be_dropped},
};

bool vd_is_open(const struct vd_sides *sides)
{
	for (unsigned int i = 0; i < COUNT(rules); i++)
		if (rules[i].abouts & 1u << sides->difference->about && rules[i].applies(sides))
			return true;
	return false;
}
