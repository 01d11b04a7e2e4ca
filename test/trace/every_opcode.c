/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace for check-trace, with a frame of every opcode (except those of RD) at each pad
 * that the opcode can have.
 *   every_opcode FILE                over IPv4, over IPv6, and as RoCE v1
 *   every_opcode --infiniband FILE   over InfiniBand without and with a GRH; the last frame is lost
 */
#include "backends/sim/capture/pcapfile.h"
#include "sim/net/trace.h"
#include "sim/wire/packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CNP_RESERVED_BYTES = 16, PAYLOAD_BYTES = 32, PADS = 4, ROUTES_MAX = 3 };

static const unsigned int route_count[2] = {3, 2};
static const struct sim_route routes[2][ROUTES_MAX] = {
	{
		{
			.source_mac = {0x02, 0, 0, 0, 0, 1},
			.dest_mac = {0x02, 0, 0, 0, 0, 2},
			.source_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
			.dest_gid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
			.hop_limit = 64,
			.ip_fragment = 0x4000,
		},
		{
			.source_mac = {0x02, 0, 0, 0, 0, 1},
			.dest_mac = {0x02, 0, 0, 0, 0, 2},
			.source_gid = {0xfd, [15] = 1},
			.dest_gid = {0xfd, [15] = 2},
			.hop_limit = 64,
			.traffic_class = 0x60,
			.flow_label = 0xabcde,
		},
		{
			.roce_v1 = true,
			.source_mac = {0x02, 0, 0, 0, 0, 1},
			.dest_mac = {0x02, 0, 0, 0, 0, 2},
			.source_gid = {[10] = 0xff, 0xff, 10, 0, 0, 1},
			.dest_gid = {[10] = 0xff, 0xff, 10, 0, 0, 2},
			.hop_limit = 64,
			.traffic_class = 0x60,
			.flow_label = 0xabcde,
		},
	},
	{
		{
			.infiniband = true,
			.sl = 3,
			.slid = 1,
			.dlid = 2,
		},
		{
			.infiniband = true,
			.has_grh = true,
			.source_gid = {0xfe, 0x80, [15] = 1},
			.dest_gid = {0xfe, 0x80, [15] = 2},
			.hop_limit = 1,
			.traffic_class = 0x60,
			.flow_label = 0xabcde,
			.slid = 0xbffe,
			.dlid = 0xbfff,
		},
	}};

static int copy(void *dst, const void *src, size_t length_bytes)
{
	memcpy(dst, src, length_bytes);
	return 0;
}

/* The payload: letters, which no heuristic dissector mistakes for its protocol; zeros for a CNP. */
static struct sim_packet make_packet(uint8_t opcode, uint64_t now_ns, const struct sim_span *span)
{
	return (struct sim_packet){
		.opcode = opcode,
		.flags = SIM_PACKET_ACK_REQUEST | SIM_PACKET_MIGRATED,
		.syndrome = SIM_AETH_ACK | SIM_ACK_CREDIT_NONE,
		.span_count = span->length_bytes > 0,
		.pkey = 0xffff,
		.dest_qpn = 0x12,
		.psn = (uint32_t)(now_ns / 1000),
		.payload_bytes = span->length_bytes,
		.spans = span,
		.remote_addr = 0x123456789abc,
		.rkey = 0x1234,
		.dma_bytes = span->length_bytes,
		.msn = 1,
		.imm_data = 0x01020304,
		.qkey = 0x11111111,
		.source_qpn = 0x13,
		.xrc_srqn = 0x14,
	};
}

static void add_frame(struct pcapfile *file, const struct sim_route *to, uint8_t opcode,
		      uint32_t payload_bytes, unsigned int flags)
{
	static const uint8_t letters[] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz";
	static const uint8_t zeros[CNP_RESERVED_BYTES];
	static uint64_t now_ns = 1000;
	const struct sim_span span = {opcode == SIM_CNP ? zeros : letters, payload_bytes};
	const struct sim_packet packet = make_packet(opcode, now_ns, &span);
	struct sim_route route = *to;
	uint8_t frame[SIM_FRAME_BYTES_MAX];

	if (route.infiniband)
		flags |= SIM_FRAME_INFINIBAND;
	else
		route.udp_source_port = sim_udp_source_port(0x12, 0x13);
	pcapfile_frame(file, now_ns, frame, sim_packet_encode(&packet, &route, copy, frame, NULL),
		       flags);
	now_ns += 1000;
}

static void add_opcode(struct pcapfile *file, const struct sim_route *to, uint8_t opcode)
{
	if (opcode == SIM_CNP) {
		add_frame(file, to, opcode, CNP_RESERVED_BYTES, 0);
		return;
	}
	if (sim_opcodes[opcode].flags & SIM_OP_STORE) {
		add_frame(file, to, opcode, SIM_ATOMIC_BYTES, 0);
		return;
	}
	if (!(sim_opcodes[opcode].flags & SIM_OP_PAYLOAD)) {
		add_frame(file, to, opcode, 0, 0);
		return;
	}
	for (uint32_t pad = 0; pad < PADS; pad++)
		add_frame(file, to, opcode, PAYLOAD_BYTES - pad, 0);
}

int main(int argc, char **argv)
{
	const bool infiniband = argc == 3 && !strcmp(argv[1], "--infiniband");
	struct pcapfile *file;
	char error[256];
	bool failed;

	if (argc != 2 && !infiniband) {
		fprintf(stderr, "usage: every_opcode [--infiniband] FILE\n");
		return 2;
	}
	file = pcapfile_open(argv[argc - 1], infiniband, NULL, error, sizeof(error));
	if (!file) {
		fprintf(stderr, "every_opcode: %s\n", error);
		return 1;
	}
	for (unsigned int i = 0; i < route_count[infiniband]; i++) {
		for (unsigned int opcode = 0; opcode < 256; opcode++) {
			if (sim_opcodes[opcode].flags & SIM_OP_VALID &&
			    !(sim_opcodes[opcode].flags & SIM_OP_RDETH))
				add_opcode(file, &routes[infiniband][i], (uint8_t)opcode);
		}
	}
	if (infiniband)
		add_frame(file, &routes[1][0], SIM_RC_SEND_ONLY, PAYLOAD_BYTES, SIM_FRAME_LOST);
	pcapfile_flush(file);
	failed = pcapfile_failed(file);
	pcapfile_close(file);
	return failed;
}
