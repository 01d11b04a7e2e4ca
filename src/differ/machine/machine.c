/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Room around the regions: a place outside its region is still memory of the program. */
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

/* Prefers an IPv4 address of RoCE v2, then any address of RoCE v2, then the first. */
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

int vd_machine_open(struct vd_machine *machine)
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
	/* No verb waits for events: they are collected after each step. */
	fcntl(machine->channel->fd, F_SETFL, O_NONBLOCK);
	fcntl(machine->context->async_fd, F_SETFL, O_NONBLOCK);
	return 0;
}

int vd_destroy(enum vd_kind kind, void *pointer)
{
	switch (kind) {
	case VD_QP:
		return vb_destroy_qp(pointer);
	case VD_SRQ:
		return vb_destroy_srq(pointer);
	case VD_MW:
		return vb_dealloc_mw(pointer);
	case VD_MR:
		return vb_dereg_mr(pointer);
	case VD_AH:
		return vb_destroy_ah(pointer);
	case VD_CQ:
		return vb_destroy_cq(pointer);
	default:
		return vb_dealloc_pd(pointer);
	}
}

static void close_slot(enum vd_kind kind, struct vd_object *object)
{
	if (!object->pointer)
		return;
	if (kind == VD_QP && object->attached)
		vb_detach_mcast(object->pointer, &vd_group, 0);
	vd_destroy(kind, object->pointer);
}

void vd_machine_close(struct vd_machine *machine)
{
	for (unsigned int i = 0; i < VD_KINDS; i++)
		for (unsigned int slot = 0; slot < VD_SLOTS_MAX; slot++)
			close_slot(vd_ending_order[i], &machine->objects[vd_ending_order[i]][slot]);
	if (machine->channel)
		vb_destroy_comp_channel(machine->channel);
	if (machine->context)
		vd_site_close(machine->site, machine->context);
	if (machine->memory)
		free(machine->memory - MARGIN_BYTES);
}
