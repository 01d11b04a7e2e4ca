/* SPDX-License-Identifier: MIT */
/*
 * Posting by calls (ibv_wr_post(3)): what the pointers of an ibv_qp_ex lead to. Work requests are
 * gathered between ibv_wr_start() and ibv_wr_complete(), which posts all of them or none.
 */
#ifndef BACKENDS_SIM_VERB_WR_API_H
#define BACKENDS_SIM_VERB_WR_API_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct qp;
struct sim_device;

/* Whether a device's QPs of the type have all these operations (enum ibv_qp_create_send_ops_flags). */
bool wr_api_supports(const struct sim_device *device, enum ibv_qp_type type,
		     uint64_t send_ops_flags);

/* Fills the QP's pointers; locks: threads keep one another out between start and end. ENOMEM. */
int wr_api_fill(struct qp *qp, uint64_t send_ops_flags, bool locks);

/* The QP ends. */
void wr_api_end(struct qp *qp);

#endif
