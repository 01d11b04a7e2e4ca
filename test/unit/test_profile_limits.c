/* SPDX-License-Identifier: MIT */
/*
 * What a program reads from a device of each profile: ibv_query_device_ex(3), ibv_query_port(3).
 * The figures of SoftRoCE and ConnectX are those that ibv_devinfo -v printed, in test/data/limits.
 */
#include "backends/sim/backend.h"
#include "unity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <verbena/sim.h>

#define B vb_backend_sim

enum { SPEC, RXE_6_1, RXE_6_12, MLX5, PROFILES };
static const char *const names[PROFILES] = {"spec", "rxe-6.1", "rxe-6.12", "mlx5"};

static struct ibv_context *contexts[PROFILES];

void setUp(void)
{
	struct vb_sim_config *config = calloc(1, sizeof(*config));
	struct ibv_device **list;
	unsigned int i;

	TEST_ASSERT_NOT_NULL(config);
	config->device_count = PROFILES;
	for (i = 0; i < PROFILES; i++) {
		snprintf(config->devices[i].name, sizeof(config->devices[i].name), "d%u", i);
		strcpy(config->devices[i].profile, names[i]);
	}
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	free(config);
	list = B.get_device_list(NULL);
	TEST_ASSERT_NOT_NULL(list);
	for (i = 0; i < PROFILES; i++) {
		contexts[i] = B.open_device(list[i]);
		TEST_ASSERT_NOT_NULL(contexts[i]);
	}
	B.free_device_list(list);
}

void tearDown(void)
{
	for (unsigned int i = 0; i < PROFILES; i++) {
		if (contexts[i])
			B.close_device(contexts[i]);
		contexts[i] = NULL;
	}
}

static struct ibv_device_attr attr_of(unsigned int profile)
{
	struct ibv_device_attr_ex attr;

	TEST_ASSERT_EQUAL_INT(0, B.query_device_ex(contexts[profile], NULL, &attr, sizeof(attr)));
	return attr.orig_attr;
}

/* --- fields by their names --- */

struct field {
	const char *name;
	size_t offset, size;
};

#define FIELD(name)                                                    \
	{                                                              \
#name, offsetof(struct ibv_device_attr, name),         \
			sizeof(((struct ibv_device_attr *)NULL)->name) \
	}

/* Compares all fields but the firmware's version and the GUIDs. */
static const struct field fields[] = {
	FIELD(max_mr_size),
	FIELD(page_size_cap),
	FIELD(vendor_id),
	FIELD(vendor_part_id),
	FIELD(hw_ver),
	FIELD(max_qp),
	FIELD(max_qp_wr),
	FIELD(device_cap_flags),
	FIELD(max_sge),
	FIELD(max_sge_rd),
	FIELD(max_cq),
	FIELD(max_cqe),
	FIELD(max_mr),
	FIELD(max_pd),
	FIELD(max_qp_rd_atom),
	FIELD(max_ee_rd_atom),
	FIELD(max_res_rd_atom),
	FIELD(max_qp_init_rd_atom),
	FIELD(max_ee_init_rd_atom),
	FIELD(atomic_cap),
	FIELD(max_ee),
	FIELD(max_rdd),
	FIELD(max_mw),
	FIELD(max_raw_ipv6_qp),
	FIELD(max_raw_ethy_qp),
	FIELD(max_mcast_grp),
	FIELD(max_mcast_qp_attach),
	FIELD(max_total_mcast_qp_attach),
	FIELD(max_ah),
	FIELD(max_fmr),
	FIELD(max_map_per_fmr),
	FIELD(max_srq),
	FIELD(max_srq_wr),
	FIELD(max_srq_sge),
	FIELD(max_pkeys),
	FIELD(local_ca_ack_delay),
	FIELD(phys_port_cnt),
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

/* Returns the field zero-extended; no limit is negative. */
static uint64_t value_of(const struct ibv_device_attr *attr, const struct field *field)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)attr + field->offset, field->size);
	return value;
}

static size_t field_named(const char *name)
{
	for (size_t i = 0; i < FIELDS; i++)
		if (strcmp(fields[i].name, name) == 0)
			return i;
	TEST_ASSERT_TRUE_MESSAGE(false, name);
	return 0;
}

/* --- limits printed by ibv_devinfo --- */

struct listing {
	char fw_ver[64];
	uint64_t values[FIELDS];
	bool given[FIELDS];
};

static void read_line(struct listing *listing, const char *line)
{
	char name[64], text[64];
	size_t i;

	if (line[0] == '#')
		return;
	TEST_ASSERT_EQUAL_INT(2, sscanf(line, "%63[^:]: %63s", name, text));
	if (strcmp(name, "fw_ver") == 0) {
		strcpy(listing->fw_ver, text);
		return;
	}
	i = field_named(name);
	listing->values[i] = strtoull(text, NULL, 0);
	listing->given[i] = true;
}

static void read_listing(struct listing *listing, const char *path)
{
	FILE *in = fopen(path, "r");
	char line[256];

	TEST_ASSERT_NOT_NULL_MESSAGE(in, path);
	*listing = (struct listing){0};
	while (fgets(line, sizeof(line), in))
		read_line(listing, line);
	fclose(in);
}

/* Limits in which the simulator has less than the adapter. */
struct bound {
	const char *name;
	uint64_t most;
};

static void lower(struct listing *listing, const struct bound *bound)
{
	for (; bound->name; bound++) {
		const size_t i = field_named(bound->name);

		TEST_ASSERT_TRUE_MESSAGE(listing->values[i] > bound->most, bound->name);
		listing->values[i] = bound->most;
	}
}

static void expect_listing(const struct listing *listing, unsigned int profile)
{
	const struct ibv_device_attr attr = attr_of(profile);

	for (size_t i = 0; i < FIELDS; i++)
		if (listing->given[i])
			TEST_ASSERT_EQUAL_UINT64_MESSAGE(
				listing->values[i], value_of(&attr, &fields[i]), fields[i].name);
}

#define QPNS  ((1u << 18) - 16) /* QPs and SRQs: their numbers have 18 bits for the index */
#define SRQNS ((1u << 18) - 1)
#define KEYS  ((1u << 19) - 1) /* regions and windows */

void test_limits_of_softroce(void)
{
	static const struct bound bounds[] = {{"max_qp", QPNS}, {"max_srq", SRQNS}, {NULL, 0}};
	struct listing listing;

	read_listing(&listing, "test/data/limits/rxe.txt");
	lower(&listing, bounds);
	for (unsigned int i = RXE_6_1; i <= RXE_6_12; i++) {
		expect_listing(&listing, i);
		TEST_ASSERT_EQUAL_STRING(listing.fw_ver, attr_of(i).fw_ver);
	}
}

/* Objects that only memory limits get a limit that a test can reach. */
void test_limits_of_connectx(void)
{
	static const struct bound bounds[] = {{"max_mr", KEYS},
					      {"max_mw", KEYS},
					      {"max_srq", SRQNS},
					      {"max_cq", 1 << 18},
					      {"max_pd", 1 << 18},
					      {"max_ah", 1 << 18},
					      {"max_mcast_grp", 8192},
					      {"max_total_mcast_qp_attach", 8192 * 240},
					      {NULL, 0}};
	const uint64_t modelled = attr_of(SPEC).device_cap_flags;
	struct listing listing;

	read_listing(&listing, "test/data/limits/mlx5.txt");
	lower(&listing, bounds);
	listing.values[field_named("device_cap_flags")] &= modelled;
	expect_listing(&listing, MLX5);
}

/* --- limits chosen for spec --- */

static const struct {
	const char *name;
	uint64_t value;
} chosen[] = {
	{"max_mr_size", UINT64_MAX},
	{"page_size_cap", 0xfffff000}, /* 4 KiB to 2 GiB */
	{"vendor_id", 0xffffff},       /* no vendor, as on SoftRoCE */
	{"max_qp", QPNS},
	{"max_qp_wr", 1 << 15},
	{"max_sge", 32},
	{"max_sge_rd", 32},
	{"max_cq", 1 << 18},
	{"max_cqe", 1 << 20},
	{"max_mr", KEYS},
	{"max_pd", 1 << 18},
	{"max_qp_rd_atom", 16},
	{"max_res_rd_atom", 16 * (uint64_t)QPNS}, /* all QPs together */
	{"max_qp_init_rd_atom", 16},
	{"atomic_cap", IBV_ATOMIC_HCA},
	{"max_mw", KEYS},
	{"max_mcast_grp", 8192},
	{"max_mcast_qp_attach", QPNS}, /* all QPs */
	{"max_total_mcast_qp_attach", QPNS},
	{"max_ah", 1 << 18},
	{"max_srq", SRQNS},
	{"max_srq_wr", 1 << 15},
	{"max_srq_sge", 32},
	{"max_pkeys", VB_SIM_PKEYS_MAX}, /* the entries that a port can have */
	{"phys_port_cnt", 1},
};

/* Fields that are not named have no meaning for these transports and are 0. */
void test_limits_of_spec(void)
{
	const struct ibv_device_attr attr = attr_of(SPEC);
	uint64_t expected[FIELDS] = {0};

	expected[field_named("device_cap_flags")] = attr.device_cap_flags; /* test_profile */
	for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++)
		expected[field_named(chosen[i].name)] = chosen[i].value;
	for (size_t i = 0; i < FIELDS; i++)
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(expected[i], value_of(&attr, &fields[i]),
						 fields[i].name);
}

/*
 * max_msg_sz as ibv_devinfo prints it: 8 MiB on SoftRoCE of Linux 6.1, and 1 GiB on mlx5
 * (github.com/openucx/ucx/issues/10420).
 */
void test_longest_message(void)
{
	static const uint32_t longest[PROFILES] = {
		[SPEC] = 1u << 31, [RXE_6_1] = 0x800000, [RXE_6_12] = 0x800000, [MLX5] = 1u << 30};
	struct ibv_port_attr attr;

	for (unsigned int i = 0; i < PROFILES; i++) {
		TEST_ASSERT_EQUAL_INT(0, B.query_port(contexts[i], 1, &attr, sizeof(attr)));
		TEST_ASSERT_EQUAL_UINT32_MESSAGE(longest[i], attr.max_msg_sz, names[i]);
	}
}

/*
 * ibv_query_device_ex(3), cq_mod_caps. SoftRoCE has none; those of mlx5 are printed in
 * github.com/openucx/ucx/issues/10430. spec has the largest values of ibv_modify_cq(3).
 */
void test_moderation_of_completions(void)
{
	static const struct ibv_cq_moderation_caps caps[PROFILES] = {
		[SPEC] = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		[MLX5] = {.max_cq_count = 65535, .max_cq_period = 4095},
	};
	struct ibv_device_attr_ex attr;

	for (unsigned int i = 0; i < PROFILES; i++) {
		TEST_ASSERT_EQUAL_INT(0, B.query_device_ex(contexts[i], NULL, &attr, sizeof(attr)));
		TEST_ASSERT_EQUAL_UINT16(caps[i].max_cq_count, attr.cq_mod_caps.max_cq_count);
		TEST_ASSERT_EQUAL_UINT16(caps[i].max_cq_period, attr.cq_mod_caps.max_cq_period);
	}
}

static int create_qp(struct ibv_pd *pd, struct ibv_cq *cq, uint32_t inline_bytes)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_inline_data = inline_bytes},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = B.create_qp(pd, &init);

	if (!qp)
		return errno;
	TEST_ASSERT_TRUE(init.cap.max_inline_data >= inline_bytes);
	return B.destroy_qp(qp);
}

/*
 * No query returns the most inline data, but ibv_create_qp(3) refuses more. SoftRoCE:
 * RXE_MAX_INLINE_DATA of Linux drivers/infiniband/sw/rxe/rxe_param.h, the size of 32 SGEs. mlx5:
 * unsourced.
 */
void test_most_inline_data(void)
{
	static const uint32_t most[PROFILES] = {
		[SPEC] = 1024, [RXE_6_1] = 512, [RXE_6_12] = 512, [MLX5] = 1024};

	for (unsigned int i = 0; i < PROFILES; i++) {
		struct ibv_pd *pd = B.alloc_pd(contexts[i]);
		struct ibv_cq *cq = B.create_cq(contexts[i], 1, NULL, NULL, 0);

		TEST_ASSERT_EQUAL_INT_MESSAGE(0, create_qp(pd, cq, most[i]), names[i]);
		TEST_ASSERT_EQUAL_INT_MESSAGE(EINVAL, create_qp(pd, cq, most[i] + 1), names[i]);
	}
}

/*
 * ibv_modify_srq(3): IBV_SRQ_MAX_WR needs IBV_DEVICE_SRQ_RESIZE. Without it the errno is EINVAL:
 * Linux drivers/infiniband/hw/mlx5/srq.c, mlx5_ib_modify_srq.
 */
void test_srq_is_resized_where_the_flag_says_so(void)
{
	for (unsigned int i = 0; i < PROFILES; i++) {
		const bool can = attr_of(i).device_cap_flags & IBV_DEVICE_SRQ_RESIZE;
		struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
		struct ibv_srq_attr attr = {.max_wr = 8, .srq_limit = 3};
		struct ibv_srq *srq = B.create_srq(B.alloc_pd(contexts[i]), &init);

		TEST_ASSERT_EQUAL_INT(i != MLX5, can);
		TEST_ASSERT_NOT_NULL(srq);
		TEST_ASSERT_EQUAL_INT(can ? 0 : EINVAL,
				      B.modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT));
		TEST_ASSERT_EQUAL_INT(0, B.query_srq(srq, &attr));
		TEST_ASSERT_TRUE(can ? attr.max_wr >= 8 : attr.max_wr == init.attr.max_wr);
		TEST_ASSERT_EQUAL_UINT32(can ? 3 : 0, attr.srq_limit);
	}
}
