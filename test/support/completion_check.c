/* SPDX-License-Identifier: MIT */
#include "test/support/completion_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>

#define GRH_BYTES      40
#define GUESSES_MAX    16
#define KEPT	       256 /* completed works that are remembered, to tell `twice` from `unknown` */
#define FORGET_AT      4096 /* so many works in a queue make it forget the oldest */
#define ANY_OPCODE     0xff
#define SENTENCE_BYTES 256

enum { SQ, RQ, QUEUES };
enum { ALIKE = 4096 };

static const char *const queue_names[QUEUES] = {"send", "receive"};

/* A CQ. The note stays when the CQ is destroyed, since works refer to it. */
struct cq_note {
	struct cq_note *next;
	const struct ibv_cq *cq; /* NULL: destroyed */
	bool lossy;
};

/* A posted WR. */
struct work {
	uint64_t wr_id, bytes; /* bytes: the size of a receive */
	struct cq_note *cq;
	unsigned int epoch;
	uint8_t opcode; /* that its completion must have */
	bool signalled;
	bool may_vanish;
};

struct queue {
	struct work *works;
	size_t count, room;
	size_t forgotten;   /* how many works before the first were forgotten */
	unsigned int epoch; /* counts from 1 how often the queue started again */
};

/* One possible assignment of the completions so far to works. */
struct guess {
	size_t next[QUEUES];	     /* the first work that has not completed */
	unsigned int failed[QUEUES]; /* the epoch in which a work failed, or 0 */
};

struct srq_note {
	struct srq_note *next;
	const struct ibv_srq *srq; /* NULL: destroyed */
	const struct ibv_cq *cq;
	struct work *works; /* those that have not completed */
	size_t count, room;
	bool spoiled;
};

struct qp_note {
	struct qp_note *next, *next_alike;
	const struct ibv_qp *qp; /* NULL: destroyed */
	const struct ibv_context *context;
	uint32_t number;
	enum ibv_qp_type type;
	enum ibv_qp_state state; /* the last one that it was modified into */
	bool signal_all;
	bool spoiled;
	struct cq_note *cqs[QUEUES];
	struct srq_note *srq;
	struct queue queues[QUEUES];
	struct guess guesses[GUESSES_MAX]; /* at least one, the likeliest first */
	unsigned int guess_count;
};

struct completion_check {
	void (*report)(void *arg, const char *sentence);
	void *arg;
	struct qp_note *qps;
	struct qp_note *alike[ALIKE]; /* the QPs whose numbers have the same remainder */
	struct srq_note *srqs;
	struct cq_note *cqs;
};

static void *more(void *old, size_t bytes)
{
	void *memory = realloc(old, bytes);

	if (!memory)
		abort();
	return memory;
}

static void *blank(size_t bytes)
{
	return memset(more(NULL, bytes), 0, bytes);
}

struct completion_check *completion_check_new(void (*report)(void *arg, const char *sentence),
					      void *arg)
{
	struct completion_check *c = blank(sizeof(*c));

	c->report = report;
	c->arg = arg;
	return c;
}

void completion_check_free(struct completion_check *c)
{
	struct qp_note *qp;
	struct srq_note *srq;
	struct cq_note *cq;

	while ((qp = c->qps)) {
		c->qps = qp->next;
		free(qp->queues[SQ].works);
		free(qp->queues[RQ].works);
		free(qp);
	}
	while ((srq = c->srqs)) {
		c->srqs = srq->next;
		free(srq->works);
		free(srq);
	}
	while ((cq = c->cqs)) {
		c->cqs = cq->next;
		free(cq);
	}
	free(c);
}

/* --- objects --- */

static struct cq_note *cq_of(struct completion_check *c, const struct ibv_cq *cq)
{
	struct cq_note *note;

	for (note = c->cqs; note; note = note->next)
		if (note->cq == cq)
			return note;
	note = blank(sizeof(*note));
	note->cq = cq;
	note->next = c->cqs;
	c->cqs = note;
	return note;
}

static struct srq_note *srq_of(const struct completion_check *c, const struct ibv_srq *srq)
{
	struct srq_note *note = c->srqs;

	while (note && note->srq != srq)
		note = note->next;
	return note;
}

static struct qp_note *qp_of(const struct completion_check *c, const void *qp)
{
	struct qp_note *note = c->qps;

	while (note && note->qp != qp)
		note = note->next;
	return note;
}

static struct qp_note *qp_numbered(const struct completion_check *c,
				   const struct ibv_context *context, uint32_t number)
{
	struct qp_note *note = c->alike[number % ALIKE];

	while (note && (note->number != number || note->context != context))
		note = note->next_alike;
	return note;
}

/*
 * After RESET or destruction the works of a queue complete only if their completions are in the
 * CQ.
 */
static void start_anew(struct queue *queue)
{
	queue->epoch++;
	for (size_t i = 0; i < queue->count; i++)
		queue->works[i].may_vanish = true;
}

void completion_check_qp(struct completion_check *c, const struct ibv_qp *qp, bool signal_all)
{
	struct qp_note *note = qp_numbered(c, qp->context, qp->qp_num);

	if (!note) {
		note = blank(sizeof(*note));
		note->context = qp->context;
		note->number = qp->qp_num;
		note->guess_count = 1;
		note->next = c->qps;
		c->qps = note;
		note->next_alike = c->alike[note->number % ALIKE];
		c->alike[note->number % ALIKE] = note;
	}
	/* The number may be that of a destroyed QP whose completions still wait in a CQ. */
	start_anew(&note->queues[SQ]);
	start_anew(&note->queues[RQ]);
	note->qp = qp;
	note->type = qp->qp_type;
	note->state = qp->state;
	note->signal_all = signal_all;
	note->cqs[SQ] = cq_of(c, qp->send_cq);
	note->cqs[RQ] = cq_of(c, qp->recv_cq);
	note->srq = qp->srq ? srq_of(c, qp->srq) : NULL;
}

void completion_check_state(struct completion_check *c, const struct ibv_qp *qp,
			    enum ibv_qp_state state)
{
	struct qp_note *note = qp_of(c, qp);

	if (!note)
		return;
	if (state == IBV_QPS_RESET) {
		start_anew(&note->queues[SQ]);
		start_anew(&note->queues[RQ]);
	} else if (state == IBV_QPS_RTS) {
		/* After SQE: new works need not be flushed. */
		note->queues[SQ].epoch++;
	}
	note->state = state;
}

void completion_check_srq(struct completion_check *c, const struct ibv_srq *srq,
			  const struct ibv_cq *cq)
{
	struct srq_note *note = blank(sizeof(*note));

	note->srq = srq;
	note->cq = cq;
	note->next = c->srqs;
	c->srqs = note;
}

void completion_check_no_qp(struct completion_check *c, const void *qp)
{
	struct qp_note *note = qp_of(c, qp);

	if (!note)
		return;
	start_anew(&note->queues[SQ]);
	start_anew(&note->queues[RQ]);
	note->qp = NULL;
}

void completion_check_no_srq(struct completion_check *c, const void *srq)
{
	struct srq_note *note = srq_of(c, srq);

	if (note)
		note->srq = NULL;
}

void completion_check_no_cq(struct completion_check *c, const void *cq)
{
	for (struct cq_note *note = c->cqs; note; note = note->next)
		if (note->cq == cq)
			note->cq = NULL;
}

void completion_check_overrun(struct completion_check *c, const struct ibv_cq *cq)
{
	cq_of(c, cq)->lossy = true;
}

void completion_check_fatal(struct completion_check *c, const struct ibv_context *context)
{
	for (struct qp_note *note = c->qps; note; note = note->next) {
		if (note->context != context)
			continue;
		note->cqs[SQ]->lossy = true;
		note->cqs[RQ]->lossy = true;
	}
}

/* --- posting --- */

static bool may_skip(const struct work *work, unsigned int failed)
{
	return work->may_vanish || work->cq->lossy || (!work->signalled && work->epoch != failed);
}

/* Returns true if more WRs may be under way to the CQ than it holds. */
static bool may_overrun(const struct completion_check *c, const struct cq_note *cq)
{
	size_t under_way = 0;

	for (const struct qp_note *qp = c->qps; qp; qp = qp->next) {
		for (int k = SQ; k < QUEUES; k++)
			if (qp->cqs[k] == cq)
				under_way += qp->queues[k].count - qp->guesses[0].next[k];
		if (qp->srq && qp->cqs[RQ] == cq)
			under_way += qp->srq->count;
	}
	return cq->cq && under_way > (size_t)cq->cq->cqe;
}

static void append(struct completion_check *c, struct qp_note *qp, int k, struct work work)
{
	struct queue *queue = &qp->queues[k];

	if (queue->count == queue->room) {
		queue->room = queue->room ? 2 * queue->room : 16;
		queue->works = more(queue->works, queue->room * sizeof(*queue->works));
	}
	work.cq = qp->cqs[k];
	work.epoch = queue->epoch;
	queue->works[queue->count++] = work;
	if (!work.cq->lossy && may_overrun(c, work.cq))
		work.cq->lossy = true;
}

static uint8_t completed_opcode(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_SEND:
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
		return IBV_WC_SEND;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_TSO:
		return IBV_WC_TSO;
	case IBV_WR_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	default:
		return ANY_OPCODE;
	}
}

void completion_check_send(struct completion_check *c, const struct ibv_qp *qp, uint64_t wr_id,
			   enum ibv_wr_opcode opcode, unsigned int send_flags)
{
	struct qp_note *note = qp_of(c, qp);

	if (!note)
		return;
	append(c, note, SQ,
	       (struct work){
		       .wr_id = wr_id,
		       .opcode = completed_opcode(opcode),
		       .signalled = note->signal_all || send_flags & IBV_SEND_SIGNALED,
		       /* some adapters accept such a WR and ignore it */
		       .may_vanish = note->state < IBV_QPS_RTS,
	       });
}

static struct work receive(const struct ibv_recv_wr *wr)
{
	struct work work = {.wr_id = wr->wr_id, .signalled = true};

	for (int i = 0; i < wr->num_sge; i++)
		work.bytes += wr->sg_list[i].length;
	return work;
}

void completion_check_recv(struct completion_check *c, const struct ibv_qp *qp,
			   const struct ibv_recv_wr *wr)
{
	struct qp_note *note = qp_of(c, qp);
	struct work work = receive(wr);

	if (!note)
		return;
	work.may_vanish = note->state == IBV_QPS_RESET;
	append(c, note, RQ, work);
}

void completion_check_srq_recv(struct completion_check *c, const struct ibv_srq *srq,
			       const struct ibv_recv_wr *wr)
{
	struct srq_note *note = srq_of(c, srq);

	if (!note)
		return;
	if (note->count == note->room) {
		note->room = note->room ? 2 * note->room : 16;
		note->works = more(note->works, note->room * sizeof(*note->works));
	}
	note->works[note->count++] = receive(wr);
}

/* --- completing --- */

static const char *wrong_bytes(const struct qp_note *qp, const struct work *work,
			       const struct ibv_wc *wc)
{
	/* The bytes of the WRITE are not in the receive's memory. */
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return NULL;
	if (wc->byte_len > work->bytes)
		return "bytes: more than the WR has room for";
	if (qp && qp->type == IBV_QPT_UD && wc->byte_len < GRH_BYTES)
		return "bytes: a datagram without the 40 bytes of its GRH";
	return NULL;
}

/* Says why this cannot be the completion of the WR that is next in its queue; NULL if it can. */
static const char *refuse(const struct qp_note *qp, int k, const struct work *work,
			  const struct ibv_cq *cq, const struct ibv_wc *wc, unsigned int failed)
{
	bool dead = work->epoch == failed;

	if (work->cq->cq != cq)
		return "queue: in another CQ than its queue's";
	if (wc->status != IBV_WC_SUCCESS)
		return dead && wc->status != IBV_WC_WR_FLUSH_ERR
			       ? "dead: no flush error behind a WR of its queue that failed"
			       : NULL;
	if (dead)
		return "dead: success behind a WR of its queue that failed";
	if (k == RQ)
		return wrong_bytes(qp, work, wc);
	if (!work->signalled)
		return "unsignalled: success of a WR that asked for no completion";
	if (work->opcode != ANY_OPCODE && work->opcode != wc->opcode)
		return "opcode: not the operation that was posted";
	return NULL;
}

/* Returns true if after this failure all later works of the queue are flushed. */
static bool ends_queue(const struct qp_note *qp, int k, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_WR_FLUSH_ERR ||
	       (wc->status != IBV_WC_SUCCESS && (k == SQ || qp->type == IBV_QPT_RC));
}

static void add_guess(struct guess *guesses, unsigned int *count, const struct guess *guess)
{
	for (unsigned int i = 0; i < *count; i++)
		if (!memcmp(&guesses[i], guess, sizeof(*guess)))
			return;
	if (*count < GUESSES_MAX)
		guesses[(*count)++] = *guess;
}

/* Adds the guesses that continue a guess if the completion belongs to this queue. */
static void follow(const struct qp_note *qp, int k, const struct guess *guess,
		   const struct ibv_cq *cq, const struct ibv_wc *wc, struct guess *guesses,
		   unsigned int *count)
{
	const struct queue *queue = &qp->queues[k];
	unsigned int failed = guess->failed[k];

	for (size_t i = guess->next[k]; i < queue->count; i++) {
		const struct work *work = &queue->works[i];
		struct guess then = *guess;

		if (work->wr_id == wc->wr_id && !refuse(qp, k, work, cq, wc, failed)) {
			then.next[k] = i + 1;
			if (ends_queue(qp, k, wc))
				then.failed[k] = work->epoch;
			add_guess(guesses, count, &then);
		}
		if (!may_skip(work, failed))
			return;
	}
}

/* Forgets works that every guess has passed, except the last ones. */
static void forget(struct qp_note *qp, int k)
{
	struct queue *queue = &qp->queues[k];
	size_t gone = queue->count;

	for (unsigned int i = 0; i < qp->guess_count; i++)
		gone = qp->guesses[i].next[k] < gone ? qp->guesses[i].next[k] : gone;
	if (gone < FORGET_AT)
		return;
	gone -= KEPT;
	queue->count -= gone;
	queue->forgotten += gone;
	memmove(queue->works, queue->works + gone, queue->count * sizeof(*queue->works));
	for (unsigned int i = 0; i < qp->guess_count; i++)
		qp->guesses[i].next[k] -= gone;
}

/* Takes the smallest receive that fits, which leaves the larger ones for later completions. */
static bool take_shared(struct srq_note *srq, const struct qp_note *qp, const struct ibv_wc *wc)
{
	struct work *best = NULL;

	for (size_t i = 0; i < srq->count; i++) {
		struct work *work = &srq->works[i];

		if (work->wr_id != wc->wr_id ||
		    (wc->status == IBV_WC_SUCCESS && wrong_bytes(qp, work, wc)))
			continue;
		if (!best || work->bytes < best->bytes)
			best = work;
	}
	if (best)
		*best = srq->works[--srq->count];
	return best;
}

/* A receive of an XRC QP completes in the CQ of its SRQ, which may be any SRQ of the domain. */
static bool take_xrc(struct completion_check *c, const struct qp_note *qp, const struct ibv_cq *cq,
		     const struct ibv_wc *wc)
{
	for (struct srq_note *srq = c->srqs; srq; srq = srq->next)
		if (srq->cq == cq && take_shared(srq, qp, wc))
			return true;
	return false;
}

/* --- reports --- */

/*
 * Says why a queue refused the completion; NULL if it has no WR with the wr_id. *number counts
 * from 1.
 */
static const char *explain(const struct qp_note *qp, int k, const struct ibv_cq *cq,
			   const struct ibv_wc *wc, size_t *number)
{
	const struct guess *guess = &qp->guesses[0];
	const struct queue *queue = &qp->queues[k];
	bool blocked = false;

	for (size_t i = guess->next[k]; i < queue->count; i++) {
		*number = queue->forgotten + i + 1;
		if (queue->works[i].wr_id == wc->wr_id && blocked)
			return "order: a WR that its queue got earlier has not completed";
		if (queue->works[i].wr_id == wc->wr_id)
			return refuse(qp, k, &queue->works[i], cq, wc, guess->failed[k]);
		blocked |= !may_skip(&queue->works[i], guess->failed[k]);
	}
	for (size_t i = guess->next[k]; i-- > 0;) {
		*number = queue->forgotten + i + 1;
		if (queue->works[i].wr_id == wc->wr_id)
			return "twice: it has completed before, or a later WR has";
	}
	return NULL;
}

static void report_wc(struct completion_check *c, const struct qp_note *qp, const struct ibv_cq *cq,
		      const struct ibv_wc *wc)
{
	const bool has_opcode = wc->status == IBV_WC_SUCCESS;
	const bool received = wc->opcode & IBV_WC_RECV;
	const char *why = NULL;
	char sentence[SENTENCE_BYTES], which[64] = "";
	size_t number;

	for (int k = SQ; k < QUEUES && !why; k++) {
		if (has_opcode && received != (k == RQ))
			continue;
		why = explain(qp, k, cq, wc, &number);
		if (why)
			snprintf(which, sizeof(which), ", %s WR number %zu,", queue_names[k],
				 number);
	}
	snprintf(sentence, sizeof(sentence),
		 "QP 0x%x: the completion of wr_id %llu%s with \"%s\" is wrong: %s", wc->qp_num,
		 (unsigned long long)wc->wr_id, which, vb_wc_status_str(wc->status),
		 why	   ? why
		 : qp->srq ? "unknown: the SRQ has no such WR, or none with enough room"
			   : "unknown: no such WR is posted");
	c->report(c->arg, sentence);
}

static void report_no_qp(struct completion_check *c, const struct ibv_wc *wc)
{
	char sentence[SENTENCE_BYTES];

	snprintf(sentence, sizeof(sentence),
		 "the completion of wr_id %llu with \"%s\" is wrong: "
		 "unknown: there is no QP 0x%x",
		 (unsigned long long)wc->wr_id, vb_wc_status_str(wc->status), wc->qp_num);
	c->report(c->arg, sentence);
}

void completion_check_wc(struct completion_check *c, const struct ibv_cq *cq,
			 const struct ibv_wc *wc)
{
	struct qp_note *qp = qp_numbered(c, cq->context, wc->qp_num);
	bool has_opcode = wc->status == IBV_WC_SUCCESS; /* which then tells the queue */
	bool received = has_opcode && wc->opcode & IBV_WC_RECV;
	struct guess guesses[GUESSES_MAX];
	unsigned int count = 0;

	if (qp && qp->spoiled)
		return;
	for (unsigned int i = 0; qp && i < qp->guess_count; i++) {
		if (!received)
			follow(qp, SQ, &qp->guesses[i], cq, wc, guesses, &count);
		if (!has_opcode || received)
			follow(qp, RQ, &qp->guesses[i], cq, wc, guesses, &count);
	}
	if (count) {
		memcpy(qp->guesses, guesses, count * sizeof(*guesses));
		qp->guess_count = count;
		forget(qp, SQ);
		forget(qp, RQ);
		return;
	}
	if (!has_opcode || received) {
		if (qp && qp->srq && qp->cqs[RQ]->cq == cq && take_shared(qp->srq, qp, wc))
			return;
		if (take_xrc(c, qp, cq, wc))
			return;
	}
	if (!qp) {
		report_no_qp(c, wc);
		return;
	}
	report_wc(c, qp, cq, wc);
	qp->spoiled = true;
}

/*
 * Counts the works of a queue that must still complete by a guess. first, unless NULL, becomes the
 * first of them.
 */
static size_t owed(const struct qp_note *qp, int k, const struct guess *guess, size_t *first)
{
	const struct queue *queue = &qp->queues[k];
	size_t count = 0;

	for (size_t i = queue->count; i-- > guess->next[k];) {
		if (may_skip(&queue->works[i], guess->failed[k]))
			continue;
		count++;
		if (first)
			*first = i;
	}
	return count;
}

static const struct guess *best_guess(const struct qp_note *qp)
{
	const struct guess *best = NULL;
	size_t least = 0;

	for (unsigned int i = 0; i < qp->guess_count; i++) {
		size_t left =
			owed(qp, SQ, &qp->guesses[i], NULL) + owed(qp, RQ, &qp->guesses[i], NULL);

		if (!best || left < least) {
			best = &qp->guesses[i];
			least = left;
		}
	}
	return best;
}

size_t completion_check_owed(const struct completion_check *c, const struct ibv_qp *qp)
{
	const struct qp_note *note = qp_of(c, qp);
	const struct guess *guess = note && !note->spoiled ? best_guess(note) : NULL;

	return guess ? owed(note, SQ, guess, NULL) + owed(note, RQ, guess, NULL) : 0;
}

void completion_check_lost(struct completion_check *c, const struct ibv_qp *qp)
{
	struct qp_note *note = qp_of(c, qp);
	char sentence[SENTENCE_BYTES];
	size_t first = 0;

	if (!note || !completion_check_owed(c, qp))
		return;
	for (int k = SQ; k < QUEUES; k++) {
		size_t left = owed(note, k, best_guess(note), &first);

		if (!left)
			continue;
		snprintf(sentence, sizeof(sentence),
			 "QP 0x%x: lost: in ERR, and %zu %s WRs never completed, the first of "
			 "them number %zu with wr_id %llu",
			 note->number, left, queue_names[k], note->queues[k].forgotten + first + 1,
			 (unsigned long long)note->queues[k].works[first].wr_id);
		c->report(c->arg, sentence);
	}
	note->spoiled = true;
}
