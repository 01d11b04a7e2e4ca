/* SPDX-License-Identifier: MIT */
/*
 * Waiting for completions and events, on the virtual clock, which waiting moves, and on a real one.
 */
#include "test/support/support.h"

#include <fcntl.h>
#include <time.h>
#include <verbena/sim.h>

#define VIRTUAL_LIMIT_NS 120000000000ull
#define REAL_LIMIT_NS	 3000000000ull
#define SETTLE_NS	 30000000ull

struct vb_sim *ts_sim(struct vt *t)
{
	return vb_sim_of(t->a.ctx);
}

bool ts_virtual(struct vt *t)
{
	return t->have & VT_NEEDS_VIRTUAL_CLOCK;
}

uint64_t ts_now_ns(struct vt *t)
{
	return vb_sim_now_ns(ts_sim(t));
}

static uint64_t real_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static uint64_t clock_ns(struct vt *t)
{
	return ts_virtual(t) ? ts_now_ns(t) : real_now_ns();
}

/* Returns true if another completion may come. */
static bool may_come(struct vt *t, uint64_t since_ns)
{
	if (!ts_virtual(t))
		return real_now_ns() - since_ns < REAL_LIMIT_NS;
	return vb_sim_next_ns(ts_sim(t)) != VB_SIM_NEVER &&
	       ts_now_ns(t) - since_ns < VIRTUAL_LIMIT_NS;
}

int ts_wait(struct vt *t, struct ibv_cq *cq, int want, struct ibv_wc *wc)
{
	uint64_t since_ns = clock_ns(t);
	int have = 0, got;
	bool more;

	do {
		more = may_come(t, since_ns);
		got = ibv_poll_cq(cq, want - have, wc + have);
		if (got < 0)
			VT_FAIL(t, "poll_cq returned %d", got);
		have += got;
	} while (have < want && (got || more || may_come(t, since_ns)));
	return have;
}

void ts_pause(struct vt *t, uint64_t duration_ns)
{
	struct timespec time = {.tv_sec = (time_t)(duration_ns / 1000000000u),
				.tv_nsec = (long)(duration_ns % 1000000000u)};

	if (ts_virtual(t))
		VT_OK(t, vb_sim_run(ts_sim(t), duration_ns));
	else
		nanosleep(&time, NULL);
}

/* Waits on the real clock until no timer of this process's world runs, since requests that are not acknowledged have
 * one: a busy machine may take long. */
static void settle_real(struct vt *t)
{
	const uint64_t since_ns = real_now_ns();

	ts_pause(t, SETTLE_NS);
	while (ts_sim(t) && vb_sim_next_ns(ts_sim(t)) != VB_SIM_NEVER &&
	       real_now_ns() - since_ns < REAL_LIMIT_NS)
		ts_pause(t, SETTLE_NS / 10);
}

void ts_settle(struct vt *t)
{
	uint64_t since_ns = clock_ns(t);
	uint64_t next_ns;

	if (!ts_virtual(t)) {
		settle_real(t);
		return;
	}
	VT_OK(t, vb_sim_run(ts_sim(t), 0));
	while ((next_ns = vb_sim_next_ns(ts_sim(t))) != VB_SIM_NEVER &&
	       ts_now_ns(t) - since_ns < VIRTUAL_LIMIT_NS)
		VT_OK(t,
		      vb_sim_run(ts_sim(t), next_ns > ts_now_ns(t) ? next_ns - ts_now_ns(t) : 0));
}

struct ibv_wc ts_expect_at(struct vt *t, struct vt_at at, struct ibv_cq *cq, uint64_t wr_id,
			   enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = {0};

	if (ts_wait(t, cq, 1, &wc) != 1)
		vt_fail(t, at, "no completion came; wanted wr_id %llu %s",
			(unsigned long long)wr_id, vt_wc_status_name(status));
	if (wc.wr_id != wr_id || wc.status != status)
		vt_fail(t, at, "completion is wr_id %llu %s, not wr_id %llu %s",
			(unsigned long long)wc.wr_id, vt_wc_status_name(wc.status),
			(unsigned long long)wr_id, vt_wc_status_name(status));
	if (status == IBV_WC_SUCCESS)
		vt_eq(t, at, VT_KIND_INTEGER, "wc.opcode", wc.opcode, opcode);
	return wc;
}

struct ibv_wc ts_received_at(struct vt *t, struct vt_at at, struct ibv_cq *cq, uint64_t wr_id,
			     enum ibv_wc_opcode opcode, uint32_t byte_len)
{
	struct ibv_wc wc = ts_expect_at(t, at, cq, wr_id, IBV_WC_SUCCESS, opcode);

	vt_eq(t, at, VT_KIND_INTEGER, "wc.byte_len", wc.byte_len, byte_len);
	return wc;
}

void ts_no_more_at(struct vt *t, struct vt_at at, struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int got;

	ts_settle(t);
	got = ibv_poll_cq(cq, 1, &wc);
	if (got > 0)
		vt_fail(t, at, "unexpected completion: wr_id %llu %s", (unsigned long long)wc.wr_id,
			vt_wc_status_name(wc.status));
	vt_eq(t, at, VT_KIND_INTEGER, "poll_cq", got, 0);
}

void ts_state_at(struct ts_end *end, struct vt_at at, enum ibv_qp_state state)
{
	vt_eq(end->t, at, VT_KIND_STATE, "state of the QP", ts_query_state(end->t, end->qp), state);
}

static bool get_event(struct vt *t, struct vt_node *node, struct ibv_async_event *event)
{
	uint64_t since_ns = real_now_ns();

	ts_settle(t);
	do {
		if (!vb_get_async_event(node->ctx, event))
			return true;
	} while (!ts_virtual(t) && real_now_ns() - since_ns < REAL_LIMIT_NS);
	return false;
}

static bool of_cq(enum ibv_event_type type)
{
	return type == IBV_EVENT_CQ_ERR;
}

void ts_event_at(struct vt *t, struct vt_at at, struct vt_node *node, enum ibv_event_type type,
		 const void *element)
{
	struct ibv_async_event event;
	const void *got;

	if (!get_event(t, node, &event))
		vt_fail(t, at, "no event came; wanted %s", vt_event_name(type));
	got = of_cq(event.event_type) ? (void *)event.element.cq : (void *)event.element.qp;
	vb_ack_async_event(&event);
	vt_eq(t, at, VT_KIND_EVENT, "event", event.event_type, type);
	vt_check(t, at, "the event names the right object", got == element);
}

void ts_no_event_at(struct vt *t, struct vt_at at, struct vt_node *node)
{
	struct ibv_async_event event;

	ts_settle(t);
	if (vb_get_async_event(node->ctx, &event))
		return;
	vb_ack_async_event(&event);
	vt_fail(t, at, "unexpected event: %s", vt_event_name(event.event_type));
}

void ts_drain_events(struct vt_node *node)
{
	struct ibv_async_event event;
	int fd = node->ctx->async_fd;

	/* The descriptor blocks if the test has made no PD. */
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	while (!vb_get_async_event(node->ctx, &event))
		vb_ack_async_event(&event);
}

bool ts_cq_event(struct vt *t, struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	struct ibv_cq *got;
	void *context;

	ts_settle(t);
	if (vb_get_cq_event(channel, &got, &context))
		return false;
	vb_ack_cq_events(got, 1);
	if (cq)
		*cq = got;
	return true;
}
