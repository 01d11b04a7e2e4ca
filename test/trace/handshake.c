/* SPDX-License-Identifier: MIT */
/*
 * Writes a trace for check-handshake: a connection is made and ended, another is rejected.
 *   handshake [--infiniband|--grh] FILE
 */
#include "backends/sim/capture/pcapfile.h"
#include "sim/cm/ip.h"
#include "test/support/talk.h"

#include <stdio.h>
#include <string.h>

static struct talk talk;

/* Side 0 asks for a service by its IP address. */
static void ask(uint16_t port)
{
	const struct sim_cm_ip ip = {
		.source_port = 40000,
		.source = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1},
		.dest = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2},
	};
	struct sim_cm_request request = talk_request(&talk);
	struct talk_end *end = &talk.ends[0];
	uint8_t bytes[SIM_CM_IP_BYTES];

	sim_cm_ip_write(&ip, bytes);
	request.service_id = sim_cm_service_id(SIM_CM_PS_TCP, port);
	request.private_data = (struct sim_cm_private){bytes, sizeof(bytes)};
	sim_cm_create(end->sim, end, &end->cm);
	sim_cm_send_req(end->cm, end->device, &request);
	talk_run(&talk);
}

int main(int argc, char **argv)
{
	const bool infiniband = argc == 3, grh = infiniband && strcmp(argv[1], "--grh") == 0;
	char error[256];
	struct pcapfile *file =
		pcapfile_open(argv[argc - 1], infiniband, NULL, error, sizeof(error));
	const struct sim_trace_sink sink = {file, pcapfile_frame};
	bool failed;

	if (!file) {
		fprintf(stderr, "handshake: %s\n", error);
		return 1;
	}
	talk_open(&talk, &(struct talk_config){.infiniband = infiniband, .grh = grh});
	sim_trace_set(talk.engine.sim, SIM_TRACE_WATCHER, &sink);
	talk_listen(&talk);
	ask(sim_cm_service_port(TALK_SERVICE));
	sim_cm_send_dreq(talk.ends[0].cm, &(struct sim_cm_private){"end", 3});
	talk_run(&talk);
	ask(sim_cm_service_port(TALK_SERVICE) + 1);
	talk_close(&talk);
	pcapfile_flush(file);
	failed = pcapfile_failed(file);
	pcapfile_close(file);
	return failed;
}
