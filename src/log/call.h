/* SPDX-License-Identifier: MIT */
/* What a line of the log says of a call of a verb: its device, its QP and its result. argument.h has the arguments. */
#ifndef SRC_LOG_CALL_H
#define SRC_LOG_CALL_H

#include "src/layer/layer.h"
#include "src/log/line.h"

#include <stdbool.h>
#include <stdint.h>

/* Adds the result of `call`, a struct layer_call. Returns false if the verb has none. */
bool call_result(struct line *line, const void *call);

/* Returns the name of the device that the call is about; NULL if it is about none. */
const char *call_device(const struct layer_call *call);

/* Returns the number of the QP that the call is about; 0 if it is about none. */
uint32_t call_qpn(const struct layer_call *call);

#endif /* SRC_LOG_CALL_H */
