/* SPDX-License-Identifier: MIT */
#ifndef BACKENDS_SIM_BACKEND_H
#define BACKENDS_SIM_BACKEND_H

#include <verbena/backend.h>

extern const struct vb_backend vb_backend_sim;

#endif
