/* SPDX-License-Identifier: MIT */
/*
 * Changes of ports and devices that affect their QPs.
 */
#ifndef SIM_NET_SUBNET_H
#define SIM_NET_SUBNET_H

#include "sim/object/device.h"

/* Changes a P_Key and raises IBV_EVENT_PKEY_CHANGE. EINVAL for an index outside the table. */
int sim_port_set_pkey(struct sim_port *port, unsigned int index, uint16_t pkey);

/* Kills a device: its QPs go to ERR, its ports neither send nor receive, and IBV_EVENT_DEVICE_FATAL
 * is raised. */
void sim_device_kill(struct sim_device *device);

#endif
