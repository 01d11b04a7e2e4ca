/* SPDX-License-Identifier: MIT */
/*
 * A device while a program runs on it. Private to the machine's files, which call each other in one
 * direction: run.c, observe.c, execute.c, post.c, machine.c, site.c. They call vb_* and the inline
 * verbs and do not know which backend is behind them.
 */
#ifndef SRC_DIFFER_MACHINE_MACHINE_H
#define SRC_DIFFER_MACHINE_MACHINE_H

#include "src/differ/machine/site.h"
#include "src/differ/model/record.h"

#include <verbena/verbs.h>

/* A slot: its object, and facts that outlive the object. */
struct vd_object {
	void *pointer; /* NULL: empty */
	uint32_t lkey, rkey;
	bool bound;   /* MW: a binding has completed and no WR has invalidated it */
	bool group;   /* AH: it leads to the multicast group */
	bool by_hand; /* CQ: only poll_cq steps empty it */
	/* QP */
	enum ibv_qp_type type;
	int set; /* attributes that modify_qp has set since RESET */
	bool attached;
};

/* A QP's number, which outlives the QP. */
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
	struct vd_number numbers[VD_STEPS_MAX];
	uint8_t *memory; /* VD_REGIONS * VD_REGION_BYTES, with as much again before and behind */
	struct vd_record *record;
	const struct vd_record *expected; /* what the other side saw; NULL for the first side */
	/* The step that runs, the object of its slot and its PD, both of which may be missing. */
	unsigned int step;
	struct vd_object *object;
	struct ibv_pd *pd;
};

/* --- machine.c --- */

/* Returns 0 or an errno. vd_machine_close() is needed in both cases. */
int vd_machine_open(struct vd_machine *machine);

/* Destroys the objects that the program left, and closes the device. */
void vd_machine_close(struct vd_machine *machine);

/* Destroys an object; returns the verb's answer. */
int vd_destroy(enum vd_kind kind, void *pointer);

/* The slot of the QP that has or had a number; VD_NOBODY for no QP or several. */
int vd_slot_of_number(const struct vd_machine *machine, uint32_t qp_num);

/* --- post.c --- */

/* Posts the WRs of the step; returns the verb's answer. */
int vd_post(struct vd_machine *machine);

/* --- execute.c --- */

/* Calls the step's verb; returns its answer: 0, an errno, or VD_SKIPPED where an object is missing. */
int vd_execute(struct vd_machine *machine);

/* --- observe.c --- */

/* Waits for the effects of the step and records completions, events, states and memory. */
void vd_observe(struct vd_machine *machine, bool settles);

static inline const struct vd_step *vd_step(const struct vd_machine *machine)
{
	return &machine->program->steps[machine->step];
}

static inline struct vd_outcome *vd_outcome(struct vd_machine *machine)
{
	return &machine->record->outcomes[machine->step];
}

static inline struct vd_object *vd_object(struct vd_machine *machine, enum vd_kind kind,
					  unsigned int slot)
{
	return &machine->objects[kind][slot % vd_kinds[kind].slots];
}

/* The address of a place, which may lie outside its region. */
static inline uint8_t *vd_address(const struct vd_machine *machine, struct vd_place at)
{
	return machine->memory + (size_t)(at.region % VD_REGIONS) * VD_REGION_BYTES + at.offset;
}

#endif
