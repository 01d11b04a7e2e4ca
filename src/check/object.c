/* SPDX-License-Identifier: MIT */
#include "src/check/object.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>

#define BUCKETS	      1024 /* a power of two */
#define ENDED_MRS_MAX 1024 /* whose keys are remembered */

static struct object *buckets[BUCKETS];
static struct object *kinds[OBJECT_KINDS];
static struct check_qp *numbers[BUCKETS];
static struct check_mr *lkeys[BUCKETS];
static struct object *ended_mrs; /* the last one first, by next_of_kind */
static unsigned int ended_count;
static uint64_t changes;
static uint64_t registrations; /* counts the MRs that were entered */

/* --- tables --- */

static struct object **bucket_of(const void *handle)
{
	return &buckets[((uintptr_t)handle >> 4 ^ (uintptr_t)handle >> 14) % BUCKETS];
}

static struct object *find(const void *handle, enum object_kind kind)
{
	struct object *object = *bucket_of(handle);

	while (object && (object->handle != handle || object->kind != kind))
		object = object->next;
	return object;
}

static void put(struct object *object)
{
	struct object **bucket = bucket_of(object->handle);

	object->next = *bucket;
	*bucket = object;
	object->next_of_kind = kinds[object->kind];
	kinds[object->kind] = object;
}

static void leave(struct object *object)
{
	struct object **link = bucket_of(object->handle);

	changes++;
	while (*link != object)
		link = &(*link)->next;
	*link = object->next;
	link = &kinds[object->kind];
	while (*link != object)
		link = &(*link)->next_of_kind;
	*link = object->next_of_kind;
}

uint64_t object_changes(void)
{
	return changes;
}

struct object *object_first(enum object_kind kind)
{
	return kinds[kind];
}

struct check_cq *object_find_cq(const struct ibv_cq *cq)
{
	return (struct check_cq *)find(cq, OBJECT_CQ);
}

struct check_qp *object_find_qp(const struct ibv_qp *qp)
{
	return (struct check_qp *)find(qp, OBJECT_QP);
}

struct check_srq *object_find_srq(const struct ibv_srq *srq)
{
	return (struct check_srq *)find(srq, OBJECT_SRQ);
}

struct check_mr *object_find_mr(const struct ibv_mr *mr)
{
	return (struct check_mr *)find(mr, OBJECT_MR);
}

/* --- tables by number --- */

static struct check_qp **number_bucket(uint32_t qpn)
{
	return &numbers[qpn % BUCKETS];
}

static struct check_mr **lkey_bucket(uint32_t lkey)
{
	return &lkeys[(lkey ^ lkey >> 8) % BUCKETS];
}

static void put_number(struct check_qp *qp)
{
	qp->next_number = *number_bucket(qp->qpn);
	*number_bucket(qp->qpn) = qp;
}

static void leave_number(struct check_qp *qp)
{
	struct check_qp **link = number_bucket(qp->qpn);

	while (*link != qp)
		link = &(*link)->next_number;
	*link = qp->next_number;
}

static void put_lkey(struct check_mr *mr)
{
	mr->next_lkey = *lkey_bucket(mr->lkey);
	*lkey_bucket(mr->lkey) = mr;
}

static void leave_lkey(struct check_mr *mr)
{
	struct check_mr **link = lkey_bucket(mr->lkey);

	while (*link != mr)
		link = &(*link)->next_lkey;
	*link = mr->next_lkey;
}

struct check_qp *object_find_qpn(const struct ibv_context *context, uint32_t qpn)
{
	struct check_qp *qp = *number_bucket(qpn);

	while (qp && (qp->qpn != qpn || qp->object.context != context))
		qp = qp->next_number;
	return qp;
}

struct check_mr *object_find_lkey(const struct ibv_context *context, uint32_t lkey,
				  const struct ibv_pd *pd)
{
	struct check_mr *other = NULL;

	for (struct check_mr *mr = *lkey_bucket(lkey); mr; mr = mr->next_lkey) {
		if (mr->lkey != lkey || mr->object.context != context)
			continue;
		if (mr->pd == pd)
			return mr;
		other = mr;
	}
	return other;
}

/* --- entering and leaving --- */

void object_hide(struct object *object)
{
	leave(object);
	if (object->kind == OBJECT_QP)
		leave_number((struct check_qp *)object);
	else if (object->kind == OBJECT_MR)
		leave_lkey((struct check_mr *)object);
}

void object_show(struct object *object)
{
	put(object);
	if (object->kind == OBJECT_QP)
		put_number((struct check_qp *)object);
	else if (object->kind == OBJECT_MR)
		put_lkey((struct check_mr *)object);
}

void object_free(struct object *object)
{
	if (object->kind == OBJECT_QP) {
		work_queue_free(&((struct check_qp *)object)->sends);
		work_queue_free(&((struct check_qp *)object)->receives);
	} else if (object->kind == OBJECT_SRQ) {
		work_queue_free(&((struct check_srq *)object)->receives);
	}
	free(object);
}

static void enter(struct object *object, const void *handle, enum object_kind kind,
		  struct ibv_context *context)
{
	object->handle = handle;
	object->kind = kind;
	object->context = context;
	object_show(object);
}

/* --- CQs, SRQs, QPs --- */

struct check_cq *object_cq(struct ibv_cq *cq)
{
	struct check_cq *known = object_find_cq(cq);

	if (known || !cq)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known)
		return NULL;
	known->cqe = (uint32_t)cq->cqe;
	known->channel = cq->channel;
	enter(&known->object, cq, OBJECT_CQ, cq->context);
	return known;
}

struct check_srq *object_srq(struct ibv_srq *srq)
{
	struct check_srq *known = object_find_srq(srq);

	if (known || !srq)
		return known;
	known = calloc(1, sizeof(*known));
	if (!known || !work_queue_init(&known->receives, 0, 0)) {
		free(known);
		return NULL;
	}
	known->pd = srq->pd;
	enter(&known->object, srq, OBJECT_SRQ, srq->context);
	return known;
}

struct check_qp *object_enter_qp(struct ibv_qp *qp, const struct ibv_qp_cap *cap, bool signals_all)
{
	struct check_qp *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	if (cap)
		known->cap = *cap;
	if (!work_queue_init(&known->sends, known->cap.max_send_wr, known->cap.max_send_sge) ||
	    !work_queue_init(&known->receives, known->cap.max_recv_wr, known->cap.max_recv_sge)) {
		work_queue_free(&known->sends);
		free(known);
		return NULL;
	}
	known->knows_caps = cap;
	known->signals_all = signals_all;
	known->qpn = qp->qp_num;
	known->type = qp->qp_type;
	known->is_datagram = qp->qp_type == IBV_QPT_UD;
	known->pd = qp->pd;
	known->state = qp->state;
	known->send_cq = object_cq(qp->send_cq);
	known->recv_cq = object_cq(qp->recv_cq);
	known->srq = object_srq(qp->srq);
	enter(&known->object, qp, OBJECT_QP, qp->context);
	return known;
}

struct check_qp *object_qp(struct ibv_qp *qp)
{
	struct check_qp *known = object_find_qp(qp);

	return known ? known : object_enter_qp(qp, NULL, false);
}

/* --- MRs --- */

struct check_mr *object_mr(struct ibv_mr *mr, int access)
{
	struct check_mr *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	known->pd = mr->pd;
	known->addr = (uintptr_t)mr->addr;
	known->memory = mr->addr;
	known->length_bytes = mr->length;
	known->lkey = mr->lkey;
	known->rkey = mr->rkey;
	known->access = access;
	known->number = ++registrations;
	enter(&known->object, mr, OBJECT_MR, mr->context);
	return known;
}

struct check_mr *object_search_mr(bool (*matches)(const struct check_mr *mr, const void *arg),
				  const void *arg)
{
	struct object *const lists[] = {kinds[OBJECT_MR], ended_mrs};

	for (unsigned int i = 0; i < 2; i++)
		for (struct object *object = lists[i]; object; object = object->next_of_kind)
			if (matches((struct check_mr *)object, arg))
				return (struct check_mr *)object;
	return NULL;
}

static void forget_oldest_ended(void)
{
	struct object **link = &ended_mrs;

	while ((*link)->next_of_kind)
		link = &(*link)->next_of_kind;
	free(*link);
	*link = NULL;
	ended_count--;
}

void object_end_mr(struct check_mr *mr, const struct spot *ended)
{
	mr->ended = *ended;
	mr->object.next_of_kind = ended_mrs;
	ended_mrs = &mr->object;
	if (++ended_count > ENDED_MRS_MAX)
		forget_oldest_ended();
}

/* --- attributes of QPs --- */

void object_set_attr(struct check_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	const struct {
		int bit;
		size_t offset, size_bytes;
	} fields[] = {
#define FIELD(bit, member) {bit, offsetof(struct ibv_qp_attr, member), sizeof(attr->member)}
		FIELD(IBV_QP_ACCESS_FLAGS, qp_access_flags),
		FIELD(IBV_QP_PKEY_INDEX, pkey_index),
		FIELD(IBV_QP_PORT, port_num),
		FIELD(IBV_QP_QKEY, qkey),
		FIELD(IBV_QP_AV, ah_attr),
		FIELD(IBV_QP_PATH_MTU, path_mtu),
		FIELD(IBV_QP_TIMEOUT, timeout),
		FIELD(IBV_QP_RETRY_CNT, retry_cnt),
		FIELD(IBV_QP_RNR_RETRY, rnr_retry),
		FIELD(IBV_QP_RQ_PSN, rq_psn),
		FIELD(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
		FIELD(IBV_QP_MIN_RNR_TIMER, min_rnr_timer),
		FIELD(IBV_QP_SQ_PSN, sq_psn),
		FIELD(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
		FIELD(IBV_QP_DEST_QPN, dest_qp_num),
#undef FIELD
	};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (mask & fields[i].bit)
			memcpy((char *)&qp->attr + fields[i].offset,
			       (const char *)attr + fields[i].offset, fields[i].size_bytes);
	qp->attr_mask |= mask;
}

/* --- the end --- */

void object_forget_all(void)
{
	for (int kind = 0; kind < OBJECT_KINDS; kind++) {
		struct object *object = kinds[kind], *next;

		kinds[kind] = NULL;
		for (; object; object = next) {
			next = object->next_of_kind;
			object_free(object);
		}
	}
	memset(buckets, 0, sizeof(buckets));
	memset(numbers, 0, sizeof(numbers));
	memset(lkeys, 0, sizeof(lkeys));
	changes++;
	while (ended_count)
		forget_oldest_ended();
}
