/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_ENDPOINT_H
#define SRC_CONNECT_ENDPOINT_H

#include <verbena/connect.h>

/* Checks the ranges of all values. Returns 0, or EBADMSG with a sentence. */
int endpoint_check(const struct vb_endpoint *endpoint);

#endif /* SRC_CONNECT_ENDPOINT_H */
