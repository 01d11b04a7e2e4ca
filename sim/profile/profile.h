/* SPDX-License-Identifier: MIT */
/*
 * What a kind of adapter can do, and how it behaves where adapters differ.
 */
#ifndef SIM_PROFILE_PROFILE_H
#define SIM_PROFILE_PROFILE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Where adapters differ: each is a question that the engine asks where the behaviour is decided.
 * All false is what the specification says.
 */
struct sim_quirks {
	bool posts_ignored_in_wrong_state;
	bool slots_free_when_completed;
	bool wide_numbers_refused;
	bool retry_ranges_unchecked;
	bool pkey_index_unchecked;
	bool path_mtu_unchecked;
	bool retry_7_is_endless;
	bool overrun_loses_completions;
	bool overrun_ends_polling;
	bool reset_removes_completions;
	bool no_affiliated_events;
	bool no_last_wqe_event;
	bool send_errors_end_qp;
	bool short_receive_is_operation_error;
	bool bad_receive_is_operation_error;
	bool bad_lkey_is_operation_error;
	bool bad_lkey_is_flush;
	bool packet_sizes_unchecked;
	bool window_bounds_unchecked;
	bool short_datagram_receive_fails;
	bool long_datagrams_fail;
	bool foreign_requests_accepted;
	bool grh_flag_on_connections;
	bool pending_completions_notify;
	bool errors_are_not_solicited;
	bool imm_write_receive_is_remote_error;
	bool ah_keeps_pd_busy;
	bool empty_regions_refused;
	bool local_write_not_required;
	bool forbidden_opcodes_refused;
	bool empty_accesses_checked;
	bool receives_flush_first;
	bool errored_receives_wait;
	bool message_limit_unchecked;
	bool responder_resources_unchecked;
	bool zero_based_type_1_refused;
	bool queue_sizes_round_up;
	bool asked_sizes_told;
	bool refused_posts_name_no_wr;
	bool drained_event_unasked;
	bool draining_sends_nothing;
	bool rts_starts_nothing;
	bool wide_qpns_told;
	bool reads_round_up;
	bool high_qkey_is_sent;
	bool own_datagrams_lack_checksum;
	bool message_lengths_unchecked;
	bool unknown_srq_bits_taken;
	bool srqs_on_uc;
	bool srq_memory_is_of_the_qp;
	bool multicast_leaves_device;
	bool invalidation_told_as_checksum;
	bool window_rkeys_masked;
	bool window_ranges_wrap;
	bool window_regions_of_any_pd;
	bool bound_regions_are_einval;
	bool unknown_cq_flags_taken;
	bool stateless_modify_unchecked;
	bool inline_shares_room;
	bool local_regions_have_no_rkey;
	bool special_regions_refused;
	bool sends_tell_immediate;
	bool atomics_checked_when_posted;
	bool reads_without_room_wait;
	bool bad_invalidation_is_operation_error;
	bool refused_invalidations_acknowledged;
	bool undeclared_operations_taken;
	bool refused_sends_stay_queued;
	bool foreign_ahs_end_sends;
	bool type_1_bound_by_sends;
	bool rnr_naks_stop_nothing;
	bool rnr_waits_time_out;
	bool acks_of_unsent_complete;
	bool flushed_receives_are_solicited;
	bool cut_writes_jam_uc;
	bool acks_of_old_connections;
	bool errored_sends_may_wait;
	bool repeated_fences_wait_for_all;
	bool stale_window_rkeys_refused;
	bool windows_invalidated_by_any_qp;
	bool draining_refuses_changes;
	bool long_read_responses_taken;
	bool local_errors_end_repeats;
	bool odd_bindings_refused;
	bool room_is_checked_last;
	bool repeated_reads_may_differ;
	bool repeated_bindings_fail;
	bool errors_repeat;
	bool local_errors_flush_all;
	bool resets_leave_ghosts;
	bool path_mig_state_taken;
	bool atomics_tell_all_bytes;
	bool repeats_outlive_reset;
};

/* What no device exceeds: a DMA length has 31 bits, and 2^31 itself. */
#define SIM_MESSAGE_BYTES_MAX (UINT32_C(1) << 31)

struct sim_quirk_info {
	const char *name;
	const char *about; /* what is so where it holds */
	size_t offset;	   /* in struct sim_quirks */
};

/* One row for each; a NULL name ends it. */
extern const struct sim_quirk_info sim_quirk_info[];

/* The place of a quirk by its name; NULL for a name that there is none of. */
bool *sim_quirk_find(struct sim_quirks *quirks, const char *name);

/* The place of a limit by the name of its field; NULL for a name that there is none of. */
int *sim_limit_find(struct ibv_device_attr *limits, const char *name);

/* Verbs and options of verbs that a kind of adapter does not have. */
enum sim_lack {
	SIM_LACKS_DEVICE_MEMORY = 1 << 0,
	SIM_LACKS_DOMAINS = 1 << 1, /* of threads, and parents of PDs */
	SIM_LACKS_NULL_REGIONS = 1 << 2,
	SIM_LACKS_REREGISTRATION = 1 << 3,
	SIM_LACKS_ON_DEMAND = 1 << 4,
	SIM_LACKS_TIMESTAMPS = 1 << 5, /* of completions, and the clock they are of */
	SIM_LACKS_IGNORED_OVERRUN = 1 << 6,
};

struct sim_profile {
	const char *name;
	const char *about;
	struct ibv_device_attr limits; /* GUIDs are the device's own */
	uint32_t max_inline_bytes;
	uint32_t max_message_bytes; /* of a port: ibv_query_port(3) */
	bool atomic_write;	    /* takes ATOMIC WRITE, and asks for it */
	uint16_t gid_table; /* entries that a port tells; more than SIM_GIDS_MAX stay empty */
	unsigned int lacks; /* enum sim_lack */
	bool roce_v1;	    /* besides v2: each address of Ethernet has a GID of either type */
	struct ibv_cq_moderation_caps moderation; /* zeros: none */
	uint32_t create_flags;			  /* enum ibv_qp_create_flags that it takes */
	struct sim_quirks quirks;
};

/* NULL for a name that there is none of. */
const struct sim_profile *sim_profile_find(const char *name);

/* The known profiles, from 0 up; NULL at the end. */
const struct sim_profile *sim_profile_at(unsigned int index);

#endif
