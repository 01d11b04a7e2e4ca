/* SPDX-License-Identifier: MIT */
/*
 * usage: far MODE
 * Two processes with an end each: the child sends, and the attributes of the ends do not match. A mode that
 * ends with "kept" has ends that match. With "psn-late", the send is posted before the peer is ready.
 */
#include "pair.h"

#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* What an end tells the other one. */
struct address {
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

static int to_peer, from_peer; /* pipes */

static struct address exchange(const struct end *self)
{
	const struct address mine = {
		.port = self->port,
		.gid = self->gid,
		.qpn = self->qp->qp_num,
		.rkey = self->mr->rkey,
		.addr = (uintptr_t)self->memory,
	};
	struct address other;

	need(write(to_peer, &mine, sizeof(mine)) == sizeof(mine), "write");
	need(read(from_peer, &other, sizeof(other)) == sizeof(other), "read");
	return other;
}

/* Waits until the other process is here, too. */
static void meet(void)
{
	char byte = 0;

	need(write(to_peer, &byte, 1) == 1, "write");
	need(read(from_peer, &byte, 1) == 1, "read");
}

static void connect_far(struct end *self, const struct address *other, bool sends, const char *mode)
{
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = !sends && !strcmp(mode, "mtu") ? IBV_MTU_256 : IBV_MTU_1024,
		.dest_qp_num = other->qpn,
		.rq_psn = !sends && !strncmp(mode, "psn", 3) ? 99 : 100,
		.max_dest_rd_atomic = !sends && !strcmp(mode, "read") ? 0 : 1,
		.min_rnr_timer = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .dlid = other->port.lid,
			    .grh = {.dgid = other->gid,
				    .sgid_index = (uint8_t)self->gid_index,
				    .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = rts_attr();

	if (!strcmp(mode, "psn-late")) {
		rts.timeout = 16;
		rts.retry_cnt = 7;
	}
	to_rtr(self, &rtr);
	to_rts(self, &rts);
}

static void post_far(struct end *self, const struct address *other, const char *mode)
{
	struct ibv_sge sge = piece(self, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = strcmp(mode, "read") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {other->addr, other->rkey},
	};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(self->qp, &wr, &bad), "send"); /* @send-far */
}

static void send_datagram(struct end *self, const struct address *other, const char *mode)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.dlid = other->port.lid,
		.grh = {.dgid = other->gid,
			.sgid_index = (uint8_t)self->gid_index,
			.hop_limit = 64},
	};
	struct ibv_ah *ah = ibv_create_ah(self->pd, &attr);
	struct ibv_sge sge = piece(self, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah,
			  .remote_qpn = other->qpn,
			  .remote_qkey = strcmp(mode, "qkey") ? QKEY : QKEY + 1},
	};
	struct ibv_send_wr *bad;

	need(ah != NULL, "AH");
	for (int i = 0; i < 2; i++) {
		need(!ibv_post_send(self->qp, &wr, &bad), "send"); /* @send-datagram */
		wait_for(self);
	}
	ibv_destroy_ah(ah);
}

/* The devices of the world are the same in both processes: the sender uses the second one. */
static void run_end(bool sends, const char *mode)
{
	const bool datagram = !strncmp(mode, "qkey", 4), late = !strcmp(mode, "psn-late");
	const struct plan plan = {.type = datagram ? IBV_QPT_UD : IBV_QPT_RC};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct end *self = &ends[0];
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = rts_attr();
	struct address other;

	need(list && list[0] && list[1], "no two devices");
	open_end(self, list[sends], &plan);
	ibv_free_device_list(list);
	to_init(self, &plan);
	other = exchange(self);
	if (datagram) {
		to_rtr(self, &rtr);
		to_rts(self, &rts);
	} else if (sends || !late) {
		connect_far(self, &other, sends, mode);
	}
	if (!late)
		meet();
	if (sends && datagram)
		send_datagram(self, &other, mode);
	else if (sends)
		post_far(self, &other, mode);
	if (late)
		meet();
	if (late && !sends)
		connect_far(self, &other, sends, mode);
	if (sends && !datagram)
		wait_for(self);
	meet();
}

int main(int argc, char **argv)
{
	int forth[2], back[2], status;
	pid_t child;

	need(argc == 2 && !pipe(forth) && !pipe(back), "usage: far MODE");
	child = fork();
	to_peer = child ? forth[1] : back[1];
	from_peer = child ? back[0] : forth[0];
	run_end(!child, argv[1]);
	if (!child)
		return 0;
	need(waitpid(child, &status, 0) == child && WIFEXITED(status), "child");
	return WEXITSTATUS(status);
}
