/* SPDX-License-Identifier: MIT */
#include "src/cli/trace_link.h"

#include "src/cli/make_room.h"

#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#define ETHERNET_BYTES	   14
#define ETHERNET_ETHERTYPE 12

/* Cooked headers, as https://www.tcpdump.org/linktypes/LINKTYPE_LINUX_SLL.html and LINKTYPE_LINUX_SLL2.html. */
static const struct cooked {
	int type;
	size_t bytes, ethertype;
} cooked_headers[] = {{DLT_LINUX_SLL, 16, 14}, {DLT_LINUX_SLL2, 20, 0}};

/* Returns NULL for the other link types. */
static const struct cooked *find_cooked(int type)
{
	for (size_t i = 0; i < sizeof(cooked_headers) / sizeof(cooked_headers[0]); i++)
		if (cooked_headers[i].type == type)
			return &cooked_headers[i];
	return NULL;
}

bool trace_link_is_known(int type)
{
	return type == DLT_EN10MB || type == DLT_ERF || find_cooked(type);
}

const uint8_t *trace_link_frame(struct trace_link *link, const uint8_t *frame, size_t *length)
{
	const struct cooked *cooked = find_cooked(link->type);

	if (!cooked)
		return frame;
	if (*length < cooked->bytes ||
	    !make_room(&link->copy, &link->room, *length - cooked->bytes + ETHERNET_BYTES))
		return NULL;
	*length -= cooked->bytes;
	memset(link->copy, 0, ETHERNET_ETHERTYPE);
	memcpy(link->copy + ETHERNET_ETHERTYPE, frame + cooked->ethertype, 2);
	memcpy(link->copy + ETHERNET_BYTES, frame + cooked->bytes, *length);
	*length += ETHERNET_BYTES;
	return link->copy;
}

void trace_link_end(struct trace_link *link)
{
	free(link->copy);
	link->copy = NULL;
}
