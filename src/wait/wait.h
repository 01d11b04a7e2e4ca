/* SPDX-License-Identifier: MIT */
/*
 * Waits for descriptors on the virtual clock. The functions of libc that wait for descriptors are defined
 * here with the same names, and move the time of a simulated world if the set has one of its descriptors.
 * All other calls go to libc unchanged. docs/architecture.md, "Waits for descriptors".
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

/* Functions of <verbena/sim.h>. */
struct wait_world {
	bool (*has_fd)(int fd); /* -1: of any number */
	int (*wait_fd)(int fd, bool (*look)(void *arg), void *arg, uint64_t timeout_ns);
	int (*wait_fd_events)(int fd, bool (*look)(void *arg), void *arg, uint64_t timeout_ns,
			      uint64_t *left_ns);
};

/* Returns the worlds of the process; NULL: the process has no Verbena. */
const struct wait_world *wait_world(void);

/* The exported function of libverbena-files.so by which libverbena.so offers its worlds. */
void verbena_files_wait(const struct wait_world *world);

/* --- set.c: what a program waits for --- */

struct wait_set {
	int fd;	     /* the first descriptor of a world; -1: none */
	bool others; /* the set has other descriptors, too */
};

/* Adds a descriptor. One of epoll(7) stands for the descriptors that it waits for. */
void wait_set_add(struct wait_set *set, const struct wait_world *world, int fd);
void wait_set_add_poll(struct wait_set *set, const struct wait_world *world,
		       const struct pollfd *fds, nfds_t count);
void wait_set_add_select(struct wait_set *set, const struct wait_world *world, int count,
			 const fd_set *const sets[3]);

#endif
