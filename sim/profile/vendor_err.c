/* SPDX-License-Identifier: MIT */
#include "sim/profile/vendor_err.h"

const struct sim_vendor_err sim_vendor_errs[] = {
#define CODE(status, cause, rxe, mlx5, source)                 \
	{IBV_WC_##status,                                      \
	 SIM_CAUSE_##cause,                                    \
	 {[SIM_CODES_RXE] = (rxe), [SIM_CODES_MLX5] = (mlx5)}, \
	 source},
#include "sim/profile/vendor_err.def"
#undef CODE
	{0},
};

uint32_t sim_vendor_err(enum sim_codes codes, enum ibv_wc_status status, enum sim_cause cause)
{
	uint32_t code = 0;

	for (const struct sim_vendor_err *row = sim_vendor_errs; row->source; row++) {
		if (row->status != status)
			continue;
		if (row->cause == cause)
			return row->codes[codes];
		if (row->cause == SIM_CAUSE_ANY)
			code = row->codes[codes];
	}
	return code;
}
