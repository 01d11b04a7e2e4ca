/* SPDX-License-Identifier: MIT */
/* The arguments of a verb in a line of the log: names, numbers and structures, by a table of their types. */
#ifndef SRC_LOG_ARGUMENT_H
#define SRC_LOG_ARGUMENT_H

#include "src/layer/layer.h"
#include "src/log/line.h"

#include <stdbool.h>

/* Finds out how the arguments of each verb are written. Call this once, before argument_all(). */
void argument_prepare(void);

/* Adds the arguments of `call`, a struct layer_call, as an object with their names. Returns false if the verb has
 * none. */
bool argument_all(struct line *line, const void *call);

#endif /* SRC_LOG_ARGUMENT_H */
