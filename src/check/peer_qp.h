/* SPDX-License-Identifier: MIT */
/*
 * The other end of a connected QP, if the QP of that end is in this process and the program has set the
 * attributes of both QPs by ibv_modify_qp(). These functions query the ports.
 */
#ifndef SRC_CHECK_PEER_QP_H
#define SRC_CHECK_PEER_QP_H

#include "src/check/object.h"

/* Returns true if the program has connected the QP, and the QP is in RTR or RTS. */
bool peer_is_connected(const struct check_qp *qp);

/* Returns true if both QPs are in RTR or RTS, and dest_qp_num and ah_attr of the first one lead to the
 * second one. */
bool peer_leads_to(const struct check_qp *qp, const struct check_qp *peer);

/* Returns the QP to which this one leads; NULL: none is known. */
struct check_qp *peer_find(const struct check_qp *qp);

#endif /* SRC_CHECK_PEER_QP_H */
