/* SPDX-License-Identifier: MIT */
/*
 * Faults on the simulated wire, and failing calls.
 *
 * Faults are rules that drop, corrupt, duplicate or delay chosen packets (vb_fault_*). Failing calls are
 * rules that make a call of a verb or of the connection manager, or an allocation inside Verbena, fail
 * (vb_fail_*, below); they work on any backend.
 *
 * Each packet is compared with a world's rules as its port sends it, retransmissions included, in
 * the order in which the rules were added. The first rule that matches and fires decides the
 * packet's fate; later rules do not see the packet.
 *
 * Every vb_fault_* function takes NULL for the default world, may be called from any thread, and acts at
 * once. A function that returns int returns 0 or an errno value; vb_last_error() explains the error.
 */
#ifndef VERBENA_FAULT_H
#define VERBENA_FAULT_H

#include <verbena/sim.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_fault_action {
	VB_FAULT_DROP,	    /* the packet is lost on the way */
	VB_FAULT_CORRUPT,   /* bytes of the packet change: see enum vb_fault_change */
	VB_FAULT_DUPLICATE, /* the packet is delivered twice */
	VB_FAULT_DELAY, /* the packet arrives delay_ns late; packets behind it may overtake it */
	/*
	 * A REQ or a REP of the connection manager is lost, and its sender gets a REJ with `reason` at
	 * once, as if the receiver had sent it. The receiver does not see the message.
	 */
	VB_FAULT_REJECT,
};

/*
 * What VB_FAULT_CORRUPT changes. The receiver gets the changed bytes, and does with them what it
 * does with any frame; vb_sim_drops() counts the packets that it drops, by cause.
 *
 * A rule with one of the fields matches only packets that have the field.
 */
enum vb_fault_change {
	/* One bit, which the seed chooses, behind the first 8 bytes of the BTH: the ICRC covers it, and
	 * the receiver drops the packet because of its ICRC. */
	VB_CHANGE_ANY_BIT,
	VB_CHANGE_FRAME_BYTE, /* the byte at `offset`, counted from the frame's first byte */
	VB_CHANGE_BTH_BYTE,   /* the byte at `offset`, counted from the BTH's first byte */
	/*
	 * The packet ends after `value` bytes, counted from the BTH's first byte, and an ICRC. The
	 * lengths in the headers before the BTH follow. On InfiniBand, value is a multiple of 4. The rule
	 * matches only packets that are longer.
	 */
	VB_CHANGE_LENGTH,
	/* Fields of the BTH. */
	VB_CHANGE_OPCODE,
	VB_CHANGE_SOLICITED,
	VB_CHANGE_PAD,
	VB_CHANGE_VERSION,
	VB_CHANGE_PKEY,
	VB_CHANGE_DEST_QPN,
	VB_CHANGE_ACK_REQUEST,
	VB_CHANGE_PSN,
	/* Fields of the extension headers. */
	VB_CHANGE_SYNDROME,    /* AETH */
	VB_CHANGE_MSN,	       /* AETH */
	VB_CHANGE_REMOTE_ADDR, /* RETH, AtomicETH */
	VB_CHANGE_RKEY,	       /* RETH, AtomicETH, IETH */
	VB_CHANGE_DMA_LENGTH,  /* RETH */
	VB_CHANGE_SWAP_ADD,    /* AtomicETH */
	VB_CHANGE_COMPARE,     /* AtomicETH */
	VB_CHANGE_ORIGINAL,    /* AtomicAckETH */
	VB_CHANGE_QKEY,	       /* DETH */
	VB_CHANGE_SOURCE_QPN,  /* DETH */
	VB_CHANGE_IMM_DATA,    /* ImmDt */
	VB_CHANGE_XRC_SRQN,    /* XRCETH */
	/* The field `field` of the message that the rule names. */
	VB_CHANGE_MESSAGE_FIELD,
};

/*
 * Which packets a rule matches, and when it fires. A rule of zeros drops every packet.
 *
 * A field or byte changes in two steps: the bits of `mask` become those of `value`, and the bits of
 * `flip` turn. If mask and flip are 0, value replaces the whole field. So a rule with
 *
 *	.action = VB_FAULT_CORRUPT, .change = VB_CHANGE_PKEY, .value = 0x1234, .right_icrc = true
 *
 * gives the packet another P_Key and no other error.
 */
struct vb_fault_rule {
	enum vb_fault_action action;
	const char *from;  /* the name of the sending device; NULL for any */
	bool opcode_given; /* set: only packets with this BTH opcode */
	uint8_t opcode;	   /* for example 0x04, RC SEND Only */
	/* Set: also the same operation (the low 5 bits of opcode) of RC, UC, RD, UD and XRC. */
	bool any_transport;
	bool psn_given;	    /* set: only packets with this PSN */
	uint32_t psn;	    /* 24 bits */
	uint32_t dest_qpn;  /* the QPN in the packet's BTH; 0 for any */
	uint64_t skip;	    /* how many matching packets pass before the rule may fire */
	uint64_t count;	    /* how often the rule fires; 0 for no limit */
	double probability; /* of firing on a match that is not skipped; 0 means always */
	uint64_t delay_ns;  /* for VB_FAULT_DELAY */
	/*
	 * Only packets that carry this message of the connection manager, from QP 1 to QP 1: "REQ", "MRA",
	 * "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP" or "APR". NULL: any packet.
	 */
	const char *message;
	uint16_t reason; /* for VB_FAULT_REJECT: IB_CM_REJ_* of Linux include/rdma/ib_cm.h */

	/* For VB_FAULT_CORRUPT. */
	enum vb_fault_change change;
	uint32_t offset; /* for VB_CHANGE_FRAME_BYTE and VB_CHANGE_BTH_BYTE */
	uint64_t value;	 /* in host order */
	uint64_t mask;
	uint64_t flip;
	/*
	 * For VB_CHANGE_MESSAGE_FIELD: a name of docs/cm-messages.md, such as "starting_psn": of the
	 * message, or of the header of all messages. In a field of bytes, such as "private_data", the
	 * byte at `offset` changes.
	 */
	const char *field;
	/*
	 * Set: the ICRC and the checksums of IPv4 and UDP are those of the changed packet. Not set: they
	 * are those of the packet before the change. The VCRC of InfiniBand is always right.
	 */
	bool right_icrc;
};

/*
 * Adds a rule behind the world's other rules. rule and its strings are copied. *id becomes the
 * number by which the other functions name the rule; id may be NULL.
 *
 * EINVAL: there is no such action, change, device, message or field of a message; the probability is
 *	not between 0 and 1; value, mask or flip is wider than the field; or the message of
 *	VB_FAULT_REJECT is no REQ or REP.
 * ENOSPC: the world has 64 rules.
 */
int vb_fault_add(struct vb_sim *sim, const struct vb_fault_rule *rule, unsigned int *id);

/* Removes a rule. ENOENT: no rule has this id. */
int vb_fault_remove(struct vb_sim *sim, unsigned int id);

/* Removes all rules of the world. */
void vb_fault_clear(struct vb_sim *sim);

/* Returns how often a rule has fired; 0 if no rule has this id. */
uint64_t vb_fault_hits(struct vb_sim *sim, unsigned int id);

/*
 * The words by which `verbena run --fault` and project.yml name an action ("drop") and a change
 * ("PKEY"), by the value of their enum. NULL behind the last one. The strings are constant.
 */
const char *vb_fault_action_name(unsigned int action);
const char *vb_fault_change_name(unsigned int change);

/* Returns the largest value, mask and flip of a change; that of VB_CHANGE_MESSAGE_FIELD depends on the
 * field, see vb_fault_field_max(). */
uint64_t vb_fault_change_max(enum vb_fault_change change);

/*
 * The names of the messages, and of the fields of a message: its own, and behind them those of the
 * header. NULL behind the last one. The strings are constant.
 */
const char *vb_fault_message_name(unsigned int index);
const char *vb_fault_field_name(const char *message, unsigned int index);

/* Returns the largest value, mask and flip of a field; 0 if the message has no such field. */
uint64_t vb_fault_field_max(const char *message, const char *field);

/* --- failing calls --- */

/*
 * The rules of failing calls belong to the process, and hold for all backends, the real one too. They are
 * asked in the order in which they were added; the first rule that matches and fires decides, and later
 * rules do not see the call. A rule that skips a call, or has fired as often as it may, lets the call go
 * on to the next rule.
 *
 * While no rule of a call exists, nothing is in the way of a call. QPs and CQs with functions of their own
 * (ibv_qp_ex, ibv_cq_ex) that were created while nothing watched the calls of the process are not seen
 * later: add rules before such a QP or CQ is created.
 *
 * Each function may be called from any thread. No thread may be inside a verb while the first rule of a
 * call is added, or the last one is removed. A call that Verbena itself makes inside another one is not
 * seen.
 */
enum vb_fail_action {
	/* The call fails with `err` in its own convention, and does nothing. */
	VB_FAIL_CALL,
	/*
	 * An allocation of memory inside Verbena fails with ENOMEM: malloc, calloc, realloc, strdup, mmap
	 * and their like, called by libverbena.so for any reason. Those of the program, of libc and of other
	 * libraries do not fail and do not count.
	 */
	VB_FAIL_ALLOCATION,
	/*
	 * A completion of success that the program polls gets `status` and `vendor_err`. Its other members
	 * stay, as far as a failed completion has them (ibv_poll_cq(3)); the QP stays in its state.
	 */
	VB_FAIL_COMPLETION,
	/*
	 * ibv_poll_cq() finds, behind the CQ's own completions and if there is room, one that belongs to no
	 * WR, with `wr_id`, `qpn`, `status` and `vendor_err`; all other members are 0. So do ibv_start_poll()
	 * and ibv_next_poll() when the CQ is empty. skip counts polls with room.
	 */
	VB_FAIL_MADE,
	/*
	 * An asynchronous event is raised when a call returns, whether it has failed or not: `event` of the
	 * call's device, which must be a simulated one, or of one of its QPs, CQs or SRQs. vb_sim_port_state(),
	 * vb_sim_port_event(), vb_sim_kill_device() and vb_sim_object_event() say what the event brings with
	 * it. As each event of an object, it is to be acknowledged: until then, destroying the object waits
	 * (ibv_get_async_event(3)).
	 *
	 * The event of a QP, CQ or SRQ is of the QP with the number `qpn`; of the n-th object of its kind that
	 * the program has made on the device, n = `object`; or, if both are 0, of the object that the call has
	 * made or is about. The rule matches only calls for which that object exists and lives on.
	 */
	VB_FAIL_EVENT,
	/*
	 * A descriptor that libverbena.so asks the system for, for any reason, cannot be made: open, fopen,
	 * socket, eventfd, memfd_create, epoll_create1, opendir and their like fail with `err`, which is
	 * EMFILE if it is 0. Those of the program and of other libraries do not fail and do not count.
	 */
	VB_FAIL_DESCRIPTOR,
	/* The same of pthread_create(3), which fails with EAGAIN. */
	VB_FAIL_THREAD,
};

/* Which calls a rule matches, and when it fires. A rule of zeros makes each call fail with ENOMEM. */
struct vb_fail_rule {
	enum vb_fail_action action;
	/*
	 * Of VB_FAIL_CALL and VB_FAIL_EVENT: the name of the call without its prefix, such as "create_qp" for ibv_create_qp(),
	 * "cm_connect" for rdma_connect(), "wr_complete" for ibv_wr_complete(). NULL: each call that
	 * vb_fail_is_any() allows.
	 */
	const char *call;
	const char *device; /* only calls on the device of this name; NULL: any */
	uint64_t skip;	    /* how many matching calls pass before the rule may fire */
	uint64_t count;	    /* how often the rule fires; 0 for no limit */
	/* With which a call fails; 0 for ENOMEM; or a descriptor; 0 for EMFILE. An allocation: ENOMEM */
	int err;
	/*
	 * Of VB_FAIL_CALL with post_send, post_recv or post_srq_recv: the place of the WR that is refused, from
	 * 0. The WRs before it are posted, and *bad_wr is this WR: ibv_post_send(3). The rule matches only
	 * longer lists. ibv_wr_complete() posts all WRs or none: ibv_wr_post(3).
	 */
	uint32_t at;
	/* Of VB_FAIL_COMPLETION and VB_FAIL_MADE: */
	enum ibv_wc_status
		status;	     /* VB_FAIL_COMPLETION: IBV_WC_SUCCESS stands for IBV_WC_GENERAL_ERR */
	uint32_t vendor_err; /* 0: a number by which vb_explain() knows the completion */
	uint32_t qpn;	  /* VB_FAIL_COMPLETION: only of this QP; 0: of any; and of VB_FAIL_EVENT */
	bool wr_id_given; /* VB_FAIL_COMPLETION: set: only with this wr_id */
	uint64_t wr_id;
	/* Of VB_FAIL_EVENT: IBV_EVENT_PORT_ERR, PORT_ACTIVE, SM_CHANGE, CLIENT_REREGISTER or DEVICE_FATAL,
	 * and the port, 0 for port 1; or an event of a QP, CQ or SRQ, and which object of the kind, from 1
	 * (0: see VB_FAIL_EVENT). QPs, CQs and SRQs count from the first rule of a call or event on. */
	enum ibv_event_type event;
	uint32_t port_num;
	uint32_t object;
};

#define VB_FAIL_RULES_MAX 64

/*
 * Adds a rule behind the other rules. rule and its strings are copied. *id becomes the number by which the
 * other functions name the rule; id may be NULL. Returns 0 or an errno value, which vb_last_error()
 * explains.
 *
 * EINVAL: there is no such action, call, status or event; err is no errno value; or a member is set that the action
 *	or the call does not have.
 * ENOSPC: there are VB_FAIL_RULES_MAX rules.
 * ENOMEM: too many layers watch the calls of the process.
 * EOPNOTSUPP: allocations, descriptors and threads cannot fail in this program, since it is linked with Verbena
 *	statically and not with libverbena.so.
 */
int vb_fail_add(const struct vb_fail_rule *rule, unsigned int *id);

/* Removes a rule. ENOENT: no rule has this id. */
int vb_fail_remove(unsigned int id);

/* Removes all rules. */
void vb_fail_clear(void);

/* Returns how often a rule has fired; 0 if no rule has this id. */
uint64_t vb_fail_hits(unsigned int id);

/*
 * Returns how many calls, allocations and their like a rule has matched, those that it has skipped and those that it
 * has let pass after its last firing included; 0 if no rule has this id. A rule with skip = UINT64_MAX
 * fails nothing, and only counts.
 */
uint64_t vb_fail_seen(unsigned int id);

/*
 * The names of the calls that can fail. NULL behind the last one. The strings are constant.
 *
 * vb_fail_is_any() returns true if a rule without a name matches the call: calls that create, register,
 * open, modify, query, post, connect. Not among them are calls that end an object, that acknowledge, that
 * poll, or that take an event: a rule that names one of these makes it fail, too.
 */
const char *vb_fail_call_name(unsigned int index);
bool vb_fail_is_any(const char *call);

#ifdef __cplusplus
}
#endif

#endif
