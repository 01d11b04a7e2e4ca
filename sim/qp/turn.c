/* SPDX-License-Identifier: MIT */
/* Turns: the lists of QPs that have something to send or to answer. */
#include "sim/qp/private.h"

static void append(struct sim_qp_list *list, struct sim_qp *qp, struct sim_qp **tail_next)
{
	if (list->head)
		*tail_next = qp;
	else
		list->head = qp;
	list->tail = qp;
}

void sim_turn_ask_requester(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->engine->requesters;

	if (qp->requester_listed)
		return;
	qp->requester_listed = true;
	qp->next_requester = NULL;
	append(list, qp, list->head ? &list->tail->next_requester : NULL);
}

void sim_turn_ask_responder(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->engine->responders;

	if (qp->responder_listed)
		return;
	qp->responder_listed = true;
	qp->next_responder = NULL;
	append(list, qp, list->head ? &list->tail->next_responder : NULL);
}

struct sim_qp *sim_turn_take_requester(struct sim_engine *engine)
{
	struct sim_qp *qp = engine->requesters.head;

	if (qp) {
		engine->requesters.head = qp->next_requester;
		qp->requester_listed = false;
	}
	return qp;
}

struct sim_qp *sim_turn_take_responder(struct sim_engine *engine)
{
	struct sim_qp *qp = engine->responders.head;

	if (qp) {
		engine->responders.head = qp->next_responder;
		qp->responder_listed = false;
	}
	return qp;
}

static void leave_requesters(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->engine->requesters;
	struct sim_qp **link = &list->head;
	struct sim_qp *last = NULL;

	for (; *link != qp; link = &(*link)->next_requester)
		last = *link;
	*link = qp->next_requester;
	if (list->tail == qp)
		list->tail = last;
	qp->requester_listed = false;
}

static void leave_responders(struct sim_qp *qp)
{
	struct sim_qp_list *list = &qp->engine->responders;
	struct sim_qp **link = &list->head;
	struct sim_qp *last = NULL;

	for (; *link != qp; link = &(*link)->next_responder)
		last = *link;
	*link = qp->next_responder;
	if (list->tail == qp)
		list->tail = last;
	qp->responder_listed = false;
}

void sim_turn_cancel(struct sim_qp *qp)
{
	if (qp->requester_listed)
		leave_requesters(qp);
	if (qp->responder_listed)
		leave_responders(qp);
}
