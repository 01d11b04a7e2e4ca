/* SPDX-License-Identifier: MIT */
#include "sim/profile/profile.h"

#include <string.h>

#define QUIRK(field, text)                                       \
	{                                                        \
#field, text, offsetof(struct sim_quirks, field) \
	}

const struct sim_quirk_info sim_quirk_info[] = {
	QUIRK(posts_ignored_in_wrong_state,
	      "posting to a QP whose state forbids it is taken and ignored, not EINVAL"),
	QUIRK(slots_free_when_completed,
	      "the slot of a WR is free when it has completed, polled or not"),
	QUIRK(wide_numbers_refused, "PSNs and QPNs of more than 24 bits are EINVAL, not masked"),
	QUIRK(retry_ranges_unchecked,
	      "retry_cnt, rnr_retry and min_rnr_timer out of range are taken, and told as given"),
	QUIRK(pkey_index_unchecked, "a P_Key index beyond the table is taken, and means index 0"),
	QUIRK(path_mtu_unchecked, "a path MTU above the port's is taken"),
	QUIRK(retry_7_is_endless, "retry_cnt 7 repeats for ever"),
	QUIRK(overrun_loses_completions,
	      "a completion that does not fit is lost with IBV_EVENT_CQ_ERR each time; the CQ and "
	      "the sender live on, a responder goes to ERR"),
	QUIRK(overrun_ends_polling, "nothing can be polled from a CQ that has overrun"),
	QUIRK(reset_removes_completions,
	      "RESET and destroy take the QP's completions out of its CQs"),
	QUIRK(no_affiliated_events,
	      "QP_FATAL, QP_REQ_ERR, QP_ACCESS_ERR and COMM_EST are never raised"),
	QUIRK(no_last_wqe_event, "QP_LAST_WQE_REACHED is never raised"),
	QUIRK(send_errors_end_qp, "a local send error moves UC and UD to ERR, not SQE"),
	QUIRK(short_receive_is_operation_error,
	      "a message longer than its receive: REM_OP_ERR there, LOC_QP_OP_ERR here"),
	QUIRK(bad_receive_is_operation_error,
	      "a receive whose memory may not be written ends LOC_QP_OP_ERR"),
	QUIRK(bad_lkey_is_operation_error,
	      "a wrong lkey of a send ends LOC_QP_OP_ERR, not LOC_PROT_ERR"),
	QUIRK(bad_lkey_is_flush, "a send with a local error ends WR_FLUSH_ERR"),
	QUIRK(packet_sizes_unchecked, "packets of a SEND of another path MTU are taken"),
	QUIRK(window_bounds_unchecked, "a window reaches all of its region"),
	QUIRK(short_datagram_receive_fails,
	      "a datagram longer than its receive ends it LOC_QP_OP_ERR and the QP in ERR"),
	QUIRK(long_datagrams_fail, "a datagram above the port's MTU ends LOC_LEN_ERR; else it is "
				   "not sent, and succeeds"),
	QUIRK(foreign_requests_accepted,
	      "requests of a QP that is not the one connected to are taken"),
	QUIRK(grh_flag_on_connections, "receives of RC and UC have IBV_WC_GRH"),
	QUIRK(pending_completions_notify,
	      "arming a CQ that has completions gives an event at once"),
	QUIRK(errors_are_not_solicited,
	      "completions in error do not fire a CQ armed for solicited ones"),
	QUIRK(imm_write_receive_is_remote_error,
	      "the receive of a WRITE with immediate that is denied ends REM_ACCESS_ERR, not "
	      "LOC_ACCESS_ERR"),
	QUIRK(ah_keeps_pd_busy, "a PD with an AH is EBUSY"),
	QUIRK(empty_regions_refused, "an MR of no bytes at the beginning of a page is EINVAL"),
	QUIRK(local_write_not_required, "remote write and atomic rights do not need local write"),
	QUIRK(forbidden_opcodes_refused,
	      "a WR that the QP type forbids is EINVAL when posted, not LOC_QP_OP_ERR"),
	QUIRK(empty_accesses_checked, "remote accesses of no bytes are checked as others are"),
	QUIRK(receives_flush_first, "ERR flushes the receives, then the sends"),
	QUIRK(errored_receives_wait,
	      "receives posted in ERR are flushed by the next modify to ERR only"),
	QUIRK(message_limit_unchecked, "messages longer than the port's max_msg_sz are sent"),
	QUIRK(responder_resources_unchecked,
	      "max_dest_rd_atomic may exceed max_qp_rd_atom, and of all QPs max_res_rd_atom"),
	QUIRK(zero_based_type_1_refused, "ibv_bind_mw with IBV_ACCESS_ZERO_BASED is EINVAL"),
	QUIRK(queue_sizes_round_up, "queues hold 2^n - 1 WRs, CQs as many completions"),
	QUIRK(asked_sizes_told,
	      "creating a QP or SRQ answers the sizes that were asked for, not what they hold"),
	QUIRK(refused_posts_name_no_wr,
	      "bad_wr is not set where the state, or an SRQ, forbids posting"),
	QUIRK(drained_event_unasked, "SQ_DRAINED comes whether it was asked for or not"),
	QUIRK(draining_sends_nothing, "in SQD nothing is repeated"),
	QUIRK(rts_starts_nothing, "sends posted in SQD wait in RTS for the next post"),
	QUIRK(wide_qpns_told, "a query tells a dest_qp_num of more than 24 bits as it was given"),
	QUIRK(reads_round_up, "max_rd_atomic and max_dest_rd_atomic become the next power of 2"),
	QUIRK(high_qkey_is_sent, "a Q_Key with its high bit set is sent as it is"),
	QUIRK(own_datagrams_lack_checksum,
	      "the IPv4 header of a datagram to the device that sent it has no checksum"),
	QUIRK(message_lengths_unchecked,
	      "the lengths of a message's SGEs are added in 32 bits, and the sum is not limited"),
	QUIRK(unknown_srq_bits_taken, "bits that modify_srq does not know are ignored"),
	QUIRK(srqs_on_uc, "a UC QP may have an SRQ, whose receives are told of bad keys of writes"),
	QUIRK(srq_memory_is_of_the_qp, "the memory of an SRQ's WRs is of the QP's PD"),
	QUIRK(multicast_leaves_device, "multicast does not reach the device that sent it"),
	QUIRK(invalidation_told_as_checksum,
	      "the receive of a SEND with Invalidate has IBV_WC_IP_CSUM_OK for IBV_WC_WITH_INV"),
	QUIRK(window_rkeys_masked, "a binding takes the low byte of its rkey and ignores the rest"),
	QUIRK(window_ranges_wrap, "a window's address and length are added in 64 bits"),
	QUIRK(window_regions_of_any_pd, "a window may be bound to a region of another PD, and a "
					"window of type 1 by a QP of one"),
	QUIRK(bound_regions_are_einval, "dereg_mr of a region with windows is EINVAL, not EBUSY"),
	QUIRK(unknown_cq_flags_taken, "flags that create_cq_ex does not know are ignored"),
	QUIRK(stateless_modify_unchecked,
	      "a modify without IBV_QP_STATE may set any attribute in any state"),
	QUIRK(inline_shares_room,
	      "inline data and the SGEs of a send have one room: both are told as large as it is"),
	QUIRK(local_regions_have_no_rkey, "the rkey of an MR without remote rights is 0"),
	QUIRK(special_regions_refused,
	      "an MR that is zero-based, on demand or of huge pages is EOPNOTSUPP"),
	QUIRK(sends_tell_immediate,
	      "the completion of a send with immediate has IBV_WC_WITH_IMM, and imm_data 0"),
	QUIRK(atomics_checked_when_posted,
	      "ibv_post_send of an atomic with a misaligned address or less room than 8 bytes is "
	      "EINVAL"),
	QUIRK(reads_without_room_wait,
	      "with max_rd_atomic 0 READs and atomics wait for ever, not LOC_QP_OP_ERR"),
	QUIRK(bad_invalidation_is_operation_error,
	      "a local invalidation of no window ends LOC_QP_OP_ERR, not MW_BIND_ERR"),
	QUIRK(refused_invalidations_acknowledged,
	      "a SEND that invalidates no window succeeds; its receive ends REM_INV_REQ_ERR"),
	QUIRK(undeclared_operations_taken,
	      "a QP may be made for ATOMIC WRITE where the device does not have it"),
	QUIRK(refused_sends_stay_queued,
	      "sends that are EINVAL for the QP's state are in its queue, and run when it is RTS"),
	QUIRK(foreign_ahs_end_sends,
	      "a UD send with an AH of another PD ends LOC_QP_OP_ERR, not EINVAL when posted"),
	QUIRK(type_1_bound_by_sends, "ibv_post_send may bind a window of type 1"),
	QUIRK(rnr_naks_stop_nothing,
	      "after an RNR NAK the requester sends on; what comes behind the gap is answered by a "
	      "sequence NAK, which costs a retry"),
	QUIRK(rnr_waits_time_out,
	      "the timeout runs on while a send waits for a receive, and costs a retry"),
	QUIRK(acks_of_unsent_complete,
	      "an acknowledgement of a PSN that was not sent yet is one of all that was"),
	QUIRK(flushed_receives_are_solicited,
	      "of errors, flushed receives alone fire a CQ armed for solicited completions"),
	QUIRK(cut_writes_jam_uc,
	      "a UC WRITE with immediate in several packets that finds no receive stops the "
	      "responder: all that comes later is dropped"),
	QUIRK(acks_of_old_connections, "duplicates before the first SEND, WRITE or atomic are "
				       "acknowledged with the last PSN of "
				       "the QP's connection before, or 0xffffff"),
	QUIRK(errored_sends_may_wait, "in ERR each post moves the requester's place in the ring on "
				      "by one, and flushes nothing "
				      "where that is the ring's end"),
	QUIRK(repeated_fences_wait_for_all, "a fenced send that is repeated waits for the READs "
					    "and atomics behind it, too, and no "
					    "time runs"),
	QUIRK(stale_window_rkeys_refused,
	      "a binding fails where the rkey of the ibv_mw is not the window's"),
	QUIRK(windows_invalidated_by_any_qp,
	      "a QP invalidates windows of type 2 of another QP, and of another PD"),
	QUIRK(draining_refuses_changes,
	      "while the send queue drains, a change of state other than to ERR is EINVAL"),
	QUIRK(long_read_responses_taken, "a READ takes responses of a larger path MTU"),
	QUIRK(local_errors_end_repeats,
	      "what is before a send with a local error is not repeated, and does not end"),
	QUIRK(odd_bindings_refused,
	      "ibv_post_send of a binding on a UD QP, or with SGEs or immediate data, is EINVAL"),
	QUIRK(room_is_checked_last,
	      "a send that is EINVAL is so too where its queue is full, not ENOMEM"),
	QUIRK(repeated_reads_may_differ,
	      "a READ that comes again may ask for any part of what it asked for at first"),
	QUIRK(repeated_bindings_fail,
	      "a binding behind a send that is repeated is done again, and fails"),
	QUIRK(errors_repeat,
	      "in ERR a request that comes, or a send that is posted, flushes the receives posted "
	      "since, and a send raises QP_LAST_WQE_REACHED again"),
	QUIRK(local_errors_flush_all,
	      "a send with a local error ends the QP at once: what is before it is flushed, too"),
	QUIRK(resets_leave_ghosts,
	      "after a reset an empty RDMA WRITE is sent for each send that had not ended; a UD QP "
	      "ends in ERR instead"),
	QUIRK(path_mig_state_taken, "IBV_QP_PATH_MIG_STATE may be set, and means nothing"),
	QUIRK(atomics_tell_all_bytes, "byte_len of an atomic is that of its SGEs, not 8"),
	QUIRK(repeats_outlive_reset,
	      "a QP that was reset while it repeated ignores sequence NAKs until something is "
	      "acknowledged"),
	{0},
};

bool *sim_quirk_find(struct sim_quirks *quirks, const char *name)
{
	for (const struct sim_quirk_info *info = sim_quirk_info; info->name; info++)
		if (strcmp(info->name, name) == 0)
			return (bool *)((char *)quirks + info->offset);
	return NULL;
}

#define LIMIT(field)                                            \
	{                                                       \
#field, offsetof(struct ibv_device_attr, field) \
	}

static const struct {
	const char *name;
	size_t offset; /* of an int */
} limit_fields[] = {
	LIMIT(max_qp),
	LIMIT(max_qp_wr),
	LIMIT(max_sge),
	LIMIT(max_sge_rd),
	LIMIT(max_cq),
	LIMIT(max_cqe),
	LIMIT(max_mr),
	LIMIT(max_pd),
	LIMIT(max_qp_rd_atom),
	LIMIT(max_res_rd_atom),
	LIMIT(max_qp_init_rd_atom),
	LIMIT(max_mw),
	LIMIT(max_mcast_grp),
	LIMIT(max_mcast_qp_attach),
	LIMIT(max_total_mcast_qp_attach),
	LIMIT(max_ah),
	LIMIT(max_srq),
	LIMIT(max_srq_wr),
	LIMIT(max_srq_sge),
};

int *sim_limit_find(struct ibv_device_attr *limits, const char *name)
{
	for (size_t i = 0; i < sizeof(limit_fields) / sizeof(limit_fields[0]); i++)
		if (strcmp(limit_fields[i].name, name) == 0)
			return (int *)((char *)limits + limit_fields[i].offset);
	return NULL;
}

/* As `ibv_devinfo -v` prints them on rxe, but for max_qp and max_srq, which our tables bound. */
#define RXE_LIMITS                                                                               \
	{                                                                                        \
		.fw_ver = "0.0.0", .max_mr_size = UINT64_MAX, .page_size_cap = 0xfffff000,       \
		.vendor_id = 0xffffff, .max_qp = 262128, .max_qp_wr = 1048576,                   \
		.device_cap_flags = 0x01223c76, .max_sge = 32, .max_sge_rd = 32,                 \
		.max_cq = 1048576, .max_cqe = 32767, .max_mr = 524287, .max_pd = 1048576,        \
		.max_qp_rd_atom = 128, .max_res_rd_atom = 258048, .max_qp_init_rd_atom = 128,    \
		.atomic_cap = IBV_ATOMIC_HCA, .max_mw = 524287, .max_mcast_grp = 8192,           \
		.max_mcast_qp_attach = 56, .max_total_mcast_qp_attach = 458752, .max_ah = 32767, \
		.max_srq = 262143, .max_srq_wr = 1048576, .max_srq_sge = 27, .max_pkeys = 64,    \
		.local_ca_ack_delay = 15,                                                        \
	}

/* Measured on Linux 6.1 and 6.12 with a probe of libibverbs. */
#define RXE_QUIRKS                                                                              \
	.slots_free_when_completed = true, .retry_ranges_unchecked = true,                      \
	.pkey_index_unchecked = true, .retry_7_is_endless = true,                               \
	.overrun_loses_completions = true, .no_affiliated_events = true,                        \
	.send_errors_end_qp = true, .short_receive_is_operation_error = true,                   \
	.bad_receive_is_operation_error = true, .window_bounds_unchecked = true,                \
	.foreign_requests_accepted = true, .grh_flag_on_connections = true,                     \
	.imm_write_receive_is_remote_error = true, .ah_keeps_pd_busy = true,                    \
	.empty_regions_refused = true, .path_mtu_unchecked = true,                              \
	.message_limit_unchecked = true, .responder_resources_unchecked = true,                 \
	.zero_based_type_1_refused = true, .queue_sizes_round_up = true,                        \
	.refused_posts_name_no_wr = true, .drained_event_unasked = true,                        \
	.draining_sends_nothing = true, .wide_qpns_told = true, .reads_round_up = true,         \
	.high_qkey_is_sent = true, .own_datagrams_lack_checksum = true,                         \
	.message_lengths_unchecked = true, .unknown_srq_bits_taken = true, .srqs_on_uc = true,  \
	.srq_memory_is_of_the_qp = true, .multicast_leaves_device = true,                       \
	.invalidation_told_as_checksum = true, .window_rkeys_masked = true,                     \
	.window_ranges_wrap = true, .bound_regions_are_einval = true,                           \
	.unknown_cq_flags_taken = true, .rts_starts_nothing = true, .inline_shares_room = true, \
	.sends_tell_immediate = true, .atomics_checked_when_posted = true,                      \
	.reads_without_room_wait = true, .refused_invalidations_acknowledged = true,            \
	.refused_sends_stay_queued = true, .foreign_ahs_end_sends = true,                       \
	.type_1_bound_by_sends = true, .rnr_naks_stop_nothing = true,                           \
	.acks_of_unsent_complete = true, .acks_of_old_connections = true,                       \
	.cut_writes_jam_uc = true, .errors_are_not_solicited = true,                            \
	.repeated_fences_wait_for_all = true, .stale_window_rkeys_refused = true,               \
	.windows_invalidated_by_any_qp = true, .draining_refuses_changes = true,                \
	.long_read_responses_taken = true, .odd_bindings_refused = true,                        \
	.room_is_checked_last = true, .repeated_reads_may_differ = true,                        \
	.repeated_bindings_fail = true, .path_mig_state_taken = true,                           \
	.atomics_tell_all_bytes = true, .repeats_outlive_reset = true

/* The provider and the kernel's driver have none of these. */
#define RXE_LACKS                                                                \
	(SIM_LACKS_DEVICE_MEMORY | SIM_LACKS_DOMAINS | SIM_LACKS_NULL_REGIONS |  \
	 SIM_LACKS_REREGISTRATION | SIM_LACKS_ON_DEMAND | SIM_LACKS_TIMESTAMPS | \
	 SIM_LACKS_IGNORED_OVERRUN)

/* What `ibv_devinfo -v` prints as GIDTbl there. */
#define RXE_GIDS 1024

/* What `ibv_devinfo -v` prints as max_msg_sz there. */
#define RXE_MESSAGE_BYTES (8u << 20)

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
				.device_cap_flags =
					IBV_DEVICE_CURR_QP_STATE_MOD |
					IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
					IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
					IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
					IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC,
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
				.max_mw = 524287,
				.max_mcast_grp = 8192,
				.max_mcast_qp_attach = 262128,
				.max_total_mcast_qp_attach = 262128,
				.max_srq = 262143,
				.max_srq_wr = 32768,
				.max_srq_sge = 32,
				.max_ah = 262144,
				.max_pkeys = 16,
				.local_ca_ack_delay = 0,
			},
		.max_inline_bytes = 1024,
		.max_message_bytes = SIM_MESSAGE_BYTES_MAX,
		.atomic_write = true,
		.gid_table = 64,
		.roce_v1 = true,
		.moderation = {.max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX},
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
	},
	{
		.name = "rxe-6.1",
		.about = "SoftRoCE of Linux 6.1",
		.limits = RXE_LIMITS,
		.max_inline_bytes = 512,
		.max_message_bytes = RXE_MESSAGE_BYTES,
		.gid_table = RXE_GIDS,
		.lacks = RXE_LACKS,
		.quirks = {RXE_QUIRKS, .bad_lkey_is_operation_error = true,
			   .no_last_wqe_event = true, .packet_sizes_unchecked = true,
			   .short_datagram_receive_fails = true, .receives_flush_first = true,
			   .errored_receives_wait = true, .asked_sizes_told = true,
			   .window_regions_of_any_pd = true,
			   .bad_invalidation_is_operation_error = true,
			   .local_regions_have_no_rkey = true, .undeclared_operations_taken = true,
			   .flushed_receives_are_solicited = true, .errored_sends_may_wait = true,
			   .local_errors_end_repeats = true},
	},
	{
		.name = "rxe-6.12",
		.about = "SoftRoCE of Linux 6.12",
		.limits = RXE_LIMITS,
		.max_inline_bytes = 512,
		.max_message_bytes = RXE_MESSAGE_BYTES,
		/* drivers/infiniband/sw/rxe/rxe_param.h, since Linux 6.2 */
		.atomic_write = true,
		.gid_table = RXE_GIDS,
		.lacks = RXE_LACKS,
		.quirks = {RXE_QUIRKS, .bad_lkey_is_flush = true, .rnr_waits_time_out = true,
			   .stateless_modify_unchecked = true, .special_regions_refused = true,
			   .errored_receives_wait = true, .errors_repeat = true,
			   .local_errors_flush_all = true, .resets_leave_ghosts = true},
	},
	{
		.name = "mlx5",
		.about = "as ConnectX adapters are said to behave (not measured)",
		.limits =
			{
				.fw_ver = "16.35.1012",
				.max_mr_size = UINT64_MAX,
				.page_size_cap = 0xfffffffffffff000,
				.vendor_id = 0x02c9,
				.vendor_part_id = 4119,
				.max_qp = 131072,
				.max_qp_wr = 32768,
				.device_cap_flags =
					IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
					IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_MEM_WINDOW |
					IBV_DEVICE_MEM_WINDOW_TYPE_2B |
					IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC,
				.max_sge = 30,
				.max_sge_rd = 30,
				.max_cq = 262144,
				.max_cqe = 4194303,
				.max_mr = 524287,
				.max_pd = 262144,
				.max_qp_rd_atom = 16,
				.max_res_rd_atom = 2097152,
				.max_qp_init_rd_atom = 16,
				.atomic_cap = IBV_ATOMIC_HCA,
				.max_mw = 524287,
				.max_mcast_grp = 8192,
				.max_mcast_qp_attach = 240,
				.max_total_mcast_qp_attach = 8192 * 240,
				.max_ah = 262144,
				.max_srq = 262143,
				.max_srq_wr = 32767,
				.max_srq_sge = 31,
				.max_pkeys = 128,
				.local_ca_ack_delay = 16,
			},
		.max_inline_bytes = 1024,
		.max_message_bytes = UINT32_C(1) << 30,
		.gid_table = 64,
		.roce_v1 = true,
		/* Linux drivers/infiniband/hw/mlx5/cq.c, include/linux/mlx5/mlx5_ifc.h: 12 bits */
		.moderation = {.max_cq_count = UINT16_MAX, .max_cq_period = 0xfff},
		.create_flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB,
		.quirks = {.reset_removes_completions = true,
			   .posts_ignored_in_wrong_state = true,
			   .long_datagrams_fail = true,
			   .overrun_ends_polling = true,
			   .zero_based_type_1_refused = true},
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
