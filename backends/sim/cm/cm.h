/* SPDX-License-Identifier: MIT */
/* The connection manager on simulated devices: the functions of librdmacm, as the backend's vtable has them. */
#ifndef BACKENDS_SIM_CM_CM_H
#define BACKENDS_SIM_CM_CM_H

#include <verbena/cm_backend.h>

extern const struct vb_cm_backend cm_backend;

#endif
