/* SPDX-License-Identifier: MIT */
/* B's process. */
#ifndef TEST_PEER_SERVE_H
#define TEST_PEER_SERVE_H

struct peer_setup;

/* Does what the test's process asks, and ends the process when it is asked to. */
void serve(const struct peer_setup *setup) __attribute__((noreturn));

#endif
