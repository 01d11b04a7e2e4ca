/* SPDX-License-Identifier: MIT */
/*
 * Completion queues.
 */
#ifndef SIM_OBJECT_CQ_H
#define SIM_OBJECT_CQ_H

#include "sim/base/clock.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_device;
struct sim_queue;

struct sim_cqe {
	struct ibv_wc wc;
	uint64_t timestamp_ns;
	/* Polling this entry gives the slots of a work queue before retire_to back to the program;
	 * NULL once that queue has been reset or is gone. */
	struct sim_queue *retires;
	uint32_t retire_to;
	bool solicited;
};

enum sim_cq_arm {
	SIM_CQ_UNARMED,
	SIM_CQ_ARMED_SOLICITED,
	SIM_CQ_ARMED_ALL,
};

/* Completions that would fire an armed CQ wait for others: for some of them, or for a time. */
struct sim_moderation {
	struct sim_timer timer;
	uint64_t period_ns;
	uint64_t first_ns; /* when the first that waits came */
	uint32_t waiting;
	uint16_t count; /* 0: each fires at once */
	bool reserved;	/* the clock has room for the timer */
};

struct sim_cq {
	struct sim_device *device;
	void *user;
	struct sim_cqe *ring;
	uint32_t mask;
	uint32_t size;	/* entries that fit */
	uint32_t head;	/* next to be written */
	uint32_t tail;	/* next to be polled */
	uint32_t users; /* QPs and SRQs */
	uint8_t armed;	/* enum sim_cq_arm */
	bool ignore_overrun;
	bool overrun; /* dead: takes nothing more */
	struct sim_moderation moderation;
};

/* entries as asked for (1 or more, at most the device's max_cqe: EINVAL). *cq has the real size. */
int sim_cq_create(struct sim_device *device, unsigned int entries, void *user, struct sim_cq **cq);

/* EBUSY while QPs use it. */
int sim_cq_destroy(struct sim_cq *cq);

/* EINVAL below what is in it or beyond the device. */
int sim_cq_resize(struct sim_cq *cq, unsigned int entries);

/* Takes up to count entries out. -1 once an overrun CQ is drained. */
int sim_cq_poll(struct sim_cq *cq, int count, struct ibv_wc *wc);

/* The oldest entry without taking it (NULL for none), and its end. */
const struct sim_cqe *sim_cq_peek(const struct sim_cq *cq);
void sim_cq_pop(struct sim_cq *cq);

void sim_cq_arm(struct sim_cq *cq, bool solicited_only);

static inline uint32_t sim_cq_count(const struct sim_cq *cq)
{
	return cq->head - cq->tail;
}

/* Entries of a work queue that is reset or ends give nothing back any more. */
void sim_cq_forget(struct sim_cq *cq, const struct sim_queue *queue);

/* Takes a QP's entries out (a quirk). */
void sim_cq_purge(struct sim_cq *cq, uint32_t qpn);

/* One more than fits: the CQ dies (false), or loses its oldest entry. */
bool sim_cq_overflow(struct sim_cq *cq);

void sim_cq_notify(struct sim_cq *cq);

/*
 * An event comes after count completions that fire, or period_us after the first of them. With
 * either 0, or a count of 1, each fires at once. EOPNOTSUPP where the device cannot, EINVAL beyond
 * what it can, ENOMEM.
 */
int sim_cq_moderate(struct sim_cq *cq, uint16_t count, uint16_t period_us);

/* A completion that fires: notifies, now or by and by. */
void sim_cq_fire(struct sim_cq *cq);

/* Errors count as solicited (but for a quirk). */
bool sim_cq_counts_as_solicited(const struct sim_cq *cq, const struct sim_cqe *cqe);

/* True if there is room for one more entry; false if the CQ is dead or dies by it (overrun). */
static inline bool sim_cq_has_room(struct sim_cq *cq)
{
	return (!cq->overrun && sim_cq_count(cq) < cq->size) || sim_cq_overflow(cq);
}

/* The next entry to fill. */
static inline struct sim_cqe *sim_cq_next(const struct sim_cq *cq)
{
	return &cq->ring[cq->head & cq->mask];
}

/* The entry that sim_cq_next() gave is filled: counts it and notifies. */
static inline void sim_cq_commit(struct sim_cq *cq, const struct sim_cqe *cqe)
{
	cq->head++;
	if (cq->armed && (cq->armed == SIM_CQ_ARMED_ALL || cqe->solicited ||
			  sim_cq_counts_as_solicited(cq, cqe)))
		sim_cq_fire(cq);
}

#endif
