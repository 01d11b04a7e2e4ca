/* SPDX-License-Identifier: MIT */
/*
 * Answers of proxies to requests that the responder of an XRC target has relayed (relay.c). The responder sends the ACKs
 * and NAKs of the proxy, and after a NAK expects the refused request.
 */
#include "sim/qp/private.h"
#include "sim/wire/psn.h"

/* Counts the PSNs from the oldest relayed request without an answer. When none is left, sends the sequence NAK for a
 * request that was dropped meanwhile. */
static void count_ahead(struct sim_qp *qp)
{
	const struct sim_resource *oldest = sim_answer_oldest_relayed(qp);
	uint32_t from = sim_psn_add(qp->relay.acked, 1);

	if (oldest && sim_psn_diff(oldest->first_psn, from) < 0)
		from = oldest->first_psn;
	qp->relay.ahead = (uint32_t)sim_psn_diff(qp->resp.psn, from);
	if (qp->relay.ahead || !qp->relay.gap)
		return;
	qp->relay.gap = false;
	qp->device->counters.sequence_naks_sent++;
	sim_responder_nak(qp, SIM_NAK_PSN_SEQUENCE);
}

void sim_responder_relay_settled(struct sim_qp *qp, uint32_t psn)
{
	if (!qp->relay.ahead)
		return;
	if (sim_psn_diff(psn, qp->relay.acked) > 0)
		qp->relay.acked = psn;
	count_ahead(qp);
}

static void relayed_ack(struct sim_qp *qp, uint32_t psn)
{
	sim_responder_set_ack_psn(qp, psn);
	sim_responder_owe_ack(qp);
	qp->relay.acked = psn;
	count_ahead(qp);
}

void sim_responder_relay_failed(struct sim_qp *qp)
{
	if (qp->state == IBV_QPS_ERR)
		return;
	sim_relay_reset(qp);
	sim_qp_fail(qp, SIM_BY_RECEIVE);
}

void sim_responder_relayed(struct sim_qp *qp, uint32_t psn, uint8_t syndrome, uint32_t msn,
			   uint32_t message)
{
	const bool ack = (syndrome & SIM_AETH_TYPE) == SIM_AETH_ACK;
	const bool rnr = (syndrome & SIM_AETH_TYPE) == SIM_AETH_RNR_NAK;
	const int32_t open = sim_psn_diff(qp->resp.psn, ack ? sim_psn_add(psn, 1) : psn);

	/* An answer for a request that no proxy has is ignored. */
	if (open < !ack || open > (int32_t)qp->relay.ahead - ack || qp->state < IBV_QPS_RTR ||
	    qp->state == IBV_QPS_ERR)
		return;
	if (ack) {
		relayed_ack(qp, psn);
		return;
	}
	sim_relay_reset(qp);
	sim_answer_go_back(qp, psn);
	sim_responder_go_back(qp, psn, msn, rnr ? message : 0);
	if (rnr) {
		sim_responder_rnr_nak(qp);
		return;
	}
	sim_responder_nak(qp, syndrome);
	sim_qp_fail(qp, SIM_BY_RECEIVE);
}
