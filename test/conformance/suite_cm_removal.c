/* SPDX-License-Identifier: MIT */
/*
 * Connections: devices that are removed. Linux drivers/infiniband/core/cma.c, cma_process_remove, and
 * ucma.c, ucma_event_handler.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#include <fcntl.h>
#include <verbena/sim.h>

#define SRC_CMA SRC_CORE "cma.c, "

enum { IDS_MAX = 8 };

/* The identifiers of one channel, and the events of each. */
struct watched {
	struct vt *t;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *ids[IDS_MAX];
	unsigned int events[IDS_MAX];
	unsigned int count;
};

static struct rdma_cm_id *watch(struct watched *watched, struct rdma_cm_id *id)
{
	VT_OK(watched->t, vb_cm_migrate_id(id, watched->channel));
	watched->ids[watched->count++] = id;
	return id;
}

static struct watched watched(struct vt *t)
{
	struct watched made = {.t = t, .channel = tc_channel(t)};

	VT_OK(t, fcntl(made.channel->fd, F_SETFL, O_NONBLOCK));
	return made;
}

/* Takes all events, which are of one kind. */
static void take_all(struct watched *watched)
{
	struct vt *t = watched->t;
	struct rdma_cm_event *event;

	while (!vb_cm_get_cm_event(watched->channel, &event)) {
		unsigned int i = 0;

		VT_EQ_STR(t, vb_cm_event_str(event->event), "RDMA_CM_EVENT_DEVICE_REMOVAL");
		VT_EQ(t, event->status, 0);
		while (i < watched->count && watched->ids[i] != event->id)
			i++;
		VT_CHECK(t, i < watched->count);
		watched->events[i]++;
		VT_OK(t, vb_cm_ack_cm_event(event));
	}
	VT_EQ(t, errno, EAGAIN);
}

static struct rdma_cm_id *bound(struct vt *t, const struct vt_node *node, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), ps);
	struct tc_address here = tc_address(node, 0);

	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
	return id;
}

/* A listener at all addresses belongs to no device. */
static struct rdma_cm_id *at_any_address(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address any = tc_any(&t->a, 0);

	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&any)));
	VT_OK(t, vb_cm_listen(id, 4));
	return id;
}

static void each_identifier_of_the_device_has_one_event(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t), *datagrams = tc_pair(t, RDMA_PS_UDP);
	struct watched own = watched(t), others = watched(t);

	tc_send(t, pair->a, pair->b);
	watch(&own, pair->listener);
	watch(&own, pair->a);
	watch(&own, pair->b);
	watch(&own, datagrams->listener);
	watch(&own, datagrams->a);
	watch(&own, bound(t, &t->b, RDMA_PS_TCP));
	watch(&others, bound(t, &t->a, RDMA_PS_TCP));
	watch(&others, at_any_address(t));
	watch(&others, tc_id(t, tc_channel(t), RDMA_PS_TCP));
	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	take_all(&own);
	for (unsigned int i = 0; i < own.count; i++) {
		vt_row(t, "identifier %u", i);
		VT_EXPECT_EQ(t, own.events[i], 1);
		VT_EXPECT_MINUS_ERRNO(t, vb_cm_notify(own.ids[i], IBV_EVENT_COMM_EST), ENXIO);
	}
	take_all(&others);
	for (unsigned int i = 0; i < others.count; i++)
		VT_EXPECT_EQ(t, others.events[i], 0);
}

/* Connects an identifier of A's device to a listener at A's address, and sends a message. */
static void connect_at_a(struct vt *t, struct rdma_cm_id *listener)
{
	struct tc_pair pair = {.t = t,
			       .a_channel = tc_channel(t),
			       .b_channel = listener->channel,
			       .listener = listener};
	struct tc_address to = tc_address(&t->a, ntohs(vb_cm_get_src_port(listener)));
	struct rdma_conn_param param = tc_param(NULL, 0);

	pair.a = tc_id(t, pair.a_channel, RDMA_PS_TCP);
	VT_OK(t, vb_cm_resolve_addr(pair.a, NULL, tc_sockaddr(&to), 2000));
	tc_expect(t, pair.a_channel, pair.a, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(pair.a, 2000));
	tc_expect(t, pair.a_channel, pair.a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	tc_qp(t, pair.a);
	tc_request(&pair, &param);
	tc_qp(t, pair.b);
	VT_OK(t, vb_cm_accept(pair.b, &param));
	tc_expect(t, pair.a_channel, pair.a, RDMA_CM_EVENT_ESTABLISHED);
	tc_expect(t, pair.b_channel, pair.b, RDMA_CM_EVENT_ESTABLISHED);
	tc_send(t, pair.a, pair.b);
}

static void a_listener_at_any_address_serves_the_other_devices(struct vt *t)
{
	struct rdma_cm_id *listener = at_any_address(t);
	struct tc_address gone = tc_address(&t->b, 0);
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);

	connect_at_a(t, listener);
	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	connect_at_a(t, listener);
	/* No device has the address of the removed one. */
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, tc_sockaddr(&gone)), EADDRNOTAVAIL);
}

/* The identifier of a request has no events before it is accepted. */
static void a_request_that_is_not_accepted_has_no_event(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct watched requests = watched(t), listeners = watched(t);

	tc_qp(t, pair->a);
	tc_request(pair, &param);
	watch(&listeners, pair->listener);
	watch(&requests, pair->b);
	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	take_all(&requests);
	VT_EQ(t, requests.events[0], 0);
	take_all(&listeners);
	VT_EQ(t, listeners.events[0], 1);
	VT_MINUS_ERRNO(t, vb_cm_accept(pair->b, &param), ENXIO);
	VT_MINUS_ERRNO(t, vb_cm_reject(pair->b, NULL, 0), ENXIO);
}

/* The sides of a connection are of two devices: the one that stays has no event of the removal. */
static void the_peer_of_a_removed_device(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct tc_address from = tc_address(&t->a, 0), to = tc_address(&t->b, pair->port);
	struct rdma_conn_param param = tc_param(NULL, 0);

	pair->a_channel = tc_channel(t);
	pair->a = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	VT_OK(t, vb_cm_resolve_addr(pair->a, tc_sockaddr(&from), tc_sockaddr(&to), 2000));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(pair->a, 2000));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	tc_qp(t, pair->a);
	tc_request(pair, &param);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	tc_send(t, pair->a, pair->b);
	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	VT_CHECK(t, !tc_has_event(t, pair->a_channel));
	VT_OK(t, vb_cm_disconnect(pair->a));
	/* The removed device answers no DREQ. */
	ts_pause(t, UINT64_C(100000000000));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED, -ETIMEDOUT);
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static const struct vt_test tests[] = {
	{"each_identifier_of_the_device_has_one_event", SRC_CMA "cma_process_remove",
	 VT_NEEDS_TWO_DEVICES, each_identifier_of_the_device_has_one_event},
	{"a_listener_at_any_address_serves_the_other_devices",
	 SRC_CMA "cma_listen_handler: listening IDs are always destroyed on removal",
	 VT_NEEDS_TWO_DEVICES, a_listener_at_any_address_serves_the_other_devices},
	{"a_request_that_is_not_accepted_has_no_event", SRC_CORE "ucma.c, ucma_event_handler: uid",
	 0, a_request_that_is_not_accepted_has_no_event},
	{"the_peer_of_a_removed_device", SRC_CORE "cm.c, cm_process_send_error: IB_CM_DREQ_ERROR",
	 VT_NEEDS_TWO_DEVICES | VT_NEEDS_VIRTUAL_CLOCK, the_peer_of_a_removed_device},
	{NULL},
};

const struct vt_suite vt_suite_cm_removal = {"cm_removal", "connections: devices that are removed",
					     tests, .simulator = true};
