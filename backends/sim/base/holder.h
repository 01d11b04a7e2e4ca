/* SPDX-License-Identifier: MIT */
/* The process that has a file or a socket open, for sentences: by the descriptors in proc(5). */
#ifndef BACKENDS_SIM_BASE_HOLDER_H
#define BACKENDS_SIM_BASE_HOLDER_H

struct holder {
	int pid;	  /* 0: no process that this process may see */
	char program[17]; /* of the process */
};

/* Finds a process that has a descriptor of the target, as /proc/PID/fd shows it: a path, or "socket:[INODE]". Skips
 * the process `except`; 0: none. */
void holder_find(const char *target, int except, struct holder *holder);

/* Fills the holder with a process and its program. */
void holder_name(int pid, struct holder *holder);

#endif
