/* SPDX-License-Identifier: MIT */
/* The words of a project that environment variables take, too. Each list ends with NULL. */
#ifndef SRC_PROJECT_WORDS_H
#define SRC_PROJECT_WORDS_H

#include <stddef.h>

/* A word and its meaning. */
struct project_word {
	const char *word;
	int meaning;
};

/* The simulator's profiles and a NULL. */
#define PROJECT_PROFILES_MAX 16

extern const struct project_word project_clocks[];	/* enum vb_sim_clock */
extern const struct project_word project_link_layers[]; /* IBV_LINK_LAYER_* */
extern const struct project_word project_mtus[];	/* enum ibv_mtu */

/* Fills in the names of the simulator's profiles; their meaning is their index. */
void project_profiles(struct project_word words[PROJECT_PROFILES_MAX]);

/* The entry of a word. NULL if the word is unknown; allowed then lists all words. */
const struct project_word *project_find_word(const struct project_word *words, const char *text,
					     char *allowed, size_t size_bytes);

#endif
