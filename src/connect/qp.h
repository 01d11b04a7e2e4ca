/* SPDX-License-Identifier: MIT */
#ifndef SRC_CONNECT_QP_H
#define SRC_CONNECT_QP_H

#include <verbena/connect.h>

/* Completes a write, read or atomic with its remote address; other opcodes ignore it. */
static inline void wr_set_remote(struct ibv_send_wr *wr, uint64_t addr, uint32_t rkey,
				 uint64_t compare_add, uint64_t swap)
{
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = compare_add;
		wr->wr.atomic.swap = swap;
	} else {
		wr->wr.rdma.remote_addr = addr;
		wr->wr.rdma.rkey = rkey;
	}
}

#endif /* SRC_CONNECT_QP_H */
