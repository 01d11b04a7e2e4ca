/* SPDX-License-Identifier: MIT */
#include "ends.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRH_HOPS 64

bool end_wants_fixed(int argc, char **argv)
{
	const bool fixed = argc == 2 && !strcmp(argv[1], "--fixed");

	if (argc == 1 || fixed)
		return fixed;
	fprintf(stderr, "usage: %s [--fixed]\n", argv[0]);
	exit(2);
}

void end_need(bool good, const char *sentence)
{
	if (good)
		return;
	fprintf(stderr, "%s\n", sentence);
	exit(1);
}

/* On Ethernet, the GID of an IPv4 address that is of RoCE v2. */
static bool fits(const struct ibv_gid_entry *entry)
{
	return entry->gid_type == IBV_GID_TYPE_IB ||
	       (entry->gid_type == IBV_GID_TYPE_ROCE_V2 && entry->gid.raw[10] == 0xff);
}

static void find_address(struct end *end)
{
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	int i = 0;

	end_need(!ibv_query_port(end->context, 1, &port), "there is no port");
	end->lid = port.lid;
	while (i < port.gid_tbl_len &&
	       (ibv_query_gid_ex(end->context, 1, (uint32_t)i, &entry, 0) || !fits(&entry)))
		i++;
	end_need(i < port.gid_tbl_len && !ibv_query_gid(end->context, 1, i, &end->gid),
		 "there is no GID");
	end->gid_index = i;
	end->pkey_index = ibv_get_pkey_index(end->context, 1, htons(END_DEFAULT_PKEY));
	end_need(end->pkey_index >= 0, "the port is not in the default partition");
}

static void open_end(struct end *end, struct ibv_device *device)
{
	end->context = ibv_open_device(device);
	end_need(end->context, "the device cannot be opened");
	find_address(end);
	end->memory = calloc(1, END_BYTES);
	end->pd = ibv_alloc_pd(end->context);
	end->channel = ibv_create_comp_channel(end->context);
	end_need(end->memory && end->pd && end->channel, "there is no memory");
	end->mr = ibv_reg_mr(end->pd, end->memory, END_BYTES, IBV_ACCESS_LOCAL_WRITE);
	end->send_cq = ibv_create_cq(end->context, 2 * END_DEPTH, NULL, end->channel, 0);
	end->recv_cq = ibv_create_cq(end->context, 2 * END_DEPTH, NULL, end->channel, 0);
	end_need(end->mr && end->send_cq && end->recv_cq, "there are no CQs");
}

void ends_open(struct end ends[2])
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	end_need(list && list[0] && list[1], "there are no two devices");
	for (int i = 0; i < 2; i++)
		open_end(&ends[i], list[i]);
	ibv_free_device_list(list);
}

void end_make_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->send_cq,
		.recv_cq = end->recv_cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = END_DEPTH,
			.max_recv_wr = END_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.pkey_index = (uint16_t)end->pkey_index,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	end->qp = ibv_create_qp(end->pd, &init);
	end_need(end->qp && !ibv_modify_qp(end->qp, &attr, END_INIT_MASK), "there is no QP");
}

struct ibv_qp_attr end_rtr(const struct end *peer)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .dlid = peer->lid,
			    .grh = {.dgid = peer->gid,
				    .sgid_index = (uint8_t)peer->gid_index,
				    .hop_limit = GRH_HOPS}},
	};
}

struct ibv_qp_attr end_rts(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
}

void ends_connect(struct end ends[2])
{
	for (int i = 0; i < 2; i++)
		end_make_qp(&ends[i]);
	for (int i = 0; i < 2; i++) {
		struct ibv_qp_attr rtr = end_rtr(&ends[!i]), rts = end_rts();

		end_need(!ibv_modify_qp(ends[i].qp, &rtr, END_RTR_MASK) &&
				 !ibv_modify_qp(ends[i].qp, &rts, END_RTS_MASK),
			 "the QPs cannot be connected");
	}
}

static void destroy_cq(struct ibv_cq *cq)
{
	end_need(!ibv_destroy_cq(cq), "a CQ cannot be destroyed"); /* @destroy-cq */
}

void ends_close(struct end ends[2])
{
	for (int i = 0; i < 2; i++) {
		ibv_destroy_qp(ends[i].qp);
		if (ends[i].recv_cq != ends[i].send_cq)
			destroy_cq(ends[i].recv_cq);
		destroy_cq(ends[i].send_cq);
		ibv_dereg_mr(ends[i].mr);
		ibv_dealloc_pd(ends[i].pd);
		ibv_destroy_comp_channel(ends[i].channel);
		ibv_close_device(ends[i].context);
		free(ends[i].memory);
	}
}

struct ibv_sge end_piece(const struct end *end, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)end->memory + offset, length, end->mr->lkey};
}

void end_receive(struct end *end, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = end_piece(end, offset, length);
	struct ibv_recv_wr wr = {.wr_id = offset, .sg_list = &sge, .num_sge = 1}, *bad;

	end_need(!ibv_post_recv(end->qp, &wr, &bad), "the receive cannot be posted"); /* @receive */
}

struct ibv_wc end_wait(struct ibv_cq *cq)
{
	struct ibv_wc wc = {0};
	int count = 0;

	while (!count)
		count = ibv_poll_cq(cq, 1, &wc);
	end_need(count > 0, "the CQ cannot be polled");
	return wc;
}
