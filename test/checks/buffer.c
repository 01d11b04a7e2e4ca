/* SPDX-License-Identifier: MIT */
/* Buffers that the program uses while a work request does. */
#include "pair.h"

static const struct plan plan = {.access = IBV_ACCESS_LOCAL_WRITE};

static void changed(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	here->memory[63] = 1;
	wait_for(here);
	wait_for(there);
	close_ends();
}

static void changed_kept(void)
{
	connect_ends(&plan);
	receive(there, 8);
	post(here, IBV_WR_SEND, 7);
	wait_for(here);
	here->memory[63] = 1;
	wait_for(there);
	close_ends();
}

/* Posts three SENDs of 64 bytes at once. */
static void post_chain(void)
{
	struct ibv_sge sges[3];
	struct ibv_send_wr wrs[3], *bad;

	for (unsigned int i = 0; i < 3; i++) {
		sges[i] = piece(here, i * 64, 64);
		wrs[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = i < 2 ? &wrs[i + 1] : NULL,
			.sg_list = &sges[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
		};
		receive(there, i);
	}
	need(!ibv_post_send(here->qp, wrs, &bad), "chain"); /* @post-chain */
}

/* Only the second one's buffer. */
static void changed_in_chain(void)
{
	connect_ends(&plan);
	post_chain();
	here->memory[127] = 1;
	for (int i = 0; i < 3; i++)
		wait_for(here);
	close_ends();
}

/* Changes only the buffers of work requests that have completed. */
static void changed_in_chain_kept(void)
{
	connect_ends(&plan);
	post_chain();
	for (int i = 0; i < 3; i++) {
		wait_for(here);
		here->memory[i * 64] = 1;
	}
	close_ends();
}

static const struct mode modes[] = {
	{"send-buffer-changed", changed},
	{"send-buffer-changed-kept", changed_kept},
	{"changed-in-chain", changed_in_chain},
	{"changed-in-chain-kept", changed_in_chain_kept},
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
