/* SPDX-License-Identifier: MIT */
/*
 * Reads the wire of a device, as written in project.yml, in an environment variable and on a command line:
 * "memory", "shared", "udp", "udp=ADDRESS", "udp=INTERFACE".
 */
#ifndef SRC_PROJECT_WIRE_H
#define SRC_PROJECT_WIRE_H

#include "src/project/config.h"
#include "src/project/project.h"

/* Reads a wire; its address is empty if the text has none. Returns false with a message. */
bool wire_read(const char *text, struct vb_project_wire *wire, char *message, size_t size_bytes);

/* Reads a value of a project; key->into is a struct vb_project_wire. */
config_read_fn wire_config;

/* Gives the wire to a device. */
void wire_give(const struct vb_project_wire *wire, struct vb_sim_device_config *device);

/* Returns true if the text may be the name of a world. */
bool wire_is_world(const char *name);

#endif
