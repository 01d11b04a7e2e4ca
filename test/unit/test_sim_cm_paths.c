/* SPDX-License-Identifier: MIT */
/*
 * Identifiers of connections on simulated devices: the device, port, GID and path that an address leads to,
 * the depths of a connection, and the GIDs of groups.
 */
#include "backends/sim/backend.h"
#include "backends/sim/cm/private.h"
#include "unity.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/sa.h>
#include <stdlib.h>
#include <verbena/cm_backend.h>
#include <verbena/sim.h>

#define CM   (vb_backend_sim.cm)
#define PORT 7471

static struct rdma_event_channel *channel;
static struct rdma_cm_id *ids[16];
static unsigned int id_count;

/* --- the interfaces of the machine --- */

static struct sockaddr_in interface_address;

int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

int __wrap_getifaddrs(struct ifaddrs **list)
{
	static struct ifaddrs interface;

	interface = (struct ifaddrs){.ifa_addr = (struct sockaddr *)&interface_address};
	*list = &interface;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
}

/* --- addresses --- */

/* Of IPv6 if the text has a colon. A link-local address is of interface 1. */
static struct sockaddr *at(const char *text, uint16_t port)
{
	static struct sockaddr_storage slots[8];
	static unsigned int used;
	struct sockaddr_storage *slot = &slots[used++ % 8];
	struct sockaddr_in *in = (struct sockaddr_in *)slot;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)slot;
	const int family = strchr(text, ':') ? AF_INET6 : AF_INET;

	*slot = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
	TEST_ASSERT_EQUAL_INT(
		1, inet_pton(family, text,
			     family == AF_INET ? (void *)&in->sin_addr : (void *)&in6->sin6_addr));
	in->sin_port = htons(port);
	if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
		in6->sin6_scope_id = 1;
	return (struct sockaddr *)slot;
}

static union ibv_gid gid(const char *text)
{
	union ibv_gid made = {.raw = {0}};

	if (*text)
		TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET6, text, made.raw));
	return made;
}

static void check_address(const char *expected, const struct sockaddr *address)
{
	char text[INET6_ADDRSTRLEN];

	TEST_ASSERT_EQUAL_STRING(expected, cm_address_text(address, text, sizeof(text)));
}

static void check_gid(const char *expected, const union ibv_gid *got)
{
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, got->raw, text, sizeof(text));
	TEST_ASSERT_EQUAL_STRING(expected, text);
}

/* --- worlds --- */

static void make_world(const struct vb_sim_config *config)
{
	if (channel)
		CM->destroy_event_channel(channel);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(config));
	channel = CM->create_event_channel();
	TEST_ASSERT_NOT_NULL(channel);
}

static struct ibv_context *context(unsigned int device)
{
	struct ibv_context **list = CM->get_devices(NULL), *found = list[device];

	CM->free_devices(list);
	return found;
}

/* An entry of a GID table. */
struct entry {
	const char *gid; /* "": the entry is empty; NULL: no entry follows */
	enum ibv_gid_type type;
};

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2

/* Gives a port these GIDs alone. */
static void set_gids(unsigned int device, unsigned int port, const struct entry *entries)
{
	struct ibv_context *ctx = context(device);
	unsigned int index = 0;
	union ibv_gid value;

	for (; entries[index].gid; index++) {
		value = gid(entries[index].gid);
		TEST_ASSERT_EQUAL_INT(
			0, vb_sim_set_gid_type(ctx, port, index, &value, entries[index].type));
	}
	for (value = gid(""); index < 8; index++)
		TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(ctx, port, index, &value));
}

/* --- identifiers --- */

static struct rdma_cm_id *keep(struct rdma_cm_id *id)
{
	ids[id_count++] = id;
	return id;
}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->create_id(channel, &id, NULL, ps));
	return keep(id);
}

static void end_ids(void)
{
	while (id_count) {
		struct rdma_cm_id *id = ids[--id_count];

		if (id->qp)
			CM->destroy_qp(id);
		TEST_ASSERT_EQUAL_INT(0, CM->destroy_id(id));
	}
}

static struct rdma_cm_event take(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL, copy;

	TEST_ASSERT_EQUAL_INT(0, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(type, event->event);
	if (id)
		TEST_ASSERT_EQUAL_PTR(id, event->id);
	copy = *event;
	TEST_ASSERT_EQUAL_INT(0, CM->ack_cm_event(event));
	return copy;
}

static struct rdma_cm_id *bound(enum rdma_port_space ps, struct sockaddr *address)
{
	struct rdma_cm_id *id = new_id(ps);

	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, address));
	return id;
}

static struct rdma_cm_id *resolved(enum rdma_port_space ps, struct sockaddr *from,
				   struct sockaddr *to)
{
	struct rdma_cm_id *id = new_id(ps);

	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(id, from, to, 1000));
	take(id, RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

static void route(struct rdma_cm_id *id)
{
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(id, 1000));
	take(id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct rdma_cm_id *listener(enum rdma_port_space ps, struct sockaddr *address)
{
	struct rdma_cm_id *id = bound(ps, address);

	TEST_ASSERT_EQUAL_INT(0, CM->listen(id, 0));
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = id->qp_type,
	};

	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(id, NULL, &attr));
}

/* Asks with a QP; returns the event of the request, whose identifier gets a QP, too. */
static struct rdma_cm_event ask(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct rdma_cm_event event;

	make_qp(id);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(id, param));
	event = take(NULL, RDMA_CM_EVENT_CONNECT_REQUEST);
	make_qp(keep(event.id));
	return event;
}

/* Accepts; returns the event of the client. */
static struct rdma_cm_event establish(struct rdma_cm_id *client, struct rdma_cm_id *server,
				      struct rdma_conn_param *param)
{
	struct rdma_cm_event event;

	TEST_ASSERT_EQUAL_INT(0, CM->accept(server, param));
	event = take(client, RDMA_CM_EVENT_ESTABLISHED);
	take(server, RDMA_CM_EVENT_ESTABLISHED);
	return event;
}

static struct ibv_qp_attr query(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.query_qp(
					 id->qp, &attr,
					 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MAX_QP_RD_ATOMIC |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_RNR_RETRY |
						 IBV_QP_RETRY_CNT | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
					 &init));
	return attr;
}

static unsigned int index_of(struct rdma_cm_id *id)
{
	return cm_id_of(id)->path.attr.grh.sgid_index;
}

void setUp(void)
{
	interface_address = (struct sockaddr_in){.sin_family = AF_INET};
	make_world(NULL);
}

void tearDown(void)
{
	end_ids();
	if (channel)
		CM->destroy_event_channel(channel);
	channel = NULL;
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}

/* --- the GID of a source address --- */

/* An address in the table is that entry; RoCE v2 comes before RoCE v1. */
void test_the_entry_of_an_own_address(void)
{
	static const struct {
		const char *address;
		struct entry table[4];
		unsigned int index;
	} rows[] = {
		{"10.0.0.1",
		 {{"fe80::1", V2}, {"::ffff:10.0.0.1", V1}, {"::ffff:10.0.0.1", V2}},
		 2},
		{"10.0.0.1",
		 {{"fe80::1", V2}, {"::ffff:10.0.0.1", V2}, {"::ffff:10.0.0.1", V1}},
		 1},
		{"10.0.0.1",
		 {{"fe80::1", V2}, {"::ffff:10.0.0.1", V1}, {"::ffff:10.0.0.3", V2}},
		 1},
		{"fd00::9", {{"fe80::1", V2}, {"::ffff:10.0.0.1", V2}, {"fd00::9", V2}}, 2},
		{"fe80::2", {{"fe80::1", V2}, {"fe80::2", V1}, {"fe80::3", V2}}, 1},
		{"::ffff:10.0.0.1", {{"fe80::1", V2}, {"::ffff:10.0.0.1", V2}}, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id;

		set_gids(0, 1, rows[i].table);
		id = bound(RDMA_PS_TCP, at(rows[i].address, 0));
		TEST_ASSERT_EQUAL_STRING("sim0", id->verbs->device->name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(rows[i].index, index_of(id), rows[i].address);
		check_gid(rows[i].table[rows[i].index].gid, &id->route.addr.addr.ibaddr.sgid);
		check_address(rows[i].address, rdma_get_local_addr(id));
		end_ids();
	}
}

/* A loopback address has no entry: the best one of its family serves. */
void test_the_entry_of_a_loopback_address(void)
{
	static const struct {
		const char *address;
		struct entry table[5];
		unsigned int index;
	} rows[] = {
		/* The family comes first. */
		{"127.0.0.1", {{"fe80::1", V2}, {"fd00::1", V2}, {"::ffff:10.0.0.1", V1}}, 2},
		{"::1", {{"::ffff:10.0.0.1", V2}, {"fd00::1", V1}}, 1},
		/* RoCE v2 is better than RoCE v1, also if only the latter is of the right scope. */
		{"127.0.0.1", {{"::ffff:10.0.0.1", V1}, {"::ffff:10.0.0.1", V2}}, 1},
		{"::1", {{"fd00::1", V1}, {"fe80::1", V2}}, 1},
		/* The scope decides between entries of one type. */
		{"::1", {{"fe80::1", V2}, {"fd00::1", V2}}, 1},
		{"::1", {{"fe80::1", V1}, {"fd00::1", V1}}, 1},
		{"::1", {{"fe80::1", V2}, {"fec0::1", V2}}, 1},
		/* The first one of equals. */
		{"127.0.0.1",
		 {{"fe80::1", V2}, {"::ffff:10.0.0.1", V2}, {"::ffff:10.0.0.3", V2}},
		 1},
		/* Empty entries are no GIDs. */
		{"::1", {{"", V2}, {"fd00::1", V2}}, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id;

		set_gids(0, 1, rows[i].table);
		id = bound(RDMA_PS_TCP, at(rows[i].address, 0));
		TEST_ASSERT_EQUAL_STRING("sim0", id->verbs->device->name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(rows[i].index, index_of(id),
					       rows[i].table[rows[i].index].gid);
		check_gid(rows[i].table[rows[i].index].gid, &id->route.addr.addr.ibaddr.sgid);
		check_address(rows[i].address, rdma_get_local_addr(id));
		end_ids();
	}
}

/* No device has a GID of the family. */
void test_no_entry_for_a_loopback_address(void)
{
	static const struct entry table[] = {{"fe80::1", V2}, {NULL, V2}};
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	set_gids(0, 1, table);
	TEST_ASSERT_EQUAL_INT(-1, CM->bind_addr(id, at("127.0.0.1", 0)));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("::1", 0)));
}

/* The source of an IPv6 program whose destination is an IPv4 address. */
void test_a_mapped_destination_needs_an_ipv4_source(void)
{
	struct rdma_cm_id *id =
		resolved(RDMA_PS_TCP, at("fd00::1", 0), at("::ffff:10.0.0.2", PORT));

	TEST_ASSERT_EQUAL_STRING("sim0", id->verbs->device->name);
	check_gid("::ffff:10.0.0.1", &id->route.addr.addr.ibaddr.sgid);
	check_gid("::ffff:10.0.0.2", &id->route.addr.addr.ibaddr.dgid);
	check_address("fd00::1", rdma_get_local_addr(id));
	end_ids();
	id = resolved(RDMA_PS_TCP, at("fd00::1", 0), at("fd00::2", PORT));
	check_gid("fd00::1", &id->route.addr.addr.ibaddr.sgid);
}

/* --- the device and its port --- */

static const struct vb_sim_config two_ports = {
	.device_count = 2,
	.devices = {{.name = "sim0", .ports = 2}, {.name = "sim1", .ports = 2}},
};

void test_an_address_of_the_second_port(void)
{
	static const struct entry first[] = {{"fe80::1", V2}, {"::ffff:10.0.1.1", V2}, {NULL, V2}};
	static const struct entry second[] = {
		{"fe80::2", V2}, {"fe80::3", V2}, {"::ffff:10.0.1.2", V2}, {NULL, V2}};
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *client;
	struct rdma_cm_event event;

	make_world(&two_ports);
	set_gids(1, 1, first);
	set_gids(1, 2, second);
	listener(RDMA_PS_TCP, at("10.0.1.2", PORT));
	client = resolved(RDMA_PS_TCP, at("10.0.1.1", 0), at("10.0.1.2", PORT));
	route(client);
	event = ask(client, &param);
	establish(client, event.id, &param);
	TEST_ASSERT_EQUAL_UINT(1, client->port_num);
	TEST_ASSERT_EQUAL_UINT(1, query(client).ah_attr.port_num);
	TEST_ASSERT_EQUAL_UINT(2, event.id->port_num);
	TEST_ASSERT_EQUAL_UINT(2, query(event.id).ah_attr.port_num);
	TEST_ASSERT_EQUAL_UINT(2, query(event.id).ah_attr.grh.sgid_index);
	check_gid("::ffff:10.0.1.2", &event.id->route.addr.addr.ibaddr.sgid);
	check_gid("::ffff:10.0.1.1", &event.id->route.addr.addr.ibaddr.dgid);
}

/* A port that is down has no source address; the next port has one, or the next device. */
void test_ports_that_are_down_serve_no_loopback_address(void)
{
	static const struct entry first[] = {{"::ffff:10.0.1.1", V2}, {NULL, V2}};
	static const struct entry second[] = {{"fe80::1", V2}, {"::ffff:10.0.1.2", V2}, {NULL, V2}};
	struct rdma_cm_id *id;

	make_world(&two_ports);
	set_gids(0, 1, first);
	set_gids(0, 2, second);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(context(0), 1, false));
	id = bound(RDMA_PS_TCP, at("127.0.0.1", 0));
	TEST_ASSERT_EQUAL_STRING("sim0", id->verbs->device->name);
	TEST_ASSERT_EQUAL_UINT(2, id->port_num);
	TEST_ASSERT_EQUAL_UINT(1, index_of(id));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(context(0), 2, false));
	id = bound(RDMA_PS_TCP, at("127.0.0.1", 0));
	TEST_ASSERT_EQUAL_STRING("sim1", id->verbs->device->name);
}

void test_a_dead_device_serves_no_address(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(context(0)));
	TEST_ASSERT_EQUAL_INT(-1, CM->bind_addr(id, at("10.0.0.1", 0)));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, errno);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("127.0.0.1", 0)));
	TEST_ASSERT_EQUAL_STRING("sim1", id->verbs->device->name);
}

/* --- both addresses --- */

/* Without a source, the machine's own address is that of the destination. */
void test_the_source_of_a_destination_on_this_machine(void)
{
	static const struct {
		const char *to, *from;
	} rows[] = {
		{"127.0.0.1", "127.0.0.1"},
		{"0.0.0.0", "127.0.0.1"},
		{"::1", "::1"},
		{"::", "::1"},
		{"10.0.0.2", "10.0.0.2"},
		{"192.0.2.7", "192.0.2.7"},
	};

	inet_pton(AF_INET, "192.0.2.7", &interface_address.sin_addr);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id = resolved(RDMA_PS_TCP, NULL, at(rows[i].to, PORT));

		check_address(rows[i].from, rdma_get_local_addr(id));
		check_address(rows[i].to, rdma_get_peer_addr(id));
		TEST_ASSERT_TRUE(cm_address_port(rdma_get_local_addr(id)) != 0);
		TEST_ASSERT_EQUAL_UINT(PORT, cm_address_port(rdma_get_peer_addr(id)));
		end_ids();
	}
}

void test_a_bound_source_stays(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_TCP, at("127.0.0.1", 0));
	const uint16_t port = cm_address_port(rdma_get_local_addr(id));

	/* The kernel knows the family of the peer from now on. */
	TEST_ASSERT_EQUAL_INT(AF_INET, rdma_get_peer_addr(id)->sa_family);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(id, NULL, at("10.0.0.2", PORT), 1000));
	take(id, RDMA_CM_EVENT_ADDR_RESOLVED);
	check_address("127.0.0.1", rdma_get_local_addr(id));
	TEST_ASSERT_EQUAL_UINT(port, cm_address_port(rdma_get_local_addr(id)));
	TEST_ASSERT_EQUAL_STRING("sim0", id->verbs->device->name);
	check_gid("::ffff:10.0.0.1", &id->route.addr.addr.ibaddr.sgid);
}

/* A listener at a loopback address is the machine's, not the device's. */
void test_a_listener_at_a_loopback_address(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	struct rdma_cm_id *client;
	struct rdma_cm_event event;

	listener(RDMA_PS_TCP, at("127.0.0.1", PORT));
	client = resolved(RDMA_PS_TCP, at("10.0.0.2", 0), at("127.0.0.1", PORT));
	TEST_ASSERT_EQUAL_STRING("sim1", client->verbs->device->name);
	route(client);
	event = ask(client, &param);
	check_address("127.0.0.1", rdma_get_local_addr(event.id));
	check_address("10.0.0.2", rdma_get_peer_addr(event.id));
	establish(client, event.id, &param);
}

/* An address that was not bound leaves nothing behind. */
void test_the_wildcard_after_an_address_that_was_in_use(void)
{
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);

	listener(RDMA_PS_TCP, at("10.0.0.2", PORT));
	TEST_ASSERT_EQUAL_INT(-1, CM->bind_addr(id, at("10.0.0.2", PORT)));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, errno);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("0.0.0.0", 0)));
	TEST_ASSERT_NULL(id->verbs);
	TEST_ASSERT_EQUAL_INT(0, CM->listen(id, 1));
}

/* Also an address that the route has chosen may go. */
void test_a_chosen_source_may_change(void)
{
	const union ibv_gid other = gid("::ffff:10.9.9.9");
	struct rdma_cm_id *id = resolved(RDMA_PS_TCP, NULL, at("10.0.0.2", PORT));

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_gid(id->verbs, 1, 1, &other));
	take(id, RDMA_CM_EVENT_ADDR_CHANGE);
}

/* A group is a destination, too. */
void test_the_way_to_a_group(void)
{
	struct rdma_cm_id *id = resolved(RDMA_PS_UDP, NULL, at("239.1.2.3", PORT));

	TEST_ASSERT_EQUAL_STRING("sim0", id->verbs->device->name);
	check_gid("::ffff:10.0.0.1", &id->route.addr.addr.ibaddr.sgid);
	check_address("239.1.2.3", rdma_get_peer_addr(id));
	end_ids();
	id = resolved(RDMA_PS_UDP, at("10.0.0.2", 0), at("239.1.2.3", PORT));
	TEST_ASSERT_EQUAL_STRING("sim1", id->verbs->device->name);
}

/* --- the path --- */

static const struct vb_sim_config unequal = {
	.device_count = 2,
	.devices = {{.name = "sim0", .pkey_count = 1, .pkeys = {0x8001}},
		    {.name = "sim1", .pkey_count = 1, .pkeys = {0x8001}, .mtu = IBV_MTU_1024}},
};

void test_the_record_of_a_path(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	const struct ibv_sa_path_rec *record;
	struct rdma_cm_event event;
	struct rdma_cm_id *client;
	uint8_t tos = 0x68, never = 0;

	make_world(&unequal);
	listener(RDMA_PS_TCP, at("10.0.0.2", PORT));
	client = resolved(RDMA_PS_TCP, at("10.0.0.1", 0), at("10.0.0.2", PORT));
	TEST_ASSERT_EQUAL_HEX(htobe16(0x8001), client->route.addr.addr.ibaddr.pkey);
	TEST_ASSERT_EQUAL_INT(0,
			      CM->set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 1));
	/* No timeout is no life time. */
	TEST_ASSERT_EQUAL_INT(
		0, CM->set_option(client, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &never, 1));
	route(client);
	record = client->route.path_rec;
	check_gid("::ffff:10.0.0.1", &record->sgid);
	check_gid("::ffff:10.0.0.2", &record->dgid);
	TEST_ASSERT_EQUAL_HEX(htobe16(0x8001), record->pkey);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, record->mtu);
	TEST_ASSERT_EQUAL_UINT(64, record->hop_limit);
	TEST_ASSERT_EQUAL_HEX(0x68, record->traffic_class);
	TEST_ASSERT_EQUAL_UINT(16, record->packet_life_time);
	event = ask(client, &param);
	establish(client, event.id, &param);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, query(client).path_mtu);
	TEST_ASSERT_EQUAL_INT(IBV_MTU_1024, query(event.id).path_mtu);
	TEST_ASSERT_EQUAL_UINT(64, query(client).ah_attr.grh.hop_limit);
}

/* InfiniBand: the devices have the LIDs 1 and 2, and GIDs beside the ports' own. */
static const struct vb_sim_config infiniband = {
	.device_count = 2,
	.devices = {{.name = "sim0",
		     .link_layer = IBV_LINK_LAYER_INFINIBAND,
		     .pkey_count = 1,
		     .pkeys = {0x8001},
		     .gid_count = 2,
		     .gids = {{.raw = {0xfd, [15] = 1}},
			      {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1}}}},
		    {.name = "sim1",
		     .link_layer = IBV_LINK_LAYER_INFINIBAND,
		     .pkey_count = 1,
		     .pkeys = {0x8001},
		     .gid_count = 2,
		     .gids = {{.raw = {0xfd, [15] = 2}},
			      {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 2}}}}},
};

/* A path of the program has another service level. */
static struct ibv_path_data path_with_sl(const struct ibv_sa_path_rec *record, uint8_t sl)
{
	return (struct ibv_path_data){
		.flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
		.path = {.dgid = record->dgid,
			 .sgid = record->sgid,
			 .dlid = record->dlid,
			 .slid = record->slid,
			 .reversible_numpath = 0x81,
			 .pkey = record->pkey,
			 .qosclass_sl = htobe16((uint16_t)(0x1230 | sl)),
			 .mtu = (uint8_t)(2 << 6 | record->mtu),
			 .rate = (uint8_t)(2 << 6 | record->rate),
			 .packetlifetime = 2 << 6 | 20},
	};
}

void test_a_path_of_infiniband(void)
{
	struct rdma_conn_param param = {.retry_count = 7};
	const struct ibv_sa_path_rec *record;
	struct ibv_path_data path;
	struct rdma_cm_event event;
	struct rdma_cm_id *client;

	make_world(&infiniband);
	listener(RDMA_PS_TCP, at("fd00::2", PORT));
	client = resolved(RDMA_PS_TCP, at("fd00::1", 0), at("fd00::2", PORT));
	route(client);
	record = client->route.path_rec;
	TEST_ASSERT_EQUAL_UINT(1, be16toh(record->slid));
	TEST_ASSERT_EQUAL_UINT(2, be16toh(record->dlid));
	TEST_ASSERT_EQUAL_UINT(0, record->sl);
	path = path_with_sl(record, 0xd);
	/* Too late, and too early. */
	TEST_ASSERT_EQUAL_INT(-1, CM->set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path,
						 sizeof(path)));
	client = bound(RDMA_PS_TCP, at("fd00::1", 0));
	TEST_ASSERT_EQUAL_INT(-1, CM->set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path,
						 sizeof(path)));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	client = resolved(RDMA_PS_TCP, at("fd00::1", 0), at("fd00::2", PORT));
	TEST_ASSERT_EQUAL_INT(0, CM->set_option(client, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path,
						sizeof(path)));
	take(client, RDMA_CM_EVENT_ROUTE_RESOLVED);
	TEST_ASSERT_EQUAL_UINT(0xd, client->route.path_rec->sl);
	TEST_ASSERT_EQUAL_UINT(20, client->route.path_rec->packet_life_time);
	event = ask(client, &param);
	establish(client, event.id, &param);
	TEST_ASSERT_EQUAL_UINT(0xd, query(client).ah_attr.sl);
	TEST_ASSERT_EQUAL_UINT(0xd, query(event.id).ah_attr.sl);
	TEST_ASSERT_EQUAL_UINT(2, query(client).ah_attr.dlid);
	TEST_ASSERT_EQUAL_UINT(0, query(client).ah_attr.is_global);
	TEST_ASSERT_EQUAL_UINT(1, query(event.id).ah_attr.dlid);
}

/* The route of an address list is a path of the program. */
void test_an_endpoint_brings_its_route(void)
{
	struct rdma_addrinfo res = {.ai_port_space = RDMA_PS_TCP,
				    .ai_qp_type = IBV_QPT_RC,
				    .ai_src_len = sizeof(struct sockaddr_in6),
				    .ai_dst_len = sizeof(struct sockaddr_in6),
				    .ai_src_addr = at("fd00::1", 0),
				    .ai_dst_addr = at("fd00::2", PORT)};
	struct ibv_path_data path;
	struct rdma_cm_id *id;

	make_world(&infiniband);
	id = resolved(RDMA_PS_TCP, at("fd00::1", 0), at("fd00::2", PORT));
	route(id);
	path = path_with_sl(id->route.path_rec, 7);
	res.ai_route = &path;
	res.ai_route_len = sizeof(path);
	TEST_ASSERT_EQUAL_INT(0, CM->create_ep(&id, &res, NULL, NULL));
	keep(id);
	TEST_ASSERT_EQUAL_UINT(7, id->route.path_rec->sl);
	TEST_ASSERT_EQUAL_UINT(20, id->route.path_rec->packet_life_time);
}

/* On InfiniBand, a GID is no IP address: the bound one serves each family. */
void test_the_source_of_infiniband_stays(void)
{
	struct rdma_cm_id *id;

	make_world(&infiniband);
	id = resolved(RDMA_PS_TCP, at("fd00::1", 0), at("::ffff:10.0.0.2", PORT));
	check_gid("fd00::1", &id->route.addr.addr.ibaddr.sgid);
	TEST_ASSERT_EQUAL_UINT(1, index_of(id));
	end_ids();
	id = bound(RDMA_PS_TCP, at("10.0.0.2", 0));
	TEST_ASSERT_EQUAL_UINT(2, index_of(id));
	TEST_ASSERT_EQUAL_STRING("sim1", id->verbs->device->name);
}

/* --- depths --- */

static void lower(unsigned int device, int responder, int initiator)
{
	struct ibv_context *ctx = context(device);

	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(ctx, "max_qp_rd_atom", responder));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(ctx, "max_qp_init_rd_atom", initiator));
}

/* A client of sim0 with a route to a listener of sim1. */
static struct rdma_cm_id *across(enum rdma_port_space ps)
{
	struct rdma_cm_id *client = resolved(ps, at("10.0.0.1", 0), at("10.0.0.2", PORT));

	route(client);
	return client;
}

static void check_depths(const struct rdma_cm_event *event, unsigned int responder,
			 unsigned int initiator)
{
	TEST_ASSERT_EQUAL_UINT(responder, event->param.conn.responder_resources);
	TEST_ASSERT_EQUAL_UINT(initiator, event->param.conn.initiator_depth);
}

void test_depths_beyond_the_device_are_refused(void)
{
	static const struct {
		uint8_t responder, initiator;
		bool good;
	} rows[] = {{4, 6, true}, {5, 6, false}, {4, 7, false}, {0, 0, true}, {255, 255, true}};

	lower(0, 4, 6);
	listener(RDMA_PS_TCP, at("10.0.0.2", PORT));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_conn_param param = {.responder_resources = rows[i].responder,
						.initiator_depth = rows[i].initiator,
						.qp_num = 0x4711 + (uint32_t)i};
		struct rdma_cm_id *client = across(RDMA_PS_TCP);

		TEST_ASSERT_EQUAL_INT(rows[i].good ? 0 : -1, CM->connect(client, &param));
		if (rows[i].good)
			keep(take(NULL, RDMA_CM_EVENT_CONNECT_REQUEST).id);
		else
			TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	}
}

/* librdmacm checks the port space TCP only. */
void test_depths_of_another_port_space_are_not_checked(void)
{
	struct rdma_conn_param param = {.responder_resources = 9, .initiator_depth = 9};
	struct rdma_cm_event event;

	lower(0, 4, 6);
	listener(RDMA_PS_IB, at("10.0.0.2", PORT));
	event = ask(across(RDMA_PS_IB), &param);
	check_depths(&event, 9, 9);
}

void test_depths_that_are_left_to_the_devices(void)
{
	/* The depths of the request, the limits of sim1, and the smaller ones of both. */
	static const struct {
		uint8_t asked_responder, asked_initiator;
		int responder, initiator;
		unsigned int least_responder, least_initiator;
	} rows[] = {
		{7, 11, 3, 5, 3, 5},
		{2, 1, 3, 5, 1, 2},
		{255, 255, 3, 5, 3, 5},
		{255, 255, 3, 1, 3, 1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_conn_param ours = {.responder_resources = rows[i].asked_responder,
					       .initiator_depth = rows[i].asked_initiator};
		const bool all = rows[i].asked_responder == RDMA_MAX_RESP_RES;
		struct rdma_cm_event event, answer;
		struct rdma_cm_id *client;

		make_world(NULL);
		lower(0, 10, 12);
		lower(1, rows[i].responder, rows[i].initiator);
		listener(RDMA_PS_TCP, at("10.0.0.2", PORT));
		client = across(RDMA_PS_TCP);
		event = ask(client, &ours);
		check_depths(&event, all ? 12 : rows[i].asked_initiator,
			     all ? 10 : rows[i].asked_responder);
		ours = (struct rdma_conn_param){.responder_resources = RDMA_MAX_RESP_RES,
						.initiator_depth = RDMA_MAX_INIT_DEPTH};
		answer = establish(client, event.id, i % 2 ? &ours : NULL);
		check_depths(&answer, rows[i].least_initiator, rows[i].least_responder);
		TEST_ASSERT_EQUAL_UINT(rows[i].least_responder, query(event.id).max_dest_rd_atomic);
		TEST_ASSERT_EQUAL_UINT(rows[i].least_initiator, query(event.id).max_rd_atomic);
		TEST_ASSERT_EQUAL_UINT(rows[i].least_initiator, query(client).max_dest_rd_atomic);
		TEST_ASSERT_EQUAL_UINT(rows[i].least_responder, query(client).max_rd_atomic);
		end_ids();
	}
}

/* The server takes less than the client offers. */
void test_the_answers_depths_are_those_of_the_qps(void)
{
	struct rdma_conn_param param = {.responder_resources = 6, .initiator_depth = 8};
	struct rdma_cm_id *client, *server;

	listener(RDMA_PS_TCP, at("10.0.0.2", PORT));
	client = across(RDMA_PS_TCP);
	server = ask(client, &param).id;
	param = (struct rdma_conn_param){.responder_resources = 3, .initiator_depth = 2};
	establish(client, server, &param);
	TEST_ASSERT_EQUAL_UINT(3, query(server).max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(2, query(server).max_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(2, query(client).max_dest_rd_atomic);
	TEST_ASSERT_EQUAL_UINT(3, query(client).max_rd_atomic);
}

/* Counts that a program leaves out are the largest ones. */
void test_counts_that_are_left_out(void)
{
	struct rdma_cm_event event, answer;
	struct rdma_cm_id *client;

	listener(RDMA_PS_TCP, at("10.0.0.2", PORT));
	client = across(RDMA_PS_TCP);
	event = ask(client, NULL);
	TEST_ASSERT_EQUAL_UINT(7, event.param.conn.retry_count);
	TEST_ASSERT_EQUAL_UINT(7, event.param.conn.rnr_retry_count);
	answer = establish(client, event.id, NULL);
	TEST_ASSERT_EQUAL_UINT(7, answer.param.conn.rnr_retry_count);
	TEST_ASSERT_EQUAL_UINT(7, query(client).rnr_retry);
	TEST_ASSERT_EQUAL_UINT(7, query(client).retry_cnt);
	TEST_ASSERT_EQUAL_UINT(7, query(event.id).rnr_retry);
	TEST_ASSERT_EQUAL_UINT(7, query(event.id).retry_cnt);
}

/* Linux drivers/infiniband/core/ucma.c, ucma_listen: 0 and larger numbers stand for max_backlog. */
void test_the_backlog_has_a_limit(void)
{
	static const struct {
		int asked;
		unsigned int expected;
	} rows[] = {{0, 1024}, {-1, 1024}, {1, 1}, {1023, 1023}, {1024, 1024}, {5000, 1024}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rdma_cm_id *id = bound(RDMA_PS_TCP, at("10.0.0.2", 0));

		TEST_ASSERT_EQUAL_INT(0, CM->listen(id, rows[i].asked));
		TEST_ASSERT_EQUAL_UINT(rows[i].expected, cm_id_of(id)->backlog);
	}
}

/* A packet of an earlier connection does not fit into a later one. */
void test_connections_begin_with_different_psns(void)
{
	const uint32_t first = cm_id_of(new_id(RDMA_PS_TCP))->starting_psn;

	TEST_ASSERT_NOT_EQUAL(first, cm_id_of(new_id(RDMA_PS_TCP))->starting_psn);
}

/* --- groups --- */

static struct rdma_ud_param join(struct rdma_cm_id *id, const char *group, uint32_t flags)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS |
							    RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
					       .join_flags = flags,
					       .addr = at(group, 0)};

	TEST_ASSERT_EQUAL_INT(0, CM->join_multicast_ex(id, &attr, NULL));
	return take(id, RDMA_CM_EVENT_MULTICAST_JOIN).param.ud;
}

/* Linux cma.c, cma_iboe_set_mgid: RoCE v1 has multicast GIDs, RoCE v2 has multicast IP addresses. */
void test_a_group_of_roce_v1(void)
{
	static const struct entry table[] = {{"fe80::1", V2}, {"::ffff:10.0.0.1", V1}, {NULL, V2}};
	struct rdma_cm_id *id;
	struct rdma_ud_param to;

	set_gids(0, 1, table);
	id = bound(RDMA_PS_UDP, at("10.0.0.1", 0));
	to = join(id, "239.1.2.3", RDMA_MC_JOIN_FLAG_FULLMEMBER);
	check_gid("ff0e::ffff:ef01:203", &to.ah_attr.grh.dgid);
	TEST_ASSERT_EQUAL_UINT(1, to.ah_attr.grh.sgid_index);
	id = bound(RDMA_PS_UDP, at("10.0.0.2", 0));
	to = join(id, "239.1.2.3", RDMA_MC_JOIN_FLAG_FULLMEMBER);
	check_gid("::ffff:239.1.2.3", &to.ah_attr.grh.dgid);
}

void test_the_pkey_of_a_group_of_infiniband(void)
{
	struct rdma_ud_param to;

	make_world(&infiniband);
	to = join(bound(RDMA_PS_UDP, at("fd00::1", 0)), "239.1.2.3", RDMA_MC_JOIN_FLAG_FULLMEMBER);
	check_gid("ff12:4001:8001::f01:203", &to.ah_attr.grh.dgid);
	to = join(bound(RDMA_PS_UDP, at("fd00::1", 0)), "ff0e::7", RDMA_MC_JOIN_FLAG_FULLMEMBER);
	check_gid("ff12:6001:8001::7", &to.ah_attr.grh.dgid);
}

/* The address of a group has a family. */
void test_a_group_is_left_by_its_own_address(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_UDP, at("10.0.0.1", 0));

	join(id, "239.1.2.3", RDMA_MC_JOIN_FLAG_FULLMEMBER);
	TEST_ASSERT_EQUAL_INT(-1, CM->leave_multicast(id, at("::ffff:239.1.2.3", 0)));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, errno);
	TEST_ASSERT_EQUAL_INT(0, CM->leave_multicast(id, at("239.1.2.3", 0)));
}

/* The program's own attachment stays. */
void test_a_sender_leaves_without_detaching(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_UDP, at("10.0.0.1", 0));
	struct rdma_ud_param to;

	make_qp(id);
	to = join(id, "239.1.2.3", RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.attach_mcast(id->qp, &to.ah_attr.grh.dgid, 0));
	TEST_ASSERT_EQUAL_INT(0, CM->leave_multicast(id, at("239.1.2.3", 0)));
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.detach_mcast(id->qp, &to.ah_attr.grh.dgid, 0));
}

void test_a_qp_that_cannot_be_attached(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_UDP, at("10.0.0.1", 0));
	struct rdma_cm_event *event = NULL;

	make_qp(id);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_lower_limit(id->verbs, "max_mcast_grp", 0));
	TEST_ASSERT_EQUAL_INT(0, CM->join_multicast(id, at("239.1.2.3", 0), NULL));
	TEST_ASSERT_EQUAL_INT(0, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(RDMA_CM_EVENT_MULTICAST_ERROR, event->event);
	TEST_ASSERT_TRUE(event->status != 0);
	TEST_ASSERT_EQUAL_INT(0, CM->ack_cm_event(event));
	TEST_ASSERT_EQUAL_INT(0, CM->leave_multicast(id, at("239.1.2.3", 0)));
}

/* --- options, answers and channels --- */

void test_an_xrc_initiator_has_an_ack_timeout(void)
{
	struct rdma_addrinfo res = {.ai_port_space = RDMA_PS_IB,
				    .ai_qp_type = IBV_QPT_XRC_SEND,
				    .ai_dst_len = sizeof(struct sockaddr_in),
				    .ai_dst_addr = at("10.0.0.2", PORT)};
	uint8_t timeout = 31;
	struct rdma_cm_id *id;

	TEST_ASSERT_EQUAL_INT(0, CM->create_ep(&id, &res, NULL, NULL));
	keep(id);
	TEST_ASSERT_EQUAL_INT(
		0, CM->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	timeout++;
	TEST_ASSERT_EQUAL_INT(
		-1, CM->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

/* The bytes of private data that each answer has room for: docs/cm-messages.md. */
static const struct room {
	enum rdma_port_space ps;
	bool accepts;
	uint8_t room_bytes;
	enum rdma_cm_event_type heard; /* by the client */
	int status;
} rooms[] = {
	{RDMA_PS_TCP, false, 148, RDMA_CM_EVENT_REJECTED, 28},
	{RDMA_PS_TCP, true, 196, RDMA_CM_EVENT_ESTABLISHED, 0},
	{RDMA_PS_UDP, false, 136, RDMA_CM_EVENT_UNREACHABLE, 2},
	{RDMA_PS_UDP, true, 136, RDMA_CM_EVENT_ESTABLISHED, 0},
};

static int answer(const struct room *row, struct rdma_cm_id *server, const uint8_t *data,
		  uint8_t bytes)
{
	struct rdma_conn_param param = {.private_data = data, .private_data_len = bytes};

	return row->accepts ? CM->accept(server, &param) : CM->reject(server, data, bytes);
}

static void expect_data(const struct room *row, const uint8_t *data)
{
	struct rdma_cm_event *event;

	TEST_ASSERT_EQUAL_INT(0, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(row->heard, event->event);
	TEST_ASSERT_EQUAL_INT(row->status, event->status);
	if (row->ps == RDMA_PS_UDP) {
		TEST_ASSERT_EQUAL_UINT(row->room_bytes, event->param.ud.private_data_len);
		TEST_ASSERT_EQUAL_MEMORY(data, event->param.ud.private_data, row->room_bytes);
	} else {
		TEST_ASSERT_EQUAL_UINT(row->room_bytes, event->param.conn.private_data_len);
		TEST_ASSERT_EQUAL_MEMORY(data, event->param.conn.private_data, row->room_bytes);
	}
	TEST_ASSERT_EQUAL_INT(0, CM->ack_cm_event(event));
}

/* An answer that is too long is refused. The peer gets all bytes of one that fits. */
void test_private_data_of_each_answer(void)
{
	uint8_t data[255];

	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i + 1);
	for (unsigned int i = 0; i < 2 * sizeof(rooms) / sizeof(rooms[0]); i++) {
		const struct room *row = &rooms[i / 2];
		const struct vb_why *why;
		struct rdma_conn_param param = {.retry_count = 7};
		struct rdma_cm_id *server;

		listener(row->ps, at("10.0.0.2", PORT));
		server = ask(across(row->ps), &param).id;
		if (i % 2) {
			TEST_ASSERT_EQUAL_INT(-1, answer(row, server, data, row->room_bytes + 1));
			TEST_ASSERT_EQUAL_INT(EINVAL, errno);
			why = vb_backend_sim.last_why();
			TEST_ASSERT_EQUAL_HEX(VB_WHY_CM_PRIVATE_LONG, why->reason);
			TEST_ASSERT_EQUAL_UINT64(row->room_bytes, why->values[1]);
		} else {
			TEST_ASSERT_EQUAL_INT(0, answer(row, server, data, row->room_bytes));
			expect_data(row, data);
		}
		tearDown();
		setUp();
	}
}

void test_the_remote_ece_has_no_extensions(void)
{
	struct ibv_ece ece = {.vendor_id = 1, .comp_mask = 77};

	TEST_ASSERT_EQUAL_INT(0, CM->get_remote_ece(new_id(RDMA_PS_TCP), &ece));
	TEST_ASSERT_EQUAL_UINT(0, ece.comp_mask);
}

/* The channel of a synchronous identifier ends when the identifier gets another one. */
void test_a_migrated_identifier_leaves_no_descriptor(void)
{
	struct rdma_cm_id *id = NULL;
	int fd;

	TEST_ASSERT_EQUAL_INT(0, CM->create_id(NULL, &id, NULL, RDMA_PS_TCP));
	keep(id);
	fd = id->channel->fd;
	TEST_ASSERT_EQUAL_INT(0, CM->migrate_id(id, channel));
	TEST_ASSERT_EQUAL_INT(-1, fcntl(fd, F_GETFD));
	TEST_ASSERT_EQUAL_INT(EBADF, errno);
}

/* On the virtual clock, a wait for this thread itself would never end. */
void test_migration_waits_for_acknowledgements(void)
{
	struct rdma_event_channel *other = CM->create_event_channel();
	struct rdma_cm_id *id = new_id(RDMA_PS_TCP);
	struct rdma_cm_event *event = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(id, NULL, at("10.0.0.2", PORT), 1000));
	TEST_ASSERT_EQUAL_INT(0, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(-1, CM->migrate_id(id, other));
	TEST_ASSERT_EQUAL_INT(EDEADLK, errno);
	TEST_ASSERT_EQUAL_PTR(channel, id->channel);
	TEST_ASSERT_EQUAL_INT(0, CM->ack_cm_event(event));
	TEST_ASSERT_EQUAL_INT(0, CM->migrate_id(id, other));
	end_ids();
	CM->destroy_event_channel(other);
}

/* --- QPs and CQs --- */

/* A device may round up the sizes of a QP. */
void test_the_sizes_of_a_qp_are_returned(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_TCP, at("10.0.0.1", 0));
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {5, 6, 1, 1, 0}}, init;
	struct ibv_qp_attr state;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(id->verbs, "queue_sizes_round_up", true));
	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(id, NULL, &attr));
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.query_qp(id->qp, &state, IBV_QP_CAP, &init));
	TEST_ASSERT_TRUE(attr.cap.max_send_wr > 5);
	TEST_ASSERT_EQUAL_INT(0, memcmp(&attr.cap, &init.cap, sizeof(attr.cap)));
	TEST_ASSERT_EQUAL_PTR(id->send_cq, attr.send_cq);
	TEST_ASSERT_EQUAL_PTR(id->recv_cq, attr.recv_cq);
}

/* A CQ of the identifier is the QP's, and no other one. */
void test_another_send_cq_is_refused(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_TCP, at("10.0.0.1", 0));
	struct ibv_cq *own = vb_backend_sim.create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_cq *other = vb_backend_sim.create_cq(id->verbs, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = {5, 6, 1, 1, 0}, .send_cq = other};

	id->send_cq = own;
	TEST_ASSERT_EQUAL_INT(-1, CM->create_qp(id, NULL, &attr));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	attr.send_cq = NULL;
	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(id, NULL, &attr));
	TEST_ASSERT_EQUAL_PTR(own, id->qp->send_cq);
	CM->destroy_qp(id);
	/* rdma_destroy_qp(3) ends the identifier's CQ, also one that the program has made. */
	TEST_ASSERT_NULL(id->send_cq);
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.destroy_cq(other));
}

static struct ibv_srq *new_srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = vb_backend_sim.create_srq(id->pd, &attr);

	TEST_ASSERT_NOT_NULL(srq);
	return srq;
}

/* The program's SRQ comes before the identifier's. */
void test_an_srq_of_the_attributes(void)
{
	struct rdma_cm_id *id = bound(RDMA_PS_TCP, at("10.0.0.1", 0));
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 5, .max_sge = 1}};
	struct ibv_srq_attr got;

	TEST_ASSERT_EQUAL_INT(0, vb_sim_set_quirk(id->verbs, "queue_sizes_round_up", true));
	TEST_ASSERT_EQUAL_INT(0, CM->create_srq(id, NULL, &srq));
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.query_srq(id->srq, &got));
	TEST_ASSERT_TRUE(srq.attr.max_wr > 5);
	TEST_ASSERT_EQUAL_UINT(got.max_wr, srq.attr.max_wr);
	attr.srq = new_srq(id);
	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(id, NULL, &attr));
	TEST_ASSERT_EQUAL_PTR(attr.srq, id->qp->srq);
	CM->destroy_qp(id);
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.destroy_srq(attr.srq));
	attr = (struct ibv_qp_init_attr){.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(id, NULL, &attr));
	TEST_ASSERT_EQUAL_PTR(id->srq, id->qp->srq);
	TEST_ASSERT_EQUAL_PTR(id->srq, attr.srq);
	CM->destroy_qp(id);
	CM->destroy_srq(id);
}

/* A target QP has no PD; the identifier's serves the program's regions. */
void test_the_identifier_of_a_target_keeps_its_pd(void)
{
	struct rdma_addrinfo res = {.ai_flags = RAI_PASSIVE,
				    .ai_port_space = RDMA_PS_IB,
				    .ai_qp_type = IBV_QPT_XRC_RECV,
				    .ai_src_len = sizeof(struct sockaddr_in),
				    .ai_src_addr = at("10.0.0.2", PORT)};
	struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_XRC_RECV};
	struct rdma_cm_id *id;
	struct ibv_pd *pd;

	TEST_ASSERT_EQUAL_INT(0, CM->create_ep(&id, &res, NULL, NULL));
	keep(id);
	pd = id->pd;
	TEST_ASSERT_NOT_NULL(pd);
	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(id, NULL, &attr));
	TEST_ASSERT_EQUAL_PTR(pd, id->pd);
}

/* rdma-core librdmacm/cma.c, ucma_put_device: a PD with objects of the program stays. */
void test_a_pd_in_use_outlives_the_identifiers(void)
{
	static uint8_t buffer[64];
	struct rdma_cm_id *id = bound(RDMA_PS_TCP, at("10.0.0.1", 0));
	struct ibv_pd *pd = id->pd;
	struct ibv_mr *mr = vb_backend_sim.reg_mr(pd, buffer, sizeof(buffer), 0);

	TEST_ASSERT_NOT_NULL(mr);
	end_ids();
	id = bound(RDMA_PS_TCP, at("10.0.0.1", 0));
	TEST_ASSERT_TRUE(id->pd != pd);
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.dereg_mr(mr));
	TEST_ASSERT_EQUAL_INT(0, vb_backend_sim.dealloc_pd(pd));
}
