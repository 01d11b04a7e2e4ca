/* SPDX-License-Identifier: MIT */
#include "sim/profile/profile.h"

#include <string.h>

/* The values of the column `profiles` in quirks.def. */
enum {
	NONE = 0,
	RXE_6_1 = 1 << 0,
	RXE_6_12 = 1 << 1,
	MLX5 = 1 << 2,
	HOSTILE = 1 << 3,
};

const struct sim_quirk_info sim_quirk_info[] = {
#define QUIRK(name, group, profiles, about, right) \
	{#name, about, right, SIM_QUIRK_##group, offsetof(struct sim_quirks, name)},
#include "sim/profile/quirks.def"
#undef QUIRK
	{0},
};

static const struct sim_quirks no_quirks;

/* The quirks of a profile: the rows whose column `profiles` names it. */
#define QUIRK(name, group, profiles, about, right) .name = ((profiles)&QUIRKS_OF) != 0,
static const struct sim_quirks rxe_6_1_quirks = {
#define QUIRKS_OF RXE_6_1
#include "sim/profile/quirks.def"
#undef QUIRKS_OF
};
static const struct sim_quirks rxe_6_12_quirks = {
#define QUIRKS_OF RXE_6_12
#include "sim/profile/quirks.def"
#undef QUIRKS_OF
};
static const struct sim_quirks mlx5_quirks = {
#define QUIRKS_OF MLX5
#include "sim/profile/quirks.def"
#undef QUIRKS_OF
};
static const struct sim_quirks hostile_quirks = {
#define QUIRKS_OF HOSTILE
#include "sim/profile/quirks.def"
#undef QUIRKS_OF
};
#undef QUIRK

bool *sim_quirk_find(struct sim_quirks *quirks, const char *name)
{
	for (const struct sim_quirk_info *info = sim_quirk_info; info->name; info++)
		if (strcmp(info->name, name) == 0)
			return (bool *)((char *)quirks + info->offset);
	return NULL;
}

/*
 * The limits of the profiles that are an int in struct ibv_device_attr: those that
 * sim_device_lower_limit() can lower. The engine's tables bound max_qp, max_srq, max_mr and max_mw;
 * where only memory limits an adapter's objects, the limit is one that a test can reach. The rest
 * of rxe and mlx5 is what `ibv_devinfo -v` prints on them. Those of hostile are small and odd; no
 * specification sets a lower bound for them.
 */
/* clang-format off */
#define LIMITS(LIMIT) \
	/*    field                      spec         rxe      mlx5        hostile */ \
	LIMIT(max_qp,                    262128,      262128,  131072,      1021) \
	LIMIT(max_qp_wr,                 32768,       1048576, 32768,       1023) \
	LIMIT(max_sge,                   32,          32,      30,          5) \
	LIMIT(max_sge_rd,                32,          32,      30,          1) \
	LIMIT(max_cq,                    262144,      1048576, 262144,      509) \
	LIMIT(max_cqe,                   1048576,     32767,   4194303,     2047) \
	LIMIT(max_mr,                    524287,      524287,  524287,      1019) \
	LIMIT(max_pd,                    262144,      1048576, 262144,      251) \
	LIMIT(max_qp_rd_atom,            16,          128,     16,          5) \
	LIMIT(max_res_rd_atom,           16 * 262128, 258048,  2097152,     1021 * 5) \
	LIMIT(max_qp_init_rd_atom,       16,          128,     16,          5) \
	LIMIT(max_mw,                    524287,      524287,  524287,      251) \
	LIMIT(max_mcast_grp,             8192,        8192,    8192,        13) \
	LIMIT(max_mcast_qp_attach,       262128,      56,      240,         7) \
	LIMIT(max_total_mcast_qp_attach, 262128,      458752,  8192 * 240,  37) \
	LIMIT(max_ah,                    262144,      32767,   262144,      499) \
	LIMIT(max_srq,                   262143,      262143,  262143,      131) \
	LIMIT(max_srq_wr,                32768,       1048576, 32767,       1021) \
	LIMIT(max_srq_sge,               32,          27,      31,          5)
/* clang-format on */

#define LIMIT_NAME(field, spec, rxe, mlx5, hostile) \
	{#field, offsetof(struct ibv_device_attr, field)},
#define LIMIT_OF_SPEC(field, spec, rxe, mlx5, hostile)	  .field = (spec),
#define LIMIT_OF_RXE(field, spec, rxe, mlx5, hostile)	  .field = (rxe),
#define LIMIT_OF_MLX5(field, spec, rxe, mlx5, hostile)	  .field = (mlx5),
#define LIMIT_OF_HOSTILE(field, spec, rxe, mlx5, hostile) .field = (hostile),

static const struct {
	const char *name;
	size_t offset; /* of an int */
} limit_fields[] = {LIMITS(LIMIT_NAME)};

int *sim_limit_find(struct ibv_device_attr *limits, const char *name)
{
	for (size_t i = 0; i < sizeof(limit_fields) / sizeof(limit_fields[0]); i++)
		if (strcmp(limit_fields[i].name, name) == 0)
			return (int *)((char *)limits + limit_fields[i].offset);
	return NULL;
}

#define RXE_LIMITS                                                                         \
	{                                                                                  \
		.fw_ver = "0.0.0", .max_mr_size = UINT64_MAX, .page_size_cap = 0xfffff000, \
		.vendor_id = 0xffffff, .device_cap_flags = 0x01223c76,                     \
		.atomic_cap = IBV_ATOMIC_HCA, .max_pkeys = 64, .local_ca_ack_delay = 15,   \
		LIMITS(LIMIT_OF_RXE)                                                       \
	}

#define RXE_INLINE_BYTES  512
#define RXE_MESSAGE_BYTES (8u << 20) /* max_msg_sz of `ibv_devinfo -v` */
#define RXE_GIDS	  1024	     /* GIDTbl of `ibv_devinfo -v` */

#define HOSTILE_INLINE_BYTES 67
#define HOSTILE_GIDS	     67

#define SPEC_CAP_FLAGS                                                                             \
	(IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | \
	 IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW |               \
	 IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC)

/* What neither the provider in rdma-core nor the kernel's driver has. */
#define RXE_LACKS                                                                \
	(SIM_LACKS_DEVICE_MEMORY | SIM_LACKS_DOMAINS | SIM_LACKS_NULL_REGIONS |  \
	 SIM_LACKS_REREGISTRATION | SIM_LACKS_ON_DEMAND | SIM_LACKS_TIMESTAMPS | \
	 SIM_LACKS_IGNORED_OVERRUN | SIM_LACKS_IMPORTS)

static const struct sim_profile profiles[] = {
	{
		.name = "spec",
		.about = "as the specification says",
		.limits = {.fw_ver = "0.1.0",
			   .max_mr_size = UINT64_MAX,
			   .page_size_cap = 0xfffff000,
			   .vendor_id = 0xffffff,
			   .device_cap_flags = SPEC_CAP_FLAGS,
			   .atomic_cap = IBV_ATOMIC_HCA,
			   .max_pkeys = 16,
			   .local_ca_ack_delay = 0,
			   LIMITS(LIMIT_OF_SPEC)},
		.max_inline_bytes = 1024,
		.max_message_bytes = SIM_MESSAGE_BYTES_MAX,
		.atomic_write = true,
		.gid_table = 64,
		.roce_v1 = true,
		.moderation = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		.quirks = &no_quirks,
	},
	{
		.name = "rxe-6.1",
		.about = "SoftRoCE of Linux 6.1",
		.limits = RXE_LIMITS,
		.max_inline_bytes = RXE_INLINE_BYTES,
		.max_message_bytes = RXE_MESSAGE_BYTES,
		.gid_table = RXE_GIDS,
		.lacks = RXE_LACKS,
		.codes = SIM_CODES_RXE,
		.quirks = &rxe_6_1_quirks,
	},
	{
		.name = "rxe-6.12",
		.about = "SoftRoCE of Linux 6.12",
		.limits = RXE_LIMITS,
		.max_inline_bytes = RXE_INLINE_BYTES,
		.max_message_bytes = RXE_MESSAGE_BYTES,
		/* drivers/infiniband/sw/rxe/rxe_param.h, since Linux 6.2 */
		.atomic_write = true,
		.gid_table = RXE_GIDS,
		.lacks = RXE_LACKS,
		.codes = SIM_CODES_RXE,
		.quirks = &rxe_6_12_quirks,
	},
	{
		.name = "mlx5",
		.about = "as ConnectX adapters behave where that is measured, or said",
		.limits = {.fw_ver = "16.35.1012",
			   .max_mr_size = UINT64_MAX,
			   .page_size_cap = 0xfffffffffffff000,
			   .vendor_id = 0x02c9,
			   .vendor_part_id = 4119,
			   .device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT |
					       IBV_DEVICE_SYS_IMAGE_GUID |
					       IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
					       IBV_DEVICE_MEM_WINDOW_TYPE_2B |
					       IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC,
			   .atomic_cap = IBV_ATOMIC_HCA,
			   .max_pkeys = 128,
			   .local_ca_ack_delay = 16,
			   LIMITS(LIMIT_OF_MLX5)},
		.max_inline_bytes = 1024,
		.max_message_bytes = UINT32_C(1) << 30,
		.gid_table = 64,
		.roce_v1 = true,
		/* Linux drivers/infiniband/hw/mlx5/cq.c, include/linux/mlx5/mlx5_ifc.h: 12 bits */
		.moderation = {.max_cq_count = UINT16_MAX, .max_cq_period = 0xfff},
		.codes = SIM_CODES_MLX5,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		.quirks = &mlx5_quirks,
	},
	{
		.name = "hostile",
		.about = "as the specification says, where programs assume more",
		.limits = {.fw_ver = "0.0.1",
			   .max_mr_size = UINT64_MAX,
			   .page_size_cap = 0xfffff000,
			   .vendor_id = 0xffffff,
			   .device_cap_flags = SPEC_CAP_FLAGS,
			   .atomic_cap = IBV_ATOMIC_HCA,
			   .max_pkeys = 3,
			   .local_ca_ack_delay = 3,
			   LIMITS(LIMIT_OF_HOSTILE)},
		.max_inline_bytes = HOSTILE_INLINE_BYTES,
		.max_message_bytes = SIM_MESSAGE_BYTES_MAX,
		.atomic_write = true,
		.gid_table = HOSTILE_GIDS,
		.roce_v1 = true,
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		.quirks = &hostile_quirks,
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
