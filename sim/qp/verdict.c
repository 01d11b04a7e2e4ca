/* SPDX-License-Identifier: MIT */
#include "sim/qp/verdict.h"

#include "sim/wire/packet.h"

const struct sim_consequence sim_consequences[SIM_VERDICTS] = {
	[SIM_ACCEPT] = {"accept", "the request passes every check"},
	[SIM_DROP] = {"drop", "UC: an earlier packet of the message was lost or refused"},
	[SIM_DUPLICATE] = {"duplicate", "the PSN is before the expected one"},
	[SIM_OUT_OF_SEQUENCE] = {"out of sequence", "the PSN is behind the expected one",
				 SIM_NAK_PSN_SEQUENCE},
	[SIM_NO_RECEIVE] = {"no receive", "the request needs a receive WR, and none is posted",
			    SIM_AETH_RNR_NAK},
	[SIM_INVALID_REQUEST] = {"invalid request",
				 "the QP access flags, opcode order, lengths, alignment, number of "
				 "READs or XRC SRQ are wrong",
				 SIM_NAK_INVALID_REQUEST, IBV_WC_REM_INV_REQ_ERR,
				 IBV_EVENT_QP_REQ_ERR},
	[SIM_ACCESS_DENIED] =
		{"access denied",
		 "the rkey, bounds, PD or rights of the MR or MW do not allow the access",
		 SIM_NAK_REMOTE_ACCESS, IBV_WC_LOC_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR},
	[SIM_TOO_LONG] = {"too long", "the message does not fit the receive WR",
			  SIM_NAK_INVALID_REQUEST, IBV_WC_LOC_LEN_ERR, IBV_EVENT_QP_REQ_ERR, true},
	[SIM_BAD_RECEIVE] = {"bad receive", "the memory of the receive WR may not be written",
			     SIM_NAK_REMOTE_OPERATION, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_ACCESS_ERR,
			     true},
	[SIM_BAD_INVALIDATION] = {"bad invalidation",
				  "the QP may not invalidate a window with this rkey", 0,
				  IBV_WC_MW_BIND_ERR, IBV_EVENT_QP_ACCESS_ERR},
};

enum ibv_wc_status sim_nak_status(uint8_t syndrome)
{
	switch (syndrome) {
	case SIM_NAK_INVALID_REQUEST:
		return IBV_WC_REM_INV_REQ_ERR;
	case SIM_NAK_REMOTE_ACCESS:
		return IBV_WC_REM_ACCESS_ERR;
	case SIM_NAK_REMOTE_OPERATION:
		return IBV_WC_REM_OP_ERR;
	case SIM_NAK_INVALID_RD:
		return IBV_WC_REM_INV_RD_REQ_ERR;
	default:
		return IBV_WC_SUCCESS;
	}
}
