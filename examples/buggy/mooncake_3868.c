/* SPDX-License-Identifier: MIT */
/*
 * usage: mooncake_3868 [--fixed]
 * A replay of https://github.com/kvcache-ai/Mooncake/issues/3868. Each end took the path MTU from its own
 * port, and the handshake did not exchange it. Between ports with active MTUs of 4096 and 1024 bytes,
 * READs and WRITEs failed with errors that named no cause, and the ends connected again and again.
 */
#include "ends.h"

#include <stdio.h>

#define MESSAGE_BYTES 4096

/* What the ports of the two machines report as active_mtu. */
static const enum ibv_mtu active_mtus[2] = {IBV_MTU_4096, IBV_MTU_1024};

static enum ibv_mtu smaller(enum ibv_mtu a, enum ibv_mtu b)
{
	return a < b ? a : b;
}

static void connect_end(struct end ends[2], int self, bool fixed)
{
	struct ibv_qp_attr rtr = end_rtr(&ends[!self]), rts = end_rts();

	rtr.path_mtu = active_mtus[self];
	if (fixed) /* The ends have exchanged their MTUs. */
		rtr.path_mtu = smaller(active_mtus[0], active_mtus[1]);
	end_need(!ibv_modify_qp(ends[self].qp, &rtr, END_RTR_MASK), "RTR"); /* @rtr */
	end_need(!ibv_modify_qp(ends[self].qp, &rts, END_RTS_MASK), "RTS");
}

static enum ibv_wc_status write_message(struct end ends[2], const struct ibv_mr *target)
{
	struct ibv_sge sge = end_piece(&ends[0], 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {(uintptr_t)target->addr, target->rkey},
	};
	struct ibv_send_wr *bad;

	end_need(!ibv_post_send(ends[0].qp, &wr, &bad), "the WRITE cannot be posted"); /* @write */
	return end_wait(ends[0].send_cq).status;
}

int main(int argc, char **argv)
{
	const bool fixed = end_wants_fixed(argc, argv);
	struct end ends[2];
	struct ibv_mr *target;
	enum ibv_wc_status status;

	ends_open(ends);
	for (int i = 0; i < 2; i++)
		end_make_qp(&ends[i]);
	for (int i = 0; i < 2; i++)
		connect_end(ends, i, fixed);
	target = ibv_reg_mr(ends[1].pd, ends[1].memory, MESSAGE_BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	end_need(target, "the memory cannot be registered");
	status = write_message(ends, target);
	printf("the WRITE: %s\n", ibv_wc_status_str(status));
	ibv_dereg_mr(target);
	ends_close(ends);
	return status != IBV_WC_SUCCESS;
}
