/* SPDX-License-Identifier: MIT */
/*
 * usage: rdma_example_4 [--fixed]
 * A replay of https://github.com/animeshtrivedi/rdma-example/pull/4. The server sent the client the lkey of
 * its buffer, and the client used it as the rkey of its READs and WRITEs. Many adapters give both keys the
 * same value, so the example worked there, was copied, and fails on adapters whose keys differ.
 */
#include "ends.h"

#include <stdio.h>
#include <string.h>

#define BUFFER_OFFSET 4096
#define BUFFER_BYTES  64

/* What the server sends the client about its buffer. */
struct buffer_attr {
	uint64_t address;
	uint32_t length;
	uint32_t key;
};

static struct ibv_mr *register_buffer(struct end *server)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	char *buffer = server->memory + BUFFER_OFFSET;
	struct ibv_mr *mr;

	mr = ibv_reg_mr(server->pd, buffer, BUFFER_BYTES, access); /* @register */
	end_need(mr, "the buffer cannot be registered");
	return mr;
}

static void send_attr(struct end *server, const struct ibv_mr *mr, bool fixed)
{
	const struct buffer_attr attr = {
		.address = (uintptr_t)mr->addr,
		.length = (uint32_t)mr->length,
		.key = fixed ? mr->rkey : mr->lkey,
	};
	struct ibv_sge sge = end_piece(server, 0, sizeof(attr));
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	memcpy(server->memory, &attr, sizeof(attr));
	end_need(!ibv_post_send(server->qp, &wr, &bad), "the send cannot be posted");
	end_need(end_wait(server->send_cq).status == IBV_WC_SUCCESS, "the send has failed");
}

static enum ibv_wc_status write_buffer(struct end *client)
{
	struct ibv_sge sge = end_piece(client, BUFFER_OFFSET, BUFFER_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	struct buffer_attr attr;

	end_need(end_wait(client->recv_cq).status == IBV_WC_SUCCESS, "the receive has failed");
	memcpy(&attr, client->memory, sizeof(attr));
	wr.wr.rdma.remote_addr = attr.address;
	wr.wr.rdma.rkey = attr.key;
	end_need(!ibv_post_send(client->qp, &wr, &bad), "the WRITE cannot be posted"); /* @write */
	return end_wait(client->send_cq).status;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct end *client = &ends[0], *server = &ends[1];
	struct ibv_mr *mr;
	enum ibv_wc_status status;

	ends_open(ends);
	ends_connect(ends);
	mr = register_buffer(server);
	end_receive(client, 0, sizeof(struct buffer_attr));
	send_attr(server, mr, fixed);
	status = write_buffer(client);
	printf("the WRITE: %s\n", ibv_wc_status_str(status));
	ibv_dereg_mr(mr);
	ends_close(ends);
	return status != IBV_WC_SUCCESS;
}
