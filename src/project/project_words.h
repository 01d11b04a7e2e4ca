/* SPDX-License-Identifier: MIT */
/* The words of a project that options and environment variables take too. Each list ends with NULL. */
#ifndef SRC_PROJECT_PROJECT_WORDS_H
#define SRC_PROJECT_PROJECT_WORDS_H

#include "src/project/config.h"

extern const struct config_word project_clocks[];      /* enum vb_sim_clock */
extern const struct config_word project_link_layers[]; /* IBV_LINK_LAYER_* */
extern const struct config_word project_profiles[];    /* from 0 up */

#endif
