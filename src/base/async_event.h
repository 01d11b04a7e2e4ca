/* SPDX-License-Identifier: MIT */
/* What an asynchronous event names: ibv_get_async_event(3). */
#ifndef SRC_BASE_ASYNC_EVENT_H
#define SRC_BASE_ASYNC_EVENT_H

#include <infiniband/verbs.h>

enum event_of { EVENT_OF_NO_OBJECT, EVENT_OF_CQ, EVENT_OF_QP, EVENT_OF_SRQ, EVENT_OF_WQ };

/* Returns EVENT_OF_NO_OBJECT for an event of a port or a device. */
enum event_of async_event_of(enum ibv_event_type type);

#endif
