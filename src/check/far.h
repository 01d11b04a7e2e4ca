/* SPDX-License-Identifier: MIT */
/* The part of rule_far.c that rule_ends.c calls. */
#ifndef SRC_CHECK_FAR_H
#define SRC_CHECK_FAR_H

#include "src/check/object.h"

/* Asks the device for the peer of a QP, and reports attributes that differ. Does so only for the first send
 * of a connection whose peer is not known in this process. */
void far_compare(struct check_qp *qp, const struct work *work);

#endif /* SRC_CHECK_FAR_H */
