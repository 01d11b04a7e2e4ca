/* SPDX-License-Identifier: MIT */
/*
 * Connections: identifiers of rdma_create_ep(3), synchronous servers and clients, and the addresses of
 * rdma_getaddrinfo(3).
 */
#include "test/conformance/sources.h"
#include "test/support/keep.h"
#include "test/support/manager.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <stdio.h>
#include <verbena/error.h>
#include <verbena/sim.h>

#define SRC_LIBRARY SRC_RDMA_CORE "librdmacm/cma.c, "

/* Of another type than the endpoint's: the address has the type. */
static struct ibv_qp_init_attr attributes(void)
{
	return (struct ibv_qp_init_attr){
		.qp_type = IBV_QPT_UC, .cap = {8, 8, 1, 1, 0}, .sq_sig_all = 1};
}

static void end_endpoint(void *id)
{
	vb_cm_destroy_ep(id);
}

/* The kernel compares it with the family's: Linux drivers/infiniband/core/ucma.c, ucma_bind. */
static socklen_t length_of(const struct sockaddr *address)
{
	return address->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6);
}

static struct rdma_addrinfo passive(struct tc_address *address, int qp_type, int port_space)
{
	return (struct rdma_addrinfo){
		.ai_flags = RAI_PASSIVE,
		.ai_family = tc_sockaddr(address)->sa_family,
		.ai_qp_type = qp_type,
		.ai_port_space = port_space,
		.ai_src_addr = tc_sockaddr(address),
		.ai_src_len = length_of(tc_sockaddr(address)),
	};
}

static struct rdma_addrinfo active(struct tc_address *address, int qp_type, int port_space)
{
	return (struct rdma_addrinfo){
		.ai_family = tc_sockaddr(address)->sa_family,
		.ai_qp_type = qp_type,
		.ai_port_space = port_space,
		.ai_dst_addr = tc_sockaddr(address),
		.ai_dst_len = length_of(tc_sockaddr(address)),
	};
}

/* B's listener, for a QP of the type. */
static struct rdma_cm_id *listener(struct vt *t, int qp_type, int port_space, struct ibv_pd *pd,
				   struct ibv_qp_init_attr *attr)
{
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_addrinfo res = passive(&here, qp_type, port_space);
	struct rdma_cm_id *id;

	tc_channel(t);
	VT_OK(t, vb_cm_create_ep(t->backend, &id, &res, pd, attr));
	vt_defer(t, end_endpoint, id);
	VT_CHECK(t, !id->qp);
	VT_OK(t, vb_cm_listen(id, 4));
	return id;
}

/* --- a client in a thread of its own --- */

struct client {
	struct vt *t;
	pthread_t thread;
	pthread_barrier_t start;
	struct tc_address to;
	struct rdma_cm_id *id;
	char error[200]; /* a thread may not call the checks, which end the test */
};

static void note(struct client *client, const char *what)
{
	if (!client->error[0])
		snprintf(client->error, sizeof(client->error), "%s: %s", what, vb_last_error());
}

static void work(struct client *client)
{
	struct rdma_addrinfo res = active(&client->to, IBV_QPT_RC, RDMA_PS_TCP);
	struct ibv_qp_init_attr attr = attributes();
	char prefix[] = "route";
	struct rdma_conn_param param = tc_param((const uint8_t *)"param", 5);

	res.ai_connect = prefix;
	res.ai_connect_len = 5;
	if (vb_cm_create_ep(client->t->backend, &client->id, &res, NULL, &attr)) {
		note(client, "create_ep");
		return;
	}
	if (vb_cm_connect(client->id, &param))
		note(client, "connect");
}

static void *begin(void *arg)
{
	struct client *client = arg;
	const bool registers = ts_virtual(client->t);

	if (registers)
		vb_sim_thread_enter(ts_sim(client->t));
	pthread_barrier_wait(&client->start);
	work(client);
	if (registers)
		vb_sim_thread_leave(ts_sim(client->t));
	return NULL;
}

static void start(struct vt *t, struct client *client, uint16_t port)
{
	*client = (struct client){.t = t, .to = tc_address(&t->b, port)};
	VT_OK(t, pthread_barrier_init(&client->start, NULL, 2));
	VT_OK(t, pthread_create(&client->thread, NULL, begin, client));
	if (ts_virtual(t))
		vb_sim_thread_enter(ts_sim(t));
	pthread_barrier_wait(&client->start);
}

/* Between start() and end(), no check may end the test. */
static void end(struct client *client)
{
	struct vt *t = client->t;

	if (ts_virtual(t))
		vb_sim_thread_leave(ts_sim(t));
	VT_OK(t, pthread_join(client->thread, NULL));
	if (client->id)
		vt_defer(t, end_endpoint, client->id);
	VT_EQ_STR(t, client->error, "");
}

/* The events of both sides are those of the last call. */
static void check_events(struct vt *t, const struct rdma_cm_id *one, const struct rdma_cm_id *other)
{
	VT_EQ(t, one->event->event, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, other->event->event, RDMA_CM_EVENT_ESTABLISHED);
}

static void a_synchronous_server_and_its_client(struct vt *t)
{
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *listen = listener(t, IBV_QPT_RC, RDMA_PS_TCP, NULL, &attr), *id = NULL;
	struct client *client = vt_alloc(t, sizeof(*client));
	char data[11];
	int got;

	start(t, client, ntohs(vb_cm_get_src_port(listen)));
	got = vb_cm_get_request(listen, &id);
	if (!got) {
		memcpy(data, id->event->param.conn.private_data, sizeof(data));
		got = vb_cm_accept(id, NULL);
	}
	end(client);
	VT_EQ(t, got, 0);
	vt_defer(t, end_endpoint, id);
	VT_EQ_MEM(t, data, "routeparam", sizeof(data));
	VT_CHECK(t, id->channel != listen->channel);
	VT_EQ(t, id->qp->qp_type, IBV_QPT_RC);
	VT_EQ(t, client->id->qp->qp_type, IBV_QPT_RC);
	check_events(t, id, client->id);
	tc_send(t, client->id, id);
	tc_send(t, id, client->id);
}

/* --- a listener of this thread, and a client with an event channel --- */

/* A's identifier with a QP and a request to the listener. */
static struct rdma_cm_id *ask(struct vt *t, struct rdma_cm_id *listen)
{
	struct tc_pair pair = {.t = t,
			       .a_channel = tc_channel(t),
			       .listener = listen,
			       .port = ntohs(vb_cm_get_src_port(listen))};
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct rdma_cm_id *id = tc_another(&pair);

	tc_qp(t, id);
	VT_OK(t, vb_cm_connect(id, &param));
	return id;
}

static void the_qp_of_a_request_has_the_listeners_pd(struct vt *t)
{
	struct ibv_qp_init_attr attr = attributes();
	struct tc_address here = tc_address(&t->b, 0);
	struct rdma_cm_id *bound = tc_id(t, tc_channel(t), RDMA_PS_TCP), *listen, *id;
	struct ibv_pd *pd;

	VT_OK(t, vb_cm_bind_addr(bound, tc_sockaddr(&here)));
	pd = VT_PTR(t, vb_alloc_pd(bound->verbs));
	ts_keep(t, TS_PD, pd);
	listen = listener(t, IBV_QPT_RC, RDMA_PS_TCP, pd, &attr);
	ask(t, listen);
	VT_OK(t, vb_cm_get_request(listen, &id));
	vt_defer(t, end_endpoint, id);
	VT_CHECK(t, id->qp && id->qp->pd == pd);
	VT_CHECK(t, id->pd == pd);
}

static void a_listener_without_attributes_makes_no_qp(struct vt *t)
{
	struct rdma_cm_id *listen = listener(t, IBV_QPT_RC, RDMA_PS_TCP, NULL, NULL), *id;
	struct rdma_cm_id *asking = ask(t, listen);

	VT_OK(t, vb_cm_get_request(listen, &id));
	vt_defer(t, end_endpoint, id);
	VT_CHECK(t, !id->qp);
	VT_OK(t, vb_cm_reject(id, NULL, 0));
	tc_failed(t, asking->channel, asking, RDMA_CM_EVENT_REJECTED, 28);
}

static void a_request_whose_qp_cannot_be_made(struct vt *t)
{
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *listen, *id;

	attr.cap.max_recv_sge = 1 << 20;
	listen = listener(t, IBV_QPT_RC, RDMA_PS_TCP, NULL, &attr);
	for (int i = 0; i < 2; i++) {
		ask(t, listen);
		id = NULL;
		VT_EQ(t, vb_cm_get_request(listen, &id), -1);
		VT_CHECK(t, !id && listen->event);
		VT_EQ(t, listen->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
		tc_keep(t, listen->event->id);
	}
}

static void a_synchronous_datagram_service(struct vt *t)
{
	struct ibv_qp_init_attr attr = attributes();
	struct rdma_cm_id *listen = listener(t, IBV_QPT_UD, RDMA_PS_UDP, NULL, &attr), *id;
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct rdma_cm_id *asking = ask(t, listen);
	struct tc_event seen;

	VT_OK(t, vb_cm_get_request(listen, &id));
	vt_defer(t, end_endpoint, id);
	VT_EQ(t, id->qp->qp_type, IBV_QPT_UD);
	param.qp_num = id->qp->qp_num;
	VT_OK(t, vb_cm_accept(id, &param));
	/* librdmacm 44 keeps the event of the request. */
	if (t->have & VT_NEEDS_SIM)
		VT_CHECK(t, !id->event);
	seen = tc_expect(t, asking->channel, asking, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, seen.event.param.ud.qp_num, id->qp->qp_num);
	VT_EQ(t, seen.event.param.ud.qkey, RDMA_UDP_QKEY);
	VT_EQ(t, seen.event.param.ud.ah_attr.port_num, asking->port_num);
}

static void an_endpoint_without_a_qp(struct vt *t)
{
	struct rdma_cm_id *listen = listener(t, IBV_QPT_RC, RDMA_PS_TCP, NULL, NULL), *id;
	struct tc_address to = tc_address(&t->b, ntohs(vb_cm_get_src_port(listen)));
	struct rdma_addrinfo res = active(&to, IBV_QPT_RC, RDMA_PS_TCP);
	struct tc_address far = to;

	VT_OK(t, vb_cm_create_ep(t->backend, &id, &res, NULL, NULL));
	vt_defer(t, end_endpoint, id);
	VT_CHECK(t, !id->qp && id->verbs);
	VT_EQ(t, id->route.num_paths, 1);
	VT_EQ(t, id->event->event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	/* An address of no family: no identifier is left. */
	tc_sockaddr(&far)->sa_family = AF_UNIX;
	res = active(&far, IBV_QPT_RC, RDMA_PS_TCP);
	VT_MINUS_ERRNO(t, vb_cm_create_ep(t->backend, &id, &res, NULL, NULL), EINVAL);
}

/* A source without a length is no source: rdma-core librdmacm/cma.c, rdma_resolve_addr2. */
static void an_address_has_the_length_of_its_family(struct vt *t)
{
	struct rdma_cm_id *listen = listener(t, IBV_QPT_RC, RDMA_PS_TCP, NULL, NULL), *id;
	struct tc_address to = tc_address(&t->b, ntohs(vb_cm_get_src_port(listen)));
	struct tc_address here = tc_address(&t->a, 0);
	const socklen_t length = length_of(tc_sockaddr(&to));
	const socklen_t wrong[] = {1, length - 1, length + 1, 2 * length};
	struct rdma_addrinfo server = passive(&here, IBV_QPT_RC, RDMA_PS_TCP);
	struct rdma_addrinfo client = active(&to, IBV_QPT_RC, RDMA_PS_TCP);

	client.ai_src_addr = tc_sockaddr(&here);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		server.ai_src_len = client.ai_src_len = wrong[i];
		VT_MINUS_ERRNO(t, vb_cm_create_ep(t->backend, &id, &server, NULL, NULL), EINVAL);
		VT_MINUS_ERRNO(t, vb_cm_create_ep(t->backend, &id, &client, NULL, NULL), EINVAL);
		client.ai_src_len = 0;
		client.ai_dst_len = wrong[i];
		VT_MINUS_ERRNO(t, vb_cm_create_ep(t->backend, &id, &client, NULL, NULL), EINVAL);
		client.ai_dst_len = length;
	}
	server.ai_src_len = client.ai_dst_len = 0;
	VT_MINUS_ERRNO(t, vb_cm_create_ep(t->backend, &id, &server, NULL, NULL), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_create_ep(t->backend, &id, &client, NULL, NULL), EINVAL);
	client.ai_dst_len = length;
	client.ai_src_addr = NULL;
	VT_OK(t, vb_cm_create_ep(t->backend, &id, &client, NULL, NULL));
	vt_defer(t, end_endpoint, id);
	client.ai_src_addr = tc_sockaddr(&here);
	tc_sockaddr(&here)->sa_family = AF_UNIX;
	VT_OK(t, vb_cm_create_ep(t->backend, &id, &client, NULL, NULL));
	vt_defer(t, end_endpoint, id);
}

/* --- SRQs --- */

static void the_srq_of_an_identifier_is_its_qps(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct rdma_conn_param seen;

	vt_need(t, VT_NEEDS_SRQ);
	VT_OK(t, vb_cm_create_srq(pair->a, NULL, &attr));
	VT_CHECK(t, pair->a->srq && pair->a->srq->pd == pair->a->pd);
	VT_CHECK(t, attr.attr.max_wr >= 8);
	tc_qp(t, pair->a);
	VT_CHECK(t, pair->a->qp->srq == pair->a->srq);
	seen = tc_request(pair, &param).event.param.conn;
	VT_EQ(t, seen.srq, 1);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, 28);
	vb_cm_destroy_qp(pair->a);
	vb_cm_destroy_srq(pair->a);
	VT_CHECK(t, !pair->a->srq);
}

/* --- addresses --- */

static void end_addresses(void *list)
{
	vb_cm_freeaddrinfo(list);
}

static const struct rdma_addrinfo *look_up(struct vt *t, const char *node, const char *service,
					   const struct rdma_addrinfo *hints)
{
	struct rdma_addrinfo *list = NULL;

	VT_EQ(t, vb_cm_getaddrinfo(t->backend, node, service, hints, &list), 0);
	vt_defer(t, end_addresses, list);
	return list;
}

static void hints_choose_type_and_port_space(struct vt *t)
{
	static const struct {
		int qp_type, port_space;
		int expected_type, expected_space;
	} rows[] = {
		{0, RDMA_PS_TCP, IBV_QPT_RC, RDMA_PS_TCP},
		{0, RDMA_PS_UDP, IBV_QPT_UD, RDMA_PS_UDP},
		{0, RDMA_PS_IPOIB, IBV_QPT_UD, RDMA_PS_IPOIB},
		{IBV_QPT_RC, 0, IBV_QPT_RC, RDMA_PS_TCP},
		{IBV_QPT_UD, 0, IBV_QPT_UD, RDMA_PS_UDP},
		{IBV_QPT_UC, RDMA_PS_TCP, IBV_QPT_UC, RDMA_PS_TCP},
		{IBV_QPT_XRC_RECV, 0, IBV_QPT_XRC_RECV, RDMA_PS_TCP},
	};

	tc_channel(t);
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
						    .ai_qp_type = rows[i].qp_type,
						    .ai_port_space = rows[i].port_space};
		const struct rdma_addrinfo *found = look_up(t, "127.0.0.1", "7471", &hints);

		vt_row(t, "type %d and port space %x", rows[i].qp_type, rows[i].port_space);
		VT_EQ(t, found->ai_qp_type, rows[i].expected_type);
		VT_EQ(t, found->ai_port_space, rows[i].expected_space);
		VT_EQ(t, found->ai_family, AF_INET);
		VT_EQ(t, found->ai_flags, 0);
		VT_CHECK(t, found->ai_dst_addr && !found->ai_src_addr);
		VT_EQ(t, found->ai_dst_len, sizeof(struct sockaddr_in));
		VT_EQ(t, ntohs(((struct sockaddr_in *)found->ai_dst_addr)->sin_port), 7471);
	}
}

static void a_source_of_the_hints_is_kept(struct vt *t)
{
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
					    .ai_port_space = RDMA_PS_TCP,
					    .ai_src_addr = (struct sockaddr *)&source,
					    .ai_src_len = sizeof(source)};
	const struct rdma_addrinfo *found;

	tc_channel(t);
	found = look_up(t, "127.0.0.1", "7471", &hints);
	VT_EQ(t, found->ai_src_len, sizeof(source));
	VT_EQ_MEM(t, found->ai_src_addr, &source, sizeof(source));
	VT_CHECK(t, found->ai_src_addr != hints.ai_src_addr);
}

/* The address that was looked up for a listener is its source. */
static void a_source_that_was_looked_up_is_kept(struct vt *t)
{
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_PASSIVE,
					    .ai_port_space = RDMA_PS_TCP,
					    .ai_src_addr = (struct sockaddr *)&source,
					    .ai_src_len = sizeof(source)};
	const struct rdma_addrinfo *found;

	tc_channel(t);
	found = look_up(t, "127.0.0.3", "7471", &hints);
	VT_EQ(t, found->ai_flags, RAI_PASSIVE);
	VT_CHECK(t, !found->ai_dst_addr);
	VT_EQ(t, ntohl(((struct sockaddr_in *)found->ai_src_addr)->sin_addr.s_addr), 0x7f000003);
	VT_EQ(t, ntohs(((struct sockaddr_in *)found->ai_src_addr)->sin_port), 7471);
}

static void hints_alone_are_the_answer(struct vt *t)
{
	struct sockaddr_in dest = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
					    .ai_family = AF_INET,
					    .ai_qp_type = IBV_QPT_UD,
					    .ai_port_space = RDMA_PS_UDP,
					    .ai_dst_addr = (struct sockaddr *)&dest,
					    .ai_dst_len = sizeof(dest)};
	const struct rdma_addrinfo *found;

	tc_channel(t);
	found = look_up(t, NULL, NULL, &hints);
	VT_EQ(t, found->ai_flags, hints.ai_flags);
	VT_EQ(t, found->ai_family, AF_INET);
	VT_EQ(t, found->ai_qp_type, IBV_QPT_UD);
	VT_EQ(t, found->ai_port_space, RDMA_PS_UDP);
	VT_EQ(t, found->ai_dst_len, sizeof(dest));
	VT_EQ_MEM(t, found->ai_dst_addr, &dest, sizeof(dest));
}

static void names_are_not_numbers(struct vt *t)
{
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE,
					    .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *list = NULL;

	tc_channel(t);
	VT_CHECK(t, vb_cm_getaddrinfo(t->backend, "localhost", "7471", &hints, &list) != 0);
	VT_CHECK(t, vb_cm_getaddrinfo(t->backend, NULL, NULL, NULL, &list) != 0);
	VT_CHECK(t, !list);
}

/* The port space and the port are a service ID, whose mask has the bits that count. */
static void an_address_of_infiniband_comes_from_ipv6(struct vt *t)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY,
				      .ai_family = AF_IB,
				      .ai_port_space = RDMA_PS_TCP};
	static const uint8_t gid[16] = {0xfe, 0x80, [8] = 2, [15] = 3};
	const struct sockaddr_ib *address;
	const struct rdma_addrinfo *found;

	tc_channel(t);
	for (int i = 0; i < 2; i++) {
		vt_row(t, "%s", i ? "passive" : "active");
		hints.ai_flags |= i ? RAI_PASSIVE : 0;
		found = look_up(t, "fe80::200:0:0:3", i ? "7471" : NULL, &hints);
		VT_EQ(t, found->ai_family, AF_IB);
		VT_EQ(t, i ? found->ai_src_len : found->ai_dst_len, sizeof(*address));
		address = (const struct sockaddr_ib *)(i ? found->ai_src_addr : found->ai_dst_addr);
		VT_EQ(t, address->sib_family, AF_IB);
		VT_EQ(t, be16toh(address->sib_pkey), 0xffff);
		VT_EQ_MEM(t, &address->sib_addr, gid, sizeof(gid));
		VT_EQ(t, be64toh(address->sib_sid), i ? 0x1061d2f : 0x1060000);
		VT_EQ(t, be64toh(address->sib_sid_mask), i ? UINT64_MAX : UINT64_MAX - 0xffff);
	}
	/* Without RAI_FAMILY, the family is that of the number. */
	hints.ai_flags = RAI_NUMERICHOST | RAI_NOROUTE;
	VT_EQ(t, look_up(t, "fe80::200:0:0:3", "7471", &hints)->ai_family, AF_INET6);
}

static const struct vt_test tests[] = {
	{"a_synchronous_server_and_its_client",
	 "rdma_create_ep(3), rdma_get_request(3); rdma_cm(7): synchronous", 0,
	 a_synchronous_server_and_its_client},
	{"the_qp_of_a_request_has_the_listeners_pd", "rdma_create_ep(3): pd", 0,
	 the_qp_of_a_request_has_the_listeners_pd},
	{"a_listener_without_attributes_makes_no_qp", "rdma_create_ep(3): qp_init_attr", 0,
	 a_listener_without_attributes_makes_no_qp},
	{"a_request_whose_qp_cannot_be_made", SRC_LIBRARY "rdma_get_request: err", 0,
	 a_request_whose_qp_cannot_be_made},
	{"a_synchronous_datagram_service", SRC_LIBRARY "rdma_accept: ucma_is_ud_qp", 0,
	 a_synchronous_datagram_service},
	{"an_endpoint_without_a_qp", "rdma_create_ep(3)", 0, an_endpoint_without_a_qp},
	{"an_address_has_the_length_of_its_family",
	 "Linux drivers/infiniband/core/ucma.c, ucma_bind, ucma_resolve_addr", 0,
	 an_address_has_the_length_of_its_family},
	{"the_srq_of_an_identifier_is_its_qps", "rdma_create_srq(3); rdma_create_qp(3)", 0,
	 the_srq_of_an_identifier_is_its_qps},
	{"hints_choose_type_and_port_space", "rdma_getaddrinfo(3)", 0,
	 hints_choose_type_and_port_space},
	{"a_source_of_the_hints_is_kept", "rdma_getaddrinfo(3): ai_src_addr", 0,
	 a_source_of_the_hints_is_kept},
	{"a_source_that_was_looked_up_is_kept",
	 SRC_RDMA_CORE "librdmacm/addrinfo.c, rdma_getaddrinfo", 0,
	 a_source_that_was_looked_up_is_kept},
	{"hints_alone_are_the_answer", SRC_RDMA_CORE "librdmacm/addrinfo.c, rdma_getaddrinfo", 0,
	 hints_alone_are_the_answer},
	{"an_address_of_infiniband_comes_from_ipv6",
	 "rdma_getaddrinfo(3); " SRC_RDMA_CORE "librdmacm/addrinfo.c, ucma_convert_in6", 0,
	 an_address_of_infiniband_comes_from_ipv6},
	{"names_are_not_numbers", "rdma_getaddrinfo(3): RAI_NUMERICHOST", 0, names_are_not_numbers},
	{NULL},
};

const struct vt_suite vt_suite_cm_endpoints = {
	"cm_endpoints", "connections: endpoints and synchronous identifiers", tests};
