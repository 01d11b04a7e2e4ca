/* SPDX-License-Identifier: MIT */
#include "test/pairs/link.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 256, WAIT_MS = 60000 };
enum {
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND
};

const char *const link_kind_names[LINK_KINDS] = {"RC", "UC", "UD", "XRC", "SRQ"};

/* Returns true if a GID is of RoCE v2 and can be routed. */
static bool is_usable(const struct ibv_gid_entry *entry)
{
	return entry->gid_type == IBV_GID_TYPE_ROCE_V2 && entry->gid.raw[0] != 0xfe;
}

void adapter_find_port(struct adapter *adapter)
{
	struct ibv_gid_entry entry;
	uint32_t index = 0;

	check("ibv_query_port", ibv_query_port(adapter->context, 1, &adapter->port));
	if (adapter->port.link_layer != IBV_LINK_LAYER_ETHERNET)
		return;
	while (ibv_query_gid_ex(adapter->context, 1, index, &entry, 0) || !is_usable(&entry))
		if (++index == (uint32_t)adapter->port.gid_tbl_len)
			fail("the adapter has no GID of RoCE v2");
	adapter->gid = entry.gid;
	adapter->gid_index = index;
}

void adapter_open(struct adapter *adapter, unsigned int number, size_t bytes, int cq_depth,
		  bool events)
{
	int count;
	struct ibv_device **list = need("ibv_get_device_list", ibv_get_device_list(&count));
	struct ibv_context *context;

	if (!count)
		fail("there is no adapter");
	context = need("ibv_open_device", ibv_open_device(list[number % (unsigned int)count]));
	ibv_free_device_list(list);
	*adapter = (struct adapter){.context = context, .bytes = bytes, .depth = DEPTH};
	adapter->pd = need("ibv_alloc_pd", ibv_alloc_pd(context));
	if (events)
		adapter->channel =
			need("ibv_create_comp_channel", ibv_create_comp_channel(context));
	adapter->cq =
		need("ibv_create_cq", ibv_create_cq(context, cq_depth, NULL, adapter->channel, 0));
	adapter_find_port(adapter);
	adapter->memory =
		need("aligned_alloc", aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095));
	memset(adapter->memory, 0, bytes);
	adapter->mr = need("ibv_reg_mr", ibv_reg_mr(adapter->pd, adapter->memory, bytes, RIGHTS));
}

void adapter_close(struct adapter *adapter)
{
	if (adapter->srq)
		check("ibv_destroy_srq", ibv_destroy_srq(adapter->srq));
	if (adapter->xrcd)
		check("ibv_close_xrcd", ibv_close_xrcd(adapter->xrcd));
	check("ibv_destroy_cq", ibv_destroy_cq(adapter->cq));
	if (adapter->channel)
		check("ibv_destroy_comp_channel", ibv_destroy_comp_channel(adapter->channel));
	check("ibv_dereg_mr", ibv_dereg_mr(adapter->mr));
	check("ibv_dealloc_pd", ibv_dealloc_pd(adapter->pd));
	check("ibv_close_device", ibv_close_device(adapter->context));
	free(adapter->memory);
}

/* --- queue pairs --- */

static void make_srq(struct adapter *adapter, enum link_kind kind)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = adapter->depth, .max_sge = 2},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = kind == LINK_XRC ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = adapter->pd,
	};

	if (kind == LINK_XRC) {
		struct ibv_xrcd_init_attr xrcd = {
			.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
			.fd = -1,
			.oflags = O_CREAT,
		};

		if (!adapter->xrcd)
			adapter->xrcd =
				need("ibv_open_xrcd", ibv_open_xrcd(adapter->context, &xrcd));
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.xrcd = adapter->xrcd;
		attr.cq = adapter->cq;
	}
	adapter->srq = need("ibv_create_srq_ex", ibv_create_srq_ex(adapter->context, &attr));
}

static struct ibv_qp *make_qp(struct adapter *adapter, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = adapter->cq,
		.recv_cq = adapter->cq,
		.srq = srq,
		.cap = {adapter->depth, srq ? 0 : adapter->depth, 2, srq ? 0 : 2, 64},
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = adapter->pd,
	};

	if (type == IBV_QPT_XRC_RECV) {
		attr = (struct ibv_qp_init_attr_ex){
			.qp_type = type,
			.comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = adapter->xrcd,
		};
	} else if (type == IBV_QPT_XRC_SEND) {
		attr.recv_cq = NULL;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	}
	return need("ibv_create_qp_ex", ibv_create_qp_ex(adapter->context, &attr));
}

static void to_init(struct ibv_qp *qp, bool datagrams)
{
	const int pkey_index = ibv_get_pkey_index(qp->context, 1, htobe16(0xffff));
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.pkey_index = (uint16_t)pkey_index,
		.qkey = LINK_QKEY,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (pkey_index < 0)
		fail("the adapter has no default P_Key");
	if (qp->qp_type == IBV_QPT_UC)
		attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	check("ibv_modify_qp to INIT",
	      ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static void reset_qp(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	check("ibv_modify_qp to RESET", ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	to_init(qp, qp->qp_type == IBV_QPT_UD);
}

void link_reset(struct link *link)
{
	reset_qp(link->qp);
	if (link->receiver != link->qp)
		reset_qp(link->receiver);
}

void link_make(struct link *link, struct adapter *adapter, enum link_kind kind, enum ibv_mtu mtu,
	       struct link_name *name)
{
	static const enum ibv_qp_type types[LINK_KINDS] = {
		[LINK_RC] = IBV_QPT_RC,	       [LINK_UC] = IBV_QPT_UC,	[LINK_UD] = IBV_QPT_UD,
		[LINK_XRC] = IBV_QPT_XRC_SEND, [LINK_SRQ] = IBV_QPT_RC,
	};
	struct ibv_srq *srq = NULL;

	*link = (struct link){.adapter = adapter, .kind = kind, .mtu = mtu};
	if ((kind == LINK_XRC || kind == LINK_SRQ) && !adapter->srq)
		make_srq(adapter, kind);
	if (kind == LINK_SRQ)
		srq = adapter->srq;
	link->qp = make_qp(adapter, types[kind], srq);
	link->receiver = kind == LINK_XRC ? make_qp(adapter, IBV_QPT_XRC_RECV, NULL) : link->qp;
	to_init(link->qp, kind == LINK_UD);
	if (link->receiver != link->qp)
		to_init(link->receiver, false);
	*name = (struct link_name){
		.qpn = link->receiver->qp_num,
		.requests = link->qp->qp_num,
		.psn = (link->qp->qp_num * 7919) & 0xffffff,
		.rkey = adapter->mr->rkey,
		.bytes = (uint32_t)adapter->bytes,
		.memory = (uintptr_t)adapter->memory,
		.gid = adapter->gid,
		.lid = adapter->port.lid,
	};
	if (kind == LINK_XRC)
		check("ibv_get_srq_num", ibv_get_srq_num(adapter->srq, &name->srqn));
}

static struct ibv_ah_attr path_to(const struct link *link)
{
	struct ibv_ah_attr path = {.dlid = link->peer.lid, .port_num = 1};

	if (link->adapter->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		path.is_global = 1;
		path.grh.dgid = link->peer.gid;
		path.grh.sgid_index = (uint8_t)link->adapter->gid_index;
		path.grh.hop_limit = 64;
	}
	return path;
}

/* INIT to RTS. dest_qpn and rq_psn are of the QP that sends to this one, or answers it. */
static void connect_qp(const struct link *link, struct ibv_qp *qp, uint32_t dest_qpn,
		       uint32_t sq_psn, struct link_times times)
{
	bool reliable = qp->qp_type != IBV_QPT_UC;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.ah_attr = path_to(link),
		.path_mtu = link->mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = link->peer.psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (reliable && qp->qp_type != IBV_QPT_XRC_SEND)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	check("ibv_modify_qp to RTR", ibv_modify_qp(qp, &attr, mask));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.sq_psn = sq_psn,
		.timeout = times.timeout,
		.retry_cnt = times.retry,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (reliable && qp->qp_type != IBV_QPT_XRC_RECV)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	if (reliable)
		mask |= IBV_QP_TIMEOUT;
	check("ibv_modify_qp to RTS", ibv_modify_qp(qp, &attr, mask));
}

static void connect_datagrams(struct link *link)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
	struct ibv_ah_attr path = path_to(link);

	check("ibv_modify_qp to RTR", ibv_modify_qp(link->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	check("ibv_modify_qp to RTS", ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	link->ah = need("ibv_create_ah", ibv_create_ah(link->adapter->pd, &path));
}

void link_connect(struct link *link, const struct link_name *name, struct link_times times)
{
	uint32_t psn = (link->qp->qp_num * 7919) & 0xffffff;

	link->peer = *name;
	if (link->kind == LINK_UD) {
		connect_datagrams(link);
	} else {
		connect_qp(link, link->qp, name->qpn, psn, times);
		if (link->receiver != link->qp)
			connect_qp(link, link->receiver, name->requests, psn, times);
	}
}

void link_set_times(struct link *link, struct link_times times)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	check("ibv_modify_qp to SQD", ibv_modify_qp(link->qp, &attr, IBV_QP_STATE));
	attr.timeout = times.timeout;
	attr.retry_cnt = times.retry;
	check("ibv_modify_qp in SQD",
	      ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT));
	attr.qp_state = IBV_QPS_RTS;
	check("ibv_modify_qp to RTS", ibv_modify_qp(link->qp, &attr, IBV_QP_STATE));
}

void link_join(struct link *link, struct adapter *adapter, enum link_kind kind, enum ibv_mtu mtu,
	       struct link_times times, const struct peer *peer)
{
	struct link_name mine, theirs;

	link_make(link, adapter, kind, mtu, &mine);
	peer_swap(peer, &mine, &theirs, sizeof(mine));
	link_connect(link, &theirs, times);
	peer_meet(peer);
}

void link_destroy(struct link *link)
{
	if (link->ah)
		check("ibv_destroy_ah", ibv_destroy_ah(link->ah));
	if (link->receiver != link->qp)
		check("ibv_destroy_qp", ibv_destroy_qp(link->receiver));
	check("ibv_destroy_qp", ibv_destroy_qp(link->qp));
}

/* --- work --- */

struct ibv_sge link_sge(const struct adapter *adapter, size_t offset, size_t length)
{
	return (struct ibv_sge){(uintptr_t)adapter->memory + offset, (uint32_t)length,
				adapter->mr->lkey};
}

void link_post(struct link *link, struct ibv_send_wr *wr, size_t remote_offset)
{
	struct ibv_send_wr *bad;
	uint64_t address = link->peer.memory + remote_offset;

	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = address;
		wr->wr.atomic.rkey = link->peer.rkey;
	} else if (link->kind == LINK_UD) {
		wr->wr.ud.ah = link->ah;
		wr->wr.ud.remote_qpn = link->peer.qpn;
		wr->wr.ud.remote_qkey = LINK_QKEY;
	} else if (wr->opcode == IBV_WR_RDMA_WRITE || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
		   wr->opcode == IBV_WR_RDMA_READ) {
		wr->wr.rdma.remote_addr = address;
		if (!wr->wr.rdma.rkey)
			wr->wr.rdma.rkey = link->peer.rkey;
	}
	if (link->kind == LINK_XRC)
		wr->qp_type.xrc.remote_srqn = link->peer.srqn;
	check("ibv_post_send", ibv_post_send(link->qp, wr, &bad));
}

void link_work(struct link *link, enum ibv_wr_opcode opcode, size_t offset, size_t length,
	       size_t remote_offset)
{
	struct ibv_sge sge = link_sge(link->adapter, offset, length);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.wr.atomic.compare_add = 3;
	link_post(link, &wr, remote_offset);
}

void link_receive(struct link *link, uint64_t wr_id, size_t offset, size_t length)
{
	struct ibv_sge sge = link_sge(link->adapter, offset, length);
	struct ibv_recv_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};
	bool shared = link->kind == LINK_XRC || link->kind == LINK_SRQ;

	check("post of a receive", shared ? ibv_post_srq_recv(link->adapter->srq, &wr, &bad)
					  : ibv_post_recv(link->qp, &wr, &bad));
}

/* Sleeps until the channel has an event. */
static void wait_for_event(struct adapter *adapter)
{
	struct pollfd one = {adapter->channel->fd, POLLIN, 0};
	struct ibv_cq *cq;
	void *context;

	if (poll(&one, 1, WAIT_MS) == 0)
		fail("no completion event for %d s", WAIT_MS / 1000);
	check("ibv_get_cq_event", ibv_get_cq_event(adapter->channel, &cq, &context) ? errno : 0);
	ibv_ack_cq_events(cq, 1);
}

void adapter_wait(struct adapter *adapter, struct ibv_wc *wc)
{
	uint64_t until_ns = now_ns() + (uint64_t)WAIT_MS * 1000000;
	int count = ibv_poll_cq(adapter->cq, 1, wc);

	while (!count && adapter->channel) {
		check("ibv_req_notify_cq", ibv_req_notify_cq(adapter->cq, 0));
		count = ibv_poll_cq(adapter->cq, 1, wc);
		if (!count)
			wait_for_event(adapter);
		if (!count)
			count = ibv_poll_cq(adapter->cq, 1, wc);
	}
	while (!count) {
		if (now_ns() > until_ns)
			fail("no completion for %d s", WAIT_MS / 1000);
		count = ibv_poll_cq(adapter->cq, 1, wc);
	}
	if (count < 0)
		fail("ibv_poll_cq: %s", strerror(errno));
}

void adapter_success(struct adapter *adapter, struct ibv_wc *wc)
{
	adapter_wait(adapter, wc);
	if (wc->status != IBV_WC_SUCCESS)
		fail("QP 0x%x, wr_id %llu: %s", wc->qp_num, (unsigned long long)wc->wr_id,
		     ibv_wc_status_str(wc->status));
}
