/* SPDX-License-Identifier: MIT */
/* The settings of queue pairs: defaults, ranges, names, durations. */
#include "test/connect/connect.h"

static struct vb_qp_config config;

void setUp(void)
{
	vb_qp_config_init(&config);
}

void tearDown(void)
{
}

/* The defaults of the two Rust builders: docs/seeds.md. */
void test_the_defaults_are_those_of_the_builders(void)
{
	TEST_ASSERT_EQUAL_UINT(IBV_QPT_RC, config.type);
	TEST_ASSERT_EQUAL_UINT(IBV_ACCESS_LOCAL_WRITE, config.access);
	TEST_ASSERT_EQUAL_UINT(16, config.max_send_wr);
	TEST_ASSERT_EQUAL_UINT(16, config.max_recv_wr);
	TEST_ASSERT_EQUAL_UINT(16, config.max_send_sge);
	TEST_ASSERT_EQUAL_UINT(16, config.max_recv_sge);
	TEST_ASSERT_EQUAL_UINT(0, config.max_inline_data);
	TEST_ASSERT_EQUAL_UINT(16, config.min_rnr_timer);
	TEST_ASSERT_EQUAL_UINT(4, config.timeout);
	TEST_ASSERT_EQUAL_UINT(6, config.retry_cnt);
	TEST_ASSERT_EQUAL_UINT(6, config.rnr_retry);
	TEST_ASSERT_EQUAL_UINT(0, config.sq_psn);
	TEST_ASSERT_EQUAL_UINT(1, config.max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(1, config.max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(VB_PKEY_INDEX_DEFAULT, config.pkey_index);
	TEST_ASSERT_EQUAL_UINT(0, config.service_level);
	TEST_ASSERT_EQUAL_UINT(255, config.hop_limit);
	TEST_ASSERT_NULL(config.srq);
	TEST_ASSERT_NULL(config.qp_context);
}

static const struct {
	enum vb_qp_setting setting;
	const char *name;
	uint64_t least, most; /* the range of accepted values */
} ranges[] = {
	{VB_QP_TYPE, "type", IBV_QPT_RC, IBV_QPT_UD},
	{VB_QP_ACCESS, "access", 0, 15},
	{VB_QP_MAX_SEND_WR, "max_send_wr", 0, 1 << 20},
	{VB_QP_MAX_RECV_WR, "max_recv_wr", 0, 1 << 20},
	{VB_QP_MAX_SEND_SGE, "max_send_sge", 0, 256},
	{VB_QP_MAX_RECV_SGE, "max_recv_sge", 0, 256},
	{VB_QP_MAX_INLINE_DATA, "max_inline_data", 0, 65536},
	{VB_QP_MIN_RNR_TIMER, "min_rnr_timer", 0, 31},
	{VB_QP_TIMEOUT, "timeout", 0, 31},
	{VB_QP_RETRY_CNT, "retry_cnt", 0, 7},
	{VB_QP_RNR_RETRY, "rnr_retry", 0, 7},
	{VB_QP_PATH_MTU, "path_mtu", 0, IBV_MTU_4096},
	{VB_QP_SQ_PSN, "sq_psn", 0, 0xffffff},
	{VB_QP_RQ_PSN, "rq_psn", 0, VB_PSN_OF_PEER},
	{VB_QP_MAX_RD_ATOMIC, "max_rd_atomic", 0, 255},
	{VB_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", 0, 255},
	{VB_QP_PORT_NUM, "port_num", 0, 255},
	{VB_QP_GID_INDEX, "gid_index", 0, 256},
	{VB_QP_PKEY_INDEX, "pkey_index", 0, VB_PKEY_INDEX_DEFAULT},
	{VB_QP_SERVICE_LEVEL, "service_level", 0, 15},
	{VB_QP_TRAFFIC_CLASS, "traffic_class", 0, 255},
	{VB_QP_HOP_LIMIT, "hop_limit", 0, 255},
	{VB_QP_QKEY, "qkey", 0, 0x7fffffff},
};

void test_each_setting_takes_its_range_and_refuses_what_is_beside_it_by_name(void)
{
	TEST_ASSERT_EQUAL_UINT(VB_QP_SETTINGS, sizeof(ranges) / sizeof(ranges[0]));
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		struct vb_qp_config before;

		OK(vb_qp_config_set(&config, ranges[i].setting, ranges[i].least));
		OK(vb_qp_config_set(&config, ranges[i].setting, ranges[i].most));
		before = config;
		FAILS(ERANGE, vb_qp_config_set(&config, ranges[i].setting, ranges[i].most + 1));
		TEST_ASSERT_EQUAL_STRING("invalid input", vb_error_kind_str(vb_last_error_kind()));
		assert_says(ranges[i].name);
		FAILS(ERANGE, vb_qp_config_set(&config, ranges[i].setting, UINT64_MAX));
		FAILS(ERANGE, vb_qp_config_set(&config, ranges[i].setting, 1ull << 32));
		if (ranges[i].least)
			FAILS(ERANGE,
			      vb_qp_config_set(&config, ranges[i].setting, ranges[i].least - 1));
		TEST_ASSERT_EQUAL_MEMORY(&before, &config, sizeof(config));
	}
}

void test_the_sentence_tells_setting_value_and_range(void)
{
	FAILS(ERANGE, vb_qp_config_set(&config, VB_QP_RETRY_CNT, 8));
	TEST_ASSERT_EQUAL_STRING("invalid input: qp_config: retry_cnt 8 is not in 0..7",
				 vb_last_error());
}

void test_a_setting_that_there_is_none_of(void)
{
	FAILS(EINVAL, vb_qp_config_set(&config, VB_QP_SETTINGS, 0));
	FAILS(EINVAL, vb_qp_config_set(&config, (enum vb_qp_setting) - 1, 0));
	TEST_ASSERT_NULL(vb_qp_setting_name(VB_QP_SETTINGS));
	TEST_ASSERT_EQUAL_INT(VB_QP_SETTINGS, vb_qp_setting_named("colour"));
}

void test_names_lead_to_settings_and_back(void)
{
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		TEST_ASSERT_EQUAL_STRING(ranges[i].name, vb_qp_setting_name(ranges[i].setting));
		TEST_ASSERT_EQUAL_INT(ranges[i].setting, vb_qp_setting_named(ranges[i].name));
	}
}

void test_a_set_value_is_in_the_field_of_its_name(void)
{
	OK(vb_qp_config_set(&config, VB_QP_TIMEOUT, 21));
	OK(vb_qp_config_set(&config, VB_QP_RQ_PSN, 77));
	TEST_ASSERT_EQUAL_UINT(21, config.timeout);
	TEST_ASSERT_EQUAL_UINT(77, config.rq_psn);
}

void test_allowing_remote_reads_and_writes_keeps_the_rest(void)
{
	config.access = IBV_ACCESS_REMOTE_ATOMIC;
	vb_qp_config_allow_remote_rw(&config);
	TEST_ASSERT_EQUAL_UINT(IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_REMOTE_READ |
				       IBV_ACCESS_REMOTE_WRITE,
			       config.access);
}

/* man ibv_modify_qp(3), in microseconds. */
static const uint64_t rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
	480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

void test_rnr_timers_and_durations(void)
{
	for (unsigned int i = 0; i < 32; i++) {
		unsigned int timer = 99;
		uint64_t ns = 0;

		OK(vb_rnr_timer_to_ns(i, &ns));
		TEST_ASSERT_EQUAL_UINT64(rnr_us[i] * 1000, ns);
		OK(vb_rnr_timer_from_ns(ns, &timer));
		TEST_ASSERT_EQUAL_UINT(i, timer);
		if (!i)
			continue;
		OK(vb_rnr_timer_from_ns(ns + 1, &timer));
		TEST_ASSERT_EQUAL_UINT((i + 1) % 32, timer);
	}
	TEST_ASSERT_EQUAL_INT(16, VB_RNR_2_56_MS);
	TEST_ASSERT_EQUAL_INT(31, VB_RNR_491_52_MS);
}

void test_rnr_durations_out_of_range(void)
{
	unsigned int timer;
	uint64_t ns;

	FAILS(ERANGE, vb_rnr_timer_from_ns(655360001, &timer));
	FAILS(EINVAL, vb_rnr_timer_to_ns(32, &ns));
	OK(vb_rnr_timer_from_ns(0, &timer));
	TEST_ASSERT_EQUAL_UINT(VB_RNR_0_01_MS, timer);
	FAILS(ERANGE, vb_qp_config_set_min_rnr_timer_ns(&config, 1 * S));
	OK(vb_qp_config_set_min_rnr_timer_ns(&config, 10 * MS));
	TEST_ASSERT_EQUAL_UINT(VB_RNR_10_24_MS, config.min_rnr_timer);
}

void test_ack_timeouts_and_durations(void)
{
	for (unsigned int i = 1; i < 32; i++) {
		unsigned int timeout = 99;
		uint64_t ns = 0;

		OK(vb_ack_timeout_to_ns(i, &ns));
		TEST_ASSERT_EQUAL_UINT64(4096ull << i, ns);
		OK(vb_ack_timeout_from_ns(ns, &timeout));
		TEST_ASSERT_EQUAL_UINT(i, timeout);
		if (i == 31)
			FAILS(ERANGE, vb_ack_timeout_from_ns(ns + 1, &timeout));
		else
			OK(vb_ack_timeout_from_ns(ns + 1, &timeout));
		if (i < 31)
			TEST_ASSERT_EQUAL_UINT(i + 1, timeout);
	}
}

void test_an_ack_timeout_for_ever_is_zero(void)
{
	unsigned int timeout = 99;
	uint64_t ns = 0;

	OK(vb_ack_timeout_to_ns(0, &ns));
	TEST_ASSERT_EQUAL_UINT64(VB_FOREVER, ns);
	OK(vb_ack_timeout_from_ns(VB_FOREVER, &timeout));
	TEST_ASSERT_EQUAL_UINT(0, timeout);
	OK(vb_ack_timeout_from_ns(0, &timeout));
	TEST_ASSERT_EQUAL_UINT(1, timeout);
	FAILS(EINVAL, vb_ack_timeout_to_ns(32, &ns));
	FAILS(ERANGE, vb_qp_config_set_timeout_ns(&config, VB_FOREVER - 1));
	OK(vb_qp_config_set_timeout_ns(&config, 60 * MS));
	TEST_ASSERT_EQUAL_UINT(14, config.timeout);
}

void test_errors_are_sorted(void)
{
	static const struct {
		int err;
		enum vb_error_kind kind;
		const char *name;
	} wanted[] = {
		{0, VB_ERROR_NONE, "no error"},
		{EINVAL, VB_ERROR_INVALID_INPUT, "invalid input"},
		{ERANGE, VB_ERROR_INVALID_INPUT, "invalid input"},
		{EPROTO, VB_ERROR_INVALID_INPUT, "invalid input"},
		{ENOMEM, VB_ERROR_RESOURCE, "resource"},
		{EMFILE, VB_ERROR_RESOURCE, "resource"},
		{EPERM, VB_ERROR_PERMISSION, "permission"},
		{EACCES, VB_ERROR_PERMISSION, "permission"},
		{ENOSYS, VB_ERROR_DRIVER, "driver"},
		{EIO, VB_ERROR_DRIVER, "driver"},
		{ETIMEDOUT, VB_ERROR_DRIVER, "driver"},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		TEST_ASSERT_EQUAL_INT(wanted[i].kind, vb_error_kind(wanted[i].err));
		TEST_ASSERT_EQUAL_STRING(wanted[i].name, vb_error_kind_str(wanted[i].kind));
	}
}
