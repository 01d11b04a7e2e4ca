/* SPDX-License-Identifier: MIT */
/*
 * key-wrong. The keys of SGEs are compared with the MRs when a WR is posted, if the sanitizer knows the MR:
 * by its other key, or because it has ended. Keys of MRs that were made out of sight, and the rkeys of RDMA
 * operations, are judged by the reason of the failed completion.
 */
#include "src/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <verbena/explain.h>

/* Two PDs may be one for the device: parent domains and imported PDs. */
static bool pds_have_aliases;

/* --- which MR has a key --- */

struct search {
	const struct ibv_context *context; /* NULL: any */
	uint32_t key;
	uint64_t addr, length_bytes; /* of the bytes, which lie in the MR */
	enum { BY_LKEY, BY_RKEY } by;
	bool ended; /* the MR has ended */
};

static bool matches(const struct check_mr *mr, const void *arg)
{
	const struct search *search = arg;

	return (search->by == BY_LKEY ? mr->lkey : mr->rkey) == search->key &&
	       (!search->context || mr->object.context == search->context) &&
	       (mr->ended.frames[0] != NULL) == search->ended &&
	       object_contains(mr, search->addr, search->length_bytes);
}

static const struct check_mr *find(const struct search *search)
{
	return object_search_mr(matches, search);
}

/* --- reports --- */

/* `what` describes the mistake. mr: the MR whose place is shown; NULL: none. */
static void report(const struct check_call *check, const struct check_qp *qp, struct work *work,
		   const struct check_mr *mr, const char *what)
{
	const bool ended = mr && mr->ended.frames[0];
	char object[64], name[64];

	work->key_reported = true;
	offence_report(VB_RULE_KEY_WRONG,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = "posted", .spot = work->posted},
			       {.label = !mr	 ? NULL
					 : ended ? "deregistered"
						 : "registered",
				.spot = !mr	? check->spot
					: ended ? mr->ended
						: mr->object.made},
		       },
		       "%s: %s has %s",
		       check_name(qp ? qp->object.handle : check_pointer(check, 0), object,
				  sizeof(object)),
		       check_work_name(work, name, sizeof(name)), what);
}

static void report_sge(const struct check_call *check, const struct check_qp *qp, struct work *work,
		       uint32_t index, const struct check_mr *mr, const char *why)
{
	const struct ibv_sge *sge = &work->sges[index].sge;
	char name[64], what[256];
	int length;

	length = snprintf(what, sizeof(what), "the lkey 0x%x in SGE %" PRIu32 ", which is ",
			  sge->lkey, index);
	snprintf(what + length, sizeof(what) - (size_t)length, why,
		 check_name(mr->object.handle, name, sizeof(name)));
	report(check, qp, work, mr, what);
}

/* --- at the post --- */

/* Without an MR of this key on the device. */
static void explain_unknown(struct check_call *check, struct check_qp *qp, struct work *work,
			    uint32_t index)
{
	const struct ibv_sge *sge = &work->sges[index].sge;
	struct search search = {
		.context = check->call->context,
		.key = sge->lkey,
		.addr = sge->addr,
		.length_bytes = sge->length,
		.by = BY_RKEY,
	};
	const struct check_mr *mr = find(&search);

	if (mr) {
		report_sge(check, qp, work, index, mr, "the rkey of %s");
		return;
	}
	search.by = BY_LKEY;
	search.ended = true;
	mr = find(&search);
	if (mr)
		report_sge(check, qp, work, index, mr, "of an MR that has been deregistered");
}

static void examine(struct check_call *check, struct check_qp *qp, struct work *work,
		    uint32_t index, const struct check_mr *mr, const struct ibv_pd *pd)
{
	const struct ibv_sge *sge = &work->sges[index].sge;
	char name[64], what[256];

	if (!mr) {
		explain_unknown(check, qp, work, index);
	} else if (mr->pd != pd) {
		if (!pds_have_aliases)
			report_sge(check, qp, work, index, mr, "of %s, an MR of another PD");
	} else {
		snprintf(what, sizeof(what),
			 "%" PRIu32 " bytes in SGE %" PRIu32
			 " that are not all inside %s, whose lkey 0x%x it names",
			 sge->length, index, check_name(mr->object.handle, name, sizeof(name)),
			 sge->lkey);
		report(check, qp, work, mr, what);
	}
}

/* Returns false for operations without local memory. */
static bool has_memory(const struct work *work)
{
	return !work->inlined &&
	       !(work->send && (work->opcode == IBV_WR_LOCAL_INV ||
				work->opcode == IBV_WR_BIND_MW || work->opcode == IBV_WR_DRIVER1));
}

static CHECK_RARE void look_closer(struct check_call *check, struct check_qp *qp, struct work *work)
{
	const struct check_srq *srq = qp ? NULL : object_find_srq(check_pointer(check, 0));
	const struct ibv_pd *pd = qp ? qp->pd : srq ? srq->pd : NULL;

	if (!pd || !has_memory(work))
		return;
	for (uint32_t i = 0; i < work->sge_count && !work->key_reported; i++) {
		const struct ibv_sge *sge = &work->sges[i].sge;

		const struct check_mr *mr;

		if (!sge->length)
			continue;
		mr = object_find_lkey(check->call->context, sge->lkey, pd);
		if (!mr || mr->pd != pd || !object_contains(mr, sge->addr, sge->length))
			examine(check, qp, work, i, mr, pd);
	}
}

static void posted(struct check_call *check, struct check_qp *qp, struct work *work)
{
	if (!work->fits)
		look_closer(check, qp, work);
}

/* --- at the completion --- */

/* The key of a failed work, and why it is wrong. */
struct verdict {
	enum vb_reason reason;
	const char *text;
	enum { OF_MR_BY_LKEY, OF_MR_BY_RKEY } by; /* the MR that it is a key of */
	bool ended;
};

static const struct verdict verdicts[] = {
	{VB_WHY_LKEY_UNKNOWN, "the lkey 0x%x, which no MR of the device has", OF_MR_BY_LKEY, false},
	{VB_WHY_LKEY_STALE, "the lkey 0x%x of an MR that has been deregistered", OF_MR_BY_LKEY,
	 true},
	{VB_WHY_LKEY_IS_RKEY, "0x%x for an lkey, which is an rkey", OF_MR_BY_RKEY, false},
	{VB_WHY_LKEY_PD, "the lkey 0x%x of an MR of another PD", OF_MR_BY_LKEY, false},
	{VB_WHY_RKEY_UNKNOWN, "the rkey 0x%x, which no MR of the peer's device has", OF_MR_BY_RKEY,
	 false},
	{VB_WHY_RKEY_STALE, "the rkey 0x%x, whose MR or binding at the peer has ended",
	 OF_MR_BY_RKEY, true},
	{VB_WHY_RKEY_IS_LKEY, "0x%x for an rkey, which is an lkey of the peer", OF_MR_BY_LKEY,
	 false},
	{VB_WHY_RKEY_PD, "the rkey 0x%x of an MR of another PD than the peer's QP", OF_MR_BY_RKEY,
	 false},
};

static const struct verdict *verdict_of(enum vb_reason reason)
{
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		if (verdicts[i].reason == reason)
			return &verdicts[i];
	return NULL;
}

/* Finds the MR that the key is of, if it is in this process; NULL: it is not, or is unknown. An lkey that
 * the device does not know may be of another device. */
static const struct check_mr *find_of(const struct verdict *verdict, const struct work *work,
				      const struct vb_why *why, const struct ibv_context *context,
				      bool remote)
{
	struct search search = {
		.context = remote || why->reason == VB_WHY_LKEY_UNKNOWN ? NULL : context,
		.key = (uint32_t)why->values[1],
		.by = verdict->by == OF_MR_BY_LKEY ? BY_LKEY : BY_RKEY,
		.ended = verdict->ended,
	};

	if (remote)
		search.addr = work->remote_addr;
	else if (why->values[0] < work->sge_count)
		search.addr = work->sges[why->values[0]].sge.addr;
	return find(&search);
}

static void judge(const struct check_call *check, const struct check_qp *qp, struct work *work,
		  const struct ibv_wc *wc)
{
	const bool remote = wc->status == IBV_WC_REM_ACCESS_ERR;
	const struct verdict *verdict;
	struct vb_completion_why found;
	const struct vb_why *why;
	char what[256];

	if (vb_completion_why(qp->object.context, wc, &found))
		return;
	why = remote ? &found.peer_why : &found.why;
	verdict = verdict_of(why->reason);
	/* A packet that was changed on the wire has another key. */
	if (!verdict || (remote && (uint32_t)why->values[1] != work->rkey))
		return;
	snprintf(what, sizeof(what), verdict->text, (uint32_t)why->values[1]);
	report(check, qp, work, find_of(verdict, work, why, qp->object.context, remote), what);
}

static void done(struct check_call *check, struct check_qp *qp, struct work *work,
		 const struct ibv_wc *wc)
{
	if (wc && !work->key_reported &&
	    (wc->status == IBV_WC_LOC_PROT_ERR || wc->status == IBV_WC_REM_ACCESS_ERR))
		judge(check, qp, work, wc);
}

static void after_alias(struct check_call *check)
{
	if (!check->call->err)
		pds_have_aliases = true;
}

static void end(void)
{
	pds_have_aliases = false;
}

static const struct check_hook hooks[] = {
	{LAYER_alloc_parent_domain, NULL, after_alias},
	{LAYER_import_pd, NULL, after_alias},
	{0},
};

const struct check_rule rule_key = {
	.hooks = hooks,
	.posted = posted,
	.posted_rarely = true,
	.done = done,
	.done_rarely = true,
	.end = end,
};
