/* SPDX-License-Identifier: MIT */
/*
 * ud-header. The first 40 bytes of a datagram's receive are the place of the GRH: ibv_post_recv(3), Notes. A
 * receive with less room takes no datagram at all; one with exactly as much takes empty ones. A receive that
 * failed because the datagram and the GRH together are too long is a finding if the datagram alone fits. A QP
 * that is not ready to receive may have receives of any length: it takes no datagram for them.
 *
 * A datagram without a GRH leaves the place of the GRH undefined. Under memcheck these 40 bytes count as
 * undefined until the program writes them.
 */
#include "src/check/check.h"
#include "src/check/look.h"
#include "src/check/poison.h"

#include <inttypes.h>
#include <verbena/explain.h>

#define GRH_BYTES 40

static CHECK_RARE void check_room(const struct check_qp *qp, const struct work *work)
{
	const uint64_t room = work->length_bytes;
	char object[64], name[64];

	if (room >= GRH_BYTES)
		return;
	offence_report(VB_RULE_UD_HEADER,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = "posted", .spot = work->posted},
		       },
		       "%s: %s has %" PRIu64 " bytes, too few for the GRH of any datagram",
		       check_name(qp->object.handle, object, sizeof(object)),
		       check_work_name(work, name, sizeof(name)), room);
}

static bool takes_datagrams(const struct check_qp *qp)
{
	enum ibv_qp_state state;

	return look_state((struct ibv_qp *)qp->object.handle, &state) &&
	       (state == IBV_QPS_RTR || state == IBV_QPS_RTS || state == IBV_QPS_SQD ||
		state == IBV_QPS_SQE);
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (qp && !work->send && qp->type == IBV_QPT_UD && work->length_bytes < GRH_BYTES &&
	    takes_datagrams(qp))
		check_room(qp, work);
}

/* The receives were posted before the QP was ready. */
static void after_modify(struct check_call *check)
{
	const struct check_qp *qp = check->qp;

	if (check->call->err || !qp || qp->type != IBV_QPT_UD || qp->state != IBV_QPS_RTR ||
	    !((int)check->call->arguments[2] & IBV_QP_STATE))
		return;
	for (uint64_t i = 0; i < work_count(&qp->receives); i++)
		check_room(qp, work_at(&qp->receives, i));
}

/* Adapters end a short receive with the first one; SoftRoCE of Linux 6.1 with the second one. Most devices
 * drop the datagram instead, and no completion shows it. */
static bool is_length_status(enum ibv_wc_status status)
{
	return status == IBV_WC_LOC_LEN_ERR || status == IBV_WC_LOC_QP_OP_ERR;
}

/* Values of the reason: the bytes of the datagram, the same with the GRH, and the room. */
static void judge(const struct check_call *check, const struct check_qp *qp,
		  const struct work *work, const struct ibv_wc *wc)
{
	char object[64], name[64];
	struct vb_completion_why found;
	const uint64_t *values = found.why.values;

	if (vb_completion_why(qp->object.context, wc, &found) ||
	    found.why.reason != VB_WHY_LENGTH_DATAGRAM_RECEIVE || values[2] < values[0])
		return;
	offence_report(VB_RULE_UD_HEADER,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = "posted", .spot = work->posted},
			       {.label = "polled", .spot = check->spot},
		       },
		       "%s: %s has %" PRIu64 " bytes, enough for the datagram of %" PRIu64
		       ", but not for the GRH before it",
		       check_name(qp->object.handle, object, sizeof(object)),
		       check_work_name(work, name, sizeof(name)), values[2], values[0]);
}

static CHECK_RARE void make_header_undefined(const struct work *work)
{
	size_t left = GRH_BYTES;

	for (uint32_t i = 0; left && i < work->sge_count; i++) {
		const size_t length = work->sges[i].sge.length;
		const size_t part = length < left ? length : left;

		if (work->sges[i].memory)
			poison_make_undefined((void *)work->sges[i].memory, part);
		left -= part;
	}
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (!wc || work->send || qp->type != IBV_QPT_UD)
		return;
	if (is_length_status(wc->status))
		judge(check, qp, work, wc);
	else if (poison_active && wc->status == IBV_WC_SUCCESS && !(wc->wc_flags & IBV_WC_GRH))
		make_header_undefined(work);
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{0},
};

const struct check_rule rule_datagram = {
	.hooks = hooks,
	.posted = posted,
	.posted_rarely = true,
	.done = done,
	.done_rarely = true,
};
