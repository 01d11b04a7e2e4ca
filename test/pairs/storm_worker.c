/* SPDX-License-Identifier: MIT */
#include "test/pairs/storm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A flow's slot of the memory. */
enum {
	LONGEST = 2000,
	SOURCE = 0,
	RESULT = 4096,
	RECEIVES = 8192, /* two messages */
	READABLE = 12288,
	WRITTEN = READABLE + 2048,
	ADDED = WRITTEN + 2000,
	SWAPPED = ADDED + 8,
	SLOT = 16384,
};

enum { RECEIVE_COUNT = 2, RECEIVE_BYTES = 2048 };

/* After so many requests a worker is warm. */
enum { WARM_REQUESTS = 100 };

/* What a work request is for; with the slot it is the wr_id. */
enum work { WORK_SEND, WORK_WRITE, WORK_READ_BACK, WORK_READ, WORK_ADD, WORK_SWAP, WORK_RECEIVE };

enum flow_state {
	FLOW_FREE,
	FLOW_OFFERED, /* waits for the other's names */
	FLOW_QUIET,   /* connected; the other end may not be */
	FLOW_BUSY,
	FLOW_DYING, /* the other process is dead; work is left */
};

/* One of the QPs to one other worker. */
struct flow {
	struct link link;
	enum flow_state state;
	uint32_t other, generation, number; /* of the other worker; of the flow between the two */
	unsigned int requests, receives;    /* posted and not completed */
	uint64_t turn, sent, received, added, swapped;
	uint32_t length; /* of the request */
};

struct worker {
	const struct storm_worker_settings *settings;
	const struct peer *starter;
	struct adapter adapter;
	struct flow *flows;
	unsigned int slots;
	uint64_t random;
	struct storm_sum sum;
	bool warm, stopping, done, leaving;
};

/* The beginning of a message. */
struct header {
	uint64_t seed;
	uint32_t from, generation, number, length;
	uint64_t sent;
};

static uint64_t next_random(struct worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

static unsigned int slot_of(const struct worker *w, const struct flow *flow)
{
	return (unsigned int)(flow - w->flows);
}

static uint8_t *at(const struct worker *w, const struct flow *flow, size_t offset)
{
	return w->adapter.memory + (size_t)slot_of(w, flow) * SLOT + offset;
}

static uint64_t key(const struct worker *w, uint32_t generation, uint32_t number, uint64_t turn)
{
	return ((w->settings->seed * 1000003 + generation) * STORM_QPS + number) * 1000003 + turn;
}

static _Noreturn void wrong(const struct worker *w, const struct flow *flow, const char *what)
{
	fail("seed %llu: worker %u (generation %u), QP 0x%x to worker %u (generation %u), turn "
	     "%llu: %s",
	     (unsigned long long)w->settings->seed, w->settings->self, w->settings->generation,
	     flow->link.qp->qp_num, flow->other, flow->generation, (unsigned long long)flow->turn,
	     what);
}

static uint64_t resident_bytes(void)
{
	unsigned long long pages = 0;
	FILE *file = need("statm", fopen("/proc/self/statm", "re"));

	if (fscanf(file, "%*u %llu", &pages) != 1)
		fail("cannot read /proc/self/statm");
	fclose(file);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- flows --- */

static struct flow *take_flow(struct worker *w)
{
	for (unsigned int i = 0; i < w->slots; i++)
		if (w->flows[i].state == FLOW_FREE)
			return &w->flows[i];
	fail("no free slot");
}

static void make_flow(struct worker *w, uint32_t other, uint32_t generation, uint32_t number,
		      struct link_name *name)
{
	struct flow *flow = take_flow(w);
	static const enum ibv_mtu mtus[STORM_QPS] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024,
						     IBV_MTU_4096};

	*flow = (struct flow){
		.state = FLOW_OFFERED, .other = other, .generation = generation, .number = number};
	link_make(&flow->link, &w->adapter, LINK_RC, mtus[number], name);
	name->memory += (uint64_t)slot_of(w, flow) * SLOT;
	memset(at(w, flow, 0), 0, SLOT);
	pattern_fill(at(w, flow, READABLE), LONGEST, key(w, w->settings->generation, number, 0));
}

static struct flow *find_flow(struct worker *w, uint32_t other, uint32_t generation,
			      uint32_t number)
{
	for (unsigned int i = 0; i < w->slots; i++) {
		struct flow *flow = &w->flows[i];

		if (flow->state != FLOW_FREE && flow->state != FLOW_DYING && flow->other == other &&
		    flow->generation == generation && flow->number == number)
			return flow;
	}
	return NULL;
}

static void post_receive(struct worker *w, struct flow *flow, unsigned int number)
{
	unsigned int slot = slot_of(w, flow);

	link_receive(&flow->link, ((uint64_t)slot << 8) + WORK_RECEIVE + number,
		     (size_t)slot * SLOT + RECEIVES + (size_t)number * RECEIVE_BYTES,
		     RECEIVE_BYTES);
	flow->receives++;
}

static void connect_flow(struct worker *w, struct flow *flow, const struct link_name *name)
{
	/* SoftRoCE retries for ever where the count is 7. */
	static const struct link_times times = {.timeout = 20, .retry = 6};

	for (unsigned int i = 0; i < RECEIVE_COUNT; i++)
		post_receive(w, flow, i);
	link_connect(&flow->link, name, times);
	flow->state = FLOW_QUIET;
}

/* --- requests --- */

static void post(struct worker *w, struct flow *flow, enum work work, enum ibv_wr_opcode opcode,
		 size_t offset, uint32_t length, size_t remote)
{
	unsigned int slot = slot_of(w, flow);
	struct ibv_sge sge = link_sge(&w->adapter, (size_t)slot * SLOT + offset, length);
	struct ibv_send_wr wr = {.wr_id = ((uint64_t)slot << 8) + work,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 1;
	if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.compare_add = flow->swapped;
		wr.wr.atomic.swap = flow->swapped + 1;
	}
	link_post(&flow->link, &wr, remote);
	flow->requests++;
}

static void post_message(struct worker *w, struct flow *flow)
{
	struct header header = {
		.seed = w->settings->seed,
		.from = w->settings->self,
		.generation = w->settings->generation,
		.number = flow->number,
		.length = flow->length,
		.sent = ++flow->sent,
	};

	memcpy(at(w, flow, SOURCE), &header, sizeof(header));
	pattern_fill(at(w, flow, SOURCE + sizeof(header)), flow->length,
		     key(w, header.generation, header.number, header.sent));
	post(w, flow, WORK_SEND, IBV_WR_SEND, SOURCE, (uint32_t)sizeof(header) + flow->length, 0);
}

/* Begins the next request of a flow, of a random kind. */
static void begin(struct worker *w, struct flow *flow)
{
	uint64_t random = next_random(w);

	flow->turn++;
	flow->length = (uint32_t)(random >> 8) % (LONGEST - (uint32_t)sizeof(struct header));
	switch (random % 5) {
	case 0:
		post_message(w, flow);
		break;
	case 1:
		pattern_fill(at(w, flow, SOURCE), flow->length,
			     key(w, w->settings->generation, flow->number, flow->turn));
		post(w, flow, WORK_WRITE, IBV_WR_RDMA_WRITE, SOURCE, flow->length, WRITTEN);
		post(w, flow, WORK_READ_BACK, IBV_WR_RDMA_READ, RESULT, flow->length, WRITTEN);
		break;
	case 2:
		post(w, flow, WORK_READ, IBV_WR_RDMA_READ, RESULT, flow->length, READABLE);
		break;
	case 3:
		post(w, flow, WORK_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, RESULT, 8, ADDED);
		break;
	default:
		post(w, flow, WORK_SWAP, IBV_WR_ATOMIC_CMP_AND_SWP, RESULT, 8, SWAPPED);
		break;
	}
}

/* --- completions --- */

static void check_receive(struct worker *w, struct flow *flow, const struct ibv_wc *wc)
{
	unsigned int number = (unsigned int)(wc->wr_id & 0xff) - WORK_RECEIVE;
	const uint8_t *message = at(w, flow, RECEIVES + (size_t)number * RECEIVE_BYTES);
	struct header header;

	memcpy(&header, message, sizeof(header));
	if (header.seed != w->settings->seed || header.from != flow->other ||
	    header.generation != flow->generation || header.number != flow->number ||
	    wc->byte_len != sizeof(header) + header.length)
		wrong(w, flow, "a message of another QP came");
	if (header.sent != flow->received + 1)
		wrong(w, flow, "a message came twice, or is missing");
	if (!pattern_holds(message + sizeof(header), header.length,
			   key(w, header.generation, header.number, header.sent)))
		wrong(w, flow, "the data of a message is wrong");
	flow->received++;
	w->sum.received++;
	post_receive(w, flow, number);
}

static void check_request(struct worker *w, struct flow *flow, enum work work)
{
	const uint8_t *result = at(w, flow, RESULT);
	uint64_t value = 0;

	/* Until the READ back has ended, the result is the adapter's. */
	if (work == WORK_ADD || work == WORK_SWAP)
		memcpy(&value, result, sizeof(value));
	if (work == WORK_READ_BACK &&
	    !pattern_holds(result, flow->length,
			   key(w, w->settings->generation, flow->number, flow->turn)))
		wrong(w, flow, "the data that was written and read back is wrong");
	if (work == WORK_READ &&
	    !pattern_holds(result, flow->length, key(w, flow->generation, flow->number, 0)))
		wrong(w, flow, "the data that was read is wrong");
	if (work == WORK_ADD && value != flow->added++)
		wrong(w, flow, "FETCH_ADD was executed twice, or not");
	if (work == WORK_SWAP && value != flow->swapped++)
		wrong(w, flow, "CMP_SWP was executed twice, or not");
	w->sum.requests++;
	w->sum.bytes += work == WORK_ADD || work == WORK_SWAP ? 8 : flow->length;
}

/* A flow whose other process is dead goes when all its work has ended. */
static void end_flow(struct flow *flow)
{
	if (flow->requests || flow->receives)
		return;
	link_destroy(&flow->link);
	flow->state = FLOW_FREE;
}

static void take(struct worker *w, const struct ibv_wc *wc)
{
	struct flow *flow = &w->flows[wc->wr_id >> 8];
	enum work work = wc->wr_id & 0xff;
	bool receive = work >= WORK_RECEIVE, good = wc->status == IBV_WC_SUCCESS;
	bool dying = flow->state == FLOW_DYING;

	if (flow->link.qp->qp_num != wc->qp_num)
		wrong(w, flow, "a completion of another QP came");
	if (!good &&
	    (!dying || (wc->status != IBV_WC_RETRY_EXC_ERR && wc->status != IBV_WC_WR_FLUSH_ERR)))
		wrong(w, flow, ibv_wc_status_str(wc->status));
	*(receive ? &flow->receives : &flow->requests) -= 1;
	if (good && receive && !dying)
		check_receive(w, flow, wc);
	else if (good && !receive)
		check_request(w, flow, work);
	else if (!receive)
		w->sum.dead_ended++;
	if (dying && !flow->requests && good) /* no request is left that could fail */
		check("ibv_modify_qp to ERR",
		      ibv_modify_qp(flow->link.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
				    IBV_QP_STATE));
	if (dying)
		end_flow(flow);
	else if (flow->state == FLOW_BUSY && !flow->requests && !w->stopping)
		begin(w, flow);
}

/* --- notes --- */

static void put(struct worker *w, enum storm_kind kind, uint32_t to, uint32_t to_generation,
		const struct link_name *names)
{
	struct storm_note note = {
		.kind = kind,
		.from = w->settings->self,
		.generation = w->settings->generation,
		.to = to,
		.to_generation = to_generation,
		.sum = w->sum,
	};

	if (names)
		memcpy(note.names, names, sizeof(note.names));
	peer_put(w->starter, &note, sizeof(note));
}

static void offer(struct worker *w, uint32_t other, uint32_t generation)
{
	struct link_name names[STORM_QPS];

	for (uint32_t i = 0; i < STORM_QPS; i++)
		make_flow(w, other, generation, i, &names[i]);
	put(w, STORM_OFFER, other, generation, names);
}

static void accept_offer(struct worker *w, const struct storm_note *note)
{
	struct link_name names[STORM_QPS];

	for (uint32_t i = 0; i < STORM_QPS; i++) {
		make_flow(w, note->from, note->generation, i, &names[i]);
		connect_flow(w, find_flow(w, note->from, note->generation, i), &note->names[i]);
	}
	put(w, STORM_ACCEPT, note->from, note->generation, names);
}

static void start(struct worker *w, struct flow *flow)
{
	flow->state = FLOW_BUSY;
	if (!w->stopping)
		begin(w, flow);
}

/* What the note says of one QP. */
static void take_flow_note(struct worker *w, const struct storm_note *note, uint32_t number)
{
	struct flow *flow = find_flow(w, note->from, note->generation, number);

	if (!flow)
		return;
	if (note->kind == STORM_ACCEPT)
		connect_flow(w, flow, &note->names[number]);
	if (note->kind != STORM_DEAD) {
		start(w, flow);
		return;
	}
	flow->state = FLOW_DYING;
	if (!flow->requests && flow->receives)
		check("ibv_modify_qp to ERR",
		      ibv_modify_qp(flow->link.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR},
				    IBV_QP_STATE));
	end_flow(flow);
}

/* Prints which requests have not completed. */
static void report(struct worker *w)
{
	static const char *const states[] = {"free", "offered", "quiet", "busy", "dying"};

	for (unsigned int i = 0; i < w->slots; i++) {
		const struct flow *flow = &w->flows[i];

		if (flow->state == FLOW_DYING || flow->requests)
			fprintf(stderr,
				"worker %u: QP 0x%x to QP 0x%x of worker %u (generation %u): %s, "
				"%u requests "
				"and %u receives, turn %llu\n",
				w->settings->self, flow->link.qp->qp_num, flow->link.peer.qpn,
				flow->other, flow->generation, states[flow->state], flow->requests,
				flow->receives, (unsigned long long)flow->turn);
	}
}

static void take_note(struct worker *w, const struct storm_note *note)
{
	switch (note->kind) {
	case STORM_OFFER:
		accept_offer(w, note);
		break;
	case STORM_MEASURE:
		w->sum.resident_before = resident_bytes();
		break;
	case STORM_STOP:
		w->stopping = true;
		w->sum.resident_after = resident_bytes();
		break;
	case STORM_EXIT:
		w->leaving = true;
		break;
	case STORM_REPORT:
		report(w);
		break;
	default:
		for (uint32_t i = 0; i < STORM_QPS; i++)
			take_flow_note(w, note, i);
		if (note->kind == STORM_ACCEPT)
			put(w, STORM_READY, note->from, note->generation, NULL);
	}
}

/* --- the loop --- */

static void take_completions(struct worker *w)
{
	struct ibv_wc wc[32];
	int count;

	check("ibv_req_notify_cq", ibv_req_notify_cq(w->adapter.cq, 0));
	while ((count = ibv_poll_cq(w->adapter.cq, 32, wc)) > 0)
		for (int i = 0; i < count; i++)
			take(w, &wc[i]);
	if (count < 0)
		fail("ibv_poll_cq: %s", strerror(errno));
}

static bool has_work(const struct worker *w)
{
	for (unsigned int i = 0; i < w->slots; i++)
		if (w->flows[i].state == FLOW_DYING || w->flows[i].requests)
			return true;
	return false;
}

/* Sleeps until a completion or a note comes. */
static void wait_for_more(struct worker *w)
{
	struct pollfd fds[] = {{w->adapter.channel->fd, POLLIN, 0}, {w->starter->fd, POLLIN, 0}};

	if (poll(fds, 2, -1) < 0 && errno != EINTR)
		fail("poll: %s", strerror(errno));
	if (fds[0].revents) {
		struct ibv_cq *cq;
		void *context;

		check("ibv_get_cq_event",
		      ibv_get_cq_event(w->adapter.channel, &cq, &context) ? errno : 0);
		ibv_ack_cq_events(cq, 1);
	}
	if (fds[1].revents) {
		struct storm_note note;

		peer_take(w->starter, &note, sizeof(note));
		take_note(w, &note);
	}
}

void storm_work(const struct storm_worker_settings *settings, const struct peer *starter)
{
	struct worker w = {
		.settings = settings,
		.starter = starter,
		.slots = 2 * settings->workers * STORM_QPS,
		.random = settings->seed * 2654435761 + settings->generation + 1,
	};

	w.flows = need("calloc", calloc(w.slots, sizeof(*w.flows)));
	adapter_open(&w.adapter, 0, (size_t)w.slots * SLOT, (int)w.slots * 4, true);
	w.adapter.depth = 4;
	for (uint32_t i = 0; i < settings->workers; i++)
		if (settings->others[i])
			offer(&w, i, settings->others[i]);
	while (!w.leaving) {
		take_completions(&w);
		if (!w.warm && w.sum.requests >= WARM_REQUESTS) {
			w.warm = true;
			put(&w, STORM_WARM, 0, 0, NULL);
		}
		if (w.stopping && !w.done && !has_work(&w)) {
			w.done = true;
			put(&w, STORM_DONE, 0, 0, NULL);
		}
		wait_for_more(&w);
	}
	for (unsigned int i = 0; i < w.slots; i++)
		if (w.flows[i].state != FLOW_FREE)
			link_destroy(&w.flows[i].link);
	adapter_close(&w.adapter);
	free(w.flows);
}
