/* SPDX-License-Identifier: MIT */
#include "sim/profile.h"

#include <string.h>

static const struct sim_profile profiles[] = {
	{
		.name = "spec",
		.about = "as the specification says",
		.limits =
			{
				.fw_ver = "0.1.0",
				.max_mr_size = UINT64_MAX,
				.page_size_cap = 0xfffff000,
				.vendor_id = 0xffffff,
				.max_qp = 262128,
				.max_qp_wr = 32768,
				.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD |
						    IBV_DEVICE_PORT_ACTIVE_EVENT |
						    IBV_DEVICE_SYS_IMAGE_GUID |
						    IBV_DEVICE_RC_RNR_NAK_GEN,
				.max_sge = 32,
				.max_sge_rd = 32,
				.max_cq = 262144,
				.max_cqe = 1048576,
				.max_mr = 524287,
				.max_pd = 262144,
				.max_qp_rd_atom = 16,
				.max_res_rd_atom = 16 * 262128,
				.max_qp_init_rd_atom = 16,
				.atomic_cap = IBV_ATOMIC_HCA,
				.max_ah = 262144,
				.max_pkeys = 16,
				.local_ca_ack_delay = 0,
			},
		.max_inline_bytes = 1024,
		.max_message_bytes = UINT32_C(1) << 31,
	},
};

const struct sim_profile *sim_profile_find(const char *name)
{
	for (unsigned int i = 0; sim_profile_at(i); i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}

const struct sim_profile *sim_profile_at(unsigned int index)
{
	return index < sizeof(profiles) / sizeof(profiles[0]) ? &profiles[index] : NULL;
}
