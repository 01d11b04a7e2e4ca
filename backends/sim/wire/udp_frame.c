/* SPDX-License-Identifier: MIT */
/* Frames of the wire `udp`: the headers that the kernel takes off and puts on. */
#include "backends/sim/wire/udp_private.h"

#include <string.h>

void udp_frame_mac(const uint8_t gid[16], uint8_t mac[6])
{
	static const uint8_t ipv4_group[] = {0x01, 0x00, 0x5e}, ipv6_group[] = {0x33, 0x33},
			     own[] = {0x02 /* of local administration */, 0x00};
	const bool group = sim_gid_is_multicast(gid);

	memcpy(mac + 2, gid + 12, 4);
	if (group && sim_gid_is_ipv4(gid)) {
		mac[3] &= 0x7f;
		memcpy(mac, ipv4_group, sizeof(ipv4_group));
	} else {
		memcpy(mac, group ? ipv6_group : own, sizeof(own));
	}
}

uint8_t *udp_frame_make(const struct udp_arrival *arrival, size_t *frame_bytes)
{
	struct sim_route route = {
		.traffic_class = arrival->traffic_class,
		.hop_limit = arrival->hop_limit,
		.udp_source_port = arrival->source_port,
		.ip_fragment = 0x4000, /* DF */
	};
	uint8_t *frame;

	udp_frame_mac(arrival->source_gid, route.source_mac);
	udp_frame_mac(arrival->dest_gid->raw, route.dest_mac);
	memcpy(route.source_gid, arrival->source_gid, sizeof(route.source_gid));
	memcpy(route.dest_gid, arrival->dest_gid, sizeof(route.dest_gid));
	frame = arrival->payload - sim_route_bytes(&route);
	*frame_bytes = sim_packet_resize(frame, arrival->bytes, &route);
	return frame;
}

/*
 * Decodes the headers and encodes them again. If they differ from those of the frame, the frame has a wrong
 * length, or IP or UDP headers that the kernel does not write. The kernel chooses another identification;
 * the ICRC tells if it was changed.
 */
bool udp_frame_reads(const uint8_t *frame, size_t frame_bytes, struct sim_route *route)
{
	const size_t headers_bytes = sim_route_bytes(route);
	uint8_t again[UDP_HEAD_BYTES];
	struct sim_packet packet;
	struct sim_span span;
	struct sim_route read;

	sim_packet_decode(frame, frame_bytes, &packet, &span, &read);
	if (frame_bytes < headers_bytes || read.udp_source_port != route->udp_source_port ||
	    memcmp(read.source_gid, route->source_gid, sizeof(read.source_gid)) != 0 ||
	    memcmp(read.dest_gid, route->dest_gid, sizeof(read.dest_gid)) != 0)
		return false;
	sim_packet_resize(again, frame_bytes - headers_bytes, &read);
	if (memcmp(again, frame, headers_bytes) != 0)
		return false;
	route->traffic_class = read.traffic_class;
	route->hop_limit = read.hop_limit;
	route->flow_label = read.flow_label;
	return true;
}
