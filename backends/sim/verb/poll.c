/* SPDX-License-Identifier: MIT */
/* Polling a CQ: ibv_poll_cq(), and ibv_start_poll() with ibv_wc_read_*() (ibv_create_cq_ex(3)). */
#include "backends/sim/verb/verbs.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

static bool has_entry(const void *arg)
{
	return sim_cq_count(((const struct cq *)arg)->engine) > 0;
}

static int refuse_poll(struct ibv_cq *ibv, const struct cq *cq, int num_entries)
{
	if (!cq)
		return refuse_queue("poll_cq", KIND_CQ, ibv);
	return refuse_why("poll_cq", (struct vb_why){VB_WHY_POLL_COUNT, {(uint64_t)num_entries}});
}

int verb_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	HOLD hold = context_hold_to_poll(ibv->context);
	struct cq *cq = cq_of(ibv);
	int taken;

	if (unlikely(!cq || num_entries < 0))
		return minus_errno(refuse_poll(ibv, cq, num_entries));
	if (!sim_cq_count(cq->engine) && !cq->engine->overrun && num_entries > 0)
		driver_step(&hold.world->driver, has_entry, cq);
	taken = sim_cq_poll(cq->engine, num_entries, wc);
	if (unlikely(taken < 0))
		refuse_overrun("poll_cq", cq);
	return taken;
}

static struct cq *self(struct ibv_cq_ex *ex)
{
	return (struct cq *)ex;
}

/*
 * Makes the oldest entry the current one. ENOENT if there is none; EIO if an overrun CQ is drained.
 */
static int take(struct cq *cq, const char *verb)
{
	const struct sim_cqe *cqe = sim_cq_peek(cq->engine);

	if (!cqe)
		return cq->engine->overrun ? refuse_overrun(verb, cq) : ENOENT;
	cq->current = *cqe;
	cq->ex.wr_id = cqe->wc.wr_id;
	cq->ex.status = cqe->wc.status;
	sim_cq_pop(cq->engine);
	return 0;
}

static void unlock_poll(void *mutex)
{
	if (mutex)
		pthread_mutex_unlock(mutex);
}

/* locked is released if the thread is cancelled while it waits for others; NULL: nothing is. */
static int take_or_step(struct cq *cq, pthread_mutex_t *locked)
{
	HOLD hold = context_hold_to_poll(cq->ibv.context);
	int err = take(cq, "start_poll");

	if (err != ENOENT)
		return err;
	pthread_cleanup_push(unlock_poll, locked);
	driver_step(&hold.world->driver, has_entry, cq);
	pthread_cleanup_pop(false);
	return take(cq, "start_poll");
}

/* poll_mutex is held from here to end_poll(), so that only one thread is between the two. */
static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct cq *cq = cq_of((struct ibv_cq *)ex);
	bool poll_locked;
	int err;

	if (!cq)
		return refuse_queue("start_poll", KIND_CQ, (struct ibv_cq *)ex);
	if (attr->comp_mask)
		return refuse_why("start_poll",
				  (struct vb_why){VB_WHY_POLL_MASK, {attr->comp_mask}});
	poll_locked = !__libc_single_threaded && !cq->single_threaded;
	if (poll_locked)
		pthread_mutex_lock(&cq->poll_mutex);
	err = take_or_step(cq, poll_locked ? &cq->poll_mutex : NULL);
	if (!err)
		cq->poll_locked = poll_locked;
	else if (poll_locked)
		pthread_mutex_unlock(&cq->poll_mutex);
	return err;
}

static int next_poll(struct ibv_cq_ex *ex)
{
	HOLD hold = context_hold_to_poll(ex->context);
	struct cq *cq = cq_of((struct ibv_cq *)ex);

	return cq ? take(cq, "next_poll") : refuse_queue("next_poll", KIND_CQ, (struct ibv_cq *)ex);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct cq *cq = self(ex);

	if (cq->poll_locked) {
		cq->poll_locked = false;
		pthread_mutex_unlock(&cq->poll_mutex);
	}
}

/* The fields of struct ibv_wc that ibv_wc_read_FIELD() returns, with its type. */
#define WC_FIELDS(X)                  \
	X(enum ibv_wc_opcode, opcode) \
	X(uint32_t, vendor_err)       \
	X(uint32_t, byte_len)         \
	X(__be32, imm_data)           \
	X(uint32_t, qp_num)           \
	X(uint32_t, src_qp)           \
	X(unsigned int, wc_flags)     \
	X(uint32_t, slid)             \
	X(uint8_t, sl)                \
	X(uint8_t, dlid_path_bits)

#define READ(type, field)                              \
	static type read_##field(struct ibv_cq_ex *ex) \
	{                                              \
		return self(ex)->current.wc.field;     \
	}
WC_FIELDS(READ)

/* In ticks of hca_core_clock, which runs at 1 GHz. */
static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
	return self(ex)->current.timestamp_ns;
}

/* CLOCK_REALTIME at the world's time 0, plus the world's time: two stamps are as far apart as their
 * events, even if somebody sets CLOCK_REALTIME between them. */
static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
	return context_of(ex->context)->world->driver.wall_base_ns + self(ex)->current.timestamp_ns;
}

void verb_fill_poll(struct cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	/* All fields are served, even those that the program did not ask for. */
#define FILL(type, field) ex->read_##field = read_##field;
	WC_FIELDS(FILL)
	cq->engine->stamps = wc_flags & (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
					 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
