/* SPDX-License-Identifier: MIT */
/*
 * Messages of the connection manager as fault rules see them: in packets on their way.
 */
#ifndef SIM_NET_CM_MESSAGE_H
#define SIM_NET_CM_MESSAGE_H

#include "sim/net/filter.h"
#include "sim/wire/field.h"
#include "sim/wire/mad.h"

struct sim_engine;
struct sim_net;

/* Returns the message that a packet carries to QP 1; SIM_CM_NONE if it carries none. */
enum sim_cm_message sim_message_of(const struct sim_engine *engine,
				   const struct sim_packet *packet);

/* Changes a field of an encoded message; in a field of bytes, the byte at `offset`. bth is the packet's BTH. */
void sim_message_change(uint8_t *bth, enum sim_cm_field field, uint32_t offset,
			const struct sim_bits *bits);

/*
 * Answers a REQ or a REP by a REJ of the reason, as if the receiver had sent it. The REJ comes at once,
 * passes no filter, and the trace shows it as an injected packet.
 */
void sim_message_reject(struct sim_net *net, const struct sim_transit *transit, uint16_t reason);

#endif
