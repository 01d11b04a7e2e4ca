/* SPDX-License-Identifier: MIT */
#include "backends/sim/cm/cm.h"

#include "backends/sim/cm/private.h"

const struct vb_cm_backend cm_backend = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = cm_##name,
#include <verbena/cm.def>
};
