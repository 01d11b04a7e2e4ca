/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the family AF_IB: GIDs, P_Keys and service IDs, without an IP header in the private data.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdio.h>

#define SRC_CMA SRC_CORE "cma.c, "

#define IB	     VT_NEEDS_INFINIBAND
#define RESOLVE_MS   2000
#define DEFAULT_PKEY 0xffff

/* The reason of a REJ: Linux include/rdma/ib_cm.h. */
#define BY_CONSUMER 28

/* --- addresses --- */

/* An address of the family AF_IB: the node's GID, or the wildcard (NULL). */
static struct tc_address ib_address(const struct vt_node *node, uint64_t service_id, uint64_t mask)
{
	struct tc_address address = {0};
	struct sockaddr_ib *ib = (struct sockaddr_ib *)&address;

	ib->sib_family = AF_IB;
	ib->sib_pkey = htobe16(DEFAULT_PKEY);
	ib->sib_sid = htobe64(service_id);
	ib->sib_sid_mask = htobe64(mask);
	if (node)
		memcpy(&ib->sib_addr, &node->gid, sizeof(node->gid));
	return address;
}

static const struct sockaddr_ib *ib_of(const struct sockaddr *address)
{
	return (const struct sockaddr_ib *)(const void *)address;
}

static uint64_t service_of(const struct sockaddr *address)
{
	return be64toh(ib_of(address)->sib_sid);
}

static const struct sockaddr *source_of(const struct rdma_cm_id *id)
{
	return &id->route.addr.src_addr;
}

static const struct sockaddr *dest_of(const struct rdma_cm_id *id)
{
	return &id->route.addr.dst_addr;
}

static void check_address(struct vt *t, const struct sockaddr *address, const union ibv_gid *gid)
{
	VT_EQ(t, address->sa_family, AF_IB);
	VT_EQ_MEM(t, &ib_of(address)->sib_addr, gid, sizeof(*gid));
}

/* --- binding --- */

static void a_port_space_comes_from_the_service_id(struct vt *t)
{
	const struct {
		enum rdma_port_space ps;
		uint64_t service_id, mask, bound; /* bound 0: refused */
	} rows[] = {
		{RDMA_PS_TCP, 0, 0, RDMA_IB_IP_PS_TCP},
		{RDMA_PS_TCP, RDMA_IB_IP_PS_TCP, RDMA_IB_IP_PS_MASK, RDMA_IB_IP_PS_TCP},
		{RDMA_PS_UDP, 0, 0, RDMA_IB_IP_PS_UDP},
		{RDMA_PS_IB, 0, 0, RDMA_IB_PS_IB},
		{RDMA_PS_IB, RDMA_IB_IP_PS_TCP, RDMA_IB_IP_PS_MASK, RDMA_IB_IP_PS_TCP},
		{RDMA_PS_IB, RDMA_IB_IP_PS_UDP, RDMA_IB_IP_PS_MASK, RDMA_IB_IP_PS_UDP},
		{RDMA_PS_TCP, RDMA_IB_IP_PS_UDP, RDMA_IB_IP_PS_MASK, 0},
		{RDMA_PS_UDP, RDMA_IB_PS_IB, RDMA_IB_IP_PS_MASK, 0},
		{RDMA_PS_IPOIB, 0, 0, 0},
	};
	struct rdma_event_channel *channel = tc_channel(t);

	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct tc_address here = ib_address(NULL, rows[i].service_id, rows[i].mask);
		struct rdma_cm_id *id = tc_id(t, channel, rows[i].ps);

		vt_row(t, "port space 0x%x, service ID 0x%llx", (unsigned int)rows[i].ps,
		       (unsigned long long)rows[i].service_id);
		if (!rows[i].bound) {
			VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, tc_sockaddr(&here)), EPROTONOSUPPORT);
			continue;
		}
		VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
		VT_EQ(t, service_of(source_of(id)) & RDMA_IB_IP_PS_MASK, rows[i].bound);
		VT_CHECK(t, vb_cm_get_src_port(id) != 0);
		VT_EQ(t, service_of(source_of(id)) & RDMA_IB_IP_PORT_MASK,
		      ntohs(vb_cm_get_src_port(id)));
		VT_EQ(t, be64toh(ib_of(source_of(id))->sib_sid_mask), UINT64_MAX);
	}
}

static void a_service_id_is_used_once(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *first = tc_id(t, channel, RDMA_PS_TCP);
	struct rdma_cm_id *second = tc_id(t, channel, RDMA_PS_IB);
	struct tc_address here = ib_address(NULL, 0, 0), there;

	VT_OK(t, vb_cm_bind_addr(first, tc_sockaddr(&here)));
	there = ib_address(NULL, service_of(source_of(first)), UINT64_MAX);
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(second, tc_sockaddr(&there)), EADDRNOTAVAIL);
	there = tc_any(&t->a, ntohs(vb_cm_get_src_port(first)));
	second = tc_id(t, channel, RDMA_PS_TCP);
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(second, tc_sockaddr(&there)), EADDRNOTAVAIL);
}

static void a_gid_binds_to_its_port(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address here = ib_address(&t->a, 0, 0);

	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
	VT_EQ(t, id->port_num, t->a.port);
	VT_CHECK(t, id->verbs);
	check_address(t, source_of(id), &t->a.gid);
	VT_EQ_MEM(t, &id->route.addr.addr.ibaddr.sgid, &t->a.gid, sizeof(t->a.gid));
}

static void a_gid_of_nobody(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct vt_node nobody = {.gid = {.raw = {0xfe, 0xc0, [15] = 9}}};
	struct tc_address there = ib_address(&nobody, 0, 0);

	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, tc_sockaddr(&there)), ENODEV);
	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&there), RESOLVE_MS), ENODEV);
}

/* On Ethernet, a GID is no address to bind to, and its route needs a net device. */
static void ethernet_has_no_route(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *id = tc_id(t, channel, RDMA_PS_TCP);
	struct tc_address here = ib_address(&t->a, 0, 0);

	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, tc_sockaddr(&here)), ENODEV);
	id = tc_id(t, channel, RDMA_PS_TCP);
	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&here), RESOLVE_MS));
	tc_expect(t, channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_MINUS_ERRNO(t, vb_cm_resolve_route(id, RESOLVE_MS), ENODEV);
}

/* --- resolving --- */

/* A's identifier, whose destination is the service of a listener at B's GID. */
static struct rdma_cm_id *resolved(struct tc_pair *pair, const struct vt_node *node)
{
	struct rdma_cm_id *id = tc_id(pair->t, pair->a_channel, pair->listener->ps);
	struct tc_address to = ib_address(node, service_of(source_of(pair->listener)), UINT64_MAX);

	VT_OK(pair->t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), RESOLVE_MS));
	tc_expect(pair->t, pair->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

/* B's listener at its GID or at the wildcard, and A's identifier with a route to B. */
static struct tc_pair *ib_pair(struct vt *t, enum rdma_port_space ps, const struct vt_node *at)
{
	struct tc_pair *pair = vt_alloc(t, sizeof(*pair));
	struct tc_address here = ib_address(at, 0, 0);

	pair->t = t;
	pair->a_channel = tc_channel_of(t, &t->a);
	pair->b_channel = tc_channel_of(t, &t->b);
	pair->listener = tc_id(t, pair->b_channel, ps);
	VT_OK(t, vb_cm_bind_addr(pair->listener, tc_sockaddr(&here)));
	VT_OK(t, vb_cm_listen(pair->listener, 8));
	pair->port = ntohs(vb_cm_get_src_port(pair->listener));
	pair->a = resolved(pair, &t->b);
	VT_OK(t, vb_cm_resolve_route(pair->a, RESOLVE_MS));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return pair;
}

static void a_path_has_the_addresses(struct vt *t)
{
	struct tc_pair *pair = ib_pair(t, RDMA_PS_TCP, &t->b);
	const struct ibv_sa_path_rec *path = pair->a->route.path_rec;

	VT_EQ(t, pair->a->route.num_paths, 1);
	VT_EQ_MEM(t, &path->dgid, &t->b.gid, sizeof(path->dgid));
	VT_EQ_MEM(t, &path->sgid, &ib_of(source_of(pair->a))->sib_addr, sizeof(path->sgid));
	VT_EQ(t, be16toh(path->pkey), DEFAULT_PKEY);
	VT_EQ(t, be16toh(path->dlid), t->b.port_attr.lid);
	check_address(t, dest_of(pair->a), &t->b.gid);
	VT_EQ(t, be16toh(ib_of(source_of(pair->a))->sib_pkey), DEFAULT_PKEY);
	VT_EQ(t, be16toh(pair->a->route.addr.addr.ibaddr.pkey), DEFAULT_PKEY);
}

/* The subnet is found by its prefix, and its manager knows no such port. */
static void a_gid_without_a_port_has_no_route(struct vt *t)
{
	struct tc_pair *pair = ib_pair(t, RDMA_PS_TCP, &t->b);
	struct vt_node nobody = {.gid = t->b.gid};
	struct rdma_cm_id *id;

	nobody.gid.global.interface_id = htobe64(9);
	id = resolved(pair, &nobody);
	VT_OK(t, vb_cm_resolve_route(id, RESOLVE_MS));
	tc_failed(t, pair->a_channel, id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
	VT_OK(t, vb_cm_resolve_route(id, RESOLVE_MS));
	tc_failed(t, pair->a_channel, id, RDMA_CM_EVENT_ROUTE_ERROR, -EINVAL);
}

static void a_pkey_of_no_port(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address to = ib_address(&t->b, RDMA_IB_IP_PS_TCP | 7471, UINT64_MAX);

	((struct sockaddr_ib *)&to)->sib_pkey = htobe16(0x8123);
	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), RESOLVE_MS), ENODEV);
}

static void families_do_not_mix(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address here = ib_address(&t->a, 0, 0), to = tc_address(&t->b, 7471);

	VT_OK(t, vb_cm_bind_addr(id, tc_sockaddr(&here)));
	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), RESOLVE_MS), EINVAL);
}

/* --- connections --- */

/* A connects, B accepts, and data flow both ways. */
static void connect_and_talk(struct tc_pair *pair)
{
	tc_ask(pair);
	tc_establish(pair);
	tc_send(pair->t, pair->a, pair->b);
	tc_send(pair->t, pair->b, pair->a);
	VT_OK(pair->t, vb_cm_disconnect(pair->a));
	tc_expect(pair->t, pair->b_channel, pair->b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(pair->t, vb_cm_disconnect(pair->b));
	tc_expect(pair->t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
}

static void data_flow_between_gids(struct vt *t)
{
	connect_and_talk(ib_pair(t, RDMA_PS_TCP, &t->b));
	connect_and_talk(ib_pair(t, RDMA_PS_TCP, NULL));
	connect_and_talk(ib_pair(t, RDMA_PS_IB, NULL));
}

static void a_request_says_who_asks(struct vt *t)
{
	struct tc_pair *pair = ib_pair(t, RDMA_PS_TCP, NULL);

	tc_ask(pair);
	check_address(t, source_of(pair->b), &t->b.gid);
	check_address(t, dest_of(pair->b),
		      (const union ibv_gid *)&ib_of(source_of(pair->a))->sib_addr);
	VT_EQ(t, service_of(source_of(pair->b)), service_of(source_of(pair->listener)));
	VT_EQ(t, be16toh(ib_of(source_of(pair->b))->sib_pkey), DEFAULT_PKEY);
	VT_EQ(t, be16toh(ib_of(dest_of(pair->b))->sib_pkey), DEFAULT_PKEY);
	VT_EQ(t, pair->b->port_num, t->b.port);
}

/* There is no IP header. The first byte stands where its version would be, and is 0. */
static void the_private_data_are_the_programs(struct vt *t)
{
	static const struct {
		enum rdma_port_space ps;
		uint8_t bytes;
	} rows[] = {{RDMA_PS_TCP, 92}, {RDMA_PS_TCP, 1}, {RDMA_PS_UDP, 216}};
	uint8_t data[216];

	vt_random_fill(t, data, sizeof(data));
	data[1] = 0x10; /* neither version of IP */
	for (size_t i = 0; i < TS_COUNT(rows); i++) {
		struct tc_pair *pair = ib_pair(t, rows[i].ps, NULL);
		struct rdma_conn_param param = tc_param(data, rows[i].bytes);
		struct tc_event seen;

		vt_row(t, "port space 0x%x, %u bytes", (unsigned int)rows[i].ps, rows[i].bytes);
		tc_qp(t, pair->a);
		seen = tc_request(pair, &param);
		VT_EQ(t, seen.data_bytes, rows[i].ps == RDMA_PS_UDP ? 216 : 92);
		VT_EQ(t, seen.data[0], 0);
		VT_EQ_MEM(t, seen.data + 1, data + 1, rows[i].bytes - 1u);
	}
}

static void too_much_private_data_is_refused(struct vt *t)
{
	struct tc_pair *pair = ib_pair(t, RDMA_PS_TCP, NULL);
	static const uint8_t data[93];
	struct rdma_conn_param param = tc_param(data, sizeof(data));

	tc_qp(t, pair->a);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
	param.private_data_len--;
	tc_request(pair, &param);
}

static void datagrams_find_their_service(struct vt *t)
{
	struct tc_pair *pair = ib_pair(t, RDMA_PS_UDP, NULL);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct tc_event seen;

	tc_ask(pair);
	VT_EQ(t, source_of(pair->b)->sa_family, AF_IB);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, seen.event.param.ud.qp_num, pair->b->qp->qp_num);
	VT_EQ(t, seen.event.param.ud.ah_attr.dlid, t->b.port_attr.lid);
}

/* A listener at IP addresses does not take a request without an IP header, and a listener at GIDs takes both. */
static void listeners_of_both_families(struct vt *t)
{
	struct tc_pair *ip = tc_pair(t, RDMA_PS_TCP), *ib = ib_pair(t, RDMA_PS_TCP, NULL);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct tc_address to = ib_address(&t->b, RDMA_IB_IP_PS_TCP | ip->port, UINT64_MAX);
	struct rdma_cm_id *id = tc_id(t, ip->a_channel, RDMA_PS_TCP);

	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), RESOLVE_MS));
	tc_expect(t, ip->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_OK(t, vb_cm_resolve_route(id, RESOLVE_MS));
	tc_expect(t, ip->a_channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
	tc_qp(t, id);
	VT_OK(t, vb_cm_connect(id, &param));
	tc_failed(t, ip->a_channel, id, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);

	ib->a = tc_id(t, ib->a_channel, RDMA_PS_TCP);
	tc_route(ib, ib->a);
	tc_ask(ib);
	check_address(t, source_of(ib->b), &t->b.gid);
}

/* --- endpoints --- */

static struct rdma_addrinfo *look_up(struct vt *t, const char *service, int flags)
{
	const struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST | RAI_FAMILY | RAI_NOROUTE |
							flags,
					    .ai_family = AF_IB,
					    .ai_port_space = RDMA_PS_TCP};
	struct rdma_addrinfo *found;
	char text[INET6_ADDRSTRLEN];

	VT_CHECK(t, inet_ntop(AF_INET6, &t->b.gid, text, sizeof(text)));
	VT_OK(t, vb_cm_getaddrinfo(t->backend, text, service, &hints, &found));
	return found;
}

static void free_found(void *found)
{
	vb_cm_freeaddrinfo(found);
}

static void endpoints_have_addresses_of_infiniband(struct vt *t)
{
	struct ibv_qp_init_attr attr = {.cap = {4, 4, 1, 1, 0}};
	struct rdma_addrinfo *here, *there;
	struct rdma_cm_id *listener, *id;
	char service[8];

	tc_channel(t);
	here = look_up(t, NULL, RAI_PASSIVE);
	vt_defer(t, free_found, here);
	VT_OK(t, vb_cm_create_ep(t->backend, &listener, here, NULL, NULL));
	tc_keep(t, listener);
	check_address(t, source_of(listener), &t->b.gid);
	snprintf(service, sizeof(service), "%u", ntohs(vb_cm_get_src_port(listener)));
	there = look_up(t, service, 0);
	vt_defer(t, free_found, there);
	VT_OK(t, vb_cm_create_ep(t->backend, &id, there, NULL, &attr));
	tc_keep(t, id);
	check_address(t, dest_of(id), &t->b.gid);
	VT_EQ(t, service_of(dest_of(id)), service_of(source_of(listener)));
	VT_CHECK(t, id->qp);
	VT_EQ(t, id->route.num_paths, 1);
}

static const struct vt_test tests[] = {
	{"a_port_space_comes_from_the_service_id", SRC_CMA "cma_select_ib_ps, cma_bind_port", 0,
	 a_port_space_comes_from_the_service_id},
	{"a_service_id_is_used_once", SRC_CMA "cma_check_port", 0, a_service_id_is_used_once},
	{"a_gid_binds_to_its_port", SRC_CMA "cma_translate_ib", IB, a_gid_binds_to_its_port},
	{"a_gid_of_nobody", SRC_CMA "cma_acquire_dev, cma_resolve_ib_dev", 0, a_gid_of_nobody},
	{"ethernet_has_no_route", SRC_CMA "cma_validate_port, cma_resolve_iboe_route",
	 VT_NEEDS_ETHERNET, ethernet_has_no_route},
	{"a_path_has_the_addresses", SRC_CMA "cma_query_ib_route", IB, a_path_has_the_addresses},
	{"a_gid_without_a_port_has_no_route", SRC_CMA "cma_resolve_ib_dev, cma_query_handler", IB,
	 a_gid_without_a_port_has_no_route},
	{"a_pkey_of_no_port", SRC_CMA "cma_resolve_ib_dev: ib_find_cached_pkey", 0,
	 a_pkey_of_no_port},
	{"families_do_not_mix", SRC_CMA "rdma_resolve_addr", IB, families_do_not_mix},
	{"data_flow_between_gids", SRC_CMA "cma_connect_ib", IB, data_flow_between_gids},
	{"a_request_says_who_asks", SRC_CMA "cma_save_ib_info", IB, a_request_says_who_asks},
	{"the_private_data_are_the_programs", SRC_CMA "cma_user_data_offset, cma_format_hdr", IB,
	 the_private_data_are_the_programs},
	{"too_much_private_data_is_refused", SRC_CMA "cma_user_data_offset", IB,
	 too_much_private_data_is_refused},
	{"datagrams_find_their_service", SRC_CMA "cma_resolve_ib_udp", IB,
	 datagrams_find_their_service},
	{"listeners_of_both_families", SRC_CMA "cma_match_net_dev, cma_match_private_data", IB,
	 listeners_of_both_families},
	{"endpoints_have_addresses_of_infiniband",
	 SRC_RDMA_CORE "librdmacm/addrinfo.c, ucma_convert_in6", IB,
	 endpoints_have_addresses_of_infiniband},
	{NULL},
};

const struct vt_suite vt_suite_cm_infiniband = {
	"cm_infiniband", "connections: addresses of the family AF_IB", tests};
