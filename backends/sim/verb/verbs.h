/* SPDX-License-Identifier: MIT */
/*
 * The verbs, and what they share. Each verb holds its world's lock once; the caller of each other
 * function here holds it already.
 */
#ifndef BACKENDS_SIM_VERB_VERBS_H
#define BACKENDS_SIM_VERB_VERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <verbena/backend.h>

struct ah;
struct context;
struct cq;
struct dm;
struct mr;
struct mw;
struct pd;
struct qp;
struct sim_device;
struct sim_mr_init;
struct srq;
struct vb_sim;
struct xrcd;

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

/* --- query.c --- */

/* ibv_query_port() of programs that were built for libibverbs before 1.1. */
int verb_query_port_compat(struct ibv_context *context, uint8_t port_num,
			   struct _compat_ibv_port_attr *attr);

/* --- pd.c --- */

/* Ends a PD, a parent domain, or an import without its root. */
void verb_end_pd(struct pd *pd);

/* --- mr.c --- */

/* Returns an MR made from init, whose pd is taken from the PD; NULL with errno and a sentence that
 * names the verb. */
struct mr *verb_new_mr(struct ibv_pd *pd, const struct sim_mr_init *init, const char *verb);
/* Ends the MR when its context is closed: of an import, the root stays. */
void verb_leave_mr(struct mr *mr);
/* Ends an import without its root. */
void verb_end_imported_mr(struct mr *mr);

/* --- dm.c --- */

/* Ends a DM, or an import without its root. */
void verb_end_dm(struct dm *dm);
/* Fills the DM's public fields. */
void verb_fill_dm(struct dm *dm, struct ibv_context *context, uint32_t handle);

/* --- mw.c --- */

void verb_end_mw(struct mw *mw);

/* --- xrcd.c --- */

void verb_end_xrcd(struct xrcd *xrcd);

/* --- ah.c --- */

void verb_end_ah(struct ah *ah);

/* --- cq.c --- */

/* Ends a CQ that no queue uses, without waiting for acknowledgements. */
void verb_end_cq(struct cq *cq);

/* --- poll.c --- */

/* Fills ibv_start_poll() to ibv_wc_read_*() of a CQ. */
void verb_fill_poll(struct cq *cq, uint64_t wc_flags);

/* --- srq.c --- */

/* Ends an SRQ, without waiting for acknowledgements. */
void verb_end_srq(struct srq *srq);

/* --- qp.c --- */

/* Ends a QP, or one handle of a shared QP, without waiting for acknowledgements. */
void verb_end_qp(struct qp *qp);

/* --- multicast.c --- */

/* Takes the QP out of all its groups. */
void verb_leave_groups(struct qp *qp);

/* --- wr.c: ibv_wr_post(3) --- */

/* Returns true if the device's QPs of the type have all these operations (enum
 * ibv_qp_create_send_ops_flags). */
bool verb_wr_supports(const struct sim_device *device, enum ibv_qp_type type,
		      uint64_t send_ops_flags);
/* Fills ibv_wr_start() to ibv_wr_complete() of a QP; locks: only one thread at a time is between
 * these two. 0 or ENOMEM. */
int verb_wr_fill(struct qp *qp, uint64_t send_ops_flags, bool locks);

#endif
