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
	uint64_t timestamp_ns; /* in a CQ with stamps */
	/* Polling this entry frees the slots of a work queue before retire_to, or the slot
	 * retire_to of an SRQ; NULL after that queue was reset or destroyed. */
	struct sim_queue *retires;
	uint32_t retire_to;
	bool solicited;
};

enum sim_cq_arm {
	SIM_CQ_UNARMED,
	SIM_CQ_ARMED_SOLICITED,
	SIM_CQ_ARMED_ALL,
	SIM_CQ_ARM_MASK = 3,
	SIM_CQ_LATE =
		4, /* beside one of the others, for the life of the CQ: see sim/object/cq_late.c */
};

/* The quirk completions_come_late: the entries behind the head that nobody can poll yet. */
struct sim_cq_late {
	struct sim_timer timer;
	uint32_t hidden; /* counts them */
};

/* Moderation: a completion that fires an armed CQ waits for other completions, or for a time. */
struct sim_moderation {
	struct sim_timer timer;
	uint64_t period_ns;
	uint64_t first_ns; /* when the first waiting completion came */
	uint32_t waiting;
	uint16_t count; /* completions that make an event; 0: each one does */
	bool reserved;	/* the clock has room for the timer */
};

struct sim_cq {
	struct sim_device *device;
	void *user;
	struct sim_cqe *ring;
	uint32_t mask;
	uint32_t size; /* the most entries */
	uint32_t
		room; /* up to so many entries an entry is added at once: the size; 0 in a late CQ */
	uint32_t head;	/* the next entry to write */
	uint32_t tail;	/* the next entry to poll */
	uint32_t users; /* counts QPs and SRQs */
	uint8_t armed;	/* bits of enum sim_cq_arm */
	bool stamps;	/* the owner reads the times of completions */
	bool ignore_overrun;
	bool overrun; /* true after an overrun: the CQ takes no more completions */
	struct sim_moderation moderation;
	struct sim_cq_late late;
};

/* Makes a CQ of at least `entries` entries; the size is (*cq)->size. EINVAL unless 1 <= entries <=
 * max_cqe; ENOMEM. */
int sim_cq_create(struct sim_device *device, unsigned int entries, void *user, struct sim_cq **cq);

/* Destroys a CQ. EBUSY while a QP or an SRQ uses it. */
int sim_cq_destroy(struct sim_cq *cq);

/* Changes the size. EINVAL for fewer entries than the CQ holds, or for more than max_cqe;
 * ENOMEM. */
int sim_cq_resize(struct sim_cq *cq, unsigned int entries);

/* Polls up to count entries and returns their number; -1 if a CQ that has overrun is empty. */
int sim_cq_poll(struct sim_cq *cq, int count, struct ibv_wc *wc);

/* sim_cq_peek() returns the oldest entry, NULL if the CQ is empty; sim_cq_pop() removes it. */
const struct sim_cqe *sim_cq_peek(const struct sim_cq *cq);
void sim_cq_pop(struct sim_cq *cq);

/* Asks for an event at the next completion, or at the next solicited one. */
void sim_cq_arm(struct sim_cq *cq, bool solicited_only);

/* Returns the number of entries that can be polled. */
static inline uint32_t sim_cq_count(const struct sim_cq *cq)
{
	return cq->head - cq->tail;
}

/* Call this when a work queue is reset or destroyed: its entries free no slots. */
void sim_cq_forget(struct sim_cq *cq, const struct sim_queue *queue);

/* Removes the entries of a QP (a quirk). Call this after sim_cq_forget(). */
void sim_cq_purge(struct sim_cq *cq, uint32_t qpn);

/* Returns true if a completion of a QP with a status, and with *wr_id unless NULL, can be polled. */
bool sim_cq_holds(const struct sim_cq *cq, uint32_t qpn, enum ibv_wc_status status,
		  const uint64_t *wr_id);

/* Handles an entry for which the CQ has no room, or that a late CQ takes. Returns true if the entry can be
 * added, and false if the CQ has overrun. */
bool sim_cq_overflow(struct sim_cq *cq);

/* An entry has been added to a CQ that is armed or late. */
void sim_cq_added(struct sim_cq *cq, const struct sim_cqe *cqe);

/* Disarms the CQ and raises its event. */
void sim_cq_notify(struct sim_cq *cq);

/*
 * Moderation: the event comes after `count` completions that fire, or period_us after the first of
 * them. If one of the two is 0, or count is 1, each completion raises the event. EOPNOTSUPP if the
 * device has no moderation, EINVAL beyond its caps, ENOMEM.
 */
int sim_cq_moderate(struct sim_cq *cq, uint16_t count, uint16_t period_us);

/* A completion fires the CQ: raises the event, now or after the moderation. */
void sim_cq_fire(struct sim_cq *cq);

/* Returns true if an entry that is not solicited counts as such: errors do, except with a quirk. */
bool sim_cq_counts_as_solicited(const struct sim_cq *cq, const struct sim_cqe *cqe);

/* Returns true if there is room for one more entry; false if the CQ has overrun, now or before. */
static inline bool sim_cq_has_room(struct sim_cq *cq)
{
	return (!cq->overrun && sim_cq_count(cq) < cq->room) || sim_cq_overflow(cq);
}

/* Returns the next entry to fill. */
static inline struct sim_cqe *sim_cq_next(const struct sim_cq *cq)
{
	return &cq->ring[cq->head & cq->mask];
}

/* Gives an entry the engine's time, if the owner reads the time. */
static inline void sim_cq_stamp(const struct sim_cq *cq, struct sim_cqe *cqe,
				struct sim_clock *clock)
{
	if (cq->stamps)
		cqe->timestamp_ns = sim_clock_now_ns(clock);
}

/* Adds the entry that sim_cq_next() returned, after the caller has filled it. */
static inline void sim_cq_commit(struct sim_cq *cq, const struct sim_cqe *cqe)
{
	cq->head++;
	if (cq->armed)
		sim_cq_added(cq, cqe);
}

/* --- cq_late.c --- */

/* Makes a new CQ late. ENOMEM. */
int sim_cq_make_late(struct sim_cq *cq);
void sim_cq_end_late(struct sim_cq *cq);

/* Puts the head behind the hidden entries, where the next one is filled. Returns false if the CQ is full. */
bool sim_cq_open_late(struct sim_cq *cq);

/* Hides the entry that has been added, and puts the head before the hidden entries. */
void sim_cq_hide(struct sim_cq *cq);

/* Lets the hidden entries be polled, and raises the events that they raise. */
void sim_cq_reveal(struct sim_cq *cq);

#endif
