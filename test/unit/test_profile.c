/* SPDX-License-Identifier: MIT */
#include "sim/profile/profile.h"
#include "unity.h"

#include <ctype.h>
#include <string.h>

void setUp(void)
{
}

void tearDown(void)
{
}

void test_spec_is_the_first(void)
{
	TEST_ASSERT_NOT_NULL(sim_profile_at(0));
	TEST_ASSERT_EQUAL_STRING("spec", sim_profile_at(0)->name);
	TEST_ASSERT_EQUAL_PTR(sim_profile_at(0), sim_profile_find("spec"));
}

void test_unknown_names(void)
{
	TEST_ASSERT_NULL(sim_profile_find("no-such"));
	TEST_ASSERT_NULL(sim_profile_find(""));
	TEST_ASSERT_NULL(sim_profile_find("SPEC"));
	TEST_ASSERT_NULL(sim_profile_at(1000));
}

/*
 * Each profile can be found, has a description, and has limits that fit into the engine's tables.
 */
void test_every_profile_is_whole(void)
{
	const struct sim_profile *profile;

	for (unsigned int i = 0; (profile = sim_profile_at(i)); i++) {
		const struct ibv_device_attr *limits = &profile->limits;

		TEST_ASSERT_EQUAL_PTR(profile, sim_profile_find(profile->name));
		TEST_ASSERT_TRUE(profile->about && *profile->about);
		TEST_ASSERT_TRUE(limits->max_qp > 0 && limits->max_qp <= (1 << 18) - 16);
		TEST_ASSERT_TRUE(limits->max_mr > 0 && limits->max_mr < 1 << 19);
		TEST_ASSERT_TRUE(limits->max_sge > 0 && limits->max_sge <= 32);
		TEST_ASSERT_TRUE(limits->max_qp_wr > 0 && limits->max_cqe > 0);
		/* max_rd_atomic and max_dest_rd_atomic are bytes in struct ibv_qp_attr. */
		TEST_ASSERT_TRUE(limits->max_qp_rd_atom > 0 && limits->max_qp_rd_atom < 256);
		TEST_ASSERT_TRUE(limits->max_qp_init_rd_atom > 0 &&
				 limits->max_qp_init_rd_atom < 256);
		TEST_ASSERT_TRUE(limits->max_pkeys > 0 && limits->max_cq > 0 && limits->max_ah > 0);
		/* The transport allows 2 GiB, adapters 1 GiB, and rxe reports 8 MiB. */
		TEST_ASSERT_TRUE(profile->max_message_bytes == 0x80000000 ||
				 profile->max_message_bytes == 0x40000000 ||
				 (profile->max_message_bytes == 0x800000 &&
				  profile->quirks->message_limit_unchecked));
	}
}

static const struct sim_profile *find(const char *name)
{
	const struct sim_profile *profile = sim_profile_find(name);

	TEST_ASSERT_NOT_NULL(profile);
	return profile;
}

static unsigned int quirks_of(const struct sim_profile *profile)
{
	const bool *quirks = (const bool *)profile->quirks;
	unsigned int count = 0;

	for (size_t i = 0; i < sizeof(*profile->quirks) / sizeof(bool); i++)
		count += quirks[i];
	return count;
}

void test_every_quirk_has_a_row(void)
{
	struct sim_quirks quirks = {0};
	bool *fields = (bool *)&quirks;
	size_t count = 0;

	for (const struct sim_quirk_info *info = sim_quirk_info; info->name; info++) {
		TEST_ASSERT_EQUAL_PTR(fields + info->offset, sim_quirk_find(&quirks, info->name));
		TEST_ASSERT_FALSE_MESSAGE(fields[info->offset], info->name);
		fields[info->offset] = true;
		count++;
	}
	TEST_ASSERT_EQUAL_UINT(sizeof(quirks) / sizeof(bool), count);
	TEST_ASSERT_NULL(sim_quirk_find(&quirks, "no_such"));
	TEST_ASSERT_NULL(sim_quirk_find(&quirks, ""));
}

/* A text for people: a sentence of its own, without the words that make a riddle of it. */
static void check_text(const char *text, const char *name)
{
	static const char *const riddles[] = {"told",	    "what is so",    "there is none of",
					      "that which", "of those that", "in its turn",
					      "it goes on", "as it is"};

	TEST_ASSERT_TRUE_MESSAGE(text && strlen(text) > 10, name);
	TEST_ASSERT_EQUAL_INT_MESSAGE('.', text[strlen(text) - 1], name);
	TEST_ASSERT_NULL_MESSAGE(strstr(text, "  "), name);
	for (size_t i = 0; i < sizeof(riddles) / sizeof(riddles[0]); i++)
		TEST_ASSERT_NULL_MESSAGE(strcasestr(text, riddles[i]), name);
}

void test_every_quirk_has_plain_texts(void)
{
	for (const struct sim_quirk_info *info = sim_quirk_info; info->name; info++) {
		check_text(info->about, info->name);
		TEST_ASSERT_TRUE_MESSAGE(isupper((unsigned char)*info->about), info->name);
		check_text(info->right, info->name);
		TEST_ASSERT_TRUE_MESSAGE(isupper((unsigned char)*info->right) ||
						 !strncmp(info->right, "rxe ", 4),
					 info->name);
	}
}

/* The profile spec has no quirk. */
void test_spec_has_no_quirk(void)
{
	TEST_ASSERT_EQUAL_UINT(0, quirks_of(find("spec")));
}

/* The capability flags of spec: ibv_query_device(3). */
void test_flags_of_spec(void)
{
	static const unsigned int flags[] = {
		IBV_DEVICE_CURR_QP_STATE_MOD,
		IBV_DEVICE_PORT_ACTIVE_EVENT,
		IBV_DEVICE_SYS_IMAGE_GUID,
		IBV_DEVICE_RC_RNR_NAK_GEN,
		IBV_DEVICE_SRQ_RESIZE,
		IBV_DEVICE_MEM_WINDOW,
		IBV_DEVICE_MEM_WINDOW_TYPE_2B,
		IBV_DEVICE_MEM_MGT_EXTENSIONS,
		IBV_DEVICE_XRC,
	};
	const struct ibv_device_attr *limits = &find("spec")->limits;

	for (unsigned int i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		TEST_ASSERT_EQUAL_HEX32(flags[i], limits->device_cap_flags & flags[i]);
	TEST_ASSERT_FALSE(limits->device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG);
	TEST_ASSERT_EQUAL_INT(IBV_ATOMIC_HCA, limits->atomic_cap);
}

/* All quirks of SoftRoCE: of Linux 6.1 and 6.12 as measured, and of one of them. */
static const char *const on_rxe[] = {"acks_of_old_connections",
				     "acks_of_unsent_complete",
				     "atomics_checked_when_posted",
				     "atomics_tell_all_bytes",
				     "bad_receive_is_operation_error",
				     "bindings_leave_mw_rkey",
				     "bound_regions_are_einval",
				     "cut_writes_jam_uc",
				     "drained_event_unasked",
				     "draining_refuses_changes",
				     "draining_sends_nothing",
				     "empty_regions_refused",
				     "errored_receives_wait",
				     "errors_are_not_solicited",
				     "foreign_ahs_end_sends",
				     "grh_flag_on_connections",
				     "high_qkey_is_sent",
				     "imm_write_receive_is_remote_error",
				     "inline_shares_room",
				     "invalidation_told_as_checksum",
				     "long_read_responses_taken",
				     "message_lengths_unchecked",
				     "message_limit_unchecked",
				     "multicast_leaves_device",
				     "no_affiliated_events",
				     "odd_bindings_refused",
				     "overrun_loses_completions",
				     "own_datagrams_lack_checksum",
				     "path_mig_state_taken",
				     "path_mtu_unchecked",
				     "pkey_index_unchecked",
				     "queue_sizes_round_up",
				     "reads_round_up",
				     "reads_without_room_wait",
				     "refused_invalidations_acknowledged",
				     "refused_posts_name_no_wr",
				     "refused_sends_stay_queued",
				     "repeated_bindings_fail",
				     "repeated_fences_wait_for_all",
				     "repeated_reads_may_differ",
				     "repeats_outlive_reset",
				     "responder_resources_unchecked",
				     "retry_7_is_endless",
				     "retry_ranges_unchecked",
				     "rnr_naks_stop_nothing",
				     "room_is_checked_last",
				     "rts_starts_nothing",
				     "send_errors_end_qp",
				     "sends_tell_immediate",
				     "short_receive_is_operation_error",
				     "slots_free_when_completed",
				     "srq_memory_is_of_the_qp",
				     "srqs_on_uc",
				     "stale_window_rkeys_refused",
				     "timers_tick",
				     "type_1_bound_by_sends",
				     "unknown_cq_flags_taken",
				     "unknown_srq_bits_taken",
				     "wide_qpns_told",
				     "window_bounds_unchecked",
				     "window_ranges_wrap",
				     "windows_invalidated_by_any_qp",
				     NULL};
static const char *const on_rxe_6_1[] = {"asked_sizes_told",
					 "bad_invalidation_is_operation_error",
					 "bad_lkey_is_operation_error",
					 "errored_sends_may_wait",
					 "flushed_receives_are_solicited",
					 "local_errors_end_repeats",
					 "local_regions_have_no_rkey",
					 "no_last_wqe_event",
					 "packet_sizes_unchecked",
					 "receives_flush_first",
					 "short_datagram_receive_fails",
					 "undeclared_operations_taken",
					 "window_regions_of_any_pd",
					 NULL};
static const char *const on_rxe_6_12[] = {"bad_lkey_is_flush",		"errors_repeat",
					  "local_errors_flush_all",	"resets_leave_ghosts",
					  "rnr_waits_time_out",		"special_regions_refused",
					  "stateless_modify_unchecked", NULL};
/* All quirks that ConnectX adapters are said to have. */
static const char *const on_mlx5[] = {"ack_timeout_floor",
				      "ahs_in_user_space",
				      "bindings_leave_mw_rkey",
				      "first_timeout_repeats_nothing",
				      "keys_are_equal",
				      "long_datagrams_fail",
				      "overrun_ends_polling",
				      "pending_completions_notify",
				      "posts_ignored_in_wrong_state",
				      "reset_removes_completions",
				      "sl_is_packet_type",
				      "writes_checked_by_packet",
				      NULL};

static const char *const on_hostile[] = {"acks_tell_credits",
					 "answers_come_late",
					 "completions_come_late",
					 "default_pkey_is_last",
					 "first_attempts_find_no_receive",
					 "gids_have_holes",
					 "lids_are_high",
					 "numbers_are_scattered",
					 "packets_overtake",
					 "sizes_are_odd",
					 "writes_end_first",
					 NULL};

/* Returns how many quirks the list has; the profile has each of them. */
static unsigned int expect_quirks(const char *name, const char *const *quirks)
{
	struct sim_quirks have = *find(name)->quirks;
	unsigned int count = 0;

	for (; quirks[count]; count++) {
		const bool *quirk = sim_quirk_find(&have, quirks[count]);

		TEST_ASSERT_TRUE_MESSAGE(quirk && *quirk, quirks[count]);
	}
	return count;
}

/* A profile has the quirks of its lists, and no other. */
void test_quirks_of_profiles(void)
{
	TEST_ASSERT_EQUAL_UINT(quirks_of(find("rxe-6.1")),
			       expect_quirks("rxe-6.1", on_rxe) +
				       expect_quirks("rxe-6.1", on_rxe_6_1));
	TEST_ASSERT_EQUAL_UINT(quirks_of(find("rxe-6.12")),
			       expect_quirks("rxe-6.12", on_rxe) +
				       expect_quirks("rxe-6.12", on_rxe_6_12));
	TEST_ASSERT_EQUAL_UINT(quirks_of(find("mlx5")), expect_quirks("mlx5", on_mlx5));
	TEST_ASSERT_EQUAL_UINT(quirks_of(find("hostile")), expect_quirks("hostile", on_hostile));
}

/* ibv_devinfo -v of SoftRoCE, except max_qp and max_srq, which the engine's tables limit. */
void test_limits_of_rxe(void)
{
	static const char *const names[] = {"rxe-6.1", "rxe-6.12"};

	for (unsigned int i = 0; i < 2; i++) {
		const struct ibv_device_attr *limits = &find(names[i])->limits;

		TEST_ASSERT_EQUAL_STRING("0.0.0", limits->fw_ver);
		TEST_ASSERT_EQUAL_HEX64(UINT64_MAX, limits->max_mr_size);
		TEST_ASSERT_EQUAL_HEX64(0xfffff000, limits->page_size_cap);
		TEST_ASSERT_EQUAL_HEX32(0xffffff, limits->vendor_id);
		TEST_ASSERT_EQUAL_HEX32(0x01223c76, limits->device_cap_flags);
		TEST_ASSERT_EQUAL_INT(1048576, limits->max_qp_wr);
		TEST_ASSERT_EQUAL_INT(32, limits->max_sge);
		TEST_ASSERT_EQUAL_INT(32, limits->max_sge_rd);
		TEST_ASSERT_EQUAL_INT(1048576, limits->max_cq);
		TEST_ASSERT_EQUAL_INT(32767, limits->max_cqe);
		TEST_ASSERT_EQUAL_INT(524287, limits->max_mr);
		TEST_ASSERT_EQUAL_INT(1048576, limits->max_pd);
		TEST_ASSERT_EQUAL_INT(128, limits->max_qp_rd_atom);
		TEST_ASSERT_EQUAL_INT(258048, limits->max_res_rd_atom);
		TEST_ASSERT_EQUAL_INT(128, limits->max_qp_init_rd_atom);
		TEST_ASSERT_EQUAL_INT(IBV_ATOMIC_HCA, limits->atomic_cap);
		TEST_ASSERT_EQUAL_INT(524287, limits->max_mw);
		TEST_ASSERT_EQUAL_INT(8192, limits->max_mcast_grp);
		TEST_ASSERT_EQUAL_INT(56, limits->max_mcast_qp_attach);
		TEST_ASSERT_EQUAL_INT(458752, limits->max_total_mcast_qp_attach);
		TEST_ASSERT_EQUAL_INT(32767, limits->max_ah);
		TEST_ASSERT_EQUAL_INT(1048576, limits->max_srq_wr);
		TEST_ASSERT_EQUAL_INT(27, limits->max_srq_sge);
		TEST_ASSERT_EQUAL_INT(64, limits->max_pkeys);
		TEST_ASSERT_EQUAL_INT(15, limits->local_ca_ack_delay);
		TEST_ASSERT_EQUAL_HEX32(0x800000, find(names[i])->max_message_bytes);
	}
}

/* No status is forgotten in the table, and each row has its own status and cause. */
void test_vendor_codes_of_every_status(void)
{
	static const enum ibv_wc_status statuses[] = {
		IBV_WC_LOC_LEN_ERR,    IBV_WC_LOC_QP_OP_ERR,   IBV_WC_LOC_PROT_ERR,
		IBV_WC_WR_FLUSH_ERR,   IBV_WC_MW_BIND_ERR,     IBV_WC_BAD_RESP_ERR,
		IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR,
		IBV_WC_REM_OP_ERR,     IBV_WC_RETRY_EXC_ERR,   IBV_WC_RNR_RETRY_EXC_ERR,
	};
	const struct sim_vendor_err *row, *other;
	size_t i;

	for (i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		for (row = sim_vendor_errs; row->source; row++)
			if (row->status == statuses[i] && row->cause == SIM_CAUSE_ANY)
				break;
		TEST_ASSERT_NOT_NULL(row->source);
	}
	for (row = sim_vendor_errs; row->source; row++)
		for (other = sim_vendor_errs; other != row; other++)
			TEST_ASSERT_FALSE(row->status == other->status &&
					  row->cause == other->cause);
}

void test_vendor_code_of_a_cause(void)
{
	TEST_ASSERT_EQUAL_HEX32(0x52,
				sim_vendor_err(SIM_CODES_MLX5, IBV_WC_LOC_PROT_ERR, SIM_CAUSE_KEY));
	TEST_ASSERT_EQUAL_HEX32(0x51,
				sim_vendor_err(SIM_CODES_MLX5, IBV_WC_LOC_PROT_ERR, SIM_CAUSE_ANY));
	TEST_ASSERT_EQUAL_HEX32(
		0xf5, sim_vendor_err(SIM_CODES_MLX5, IBV_WC_WR_FLUSH_ERR, SIM_CAUSE_FIRST_FLUSH));
	/* A cause that its status does not have. */
	TEST_ASSERT_EQUAL_HEX32(
		0x88, sim_vendor_err(SIM_CODES_MLX5, IBV_WC_REM_ACCESS_ERR, SIM_CAUSE_KEY));
	TEST_ASSERT_EQUAL_HEX32(
		0, sim_vendor_err(SIM_CODES_RXE, IBV_WC_REM_ACCESS_ERR, SIM_CAUSE_ANY));
	TEST_ASSERT_EQUAL_HEX32(
		0, sim_vendor_err(SIM_CODES_SPEC, IBV_WC_WR_FLUSH_ERR, SIM_CAUSE_FIRST_FLUSH));
}
