/* SPDX-License-Identifier: MIT */
/* The table of hooks, and the rules that SoftRoCE leaves out. */
#include "sim/rxe/private.h"

#include <errno.h>
#include <stdlib.h>

static int attach(struct sim_qp *qp)
{
	if (!qp->rxe)
		qp->rxe = calloc(1, sizeof(*qp->rxe));
	return qp->rxe ? 0 : ENOMEM;
}

static void detach(struct sim_qp *qp)
{
	free(qp->rxe);
	qp->rxe = NULL;
}

/* The quirk that leaves out each rule. */
static const size_t left_out_by[] = {
	[SIM_RULE_EARLY_SENDS_VANISH] = offsetof(struct sim_quirks, refused_sends_stay_queued),
	[SIM_RULE_BAD_WR_NAMED] = offsetof(struct sim_quirks, refused_posts_name_no_wr),
	[SIM_RULE_MESSAGE_LIMIT] = offsetof(struct sim_quirks, message_limit_unchecked),
	[SIM_RULE_MESSAGE_LENGTH] = offsetof(struct sim_quirks, message_lengths_unchecked),
	[SIM_RULE_SENDS_BIND_TYPE_2] = offsetof(struct sim_quirks, type_1_bound_by_sends),
	[SIM_RULE_STATELESS_CHECKED] = offsetof(struct sim_quirks, stateless_modify_unchecked),
	[SIM_RULE_CHANGES_WHILE_DRAINING] = offsetof(struct sim_quirks, draining_refuses_changes),
	[SIM_RULE_RNR_WAIT_SENDS_NOTHING] = offsetof(struct sim_quirks, rnr_naks_stop_nothing),
	[SIM_RULE_RTS_SENDS] = offsetof(struct sim_quirks, rts_starts_nothing),
	[SIM_RULE_PACKET_SIZE] = offsetof(struct sim_quirks, packet_sizes_unchecked),
	[SIM_RULE_ACK_OF_CONNECTION] = offsetof(struct sim_quirks, acks_of_old_connections),
	[SIM_RULE_READ_REPEATED_EXACTLY] = offsetof(struct sim_quirks, repeated_reads_may_differ),
	[SIM_RULE_CONTROLLED_QKEY] = offsetof(struct sim_quirks, high_qkey_is_sent),
	[SIM_RULE_SHORT_RECEIVE_KEPT] = offsetof(struct sim_quirks, short_datagram_receive_fails),
	[SIM_RULE_SRQ_PD] = offsetof(struct sim_quirks, srq_memory_is_of_the_qp),
	[SIM_RULE_OVERRUN_ENDS_QP] = offsetof(struct sim_quirks, overrun_loses_completions),
	[SIM_RULE_RECEIVES_FLUSH] = offsetof(struct sim_quirks, errored_receives_wait),
	[SIM_RULE_OVERRUN_KILLS_CQ] = offsetof(struct sim_quirks, overrun_loses_completions),
	[SIM_RULE_ERRORS_ARE_SOLICITED] = offsetof(struct sim_quirks, errors_are_not_solicited),
	[SIM_RULE_CQ_FLAGS_KNOWN] = offsetof(struct sim_quirks, unknown_cq_flags_taken),
	[SIM_RULE_SRQ_BITS_KNOWN] = offsetof(struct sim_quirks, unknown_srq_bits_taken),
	[SIM_RULE_SRQ_OF_TYPE] = offsetof(struct sim_quirks, srqs_on_uc),
	[SIM_RULE_REAL_SIZES] = offsetof(struct sim_quirks, asked_sizes_told),
	[SIM_RULE_OPERATIONS_KNOWN] = offsetof(struct sim_quirks, undeclared_operations_taken),
	[SIM_RULE_WINDOW_BOUNDS] = offsetof(struct sim_quirks, window_bounds_unchecked),
	[SIM_RULE_WINDOW_RANGE] = offsetof(struct sim_quirks, window_ranges_wrap),
	[SIM_RULE_WINDOW_PD] = offsetof(struct sim_quirks, window_regions_of_any_pd),
	[SIM_RULE_WINDOW_REBOUND] = offsetof(struct sim_quirks, stale_window_rkeys_refused),
	[SIM_RULE_WINDOW_OWNER] = offsetof(struct sim_quirks, windows_invalidated_by_any_qp),
	[SIM_RULE_MULTICAST_LOOPS] = offsetof(struct sim_quirks, multicast_leaves_device),
};

static bool leaves_out(const struct sim_device *device, unsigned int rule)
{
	return *(const bool *)((const char *)&device->quirks + left_out_by[rule]);
}

static bool withholds(const struct sim_qp *qp, enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
		return quirks_of(qp)->no_affiliated_events;
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return quirks_of(qp)->no_last_wqe_event;
	default:
		return false;
	}
}

static const struct sim_hooks hooks = {
	.attach = attach,
	.detach = detach,
	.withholds = withholds,
	.takes_value = rxe_takes_value,
	.ignores_path_state = rxe_ignores_path_state,
	.adapt = rxe_adapt,
	.query = rxe_query,
	.entered = rxe_entered,
	.reset = rxe_reset,
	.fail = rxe_fail,
	.vet_send = rxe_vet_send,
	.posted_in_error = rxe_posted_in_error,
	.turn = rxe_turn,
	.gate = rxe_gate,
	.is_drained = rxe_is_drained,
	.send_failed = rxe_send_failed,
	.send_error_ends = rxe_send_error_ends,
	.repeat_local = rxe_repeat_local,
	.rnr_over = rxe_rnr_over,
	.timer_stands = rxe_timer_stands,
	.retry = rxe_retry,
	.answer = rxe_answer,
	.takes_response = rxe_takes_response,
	.send_completed = rxe_send_completed,
	.judged = rxe_judged,
	.uc_refused = rxe_uc_refused,
	.uc_drops = rxe_uc_drops,
	.rnr_nak = rxe_rnr_nak,
	.acks_at_once = rxe_acks_at_once,
	.atomic_answered = rxe_atomic_answered,
	.recv_completed = rxe_recv_completed,
	.grh = rxe_grh,
	.refused = rxe_refused,
};

/* True if a quirk of the group "bug" is on. */
static bool has_bugs(const struct sim_quirks *quirks)
{
	for (const struct sim_quirk_info *info = sim_quirk_info; info->name; info++)
		if (info->group == SIM_QUIRK_BUG &&
		    *(const bool *)((const char *)quirks + info->offset))
			return true;
	return false;
}

int sim_rxe_give_hooks(struct sim_device *device)
{
	const bool bugs = has_bugs(&device->quirks);
	struct sim_qp *qp;
	uint32_t place = 0;
	int err = 0;

	device->leaves_out = bugs ? leaves_out : NULL;
	device->hooks = bugs ? &hooks : NULL;
	while ((qp = sim_table_next(&device->qps, &place)) && !err)
		err = sim_qp_set_hooks(qp, device->hooks);
	return err;
}
