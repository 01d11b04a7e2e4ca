/* SPDX-License-Identifier: MIT */
/*
 * Runs a program on one device and writes down what it answers. It calls vb_* and the inline verbs
 * and does not know which backend is behind them.
 */
#ifndef SRC_DIFFER_MACHINE_MACHINE_H
#define SRC_DIFFER_MACHINE_MACHINE_H

#include "src/differ/model/record.h"
#include "src/differ/machine/site.h"

#include <verbena/verbs.h>

#define VD_NUMBERS_MAX VD_STEPS_MAX

/* A slot: the object, and what is remembered of it when it is gone. */
struct vd_object {
	void *pointer; /* NULL: empty */
	uint32_t lkey, rkey;
	bool bound; /* of an MW: a binding has completed and no WR has invalidated it */
	bool group; /* of an AH: it leads to one */
	/* of a CQ */
	bool by_hand;
	/* of a QP */
	enum ibv_qp_type type;
	unsigned int peer;
	int set; /* attributes that modify_qp has taken since RESET */
	bool attached;
};

/* A QP's number: it outlives the QP. */
struct vd_number {
	uint32_t qp_num;
	int slot;
};

struct vd_machine {
	const struct vd_program *program;
	struct vd_site *site;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_port_attr port_attr;
	struct ibv_gid_entry gid;
	struct vd_object objects[VD_KINDS][VD_SLOTS_MAX];
	unsigned int number_count;
	struct vd_number numbers[VD_NUMBERS_MAX];
	uint8_t *memory; /* VD_REGIONS * VD_REGION_BYTES, and as much room before and behind */
	struct vd_record *record;
	const struct vd_record *expected; /* what the other side saw; NULL for the first */
	unsigned int step;		  /* that runs */
};

/*
 * Runs the program on fresh objects of the site's device and fills the record. With expected, it
 * waits for what is in there, within the site's limit, and stops after the first step that is not
 * the same. Returns 0 or the errno of opening the device; vb_last_error() has the sentence.
 */
int vd_run(struct vd_site *site, const struct vd_program *program, const struct vd_record *expected,
	   struct vd_record *record);

/* --- between the machine's own files --- */

/* Calls one step's verb. */
void vd_execute(struct vd_machine *machine, const struct vd_step *step, struct vd_outcome *outcome);

/* Posts the list of WRs of a step. */
void vd_post(struct vd_machine *machine, const struct vd_step *step, struct vd_outcome *outcome);

/* Waits for what the step has started and collects completions, events, states and memory. */
void vd_observe(struct vd_machine *machine, bool settles);

static inline struct vd_object *vd_object(struct vd_machine *machine, enum vd_kind kind,
					  unsigned int slot)
{
	return &machine->objects[kind][slot % vd_slots[kind]];
}

/* The start of a place, or where it would be: offsets may lead out of the region. */
static inline uint8_t *vd_address(const struct vd_machine *machine, struct vd_place at)
{
	return machine->memory + (size_t)(at.region % VD_REGIONS) * VD_REGION_BYTES + at.offset;
}

/* The slot of the QP that has or had a number; VD_NOBODY where there is none or several. */
int vd_slot_of_number(const struct vd_machine *machine, uint32_t qp_num);

#endif
