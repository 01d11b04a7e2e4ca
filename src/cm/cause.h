/* SPDX-License-Identifier: MIT */
/* The reason of a failed connection, by its event, on any backend. */
#ifndef SRC_CM_CAUSE_H
#define SRC_CM_CAUSE_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <verbena/why.h>

/* Returns false if the event is no failure. The texts of *why are constant. */
bool cause_of_event(const struct rdma_cm_event *event, struct vb_why *why);

#endif /* SRC_CM_CAUSE_H */
