/* SPDX-License-Identifier: MIT */
/* The scenarios of the program content: what two processes do with each other, and what must hold. */
#ifndef TEST_PAIRS_CONTENT_H
#define TEST_PAIRS_CONTENT_H

#include "test/pairs/link.h"

struct settings {
	uint64_t seed;
	unsigned int role;    /* 0: the process that was started by hand; 1: its peer */
	unsigned int adapter; /* the number of this process's adapter */
	bool events;	      /* the processes sleep until completions come, and do not poll */
	bool lossy;	      /* packets get lost */
	size_t largest;	      /* bytes of the largest message */
	const char *const *arguments; /* the words that made these settings; NULL ends them */
};

typedef void scenario_fn(const struct settings *settings, struct peer *peer);

struct scenario {
	const char *name;
	scenario_fn *first, *second; /* for the roles 0 and 1 */
};

/* Starts another process in the role 1 of a scenario. */
struct peer scenario_start(const struct settings *settings, const char *name);

/* --- transfers.c: every operation, size and QP type --- */
extern const struct scenario transfer_scenarios[];
extern const unsigned int transfer_scenario_count;

/* --- imports.c: objects of another process --- */
scenario_fn imports_first, imports_second;

/* --- targets.c: an XRC target that two processes have opened --- */
scenario_fn targets_first, targets_second, targets_third;

/* --- lives.c: processes that sleep, fork, exec and die --- */
extern const struct scenario life_scenarios[];
extern const unsigned int life_scenario_count;

#endif
