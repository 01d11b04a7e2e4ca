/* SPDX-License-Identifier: MIT */
/*
 * Private to the generator's files, which call each other in one direction: generate.c,
 * sequences.c, change.c, work.c, connection.c, objects.c, generator.c.
 *
 * Two draws never stand in one expression whose order of evaluation C leaves open: the program of a
 * seed is the same with every compiler.
 */
#ifndef SRC_DIFFER_GENERATE_GENERATOR_H
#define SRC_DIFFER_GENERATE_GENERATOR_H

#include "src/base/count.h"
#include "src/differ/model/program.h"

#define VD_REMOTE_ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* More than any device has: `ibv_devinfo -v` prints it for an unlimited size. */
#define VD_HUGE 0x7fffffffu

/* The regions by use. The effect of a list of WRs on a byte must not depend on timing, so each
 * kind of access has regions of its own. */
enum vd_region {
	VD_SOURCE = 0,	 /* 0 and 1: sends read them and nothing writes them */
	VD_RECEIVE = 2,	 /* 2 and 3: receives fill them */
	VD_TARGET = 3,	 /* 3 and 4: RDMA writes go there */
	VD_COUNTER = 4,	 /* atomics go there */
	VD_RESPONSE = 5, /* responses arrive there */
};

struct vd_belief_qp {
	struct vd_step made; /* the create_qp */
	enum ibv_qp_state state;
	unsigned int peer;
	unsigned int receives; /* posted and not used */
};

struct vd_belief_mr {
	uint32_t first, last; /* bytes of the program's memory, counted from region 0 */
	unsigned int access;
};

struct vd_belief_mw {
	enum ibv_mw_type type;
	bool bound;
	uint32_t first; /* the first byte of the binding */
};

struct vd_generator {
	struct vd_program *program;
	unsigned int avoid; /* enum vd_avoid */
	uint64_t random;
	enum ibv_qp_type type; /* of most QPs of the program */
	uint8_t mtu;	       /* of the program's connections: both ends must agree */
	struct vd_step *last;  /* the step that was added last */
	struct vd_step spare;  /* takes the steps that a full program cannot take */
	bool used[VD_KINDS][VD_SLOTS_MAX];
	struct vd_belief_qp qps[VD_SLOTS_MAX];
	struct vd_belief_mr mrs[VD_SLOTS_MAX];
	struct vd_belief_mw mws[VD_SLOTS_MAX];
	bool by_hand[VD_SLOTS_MAX]; /* of the CQs */
	unsigned int srq_sizes[VD_SLOTS_MAX];
	unsigned int srqs[VD_SLOTS_MAX]; /* receives posted and not used */
};

/* --- generator.c: draws and steps --- */

/* 0 <= result < limit. */
uint32_t vd_below(struct vd_generator *g, uint32_t limit);

static inline bool vd_chance(struct vd_generator *g, uint32_t percent)
{
	return vd_below(g, 100) < percent;
}

#define vd_one_of(g, array) ((array)[vd_below(g, COUNT(array))])

/* Adds a step, to the spare where the program is full. Never NULL. */
struct vd_step *vd_add(struct vd_generator *g, enum vd_verb verb, unsigned int slot);

/* A random slot of the kind that is used, or unused; -1 if there is none. */
int vd_pick(struct vd_generator *g, enum vd_kind kind, bool used);

/* Adds a step on a random slot that suits the verb; NULL if there is none, or if the verb is
 * avoided. */
struct vd_step *vd_add_any(struct vd_generator *g, enum vd_verb verb);

/* Fills a step that vd_add() or vd_add_any() has just added. */
typedef void vd_fill_fn(struct vd_generator *g, struct vd_step *step);

/* Adds steps, or none where objects are missing. */
typedef void vd_action_fn(struct vd_generator *g);

/* --- objects.c: domains, memory, CQs, SRQs and address handles --- */

vd_fill_fn vd_fill_mr, vd_fill_rereg, vd_fill_mw, vd_fill_cq, vd_fill_resize, vd_fill_notify,
	vd_fill_poll, vd_fill_srq, vd_fill_ah;
vd_action_fn vd_end_pd, vd_bind_mw;

void vd_add_cq(struct vd_generator *g, unsigned int slot, bool by_hand);

/* MR 0, which covers all regions with all rights. */
void vd_add_whole_mr(struct vd_generator *g);

/* The place of a byte of the program's memory. */
struct vd_place vd_place_of(uint32_t byte);

/* --- connection.c: QPs and the way to RTS --- */

vd_fill_fn vd_fill_qp;

void vd_fill_qp_of_type(struct vd_generator *g, struct vd_step *step, enum ibv_qp_type type);

/* Sets attributes with which a connection works. */
void vd_good_values(struct vd_generator *g, struct vd_modify *values);

/* Adds the modify_qp to a state with such attributes. */
void vd_step_to(struct vd_generator *g, unsigned int slot, unsigned int peer,
		enum ibv_qp_state state);

/* Adds the modify_qp that takes a QP out of any state to RESET, unless it is there. */
void vd_reset(struct vd_generator *g, unsigned int slot);

/* Adds a modify_qp to a state with no other attributes than the state needs, which are zero. */
void vd_move(struct vd_generator *g, unsigned int slot, enum ibv_qp_state state);

void vd_connect(struct vd_generator *g, unsigned int slot, unsigned int peer);

/* Resets both ends of the QP's connection and connects them again. */
void vd_repair(struct vd_generator *g, unsigned int slot);

/* Another QP than the slot's, preferably of the same type; -1 if there is none. */
int vd_pick_peer(struct vd_generator *g, unsigned int slot);

/* A QP of the type that is believed to be connected; -1 if there is none. */
int vd_connected(struct vd_generator *g, enum ibv_qp_type type);

/* --- work.c: work requests --- */

vd_fill_fn vd_fill_shared_receives;
vd_action_fn vd_receive, vd_send;

void vd_add_receives(struct vd_generator *g, unsigned int slot, unsigned int count);
void vd_send_from(struct vd_generator *g, unsigned int slot);

/* --- change.c: QPs and SRQs that change --- */

vd_fill_fn vd_fill_modify, vd_fill_attach, vd_fill_detach;
vd_action_fn vd_join_qp, vd_climb_qp, vd_change_srq;

/* --- sequences.c: steps that belong together --- */

vd_action_fn vd_use_window, vd_drain, vd_send_to_group, vd_intrude, vd_part_mtus, vd_drain_slowly,
	vd_send_in_error, vd_overfill, vd_cut_write, vd_read_twice, vd_bind_behind,
	vd_touch_nothing, vd_send_unawaited;

#endif
