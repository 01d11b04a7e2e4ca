/* SPDX-License-Identifier: MIT */
/*
 * The common part of the examples of <verbena/rdma.h>: a client's and a server's agent on the real
 * clock, each with its own thread, connected over TCP. They are in one process or in two.
 */
#ifndef EXAMPLES_RDMA_PAIR_H
#define EXAMPLES_RDMA_PAIR_H

#include "say.h"

#include <stdbool.h>
#include <string.h>
#include <verbena/rdma.h>
#include <verbena/sim.h>

#define TIMEOUT_NS 10000000000ull

/* NULL for the objects of the other process. */
struct rdma_pair {
	struct vb_rdma_agent *client_agent, *server_agent;
	struct vb_rdma_listener *listener;
	struct vb_rdma *client, *server;
};

static inline void rdma_pair_help(const char *name, const char *about)
{
	printf("usage: %s [DEVICE]\n"
	       "       %s --server HOST:PORT [DEVICE]\n"
	       "       %s --client HOST:PORT [DEVICE]\n"
	       "%s\n"
	       "Runs the client and the server in this process, or only one of them with --client\n"
	       "or --server. The server prints the address on which it listens (port 0 selects a\n"
	       "free port), and ends after one client. Two processes need a device that reaches\n"
	       "other processes: SoftRoCE or an adapter, with VERBENA_BACKEND=ibverbs. Simulated\n"
	       "devices do not leave their process. DEVICE is a name [the first device].\n",
	       name, name, name, about);
}

static inline struct vb_rdma_agent *rdma_pair_agent(const char *device)
{
	struct vb_rdma_options options;

	vb_rdma_options_init(&options);
	options.device = device;
	options.thread = true;
	return need(vb_rdma_agent_open(&options));
}

static inline void rdma_pair_listen(struct rdma_pair *pair, const char *device, const char *at,
				    char address[64])
{
	pair->server_agent = rdma_pair_agent(device);
	pair->listener = need(vb_rdma_listen(pair->server_agent, at));
	must(vb_rdma_listener_name(pair->listener, address, 64));
}

/* Prints the usage and ends the program if an argument is -h or wrong. */
static inline void rdma_pair_open(struct rdma_pair *pair, int argc, char **argv, const char *about)
{
	const struct vb_sim_config real = {.clock = VB_SIM_CLOCK_REAL};
	const char *mode = argc > 1 && argv[1][0] == '-' ? argv[1] : NULL;
	bool serves = mode && strcmp(mode, "--server") == 0;
	int at = mode ? 3 : 1;
	const char *device = argc > at ? argv[at] : NULL;
	char address[64];

	if (mode && (argc < 3 || (!serves && strcmp(mode, "--client") != 0))) {
		rdma_pair_help(argv[0], about);
		exit(strcmp(mode, "-h") == 0 || strcmp(mode, "--help") == 0 ? 0 : 2);
	}
	*pair = (struct rdma_pair){0};
	must(vb_sim_configure(&real)); /* has no effect on other backends */
	if (!mode || serves)
		rdma_pair_listen(pair, device, mode ? argv[2] : "127.0.0.1:0", address);
	if (serves) {
		printf("listening at %s\n", address);
		fflush(stdout);
	} else {
		pair->client_agent = rdma_pair_agent(device);
		pair->client = need(
			vb_rdma_connect(pair->client_agent, mode ? argv[2] : address, TIMEOUT_NS));
	}
	if (pair->listener)
		pair->server = need(vb_rdma_accept(pair->listener, TIMEOUT_NS));
}

static inline void rdma_pair_close(struct rdma_pair *pair)
{
	must(vb_rdma_close(pair->client));
	must(vb_rdma_close(pair->server));
	must(vb_rdma_listener_close(pair->listener));
	must(vb_rdma_agent_close(pair->client_agent));
	must(vb_rdma_agent_close(pair->server_agent));
}

#endif
