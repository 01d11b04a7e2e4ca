/* SPDX-License-Identifier: MIT */
/*
 * receive-missing, for two connected QPs of this process.
 *
 * A send fails with IBV_WC_RNR_RETRY_EXC_ERR, and no receive was posted at the peer since it was created or
 * reset. And: a send waits for 655.36 ms, since the peer had no receive, the min_rnr_timer of the peer is
 * 0 and the rnr_retry of the sender is 7. The time and a counter of the simulated device show that the
 * send has waited.
 */
#include "src/check/check.h"
#include "src/check/peer_qp.h"

#include <verbena/sim.h>

#define ENDLESS	       7	 /* of rnr_retry */
#define LONGEST_RNR_NS 655360000 /* of min_rnr_timer 0 */

static bool takes_receive(const struct work *work)
{
	return work->opcode == IBV_WR_SEND || work->opcode == IBV_WR_SEND_WITH_IMM ||
	       work->opcode == IBV_WR_SEND_WITH_INV || work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* --- receives that are missing --- */

static void dropped(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (qp && !work->send && check->call->verb == LAYER_modify_qp)
		qp->drops_receives = true;
}

static void report_missing(const struct check_qp *qp, const struct check_qp *peer,
			   const struct work *work)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "peer modified", .spot = peer->rtr_at},
		{.label = "posted", .spot = work->posted},
	};
	char name[64], peer_name[64], work_name[64];

	offence_report(
		VB_RULE_RECEIVE_MISSING, places,
		"%s: %s has failed since its peer, %s, had no receive: %s",
		check_name(qp->object.handle, name, sizeof(name)),
		check_work_name(work, work_name, sizeof(work_name)),
		check_name(peer->object.handle, peer_name, sizeof(peer_name)),
		peer->lost_receives
			? "the change to IBV_QPS_RESET has dropped its receives, and none was "
			  "posted afterwards"
			: "none was posted");
}

/* --- sends that wait long --- */

static bool waits_long(const struct check_qp *qp, const struct check_qp *peer)
{
	return qp->type == IBV_QPT_RC && qp->attr_mask & IBV_QP_RNR_RETRY &&
	       qp->attr.rnr_retry == ENDLESS && peer->attr_mask & IBV_QP_MIN_RNR_TIMER &&
	       !peer->attr.min_rnr_timer && !peer->srq;
}

static bool count_naks(const struct check_qp *peer, uint64_t *count)
{
	return !vb_sim_counter(peer->object.context, "send_rnr_err", count);
}

static CHECK_RARE void look_at_receives(const struct check_call *check, struct check_qp *qp,
					const struct work *work)
{
	const struct check_qp *peer;

	if (qp->unreceived || !work->send || !takes_receive(work))
		return;
	peer = peer_find(qp);
	if (!peer || !waits_long(qp, peer) || work_count(&peer->receives) ||
	    !count_naks(peer, &qp->unreceived_naks))
		return;
	qp->unreceived = work->number;
	qp->unreceived_ns = layer_now_ns(check->call);
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (qp && qp->waits_long)
		look_at_receives(check, qp, work);
}

static void report_long(const struct check_qp *qp, const struct check_qp *peer,
			const struct work *work)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "modified", .spot = qp->rts_at},
		{.label = "peer modified", .spot = peer->rtr_at},
		{.label = "posted", .spot = work->posted},
	};
	char name[64], peer_name[64], work_name[64];

	offence_report(
		VB_RULE_RECEIVE_MISSING, places,
		"%s: %s has waited for 655.36 ms or longer: its peer, %s, had no receive and "
		"has min_rnr_timer 0, and rnr_retry 7 repeats the send without end",
		check_name(qp->object.handle, name, sizeof(name)),
		check_work_name(work, work_name, sizeof(work_name)),
		check_name(peer->object.handle, peer_name, sizeof(peer_name)));
}

static CHECK_RARE void look_at_wait(const struct check_call *check, struct check_qp *qp,
				    const struct work *work)
{
	const struct check_qp *peer = peer_find(qp);
	uint64_t naks;

	qp->unreceived = 0;
	if (!peer || layer_now_ns(check->call) - qp->unreceived_ns < LONGEST_RNR_NS ||
	    !count_naks(peer, &naks) || naks == qp->unreceived_naks)
		return;
	report_long(qp, peer, work);
}

static CHECK_RARE void look_at_failed(const struct check_qp *qp, const struct work *work)
{
	const struct check_qp *peer = peer_find(qp);

	if (peer && !peer->srq && peer->receives.tail == peer->receives_then)
		report_missing(qp, peer, work);
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (!work->send)
		return;
	if (qp->unreceived == work->number)
		look_at_wait(check, qp, work);
	if (wc && wc->status == IBV_WC_RNR_RETRY_EXC_ERR)
		look_at_failed(qp, work);
}

/* --- states --- */

static void after_modify(struct check_call *check)
{
	struct check_qp *qp = check->qp;
	struct check_qp *peer;

	if (check->call->err || !qp || qp->type != IBV_QPT_RC)
		return;
	if ((int)check->call->arguments[2] & IBV_QP_STATE && qp->state == IBV_QPS_RESET) {
		qp->lost_receives = qp->drops_receives;
		qp->drops_receives = false;
		qp->receives_then = qp->receives.tail;
		qp->unreceived = 0;
	}
	peer = peer_find(qp);
	/* A send that waits is judged when it is done. */
	qp->waits_long = qp->unreceived || (peer && waits_long(qp, peer));
	if (peer)
		peer->waits_long = peer->unreceived || waits_long(peer, qp);
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{0},
};

const struct check_rule rule_receive = {
	.hooks = hooks,
	.posted = posted,
	.posted_rarely = true,
	.done = done,
	.done_rarely = true,
	.dropped = dropped,
};
