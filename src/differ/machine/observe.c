/* SPDX-License-Identifier: MIT */
#include "src/base/count.h"
#include "src/differ/compare/compare.h"
#include "src/differ/machine/machine.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#define GRH_BYTES 40
#define NAP_NS	  20000

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- memory with undefined content --- */

/* Clears the part of a buffer that lies within the program's regions. */
static void clear(struct vd_machine *machine, struct vd_place at, uint64_t length_bytes)
{
	uint8_t *first = vd_address(machine, at), *last = first + length_bytes;
	uint8_t *end = machine->memory + (size_t)VD_REGIONS * VD_REGION_BYTES;

	if (last > end || last < first)
		last = end;
	if (first < last)
		memset(first, 0, (size_t)(last - first));
}

/* Clears the first bytes of the memory that a list of SGEs names. */
static void clear_first(struct vd_machine *machine, const struct vd_wr *wr, uint64_t length_bytes)
{
	for (unsigned int i = 0; i < wr->sge_count && i < VD_SGES_MAX && length_bytes; i++) {
		uint64_t here =
			wr->sges[i].length < length_bytes ? wr->sges[i].length : length_bytes;

		clear(machine, wr->sges[i].at, here);
		length_bytes -= here;
	}
}

static bool is_ud(const struct vd_machine *machine, const struct vd_completion *completion)
{
	return completion->qp != VD_NOBODY &&
	       machine->objects[VD_QP][completion->qp].type == IBV_QPT_UD;
}

/* A completion in error leaves the memory undefined that its WR receives into, reads into, or
 * writes at the other end. */
static void clear_failed(struct vd_machine *machine, const struct vd_wr *wr, bool receives)
{
	uint64_t length_bytes = 0;

	if (receives || wr->opcode == IBV_WR_RDMA_READ || vd_is_atomic(wr->opcode))
		clear_first(machine, wr, UINT64_MAX);
	if (!vd_is_write(wr->opcode) || wr->remote.region < VD_SOURCES)
		return;
	for (unsigned int i = 0; i < wr->sge_count && i < VD_SGES_MAX; i++)
		length_bytes += wr->sges[i].length;
	clear(machine, wr->remote, length_bytes);
}

/*
 * Clears the memory that a completion leaves undefined, and notes a window's binding. Of the GRH
 * before a datagram the first 20 bytes are undefined on IPv4, and the rest contains the devices'
 * addresses.
 */
static void take_effects(struct vd_machine *machine, const struct vd_completion *completion)
{
	unsigned int step = vd_wr_id_step(completion->wr_id);
	bool receives = vd_wr_id_receives(completion->wr_id);
	const struct vd_wr *wr;

	if (step >= machine->program->count)
		return;
	wr = &machine->program->steps[step].wrs[vd_wr_id_wr(completion->wr_id) % VD_WRS_MAX];
	if (completion->status != IBV_WC_SUCCESS)
		clear_failed(machine, wr, receives);
	else if (!receives && wr->opcode == IBV_WR_BIND_MW)
		vd_object(machine, VD_MW, wr->mw)->bound = true;
	else if (receives && is_ud(machine, completion))
		clear_first(machine, wr, GRH_BYTES);
}

/* --- completions --- */

/* The object that had the key: MW slots first, then MR slots. Keys themselves are not compared. */
static int owner_of_rkey(const struct vd_machine *machine, uint32_t rkey)
{
	for (int i = 0; i < VD_SLOTS_MAX; i++) {
		if (machine->objects[VD_MW][i].rkey == rkey)
			return i;
		if (machine->objects[VD_MR][i].rkey == rkey)
			return VD_SLOTS_MAX + i;
	}
	return VD_NOBODY;
}

/* Records the fields that are defined. Of an error these are wr_id, status and qp_num: man
 * ibv_poll_cq(3). */
static void describe(struct vd_machine *machine, const struct ibv_wc *wc,
		     struct vd_completion *completion)
{
	bool receives = vd_wr_id_receives(wc->wr_id);

	*completion = (struct vd_completion){
		.step = machine->step,
		.wr_id = wc->wr_id,
		.qp = vd_slot_of_number(machine, wc->qp_num),
		.status = wc->status,
		.src_qp = VD_NOBODY,
		.invalidated = VD_NOBODY,
	};
	if (wc->status != IBV_WC_SUCCESS)
		return;
	completion->opcode = wc->opcode;
	/* A send's completion has no defined flags, and a length only where data was read. */
	if (receives || wc->opcode == IBV_WC_RDMA_READ || wc->opcode == IBV_WC_COMP_SWAP ||
	    wc->opcode == IBV_WC_FETCH_ADD)
		completion->byte_len = wc->byte_len;
	if (!receives)
		return;
	completion->flags = wc->wc_flags;
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		completion->imm = ntohl(wc->imm_data);
	if (wc->wc_flags & IBV_WC_WITH_INV)
		completion->invalidated = owner_of_rkey(machine, wc->invalidated_rkey);
	if (is_ud(machine, completion))
		completion->src_qp = vd_slot_of_number(machine, wc->src_qp);
}

static unsigned int take_completions(struct vd_machine *machine, unsigned int cq)
{
	struct vd_object *object = vd_object(machine, VD_CQ, cq);
	struct vd_record *record = machine->record;
	struct ibv_wc wc[16];
	unsigned int taken = 0;
	int got;

	while ((got = ibv_poll_cq(object->pointer, 16, wc)) > 0)
		for (int i = 0; i < got; i++, taken++) {
			struct vd_completion *completion;

			if (record->completion_count == VD_COMPLETIONS_MAX)
				return taken;
			completion = &record->completions[record->completion_count++];
			describe(machine, &wc[i], completion);
			take_effects(machine, completion);
		}
	return taken;
}

/* --- events --- */

static int slot_of(const struct vd_machine *machine, enum vd_kind kind, const void *pointer)
{
	for (int i = 0; i < VD_SLOTS_MAX; i++)
		if (machine->objects[kind][i].pointer == pointer)
			return i;
	return VD_NOBODY;
}

static void add_event(struct vd_machine *machine, int type, enum vd_kind kind, const void *pointer)
{
	struct vd_record *record = machine->record;

	if (record->event_count < VD_EVENTS_MAX)
		record->events[record->event_count++] =
			(struct vd_event){.step = machine->step,
					  .type = type,
					  .kind = kind,
					  .slot = slot_of(machine, kind, pointer)};
}

static void take_async_event(struct vd_machine *machine, struct ibv_async_event *event)
{
	/* Programs cause no events of other types. */
	static const enum vd_kind kinds[] = {
		[IBV_EVENT_CQ_ERR] = VD_CQ,	   [IBV_EVENT_SRQ_ERR] = VD_SRQ,
		[IBV_EVENT_QP_FATAL] = VD_QP,	   [IBV_EVENT_SRQ_LIMIT_REACHED] = VD_SRQ,
		[IBV_EVENT_QP_REQ_ERR] = VD_QP,	   [IBV_EVENT_QP_LAST_WQE_REACHED] = VD_QP,
		[IBV_EVENT_QP_ACCESS_ERR] = VD_QP, [IBV_EVENT_SQ_DRAINED] = VD_QP,
		[IBV_EVENT_COMM_EST] = VD_QP,
	};
	unsigned int type = event->event_type;

	/* The element is a pointer to the object, whatever its kind. */
	if (type < COUNT(kinds) && kinds[type])
		add_event(machine, (int)type, kinds[type], event->element.qp);
	vb_ack_async_event(event);
}

static unsigned int take_events(struct vd_machine *machine)
{
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *cq_context;
	unsigned int taken = 0;

	for (; !vb_get_cq_event(machine->channel, &cq, &cq_context); taken++) {
		add_event(machine, VD_EVENT_COMPLETION, VD_CQ, cq);
		vb_ack_cq_events(cq, 1);
	}
	for (; !vb_get_async_event(machine->context, &event); taken++)
		take_async_event(machine, &event);
	return taken;
}

/* --- memory and states --- */

static uint64_t sum_region(const struct vd_machine *machine, unsigned int region)
{
	const uint8_t *at = vd_address(machine, (struct vd_place){.region = region});
	uint64_t sum = 0xcbf29ce484222325;

	for (unsigned int i = 0; i < VD_REGION_BYTES; i += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, at + i, sizeof(word));
		sum = (sum ^ word) * 0x100000001b3;
		sum ^= sum >> 29;
	}
	return sum;
}

static void record_state(struct vd_machine *machine, bool states)
{
	struct vd_outcome *outcome = vd_outcome(machine);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (unsigned int i = 0; i < VD_REGIONS; i++)
		outcome->memory[i] = sum_region(machine, i);
	for (unsigned int i = 0; i < VD_SLOTS_MAX; i++) {
		struct ibv_qp *qp = machine->objects[VD_QP][i].pointer;

		outcome->states[i] = 0xff;
		if (states && qp && !vb_query_qp(qp, &attr, IBV_QP_STATE, &init))
			outcome->states[i] = (uint8_t)attr.qp_state;
	}
}

static bool polled_now(const struct vd_machine *machine, unsigned int cq)
{
	const struct vd_step *step = vd_step(machine);

	return step->verb == VD_POLL_CQ && step->slot == cq;
}

static unsigned int collect(struct vd_machine *machine, bool states)
{
	unsigned int taken = take_events(machine);

	for (unsigned int i = 0; i < vd_kinds[VD_CQ].slots; i++) {
		struct vd_object *cq = &machine->objects[VD_CQ][i];

		if (cq->pointer && (!cq->by_hand || polled_now(machine, i)))
			taken += take_completions(machine, i);
	}
	record_state(machine, states);
	return taken;
}

/* --- waiting --- */

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* Waits until nothing has arrived for a while. */
static void wait_for_quiet(struct vd_machine *machine, bool states)
{
	uint64_t since_ns = now_ns();

	while (now_ns() - since_ns < machine->site->quiet_ns) {
		nap();
		if (collect(machine, states))
			since_ns = now_ns();
	}
}

static bool as_expected(const struct vd_machine *machine)
{
	return machine->step < machine->expected->step_count &&
	       vd_compare_step(machine->program, machine->step, machine->expected, machine->record,
			       NULL) == VD_SAME;
}

static void wait_for_expected(struct vd_machine *machine, bool states)
{
	uint64_t since_ns = now_ns();

	while (!as_expected(machine) && now_ns() - since_ns < machine->site->limit_ns) {
		nap();
		collect(machine, states);
	}
}

void vd_observe(struct vd_machine *machine, bool settles)
{
	const struct vd_outcome *outcome = vd_outcome(machine);

	if (vd_site_virtual(machine->site)) {
		vd_site_settle(machine->site);
		while (collect(machine, settles))
			vd_site_settle(machine->site);
		return;
	}
	collect(machine, settles);
	/* A verb's answer does not change by waiting. */
	if (machine->expected && machine->step < machine->expected->step_count &&
	    machine->expected->outcomes[machine->step].answer == outcome->answer)
		wait_for_expected(machine, settles);
	if (settles)
		wait_for_quiet(machine, settles);
}
