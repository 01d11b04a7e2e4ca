/* SPDX-License-Identifier: MIT */
/* A call of a verb as a line of the log: its arguments by name, and its result. */
#ifndef SRC_LOG_CALL_H
#define SRC_LOG_CALL_H

#include "src/layer/layer.h"
#include "src/log/line.h"

#include <stdbool.h>
#include <stdint.h>

/* Finds out how the arguments of each verb are written. Call it before all others. */
void call_prepare(void);

/* Add the arguments as an object, and the result; or return false if there are none. */
bool call_arguments(struct line *line, const void *call);
bool call_result(struct line *line, const void *call);

/* Returns the name of the device that the call is about; NULL if it is about none. */
const char *call_device(const struct layer_call *call);

/* Returns the number of the QP that the call is about; 0 if it is about none. */
uint32_t call_qpn(const struct layer_call *call);

#endif /* SRC_LOG_CALL_H */
