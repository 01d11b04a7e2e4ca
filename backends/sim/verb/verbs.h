/* SPDX-License-Identifier: MIT */
/*
 * The verbs, and what they share. Each verb holds its world's lock once; the caller of each other
 * function here holds it already.
 */
#ifndef BACKENDS_SIM_VERB_VERBS_H
#define BACKENDS_SIM_VERB_VERBS_H

#include "backends/sim/object/refuse.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <verbena/backend.h>

/* What ibv_alloc_dm() can give out on one device. */
#define DEVICE_MEMORY_BYTES (UINT64_C(1) << 20)

/*
 * verb_<name>() is ibv_<name>(3) on simulated devices, in the file of its object. A verb for which
 * backends/sim/backend.c has another function, or NULL, is not defined.
 */
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	result verb_##name parameters;
#include <verbena/verbs.def>

/* --- context.c --- */

/*
 * Returns a context of the device that shares origin's file, and owns cmd_fd on success. The lock
 * is held even if the process has one thread.
 */
struct context *verb_share_device(struct context *origin, int cmd_fd);

/* --- foreign.c: what stands here for a context of another process, and for its objects --- */

/*
 * Returns the stand-in for the context that the descriptor is of, if that is a context of another process
 * in this world; NULL with errno and a sentence. The lock is held even if the process has one thread.
 */
struct context *verb_foreign_find(struct vb_sim *world, int cmd_fd);

/* A stand-in lives as long as contexts are imported from it. Nothing happens for other origins. */
void verb_foreign_use(struct context *origin);
void verb_foreign_release(struct context *origin);

/* Ends a stand-in that was never used. */
void verb_foreign_drop(struct context *origin);

/* Returns the object that stands for one of the other process, as handles_at() does; NULL with errno and
 * a sentence. */
void *verb_foreign_root(const char *verb, struct context *origin, enum kind kind, uint32_t handle);

/* Asks the process of an import's object to destroy the object. The world is released meanwhile. 0, or an errno value
 * with a sentence that names the verb. */
int verb_destroy_foreign(const char *verb, enum kind kind, void *import);

/* --- event.c --- */

/*
 * Takes the oldest event, and waits for one if the program has not set O_NONBLOCK. On the real clock, the
 * world is released meanwhile. 0 or errno; EDEADLK if nothing can come.
 */
int verb_next_event(struct hold *hold, struct event_queue *queue, struct queued_event *event);

/* Says why verb_next_event() has got none; silence is the reason of EDEADLK. Returns error. */
int verb_refuse_event(const char *verb, int error, int fd, struct vb_why silence);

/* --- qp_create.c --- */

/* Returns the attributes of ibv_create_qp(3) as those of ibv_create_qp_ex(3). */
struct ibv_qp_init_attr_ex verb_extend_qp_attr(struct ibv_pd *pd,
					       const struct ibv_qp_init_attr *attr);

/* Returns one of the handles of the domain's target QP with this number; NULL for none. */
struct qp *verb_find_target(const struct device *device, const struct domain *domain,
			    uint32_t number);

/* --- qp.c --- */

/* Takes a handle out of its QP's ring. Returns true for the last handle, with which the QP ends. */
bool verb_leave_ring(struct qp *qp);

/* --- xrcd.c --- */

/* A handle of the domain is closed. The domain ends with the last one. */
void verb_release_domain(struct device *device, struct domain *domain);

/* --- serve.c: calls of other processes --- */

enum verb_call {
	CALL_OPEN = 1,
	CALL_MODIFY,
	CALL_QUERY,
	CALL_CLOSE, /* a notice of an opener */
	CALL_EVENT, /* a notice to an opener: mask is the event's type */
	CALL_END,   /* a notice to an opener: the QP has ended */
	CALL_LOOK,  /* number and device are those of a QP; the answer's mask is its type */
	CALL_DESTROY, /* the object of an import: number is its handle, mask its kind, key its file's inode */
};

/* From now on, this process serves the calls of other processes. */
void verb_serve_calls(struct vb_sim *world);

/* Copies the reason for the other process, whose pointers differ. */
void verb_keep_reason(struct world_call *call, const struct vb_why *why);

/* The same for the reason that the engine has given for err. */
void verb_keep_refusal(const struct vb_sim *world, struct world_call *call, int err);

/* Gives the reason of an answer to the program. Returns the answer's error. */
int verb_say_answer(const char *verb, struct world_call *call);

/* --- target.c: target QPs that several processes have opened --- */

/* Does the verb that another process asks for on a target QP, or takes a notice. */
void verb_serve_target(struct vb_sim *world, uint64_t process, struct world_call *call);

/* A target QP of this process has raised an event. */
void verb_send_event(struct vb_sim *world, const struct qp *handle, enum ibv_event_type type);

/* Opens the target QP that another process has. Sets qp->engine to a stand-in, and *state to the state of the QP. 0,
 * or an errno value with a sentence. */
int verb_open_far_target(struct context *context, struct qp *qp, uint32_t number,
			 enum ibv_qp_state *state);

/* ibv_modify_qp(3), and ibv_query_qp(3) of the attributes, of another process's target QP. */
int verb_modify_far_target(struct qp *qp, const struct ibv_qp_attr *attr, int attr_mask);
int verb_query_far_target(struct qp *qp, struct ibv_qp_attr *attr);

/* The handle of another process's target QP is closed. */
void verb_close_far_target(const struct qp *qp);

/* Removes the openers whose processes have ended. */
void verb_bury_openers(struct vb_sim *world);

/* The last context of a device is closed: its target QPs end, also for other processes. */
void verb_end_targets(struct vb_sim *world, const struct device *device);

/* --- explain.c --- */

/* As completion_why of struct vb_backend. */
int verb_completion_why(struct ibv_context *context, const struct ibv_wc *wc,
			struct vb_completion_why *why);

/* --- look.c: the functions of these names in struct vb_backend --- */

int verb_look_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr);
int verb_look_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr);
int verb_look_peer(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn, struct vb_peer *peer);

/* Looks at a QP of this process for another process. */
void verb_serve_look(const struct vb_sim *world, struct world_call *call);

/* --- lacking.c --- */

/* Gives each pointer that is NULL a function that refuses with EOPNOTSUPP and a sentence. */
void verb_fill_lacking(struct verbs_context *verbs);

/* EOPNOTSUPP with a sentence that names the verb if the device's profile lacks what the verb needs
 * (enum sim_lack); else 0. */
int verb_lacks(const struct context *context, unsigned int lack, const char *verb);

/* --- query.c --- */

/* A query. Its digest changes with its answer. */
struct question {
	uint64_t (*digest)(const void *of);
	const void *of;
	struct answer *last;
};

/* Called before a query is answered. On the virtual clock, waits if the answer has not changed since
 * the last query. */
void verb_ask(struct driver *driver, const struct question *question);

/* ibv_query_port() of programs that were built for libibverbs before 1.1. */
int verb_query_port_compat(struct ibv_context *context, uint8_t port_num,
			   struct _compat_ibv_port_attr *attr);

/* --- the end of objects --- */

/*
 * Each function ends an object that no other object uses, without waiting for acknowledgements. The
 * end of an import leaves its root alive. A shared QP ends with the last of its handles.
 */
void verb_end_qp(void *qp);
void verb_end_srq(void *srq);
void verb_end_cq(void *cq);
void verb_end_ah(void *ah);
void verb_end_mw(void *mw);
void verb_end_mr(void *mr);
void verb_end_dm(void *dm);
void verb_end_xrcd(void *xrcd);
void verb_end_pd(void *pd);
void verb_end_td(void *td);
void verb_end_channel(void *channel);

/* --- pd.c --- */

/* Counts the users of a PD and of all its imports in this process. */
uint32_t verb_pd_users(const struct pd *pd);

/* --- mr.c --- */

/* Ends an MR. EBUSY, with a reason of the engine, while a window is bound to it; then nothing changes. Of an
 * import, the root stays. */
int verb_try_end_mr(struct mr *mr);

/* Returns an MR made from init, whose pd is taken from the PD; NULL with errno and a sentence that
 * names the verb. */
struct mr *verb_new_mr(struct ibv_pd *pd, const struct sim_mr_init *init, const char *verb);

/* --- dm.c --- */

/* Fills the DM's public fields. */
void verb_fill_dm(struct dm *dm, uint32_t handle);

/* --- poll.c --- */

/* Fills ibv_start_poll() to ibv_wc_read_*() of a CQ. */
void verb_fill_poll(struct cq *cq, uint64_t wc_flags);

/* --- wr.c: ibv_wr_post(3) --- */

/* Returns those of the operations (enum ibv_qp_create_send_ops_flags) that the device's QPs of the
 * type do not have. */
uint64_t verb_wr_lacks(const struct sim_device *device, enum ibv_qp_type type,
		       uint64_t send_ops_flags);
/* Fills ibv_wr_start() to ibv_wr_complete() of a QP; locks: only one thread at a time is between
 * these two. 0 or ENOMEM. */
int verb_wr_fill(struct qp *qp, uint64_t send_ops_flags, bool locks);

#endif
