/* SPDX-License-Identifier: MIT */
/*
 * usage: nvshmem_82 [--fixed]
 * A replay of https://github.com/NVIDIA/nvshmem/issues/82. The QPs of the transport IBRC had pkey_index 0, as
 * a number in the code. Where the default P_Key is at another index of the port's table, no message got
 * through, and the program waited for ever.
 */
#include "ends.h"

#include <arpa/inet.h>
#include <stdio.h>

#define MESSAGE_BYTES 64
#define DEFAULT_PKEY  0xffff

/* Returns the index of the default P_Key. */
static uint16_t find_pkey(struct end *end)
{
	struct ibv_port_attr port;
	__be16 pkey;

	end_need(!ibv_query_port(end->context, 1, &port), "there is no port");
	for (uint16_t i = 0; i < port.pkey_tbl_len; i++)
		if (!ibv_query_pkey(end->context, 1, i, &pkey) && ntohs(pkey) == DEFAULT_PKEY)
			return i;
	end_need(false, "the port is not in the default partition");
	return 0;
}

static void modify(struct end *end, struct ibv_qp_attr *attr, int mask)
{
	end_need(!ibv_modify_qp(end->qp, attr, mask), "the QP cannot be modified"); /* @modify */
}

static void connect_end(struct end ends[2], int self, bool fixed)
{
	struct ibv_qp_attr rtr = end_rtr(&ends[!self]), rts = end_rts();
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = fixed ? find_pkey(&ends[self]) : 0,
	};

	modify(&ends[self], &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX);
	modify(&ends[self], &rtr, END_RTR_MASK);
	modify(&ends[self], &rts, END_RTS_MASK);
}

static void send_message(struct end *from)
{
	struct ibv_sge sge = end_piece(from, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(from->qp, &wr, &bad), "the send cannot be posted");
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	enum ibv_wc_status status;

	ends_open(ends);
	for (int i = 0; i < 2; i++)
		end_make_qp(&ends[i]);
	for (int i = 0; i < 2; i++)
		connect_end(ends, i, fixed);
	end_receive(&ends[1], 0, MESSAGE_BYTES);
	send_message(&ends[0]);
	status = end_wait(ends[0].send_cq).status;
	printf("the send: %s\n", ibv_wc_status_str(status));
	ends_close(ends);
	return status != IBV_WC_SUCCESS;
}
