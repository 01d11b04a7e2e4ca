/* SPDX-License-Identifier: MIT */
#include "test/support/manager.h"

#include "test/peer/peer.h"
#include "test/support/keep.h"
#include "test/support/need.h"

#include <netinet/in.h>
#include <poll.h>

#define REAL_LIMIT_MS 3000
#define RESOLVE_MS    2000
#define MESSAGE_BYTES 100

/* --- addresses --- */

struct tc_address tc_any(const struct vt_node *node, uint16_t port)
{
	struct tc_address address = {0};
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	struct sockaddr_in *in = (struct sockaddr_in *)&address;

	if (ts_gid_is_ipv4(&node->gid))
		*in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
	else
		*in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
	return address;
}

/* A link-local address needs its interface; a simulated device has none, and takes any number. */
static uint32_t scope_of(const struct vt_node *node)
{
	struct ibv_gid_entry entry = {0};

	if (vb_query_gid_ex(node->ctx, node->port, (uint32_t)node->gid_index, &entry, 0,
			    sizeof(entry)) ||
	    !entry.ndev_ifindex)
		return 1;
	return entry.ndev_ifindex;
}

struct tc_address tc_address(const struct vt_node *node, uint16_t port)
{
	struct tc_address address = tc_any(node, port);
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;

	if (ts_gid_is_ipv4(&node->gid)) {
		memcpy(&((struct sockaddr_in *)&address)->sin_addr, node->gid.raw + 12, 4);
		return address;
	}
	memcpy(&in6->sin6_addr, node->gid.raw, sizeof(in6->sin6_addr));
	if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		in6->sin6_scope_id = scope_of(node);
	return address;
}

struct sockaddr *tc_sockaddr(struct tc_address *address)
{
	return (struct sockaddr *)&address->storage;
}

/* --- objects --- */

struct kept {
	struct vt *t;
	struct rdma_cm_id *id; /* NULL after tc_end() */
	struct kept *next;
};

/* The identifiers of the test, in one list that the first one begins. */
static struct kept *kept;

static void end_channel(void *channel)
{
	vb_cm_destroy_event_channel(channel);
}

struct rdma_event_channel *tc_channel_of(struct vt *t, const struct vt_node *node)
{
	const bool relayed = node == &t->b && peer_active();
	struct rdma_event_channel *channel;

	vt_need(t, VT_NEEDS_SAME_MANAGER);
	channel =
		TS_PTR_OR_SKIP(t, vb_cm_create_event_channel(relayed ? PEER_BACKEND : t->backend));
	vt_defer(t, end_channel, channel);
	return channel;
}

struct rdma_event_channel *tc_channel(struct vt *t)
{
	vt_need(t, VT_NEEDS_MANAGER);
	return tc_channel_of(t, &t->a);
}

static void end_id(struct vt *t, struct rdma_cm_id *id)
{
	if (id->qp)
		vb_cm_destroy_qp(id);
	VT_OK(t, vb_cm_destroy_id(id));
}

static void end_kept(void *arg)
{
	struct kept *entry = arg;
	struct rdma_cm_id *id = entry->id;

	kept = entry->next;
	entry->id = NULL;
	if (id)
		end_id(entry->t, id);
}

void tc_keep(struct vt *t, struct rdma_cm_id *id)
{
	struct kept *entry = vt_alloc(t, sizeof(*entry));

	*entry = (struct kept){t, id, kept};
	kept = entry;
	vt_defer(t, end_kept, entry);
}

void tc_end(struct vt *t, struct rdma_cm_id *id)
{
	for (struct kept *entry = kept; entry; entry = entry->next)
		if (entry->id == id)
			entry->id = NULL;
	end_id(t, id);
}

struct rdma_cm_id *tc_id(struct vt *t, struct rdma_event_channel *channel, enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	VT_OK(t, vb_cm_create_id(t->backend, channel, &id, t, ps));
	tc_keep(t, id);
	return id;
}

void tc_qp(struct vt *t, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.cap = {8, 8, 1, 1, 0},
		.sq_sig_all = 1,
	};

	VT_OK(t, vb_cm_create_qp(id, NULL, &attr));
}

struct ibv_qp *tc_own_qp(struct vt *t, struct rdma_cm_id *id)
{
	struct ibv_cq *cq = VT_PTR(t, vb_create_cq(id->verbs, 16, NULL, NULL, 0));
	struct ibv_pd *pd = VT_PTR(t, vb_alloc_pd(id->verbs));

	ts_keep(t, TS_CQ, cq);
	ts_keep(t, TS_PD, pd);
	return ts_qp(t, pd, cq, IBV_QPT_RC);
}

/* --- events --- */

bool tc_has_event(struct vt *t, struct rdma_event_channel *channel)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	if (ts_virtual(t) && poll(&fd, 1, 0) == 0)
		ts_pause(t, 3000000000);
	return poll(&fd, 1, ts_virtual(t) ? 0 : REAL_LIMIT_MS) == 1;
}

/* Copies the private data before the event is acknowledged. */
static struct tc_event copy(const struct rdma_cm_event *event)
{
	struct tc_event seen = {.event = *event};
	const bool is_ud = event->id->ps == RDMA_PS_UDP;
	const void *data = is_ud ? event->param.ud.private_data : event->param.conn.private_data;

	seen.data_bytes =
		is_ud ? event->param.ud.private_data_len : event->param.conn.private_data_len;
	if (data && seen.data_bytes)
		memcpy(seen.data, data, seen.data_bytes);
	return seen;
}

struct tc_event tc_expect_at(struct vt *t, struct vt_at at, struct rdma_event_channel *channel,
			     struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event;
	struct tc_event seen;

	if (!ts_virtual(t) && !tc_has_event(t, channel))
		vt_fail(t, at, "no event came; %s was expected", vb_cm_event_str(type));
	VT_OK_AT(t, at, vb_cm_get_cm_event(channel, &event));
	seen = copy(event);
	VT_OK_AT(t, at, vb_cm_ack_cm_event(event));
	vt_eq_str(t, at, "the event", vb_cm_event_str(seen.event.event), vb_cm_event_str(type));
	VT_EQ_AT(t, at, VT_KIND_INTEGER, seen.event.status, status);
	vt_check(t, at, "the event's identifier is the expected one", !id || seen.event.id == id);
	return seen;
}

/* --- a pair --- */

void tc_route(struct tc_pair *pair, struct rdma_cm_id *id)
{
	struct tc_address to = tc_address(&pair->t->b, pair->port);

	VT_OK(pair->t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), RESOLVE_MS));
	tc_expect(pair->t, id->channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(pair->t, vb_cm_resolve_route(id, RESOLVE_MS));
	tc_expect(pair->t, id->channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

struct rdma_cm_id *tc_another(struct tc_pair *pair)
{
	struct rdma_cm_id *id = tc_id(pair->t, pair->a_channel, pair->listener->ps);

	tc_route(pair, id);
	return id;
}

struct tc_pair *tc_pair(struct vt *t, enum rdma_port_space ps)
{
	struct tc_pair *pair = vt_alloc(t, sizeof(*pair));
	struct tc_address here = tc_address(&t->b, 0);

	pair->t = t;
	pair->a_channel = tc_channel_of(t, &t->a);
	pair->b_channel = tc_channel_of(t, &t->b);
	pair->listener = tc_id(t, pair->b_channel, ps);
	VT_OK(t, vb_cm_bind_addr(pair->listener, tc_sockaddr(&here)));
	VT_OK(t, vb_cm_listen(pair->listener, 8));
	pair->port = ntohs(vb_cm_get_src_port(pair->listener));
	pair->a = tc_another(pair);
	return pair;
}

struct rdma_conn_param tc_param(const uint8_t *data, uint8_t bytes)
{
	return (struct rdma_conn_param){
		.private_data = data,
		.private_data_len = bytes,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

struct tc_event tc_request(struct tc_pair *pair, struct rdma_conn_param *param)
{
	struct tc_event seen;

	VT_OK(pair->t, vb_cm_connect(pair->a, param));
	seen = tc_expect(pair->t, pair->b_channel, NULL, RDMA_CM_EVENT_CONNECT_REQUEST);
	pair->b = seen.event.id;
	tc_keep(pair->t, pair->b);
	return seen;
}

void tc_unserved(struct vt *t, enum rdma_port_space space, enum rdma_cm_event_type type, int status)
{
	struct tc_pair *pair = tc_pair(t, space);
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_qp(t, pair->a);
	tc_end(t, pair->listener);
	VT_OK(t, vb_cm_connect(pair->a, &param));
	tc_failed(t, pair->a_channel, pair->a, type, status);
}

void tc_ask(struct tc_pair *pair)
{
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_qp(pair->t, pair->a);
	tc_request(pair, &param);
}

void tc_expect_both(struct tc_pair *pair, enum rdma_cm_event_type type)
{
	tc_expect(pair->t, pair->a_channel, pair->a, type);
	tc_expect(pair->t, pair->b_channel, pair->b, type);
}

void tc_establish(struct tc_pair *pair)
{
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_qp(pair->t, pair->b);
	VT_OK(pair->t, vb_cm_accept(pair->b, &param));
	tc_expect_both(pair, RDMA_CM_EVENT_ESTABLISHED);
}

struct tc_pair *tc_connected(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_ask(pair);
	tc_establish(pair);
	return pair;
}

/* Posts a message of an identifier, as the functions of <rdma/rdma_verbs.h> do. */
static void post(struct vt *t, struct rdma_cm_id *id, struct ibv_mr *mr, bool sends)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, MESSAGE_BYTES, mr->lkey};
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_receive;

	if (sends)
		VT_OK(t, vb_post_send(id->qp, &send, &bad_send));
	else
		VT_OK(t, vb_post_recv(id->qp, &receive, &bad_receive));
}

void tc_send(struct vt *t, struct rdma_cm_id *from, struct rdma_cm_id *to)
{
	uint8_t *sent = ts_memory(t, MESSAGE_BYTES), *received = ts_memory(t, MESSAGE_BYTES);
	struct ibv_mr *from_mr = ts_mr(t, from->qp->pd, sent, MESSAGE_BYTES, 0);
	struct ibv_mr *to_mr =
		ts_mr(t, to->qp->pd, received, MESSAGE_BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_wc wc;

	ts_fill(sent, MESSAGE_BYTES, 3);
	post(t, to, to_mr, false);
	post(t, from, from_mr, true);
	VT_EQ(t, ts_wait(t, from->send_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	VT_EQ(t, ts_wait(t, to->recv_cq, 1, &wc), 1);
	VT_STATUS(t, wc.status, IBV_WC_SUCCESS);
	ts_verify(t, received, MESSAGE_BYTES, 3);
}
