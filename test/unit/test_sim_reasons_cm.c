/* SPDX-License-Identifier: MIT */
/* Reasons of the connection manager's calls: each mistake, and the whole sentence that the program gets. */
#include "test/support/capability.h"
#include "test/unit/sim_sentence.h"

#include <arpa/inet.h>
#include <endian.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <linux/capability.h>
#include <verbena/cm_backend.h>

#define CM   (vb_backend_sim.cm)
#define PORT 7471

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id, *other;

/* Set while somebody else has all ports. */
static bool ports_taken;

int __real_sim_cm_reserve(struct sim_engine *engine, uint64_t service_id, const uint8_t address[16],
			  uint32_t flags);

int __wrap_sim_cm_reserve(struct sim_engine *engine, uint64_t service_id, const uint8_t address[16],
			  uint32_t flags)
{
	return ports_taken ? EADDRINUSE : __real_sim_cm_reserve(engine, service_id, address, flags);
}

static struct sockaddr *at(const char *text, uint16_t port)
{
	static union {
		struct sockaddr any;
		struct sockaddr_in in4;
		struct sockaddr_in6 in6;
	} slots[8], *slot;
	static unsigned int used;

	slot = &slots[used++ % 8];
	memset(slot, 0, sizeof(*slot));
	if (strchr(text, ':')) {
		slot->in6.sin6_family = AF_INET6;
		slot->in6.sin6_port = htons(port);
		inet_pton(AF_INET6, text, &slot->in6.sin6_addr);
	} else {
		slot->in4.sin_family = AF_INET;
		slot->in4.sin_port = htons(port);
		inet_pton(AF_INET, text, &slot->in4.sin_addr);
	}
	return &slot->any;
}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *made = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->create_id(channel, &made, NULL, ps));
	return made;
}

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	channel = CM->create_event_channel();
	id = new_id(RDMA_PS_TCP);
}

void tearDown(void)
{
	if (id)
		CM->destroy_ep(id);
	if (other)
		CM->destroy_ep(other);
	id = other = NULL;
	if (channel)
		CM->destroy_event_channel(channel);
	channel = NULL;
}

/* The call failed with -1 and this errno value. */
static void expect_minus(int error, int result)
{
	const int found = errno;

	TEST_ASSERT_EQUAL_INT(-1, result);
	TEST_ASSERT_EQUAL_INT(error, found);
}

static struct rdma_cm_event *take(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(type, event->event);
	return event;
}

static void pass(enum rdma_cm_event_type type)
{
	CM->ack_cm_event(take(type));
}

static void resolve_address(struct rdma_cm_id *of)
{
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(of, NULL, at("10.0.0.2", PORT), 1000));
	pass(RDMA_CM_EVENT_ADDR_RESOLVED);
}

static void resolve(struct rdma_cm_id *of)
{
	resolve_address(of);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(of, 1000));
	pass(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static struct ibv_qp_init_attr qp_attributes(void)
{
	return (struct ibv_qp_init_attr){
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};
}

static void make_qp(struct rdma_cm_id *of)
{
	struct ibv_qp_init_attr attr = qp_attributes();

	TEST_ASSERT_EQUAL_INT(0, CM->create_qp(of, NULL, &attr));
}

/* --- states --- */

void test_state(void)
{
	expect_minus(EINVAL, CM->resolve_route(id, 1000));
	expect_reason(
		VB_WHY_CM_ID_STATE,
		"resolve_route: the identifier is in the state IDLE, and resolve_route needs "
		"ADDR_RESOLVED; wait for the event of the call before, and follow the order of "
		"calls of rdma_cm(7)");
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("0.0.0.0", 0)));
	TEST_ASSERT_EQUAL_INT(0, CM->listen(id, 1));
	expect_minus(EINVAL, CM->resolve_addr(id, NULL, at("10.0.0.1", 1), 1));
	expect_reason(
		VB_WHY_CM_ID_STATE,
		"resolve_addr: the identifier is in the state LISTEN, and resolve_addr needs "
		"IDLE or ADDR_BOUND; wait for the event of the call before, and follow the order "
		"of calls of rdma_cm(7)");
}

/* --- events --- */

void test_event_null(void)
{
	expect_minus(EINVAL, CM->get_cm_event(channel, NULL));
	expect_reason(VB_WHY_CM_EVENT_NULL,
		      "get_cm_event: the pointer for the event is NULL; pass the "
		      "address of a struct rdma_cm_event *");
}

void test_silent(void)
{
	struct rdma_cm_event *event;

	expect_minus(EDEADLK, CM->get_cm_event(channel, &event));
	expect_reason(VB_WHY_CM_SILENT,
		      "get_cm_event: no event can come to the event channel of fd %d: no message "
		      "is on its way, and no timer is due; call what brings the event before the "
		      "wait: rdma_resolve_addr(), rdma_listen(), rdma_connect() and their like",
		      channel->fd);
}

void test_nonblocking(void)
{
	struct rdma_cm_event *event;

	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	expect_minus(EAGAIN, CM->get_cm_event(channel, &event));
	expect_reason(
		VB_WHY_NO_EVENT,
		"get_cm_event: no event is queued, and fd %d has O_NONBLOCK; wait with poll(2) "
		"until fd %d is readable",
		channel->fd, channel->fd);
}

void test_unacknowledged(void)
{
	struct rdma_cm_event *event;

	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(id, NULL, at("10.0.0.2", 1), 1000));
	event = take(RDMA_CM_EVENT_ADDR_RESOLVED);
	expect_minus(EDEADLK, CM->destroy_id(id));
	expect_reason(VB_WHY_CM_UNACKED, "destroy_id: 1 event of rdma_get_cm_event() must be "
					 "acknowledged first, and no other "
					 "thread can do it; call rdma_ack_cm_event() for each "
					 "event before the identifier or "
					 "the membership ends");
	/* Nothing has changed. */
	CM->ack_cm_event(event);
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(id, 1000));
	pass(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* --- synchronous identifiers --- */

static struct rdma_cm_id *synchronous(void)
{
	struct rdma_cm_id *made = NULL;

	TEST_ASSERT_EQUAL_INT(0, CM->create_id(NULL, &made, NULL, RDMA_PS_TCP));
	return made;
}

void test_event_status(void)
{
	struct rdma_conn_param param = {.qp_num = 0x77};

	other = synchronous();
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(other, NULL, at("10.0.0.2", PORT), 1000));
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(other, 1000));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(other->verbs, 1, false));
	expect_minus(ETIMEDOUT, CM->connect(other, &param));
	expect_reason(VB_WHY_CM_EVENT_STATUS, "connect: the event UNREACHABLE came, and its status "
					      "is ETIMEDOUT (Connection timed "
					      "out); look at id->event; "
					      "rdma_get_cm_event(3) says what the event means");
	TEST_ASSERT_EQUAL_INT(RDMA_CM_EVENT_UNREACHABLE, other->event->event);
}

void test_rejected(void)
{
	struct rdma_conn_param param = {.qp_num = 0x77};

	other = synchronous();
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_addr(other, NULL, at("10.0.0.2", PORT), 1000));
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(other, 1000));
	expect_minus(ECONNREFUSED, CM->connect(other, &param));
	expect_reason(
		VB_WHY_CM_REJECTED,
		"connect: the peer rejected the connection with the reason 8; look at id->event; 8 "
		"says that nobody listens at the port, 28 that the program of the peer rejected");
}

void test_not_synchronous(void)
{
	expect_minus(EINVAL, CM->get_request(id, &other));
	expect_reason(
		VB_WHY_CM_NOT_SYNC,
		"get_request: the listener has an event channel; take requests from its channel by "
		"rdma_get_cm_event(), or make the listener without a channel");
}

void test_no_request(void)
{
	struct rdma_cm_id *request = NULL;

	other = synchronous();
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(other, at("10.0.0.2", PORT)));
	TEST_ASSERT_EQUAL_INT(0, CM->listen(other, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(other->verbs));
	expect_minus(EINVAL, CM->get_request(other, &request));
	expect_reason(
		VB_WHY_CM_NO_REQUEST,
		"get_request: the listener got the event DEVICE_REMOVAL instead of a connection "
		"request; look at the listener's event, and call rdma_get_request() again");
	TEST_ASSERT_EQUAL_INT(RDMA_CM_EVENT_DEVICE_REMOVAL, other->event->event);
}

void test_synchronous_already(void)
{
	other = synchronous();
	expect_minus(EINVAL, CM->migrate_id(other, NULL));
	expect_reason(VB_WHY_CM_IS_SYNC,
		      "migrate_id: the identifier has no event channel already; name the "
		      "event channel to which the identifier shall move");
}

/* --- identifiers and addresses --- */

void test_port_space(void)
{
	expect_minus(EINVAL, CM->create_id(channel, &other, NULL, (enum rdma_port_space)0x107));
	expect_reason(VB_WHY_CM_PORT_SPACE,
		      "create_id: there is no port space 0x107; use RDMA_PS_TCP, "
		      "RDMA_PS_UDP, RDMA_PS_IB or RDMA_PS_IPOIB");
}

void test_no_address(void)
{
	expect_minus(EINVAL, CM->bind_addr(id, NULL));
	expect_reason(VB_WHY_CM_NO_ADDRESS, "bind_addr: no address is given: the pointer is NULL; "
					    "pass a struct sockaddr_in or a "
					    "struct sockaddr_in6");
	expect_minus(EINVAL, CM->resolve_addr(id, NULL, NULL, 1));
	expect_reason(
		VB_WHY_CM_NO_ADDRESS,
		"resolve_addr: no destination address is given: the pointer is NULL; pass a struct "
		"sockaddr_in or a struct sockaddr_in6");
}

static void expect_no_endpoint(struct rdma_addrinfo *res, const char *which, unsigned int bytes)
{
	expect_minus(EINVAL, CM->create_ep(&other, res, NULL, NULL));
	expect_reason(
		VB_WHY_CM_ADDRESS_LENGTH,
		"create_ep: the %s has a length of %u bytes, and an address of the family 2 has 16 "
		"bytes; take the addresses and their lengths from rdma_getaddrinfo(), or set "
		"ai_src_len and ai_dst_len to the size of the struct sockaddr_in or struct "
		"sockaddr_in6",
		which, bytes);
	TEST_ASSERT_NULL(other);
}

void test_length_of_an_address(void)
{
	struct rdma_addrinfo res = {
		.ai_flags = RAI_PASSIVE,
		.ai_qp_type = IBV_QPT_RC,
		.ai_port_space = RDMA_PS_TCP,
		.ai_src_addr = at("10.0.0.2", 0),
		.ai_src_len = sizeof(struct sockaddr_in) - 1,
		.ai_dst_addr = at("10.0.0.1", 1),
		.ai_dst_len = sizeof(struct sockaddr_in) + 1,
	};

	expect_no_endpoint(&res, "source address", 15);
	res.ai_flags = 0;
	expect_no_endpoint(&res, "source address", 15);
	res.ai_src_len++;
	expect_no_endpoint(&res, "destination address", 17);
	res.ai_dst_len = 0;
	expect_no_endpoint(&res, "destination address", 0);
	res.ai_dst_len = sizeof(struct sockaddr_in);
	TEST_ASSERT_EQUAL_INT(0, CM->create_ep(&other, &res, NULL, NULL));
}

void test_low_port(void)
{
	const bool changed = capability_drop(CAP_NET_BIND_SERVICE);
	const int answer = CM->bind_addr(id, at("10.0.0.2", 1023));

	expect_minus(EACCES, answer);
	expect_reason(VB_WHY_CM_PORT_LOW,
		      "bind_addr: port 1023 is below 1024, and the process lacks the capability "
		      "CAP_NET_BIND_SERVICE; choose a port from 1024 on, or give the process the "
		      "capability");
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.2", 1024)));
	if (!changed)
		return;
	capability_restore(CAP_NET_BIND_SERVICE);
	CM->destroy_id(id);
	id = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.2", 1023)));
}

void test_device_is_gone(void)
{
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.2", 0)));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_kill_device(id->verbs));
	expect_minus(ENXIO, CM->listen(id, 1));
	expect_reason(VB_WHY_CM_REMOVED,
		      "listen: the device of the identifier is gone, and listen needs it; after "
		      "RDMA_CM_EVENT_DEVICE_REMOVAL, end the identifier by rdma_destroy_id()");
}

void test_no_time_for_the_route(void)
{
	resolve_address(id);
	expect_minus(EINVAL, CM->resolve_route(id, 0));
	expect_reason(VB_WHY_CM_ROUTE_TIMEOUT,
		      "resolve_route: the time for resolving the route is 0; pass the milliseconds "
		      "to wait, 2000 for instance");
	TEST_ASSERT_EQUAL_INT(0, CM->resolve_route(id, 1));
}

void test_family(void)
{
	struct sockaddr local = {.sa_family = AF_UNIX};

	expect_minus(EINVAL, CM->resolve_addr(id, &local, at("10.0.0.1", 1), 1));
	expect_reason(
		VB_WHY_CM_FAMILY,
		"resolve_addr: the source address has the family 1, which is none of AF_INET (2), "
		"AF_INET6 (10) and AF_IB (27); set the family of the address");
}

void test_families(void)
{
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.1", 0)));
	expect_minus(EINVAL, CM->resolve_addr(id, NULL, at("fd00::1", 1), 1));
	expect_reason(VB_WHY_CM_FAMILIES,
		      "resolve_addr: the source address has the family 2, and the destination "
		      "address the family 10; bind the identifier to an address of the "
		      "destination's family");
}

void test_not_local(void)
{
	expect_minus(EADDRNOTAVAIL, CM->bind_addr(id, at("192.0.2.7", 0)));
	expect_reason(
		VB_WHY_CM_NOT_LOCAL,
		"bind_addr: neither this machine nor a simulated device has the address 192.0.2.7; "
		"bind to an address of this machine, to a GID of a simulated device, or to the "
		"wildcard address");
	/* Nothing has changed. */
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.1", 0)));
}

/* An address of the family AF_IB. */
static struct sockaddr *at_gid(const char *text, uint64_t service_id)
{
	static struct sockaddr_ib address;

	address = (struct sockaddr_ib){.sib_family = AF_IB,
				       .sib_pkey = htobe16(0xffff),
				       .sib_sid = htobe64(service_id),
				       .sib_sid_mask = htobe64(UINT64_MAX)};
	inet_pton(AF_INET6, text, &address.sib_addr);
	return (struct sockaddr *)&address;
}

void test_addresses_of_infiniband(void)
{
	expect_minus(EPROTONOSUPPORT, CM->bind_addr(id, at_gid("::", RDMA_IB_IP_PS_UDP)));
	expect_reason(
		VB_WHY_CM_IB_SPACE,
		"bind_addr: the service ID 0x1110000, with the mask 0xffffffffffff0000 of the "
		"port space, is in no port space that an identifier of the port space 0x106 "
		"may use; set sib_sid to RDMA_IB_IP_PS_TCP, RDMA_IB_IP_PS_UDP or "
		"RDMA_IB_PS_IB plus the port, or let sib_sid_mask be 0; RDMA_PS_IPOIB has no "
		"such addresses");
	expect_minus(ENODEV, CM->bind_addr(id, at_gid("fec0::9", RDMA_IB_IP_PS_TCP)));
	expect_reason(
		VB_WHY_CM_IB_GID,
		"bind_addr: no InfiniBand port of a simulated device has the GID fec0::9; "
		"bind to a GID of such a port, or to the wildcard address; on Ethernet, use IP "
		"addresses");
	expect_minus(ENODEV,
		     CM->resolve_addr(id, NULL, at_gid("fec0::9", RDMA_IB_IP_PS_TCP + 1), 1));
	expect_reason(
		VB_WHY_CM_IB_PORT,
		"resolve_addr: no port with the P_Key 0xffff has the GID fec0::9, or an active "
		"link and a GID with the same subnet prefix; set sib_addr to a GID of a "
		"simulated device, and sib_pkey to a P_Key of its port in network byte order, "
		"such as htobe16(0xffff)");
	TEST_ASSERT_EQUAL_INT(
		0, CM->resolve_addr(id, NULL, at_gid("fe80::9", RDMA_IB_IP_PS_TCP + 1), 1));
	expect_minus(ENODEV, CM->resolve_route(id, 1));
	expect_reason(
		VB_WHY_CM_IB_ETHERNET,
		"resolve_route: an address of the family AF_IB has no route on Ethernet, which "
		"is the link layer of port 1; use IP addresses on Ethernet");
}

void test_no_gid(void)
{
	struct ibv_context **list = CM->get_devices(NULL);

	for (unsigned int i = 0; list[i]; i++)
		TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(list[i], 1, false));
	CM->free_devices(list);
	expect_minus(ENODEV, CM->bind_addr(id, at("127.0.0.1", 0)));
	expect_reason(VB_WHY_CM_NO_GID,
		      "bind_addr: no port that is up has a GID for the address 127.0.0.1; give a "
		      "simulated device a GID of the same family, or set its port to active");
}

void test_scope(void)
{
	expect_minus(EINVAL, CM->bind_addr(id, at("fe80::1", 0)));
	expect_reason(VB_WHY_CM_SCOPE,
		      "bind_addr: the link-local address fe80::1 has no scope ID; set "
		      "sin6_scope_id to the number of the interface");
}

void test_unreachable(void)
{
	expect_minus(ENETUNREACH, CM->resolve_addr(id, NULL, at("192.0.2.7", 1), 1));
	expect_reason(
		VB_WHY_CM_UNREACHABLE,
		"resolve_addr: no simulated device reaches 192.0.2.7; use an address of this "
		"machine or a GID of a simulated device, or give a device the wire udp to reach "
		"other machines");
	/* The identifier can still be used. */
	resolve_address(id);
}

/* Each port is taken, and later none is. */
void test_no_port(void)
{
	ports_taken = true;
	expect_minus(EADDRNOTAVAIL, CM->bind_addr(id, at("10.0.0.1", 0)));
	ports_taken = false;
	expect_reason(
		VB_WHY_CM_NO_PORT,
		"bind_addr: all ports from 32768 to 60999 of the port space are in use; destroy "
		"identifiers that are not needed, or bind to a port below");
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.1", 0)));
}

/* --- connections --- */

void test_no_qp(void)
{
	resolve(id);
	expect_minus(EINVAL, CM->connect(id, NULL));
	expect_reason(
		VB_WHY_CM_NO_QP,
		"connect: the identifier has no QP, and there are no connection parameters that "
		"name one; call rdma_create_qp() before, or set qp_num of the connection "
		"parameters");
}

void test_resources(void)
{
	struct rdma_conn_param param = {.responder_resources = 200};
	struct ibv_device_attr limits;

	resolve(id);
	B.query_device(id->verbs, &limits);
	expect_minus(EINVAL, CM->connect(id, &param));
	expect_reason(
		VB_WHY_CM_RESPONDER_RESOURCES,
		"connect: responder_resources is 200, and the device has at most %d "
		"(max_qp_rd_atom); lower responder_resources, or set it to RDMA_MAX_RESP_RES for "
		"the device's limit",
		limits.max_qp_rd_atom);
	param = (struct rdma_conn_param){.initiator_depth = 200};
	expect_minus(EINVAL, CM->connect(id, &param));
	expect_reason(VB_WHY_CM_INITIATOR_DEPTH,
		      "connect: initiator_depth is 200, and the device has at most %d "
		      "(max_qp_init_rd_atom); lower initiator_depth, or set it to "
		      "RDMA_MAX_INIT_DEPTH for "
		      "the device's limit",
		      limits.max_qp_init_rd_atom);
}

void test_private_data(void)
{
	static const uint8_t bytes[255];
	struct rdma_conn_param param = {.private_data = bytes, .private_data_len = 57};

	resolve(id);
	make_qp(id);
	expect_minus(EINVAL, CM->connect(id, &param));
	expect_reason(
		VB_WHY_CM_PRIVATE_LONG,
		"connect: there are 57 bytes of private data, and the REQ has room for 56 bytes; "
		"shorten the private data");
	param.private_data_len = 56;
	TEST_ASSERT_EQUAL_INT(0, CM->connect(id, &param));
}

void test_no_connection(void)
{
	expect_minus(EINVAL, CM->reject(id, NULL, 0));
	expect_reason(VB_WHY_CM_NO_CONNECTION,
		      "reject: the identifier has no connection, and none is being made; call "
		      "rdma_connect() before, or use the identifier of a connection request");
	expect_minus(EINVAL, CM->disconnect(id));
	expect_minus(EINVAL, CM->notify(id, IBV_EVENT_COMM_EST));
}

void test_establish(void)
{
	resolve(id);
	make_qp(id);
	expect_minus(EINVAL, CM->establish(id));
	expect_reason(
		VB_WHY_CM_HAS_QP,
		"establish: the identifier has a QP, and the connection is made when its event is "
		"taken; call rdma_establish() only for a QP that was made by ibv_create_qp()");
}

void test_notify(void)
{
	struct rdma_conn_param param = {.qp_num = 1};

	resolve(id);
	TEST_ASSERT_EQUAL_INT(0, CM->connect(id, &param));
	expect_minus(EINVAL, CM->notify(id, IBV_EVENT_QP_FATAL));
	expect_reason(VB_WHY_CM_NOTIFY,
		      "notify: the event 1 of a QP means nothing to the connection manager; call "
		      "rdma_notify() for IBV_EVENT_COMM_EST only");
}

/* --- QPs --- */

void test_not_bound(void)
{
	struct ibv_qp_init_attr attr = qp_attributes();

	expect_minus(EINVAL, CM->create_qp(id, NULL, &attr));
	expect_reason(VB_WHY_CM_NOT_BOUND,
		      "create_qp: the identifier belongs to no device yet; wait for "
		      "RDMA_CM_EVENT_ADDR_RESOLVED, or bind to an address that a device has");
}

void test_qp_twice(void)
{
	struct ibv_qp_init_attr attr = qp_attributes();

	resolve_address(id);
	make_qp(id);
	expect_minus(EINVAL, CM->create_qp(id, NULL, &attr));
	expect_reason(VB_WHY_CM_QP_TWICE, "create_qp: the identifier has a QP already; call "
					  "rdma_destroy_qp() first, or make another identifier");
}

void test_pd_of_another_device(void)
{
	struct ibv_qp_init_attr attr = qp_attributes();

	resolve_address(id);
	other = new_id(RDMA_PS_TCP);
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(other, at("10.0.0.1", 0)));
	expect_minus(EINVAL, CM->create_qp(id, other->pd, &attr));
	expect_reason(
		VB_WHY_CM_PD_DEVICE,
		"create_qp: the PD belongs to another context than the identifier's, which is of "
		"the device sim1; allocate the PD by ibv_alloc_pd(id->verbs), or pass NULL for "
		"the identifier's own");
}

void test_other_cq(void)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_init_attr attr = qp_attributes();

	other = new_id(RDMA_PS_TCP);
	other->qp_type = IBV_QPT_XRC_RECV;
	resolve_address(other);
	TEST_ASSERT_EQUAL_INT(0, CM->create_srq(other, NULL, &srq));
	attr.recv_cq = B.create_cq(other->verbs, 4, NULL, NULL, 0);
	expect_minus(EINVAL, CM->create_qp(other, NULL, &attr));
	expect_reason(
		VB_WHY_CM_OTHER_CQ,
		"create_qp: the identifier has CQs of its own, and the attributes name others; set "
		"send_cq and recv_cq to NULL, or to the CQs of the identifier");
	B.destroy_cq(attr.recv_cq);
}

void test_srq_type(void)
{
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 4, .max_sge = 1}};

	resolve_address(id);
	expect_minus(EINVAL, CM->create_srq_ex(id, &attr));
	expect_reason(
		VB_WHY_CM_SRQ_TYPE,
		"create_srq: comp_mask of the SRQ's attributes has no IBV_SRQ_INIT_ATTR_TYPE; set "
		"srq_type, and add IBV_SRQ_INIT_ATTR_TYPE to comp_mask");
}

/* --- options --- */

void test_options(void)
{
	uint8_t byte = 40;
	int number = 1;

	expect_minus(ENOSYS, CM->set_option(id, RDMA_OPTION_ID, 77, &byte, 1));
	expect_reason(VB_WHY_CM_OPTION,
		      "set_option: there is no option 77 of the level 0; use an option of "
		      "enum rdma_option in <rdma/rdma_cma.h>");
	expect_minus(EINVAL, CM->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &number,
					    sizeof(number)));
	expect_reason(
		VB_WHY_CM_OPTION_LENGTH,
		"set_option: the value of RDMA_OPTION_ID_TOS has 4 bytes, and needs 1 byte; pass a "
		"value of the type that rdma_set_option(3) names, and its size");
	expect_minus(EINVAL,
		     CM->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	expect_reason(
		VB_WHY_CM_OPTION_VALUE,
		"set_option: the value of RDMA_OPTION_ID_ACK_TIMEOUT is 40, and at most 31 is "
		"possible; pass a smaller value");
	resolve_address(id);
	expect_minus(EINVAL, CM->set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &number,
					    sizeof(number)));
	expect_reason(
		VB_WHY_CM_OPTION_LATE,
		"set_option: it is too early or too late for RDMA_OPTION_ID_AFONLY in the state "
		"ADDR_RESOLVED; set REUSEADDR and AFONLY before rdma_bind_addr(), and the path "
		"after RDMA_CM_EVENT_ADDR_RESOLVED");
}

void test_option_of_datagrams(void)
{
	uint8_t byte = 4;

	other = new_id(RDMA_PS_UDP);
	expect_minus(EINVAL,
		     CM->set_option(other, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1));
	expect_reason(VB_WHY_CM_OPTION_TYPE,
		      "set_option: RDMA_OPTION_ID_ACK_TIMEOUT is for QPs of the types RC and "
		      "XRC_SEND, and the identifier is for another type; leave the option out in "
		      "the port space RDMA_PS_UDP, and for the target of XRC");
}

void test_option_path(void)
{
	struct ibv_path_data path = {.flags = IBV_PATH_FLAG_PRIMARY};

	resolve_address(id);
	expect_minus(EINVAL,
		     CM->set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	expect_reason(VB_WHY_CM_OPTION_PATH,
		      "set_option: none of the paths is primary, bidirectional and for management "
		      "datagrams; set IBV_PATH_FLAG_GMP, IBV_PATH_FLAG_PRIMARY and "
		      "IBV_PATH_FLAG_BIDIRECTIONAL in the flags of a path");
}

void test_ece(void)
{
	struct ibv_ece ece = {.vendor_id = 1};

	expect_minus(EINVAL, CM->set_local_ece(id, NULL));
	expect_reason(VB_WHY_CM_ECE_NULL,
		      "set_local_ece: the pointer to the ECE is NULL; pass a struct ibv_ece");
	resolve_address(id);
	make_qp(id);
	expect_minus(EINVAL, CM->set_local_ece(id, &ece));
	expect_reason(
		VB_WHY_CM_ECE_QP,
		"set_local_ece: the identifier has a QP, and ECE is for QPs that the program has "
		"made; make the QP by ibv_create_qp() and name it in the connection parameters");
}

/* --- multicast --- */

void test_join(void)
{
	struct rdma_cm_join_mc_attr_ex attr = {.comp_mask = 8};

	expect_minus(ENOTSUP, CM->join_multicast_ex(id, &attr, NULL));
	expect_reason(VB_WHY_CM_JOIN_MASK,
		      "join_multicast_ex: comp_mask of the join has the unknown bits 0x8; set only "
		      "bits of enum rdma_cm_join_mc_attr_mask");
	attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
	expect_minus(EINVAL, CM->join_multicast_ex(id, &attr, NULL));
	expect_reason(VB_WHY_CM_JOIN_MISSING,
		      "join_multicast_ex: comp_mask lacks the bits 0x1; set addr and "
		      "join_flags, and both their bits");
	attr.comp_mask |= RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	attr.join_flags = 2;
	expect_minus(EINVAL, CM->join_multicast_ex(id, &attr, NULL));
	expect_reason(
		VB_WHY_CM_JOIN_FLAGS,
		"join_multicast_ex: there are no join_flags 2; use RDMA_MC_JOIN_FLAG_FULLMEMBER or "
		"RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER");
}

void test_leave(void)
{
	expect_minus(EADDRNOTAVAIL, CM->leave_multicast(id, at("239.0.0.1", 0)));
	expect_reason(VB_WHY_CM_NOT_JOINED,
		      "leave_multicast: the identifier has not joined the group "
		      "239.0.0.1; pass the address of rdma_join_multicast()");
}

void test_join_of_a_connection(void)
{
	TEST_ASSERT_EQUAL_INT(0, CM->bind_addr(id, at("10.0.0.2", 0)));
	expect_minus(EINVAL, CM->join_multicast(id, at("239.0.0.1", 0), NULL));
	expect_reason(VB_WHY_CM_JOIN_TYPE,
		      "join_multicast: the identifier is for connections, and groups are for "
		      "datagrams; make the identifier in the port space RDMA_PS_UDP or "
		      "RDMA_PS_IPOIB");
}

/* --- names --- */

void test_names(void)
{
	struct rdma_addrinfo hints = {.ai_flags = RAI_NUMERICHOST}, *found = NULL;

	expect_minus(EINVAL, CM->getaddrinfo(NULL, NULL, NULL, &found));
	expect_reason(VB_WHY_CM_NO_NAME,
		      "getaddrinfo: there is no node, no service and no hint; pass at "
		      "least one of them");
	TEST_ASSERT_TRUE(CM->getaddrinfo("no address", "1", &hints, &found));
	expect_reason(VB_WHY_CM_RESOLVER,
		      "getaddrinfo: getaddrinfo(3) says: Name or service not known; check node and "
		      "service, and what the hints ask for");
}
