/* SPDX-License-Identifier: MIT */
/*
 * Makes programs from seeds. What a program does depends on its seed alone, never on what a device
 * answered: the generator believes that what it asks for is done.
 */
#ifndef SRC_DIFFER_GENERATE_GENERATE_H
#define SRC_DIFFER_GENERATE_GENERATE_H

#include "src/differ/model/program.h"

/* Makes the program of a seed. avoid is bits of enum vd_avoid. */
void vd_generate(struct vd_program *program, uint64_t seed, unsigned int avoid);

/* --- between the generator's own files --- */

struct vd_belief_qp {
	enum ibv_qp_type type;
	enum ibv_qp_state state;
	unsigned int peer, pd, cq, recv_cq, srq;
	bool has_srq;
	unsigned int receives; /* posted and not used */
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;
};

struct vd_belief_mr {
	uint32_t first, last; /* bytes of the program's memory, from region 0 up */
	unsigned int access, pd;
};

struct vd_belief_mw {
	enum ibv_mw_type type;
	bool bound;
	struct vd_belief_mr range;
};

struct vd_generator {
	struct vd_program *program;
	unsigned int target; /* steps */
	unsigned int avoid;
	uint64_t random;
	enum ibv_qp_type type; /* that most QPs of the program have */
	uint8_t mtu;	       /* of its connections: their ends must agree on it */
	bool used[VD_KINDS][VD_SLOTS_MAX];
	struct vd_belief_qp qps[VD_SLOTS_MAX];
	struct vd_belief_mr mrs[VD_SLOTS_MAX];
	struct vd_belief_mw mws[VD_SLOTS_MAX];
	bool by_hand[VD_SLOTS_MAX]; /* of the CQs */
	unsigned int srq_sizes[VD_SLOTS_MAX];
	unsigned int srqs[VD_SLOTS_MAX]; /* receives posted and not used */
};

/* 0 <= result < limit. */
static inline uint32_t vd_below(struct vd_generator *g, uint32_t limit)
{
	uint64_t x = g->random += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((x ^ x >> 31) % limit);
}

static inline bool vd_chance(struct vd_generator *g, uint32_t percent)
{
	return vd_below(g, 100) < percent;
}

#define vd_one_of(g, array) ((array)[vd_below(g, sizeof(array) / sizeof((array)[0]))])

/* A new step; NULL when the program is full. */
struct vd_step *vd_add(struct vd_generator *g, enum vd_verb verb, unsigned int slot);

/* A slot of the kind that is in use or is not; -1 where there is none. */
int vd_pick(struct vd_generator *g, enum vd_kind kind, bool used);

/* Each adds a step, or none where the objects are missing. */
typedef void vd_action(struct vd_generator *g);

vd_action vd_make_pd, vd_end_pd, vd_make_mr, vd_change_mr, vd_end_mr, vd_make_mw, vd_bind_mw,
	vd_end_mw, vd_make_cq, vd_resize_cq, vd_arm_cq, vd_poll_cq, vd_end_cq, vd_make_srq,
	vd_change_srq, vd_ask_srq, vd_end_srq, vd_make_ah, vd_end_ah;
vd_action vd_make_qp, vd_join_qp, vd_climb_qp, vd_change_qp, vd_ask_qp, vd_end_qp, vd_attach,
	vd_detach;
vd_action vd_use_window, vd_drain, vd_send_to_group, vd_intrude, vd_part_mtus, vd_drain_slowly,
	vd_send_in_error, vd_overfill, vd_cut_write, vd_read_twice, vd_bind_behind,
	vd_touch_nothing, vd_send_unawaited;
vd_action vd_receive, vd_receive_shared, vd_send;

/* Objects of the beginning, in given slots. */
void vd_add_cq(struct vd_generator *g, unsigned int slot, bool by_hand);
void vd_add_mr(struct vd_generator *g, unsigned int slot, uint32_t first, uint32_t last,
	       unsigned int access, unsigned int pd);
void vd_add_qp(struct vd_generator *g, unsigned int slot, enum ibv_qp_type type);
void vd_connect(struct vd_generator *g, unsigned int slot, unsigned int peer);
/* Attributes with which a connection works. */
struct vd_modify vd_good_values(struct vd_generator *g);

/* Both ends from any state to RTS. */
void vd_repair(struct vd_generator *g, unsigned int slot);
void vd_send_from(struct vd_generator *g, unsigned int slot);
void vd_add_receives(struct vd_generator *g, unsigned int slot, unsigned int count);

#define VD_REMOTE_ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

#endif
