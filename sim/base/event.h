/* SPDX-License-Identifier: MIT */
#ifndef SIM_BASE_EVENT_H
#define SIM_BASE_EVENT_H

#include <infiniband/verbs.h>

struct sim_device;

/* An asynchronous event. element is the `user` of the QP, CQ or SRQ; NULL for a port's. */
struct sim_event {
	enum ibv_event_type type;
	void *element;
	unsigned int port_num;
};

#endif
