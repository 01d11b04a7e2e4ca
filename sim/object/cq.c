/* SPDX-License-Identifier: MIT */
#include "sim/object/cq.h"

#include "sim/base/note.h"
#include "sim/base/refuse.h"
#include "sim/object/device.h"
#include "sim/object/queue.h"
#include "sim/object/rules.h"
#include "sim/object/srq.h"

#include <errno.h>
#include <stdlib.h>

static struct sim_cqe *ring_of(unsigned int entries, uint32_t *mask)
{
	const uint32_t capacity = sim_queue_capacity(entries);

	*mask = capacity - 1;
	return malloc(capacity * sizeof(struct sim_cqe));
}

static int check_size(const struct sim_device *device, unsigned int entries)
{
	const unsigned int limit = (unsigned int)device->profile->limits.max_cqe;

	if (entries >= 1 && entries <= limit)
		return 0;
	return sim_refuse(device->engine, (struct vb_why){VB_WHY_CQ_SIZE, {entries, limit}});
}

static void note_period(const struct sim_cq *cq)
{
	const struct sim_moderation *moderation = &cq->moderation;
	struct vb_event event = {
		.kind = VB_EVENT_MODERATION,
		.device = cq->device->name,
		.values = {moderation->waiting, moderation->period_ns},
	};

	sim_note(cq->device->engine, &event, cq->user);
}

static void period_over(struct sim_timer *timer)
{
	const size_t offset = offsetof(struct sim_cq, moderation.timer);
	struct sim_cq *cq = (struct sim_cq *)((char *)timer - offset);

	if (sim_watched(cq->device->engine))
		note_period(cq);
	sim_cq_notify(cq);
}

int sim_cq_create(struct sim_device *device, unsigned int entries, void *user, struct sim_cq **out)
{
	const int limit = device->profile->limits.max_cq;
	struct sim_cq *cq;
	int err = check_size(device, entries);

	if (err)
		return err;
	if (device->cq_count >= (uint32_t)limit)
		return sim_refuse_limit(device->engine, "max_cq", limit);
	entries = sim_queue_size(device, entries, device->profile->limits.max_cqe);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return sim_refuse_memory(device->engine);
	cq->ring = ring_of(entries, &cq->mask);
	if (!cq->ring) {
		free(cq);
		return sim_refuse_memory(device->engine);
	}
	cq->device = device;
	cq->user = user;
	cq->size = cq->room = entries;
	sim_timer_init(&cq->moderation.timer, period_over);
	if (device->quirks.completions_come_late && sim_cq_make_late(cq)) {
		free(cq->ring);
		free(cq);
		return sim_refuse_memory(device->engine);
	}
	device->cq_count++;
	*out = cq;
	return 0;
}

int sim_cq_destroy(struct sim_cq *cq)
{
	if (cq->users)
		return EBUSY; /* the owner knows the users */
	sim_cq_end_late(cq);
	/* Give back the slots of SRQs, which outlive the CQ. */
	while (sim_cq_count(cq))
		sim_cq_pop(cq);
	if (cq->moderation.reserved)
		sim_clock_release(&cq->device->engine->clock, &cq->moderation.timer);
	cq->device->cq_count--;
	free(cq->ring);
	free(cq);
	return 0;
}

int sim_cq_resize(struct sim_cq *cq, unsigned int entries)
{
	uint32_t count = sim_cq_count(cq) + cq->late.hidden;
	struct sim_cqe *ring;
	uint32_t mask;
	int err = check_size(cq->device, entries);

	if (err)
		return err;
	if (entries < count)
		return sim_refuse(cq->device->engine,
				  (struct vb_why){VB_WHY_CQ_RESIZE_BELOW, {count, entries}});
	entries = sim_queue_size(cq->device, entries, cq->device->profile->limits.max_cqe);
	ring = ring_of(entries, &mask);
	if (!ring)
		return sim_refuse_memory(cq->device->engine);
	for (uint32_t i = 0; i < count; i++)
		ring[i] = cq->ring[(cq->tail + i) & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = mask;
	cq->size = entries;
	if (cq->room)
		cq->room = entries;
	cq->tail = 0;
	cq->head = count - cq->late.hidden;
	return 0;
}

/* The program has polled the completion: the slots that the completion holds may be posted
 * again. */
__attribute__((always_inline)) static inline void retire(const struct sim_cqe *cqe)
{
	if (!cqe->retires)
		return;
	if (!cqe->retires->shared)
		cqe->retires->freed = cqe->retire_to;
	else
		sim_srq_retire((struct sim_srq *)cqe->retires, cqe->retire_to);
}

void sim_cq_forget(struct sim_cq *cq, const struct sim_queue *queue)
{
	/* A QP that is reset or gone completes nothing. */
	sim_cq_reveal(cq);
	for (uint32_t i = cq->tail; i != cq->head; i++)
		if (cq->ring[i & cq->mask].retires == queue)
			cq->ring[i & cq->mask].retires = NULL;
}

int sim_cq_poll(struct sim_cq *cq, int count, struct ibv_wc *wc)
{
	int taken = 0;

	if (cq->overrun && cq->device->quirks.overrun_ends_polling)
		return count > 0 ? -1 : 0;

	for (; taken < count && cq->tail != cq->head; taken++) {
		const struct sim_cqe *cqe = &cq->ring[cq->tail & cq->mask];

		wc[taken] = cqe->wc;
		retire(cqe);
		cq->tail++;
	}
	return taken == 0 && cq->overrun && count > 0 ? -1 : taken;
}

const struct sim_cqe *sim_cq_peek(const struct sim_cq *cq)
{
	return cq->tail == cq->head ? NULL : &cq->ring[cq->tail & cq->mask];
}

void sim_cq_pop(struct sim_cq *cq)
{
	retire(&cq->ring[cq->tail & cq->mask]);
	cq->tail++;
}

/* True if a completion fires the CQ as it is armed. */
static bool fires(const struct sim_cq *cq, const struct sim_cqe *cqe)
{
	const unsigned int armed = cq->armed & SIM_CQ_ARM_MASK;

	return armed == SIM_CQ_ARMED_ALL ||
	       (armed && (cqe->solicited || sim_cq_counts_as_solicited(cq, cqe)));
}

/* True if a completion that the CQ holds fires it as it is armed. */
static bool holds_firing(const struct sim_cq *cq)
{
	for (uint32_t i = cq->tail; i != cq->head; i++)
		if (fires(cq, &cq->ring[i & cq->mask]))
			return true;
	return false;
}

void sim_cq_added(struct sim_cq *cq, const struct sim_cqe *cqe)
{
	if (cq->armed & SIM_CQ_LATE)
		sim_cq_hide(cq);
	else if (fires(cq, cqe))
		sim_cq_fire(cq);
}

void sim_cq_reveal(struct sim_cq *cq)
{
	while (cq->late.hidden) {
		const struct sim_cqe *cqe = sim_cq_next(cq);

		cq->late.hidden--;
		cq->head++;
		if (fires(cq, cqe))
			sim_cq_fire(cq);
	}
}

void sim_cq_arm(struct sim_cq *cq, bool solicited_only)
{
	const uint8_t late = cq->armed & SIM_CQ_LATE;

	if (!solicited_only)
		cq->armed = late | SIM_CQ_ARMED_ALL;
	else if (cq->armed == late)
		cq->armed = late | SIM_CQ_ARMED_SOLICITED;
	if (cq->device->quirks.pending_completions_notify && holds_firing(cq))
		sim_cq_notify(cq);
}

bool sim_cq_counts_as_solicited(const struct sim_cq *cq, const struct sim_cqe *cqe)
{
	return cqe->wc.status != IBV_WC_SUCCESS &&
	       sim_device_obeys(cq->device, SIM_RULE_ERRORS_ARE_SOLICITED);
}

void sim_cq_purge(struct sim_cq *cq, uint32_t qpn)
{
	uint32_t kept = cq->tail;

	for (uint32_t i = cq->tail; i != cq->head; i++) {
		const struct sim_cqe *cqe = &cq->ring[i & cq->mask];

		if (cqe->wc.qp_num == qpn)
			retire(cqe);
		else
			cq->ring[kept++ & cq->mask] = *cqe;
	}
	cq->head = kept;
}

bool sim_cq_holds(const struct sim_cq *cq, uint32_t qpn, enum ibv_wc_status status,
		  const uint64_t *wr_id)
{
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		const struct ibv_wc *wc = &cq->ring[i & cq->mask].wc;

		if (wc->qp_num == qpn && wc->status == status && (!wr_id || wc->wr_id == *wr_id))
			return true;
	}
	return false;
}

void sim_cq_notify(struct sim_cq *cq)
{
	const struct sim_host *host = &cq->device->engine->host;

	cq->armed &= SIM_CQ_LATE;
	cq->moderation.waiting = 0;
	sim_timer_disarm(&cq->moderation.timer);
	host->cq_event(host->arg, cq);
}

void sim_cq_fire(struct sim_cq *cq)
{
	struct sim_moderation *moderation = &cq->moderation;
	struct sim_clock *clock = &cq->device->engine->clock;

	if (++moderation->waiting >= moderation->count) {
		sim_cq_notify(cq);
	} else if (moderation->waiting == 1) {
		moderation->first_ns = sim_clock_now_ns(clock);
		sim_timer_arm(clock, &moderation->timer,
			      moderation->first_ns + moderation->period_ns);
	}
}

int sim_cq_moderate(struct sim_cq *cq, uint16_t count, uint16_t period_us)
{
	const struct ibv_cq_moderation_caps *caps = &cq->device->profile->moderation;
	struct sim_moderation *moderation = &cq->moderation;
	struct sim_clock *clock = &cq->device->engine->clock;
	bool off = count <= 1 || period_us == 0;

	if (!caps->max_cq_count)
		return sim_refuse(cq->device->engine,
				  (struct vb_why){.reason = VB_WHY_CQ_MODERATION_NONE});
	if (count > caps->max_cq_count || period_us > caps->max_cq_period)
		return sim_refuse(cq->device->engine,
				  (struct vb_why){VB_WHY_CQ_MODERATION_RANGE,
						  {count, period_us, caps->max_cq_count,
						   caps->max_cq_period}});
	if (!off && !moderation->reserved) {
		if (sim_clock_reserve(clock))
			return sim_refuse_memory(cq->device->engine);
		moderation->reserved = true;
	}
	moderation->count = off ? 0 : count;
	moderation->period_ns = UINT64_C(1000) * period_us;
	if (!moderation->waiting)
		return 0;
	/* The new rule holds for the completions that wait already. */
	if (moderation->waiting >= moderation->count ||
	    moderation->first_ns + moderation->period_ns <= sim_clock_now_ns(clock))
		sim_cq_notify(cq);
	else
		sim_timer_arm(clock, &moderation->timer,
			      moderation->first_ns + moderation->period_ns);
	return 0;
}

bool sim_cq_overflow(struct sim_cq *cq)
{
	const struct sim_host *host = &cq->device->engine->host;
	const struct sim_event event = {.type = IBV_EVENT_CQ_ERR, .element = cq->user};

	if (cq->armed & SIM_CQ_LATE && !cq->overrun && sim_cq_open_late(cq))
		return true;
	if (cq->overrun)
		return false;
	if (cq->ignore_overrun) {
		sim_cq_pop(cq);
		return true;
	}
	cq->overrun = sim_device_obeys(cq->device, SIM_RULE_OVERRUN_KILLS_CQ);
	host->async_event(host->arg, cq->device, &event);
	return false;
}
