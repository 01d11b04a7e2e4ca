/* SPDX-License-Identifier: MIT */
/* Connected pairs of the connection manager: b listens, a connects. Of UD QPs, the connection manager tells a
 * the address, the QPN and the Q_Key of b; a's first message tells b those of a. */
#include "src/expect/clock.h"
#include "src/expect/pair.h"
#include "src/expect/report.h"

#include "src/base/failure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/cm.h>

#define WAIT_MS 2000
#define PAGE	4096

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* The IP address that a GID of RoCE stands for, with port 0. */
static void address_of(const union ibv_gid *gid, union address *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	memset(address, 0, sizeof(*address));
	if (!memcmp(gid->raw, mapped, sizeof(mapped))) {
		address->v4.sin_family = AF_INET;
		memcpy(&address->v4.sin_addr, gid->raw + sizeof(mapped), 4);
	} else {
		address->v6.sin6_family = AF_INET6;
		memcpy(&address->v6.sin6_addr, gid->raw, sizeof(gid->raw));
	}
}

/* Reads the address of a device, which is open only meanwhile. */
static int find_address(struct pair *pair, int which, union address *address)
{
	struct vb_devices *devices = vb_devices_get(pair->options.backend);
	const unsigned int count = devices ? vb_devices_count(devices) : 0;
	const char *name = pair->options.device[which];
	struct vb_device *device;

	if (!name && count)
		name = vb_devices_at(devices, which && count > 1)->name;
	device = vb_device_open_named(pair->options.backend, name ? name : "", 0, VB_GID_INDEX_ANY);
	vb_devices_put(devices);
	if (!device)
		return pair_failed("opening a device");
	address_of(&device->gid, address);
	vb_device_close(device);
	return 0;
}

static bool is_ud(const struct pair *pair)
{
	return pair->options.type == IBV_QPT_UD;
}

/* Makes the AH to the other end from the event of a UD identifier. Returns 0 or an errno value. */
static int note_peer(struct pair_side *side, const struct rdma_cm_event *event)
{
	struct vb_pair_end *end = side->end;

	end->remote_qpn = event->param.ud.qp_num;
	end->remote_qkey = event->param.ud.qkey;
	end->ah = vb_create_ah(end->pd, (struct ibv_ah_attr *)&event->param.ud.ah_attr);
	return end->ah ? 0 : pair_failed("creating an address handle");
}

/* Takes the next event, which must be of the type. *id is that of the event. */
static int take(struct pair *pair, struct pair_side *side, enum rdma_cm_event_type type,
		struct rdma_cm_id **id)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type came;
	int status, err = 0;

	*id = NULL;
	if (expect_wait_fd(side->channel->fd, expect_timeout_ns()) != EXPECT_CAME)
		return fail(ETIMEDOUT, "pair_open: no %s came", vb_cm_event_str(type));
	if (vb_cm_get_cm_event(side->channel, &event))
		return pair_failed("taking an event");
	came = event->event;
	status = event->status;
	*id = event->id;
	if (came == type && came == RDMA_CM_EVENT_ESTABLISHED && is_ud(pair))
		err = note_peer(side, event);
	vb_cm_ack_cm_event(event);
	return came == type ? err
			    : fail(ECONNREFUSED, "pair_open: %s came with status %d, and not %s",
				   vb_cm_event_str(came), status, vb_cm_event_str(type));
}

static int make_end(struct pair *pair, struct pair_side *side, struct rdma_cm_id *id)
{
	struct vb_pair_end *end = side->end;
	struct ibv_qp_init_attr init = {.qp_type = pair->options.type,
					.cap = {.max_send_wr = pair->options.depth,
						.max_recv_wr = pair->options.depth,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	const size_t bytes = (pair->options.buffer_bytes + PAGE - 1) / PAGE * PAGE;
	int err;

	end->id = id;
	end->context = id->verbs;
	err = pair_make_queues(pair, side);
	if (err)
		return err;
	init.send_cq = init.recv_cq = end->cq;
	init.srq = end->srq;
	if (vb_cm_create_qp(id, end->pd, &init))
		return pair_failed("creating a QP");
	end->qp = id->qp;
	side->memory = aligned_alloc(PAGE, bytes);
	if (!side->memory)
		return fail(ENOMEM, "pair_open: there is no memory");
	memset(side->memory, 0, bytes);
	end->buffer = side->memory;
	end->mr = vb_reg_mr(end->pd, side->memory, pair->options.buffer_bytes,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	return end->mr ? 0 : pair_failed("registering memory");
}

static enum rdma_port_space space_of(const struct pair *pair)
{
	return is_ud(pair) ? RDMA_PS_UDP : RDMA_PS_TCP;
}

static int listen_at(struct pair *pair, union address *address)
{
	struct pair_side *side = &pair->sides[1];
	int err = find_address(pair, 1, address);

	if (err)
		return err;
	side->channel = vb_cm_create_event_channel(pair->options.backend);
	if (!side->channel ||
	    vb_cm_create_id(NULL, side->channel, &pair->listener, NULL, space_of(pair)) ||
	    vb_cm_bind_addr(pair->listener, &address->any) || vb_cm_listen(pair->listener, 1))
		return pair_failed("listening");
	/* Of both families the port stands at the same place. */
	address->v4.sin_port = vb_cm_get_src_port(pair->listener);
	return 0;
}

static int resolve(struct pair *pair, union address *to)
{
	struct pair_side *side = &pair->sides[0];
	struct rdma_cm_id *id;
	union address from;
	int err = find_address(pair, 0, &from);

	if (err)
		return err;
	side->channel = vb_cm_create_event_channel(pair->options.backend);
	if (!side->channel ||
	    vb_cm_create_id(NULL, side->channel, &side->end->id, NULL, space_of(pair)) ||
	    vb_cm_resolve_addr(side->end->id, &from.any, &to->any, WAIT_MS))
		return pair_failed("resolving an address");
	err = take(pair, side, RDMA_CM_EVENT_ADDR_RESOLVED, &id);
	if (err)
		return err;
	if (vb_cm_resolve_route(side->end->id, WAIT_MS))
		return pair_failed("resolving a route");
	err = take(pair, side, RDMA_CM_EVENT_ROUTE_RESOLVED, &id);
	return err ? err : make_end(pair, side, side->end->id);
}

static int connect_ends(struct pair *pair)
{
	struct rdma_conn_param parameters = {.responder_resources = 1,
					     .initiator_depth = 1,
					     .retry_count = pair->options.retry_cnt,
					     .rnr_retry_count = pair->options.rnr_retry};
	struct pair_side *a = &pair->sides[0], *b = &pair->sides[1];
	struct rdma_cm_id *id;
	int err;

	if (vb_cm_connect(a->end->id, &parameters))
		return pair_failed("connecting");
	err = take(pair, b, RDMA_CM_EVENT_CONNECT_REQUEST, &id);
	if (err || !id)
		return err;
	err = make_end(pair, b, id);
	if (err)
		return err;
	parameters.qp_num = id->qp->qp_num;
	parameters.srq = pair->options.srq;
	if (vb_cm_accept(id, &parameters))
		return pair_failed("accepting");
	if (is_ud(pair))
		return take(pair, a, RDMA_CM_EVENT_ESTABLISHED, &id);
	err = take(pair, a, RDMA_CM_EVENT_ESTABLISHED, &id);
	return err ? err : take(pair, b, RDMA_CM_EVENT_ESTABLISHED, &id);
}

int pair_open_cm(struct pair *pair)
{
	union address address;
	int err = listen_at(pair, &address);

	if (!err)
		err = resolve(pair, &address);
	if (!err)
		err = connect_ends(pair);
	if (!err)
		for (int i = 0; i < 2; i++)
			pair->sides[i].end->remote_qpn = pair->sides[!i].end->qp->qp_num;
	return err;
}

/* --- ending --- */

static int close_end(struct pair_side *side)
{
	struct vb_pair_end *end = side->end;
	int err = 0;

	if (end->ah)
		err = vb_destroy_ah(end->ah);
	if (end->qp)
		vb_cm_destroy_qp(end->id);
	if (end->srq && !err)
		err = vb_destroy_srq(end->srq);
	if (end->mr && !err)
		err = vb_dereg_mr(end->mr);
	free(side->memory);
	if (end->cq && !err)
		err = vb_destroy_cq(end->cq);
	if (end->pd && !err)
		err = vb_dealloc_pd(end->pd);
	if (end->id && vb_cm_destroy_id(end->id) && !err)
		err = errno;
	return err;
}

int pair_close_cm(struct pair *pair)
{
	struct pair_side *a = &pair->sides[0], *b = &pair->sides[1];
	int err, other;

	if (a->end->qp && b->end->qp)
		vb_cm_disconnect(a->end->id);
	err = close_end(a);
	other = close_end(b);
	if (pair->listener && vb_cm_destroy_id(pair->listener) && !err)
		err = errno;
	for (int i = 0; i < 2; i++)
		if (pair->sides[i].channel)
			vb_cm_destroy_event_channel(pair->sides[i].channel);
	return err ? err : other;
}
