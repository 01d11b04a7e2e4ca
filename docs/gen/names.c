/* SPDX-License-Identifier: MIT */
#include "docs/gen/names.h"

#include "sim/wire/opcode.h"
#include "sim/wire/packet.h"

#include <assert.h>
#include <string.h>
#include <verbena/verbs.h>

const struct bit_name header_names[] = {
	{SIM_OP_RDETH, "RDETH"},
	{SIM_OP_DETH, "DETH"},
	{SIM_OP_XRCETH, "XRCETH"},
	{SIM_OP_RETH, "RETH"},
	{SIM_OP_ATOMICETH, "AtomicETH"},
	{SIM_OP_AETH, "AETH"},
	{SIM_OP_ATOMICACKETH, "AtomicAckETH"},
	{SIM_OP_IMMDT, "ImmDt"},
	{SIM_OP_IETH, "IETH"},
	{0},
};

const struct bit_name kind_names[] = {
	{SIM_OP_SEND, "send"},
	{SIM_OP_WRITE, "write"},
	{SIM_OP_READ, "read"},
	{SIM_OP_ATOMIC, "atomic"},
	{SIM_OP_READ_RESPONSE, "read response"},
	{SIM_OP_ATOMIC_ACK, "atomic response"},
	{SIM_OP_ACK, "acknowledge"},
	{SIM_OP_RESYNC, "resync"},
	{SIM_OP_CNP, "congestion"},
	{0},
};

static const struct bit_name nak_names[] = {
	{SIM_AETH_RNR_NAK, "RNR"},
	{SIM_NAK_PSN_SEQUENCE, "PSN sequence error"},
	{SIM_NAK_INVALID_REQUEST, "invalid request"},
	{SIM_NAK_REMOTE_ACCESS, "remote access error"},
	{SIM_NAK_REMOTE_OPERATION, "remote operational error"},
	{SIM_NAK_INVALID_RD, "invalid RD request"},
	{0},
};

/* Asserts that <verbena/verbs.h> knows a value of the engine's tables. */
static const char *known(const char *name)
{
	assert(strcmp(name, "unknown") != 0);
	return name;
}

const char *wr_name(unsigned int wr_opcode)
{
	return known(vb_wr_opcode_str((enum ibv_wr_opcode)wr_opcode));
}

const char *wc_opcode_name(unsigned int wc_opcode)
{
	return known(vb_wc_opcode_str((enum ibv_wc_opcode)wc_opcode));
}

const char *status_name(enum ibv_wc_status status)
{
	return known(vb_wc_status_name(status)) + strlen("IBV_WC_");
}

const char *event_name(enum ibv_event_type event)
{
	return known(vb_event_type_name(event)) + strlen("IBV_EVENT_");
}

const char *nak_name(unsigned int syndrome)
{
	const struct bit_name *row = nak_names;

	while (row->name && row->bit != syndrome)
		row++;
	assert(row->name);
	return row->name;
}
