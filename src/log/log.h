/* SPDX-License-Identifier: MIT */
/* The log of the process, as the sources of its events see it. */
#ifndef SRC_LOG_LOG_H
#define SRC_LOG_LOG_H

#include "src/log/record.h"

/* Adds an event to the log, and sets record->number. Any thread may call it at any time. */
void log_write(const struct vb_event *event, struct record *record);

/* Returns when the log began, on CLOCK_MONOTONIC. */
uint64_t log_started_ns(void);

#endif /* SRC_LOG_LOG_H */
