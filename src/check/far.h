/* SPDX-License-Identifier: MIT */
/* rule_far.c, for rule_ends.c. */
#ifndef SRC_CHECK_FAR_H
#define SRC_CHECK_FAR_H

#include "src/check/object.h"

/* Asks the device for the peer of a QP, and compares the ends, if the send is the first one of the connection
 * and no QP of this process is known as the peer. */
void far_compare(struct check_qp *qp, const struct work *work);

#endif /* SRC_CHECK_FAR_H */
