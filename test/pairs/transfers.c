/* SPDX-License-Identifier: MIT */
/*
 * Every operation with every size on every QP type, from both processes at the same time and on several
 * QPs, with a check of each byte, and of the bytes before and after.
 */
#include "test/pairs/content.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDS = 3, GUARD = 64, EMPTY = 0xee, CQ_DEPTH = 512 };

struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode sent;
	unsigned int kinds; /* bits of enum link_kind */
	bool receives;	    /* takes a receive WR */
	bool fixed;	    /* always 8 bytes */
};

enum {
	RC = 1 << LINK_RC | 1 << LINK_XRC | 1 << LINK_SRQ,
	CONNECTED = RC | 1 << LINK_UC,
	ALL = CONNECTED | 1 << LINK_UD,
};

static const struct operation operations[] = {
	{"SEND", IBV_WR_SEND, IBV_WC_SEND, ALL, true, false},
	{"SEND with immediate", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, ALL, true, false},
	{"RDMA WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, CONNECTED, false, false},
	{"RDMA WRITE with immediate", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, CONNECTED,
	 true, false},
	{"RDMA READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, RC, false, false},
	{"CMP_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, RC, false, true},
	{"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, RC, false, true},
};

/* Sizes in MTUs and bytes. */
static const struct {
	size_t mtus;
	int bytes;
} sizes[] = {{0, 0}, {0, 1}, {1, -1}, {1, 0}, {1, 1}, {3, 5}, {0, 1 << 20}, {0, 16 << 20}};

enum {
	SIZES = sizeof(sizes) / sizeof(*sizes),
	OPERATIONS = sizeof(operations) / sizeof(*operations)
};

/* 1.1 s, so that a busy machine is no reason for a retry. */
static const struct link_times times = {.timeout = 18, .retry = 7};
/* So that losses are repaired soon: 134 ms. */
static const struct link_times lossy_times = {.timeout = 15, .retry = 7};

struct transfer {
	const struct settings *settings;
	const struct peer *peer;
	struct adapter adapter;
	struct link ends[ENDS];
	size_t area; /* bytes of a source or a target */
	unsigned int step;
	const struct operation *operation;
	size_t size[ENDS];
	unsigned int where[ENDS]; /* the target that has the message of an end */
};

static size_t source(const struct transfer *t, unsigned int end)
{
	return end * t->area + GUARD;
}

static size_t target(const struct transfer *t, unsigned int end)
{
	return (ENDS + end) * t->area + GUARD;
}

static uint64_t key(const struct transfer *t, unsigned int role, unsigned int end)
{
	return ((t->settings->seed * 2 + role) * ENDS + end) * 65536 + t->step;
}

/* The value that atomics of the other process find. */
static uint64_t initial(const struct transfer *t, unsigned int role, unsigned int end)
{
	uint64_t value;

	pattern_fill(&value, sizeof(value), key(t, role, end) ^ 1);
	return value;
}

static _Noreturn void wrong(const struct transfer *t, unsigned int end, const char *what)
{
	fail("seed %llu, step %u, %s of %zu bytes on the %s QP %u (0x%x): %s",
	     (unsigned long long)t->settings->seed, t->step, t->operation->name, t->size[end],
	     link_kind_names[t->ends[end].kind], end, t->ends[end].qp->qp_num, what);
}

/* --- a step: one operation on each QP --- */

static size_t largest(const struct transfer *t)
{
	size_t most = 0;

	for (unsigned int i = 0; i < ENDS; i++)
		if (t->size[i] > most)
			most = t->size[i];
	return most;
}

/* A WRITE on a UC QP completes when it has been sent. An empty SEND after it says that it has arrived. */
static bool needs_mark(const struct transfer *t)
{
	return t->ends[0].kind == LINK_UC && t->operation->opcode == IBV_WR_RDMA_WRITE;
}

static void post_mark(struct link *end, unsigned int i)
{
	link_post(end, &(struct ibv_send_wr){.wr_id = i, .opcode = IBV_WR_SEND}, 0);
}

static void prepare(struct transfer *t)
{
	size_t most = largest(t);

	for (unsigned int i = 0; i < ENDS; i++) {
		struct link *end = &t->ends[i];
		size_t before = end->kind == LINK_UD ? LINK_GRH : 0;
		uint64_t value = initial(t, t->settings->role, i);

		t->where[i] = i;
		memset(t->adapter.memory + target(t, i) - GUARD, EMPTY, most + 2 * GUARD);
		if (t->operation->fixed)
			memcpy(t->adapter.memory + target(t, i), &value, sizeof(value));
		else
			pattern_fill(t->adapter.memory + source(t, i), t->size[i],
				     key(t, t->settings->role, i));
		if (t->operation->opcode == IBV_WR_RDMA_WRITE_WITH_IMM || needs_mark(t))
			link_receive(end, i, target(t, i), 0);
		else if (t->operation->receives)
			link_receive(end, i, target(t, i) - before, most + before);
	}
}

static void post(struct transfer *t, unsigned int i)
{
	bool reads = t->operation->opcode == IBV_WR_RDMA_READ;
	size_t at = reads ? target(t, i) : source(t, i), first = t->size[i] / 3;
	struct ibv_sge sge[] = {link_sge(&t->adapter, at, first),
				link_sge(&t->adapter, at + first, t->size[i] - first)};
	struct ibv_send_wr wr = {.wr_id = i,
				 .sg_list = first ? sge : sge + 1,
				 .num_sge = first ? 2 : 1,
				 .opcode = t->operation->opcode,
				 .imm_data = (uint32_t)key(t, t->settings->role, i)};

	if (t->operation->fixed) {
		uint64_t found = initial(t, !t->settings->role, i);

		sge[1] = link_sge(&t->adapter, source(t, i), sizeof(uint64_t));
		wr.sg_list = sge + 1;
		wr.num_sge = 1;
		/* The comparison with an odd number's value fails. */
		wr.wr.atomic.compare_add =
			t->operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 5 : found + i % 2;
		wr.wr.atomic.swap = ~found;
	}
	link_post(&t->ends[i], &wr, reads ? source(t, i) : target(t, i));
	if (needs_mark(t))
		post_mark(&t->ends[i], i);
}

static void take_receive(struct transfer *t, const struct ibv_wc *wc)
{
	bool writes = t->operation->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned int i = 0;

	while (i < ENDS && t->ends[i].receiver->qp_num != wc->qp_num)
		i++;
	if (i == ENDS || wc->wr_id >= ENDS)
		fail("a receive of an unknown QP 0x%x, wr_id %llu", wc->qp_num,
		     (unsigned long long)wc->wr_id);
	if (!writes)
		t->where[i] = (unsigned int)wc->wr_id;
	if (wc->byte_len != t->size[i] + (t->ends[i].kind == LINK_UD ? LINK_GRH : 0))
		wrong(t, i, "the receive has another byte_len");
	if (wc->opcode != (writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		wrong(t, i, "the receive has another opcode");
	if (writes || t->operation->opcode == IBV_WR_SEND_WITH_IMM) {
		if (!(wc->wc_flags & IBV_WC_WITH_IMM) ||
		    wc->imm_data != (uint32_t)key(t, !t->settings->role, i))
			wrong(t, i, "the receive has other immediate data");
	} else if (wc->wc_flags & IBV_WC_WITH_IMM) {
		wrong(t, i, "the receive has immediate data that nobody has sent");
	}
}

static void collect(struct transfer *t)
{
	unsigned int left = needs_mark(t) ? 3 * ENDS : t->operation->receives ? 2 * ENDS : ENDS;
	struct ibv_wc wc;

	while (left--) {
		adapter_success(&t->adapter, &wc);
		if (needs_mark(t) && wc.opcode != IBV_WC_RDMA_WRITE)
			continue;
		if (wc.opcode & IBV_WC_RECV)
			take_receive(t, &wc);
		else if (wc.opcode != t->operation->sent)
			wrong(t, (unsigned int)wc.wr_id, "the completion has another opcode");
	}
}

static bool is_empty(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != EMPTY)
			return false;
	return true;
}

static void check_atomic(struct transfer *t, unsigned int i)
{
	uint64_t expected = initial(t, t->settings->role, i), result;

	memcpy(&result, t->adapter.memory + source(t, i), sizeof(result));
	if (result != initial(t, !t->settings->role, i))
		wrong(t, i, "the value that was read is wrong");
	if (t->operation->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		expected += 5;
	else if (i % 2 == 0)
		expected = ~expected;
	memcpy(&result, t->adapter.memory + target(t, i), sizeof(result));
	if (result != expected)
		wrong(t, i, "the value that was left is wrong");
}

static void check_end(struct transfer *t, unsigned int i)
{
	const uint8_t *found = t->adapter.memory + target(t, t->where[i]);
	size_t size = t->operation->fixed ? sizeof(uint64_t) : t->size[i];

	if (t->operation->fixed)
		check_atomic(t, i);
	else if (!pattern_holds(found, size, key(t, !t->settings->role, i)))
		wrong(t, i, "the data is wrong");
	if (t->ends[i].kind != LINK_UD && !is_empty(found - GUARD, GUARD))
		wrong(t, i, "bytes before the data were written");
	if (!is_empty(found + size, GUARD))
		wrong(t, i, "bytes after the data were written");
}

static void do_step(struct transfer *t)
{
	t->step++;
	prepare(t);
	peer_meet(t->peer);
	for (unsigned int i = 0; i < ENDS; i++)
		post(t, i);
	collect(t);
	peer_meet(t->peer);
	for (unsigned int i = 0; i < ENDS; i++)
		check_end(t, i);
}

/* --- windows --- */

static void do_work(struct transfer *t, unsigned int i, struct ibv_send_wr *wr)
{
	struct ibv_wc wc;

	link_post(&t->ends[i], wr, target(t, i));
	adapter_success(&t->adapter, &wc);
}

/* Binds a window to the first bytes of a target. Returns its key. */
static uint32_t bind(struct transfer *t, unsigned int i, struct ibv_mw *mw, size_t length)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = t->adapter.mr,
		.addr = (uintptr_t)t->adapter.memory + target(t, i),
		.length = length,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   (t->ends[i].kind == LINK_RC ? IBV_ACCESS_REMOTE_READ : 0),
	};
	do_work(t, i, &wr);
	return wr.bind_mw.rkey;
}

/* A UC QP: waits until the other process's WRITE has arrived. */
static void exchange_marks(struct transfer *t, unsigned int i)
{
	struct ibv_wc wc;

	link_receive(&t->ends[i], i, target(t, i), 0);
	peer_meet(t->peer);
	post_mark(&t->ends[i], i);
	adapter_success(&t->adapter, &wc);
	adapter_success(&t->adapter, &wc);
}

/* Writes through the window of the other process; a reliable QP reads the bytes back. */
static void use_window(struct transfer *t, unsigned int i, uint32_t rkey)
{
	struct ibv_sge sge = link_sge(&t->adapter, source(t, i), t->size[i]);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	uint8_t *bytes = t->adapter.memory + source(t, i);

	wr.wr.rdma.rkey = rkey;
	pattern_fill(bytes, t->size[i], key(t, t->settings->role, i));
	do_work(t, i, &wr);
	if (t->ends[i].kind == LINK_UC) {
		exchange_marks(t, i);
		return;
	}
	memset(bytes, 0, t->size[i]);
	wr.opcode = IBV_WR_RDMA_READ;
	do_work(t, i, &wr);
	if (!pattern_holds(bytes, t->size[i], key(t, t->settings->role, i)))
		wrong(t, i, "the data that was read back is wrong");
}

/* SEND with invalidate ends the other process's window. */
static void end_window(struct transfer *t, unsigned int i, uint32_t theirs, uint32_t mine)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = theirs};
	bool told = false;

	link_receive(&t->ends[i], i, target(t, i), 0);
	peer_meet(t->peer);
	link_post(&t->ends[i], &wr, 0);
	for (unsigned int left = 2; left; left--) {
		struct ibv_wc wc;

		adapter_success(&t->adapter, &wc);
		if (wc.opcode & IBV_WC_RECV)
			told = (wc.wc_flags & IBV_WC_WITH_INV) && wc.invalidated_rkey == mine;
	}
	if (!told)
		wrong(t, i, "the receive does not name the invalidated key");
}

/* A key that was invalidated is refused, and the other process says so. */
static void use_ended_window(struct transfer *t, uint32_t rkey)
{
	struct ibv_sge sge = link_sge(&t->adapter, source(t, 0), 1);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_wc wc;

	wr.wr.rdma.rkey = rkey;
	link_post(&t->ends[0], &wr, target(t, 0));
	adapter_wait(&t->adapter, &wc);
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		fail("a WRITE to an invalidated window: %s", ibv_wc_status_str(wc.status));
}

static void do_windows(struct transfer *t)
{
	static const struct operation window = {.name = "window"};
	uint32_t mine, theirs;
	struct ibv_mw *mw[ENDS];

	t->operation = &window;
	for (unsigned int i = 0; i < ENDS; i++) {
		t->step++;
		t->size[i] = 3 * link_mtu_bytes(t->ends[i].mtu) + 5;
		t->where[i] = i;
		memset(t->adapter.memory + target(t, i) - GUARD, EMPTY, t->size[i] + 2 * GUARD);
		mw[i] = need("ibv_alloc_mw", ibv_alloc_mw(t->adapter.pd, IBV_MW_TYPE_2));
		mine = bind(t, i, mw[i], t->size[i]);
		peer_swap(t->peer, &mine, &theirs, sizeof(mine));
		use_window(t, i, theirs);
		peer_meet(t->peer);
		check_end(t, i);
		if (t->ends[i].kind == LINK_RC)
			end_window(t, i, theirs, mine);
		peer_meet(t->peer);
		if (t->ends[i].kind == LINK_RC && i == 0 && t->settings->role == 0)
			use_ended_window(t, theirs);
		peer_meet(t->peer);
	}
	for (unsigned int i = 0; i < ENDS; i++)
		check("ibv_dealloc_mw", ibv_dealloc_mw(mw[i]));
}

/* --- messages that may be lost --- */

enum { MESSAGES = 200 };

struct lossy {
	struct transfer *t;
	size_t before; /* bytes of the GRH */
	unsigned int sent, arrived;
};

/* Takes a completion. The message of this step must be whole; an earlier one came late. */
static void take_lossy(struct lossy *lossy, const struct ibv_wc *wc)
{
	struct transfer *t = lossy->t;

	if (wc->status != IBV_WC_SUCCESS)
		fail("a message that may be lost: %s", ibv_wc_status_str(wc->status));
	if (!(wc->opcode & IBV_WC_RECV)) {
		lossy->sent++;
		return;
	}
	lossy->arrived++;
	if (wc->imm_data != t->step)
		return;
	if (wc->byte_len != t->size[0] + lossy->before)
		wrong(t, 0, "the receive has another byte_len");
	if (!pattern_holds(t->adapter.memory + target(t, 0), t->size[0],
			   key(t, !t->settings->role, 0)))
		wrong(t, 0, "the data is wrong");
}

static void do_lossy_step(struct lossy *lossy)
{
	struct transfer *t = lossy->t;
	struct link *end = &t->ends[0];
	struct ibv_sge sge = link_sge(&t->adapter, source(t, 0), t->size[0]);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = t->step};
	struct ibv_wc wc;

	pattern_fill(t->adapter.memory + source(t, 0), t->size[0], key(t, t->settings->role, 0));
	link_receive(end, 0, target(t, 0) - lossy->before, t->area - 2 * GUARD);
	peer_meet(t->peer);
	link_post(end, &wr, 0);
	while (lossy->sent < t->step) {
		adapter_wait(&t->adapter, &wc);
		take_lossy(lossy, &wc);
	}
	peer_meet(t->peer);
	while (ibv_poll_cq(t->adapter.cq, 1, &wc) == 1)
		take_lossy(lossy, &wc);
}

/* Sends numbered messages; those that arrive have to be whole. */
static void do_lossy(struct transfer *t)
{
	static const struct operation send = {.name = "SEND with immediate"};
	bool datagrams = t->ends[0].kind == LINK_UD;
	struct lossy lossy = {.t = t, .before = datagrams ? LINK_GRH : 0};
	size_t mtu = link_mtu_bytes(t->ends[0].mtu);

	t->operation = &send;
	for (t->step = 1; t->step <= MESSAGES; t->step++) {
		t->size[0] = datagrams ? 1 + t->step * 13 % mtu : 1 + t->step * 131 % (4 * mtu);
		do_lossy_step(&lossy);
	}
	if (lossy.arrived < MESSAGES / 4)
		fail("of %d messages only %u arrived", MESSAGES, lossy.arrived);
}

/* --- the scenarios --- */

static bool is_lossy(const struct transfer *t, enum link_kind kind)
{
	return t->settings->lossy && (kind == LINK_UC || kind == LINK_UD);
}

static bool set_sizes(struct transfer *t, unsigned int which)
{
	for (unsigned int i = 0; i < ENDS; i++) {
		size_t mtu = link_mtu_bytes(t->ends[i].mtu);

		t->size[i] = sizes[which].mtus * mtu + (size_t)sizes[which].bytes;
		if (t->operation->fixed)
			t->size[i] = sizeof(uint64_t);
		if (t->size[i] > t->settings->largest ||
		    (t->ends[i].kind == LINK_UD && t->size[i] > mtu))
			return false;
	}
	return true;
}

static void do_operations(struct transfer *t, enum link_kind kind)
{
	for (unsigned int op = 0; op < OPERATIONS; op++) {
		t->operation = &operations[op];
		if (!(t->operation->kinds >> kind & 1))
			continue;
		for (unsigned int size = 0; size < (t->operation->fixed ? 1 : SIZES); size++)
			if (set_sizes(t, size))
				do_step(t);
	}
}

static void transfer(const struct settings *settings, struct peer *peer, enum link_kind kind)
{
	static const enum ibv_mtu mtus[ENDS] = {IBV_MTU_4096, IBV_MTU_1024, IBV_MTU_256};
	struct transfer t = {.settings = settings, .peer = peer};

	t.area = (settings->largest + 2 * GUARD + 4095) & ~(size_t)4095;
	if (t.area < 8 * 4096)
		t.area = (size_t)8 * 4096;
	adapter_open(&t.adapter, settings->adapter, 2 * ENDS * t.area, CQ_DEPTH, settings->events);
	for (unsigned int i = 0; i < ENDS; i++)
		link_join(&t.ends[i], &t.adapter, kind,
			  kind == LINK_UD ? t.adapter.port.active_mtu : mtus[i],
			  settings->lossy ? lossy_times : times, peer);
	if (is_lossy(&t, kind))
		do_lossy(&t);
	else
		do_operations(&t, kind);
	if (kind == LINK_RC || (kind == LINK_UC && !is_lossy(&t, kind)))
		do_windows(&t);
	peer_meet(peer);
	for (unsigned int i = 0; i < ENDS; i++)
		link_destroy(&t.ends[i]);
	adapter_close(&t.adapter);
}

static void transfer_rc(const struct settings *settings, struct peer *peer)
{
	transfer(settings, peer, LINK_RC);
}

static void transfer_uc(const struct settings *settings, struct peer *peer)
{
	transfer(settings, peer, LINK_UC);
}

static void transfer_ud(const struct settings *settings, struct peer *peer)
{
	transfer(settings, peer, LINK_UD);
}

static void transfer_xrc(const struct settings *settings, struct peer *peer)
{
	transfer(settings, peer, LINK_XRC);
}

static void transfer_srq(const struct settings *settings, struct peer *peer)
{
	transfer(settings, peer, LINK_SRQ);
}

const struct scenario transfer_scenarios[] = {
	{"rc", transfer_rc, transfer_rc},    {"uc", transfer_uc, transfer_uc},
	{"ud", transfer_ud, transfer_ud},    {"xrc", transfer_xrc, transfer_xrc},
	{"srq", transfer_srq, transfer_srq},
};

const unsigned int transfer_scenario_count =
	sizeof(transfer_scenarios) / sizeof(*transfer_scenarios);
