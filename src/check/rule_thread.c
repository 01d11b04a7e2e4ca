/* SPDX-License-Identifier: MIT */
/*
 * unsynchronised-use. A CQ that was created with IBV_CREATE_CQ_ATTR_SINGLE_THREADED or in a thread domain has
 * no lock, and the QPs of one thread domain have no locks and may share resources: only one thread at a
 * time may be in a verb that uses the CQ, or any of these QPs. A QP is in use from ibv_wr_start() to
 * ibv_wr_complete() or ibv_wr_abort(), and a CQ from ibv_start_poll() to ibv_end_poll().
 *
 * A finding is a verb that a thread enters while another thread is in one. Threads that do not meet
 * while the program runs are not seen.
 */
#include "src/check/check.h"

#include <stdlib.h>

/* A CQ, or the QPs of a thread domain: one thread at a time may use them. */
struct domain {
	struct domain *next;
	const struct ibv_td *td; /* NULL: of a CQ that is alone */
	bool ended; /* the thread domain is gone, and another one may have its address */
	/* The verbs in which a thread is, one inside the other; 0: none */
	unsigned int depth;
	pthread_t thread;
	const void *handle; /* the object of the outermost verb */
	struct spot spot;
};

struct parent {
	struct parent *next;
	const struct ibv_pd *pd;
	struct domain *domain;
};

static struct domain *domains;
static struct parent *parents; /* the parent domains that have a thread domain */

/* --- domains --- */

/* Returns NULL without memory. */
static struct domain *add_domain(const struct ibv_td *td)
{
	struct domain *domain = calloc(1, sizeof(*domain));

	if (!domain)
		return NULL;
	domain->td = td;
	domain->next = domains;
	domains = domain;
	return domain;
}

static struct domain *find_domain(const struct ibv_td *td)
{
	struct domain *domain = domains;

	while (domain && (domain->td != td || domain->ended))
		domain = domain->next;
	return domain;
}

static void free_domain(struct domain *domain)
{
	struct domain **link = &domains;

	while (*link != domain)
		link = &(*link)->next;
	*link = domain->next;
	free(domain);
}

static struct domain *domain_of(const struct ibv_pd *pd)
{
	const struct parent *parent = parents;

	while (parent && parent->pd != pd)
		parent = parent->next;
	return parent ? parent->domain : NULL;
}

/* Objects that a function out of sight has ended may still name the domain. */
static void after_dealloc_td(struct check_call *check)
{
	const struct ibv_td *td = check_pointer(check, 0);
	struct domain *domain = check->call->err || !td ? NULL : find_domain(td);

	if (domain)
		domain->ended = true;
}

static void after_alloc_parent(struct check_call *check)
{
	const struct ibv_parent_domain_init_attr *attr = check_pointer(check, 1);
	struct parent *parent;

	if (check->call->err || !attr->td)
		return;
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return;
	parent->pd = (const struct ibv_pd *)(uintptr_t)check->call->result;
	parent->domain = find_domain(attr->td);
	if (!parent->domain)
		parent->domain = add_domain(attr->td);
	parent->next = parents;
	parents = parent;
}

/* Before the verb: afterwards another thread may get a PD of this address. */
static void before_dealloc_pd(struct check_call *check)
{
	struct parent **link = &parents;
	struct parent *parent;

	while (*link && (*link)->pd != check_pointer(check, 0))
		link = &(*link)->next;
	parent = *link;
	if (!parent)
		return;
	*link = parent->next;
	free(parent);
}

/* --- objects --- */

static void set_domain(const struct check_call *check, const struct ibv_pd *pd)
{
	struct check_qp *qp;

	if (check->call->err || !parents)
		return;
	qp = object_find_qp((const struct ibv_qp *)(uintptr_t)check->call->result);
	if (!qp)
		return;
	qp->domain = domain_of(pd);
	qp->has_domain = qp->domain;
}

static void after_create_qp(struct check_call *check)
{
	set_domain(check, check_pointer(check, 0));
}

static void after_create_qp_ex(struct check_call *check)
{
	const struct ibv_qp_init_attr_ex *attr = check_pointer(check, 1);

	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		set_domain(check, attr->pd);
}

static void after_create_cq(struct check_call *check)
{
	const struct ibv_cq_init_attr_ex *attr = check_pointer(check, 1);
	struct check_cq *cq;

	if (check->call->err)
		return;
	cq = object_find_cq((const struct ibv_cq *)(uintptr_t)check->call->result);
	if (!cq)
		return;
	if (cq->single_threaded ||
	    (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD && domain_of(attr->parent_domain)))
		cq->domain = add_domain(NULL);
}

static void before_destroy_cq(struct check_call *check)
{
	if (!check->cq || !check->cq->domain)
		return;
	free_domain(check->cq->domain);
	check->cq->domain = NULL;
}

/* --- the rule --- */

static void report(const struct check_call *check, const struct domain *domain, const void *handle)
{
	const struct offence_place places[OFFENCE_PLACES_MAX] = {
		{.label = "entered", .spot = domain->spot},
		{.label = "entered by another thread", .spot = check->spot},
	};
	char name[64], first[64];

	check_name(handle, name, sizeof(name));
	check_name(domain->handle, first, sizeof(first));
	if (domain->handle != handle)
		offence_report(VB_RULE_THREADS, places,
			       "%s and %s belong to one thread domain, and two threads use them at "
			       "the same time",
			       first, name);
	else
		offence_report(
			VB_RULE_THREADS, places, "%s %s, and two threads use it at the same time",
			name, domain->td ? "belongs to a thread domain" : "is for a single thread");
}

/* The thread leaves the domain after the verb. */
static CHECK_RARE void enter(struct check_call *check, struct domain *domain, const void *handle)
{
	check->wants_after = true;
	if (domain->depth && !pthread_equal(domain->thread, pthread_self())) {
		report(check, domain, handle);
		return;
	}
	if (!domain->depth++) {
		domain->thread = pthread_self();
		domain->handle = handle;
		domain->spot = check->spot;
	}
}

static void leave(struct domain *domain)
{
	if (domain->depth && pthread_equal(domain->thread, pthread_self()))
		domain->depth--;
}

static void enter_qp(struct check_call *check)
{
	if (check->qp && check->qp->domain)
		enter(check, check->qp->domain, check->qp->object.handle);
}

static void leave_qp(struct check_call *check)
{
	if (check->qp && check->qp->domain)
		leave(check->qp->domain);
}

static void enter_cq(struct check_call *check)
{
	if (check->cq && check->cq->domain)
		enter(check, check->cq->domain, check->cq->object.handle);
}

static void leave_cq(struct check_call *check)
{
	if (check->cq && check->cq->domain)
		leave(check->cq->domain);
}

/* ibv_end_poll() comes only after a call that has succeeded. */
static void after_start_poll(struct check_call *check)
{
	if (check->call->err || check->call->result)
		leave_cq(check);
}

static void end(void)
{
	while (domains)
		free_domain(domains);
	while (parents) {
		struct parent *parent = parents;

		parents = parent->next;
		free(parent);
	}
}

static const struct check_hook hooks[] = {
	{LAYER_dealloc_td, NULL, after_dealloc_td},
	{LAYER_alloc_parent_domain, NULL, after_alloc_parent},
	{LAYER_dealloc_pd, before_dealloc_pd, NULL},
	{LAYER_create_qp, NULL, after_create_qp},
	{LAYER_create_qp_ex, NULL, after_create_qp_ex},
	{LAYER_create_cq_ex, NULL, after_create_cq},
	{LAYER_destroy_cq, before_destroy_cq, NULL},
	{LAYER_post_send, enter_qp, leave_qp, .before_rarely = true, .after_failure_only = true},
	{LAYER_post_recv, enter_qp, leave_qp, .before_rarely = true, .after_failure_only = true},
	{LAYER_wr_start, enter_qp, NULL, .before_rarely = true},
	{LAYER_wr_complete, NULL, leave_qp},
	{LAYER_wr_abort, NULL, leave_qp},
	{LAYER_poll_cq, enter_cq, leave_cq},
	{LAYER_req_notify_cq, enter_cq, leave_cq},
	{LAYER_start_poll, enter_cq, after_start_poll},
	{LAYER_next_poll, enter_cq, leave_cq},
	{LAYER_end_poll, NULL, leave_cq},
	{0},
};

const struct check_rule rule_thread = {.hooks = hooks, .end = end};
