/* SPDX-License-Identifier: MIT */
/*
 * usage: rdma_core_462 [--fixed]
 * A replay of https://github.com/linux-rdma/rdma-core/pull/462. A receive buffer of a datagram begins with 40
 * bytes for the GRH, and the payload comes after them. ibv_ud_pingpong compared the payload from the first byte
 * of the buffer, and filled its send buffer from there too, but sent the bytes after the first 40.
 */
#include "ends.h"

#include <stdio.h>
#include <string.h>

#define GRH_BYTES     40
#define PAYLOAD_BYTES 64
#define QKEY	      0x11111111

static void make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.qp_type = IBV_QPT_UD,
		.cap = {END_DEPTH, END_DEPTH, 1, 1, 0},
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};

	end->qp = ibv_create_qp(end->pd, &init);
	end_need(end->qp, "there is no QP");
	end_need(!ibv_modify_qp(end->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		 "INIT");
	attr.qp_state = IBV_QPS_RTR;
	end_need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	end_need(!ibv_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), "RTS");
}

/* In the subnet of InfiniBand, the address is a LID, and datagrams have no GRH. */
static struct ibv_ah *address(const struct end *from, const struct end *to)
{
	struct ibv_ah_attr attr = {
		.port_num = 1,
		.dlid = to->lid,
		.is_global = !to->lid,
		.grh = {.dgid = to->gid, .sgid_index = (uint8_t)from->gid_index, .hop_limit = 1},
	};
	struct ibv_ah *ah = ibv_create_ah(from->pd, &attr);

	end_need(ah, "there is no address");
	return ah;
}

static void fill(struct end *end, size_t offset)
{
	for (int i = 0; i < PAYLOAD_BYTES; i++)
		end->memory[offset + (size_t)i] = (char)('a' + i % 26);
}

static void send_datagram(struct end *from, const struct end *to)
{
	struct ibv_sge sge = end_piece(from, GRH_BYTES, PAYLOAD_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {address(from, to), to->qp->qp_num, QKEY},
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(from->qp, &wr, &bad), "the send cannot be posted");
	end_need(end_wait(from->send_cq).status == IBV_WC_SUCCESS, "the send has failed");
	ibv_destroy_ah(wr.wr.ud.ah);
}

static bool is_right(const struct end *end, size_t offset)
{
	for (int i = 0; i < PAYLOAD_BYTES; i++)
		if (end->memory[offset + (size_t)i] != 'a' + i % 26) /* @compare */
			return false;
	return true;
}

int main(int argc, char **argv)
{
	const size_t payload = end_wants_fixed(argc, argv) ? GRH_BYTES : 0;
	struct end ends[2];
	bool right;

	ends_open(ends);
	for (int i = 0; i < 2; i++)
		make_qp(&ends[i]);
	end_receive(&ends[1], 0, GRH_BYTES + PAYLOAD_BYTES);
	fill(&ends[0], payload);
	send_datagram(&ends[0], &ends[1]);
	end_need(end_wait(ends[1].recv_cq).status == IBV_WC_SUCCESS, "the receive has failed");
	right = is_right(&ends[1], payload);
	printf("the payload is %s\n", right ? "right" : "wrong");
	ends_close(ends);
	return !right;
}
