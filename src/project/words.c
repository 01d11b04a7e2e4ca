/* SPDX-License-Identifier: MIT */
#include "src/project/words.h"

#include "src/project/project.h"

#include <stdio.h>
#include <string.h>
#include <verbena/sim.h>

const struct project_word project_clocks[] = {
	{"virtual", VB_SIM_CLOCK_VIRTUAL},
	{"real", VB_SIM_CLOCK_REAL},
	{NULL, 0},
};

const struct project_word project_link_layers[] = {
	{"ethernet", IBV_LINK_LAYER_ETHERNET},
	{"infiniband", IBV_LINK_LAYER_INFINIBAND},
	{NULL, 0},
};

const struct project_word project_mtus[] = {
	{"256", IBV_MTU_256},	{"512", IBV_MTU_512},	{"1024", IBV_MTU_1024},
	{"2048", IBV_MTU_2048}, {"4096", IBV_MTU_4096}, {NULL, 0},
};

void project_profiles(struct project_word words[PROJECT_PROFILES_MAX])
{
	unsigned int count = 0;
	const char *name;

	while (count < PROJECT_PROFILES_MAX - 1 && (name = vb_sim_profile_name(count))) {
		words[count] = (struct project_word){name, (int)count};
		count++;
	}
	words[count] = (struct project_word){0};
}

const struct project_word *project_find_word(const struct project_word *words, const char *text,
					     char *allowed, size_t size_bytes)
{
	size_t used = 0;

	allowed[0] = '\0';
	for (; words->word; words++) {
		if (!strcmp(words->word, text))
			return words;
		if (used < size_bytes)
			used += snprintf(allowed + used, size_bytes - used, "%s%s",
					 used ? ", " : "", words->word);
	}
	return NULL;
}

const char *vb_project_clock_name(unsigned int index)
{
	return project_clocks[index].word;
}

const char *vb_project_link_layer_name(unsigned int index)
{
	return project_link_layers[index].word;
}
