/* SPDX-License-Identifier: MIT */
/* Two ends on the two devices of the default world, for tests of the backend sim. */
#ifndef TEST_UNIT_SIM_PAIR_H
#define TEST_UNIT_SIM_PAIR_H

#include "backends/sim/backend.h"
#include "unity.h"

#include <errno.h>
#include <stdlib.h>
#include <verbena/sim.h>

/* The table whose verbs are called. A test may define another. */
#ifndef B
#define B vb_backend_sim
#endif
#define ACCESS_ALL (IBV_ACCESS_LOCAL_WRITE | REMOTE_ALL)
#define REMOTE_ALL (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define QKEY	   0x11111111

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	union ibv_gid gid; /* index 1 of port 1 */
	uint16_t lid;	   /* of InfiniBand; else 0 */
	_Alignas(64) uint8_t buffer[4096];
};

static struct end a, b;

/* The sentence of the last refused verb. */
static inline const char *sentence(void)
{
	static char text[512];

	return vb_why_text(B.last_why(), text, sizeof(text));
}

static inline void open_end(struct end *end, struct ibv_device *device)
{
	struct ibv_port_attr port;

	memset(end, 0, sizeof(*end));
	end->context = B.open_device(device);
	end->pd = B.alloc_pd(end->context);
	end->cq = B.create_cq(end->context, 64, NULL, NULL, 0);
	end->mr = B.reg_mr(end->pd, end->buffer, sizeof(end->buffer),
			   ACCESS_ALL | IBV_ACCESS_MW_BIND);
	TEST_ASSERT_NOT_NULL(end->mr);
	TEST_ASSERT_EQUAL_INT(0, B.query_gid(end->context, 1, 1, &end->gid));
	TEST_ASSERT_EQUAL_INT(0, B.query_port(end->context, 1, &port, sizeof(port)));
	end->lid = port.lid;
}

/* NULL: two devices of Ethernet. */
static inline void open_pair_of(const struct vb_sim_config *config)
{
	struct ibv_device **list;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	open_end(&b, list[1]);
	B.free_device_list(list);
}

static inline void open_pair(void)
{
	open_pair_of(NULL);
}

static inline void open_infiniband_pair(void)
{
	static struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .link_layer = IBV_LINK_LAYER_INFINIBAND},
			    {.name = "sim1", .link_layer = IBV_LINK_LAYER_INFINIBAND}},
	};

	for (unsigned int i = 0; i < 2; i++) {
		config.devices[i].gid_count = 1;
		vb_sim_default_gids(i + 1, config.devices[i].gids);
	}
	open_pair_of(&config);
}

/* Closing a device ends all its objects: none is left in the world. */
static inline void close_pair(void)
{
	static const struct vb_sim_objects none;
	struct vb_sim_objects left;

	if (a.context)
		B.close_device(a.context);
	if (b.context)
		B.close_device(b.context);
	a.context = b.context = NULL;
	vb_sim_count_objects(NULL, &left);
	TEST_ASSERT_EQUAL_INT(0, memcmp(&left, &none, sizeof(none)));
}

static inline struct ibv_qp_init_attr_ex qp_attr(struct end *end, enum ibv_qp_type type)
{
	return (struct ibv_qp_init_attr_ex){
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = 8,
			.max_recv_wr = 8,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64},
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end->pd,
	};
}

/* Sets the attributes that ibv_modify_qp(3) requires at each step, by type. Both ends have the first PSN. */
static inline void connect_qp_at(struct ibv_qp *qp, const struct end *peer, uint32_t peer_qpn,
				 uint32_t psn)
{
	const bool ud = qp->qp_type == IBV_QPT_UD;
	const bool uc = qp->qp_type == IBV_QPT_UC;
	const bool sends = !ud && !uc && qp->qp_type != IBV_QPT_XRC_RECV;
	const bool receives = !ud && !uc && qp->qp_type != IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = REMOTE_ALL,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	TEST_ASSERT_EQUAL_INT(
		0, B.modify_qp(qp, &attr, mask | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.rq_psn = psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .dlid = peer->lid,
			    .port_num = 1,
			    .grh = {.dgid = peer->gid, .sgid_index = 1, .hop_limit = 64}},
	};
	mask = IBV_QP_STATE;
	if (!ud)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (receives)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, mask));
	attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
				    .sq_psn = psn,
				    .timeout = 14,
				    .retry_cnt = 3,
				    .rnr_retry = 7,
				    .max_rd_atomic = 4};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (sends)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (sends || receives)
		mask |= IBV_QP_TIMEOUT;
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(qp, &attr, mask));
}

static inline void connect_qp(struct ibv_qp *qp, const struct end *peer, uint32_t peer_qpn)
{
	connect_qp_at(qp, peer, peer_qpn, 0);
}

/* The next completion of an end. */
static inline struct ibv_wc wait_wc(struct end *end)
{
	struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
	int n = 0;

	for (int i = 0; i < 1000 && !n; i++)
		n = ibv_poll_cq(end->cq, 1, &wc);
	TEST_ASSERT_EQUAL_INT(1, n);
	return wc;
}

static inline void expect_wc(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(end);

	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(status, wc.status);
}

/* Runs the present instant. The CQ must be empty then. */
static inline void expect_nothing(struct end *end)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_run(NULL, 0));
	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(end->cq, 1, &wc));
}

static inline int post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;

	wr->send_flags |= IBV_SEND_SIGNALED;
	return ibv_post_send(qp, wr, &bad);
}

static inline struct ibv_sge sge_of(struct end *end, size_t offset, uint32_t length)
{
	return (struct ibv_sge){(uintptr_t)end->buffer + offset, length, end->mr->lkey};
}

static inline void expect_null(int error, const void *pointer)
{
	int found = errno;

	TEST_ASSERT_NULL(pointer);
	TEST_ASSERT_EQUAL_INT(error, found);
}

/* Makes an RC QP at each end, and connects the two. */
static inline void connect_pair(struct ibv_qp **from, struct ibv_qp **to)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	*from = B.create_qp_ex(a.context, &attr);
	attr = qp_attr(&b, IBV_QPT_RC);
	*to = B.create_qp_ex(b.context, &attr);
	TEST_ASSERT_NOT_NULL(*to);
	connect_qp(*from, &b, (*to)->qp_num);
	connect_qp(*to, &a, (*from)->qp_num);
}

#endif
