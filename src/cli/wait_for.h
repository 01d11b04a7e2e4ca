/* SPDX-License-Identifier: MIT */
/* verbena run --wait-for: a client begins when its server listens. */
#ifndef SRC_CLI_WAIT_FOR_H
#define SRC_CLI_WAIT_FOR_H

#include <stdint.h>

/* How long a client waits for its server. */
#define WAIT_FOR_S 60

/* Waits until a process of this network namespace listens at the TCP port. It does not connect: a server that takes
 * one connection would take this one for its client. Returns an exit status, after a message if it is not 0. */
int wait_for_listener(uint16_t port);

#endif
