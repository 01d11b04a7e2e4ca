/* SPDX-License-Identifier: MIT */
/*
 * Names and order are those of rxe_counter_descs in Linux drivers/infiniband/sw/rxe/
 * rxe_hw_counters.c. The comment of each row says where SoftRoCE counts.
 */
#include "sim/object/counter.h"

#include <string.h>

#define COUNTED(field)	   .counter = offsetof(struct sim_counters, field)
#define REDUCED(field, by) COUNTED(field), .less = offsetof(struct sim_counters, by)

const struct sim_counter_info sim_counter_info[] = {
	/* rxe_net.c, rxe_xmit_packet: behind the error that is send_err. */
	{.name = "sent_pkts",
	 .about = "packets that left a port",
	 REDUCED(sent_packets, unsent_packets)},
	/* rxe_recv.c, rxe_rcv: behind the checks of header, QP, keys and ICRC. */
	{.name = "rcvd_pkts",
	 .about = "packets that came to a QP or group that takes them",
	 REDUCED(received_packets, refused_packets)},
	/* rxe_resp.c, check_psn. */
	{.name = "duplicate_request",
	 .about = "requests that came again",
	 COUNTED(duplicate_requests)},
	/* rxe_resp.c, check_psn: not while a NAK is outstanding. */
	{.name = "out_of_seq_request",
	 .about = "requests behind a gap that were answered by a NAK",
	 COUNTED(sequence_naks_sent)},
	/* rxe_comp.c, check_ack. */
	{.name = "rcvd_rnr_err", .about = "RNR NAKs received", COUNTED(rnr_naks_received)},
	/* rxe_resp.c, rxe_responder. */
	{.name = "send_rnr_err", .about = "RNR NAKs sent", COUNTED(rnr_naks_sent)},
	/* rxe_comp.c, check_ack: where the PSN is ahead of what was acknowledged. */
	{.name = "rcvd_seq_err",
	 .about = "sequence NAKs received that acknowledged the first part of a message",
	 COUNTED(advancing_naks_received)},
	/* rxe_comp.c, rxe_comp_queue_pkt: a response that waits for the completer. */
	{.name = "ack_deferred", .about = "always 0: a response is done when it comes"},
	/* rxe_comp.c, rxe_completer: this counter and the next two. */
	{.name = "retry_exceeded_err",
	 .about = "sends that ended with RETRY_EXC_ERR",
	 COUNTED(retries_exceeded)},
	{.name = "retry_rnr_exceeded_err",
	 .about = "sends that ended with RNR_RETRY_EXC_ERR",
	 COUNTED(rnr_retries_exceeded)},
	{.name = "completer_retry_err",
	 .about = "times that a requester went back after a timeout, a NAK or a lost response",
	 COUNTED(retries)},
	/* rxe_net.c, rxe_xmit_packet. */
	{.name = "send_err",
	 .about = "packets that did not leave their port: it was down, or the device dead",
	 COUNTED(unsent_packets)},
	/* rxe_net.c, rxe_port_down. */
	{.name = "link_downed", .about = "times that a port went down", COUNTED(links_downed)},
	/* rxe_comp.c, do_complete: whatever the status, signalled or not. */
	{.name = "rdma_sends",
	 .about = "SENDs completed, flushed ones and unsignalled ones too",
	 COUNTED(completed[IBV_WC_SEND])},
	/* rxe_resp.c, do_complete. */
	{.name = "rdma_recvs",
	 .about = "receives completed with success",
	 COUNTED(receives_completed)},
	{0},
};

static uint64_t value_at(const struct sim_counters *counters, size_t offset)
{
	return *(const uint64_t *)((const char *)counters + offset);
}

bool sim_counter_read(const struct sim_counters *counters, const char *name, uint64_t *value)
{
	const struct sim_counter_info *info = sim_counter_info;

	while (info->name && strcmp(info->name, name) != 0)
		info++;
	if (!info->name)
		return false;
	*value = value_at(counters, info->counter) - value_at(counters, info->less);
	return true;
}
