/* SPDX-License-Identifier: MIT */
/*
 * A responder that is as late as it may be, by its device's quirks: its answers leave together some time after
 * they are due, the data of an RDMA WRITE come into memory in another order, and the first attempt of a message
 * that takes a receive draws an RNR NAK. Its turn is that of a QP that asks for room.
 */
#include "sim/qp/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Within the local_ca_ack_delay of the profile hostile, 4.096 us * 2^3. */
#define ANSWER_NS 30000u

/* Codes of credits: sim_late_credits(). */
#define CREDIT_CODES 31

/* --- data of WRITEs --- */

/* Puts the data that are kept back into memory, if the memory still takes them. The PD is still that of the WRITE:
 * later requests come, and answers leave, after this. */
static void settle(struct sim_late *late)
{
	struct sim_qp *qp = late->qp;
	const struct sim_span from = {late->data, late->bytes};
	struct sim_span to = {NULL, late->bytes};

	if (!late->bytes)
		return;
	to.base = sim_responder_memory(qp, late->rkey, late->addr, late->bytes,
				       IBV_ACCESS_REMOTE_WRITE);
	if (to.base)
		sim_qp_copy(qp, &from, 1, &to, 1);
	late->bytes = 0;
}

static void start_timer(struct sim_late *late)
{
	struct sim_clock *clock = &late->qp->engine->clock;

	if (late->timer.deadline_ns == SIM_NEVER)
		sim_timer_arm(clock, &late->timer, sim_clock_now_ns(clock) + ANSWER_NS);
}

bool sim_late_write(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags,
		    const struct sim_span *to)
{
	struct sim_late *late = qp->late;
	const uint32_t bytes = packet->payload_bytes;
	const uint32_t kept = flags & SIM_OP_END ? bytes - 1 : bytes;
	const struct sim_span rest = {late->data + kept, bytes - kept};
	const struct sim_span target = {(uint8_t *)to->base + kept, bytes - kept};
	const struct sim_span all = {late->data, bytes};

	if (!qp->device->quirks.writes_end_first || !(flags & SIM_OP_START) ||
	    flags & SIM_OP_COMPLETES)
		return false;
	if (sim_qp_copy(qp, packet->spans, packet->span_count, &all, 1) ||
	    (rest.length_bytes && sim_qp_copy(qp, &rest, 1, &target, 1)))
		return false;
	late->bytes = kept;
	late->addr = packet->remote_addr;
	late->rkey = packet->rkey;
	if (kept)
		start_timer(late);
	return true;
}

/* --- answers --- */

static void time_over(struct sim_timer *timer)
{
	struct sim_late *late =
		(struct sim_late *)((char *)timer - offsetof(struct sim_late, timer));

	settle(late);
	late->due = late->qp->resp.ack || late->qp->resp.resources_pending;
	if (late->due)
		sim_qp_wake_responder(late->qp);
}

bool sim_late_holds(struct sim_qp *qp)
{
	struct sim_late *late = qp->late;

	/* A NAK does not wait, nor does what has to leave before it. */
	if (!late->due && !qp->resp.nak_pending &&
	    (late->bytes || qp->device->quirks.answers_come_late)) {
		start_timer(late);
		return true;
	}
	settle(late);
	return false;
}

void sim_late_answered(struct sim_qp *qp)
{
	qp->late->due = false;
	sim_timer_disarm(&qp->late->timer);
}

void sim_late_hurry(struct sim_qp *qp)
{
	settle(qp->late);
	qp->late->due = true;
	sim_qp_wake_responder(qp);
}

/* --- requests --- */

/* Each message that takes a receive is refused once. */
static bool is_first_attempt(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	struct sim_late *late = qp->late;

	if (!(flags & SIM_OP_RECV) || packet->psn != qp->resp.psn || qp->relay.ahead ||
	    !sim_in_sequence(&qp->resp, flags))
		return false;
	if (late->refused && late->refused_psn == packet->psn) {
		late->refused = false;
		return false;
	}
	late->refused = true;
	late->refused_psn = packet->psn;
	return true;
}

bool sim_late_refuses(struct sim_qp *qp, const struct sim_packet *packet, uint32_t flags)
{
	const bool continues = flags & SIM_OP_WRITE && !(flags & (SIM_OP_START | SIM_OP_COMPLETES));

	/* Later requests see the data of the WRITE. */
	if (!continues)
		settle(qp->late);
	return qp->device->quirks.first_attempts_find_no_receive &&
	       is_first_attempt(qp, packet, flags);
}

/* --- credits --- */

/* The count that a code stands for: 0, 1, 2, 3, 4, 6, 8, 12, 16, 24 and so on. */
static uint32_t credits_of(unsigned int code)
{
	if (code < 2)
		return code;
	return code % 2 ? 3u << (code - 3) / 2 : 1u << code / 2;
}

uint8_t sim_late_credits(const struct sim_qp *qp)
{
	const uint32_t receives = sim_qp_receives(qp);
	unsigned int code = 0;

	if (!qp->device->quirks.acks_tell_credits || !qp->has_rq)
		return SIM_ACK_CREDIT_NONE;
	while (code + 1 < CREDIT_CODES && credits_of(code + 1) <= receives)
		code++;
	return (uint8_t)code;
}

/* --- its making and end --- */

static bool is_late(const struct sim_quirks *quirks)
{
	return quirks->answers_come_late || quirks->writes_end_first ||
	       quirks->first_attempts_find_no_receive || quirks->acks_tell_credits;
}

int sim_late_attach(struct sim_qp *qp)
{
	struct sim_late *late;

	if (!qp->reliable || !is_late(&qp->device->quirks))
		return 0;
	late = calloc(1, sizeof(*late));
	if (!late || sim_clock_reserve(&qp->engine->clock)) {
		free(late);
		return ENOMEM;
	}
	late->qp = qp;
	sim_timer_init(&late->timer, time_over);
	qp->late = late;
	return 0;
}

void sim_late_reset(struct sim_qp *qp)
{
	struct sim_late *late = qp->late;

	sim_timer_disarm(&late->timer);
	late->due = late->refused = false;
	late->bytes = 0;
}

void sim_late_detach(struct sim_qp *qp)
{
	if (!qp->late)
		return;
	sim_clock_release(&qp->engine->clock, &qp->late->timer);
	free(qp->late);
}
