/* SPDX-License-Identifier: MIT */
/*
 * A verbs program as data: a list of steps whose operands name objects by slots. It contains no
 * handle, key or address of a device, so it runs the same on every device and can be generated, cut
 * and printed.
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
#define VD_SOURCES	2 /* no work request writes to the first two regions */

enum vd_kind { VD_PD, VD_CQ, VD_MR, VD_MW, VD_SRQ, VD_QP, VD_AH, VD_KINDS };

#define VD_SLOTS_MAX 8 /* of one kind */

enum vd_verb {
#define VERB(constant, name, kind, does, flags) VD_##constant,
#include "src/differ/model/verbs.def"
	VD_VERBS
};

enum vd_does { VD_MAKES, VD_USES, VD_ENDS };

enum vd_verb_flag {
	VD_SETTLES = 1 << 0, /* the verb may start work: completions and events are awaited */
	VD_IN_PD = 1 << 1,   /* the verb needs the PD of vd_step.pd */
};

struct vd_verb_info {
	const char *name;  /* as in ibv_<name>(3) */
	enum vd_kind kind; /* of vd_step.slot */
	enum vd_does does;
	unsigned int flags; /* enum vd_verb_flag */
};

struct vd_kind_info {
	const char *name; /* as in struct ibv_<name> */
	unsigned int slots;
	enum vd_verb ends;
};

extern const struct vd_verb_info vd_verbs[VD_VERBS];
extern const struct vd_kind_info vd_kinds[VD_KINDS];

/* An order of the kinds in which objects can be destroyed: users before what they use. */
extern const enum vd_kind vd_ending_order[VD_KINDS];

static inline bool vd_makes(enum vd_verb verb)
{
	return vd_verbs[verb].does == VD_MAKES;
}

/* The key's owner. A slot keeps its last key when the object is destroyed. */
enum vd_key_of { VD_KEY_NONE, VD_KEY_MR, VD_KEY_MW };

struct vd_key {
	enum vd_key_of of;
	unsigned int slot;
	uint32_t flip; /* bits to invert, which makes a wrong key */
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
	unsigned int opcode; /* enum ibv_wr_opcode; unused in a receive */
	unsigned int flags;  /* enum ibv_send_flags */
	unsigned int sge_count;
	struct vd_sge sges[VD_SGES_MAX];
	struct vd_place remote;
	struct vd_key key; /* of the remote memory, or the key to invalidate */
	uint32_t imm;	   /* immediate data; of an atomic compare_add, whose complement is swap */
	unsigned int ah;   /* of a UD QP */
	unsigned int peer_qp; /* of a UD QP */
	uint32_t qkey;
	/* BIND_MW binds window mw to region mr: bind_bytes from remote on. */
	unsigned int mw, mr;
	uint32_t bind_bytes;
	unsigned int access;
};

/* The attributes of modify_qp and connect_qp, and deliberate mistakes in them. */
struct vd_modify {
	unsigned int peer;
	enum ibv_qp_state state;
	bool stateless;	   /* leave IBV_QP_STATE out of the mask */
	unsigned int flip; /* bits to invert in the mask */
	uint32_t psn_add;  /* added to the PSN that both ends know: the ends then disagree */
	uint16_t mtu;	   /* enum ibv_mtu */
	uint16_t port, pkey_index;
	uint16_t timeout, retry, rnr_retry, rnr_timer, reads, dest_reads;
	uint16_t wide;	   /* true: PSNs and QPNs have more than 24 bits */
	uint16_t sgid_add; /* added to the GID's index */
	uint16_t no_grh;   /* true or false */
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
	/*
	 * rereg_mr: its flags. modify_srq: the mask. req_notify_cq: solicited only. create_cq: enum
	 * vd_cq_flag. create_ah: enum vd_ah_flag. attach_mcast: the GID is no group.
	 */
	unsigned int flags;
	uint32_t count; /* CQEs, WRs of a receive queue, or an SRQ's limit */
	uint32_t send_wr, send_sge, recv_sge, inline_bytes;
	bool signal_all;
	struct vd_modify modify;
	unsigned int wr_count;
	struct vd_wr wrs[VD_WRS_MAX];
};

/* vd_step.flags of create_cq. */
enum vd_cq_flag {
	VD_CQ_BY_HAND =
		1 << 0, /* only poll_cq empties the CQ; other CQs are emptied after each step */
	VD_CQ_CHANNEL = 1 << 1, /* the CQ has a completion channel */
};

/* vd_step.flags of create_ah. */
enum vd_ah_flag { VD_AH_NO_GRH = 1, VD_AH_BAD_PORT, VD_AH_BAD_GID, VD_AH_GROUP };

/* What a program leaves out, for devices that do not survive it: a bit for each row of
 * vd_avoids. */
enum vd_avoid { VD_AVOID_INVALIDATE = 1 << 0, VD_AVOID_DEREG = 1 << 1, VD_AVOID_REREG = 1 << 2 };
#define VD_AVOIDS 3

/* The words of --avoid; bit i is row i. */
extern const char *const vd_avoids[VD_AVOIDS];

struct vd_program {
	uint64_t seed;	    /* the program was generated from this seed */
	unsigned int avoid; /* enum vd_avoid: steps that would do this are not run */
	unsigned int count;
	struct vd_step steps[VD_STEPS_MAX];
};

/* The wr_id of a WR: its step, its place in the list, and its queue. */
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

static inline bool vd_is_atomic(unsigned int opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static inline bool vd_is_write(unsigned int opcode)
{
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static inline bool vd_invalidates(unsigned int opcode)
{
	return opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_SEND_WITH_INV;
}

static inline bool vd_has_imm(unsigned int opcode)
{
	return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The states of a connection's way from RESET to RTS. */
#define VD_CLIMB 3
extern const enum ibv_qp_state vd_climb[VD_CLIMB];

/* The mask that a QP of a type needs to go to a state: man ibv_modify_qp(3). */
int vd_required_mask(enum ibv_qp_type type, enum ibv_qp_state state);

/* The mask of a modify_qp step: the required one with the step's mistakes. */
static inline int vd_modify_mask(enum ibv_qp_type type, const struct vd_modify *modify)
{
	int mask = vd_required_mask(type, modify->state) ^ (int)modify->flip;

	return modify->stateless ? mask & ~IBV_QP_STATE : mask;
}

/* The attributes of a modify_qp step, but for the address and the number of the peer. */
struct ibv_qp_attr vd_attributes(unsigned int slot, unsigned int peer,
				 const struct vd_modify *modify);

#define VD_QKEY		 0x11111111u
#define VD_WIDE		 0xab000000u /* beyond the 24 bits of PSNs and QPNs */
#define VD_NO_QPN	 0xfffff0u   /* the number of no QP */
#define VD_MULTICAST_QPN 0xffffffu

extern const union ibv_gid vd_group; /* the multicast group that programs join */

#endif
