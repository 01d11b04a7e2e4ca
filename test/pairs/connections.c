/* SPDX-License-Identifier: MIT */
/*
 * Two processes connect by the connection manager and check the values that they get from each other; see usage()
 * below. Plain librdmacm: it runs under `verbena run`, and on an adapter.
 */
#include "test/pairs/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The private data that a program can send: InfiniBand, 12.6, without the IP header of requests; and the
 * reasons of a rejection: 12.6.7.2, 12.11.2.1. */
enum {
	REQ_BYTES = 92 - 36,
	REP_BYTES = 196,
	REJ_BYTES = 148,
	SIDR_REQ_BYTES = 216 - 36,
	SIDR_REP_BYTES = 136,
	NO_SERVICE = 8,
	BY_PROGRAM = 28,
	SIDR_NO_SERVICE = 1,
	SIDR_BY_PROGRAM = 2,
};

/* The values of a client's request differ, so that the test sees a value in a wrong field. */
enum { RESPONDER_RESOURCES = 3, INITIATOR_DEPTH = 4, RETRIES = 5, RNR_RETRIES = 6 };

enum {
	MESSAGE_BYTES = 10000,
	DATAGRAM_BYTES = 1000,
	GRH_BYTES = 40,
	RESOLVE_MS = 5000,
	LIMIT_S = 90
};

/* The pattern of a message or of private data: each has another one in each scenario. */
enum part { OF_REQUEST, OF_ANSWER, OF_CLIENT, OF_SERVER, PARTS };

struct side {
	bool server;
	unsigned int scenario;
	const char *host, *port;
	struct rdma_event_channel *waiting; /* of the listeners */
	struct rdma_cm_id *listeners[2];    /* for RDMA_PS_TCP and RDMA_PS_UDP */
};

struct scenario {
	const char *name;
	void (*run)(const struct side *side);
};

static void usage(FILE *out, const struct scenario *scenarios)
{
	fprintf(out, "usage: connections [-p PORT] -s [ADDRESS]   the server\n"
		     "       connections [-p PORT] ADDRESS        the client, with the server's "
		     "address\n"
		     "Runs these scenarios, one after the other:\n");
	for (; scenarios->name; scenarios++)
		fprintf(out, "  %s\n", scenarios->name);
}

/* --- data to send --- */

static uint64_t key_of(const struct side *side, enum part part)
{
	return side->scenario * (uint64_t)PARTS + part;
}

/* Returns private data; the next call writes to the same place. */
static const void *private_data(const struct side *side, enum part part)
{
	static uint8_t bytes[256];

	pattern_fill(bytes, sizeof(bytes), key_of(side, part));
	return bytes;
}

static void check_private(const struct side *side, enum part part, const void *bytes,
			  unsigned int found, unsigned int expected)
{
	same("the length of the private data", expected, found);
	if (!pattern_holds(bytes, found, key_of(side, part)))
		fail("the private data differs from what was sent");
}

/* --- events --- */

static struct rdma_cm_event *next_event(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	check("rdma_get_cm_event", rdma_get_cm_event(channel, &event) ? errno : 0);
	return event;
}

static struct rdma_cm_event *expect(struct rdma_event_channel *channel,
				    enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = next_event(channel);

	if (event->event != type || event->status != status)
		fail("%s with status %d comes, not %s with status %d", rdma_event_str(event->event),
		     event->status, rdma_event_str(type), status);
	return event;
}

static void expect_plain(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	rdma_ack_cm_event(expect(id->channel, type, status));
}

/* An event with private data of a connection or of datagrams. */
static void expect_private(const struct side *side, struct rdma_cm_id *id,
			   enum rdma_cm_event_type type, int status, enum part part,
			   unsigned int length)
{
	struct rdma_cm_event *event = expect(id->channel, type, status);

	if (id->ps == RDMA_PS_UDP)
		check_private(side, part, event->param.ud.private_data,
			      event->param.ud.private_data_len, length);
	else
		check_private(side, part, event->param.conn.private_data,
			      event->param.conn.private_data_len, length);
	rdma_ack_cm_event(event);
}

/* --- identifiers --- */

static struct rdma_event_channel *new_channel(void)
{
	return need("rdma_create_event_channel", rdma_create_event_channel());
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	check("rdma_create_id", rdma_create_id(channel, &id, NULL, space) ? errno : 0);
	return id;
}

static void end(struct rdma_cm_id *id)
{
	struct rdma_event_channel *channel = id->channel;

	if (id->qp)
		rdma_destroy_qp(id);
	check("rdma_destroy_id", rdma_destroy_id(id) ? errno : 0);
	rdma_destroy_event_channel(channel);
}

/* The address of the server, with its port or the one behind it. */
static struct sockaddr_storage address_of(const struct side *side, unsigned int more)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE};
	struct sockaddr_storage address = {0};
	struct addrinfo *found;
	char port[16];
	int err;

	snprintf(port, sizeof(port), "%u", (unsigned int)atoi(side->port) + more);
	err = getaddrinfo(side->host, port, &hints, &found);
	if (err)
		fail("%s: %s", side->host, gai_strerror(err));
	memcpy(&address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return address;
}

/* Returns an identifier with a path to the server. */
static struct rdma_cm_id *resolve(const struct side *side, enum rdma_port_space space,
				  unsigned int more)
{
	struct rdma_cm_id *id = new_id(new_channel(), space);
	struct sockaddr_storage address = address_of(side, more);

	check("rdma_resolve_addr",
	      rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, RESOLVE_MS) ? errno : 0);
	expect_plain(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	check("rdma_resolve_route", rdma_resolve_route(id, RESOLVE_MS) ? errno : 0);
	expect_plain(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return id;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = id->ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	check("rdma_create_qp", rdma_create_qp(id, NULL, &attr) ? errno : 0);
}

static void connect_to(const struct side *side, struct rdma_cm_id *id, uint32_t qpn)
{
	struct rdma_conn_param param = {
		.private_data = private_data(side, OF_REQUEST),
		.private_data_len = id->ps == RDMA_PS_UDP ? SIDR_REQ_BYTES : REQ_BYTES,
		.responder_resources = RESPONDER_RESOURCES,
		.initiator_depth = INITIATOR_DEPTH,
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
		.qp_num = qpn,
	};

	check("rdma_connect", rdma_connect(id, &param) ? errno : 0);
}

static void accept_from(const struct side *side, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {
		.private_data = private_data(side, OF_ANSWER),
		.private_data_len = id->ps == RDMA_PS_UDP ? SIDR_REP_BYTES : REP_BYTES,
		.responder_resources = RESPONDER_RESOURCES,
		.initiator_depth = RESPONDER_RESOURCES,
		.rnr_retry_count = RNR_RETRIES,
		.qp_num = id->qp->qp_num,
	};

	check("rdma_accept", rdma_accept(id, &param) ? errno : 0);
}

/* Checks the event of a request of connect_to(). */
static void check_request(const struct side *side, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;

	if (event->id->ps == RDMA_PS_UDP) {
		check_private(side, OF_REQUEST, event->param.ud.private_data,
			      event->param.ud.private_data_len, SIDR_REQ_BYTES);
		return;
	}
	check_private(side, OF_REQUEST, param->private_data, param->private_data_len, REQ_BYTES);
	same("responder_resources", INITIATOR_DEPTH, param->responder_resources);
	same("initiator_depth", RESPONDER_RESOURCES, param->initiator_depth);
	same("retry_count", RETRIES, param->retry_count);
	same("rnr_retry_count", RNR_RETRIES, param->rnr_retry_count);
}

/* Waits for a request; returns its identifier, whose events come on a channel of its own. */
static struct rdma_cm_id *take_request(const struct side *side, enum rdma_port_space space)
{
	struct rdma_cm_event *event = expect(side->waiting, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	struct rdma_cm_id *id = event->id;

	same("the listener", (uintptr_t)side->listeners[space == RDMA_PS_UDP],
	     (uintptr_t)event->listen_id);
	check_request(side, event);
	rdma_ack_cm_event(event);
	check("rdma_migrate_id", rdma_migrate_id(id, new_channel()) ? errno : 0);
	return id;
}

/* --- messages --- */

struct message {
	struct ibv_mr *mr;
	size_t length;
	uint8_t bytes[GRH_BYTES + MESSAGE_BYTES];
};

static struct message *new_message(struct rdma_cm_id *id)
{
	struct message *message = need("malloc", malloc(sizeof(*message)));

	message->length = id->ps == RDMA_PS_UDP ? DATAGRAM_BYTES : MESSAGE_BYTES;
	message->mr =
		need("rdma_reg_msgs", rdma_reg_msgs(id, message->bytes, sizeof(message->bytes)));
	return message;
}

static void free_message(struct message *message)
{
	check("rdma_dereg_mr", rdma_dereg_mr(message->mr) ? errno : 0);
	free(message);
}

/* Posts a receive before the peer can send. */
static struct message *await_message(struct rdma_cm_id *id)
{
	struct message *message = new_message(id);

	check("rdma_post_recv",
	      rdma_post_recv(id, message, message->bytes, sizeof(message->bytes), message->mr)
		      ? errno
		      : 0);
	return message;
}

/* A message begins with the address of its sender. */
static void put_address(uint8_t *bytes, const struct sockaddr *address)
{
	memset(bytes, 0, sizeof(struct sockaddr_in6));
	if (address->sa_family == AF_INET)
		memcpy(bytes, address, sizeof(struct sockaddr_in));
	else
		memcpy(bytes, address, sizeof(struct sockaddr_in6));
}

static void check_success(const char *what, int count, const struct ibv_wc *wc)
{
	if (count != 1)
		fail("%s: %s", what, strerror(errno));
	if (wc->status)
		fail("%s ends with %s", what, ibv_wc_status_str(wc->status));
}

/* Sends a message; datagrams go to a QP by an address handle. */
static void send_message(const struct side *side, struct rdma_cm_id *id, struct ibv_ah *ah,
			 uint32_t qpn)
{
	struct message *message = new_message(id);
	struct ibv_wc wc = {0};
	int err;

	pattern_fill(message->bytes, message->length,
		     key_of(side, side->server ? OF_SERVER : OF_CLIENT));
	put_address(message->bytes, rdma_get_local_addr(id));
	if (ah)
		err = rdma_post_ud_send(id, message, message->bytes, message->length, message->mr,
					IBV_SEND_SIGNALED, ah, qpn);
	else
		err = rdma_post_send(id, message, message->bytes, message->length, message->mr,
				     IBV_SEND_SIGNALED);
	check("the post of a send", err ? errno : 0);
	check_success("the send", rdma_get_send_comp(id, &wc), &wc);
	free_message(message);
}

/* Waits for the message of the other side, and checks it. A datagram has a GRH. */
static struct ibv_wc receive_message(const struct side *side, struct rdma_cm_id *id,
				     struct message *message)
{
	const size_t at = id->ps == RDMA_PS_UDP ? GRH_BYTES : 0;
	const size_t head = sizeof(struct sockaddr_in6);
	uint8_t expected[MESSAGE_BYTES];
	struct ibv_wc wc = {0};

	check_success("the receive", rdma_get_recv_comp(id, &wc), &wc);
	same("byte_len", at + message->length, wc.byte_len);
	pattern_fill(expected, message->length, key_of(side, side->server ? OF_CLIENT : OF_SERVER));
	if (memcmp(message->bytes + at + head, expected + head, message->length - head) != 0)
		fail("the message differs from what was sent");
	put_address(expected, rdma_get_peer_addr(id));
	if (memcmp(message->bytes + at, expected, head) != 0)
		fail("the address of the other side is not what that side has");
	return wc;
}

/* --- connections --- */

/* Connects, and exchanges messages: the messages carry the addresses of both sides. */
static struct rdma_cm_id *converse(const struct side *side)
{
	struct rdma_cm_id *id =
		side->server ? take_request(side, RDMA_PS_TCP) : resolve(side, RDMA_PS_TCP, 0);
	struct message *message;

	make_qp(id);
	message = await_message(id);
	if (side->server) {
		accept_from(side, id);
		expect_plain(id, RDMA_CM_EVENT_ESTABLISHED, 0);
		receive_message(side, id, message);
		send_message(side, id, NULL, 0);
	} else {
		connect_to(side, id, 0);
		expect_private(side, id, RDMA_CM_EVENT_ESTABLISHED, 0, OF_ANSWER, REP_BYTES);
		send_message(side, id, NULL, 0);
		receive_message(side, id, message);
	}
	free_message(message);
	return id;
}

static void disconnect(struct rdma_cm_id *id)
{
	check("rdma_disconnect", rdma_disconnect(id) ? errno : 0);
}

/* The side that disconnects first learns of the end by the answer of the other. */
static void leave_first(struct rdma_cm_id *id)
{
	disconnect(id);
	expect_plain(id, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void leave_second(struct rdma_cm_id *id)
{
	expect_plain(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	disconnect(id);
}

static void client_disconnects(const struct side *side)
{
	struct rdma_cm_id *id = converse(side);

	(side->server ? leave_second : leave_first)(id);
	expect_plain(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end(id);
}

static void server_disconnects(const struct side *side)
{
	struct rdma_cm_id *id = converse(side);

	(side->server ? leave_first : leave_second)(id);
	expect_plain(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end(id);
}

static void both_disconnect(const struct side *side)
{
	struct rdma_cm_id *id = converse(side);

	leave_first(id);
	end(id);
}

/* The identifier ends without rdma_disconnect(). */
static void client_destroys(const struct side *side)
{
	struct rdma_cm_id *id = converse(side);

	if (side->server)
		leave_second(id);
	end(id);
}

static void server_destroys(const struct side *side)
{
	struct rdma_cm_id *id = converse(side);

	if (!side->server)
		leave_second(id);
	end(id);
}

/* --- rejections --- */

static void reject(const struct side *side, struct rdma_cm_id *id, enum part part, uint8_t length)
{
	check("rdma_reject", rdma_reject(id, private_data(side, part), length) ? errno : 0);
}

static void server_rejects(const struct side *side)
{
	struct rdma_cm_id *id;

	if (side->server) {
		id = take_request(side, RDMA_PS_TCP);
		reject(side, id, OF_ANSWER, REJ_BYTES);
	} else {
		id = resolve(side, RDMA_PS_TCP, 0);
		make_qp(id);
		connect_to(side, id, 0);
		expect_private(side, id, RDMA_CM_EVENT_REJECTED, BY_PROGRAM, OF_ANSWER, REJ_BYTES);
	}
	end(id);
}

/* Without a QP of the identifier, the program itself answers the REP. */
static void client_rejects(const struct side *side)
{
	struct rdma_cm_id *id;

	if (side->server) {
		id = take_request(side, RDMA_PS_TCP);
		make_qp(id);
		accept_from(side, id);
		expect_private(side, id, RDMA_CM_EVENT_REJECTED, BY_PROGRAM, OF_CLIENT, REJ_BYTES);
	} else {
		id = resolve(side, RDMA_PS_TCP, 0);
		connect_to(side, id, 0x123456);
		expect_private(side, id, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, OF_ANSWER, REP_BYTES);
		reject(side, id, OF_CLIENT, REJ_BYTES);
	}
	end(id);
}

/* The client asks for the port behind the server's, at which no program listens. */
static void ask_in_vain(const struct side *side, enum rdma_port_space space,
			enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_id *id;

	if (side->server)
		return;
	id = resolve(side, space, 1);
	make_qp(id);
	connect_to(side, id, 0);
	expect_plain(id, type, status);
	end(id);
}

static void no_service(const struct side *side)
{
	ask_in_vain(side, RDMA_PS_TCP, RDMA_CM_EVENT_REJECTED, NO_SERVICE);
}

/* --- datagrams --- */

static void answer_datagrams(const struct side *side)
{
	struct rdma_cm_id *id = take_request(side, RDMA_PS_UDP);
	struct message *message;
	struct ibv_ah *ah;
	struct ibv_wc wc;

	make_qp(id);
	message = await_message(id);
	accept_from(side, id);
	wc = receive_message(side, id, message);
	ah = need(
		"ibv_create_ah_from_wc",
		ibv_create_ah_from_wc(id->pd, &wc, (struct ibv_grh *)message->bytes, id->port_num));
	send_message(side, id, ah, wc.src_qp);
	check("ibv_destroy_ah", ibv_destroy_ah(ah));
	free_message(message);
	end(id);
}

static void ask_for_datagrams(const struct side *side)
{
	struct rdma_cm_id *id = resolve(side, RDMA_PS_UDP, 0);
	struct message *message;
	struct rdma_cm_event *event;
	struct ibv_ah *ah;
	uint32_t qpn;

	make_qp(id);
	message = await_message(id);
	connect_to(side, id, 0);
	event = expect(id->channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	check_private(side, OF_ANSWER, event->param.ud.private_data,
		      event->param.ud.private_data_len, SIDR_REP_BYTES);
	same("the Q_Key", RDMA_UDP_QKEY, event->param.ud.qkey);
	qpn = event->param.ud.qp_num;
	ah = need("ibv_create_ah", ibv_create_ah(id->pd, &event->param.ud.ah_attr));
	rdma_ack_cm_event(event);
	send_message(side, id, ah, qpn);
	same("src_qp", qpn, receive_message(side, id, message).src_qp);
	check("ibv_destroy_ah", ibv_destroy_ah(ah));
	free_message(message);
	end(id);
}

static void datagrams(const struct side *side)
{
	(side->server ? answer_datagrams : ask_for_datagrams)(side);
}

static void server_rejects_datagrams(const struct side *side)
{
	struct rdma_cm_id *id;

	if (side->server) {
		id = take_request(side, RDMA_PS_UDP);
		reject(side, id, OF_ANSWER, SIDR_REP_BYTES);
	} else {
		id = resolve(side, RDMA_PS_UDP, 0);
		make_qp(id);
		connect_to(side, id, 0);
		expect_private(side, id, RDMA_CM_EVENT_UNREACHABLE, SIDR_BY_PROGRAM, OF_ANSWER,
			       SIDR_REP_BYTES);
	}
	end(id);
}

static void no_datagram_service(const struct side *side)
{
	ask_in_vain(side, RDMA_PS_UDP, RDMA_CM_EVENT_UNREACHABLE, SIDR_NO_SERVICE);
}

/* --- both sides --- */

/* The process of the server ends with its connection and its listeners. */
static void server_exits(const struct side *side)
{
	struct rdma_cm_id *id = converse(side);

	if (side->server)
		return;
	leave_second(id);
	expect_plain(id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	end(id);
}

/* The server stays until the last one: its host has to refuse requests of others. */
static const struct scenario scenarios[] = {
	{"the client disconnects", client_disconnects},
	{"both disconnect", both_disconnect},
	{"the client destroys its identifier", client_destroys},
	{"the server destroys its identifier", server_destroys},
	{"the server rejects the REQ", server_rejects},
	{"the client rejects the REP", client_rejects},
	{"nobody listens", no_service},
	{"datagrams", datagrams},
	{"the server rejects datagrams", server_rejects_datagrams},
	{"nobody takes datagrams", no_datagram_service},
	{"the server disconnects", server_disconnects},
	{"the server exits", server_exits},
	{NULL, NULL},
};

static void listen_at(struct side *side)
{
	static const enum rdma_port_space spaces[] = {RDMA_PS_TCP, RDMA_PS_UDP};
	struct sockaddr_storage address = address_of(side, 0);

	side->waiting = new_channel();
	for (unsigned int i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		side->listeners[i] = new_id(side->waiting, spaces[i]);
		check("rdma_bind_addr",
		      rdma_bind_addr(side->listeners[i], (struct sockaddr *)&address) ? errno : 0);
		check("rdma_listen", rdma_listen(side->listeners[i], 0) ? errno : 0);
	}
}

static void run_all(struct side *side)
{
	for (const struct scenario *scenario = scenarios; scenario->name; scenario++) {
		uint64_t began_ns = now_ns();

		peer_name = scenario->name;
		side->scenario = (unsigned int)(scenario - scenarios);
		scenario->run(side);
		printf("ok   %s, %.2f s\n", scenario->name, (double)(now_ns() - began_ns) / 1e9);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	struct side side = {.port = "7174"};
	int c;

	while ((c = getopt(argc, argv, "sp:h")) != -1) {
		if (c == 's')
			side.server = true;
		else if (c == 'p')
			side.port = optarg;
		else {
			usage(c == 'h' ? stdout : stderr, scenarios);
			return c == 'h' ? 0 : 2;
		}
	}
	side.host = argv[optind];
	if (!side.server && !side.host) {
		usage(stderr, scenarios);
		return 2;
	}
	alarm(LIMIT_S);
	if (side.server)
		listen_at(&side);
	run_all(&side);
	return 0;
}
