/* SPDX-License-Identifier: MIT */
/* librdmacm's functions on simulated devices: what the vtable of the backend takes. */
#ifndef BACKENDS_SIM_CM_CM_H
#define BACKENDS_SIM_CM_CM_H

#include <verbena/cm_backend.h>

extern const struct vb_cm_backend cm_backend;

#endif
