/* SPDX-License-Identifier: MIT */
/*
 * chain-posted-again. A call that fails has accepted the WRs before *bad_wr. The sanitizer remembers
 * them, and compares the next call on the same queue with them: a finding is a call that accepts these
 * WRs again, unchanged and in the same structures, while the first of them is in flight.
 *
 * WRs that are all alike may be meant to be posted twice. Then the sanitizer reports nothing.
 */
#include "src/check/check.h"

#include <inttypes.h>

/* --- chains of both kinds --- */

/* A WR of either kind. */
struct request {
	const void *wr;
	const void *next;
	uint64_t wr_id;
	const struct ibv_sge *sges;
	int sge_count;
	const struct ibv_send_wr *send; /* NULL: a receive */
};

static struct request read_wr(const void *wr, bool send)
{
	const struct ibv_send_wr *s = wr;
	const struct ibv_recv_wr *r = wr;

	return send ? (struct request){s, s->next, s->wr_id, s->sg_list, s->num_sge, s}
		    : (struct request){r, r->next, r->wr_id, r->sg_list, r->num_sge, NULL};
}

static bool same_sges(const struct request *request, const struct work *work)
{
	if (request->sge_count < 0 || (uint32_t)request->sge_count != work->sge_count ||
	    (work->sge_count && !request->sges))
		return false;
	for (uint32_t i = 0; i < work->sge_count; i++)
		if (request->sges[i].addr != work->sges[i].sge.addr ||
		    request->sges[i].length != work->sges[i].sge.length ||
		    request->sges[i].lkey != work->sges[i].sge.lkey)
			return false;
	return true;
}

static uint64_t remote_addr(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD
		       ? wr->wr.atomic.remote_addr
		       : wr->wr.rdma.remote_addr;
}

/* The remote part of a datagram is its AH. */
static bool same_peer(const struct ibv_send_wr *wr, const struct work *work)
{
	return work->ah ? wr->wr.ud.ah == work->ah && wr->wr.ud.remote_qpn == work->remote_qpn
			: remote_addr(wr) == work->remote_addr;
}

/* Returns true if the WR asks for the same as the work. */
static bool is_same(const struct request *request, const struct work *work)
{
	return request->wr_id == work->wr_id && same_sges(request, work) &&
	       (!request->send ||
		(request->send->opcode == work->opcode && same_peer(request->send, work)));
}

/* --- the rule --- */

/* Returns the index of the work in its queue; UINT64_MAX: it has left, or has completed. */
static uint64_t index_of(const struct work_queue *queue, uint64_t number)
{
	for (uint64_t i = 0; i < work_count(queue); i++)
		if (work_at(queue, i)->number == number)
			return work_at(queue, i)->done ? UINT64_MAX : i;
	return UINT64_MAX;
}

/*
 * Returns true if the list begins with the accepted works and then has the WR that was refused, and
 * if that WR differs from the first work.
 */
static bool repeats(const struct work_queue *queue, const void *list, bool send)
{
	const struct chain *chain = &queue->chain;
	const uint64_t first = index_of(queue, chain->first);
	const void *wr = list;
	struct request request;

	if (list != chain->head || first == UINT64_MAX)
		return false;
	for (uint64_t i = 0; i < chain->accepted; i++) {
		if (!wr || first + i >= work_count(queue))
			return false;
		request = read_wr(wr, send);
		if (work_at(queue, first + i)->wr != wr ||
		    !is_same(&request, work_at(queue, first + i)))
			return false;
		wr = request.next;
	}
	if (!wr || wr != chain->bad)
		return false;
	request = read_wr(wr, send);
	return !is_same(&request, work_at(queue, first));
}

static void before_post(struct check_call *check, struct work_queue *queue, bool send)
{
	struct chain *chain = &queue->chain;

	if (!chain->accepted)
		return;
	if (!repeats(queue, check_pointer(check, 1), send)) {
		chain->accepted = 0;
		return;
	}
	chain->repeats = check->call->arguments;
	check->wants_after = true;
}

static void report(const struct check_call *check, const void *handle,
		   const struct work_queue *queue)
{
	const struct work *work = work_at(queue, index_of(queue, queue->chain.first));
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "accepted", .spot = work->posted},
		{.label = "repeated", .spot = check->spot},
	};
	char object[64], name[64];

	offence_report(VB_RULE_CHAIN_REPEATED, places,
		       "%s: a call that failed had accepted %" PRIu64
		       " work request%s from the head of its chain, beginning with %s; the next "
		       "call has posted the chain from its head",
		       check_name(handle, object, sizeof(object)), queue->chain.accepted,
		       queue->chain.accepted == 1 ? "" : "s",
		       check_work_name(work, name, sizeof(name)));
}

/* Counts the WRs before *bad_wr. */
static uint64_t count_accepted(const struct check_call *check, bool send)
{
	const void *const *bad = check_pointer(check, 2);
	uint64_t count = 0;

	for (const void *wr = check_pointer(check, 1); bad && wr && wr != *bad; count++)
		wr = read_wr(wr, send).next;
	return count;
}

/* Remembers what a failed call has accepted. A call that accepts nothing changes nothing. */
static void remember(const struct check_call *check, struct work_queue *queue, uint64_t accepted)
{
	const void *const *bad = check_pointer(check, 2);

	if (!accepted || accepted > work_count(queue))
		return;
	queue->chain = (struct chain){
		.head = check_pointer(check, 1),
		.bad = *bad,
		.first = work_at(queue, work_count(queue) - accepted)->number,
		.accepted = accepted,
	};
}

static void after_post(struct check_call *check, const void *handle, struct work_queue *queue,
		       bool send)
{
	struct chain *chain = &queue->chain;
	const bool repeated = chain->accepted && chain->repeats == check->call->arguments;
	uint64_t accepted;

	if (!check->call->err && !repeated)
		return;
	accepted = check->call->err ? count_accepted(check, send) : 1;
	if (repeated && accepted && index_of(queue, chain->first) != UINT64_MAX)
		report(check, handle, queue);
	if (!check->call->err)
		chain->accepted = 0;
	else
		remember(check, queue, accepted);
}

static void note_chains(struct check_qp *qp)
{
	qp->keeps_chain = qp->sends.chain.accepted || qp->receives.chain.accepted;
}

static void before_send(struct check_call *check)
{
	if (!check->qp)
		return;
	before_post(check, &check->qp->sends, true);
	note_chains(check->qp);
}

static void after_send(struct check_call *check)
{
	if (!check->qp)
		return;
	after_post(check, check->qp->object.handle, &check->qp->sends, true);
	note_chains(check->qp);
}

static void before_receive(struct check_call *check)
{
	if (!check->qp)
		return;
	before_post(check, &check->qp->receives, false);
	note_chains(check->qp);
}

static void after_receive(struct check_call *check)
{
	if (!check->qp)
		return;
	after_post(check, check->qp->object.handle, &check->qp->receives, false);
	note_chains(check->qp);
}

static void before_srq_receive(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	if (srq)
		before_post(check, &srq->receives, false);
}

static void after_srq_receive(struct check_call *check)
{
	struct check_srq *srq = object_find_srq(check_pointer(check, 0));

	if (srq)
		after_post(check, srq->object.handle, &srq->receives, false);
}

static const struct check_hook hooks[] = {
	{LAYER_post_send, before_send, after_send, .before_rarely = true,
	 .after_failure_only = true},
	{LAYER_post_recv, before_receive, after_receive, .before_rarely = true,
	 .after_failure_only = true},
	{LAYER_post_srq_recv, before_srq_receive, after_srq_receive, .after_failure_only = true},
	{0},
};

const struct check_rule rule_chain = {.hooks = hooks};
