/* SPDX-License-Identifier: MIT */
/* Compares two packets field by field. */
#ifndef TEST_SUPPORT_SAME_PACKET_H
#define TEST_SUPPORT_SAME_PACKET_H

#include <stddef.h>
#include <string.h>
#include <verbena/packet.h>

/*
 * Returns the name of the first field that differs between the packet of a frame and the packet of an
 * event; NULL if none does. source_qpn of a connection is in the event only.
 */
static inline const char *packet_difference(const struct vb_packet *framed,
					    const struct vb_packet *noted)
{
#define FIELD(name)                                                                            \
	{                                                                                      \
#name, offsetof(struct vb_packet, name), sizeof(((struct vb_packet *)0)->name) \
	}
	static const struct {
		const char *name;
		size_t offset, bytes;
	} fields[] = {
		FIELD(opcode),	      FIELD(opcode_name), FIELD(has),	   FIELD(solicited),
		FIELD(ack_request),   FIELD(lost),	  FIELD(pkey),	   FIELD(dest_qpn),
		FIELD(psn),	      FIELD(syndrome),	  FIELD(msn),	   FIELD(remote_addr),
		FIELD(rkey),	      FIELD(dma_bytes),	  FIELD(swap_add), FIELD(compare),
		FIELD(original),      FIELD(imm),	  FIELD(qkey),	   FIELD(xrc_srqn),
		FIELD(source_gid),    FIELD(dest_gid),	  FIELD(slid),	   FIELD(dlid),
		FIELD(payload_bytes),
	};
#undef FIELD

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (memcmp((const char *)framed + fields[i].offset,
			   (const char *)noted + fields[i].offset, fields[i].bytes) != 0)
			return fields[i].name;
	if (framed->has & VB_PACKET_HAS_DETH && framed->source_qpn != noted->source_qpn)
		return "source_qpn";
	return NULL;
}

#endif
