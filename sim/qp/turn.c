/* SPDX-License-Identifier: MIT */
/* Turns: the lists of QPs that have something to send or to answer. */
#include "sim/qp/private.h"

void sim_turn_ask(struct sim_qp *qp, enum sim_turns which)
{
	struct sim_qp_list *list = &qp->engine->turns[which];

	if (qp->turns[which].asked)
		return;
	qp->turns[which] = (struct sim_turn){.asked = true};
	if (list->head)
		list->tail->turns[which].next = qp;
	else
		list->head = qp;
	list->tail = qp;
}

struct sim_qp *sim_turn_take(struct sim_engine *engine, enum sim_turns which)
{
	struct sim_qp *qp = engine->turns[which].head;

	if (qp) {
		engine->turns[which].head = qp->turns[which].next;
		qp->turns[which].asked = false;
	}
	return qp;
}

static void leave(struct sim_qp *qp, enum sim_turns which)
{
	struct sim_qp_list *list = &qp->engine->turns[which];
	struct sim_qp **link = &list->head;
	struct sim_qp *last = NULL;

	for (; *link != qp; link = &(*link)->turns[which].next)
		last = *link;
	*link = qp->turns[which].next;
	if (list->tail == qp)
		list->tail = last;
	qp->turns[which].asked = false;
}

void sim_turn_leave(struct sim_qp *qp, enum sim_turns which)
{
	if (qp->turns[which].asked)
		leave(qp, which);
}

void sim_turn_cancel(struct sim_qp *qp)
{
	sim_turn_leave(qp, SIM_TURN_REQUESTER);
	sim_turn_leave(qp, SIM_TURN_RESPONDER);
}
