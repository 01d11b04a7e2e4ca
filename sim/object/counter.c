/* SPDX-License-Identifier: MIT */
/*
 * sim_counter_info: names and order are those of rxe_counter_descs in Linux drivers/infiniband/sw/rxe/
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

/* The checks that SoftRoCE has are in Linux drivers/infiniband/sw/rxe/: rxe_recv.c, rxe_rcv and
 * hdr_check; rxe_icrc.c; rxe_resp.c. */
const struct sim_discard_info sim_discard_info[SIM_DISCARDS] = {
	[SIM_DISCARD_TRUNCATED] = {"truncated", "the frame is shorter than its headers say"},
	[SIM_DISCARD_NETWORK_HEADER] =
		{"network_header",
		 "the headers before the BTH are not those of RoCE or InfiniBand"},
	[SIM_DISCARD_VERSION] = {"version", "the transport header version (TVer) is not 0"},
	[SIM_DISCARD_OPCODE] = {"opcode", "the opcode is reserved"},
	[SIM_DISCARD_PAD] = {"pad", "the pad count does not fit the payload"},
	[SIM_DISCARD_ICRC] = {"icrc", "the ICRC is wrong"},
	[SIM_DISCARD_VCRC] = {"vcrc", "the VCRC is wrong"},
	[SIM_DISCARD_ADDRESS] = {"address", "the port does not have the destination GID or LID"},
	[SIM_DISCARD_NO_QP] = {"no_qp", "the port has no QP with the destination QPN"},
	[SIM_DISCARD_TRANSPORT] = {"transport", "the opcode is of another QP type"},
	[SIM_DISCARD_PKEY] = {"pkey", "the P_Key does not match the QP's"},
	[SIM_DISCARD_STATE] = {"state", "the state of the QP takes no such packet"},
	[SIM_DISCARD_DIRECTION] =
		{"direction", "a request came to an XRC initiator, or an answer to an XRC target"},
	[SIM_DISCARD_STRANGER] = {"stranger", "the source is not the peer of the connection"},
	[SIM_DISCARD_OWN_MULTICAST] = {"own_multicast",
				       "the QP blocks multicast packets that it has sent"},
	[SIM_DISCARD_QKEY] = {"qkey", "the Q_Key is not the QP's"},
	[SIM_DISCARD_NO_RECEIVE] = {"no_receive", "UD and UC: no receive is posted"},
	[SIM_DISCARD_SHORT_RECEIVE] = {"short_receive", "UD: the receive is too short"},
	[SIM_DISCARD_CUT_MESSAGE] = {"cut_message",
				     "UC: an earlier packet of the message was lost or dropped"},
	[SIM_DISCARD_BAD_REQUEST] =
		{"bad_request", "UC: the opcode order, a length or the access flags are wrong"},
	[SIM_DISCARD_ACCESS] = {"access", "UC: the memory does not allow the access"},
	[SIM_DISCARD_MAD_SOURCE] = {"mad_source", "QP 1: the message is not from a QP 1"},
	[SIM_DISCARD_MAD_LENGTH] = {"mad_length", "QP 1: the message has not 256 bytes"},
	[SIM_DISCARD_MAD_VERSION] = {"mad_version",
				     "QP 1: the base version or the class version is unknown"},
	[SIM_DISCARD_MAD_CLASS] =
		{"mad_class", "QP 1: the management class is not that of the connection manager"},
	[SIM_DISCARD_MAD_METHOD] = {"mad_method", "QP 1: the method is not Send"},
	[SIM_DISCARD_MAD_ATTRIBUTE] = {"mad_attribute", "QP 1: no message has the attribute ID"},
	[SIM_DISCARD_CM_UNKNOWN] = {"cm_unknown",
				    "connection manager: no communication has the message's IDs"},
	[SIM_DISCARD_CM_STATE] =
		{"cm_state",
		 "connection manager: the communication's state has no use for the message"},
	[SIM_DISCARD_CM_FIELD] = {"cm_field",
				  "connection manager: a field of the message is wrong"},
	[SIM_DISCARD_CM_FULL] = {"cm_full",
				 "connection manager: too many messages or communications wait"},
	[SIM_DISCARD_CM_BACKLOG] =
		{"cm_backlog", "connection manager: the listener's backlog has no room for a REQ"},
};

bool sim_discard_read(const struct sim_counters *counters, const char *name, uint64_t *value)
{
	for (unsigned int i = 1; i < SIM_DISCARDS; i++)
		if (strcmp(sim_discard_info[i].name, name) == 0) {
			*value = counters->discarded[i];
			return true;
		}
	return false;
}

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
