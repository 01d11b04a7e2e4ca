/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Room around the regions, so that a place beyond one's end is memory of the program still. */
#define MARGIN_BYTES ((size_t)VD_REGION_BYTES * 4)
#define MEMORY_BYTES (2 * MARGIN_BYTES + (size_t)VD_REGIONS * VD_REGION_BYTES)

int vd_slot_of_number(const struct vd_machine *machine, uint32_t qp_num)
{
	int slot = VD_NOBODY;

	for (unsigned int i = 0; i < machine->number_count; i++) {
		if (machine->numbers[i].qp_num != qp_num)
			continue;
		if (slot != VD_NOBODY && slot != machine->numbers[i].slot)
			return VD_NOBODY;
		slot = machine->numbers[i].slot;
	}
	return slot;
}

/* An IPv4 address of RoCE v2 if there is one; else any of RoCE v2; else the first. */
static int rank(const struct ibv_gid_entry *entry)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
		return 1;
	return memcmp(entry->gid.raw, mapped, sizeof(mapped)) ? 2 : 3;
}

static int find_gid(struct vd_machine *machine)
{
	struct ibv_gid_entry entries[64];
	ssize_t count = vb_query_gid_table(machine->context, entries, 64, 0, sizeof(entries[0]));
	int best = 0;

	for (ssize_t i = 0; i < count; i++)
		if (entries[i].port_num == 1 && rank(&entries[i]) > best) {
			best = rank(&entries[i]);
			machine->gid = entries[i];
		}
	return best ? 0 : ENODEV;
}

static int open_machine(struct vd_machine *machine)
{
	int error;

	machine->memory = aligned_alloc(4096, MEMORY_BYTES);
	if (!machine->memory)
		return ENOMEM;
	for (size_t i = 0; i < MEMORY_BYTES; i++)
		machine->memory[i] = (uint8_t)(i * 7 + i / 256 * 13);
	machine->memory += MARGIN_BYTES;
	machine->context = vd_site_open(machine->site);
	if (!machine->context)
		return errno;
	error = vb_query_port(machine->context, 1, &machine->port_attr, sizeof(machine->port_attr));
	if (!error)
		error = find_gid(machine);
	if (error)
		return error;
	machine->channel = vb_create_comp_channel(machine->context);
	if (!machine->channel)
		return errno;
	/* Neither is waited on: events are looked for after each step. */
	fcntl(machine->channel->fd, F_SETFL, O_NONBLOCK);
	fcntl(machine->context->async_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

static void destroy(struct vd_machine *machine, enum vd_kind kind, struct vd_object *object)
{
	union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};

	switch (kind) {
	case VD_QP:
		if (object->attached)
			vb_detach_mcast(object->pointer, &group, 0);
		vb_destroy_qp(object->pointer);
		break;
	case VD_SRQ:
		vb_destroy_srq(object->pointer);
		break;
	case VD_MW:
		vb_dealloc_mw(object->pointer);
		break;
	case VD_MR:
		vb_dereg_mr(object->pointer);
		break;
	case VD_AH:
		vb_destroy_ah(object->pointer);
		break;
	case VD_CQ:
		vb_destroy_cq(object->pointer);
		break;
	default:
		vb_dealloc_pd(object->pointer);
		break;
	}
}

/* What the program left, in an order in which nothing is in use; then the device. */
static void close_machine(struct vd_machine *machine)
{
	static const enum vd_kind order[VD_KINDS] = {VD_QP, VD_SRQ, VD_MW, VD_MR,
						     VD_AH, VD_CQ,  VD_PD};

	for (unsigned int i = 0; i < VD_KINDS; i++)
		for (unsigned int slot = 0; slot < vd_slots[order[i]]; slot++) {
			struct vd_object *object = &machine->objects[order[i]][slot];

			if (object->pointer)
				destroy(machine, order[i], object);
		}
	if (machine->channel)
		vb_destroy_comp_channel(machine->channel);
	if (machine->context)
		vd_site_close(machine->site, machine->context);
	if (machine->memory)
		free(machine->memory - MARGIN_BYTES);
}

static void run_step(struct vd_machine *machine)
{
	const struct vd_step *step = &machine->program->steps[machine->step];
	struct vd_outcome *outcome = &machine->record->outcomes[machine->step];
	const struct vd_verb_info *verb = &vd_verbs[step->verb];
	struct vd_object *object = vd_object(machine, verb->kind, step->slot);

	*outcome = (struct vd_outcome){.bad = -2};
	if (verb->makes == (object->pointer != NULL))
		outcome->answer = VD_SKIPPED;
	else
		vd_execute(machine, step, outcome);
	vd_observe(machine, verb->settles && outcome->answer != VD_SKIPPED);
}

int vd_run(struct vd_site *site, const struct vd_program *program, const struct vd_record *expected,
	   struct vd_record *record)
{
	struct vd_machine machine = {
		.program = program, .site = site, .record = record, .expected = expected};
	int error;

	record->step_count = record->completion_count = record->event_count = 0;
	error = open_machine(&machine);
	for (machine.step = 0; !error && machine.step < program->count; machine.step++) {
		run_step(&machine);
		record->step_count++;
		if (expected && (record->step_count > expected->step_count ||
				 vd_compare_step(program, machine.step, expected, record, NULL)))
			break;
	}
	close_machine(&machine);
	return error;
}
