/* SPDX-License-Identifier: MIT */
/*
 * usage: handover [DEVICE]
 * The client requests memory at the server, writes into it without the server's doing, and hands it
 * over; the server reads what is in it. Two agents find one another over TCP.
 */
#include "rdma_pair.h"

int main(int argc, char **argv)
{
	struct rdma_pair pair;
	struct vb_remote_mr *remote;
	struct vb_local_mr *local, *seen;
	struct vb_local_slice slice;
	uint64_t before;

	rdma_pair_open(&pair, argc > 1 ? argv[1] : NULL);
	remote = need(vb_request_remote_mr(pair.client, 64, 0, VB_MR_ALL, 0, TIMEOUT_NS));
	local = need(vb_alloc_local_mr(pair.agent[0], 64, 0));
	slice = (struct vb_local_slice){local, 0, sizeof("hello world")};
	strcpy(vb_local_mr_addr(local), "hello world");
	must(vb_rdma_write(pair.client, &slice, remote, 0, TIMEOUT_NS));
	must(vb_rdma_fetch_add(pair.client, remote, 32, 41, &before, TIMEOUT_NS));
	must(vb_rdma_fetch_add(pair.client, remote, 32, 1, &before, TIMEOUT_NS));
	must(vb_send_mr(pair.client, remote, TIMEOUT_NS));

	seen = need(vb_receive_local_mr(pair.server, TIMEOUT_NS));
	printf("the server was handed %zu bytes: %s\n", vb_local_mr_bytes(seen),
	       (char *)vb_local_mr_addr(seen));
	check(strcmp(vb_local_mr_addr(seen), "hello world") == 0, "the bytes arrived");
	check(before == 41, "the counter was 41");
	vb_local_mr_put(seen);
	vb_local_mr_put(local);
	vb_remote_mr_put(remote);
	rdma_pair_close(&pair);
}
