/* SPDX-License-Identifier: MIT */
/*
 * The client requests memory at the server, writes into it while the server does nothing, and hands
 * it over; the server reads the memory. The two agents find each other over TCP. -h prints the
 * usage.
 */
#include "rdma_pair.h"

#define ABOUT "The client requests memory of the server, writes into it, and hands it over."

static void client(const struct rdma_pair *pair)
{
	struct vb_rdma *rdma = pair->client;
	struct vb_remote_mr *remote =
		need(vb_request_remote_mr(rdma, 64, 0, VB_MR_ALL, 0, TIMEOUT_NS));
	struct vb_local_mr *local = need(vb_alloc_local_mr(pair->client_agent, 64, 0));
	struct vb_local_slice slice = {local, 0, sizeof("hello world")};
	uint64_t before;

	strcpy(vb_local_mr_addr(local), "hello world");
	must(vb_rdma_write(rdma, &slice, remote, 0, TIMEOUT_NS));
	must(vb_rdma_fetch_add(rdma, remote, 32, 41, &before, TIMEOUT_NS));
	must(vb_rdma_fetch_add(rdma, remote, 32, 1, &before, TIMEOUT_NS));
	check(before == 41, "the counter was 41");
	must(vb_send_mr(rdma, remote, TIMEOUT_NS));
	printf("the client handed over %llu bytes\n",
	       (unsigned long long)vb_remote_mr_bytes(remote));
	vb_local_mr_put(local);
	vb_remote_mr_put(remote);
}

static void server(const struct rdma_pair *pair)
{
	struct vb_local_mr *seen = need(vb_receive_local_mr(pair->server, TIMEOUT_NS));
	const char *text = vb_local_mr_addr(seen);

	printf("the server received %zu bytes: %s\n", vb_local_mr_bytes(seen), text);
	check(strcmp(text, "hello world") == 0, "the bytes arrived");
	vb_local_mr_put(seen);
}

int main(int argc, char **argv)
{
	struct rdma_pair pair;

	rdma_pair_open(&pair, argc, argv, ABOUT);
	if (pair.client)
		client(&pair);
	if (pair.server)
		server(&pair);
	rdma_pair_close(&pair);
}
