/* SPDX-License-Identifier: MIT */
/*
 * Waits for descriptors on the virtual clock. This room defines the functions of libc that wait for descriptors,
 * with the same names. If the set has a descriptor of a simulated world, they move that world's time. All other
 * calls go to libc unchanged. docs/architecture.md, "Clocks".
 *
 * These sources are compiled twice: into libverbena.so, for programs that are linked with it, and into
 * libverbena-files.so, which stands in front of libc in programs of `verbena run`.
 */
#ifndef SRC_WAIT_WAIT_H
#define SRC_WAIT_WAIT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/select.h>

/* The worlds of a process, by functions of <verbena/sim.h>. All may be called by any thread. */
struct wait_world {
	/* vb_sim_has_fd(): returns true if the descriptor is of a world; -1 asks for any descriptor */
	bool (*has_fd)(int fd);
	/* vb_sim_wait_fd() and vb_sim_wait_fd_events(): wait, return 0 or an errno value */
	int (*wait_fd)(int fd, bool (*look)(void *arg), void *arg, uint64_t timeout_ns);
	int (*wait_fd_events)(int fd, bool (*look)(void *arg), void *arg, uint64_t timeout_ns,
			      uint64_t *left_ns);
};

/* Returns the worlds of the process; NULL if it has none, or if the other copy of wait.c does the waiting. */
const struct wait_world *wait_world(void);

/* The exported function of libverbena-files.so by which libverbena.so offers its worlds. */
void verbena_files_wait(const struct wait_world *world);

/* --- set.c --- */

/* What a call waits for. The caller sets fd to -1 before the first descriptor is added. */
struct wait_set {
	int fd;	     /* the first descriptor of a world; -1: none */
	bool others; /* the set has descriptors that are of no world */
};

/* Adds a descriptor. For an epoll(7) descriptor it adds those that this one waits for. errno stays. */
void wait_set_add(struct wait_set *set, const struct wait_world *world, int fd);
void wait_set_add_poll(struct wait_set *set, const struct wait_world *world,
		       const struct pollfd *fds, nfds_t count);
void wait_set_add_select(struct wait_set *set, const struct wait_world *world, int count,
			 const fd_set sets[3]);

#endif
