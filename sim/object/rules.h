/* SPDX-License-Identifier: MIT */
/*
 * Rules of the specification that a device may leave out. The code asks whether the device obeys a
 * rule; sim/rxe/ decides by the device's quirks.
 */
#ifndef SIM_OBJECT_RULES_H
#define SIM_OBJECT_RULES_H

#include "sim/object/device.h"

enum sim_rule {
	SIM_RULE_EARLY_SENDS_VANISH, /* a send that the QP's state refuses is not queued */
	SIM_RULE_BAD_WR_NAMED,	     /* *bad_wr is the WR that the QP's state or SRQ refuses */
	SIM_RULE_MESSAGE_LIMIT,	     /* a message is at most the port's max_msg_sz */
	SIM_RULE_MESSAGE_LENGTH,     /* a message is at most 2^31 bytes */
	SIM_RULE_SENDS_BIND_TYPE_2,  /* ibv_post_send(3) binds no window of type 1 */
	SIM_RULE_STATELESS_CHECKED, /* a modify without IBV_QP_STATE follows the transition table */
	SIM_RULE_CHANGES_WHILE_DRAINING, /* the state may change while the send queue drains */
	SIM_RULE_RNR_WAIT_SENDS_NOTHING, /* the requester stops while the peer has no receive WR */
	SIM_RULE_RTS_SENDS,		 /* entering RTS sends the WRs that were posted before */
	SIM_RULE_PACKET_SIZE,	    /* FIRST and MIDDLE are full, the sum is the message's length */
	SIM_RULE_ACK_OF_CONNECTION, /* an ACK acknowledges packets of this connection only */
	SIM_RULE_READ_REPEATED_EXACTLY, /* a repeated READ asks for the end of the first request */
	SIM_RULE_CONTROLLED_QKEY, /* a WR's Q_Key with its high bit set means the Q_Key of the QP */
	SIM_RULE_SHORT_RECEIVE_KEPT, /* a datagram too long for its receive is dropped */
	SIM_RULE_SRQ_PD,	     /* the memory of an SRQ's receives is of the SRQ's PD */
	SIM_RULE_OVERRUN_ENDS_QP,    /* a send completion that the CQ has no room for ends the QP */
	SIM_RULE_RECEIVES_FLUSH,     /* a receive posted in ERR is flushed */

	SIM_RULE_OVERRUN_KILLS_CQ,     /* a CQ that has overrun takes no more completions */
	SIM_RULE_ERRORS_ARE_SOLICITED, /* an error fires a CQ armed for solicited completions */
	SIM_RULE_CQ_FLAGS_KNOWN,       /* ibv_create_cq_ex(3) refuses flags that it does not know */
	SIM_RULE_SRQ_BITS_KNOWN,       /* ibv_modify_srq(3) refuses bits that it does not know */
	SIM_RULE_SRQ_OF_TYPE,	       /* only RC and UD QPs take an SRQ */
	SIM_RULE_REAL_SIZES,	       /* creating a queue returns its real size */
	SIM_RULE_OPERATIONS_KNOWN,     /* creating a QP refuses operations that the device lacks */
	SIM_RULE_WINDOW_BOUNDS,	       /* a window reaches its own range, not all of its region */
	SIM_RULE_WINDOW_RANGE,	       /* the end of a window's range does not wrap */
	SIM_RULE_WINDOW_PD,	       /* a window, its region and the binding QP have one PD */
	SIM_RULE_WINDOW_REBOUND,  /* a window is bound whatever rkey the program's ibv_mw has */
	SIM_RULE_WINDOW_OWNER,	  /* only the QP that bound a type 2 window invalidates it */
	SIM_RULE_MULTICAST_LOOPS, /* multicast reaches the device that sent it */
};

/* Returns true unless the device leaves out the rule. */
static inline bool sim_device_obeys(const struct sim_device *device, enum sim_rule rule)
{
	return !device->leaves_out || !device->leaves_out(device, rule);
}

#endif
