/* SPDX-License-Identifier: MIT */
/*
 * What the examples of <verbena/rdma.h> have in common: a client's and a server's agent, each with
 * a thread of its own, on the real clock, joined over TCP at a free port.
 */
#ifndef EXAMPLES_RDMA_PAIR_H
#define EXAMPLES_RDMA_PAIR_H

#include "say.h"

#include <string.h>
#include <verbena/rdma.h>
#include <verbena/sim.h>

#define TIMEOUT_NS 10000000000ull

struct rdma_pair {
	struct vb_rdma_agent *agent[2];
	struct vb_rdma_listener *listener;
	struct vb_rdma *client, *server;
};

/* What both ends' agents are made with; a simulated world, where there is one, has the real clock. */
static inline struct vb_rdma_options rdma_pair_options(const char *device)
{
	const struct vb_sim_config real = {.clock = VB_SIM_CLOCK_REAL};
	struct vb_rdma_options options;

	must(vb_sim_configure(&real)); /* no matter where the backend is another */
	vb_rdma_options_init(&options);
	options.device = device;
	options.thread = true;
	return options;
}

static inline void rdma_pair_open(struct rdma_pair *pair, const char *device)
{
	const struct vb_rdma_options options = rdma_pair_options(device);
	char address[64];

	for (int i = 0; i < 2; i++)
		pair->agent[i] = need(vb_rdma_agent_open(&options));
	pair->listener = need(vb_rdma_listen(pair->agent[1], "127.0.0.1:0"));
	must(vb_rdma_listener_name(pair->listener, address, sizeof(address)));
	pair->client = need(vb_rdma_connect(pair->agent[0], address, TIMEOUT_NS));
	pair->server = need(vb_rdma_accept(pair->listener, TIMEOUT_NS));
}

static inline void rdma_pair_close(struct rdma_pair *pair)
{
	must(vb_rdma_close(pair->client));
	must(vb_rdma_close(pair->server));
	must(vb_rdma_listener_close(pair->listener));
	must(vb_rdma_agent_close(pair->agent[0]));
	must(vb_rdma_agent_close(pair->agent[1]));
}

#endif
