/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_CQ_H
#define SRC_CONNECT_CQ_H

#include <verbena/connect.h>

/* The time by the clock that waiting on the CQ goes by. */
uint64_t cq_now_ns(const struct vb_cq *cq);

/* When a wait that begins now is over, and what is left of it; VB_FOREVER stays that. */
uint64_t cq_deadline_ns(const struct vb_cq *cq, uint64_t timeout_ns);
uint64_t cq_left_ns(const struct vb_cq *cq, uint64_t deadline_ns);

#endif /* SRC_CONNECT_CQ_H */
