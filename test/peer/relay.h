/* SPDX-License-Identifier: MIT */
/* The backend "peer": it asks B's process to do what a verb says. */
#ifndef TEST_PEER_RELAY_H
#define TEST_PEER_RELAY_H

#include <infiniband/verbs.h>
#include <sys/types.h>
#include <verbena/backend.h>

struct peer_setup;

extern const struct vb_backend relay_backend;

/* Relays to the process from now on. The setup stays valid. */
void relay_begin(const struct peer_setup *setup, pid_t peer);

/* Put the relay's functions into a mirror: those that the real object has. */
void relay_dress_context(struct verbs_context *shown);
void relay_dress_cq(struct ibv_cq_ex *shown, const struct ibv_cq_ex *real);
void relay_dress_qp(struct ibv_qp_ex *shown, const struct ibv_qp_ex *real);
void relay_dress_dm(struct ibv_dm *shown, const struct ibv_dm *real);

#endif
