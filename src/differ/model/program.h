/* SPDX-License-Identifier: MIT */
/*
 * A verbs program as data: a list of steps whose operands name objects by slots, so that it runs the
 * same on every device and can be generated, cut and printed. Nothing in it is a handle, a key or an
 * address of a device.
 */
#ifndef SRC_DIFFER_MODEL_PROGRAM_H
#define SRC_DIFFER_MODEL_PROGRAM_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define VD_STEPS_MAX	64
#define VD_WRS_MAX	12
#define VD_SGES_MAX	4
#define VD_REGIONS	6
#define VD_REGION_BYTES 8192
#define VD_SOURCES	2 /* the first regions: no work request writes there */

enum vd_kind { VD_PD, VD_CQ, VD_MR, VD_MW, VD_SRQ, VD_QP, VD_AH, VD_KINDS };

/* Slots of each kind. */
#define VD_SLOTS_MAX 8
extern const unsigned int vd_slots[VD_KINDS];
extern const char *const vd_kind_names[VD_KINDS];

enum vd_verb {
	VD_ALLOC_PD,
	VD_DEALLOC_PD,
	VD_REG_MR,
	VD_REREG_MR,
	VD_DEREG_MR,
	VD_ALLOC_MW,
	VD_BIND_MW,
	VD_DEALLOC_MW,
	VD_CREATE_CQ,
	VD_RESIZE_CQ,
	VD_REQ_NOTIFY_CQ,
	VD_POLL_CQ,
	VD_DESTROY_CQ,
	VD_CREATE_SRQ,
	VD_MODIFY_SRQ,
	VD_QUERY_SRQ,
	VD_POST_SRQ_RECV,
	VD_DESTROY_SRQ,
	VD_CREATE_QP,
	VD_CONNECT_QP,
	VD_MODIFY_QP,
	VD_QUERY_QP,
	VD_POST_RECV,
	VD_POST_SEND,
	VD_ATTACH_MCAST,
	VD_DETACH_MCAST,
	VD_DESTROY_QP,
	VD_CREATE_AH,
	VD_DESTROY_AH,
	VD_VERBS
};

struct vd_verb_info {
	const char *name;  /* as in ibv_<name>(3) */
	enum vd_kind kind; /* of vd_step.slot */
	bool makes;	   /* the slot must be empty, not taken */
	bool settles;	   /* work may follow from it */
};

extern const struct vd_verb_info vd_verbs[VD_VERBS];

/* Whose key; the last one that the slot had, also when the object is gone. */
enum vd_key_of { VD_KEY_NONE, VD_KEY_MR, VD_KEY_MW };

struct vd_key {
	enum vd_key_of of;
	unsigned int slot;
	uint32_t flip; /* bits to turn round in it: a wrong key */
};

/* A place in the program's memory. */
struct vd_place {
	unsigned int region;
	uint32_t offset;
};

struct vd_sge {
	struct vd_place at;
	uint32_t length;
	struct vd_key key;
};

struct vd_wr {
	unsigned int opcode; /* enum ibv_wr_opcode; none on a receive */
	unsigned int flags;  /* enum ibv_send_flags */
	unsigned int sge_count;
	struct vd_sge sges[VD_SGES_MAX];
	struct vd_place remote;
	struct vd_key key;    /* of the remote memory, or what is invalidated */
	uint32_t imm;	      /* also compare_add; swap is its complement */
	unsigned int ah;      /* UD */
	unsigned int peer_qp; /* UD */
	uint32_t qkey;
	unsigned int mw; /* BIND_MW: mw to the region of mr, from remote, bind_bytes long */
	unsigned int mr;
	uint32_t bind_bytes;
	unsigned int access;
};

/* What a modify that is not the plain way to a state does differently. */
struct vd_modify {
	unsigned int peer;
	enum ibv_qp_state state;
	bool stateless;	   /* without IBV_QP_STATE */
	unsigned int flip; /* bits of the mask turned round */
	uint32_t psn_add;  /* to the PSNs that the ends agree on */
	uint8_t mtu;	   /* enum ibv_mtu */
	uint8_t port;
	uint8_t timeout, retry, rnr_retry, rnr_timer, reads, dest_reads;
	uint16_t pkey_index;
	bool wide;	  /* PSNs and QPNs of more than 24 bits */
	uint8_t sgid_add; /* to the index of the GID */
	bool no_grh;
	unsigned int access;
	uint32_t qkey;
};

struct vd_step {
	enum vd_verb verb;
	unsigned int slot;
	unsigned int pd, mr, mw, qp, cq, recv_cq, srq; /* other objects' slots */
	bool has_srq;
	enum ibv_qp_type type; /* of a QP */
	unsigned int mw_type;  /* enum ibv_mw_type */
	struct vd_place at;
	uint64_t length;
	unsigned int access;
	unsigned int flags; /* of rereg_mr; mask of modify_srq; solicited only; by hand; bad GRH */
	uint32_t count;	    /* CQEs; WRs of a receive queue; SRQ limit */
	uint32_t send_wr, send_sge, recv_sge, inline_bytes;
	bool signal_all;
	struct vd_modify modify;
	unsigned int wr_count;
	struct vd_wr wrs[VD_WRS_MAX];
};

/* vd_step.flags of create_cq. */
enum vd_cq_flag {
	VD_CQ_BY_HAND =
		1 << 0, /* only poll_cq steps empty it; others are emptied after each step */
	VD_CQ_CHANNEL = 1 << 1, /* it tells of completions */
};

/* vd_step.flags of create_ah. */
enum vd_ah_flag { VD_AH_NO_GRH = 1, VD_AH_BAD_PORT, VD_AH_BAD_GID, VD_AH_GROUP };

/* What is not done, for devices that it ends. */
enum vd_avoid { VD_AVOID_INVALIDATE = 1 << 0, VD_AVOID_DEREG = 1 << 1, VD_AVOID_REREG = 1 << 2 };

struct vd_avoid_info {
	const char *name;
	const char *about; /* what is left out */
	enum vd_avoid bit;
};

/* One row for each; a NULL name ends it. */
extern const struct vd_avoid_info vd_avoid_info[];

struct vd_program {
	uint64_t seed;	    /* it was generated from */
	unsigned int avoid; /* enum vd_avoid: steps that would do it are not run */
	unsigned int count;
	struct vd_step steps[VD_STEPS_MAX];
};

/* The name of a WR in completions: its step, its place in the list, and its queue. */
static inline uint64_t vd_wr_id(unsigned int step, unsigned int wr, bool is_receive)
{
	return 1u << 16 | step << 8 | wr << 1 | is_receive;
}

static inline unsigned int vd_wr_id_step(uint64_t wr_id)
{
	return wr_id >> 8 & 0xff;
}

static inline unsigned int vd_wr_id_wr(uint64_t wr_id)
{
	return wr_id >> 1 & 0x7f;
}

static inline bool vd_wr_id_receives(uint64_t wr_id)
{
	return wr_id & 1;
}

/* The attributes that a QP of a type needs to go to a state: man ibv_modify_qp(3). */
int vd_required_mask(enum ibv_qp_type type, enum ibv_qp_state state);

/* The PSN from which a QP's requests count, before psn_add. */
static inline uint32_t vd_first_psn(unsigned int qp)
{
	/* The second one's go round soon. */
	return qp == 1 ? 0xfffffe : 0x1000 * (qp + 1);
}

#define VD_QKEY 0x11111111u
#define VD_WIDE 0xab000000u /* beyond the 24 bits of PSNs and QPNs */

#endif
