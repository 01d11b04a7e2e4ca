/* SPDX-License-Identifier: MIT */
/*
 * Connections: identifiers, event channels, options, and lists.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

static bool is_readable(const struct rdma_event_channel *channel)
{
	struct pollfd fd = {.fd = channel->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void a_channel_is_readable_while_an_event_waits(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_event_channel *channel = pair->a_channel;
	struct rdma_cm_id *id = tc_id(t, channel, RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, pair->port);
	struct rdma_cm_event *event;

	VT_CHECK(t, !is_readable(channel));
	VT_OK(t, fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	VT_MINUS_ERRNO(t, vb_cm_get_cm_event(channel, &event), EAGAIN);
	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	VT_CHECK(t, tc_has_event(t, channel));
	VT_CHECK(t, is_readable(channel));
	tc_expect(t, channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_CHECK(t, !is_readable(channel));
	VT_MINUS_ERRNO(t, vb_cm_get_cm_event(channel, &event), EAGAIN);
}

static void a_request_has_the_listeners_context(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct tc_event seen;

	/* A test does not write the fields of B's identifiers. */
	vt_need(t, VT_NEEDS_MANAGER);
	pair->listener->context = &param;
	tc_qp(t, pair->a);
	seen = tc_request(pair, &param);
	VT_CHECK(t, seen.event.listen_id == pair->listener);
	VT_CHECK(t, pair->b != pair->listener);
	VT_CHECK(t, pair->b->context == &param);
	VT_CHECK(t, pair->b->channel == pair->b_channel);
	VT_CHECK(t, !pair->b->qp);
	VT_EQ(t, pair->b->ps, RDMA_PS_TCP);
}

static void an_identifier_has_one_qp(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
	struct ibv_qp *qp;

	tc_qp(t, pair->a);
	qp = pair->a->qp;
	VT_CHECK(t, qp->pd == pair->a->pd);
	VT_CHECK(t, qp->send_cq == pair->a->send_cq && qp->recv_cq == pair->a->recv_cq);
	VT_CHECK(t, pair->a->send_cq->channel == pair->a->send_cq_channel);
	VT_MINUS_ERRNO(t, vb_cm_create_qp(pair->a, NULL, &attr), EINVAL);
	VT_CHECK(t, pair->a->qp == qp);
	vb_cm_destroy_qp(pair->a);
	VT_CHECK(t, !pair->a->qp && !pair->a->send_cq && !pair->a->recv_cq_channel);
	VT_OK(t, vb_cm_create_qp(pair->a, NULL, &attr));
}

static void a_migrated_identifier_takes_its_events_along(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_event_channel *other = tc_channel(t);
	struct rdma_cm_id *id = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, pair->port);

	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	VT_CHECK(t, tc_has_event(t, pair->a_channel));
	VT_OK(t, vb_cm_migrate_id(id, other));
	VT_CHECK(t, id->channel == other);
	VT_CHECK(t, !is_readable(pair->a_channel));
	tc_expect(t, other, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(id, 2000));
	tc_expect(t, other, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_cm_id *synchronous(struct vt *t)
{
	struct rdma_cm_id *id;

	VT_OK(t, vb_cm_create_id(t->backend, NULL, &id, NULL, RDMA_PS_TCP));
	tc_keep(t, id);
	return id;
}

static void calls_of_a_synchronous_identifier_wait(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, pair->port);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct rdma_cm_id *id = synchronous(t);

	VT_CHECK(t, id->channel && id->channel != pair->a_channel);
	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	VT_EQ(t, id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(id, 2000));
	VT_EQ(t, id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	tc_qp(t, id);
	tc_end(t, pair->listener);
	VT_MINUS_ERRNO(t, vb_cm_connect(id, &param), ECONNREFUSED);
	VT_EQ(t, id->event->event, RDMA_CM_EVENT_REJECTED);
	VT_EQ(t, id->event->status, 8);
}

static void an_identifier_becomes_synchronous_and_back(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, pair->port);
	struct rdma_cm_id *id = tc_id(t, pair->a_channel, RDMA_PS_TCP);

	VT_OK(t, vb_cm_migrate_id(id, NULL));
	VT_MINUS_ERRNO(t, vb_cm_migrate_id(id, NULL), EINVAL);
	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	VT_EQ(t, id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_migrate_id(id, pair->a_channel));
	VT_CHECK(t, !id->event);
	VT_OK(t, vb_cm_resolve_route(id, 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static void get_request_is_for_synchronous_listeners(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *id;

	VT_MINUS_ERRNO(t, vb_cm_get_request(pair->listener, &id), EINVAL);
}

static void each_option_is_kept_or_refused(struct vt *t)
{
	static const struct {
		const char *what;
		int level, name;
		size_t bytes;
		int error;
	} rows[] = {
		{"TOS", RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 1, 0},
		{"TOS of 4 bytes", RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, 4, EINVAL},
		{"REUSEADDR", RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 4, 0},
		{"REUSEADDR of a byte", RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, 1, EINVAL},
		{"AFONLY", RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 4, 0},
		{"AFONLY of a byte", RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, 1, EINVAL},
		{"ACK_TIMEOUT", RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 0},
		{"ACK_TIMEOUT of 4 bytes", RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, 4, EINVAL},
		{"an unknown option", RDMA_OPTION_ID, 77, 4, ENOSYS},
		{"an unknown level", 7, RDMA_OPTION_ID_TOS, 1, ENOSYS},
		{"an unknown option of IB", RDMA_OPTION_IB, 77, 4, ENOSYS},
	};
	struct rdma_event_channel *channel = tc_channel(t);

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct rdma_cm_id *id = tc_id(t, channel, RDMA_PS_TCP);
		int value = 1;
		int got;

		vt_row(t, "%s", rows[i].what);
		got = vb_cm_set_option(id, rows[i].level, rows[i].name, &value, rows[i].bytes);
		VT_EXPECT_ERRNO(t, got ? errno : 0, rows[i].error);
	}
}

static void an_option_may_come_too_late(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	int on = 1;

	VT_OK(t, vb_cm_listen(id, 1));
	VT_MINUS_ERRNO(t, vb_cm_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, 4),
		       EINVAL);
}

static bool has_device(struct ibv_context *const *list, const struct vt_node *node)
{
	for (size_t i = 0; list[i]; i++)
		if (!strcmp(list[i]->device->name, node->ctx->device->name))
			return true;
	return false;
}

static void free_list(void *list)
{
	vb_cm_free_devices(list);
}

static void all_devices_are_listed(struct vt *t)
{
	struct ibv_context **list;
	struct ibv_device_attr attr;
	int count = -1, counted = 0;

	tc_channel(t);
	list = VT_PTR(t, vb_cm_get_devices(t->backend, &count));
	vt_defer(t, free_list, list);
	while (list[counted])
		counted++;
	VT_EQ(t, count, counted);
	VT_CHECK(t, has_device(list, &t->a));
	VT_CHECK(t, has_device(list, &t->b));
	VT_OK(t, vb_query_device(list[0], &attr));
}

static void free_addresses(void *list)
{
	vb_cm_freeaddrinfo(list);
}

static void addresses_of_a_host_and_a_service(struct vt *t)
{
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST,
				      .ai_port_space = RDMA_PS_TCP};
	const bool is_ipv4 = ts_gid_is_ipv4(&t->b.gid);
	struct rdma_addrinfo *list;
	char host[INET6_ADDRSTRLEN];

	tc_channel(t);
	VT_CHECK(t, inet_ntop(is_ipv4 ? AF_INET : AF_INET6, t->b.gid.raw + (is_ipv4 ? 12 : 0), host,
			      sizeof(host)));
	VT_EQ(t, vb_cm_getaddrinfo(t->backend, host, "7471", &hints, &list), 0);
	vt_defer(t, free_addresses, list);
	VT_EQ(t, list->ai_port_space, RDMA_PS_TCP);
	VT_EQ(t, list->ai_qp_type, IBV_QPT_RC);
	VT_EQ(t, list->ai_family, tc_sockaddr(&here)->sa_family);
	VT_CHECK(t, list->ai_src_addr);
	VT_EQ(t, ntohs(((struct sockaddr_in *)list->ai_src_addr)->sin_port), 7471);
	VT_CHECK(t, vb_cm_getaddrinfo(t->backend, "no address", "7471", &hints, &list) != 0);
}

static const struct vt_test tests[] = {
	{"a_channel_is_readable_while_an_event_waits", "rdma_get_cm_event(3)", 0,
	 a_channel_is_readable_while_an_event_waits},
	{"a_request_has_the_listeners_context",
	 SRC_RDMA_CORE "librdmacm/cma.c, ucma_process_conn_req", 0,
	 a_request_has_the_listeners_context},
	{"an_identifier_has_one_qp", "rdma_create_qp(3)", 0, an_identifier_has_one_qp},
	{"a_migrated_identifier_takes_its_events_along", "rdma_migrate_id(3)", 0,
	 a_migrated_identifier_takes_its_events_along},
	{"calls_of_a_synchronous_identifier_wait", "rdma_create_id(3)", 0,
	 calls_of_a_synchronous_identifier_wait},
	{"an_identifier_becomes_synchronous_and_back", "rdma_migrate_id(3)", 0,
	 an_identifier_becomes_synchronous_and_back},
	{"get_request_is_for_synchronous_listeners", "rdma_get_request(3)", 0,
	 get_request_is_for_synchronous_listeners},
	{"each_option_is_kept_or_refused", SRC_CORE "ucma.c, ucma_set_option_id", 0,
	 each_option_is_kept_or_refused},
	{"an_option_may_come_too_late", SRC_CORE "cma.c, rdma_set_afonly", 0,
	 an_option_may_come_too_late},
	{"all_devices_are_listed", "rdma_get_devices(3)", 0, all_devices_are_listed},
	{"addresses_of_a_host_and_a_service", "rdma_getaddrinfo(3)", 0,
	 addresses_of_a_host_and_a_service},
	{NULL},
};

const struct vt_suite vt_suite_cm_ids = {"cm_ids", "connections: identifiers and channels", tests};
