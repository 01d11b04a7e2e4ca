/* SPDX-License-Identifier: MIT */
/*
 * Changes of ports and devices from outside that reach their QPs.
 */
#ifndef SIM_NET_SUBNET_H
#define SIM_NET_SUBNET_H

#include "sim/object/device.h"

/* Changes a P_Key and raises IBV_EVENT_PKEY_CHANGE. EINVAL for an index outside the table. */
int sim_port_set_pkey(struct sim_port *port, unsigned int index, uint16_t pkey);

/* The device dies: its QPs go to ERR, no packet moves in or out, IBV_EVENT_DEVICE_FATAL. */
void sim_device_kill(struct sim_device *device);

#endif
