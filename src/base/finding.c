/* SPDX-License-Identifier: MIT */
/* What vb_sim_report() finds, as sentences. */
#include "src/base/count.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>
#include <verbena/why.h>

/* The reasons whose remedies fit all packets of a cause of vb_sim_drop_cause(). */
static const struct {
	const char *cause;
	enum vb_reason reason;
} remedies[] = {
	{"truncated", VB_WHY_DROP_TRUNCATED},
	{"network_header", VB_WHY_DROP_NETWORK_HEADER},
	{"version", VB_WHY_DROP_VERSION},
	{"opcode", VB_WHY_DROP_OPCODE},
	{"pad", VB_WHY_DROP_PAD},
	{"icrc", VB_WHY_DROP_ICRC},
	{"vcrc", VB_WHY_DROP_VCRC},
	{"no_qp", VB_WHY_DROP_NO_QP},
	{"transport", VB_WHY_DROP_TRANSPORT},
	{"pkey", VB_WHY_DROP_PKEY},
	{"direction", VB_WHY_DROP_DIRECTION},
	{"stranger", VB_WHY_DROP_STRANGER},
	{"qkey", VB_WHY_DROP_QKEY},
	{"no_receive", VB_WHY_DROP_NO_RECEIVE},
	{"short_receive", VB_WHY_DROP_SHORT_RECEIVE},
	{"cut_message", VB_WHY_DROP_CUT_MESSAGE},
	{"mad_source", VB_WHY_DROP_MAD_SOURCE},
	{"mad_length", VB_WHY_DROP_MAD_LENGTH},
	{"mad_class", VB_WHY_DROP_MAD_CLASS},
	{"mad_method", VB_WHY_DROP_MAD_METHOD},
	{"mad_attribute", VB_WHY_DROP_MAD_ATTRIBUTE},
	{"cm_unknown", VB_WHY_DROP_CM_UNKNOWN},
	{"cm_state", VB_WHY_DROP_CM_STATE},
	{"cm_field", VB_WHY_DROP_CM_FIELD},
	{"cm_full", VB_WHY_DROP_CM_FULL},
	{"cm_backlog", VB_WHY_DROP_CM_BACKLOG},
};

/* The other causes have several reasons. */
static const struct {
	const char *cause;
	const char *remedy;
} general_remedies[] = {
	{"address", "give the peer the GID and the LID that the port has now"},
	{"state", "move the QP to RTR before the peer sends, and keep it out of ERR"},
	{"own_multicast", "create the QP without IBV_QP_CREATE_BLOCK_SELF_MCAST_LB if it is to get "
			  "its own packets"},
	{"bad_request", "compare the message with qp_access_flags and path_mtu of the QP"},
	{"access", "compare rkey, address, length and rights with the MR"},
	{"mad_version", "use a peer of base version 1 and class version 2"},
};

static const char *remedy_of(const char *cause)
{
	for (size_t i = 0; i < COUNT(remedies); i++)
		if (strcmp(remedies[i].cause, cause) == 0)
			return vb_reason_info(remedies[i].reason)->remedy;
	for (size_t i = 0; i < COUNT(general_remedies); i++)
		if (strcmp(general_remedies[i].cause, cause) == 0)
			return general_remedies[i].remedy;
	return "see docs/errors.md";
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static const char *were(uint64_t count)
{
	return count == 1 ? "was" : "were";
}

/* What a program leaves unfinished with an object: "3 sends have not completed". */
static const struct {
	enum vb_sim_finding_kind kind;
	const char *thing;
	const char *one, *many; /* the verb behind one thing, and behind several */
	const char *state;
} unfinished[] = {
	{VB_SIM_LEFT_SENDS, "send", "has", "have", "not completed"},
	{VB_SIM_LEFT_RECEIVES, "receive", "is", "are", "still posted"},
	{VB_SIM_LEFT_COMPLETIONS, "completion", "was", "were", "never polled"},
	{VB_SIM_LEFT_ACKS, "completion event", "was", "were",
	 "never acknowledged; call ibv_ack_cq_events()"},
	{VB_SIM_LEFT_ASYNC_ACKS, "asynchronous event", "was", "were",
	 "never acknowledged; call ibv_ack_async_event()"},
};

/* "QP 0x11", "CQ 3" */
static const char *object_text(const struct vb_sim_finding *finding, char *text, size_t size_bytes)
{
	snprintf(text, size_bytes, finding->name[0] == 'Q' ? "%s 0x%x" : "%s %u", finding->name,
		 finding->number);
	return text;
}

/* Writes the sentence of a finding in the table `unfinished`. Returns false if the finding is of another kind. */
static bool unfinished_text(const struct vb_sim_finding *finding, char *text, size_t size_bytes)
{
	const uint64_t count = finding->count;
	char object[48];

	for (size_t i = 0; i < COUNT(unfinished); i++) {
		if (unfinished[i].kind != finding->kind)
			continue;
		snprintf(text, size_bytes, "%s: %" PRIu64 " %s%s %s %s",
			 object_text(finding, object, sizeof(object)), count, unfinished[i].thing,
			 plural(count), count == 1 ? unfinished[i].one : unfinished[i].many,
			 unfinished[i].state);
		return true;
	}
	return false;
}

const char *vb_sim_finding_text(const struct vb_sim_finding *finding, char *text, size_t size_bytes)
{
	const uint64_t count = finding->count;
	const char *s = plural(count);
	char object[48];

	if (unfinished_text(finding, text, size_bytes))
		return text;
	switch (finding->kind) {
	case VB_SIM_LEFT_OBJECTS:
		snprintf(text, size_bytes, "%" PRIu64 " %s%s %s left", count, finding->name, s,
			 count == 1 ? "is" : "are");
		break;
	case VB_SIM_LEFT_QP:
		snprintf(text, size_bytes, "QP 0x%x (%s) is left in %s", finding->number,
			 vb_qp_type_str(finding->qp_type), vb_qp_state_str(finding->qp_state));
		break;
	case VB_SIM_LEFT_EVENTS:
		snprintf(text, size_bytes,
			 "the completion channel with descriptor %u: %" PRIu64
			 " event%s %s never read",
			 finding->number, count, s, were(count));
		break;
	case VB_SIM_LEFT_ASYNC_EVENTS:
		snprintf(text, size_bytes,
			 "%" PRIu64 " asynchronous event%s %s %s never read; call "
			 "ibv_get_async_event()",
			 count, s, vb_event_type_name(finding->event), were(count));
		break;
	case VB_SIM_CQ_OVERRUN:
		snprintf(text, size_bytes,
			 "%s has overrun and takes no more completions; poll it more often, or "
			 "create it with more entries",
			 object_text(finding, object, sizeof(object)));
		break;
	case VB_SIM_DROPS:
		snprintf(text, size_bytes, "%" PRIu64 " packet%s %s dropped: %s; %s", count, s,
			 were(count), finding->about, remedy_of(finding->name));
		break;
	case VB_SIM_COUNTED:
		snprintf(text, size_bytes, "%s: %" PRIu64, finding->name, count);
		break;
	default:
		snprintf(text, size_bytes, "unknown finding %d", (int)finding->kind);
	}
	return text;
}
