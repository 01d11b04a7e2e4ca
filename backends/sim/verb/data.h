/* SPDX-License-Identifier: MIT */
/*
 * The verbs that move data: what context->ops leads to.
 */
#ifndef BACKENDS_SIM_VERB_DATA_H
#define BACKENDS_SIM_VERB_DATA_H

#include <infiniband/verbs.h>

struct cq;
struct vb_sim;

int data_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int data_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int data_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int data_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int data_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* An empty CQ was polled: what that moves. The lock is held. */
void data_wait_a_little(struct vb_sim *world, struct cq *cq);

#endif
