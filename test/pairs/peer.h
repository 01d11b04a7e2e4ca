/* SPDX-License-Identifier: MIT */
/*
 * Processes of one program that talk to each other by a socket, beside the verbs that they test. A
 * peer is this program, started afresh (fork and exec), so it shares no memory with its starter.
 *
 * Every function ends the process with a sentence if it fails.
 */
#ifndef TEST_PAIRS_PEER_H
#define TEST_PAIRS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t pid; /* 0: the process at the other end is not this one's child */
	int fd;
};

/* The name of this process in its messages. */
extern const char *peer_name;

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the object; fails with errno if it is NULL. */
void *need(const char *what, void *object);

/* Fails if err, an errno value, is not 0. */
void check(const char *what, int err);

/* Fails if two numbers differ. */
void same(const char *what, uint64_t expected, uint64_t found);

/* Starts this program with the arguments "--peer FD" and those given, which end with NULL. */
struct peer peer_start(const char *const *arguments);

/* Sends bytes, and takes bytes that the other process has sent. */
void peer_put(const struct peer *peer, const void *bytes, size_t length);
void peer_take(const struct peer *peer, void *bytes, size_t length);

/* Sends bytes and takes as many. */
void peer_swap(const struct peer *peer, const void *mine, void *theirs, size_t length);

/* Waits until both processes have called it. */
void peer_meet(const struct peer *peer);

/* Kills the process, and waits until the kernel has ended it. */
void peer_kill(struct peer *peer);

/* Waits for the end of the process; fails if its exit status is not 0. */
void peer_end(struct peer *peer);

uint64_t now_ns(void);

/* Fills bytes with a pattern, which the key decides; and returns true if they have it. */
void pattern_fill(void *bytes, size_t length, uint64_t key);
bool pattern_holds(const void *bytes, size_t length, uint64_t key);

#endif
