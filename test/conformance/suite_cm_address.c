/* SPDX-License-Identifier: MIT */
/*
 * Connections: addresses, ports, listeners, and the way to a destination.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#define SRC_CMA SRC_CORE "cma.c, "

static const char *name_of(const struct ibv_context *context)
{
	return context->device->name;
}

static void an_address_binds_to_its_device(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address here = tc_address(&t->b, 0);

	VT_CHECK(t, !id->verbs);
	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
	VT_CHECK(t, id->verbs);
	VT_EQ_STR(t, name_of(id->verbs), name_of(t->b.ctx));
	VT_EQ(t, id->port_num, t->b.port);
	VT_CHECK(t, vb_cm_get_src_port(id) != 0);
	VT_EQ(t, rdma_get_local_addr(id)->sa_family, tc_sockaddr(&here)->sa_family);
}

static void any_address_binds_to_a_port_only(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address any = tc_any(&t->b, 0);

	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&any)));
	VT_CHECK(t, !id->verbs);
	VT_CHECK(t, vb_cm_get_src_port(id) != 0);
}

static void an_identifier_is_bound_once(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address here = tc_address(&t->b, 0);
	uint16_t port;

	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
	port = vb_cm_get_src_port(id);
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, tc_sockaddr(&here)), EINVAL);
	VT_EQ(t, vb_cm_get_src_port(id), port);
}

static void another_family_is_refused(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct sockaddr local = {.sa_family = AF_UNIX};
	struct tc_address here = tc_address(&t->b, 0);

	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, &local), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(id, NULL, &local, 100), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(id, &local, tc_sockaddr(&here), 100), EINVAL);
	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
}

static void an_unknown_port_space_is_refused(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *id = NULL;

	VT_MINUS_ERRNO(t, vb_cm_create_id(t->backend, channel, &id, NULL, 0x0107), EINVAL);
	VT_CHECK(t, !id);
}

/* Binds a new identifier to a port; returns 0 or the errno value. */
static int try_port(struct vt *t, struct rdma_event_channel *channel, struct tc_address address,
		    enum rdma_port_space ps)
{
	struct rdma_cm_id *id = tc_id(t, channel, ps);

	return vb_cm_bind_addr(id, tc_sockaddr(&address)) ? errno : 0;
}

static void a_port_has_one_owner_at_each_address(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *owner = tc_id(t, channel, RDMA_PS_TCP);
	struct tc_address here = tc_address(&t->b, 0);
	uint16_t port;

	VT_OK(t, vb_cm_bind_addr(owner, tc_sockaddr(&here)));
	port = ntohs(vb_cm_get_src_port(owner));
	VT_ERRNO(t, try_port(t, channel, tc_address(&t->b, port), RDMA_PS_TCP), EADDRINUSE);
	VT_ERRNO(t, try_port(t, channel, tc_address(&t->b, port), RDMA_PS_UDP), 0);
	tc_end(t, owner);
	VT_ERRNO(t, try_port(t, channel, tc_address(&t->b, port), RDMA_PS_TCP), 0);
}

static void a_port_may_be_bound_at_two_addresses(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *owner = tc_id(t, channel, RDMA_PS_TCP);
	struct tc_address here = tc_address(&t->b, 0);
	uint16_t port;

	VT_OK(t, vb_cm_bind_addr(owner, tc_sockaddr(&here)));
	port = ntohs(vb_cm_get_src_port(owner));
	VT_ERRNO(t, try_port(t, channel, tc_address(&t->a, port), RDMA_PS_TCP), 0);
}

/* Asks the listener at an address of one node from another one, and expects the request at the listener's
 * channel, and a rejection. */
static void ask_at(struct tc_pair *pair, const struct vt_node *at, const struct vt_node *from,
		   struct rdma_cm_id *listener)
{
	struct tc_address address = tc_address(at, pair->port), source = tc_address(from, 0);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct vt *t = pair->t;
	struct rdma_cm_id *id = tc_id(t, pair->a_channel, RDMA_PS_TCP), *request;

	VT_OK(t, vb_cm_resolve_addr(id, tc_sockaddr(&source), tc_sockaddr(&address), 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(id, 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	tc_qp(t, id);
	VT_OK(t, vb_cm_connect(id, &param));
	request = tc_expect(t, listener->channel, NULL, RDMA_CM_EVENT_CONNECT_REQUEST).event.id;
	tc_keep(t, request);
	VT_OK(t, vb_cm_reject(request, NULL, 0));
	tc_failed(t, pair->a_channel, id, RDMA_CM_EVENT_REJECTED, 28);
}

static void two_addresses_of_a_port_have_a_listener_each(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *other = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address there = tc_address(&t->a, pair->port);

	VT_OK(t, vb_cm_bind_addr(other, tc_sockaddr(&there)));
	VT_OK(t, vb_cm_listen(other, 1));
	ask_at(pair, &t->b, &t->a, pair->listener);
	ask_at(pair, &t->a, &t->b, other);
	/* The end of one listener is not the end of the other. */
	tc_end(t, other);
	ask_at(pair, &t->b, &t->a, pair->listener);
}

static void a_listener_shares_its_port_with_nobody(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_cm_id *ids[2];
	int on = 1;

	for (int i = 0; i < 2; i++) {
		ids[i] = tc_id(t, channel, RDMA_PS_TCP);
		VT_OK(t, vb_cm_set_option(ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
					  sizeof(on)));
		VT_OK(t, vb_cm_bind_addr(ids[i], tc_sockaddr(&here)));
		here = tc_address(&t->b, ntohs(vb_cm_get_src_port(ids[i])));
	}
	VT_MINUS_ERRNO(t, vb_cm_listen(ids[0], 1), EADDRINUSE);
	tc_end(t, ids[1]);
	VT_OK(t, vb_cm_listen(ids[0], 1));
	/* A listener shares its port with no other identifier, in spite of the option. */
	ids[1] = tc_id(t, channel, RDMA_PS_TCP);
	VT_OK(t,
	      vb_cm_set_option(ids[1], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(ids[1], tc_sockaddr(&here)), EADDRINUSE);
}

static void a_port_may_be_shared_before_it_listens(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_cm_id *ids[3];
	int on = 1;

	for (int i = 0; i < 3; i++)
		ids[i] = tc_id(t, channel, RDMA_PS_TCP);
	for (int i = 0; i < 2; i++) {
		VT_OK(t, vb_cm_set_option(ids[i], RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on,
					  sizeof(on)));
		VT_OK(t, vb_cm_bind_addr(ids[i], tc_sockaddr(&here)));
		here = tc_address(&t->b, ntohs(vb_cm_get_src_port(ids[i])));
	}
	VT_EQ(t, vb_cm_get_src_port(ids[0]), vb_cm_get_src_port(ids[1]));
	/* All owners must have the option. */
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(ids[2], tc_sockaddr(&here)), EADDRINUSE);
}

static void a_listener_without_an_address_gets_a_port(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);

	VT_OK(t, vb_cm_listen(id, 1));
	VT_CHECK(t, vb_cm_get_src_port(id) != 0);
	VT_MINUS_ERRNO(t, vb_cm_listen(id, 1), EINVAL);
}

static void a_listener_at_any_address_is_found(struct vt *t)
{
	struct tc_pair *pair = vt_alloc(t, sizeof(*pair));
	struct tc_address any = tc_any(&t->b, 0);

	*pair = (struct tc_pair){.t = t, .a_channel = tc_channel(t), .b_channel = tc_channel(t)};
	pair->listener = tc_id(t, pair->b_channel, RDMA_PS_TCP);
	VT_OK(t, vb_cm_bind_addr(pair->listener, tc_sockaddr(&any)));
	VT_OK(t, vb_cm_listen(pair->listener, 1));
	pair->port = ntohs(vb_cm_get_src_port(pair->listener));
	pair->a = tc_another(pair);
	tc_ask(pair);
	VT_EQ_STR(t, name_of(pair->b->verbs), name_of(t->b.ctx));
	VT_EQ(t, ntohs(vb_cm_get_src_port(pair->b)), pair->port);
	VT_EQ(t, vb_cm_get_dst_port(pair->b), vb_cm_get_src_port(pair->a));
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, 28);
}

static void an_address_and_a_route_are_resolved(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *id = pair->a;

	VT_CHECK(t, id->verbs);
	VT_CHECK(t, id->port_num > 0);
	VT_CHECK(t, id->pd);
	VT_EQ(t, id->route.num_paths, 1);
	VT_CHECK(t, id->route.path_rec);
	VT_EQ_MEM(t, &id->route.addr.addr.ibaddr.dgid, &t->b.gid, sizeof(t->b.gid));
	VT_EQ(t, ntohs(vb_cm_get_dst_port(id)), pair->port);
	VT_CHECK(t, vb_cm_get_src_port(id) != 0);
}

static void a_source_address_chooses_the_device(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *id = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	struct tc_address from = tc_address(&t->a, 0), to = tc_address(&t->b, pair->port);

	VT_OK(t, vb_cm_resolve_addr(id, tc_sockaddr(&from), tc_sockaddr(&to), 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_EQ_STR(t, name_of(id->verbs), name_of(t->a.ctx));
	VT_EQ_MEM(t, &id->route.addr.addr.ibaddr.sgid, &t->a.gid, sizeof(t->a.gid));
}

/* Checks the addresses and their ports: the scope of a link-local one is each side's own. */
static void check_same(struct vt *t, const struct sockaddr *got, const struct sockaddr *wanted)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)got;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)got;

	VT_EQ(t, got->sa_family, wanted->sa_family);
	VT_EQ(t, in->sin_port, ((const struct sockaddr_in *)wanted)->sin_port);
	if (got->sa_family == AF_INET)
		VT_EQ(t, in->sin_addr.s_addr,
		      ((const struct sockaddr_in *)wanted)->sin_addr.s_addr);
	else
		VT_EQ_MEM(t, &in6->sin6_addr, &((const struct sockaddr_in6 *)wanted)->sin6_addr,
			  sizeof(in6->sin6_addr));
}

/* The sides are at different addresses where there are two. */
static void each_side_knows_both_addresses(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct tc_address from = tc_address(&t->a, 0), to = tc_address(&t->b, pair->port);
	struct rdma_conn_param param = tc_param(NULL, 0);

	pair->a = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	VT_EQ(t, vb_cm_get_src_port(pair->a), 0);
	VT_EQ(t, vb_cm_get_dst_port(pair->a), 0);
	VT_OK(t, vb_cm_resolve_addr(pair->a, tc_sockaddr(&from), tc_sockaddr(&to), 2000));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(pair->a, 2000));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	tc_qp(t, pair->a);
	tc_request(pair, &param);
	check_same(t, rdma_get_peer_addr(pair->a), tc_sockaddr(&to));
	check_same(t, rdma_get_local_addr(pair->b), tc_sockaddr(&to));
	check_same(t, rdma_get_peer_addr(pair->b), rdma_get_local_addr(pair->a));
	from = tc_address(&t->a, ntohs(vb_cm_get_src_port(pair->a)));
	check_same(t, rdma_get_local_addr(pair->a), tc_sockaddr(&from));
	VT_EQ(t, vb_cm_get_dst_port(pair->b), vb_cm_get_src_port(pair->a));
	VT_EQ(t, ntohs(vb_cm_get_src_port(pair->b)), pair->port);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, 28);
}

static void steps_out_of_order_are_refused(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, pair->port);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct rdma_cm_id *id = tc_id(t, pair->a_channel, RDMA_PS_TCP);

	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(pair->a, NULL, tc_sockaddr(&to), 2000), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_resolve_route(pair->a, 2000), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_listen(pair->a, 1), EINVAL);
	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	tc_qp(t, id);
	VT_MINUS_ERRNO(t, vb_cm_connect(id, &param), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_accept(id, &param), EINVAL);
}

static const struct vt_test tests[] = {
	{"an_address_binds_to_its_device", "rdma_bind_addr(3)", 0, an_address_binds_to_its_device},
	{"any_address_binds_to_a_port_only", "rdma_bind_addr(3): port 0; rdma_listen(3)", 0,
	 any_address_binds_to_a_port_only},
	{"an_identifier_is_bound_once", SRC_CMA "rdma_bind_addr_dst: from RDMA_CM_IDLE", 0,
	 an_identifier_is_bound_once},
	{"another_family_is_refused", SRC_RDMA_CORE "librdmacm/cma.c, ucma_addrlen", 0,
	 another_family_is_refused},
	{"an_unknown_port_space_is_refused", SRC_CORE "ucma.c, ucma_get_qp_type", 0,
	 an_unknown_port_space_is_refused},
	{"a_port_has_one_owner_at_each_address", SRC_CMA "cma_check_port", 0,
	 a_port_has_one_owner_at_each_address},
	{"a_port_may_be_bound_at_two_addresses", SRC_CMA "cma_check_port", VT_NEEDS_TWO_DEVICES,
	 a_port_may_be_bound_at_two_addresses},
	{"two_addresses_of_a_port_have_a_listener_each", SRC_CMA "cma_match_private_data",
	 VT_NEEDS_TWO_DEVICES, two_addresses_of_a_port_have_a_listener_each},
	{"a_listener_shares_its_port_with_nobody", SRC_CMA "rdma_listen: cma_check_port", 0,
	 a_listener_shares_its_port_with_nobody},
	{"a_port_may_be_shared_before_it_listens", SRC_CMA "cma_check_port: reuseaddr", 0,
	 a_port_may_be_shared_before_it_listens},
	{"a_listener_without_an_address_gets_a_port", SRC_CMA "rdma_listen", 0,
	 a_listener_without_an_address_gets_a_port},
	{"a_listener_at_any_address_is_found", "rdma_listen(3): across all RDMA devices", 0,
	 a_listener_at_any_address_is_found},
	{"an_address_and_a_route_are_resolved", "rdma_resolve_addr(3), rdma_resolve_route(3)", 0,
	 an_address_and_a_route_are_resolved},
	{"a_source_address_chooses_the_device", "rdma_resolve_addr(3)", 0,
	 a_source_address_chooses_the_device},
	{"each_side_knows_both_addresses", "rdma_get_local_addr(3), rdma_get_peer_addr(3)", 0,
	 each_side_knows_both_addresses},
	{"steps_out_of_order_are_refused", SRC_CMA "rdma_resolve_addr, rdma_connect: cma_comp_exch",
	 0, steps_out_of_order_are_refused},
	{NULL},
};

const struct vt_suite vt_suite_cm_address = {"cm_address", "connections: addresses and listeners",
					     tests};
