/* SPDX-License-Identifier: MIT */
/*
 * Measures the wire `udp` between two processes that poll, beside a plain program that sends datagrams of
 * the same length over UDP sockets of the same network:
 *
 * - half a round trip of RC SEND, and of one datagram;
 * - the datagrams of RC SEND a second, and those of sendmmsg(2) and recvmmsg(2), `batch` at a time. The
 *   datagrams of ACKs are not counted.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define BATCH_MAX  64
#define RECEIVES   512
#define BTH_BYTES  12
#define ICRC_BYTES 4

/* One of the two processes. The parent measures, the child does what the parent says. */
struct side {
	bool parent;
	int peer; /* a pair of sockets, for what is not measured */
	uint64_t size, batch;
	struct bench_pair pair; /* a is this process's device */
	int plain;
	struct sockaddr_in plain_peer;
	uint64_t posted; /* receives */
	struct mmsghdr messages[BATCH_MAX];
	struct iovec parts[BATCH_MAX];
	uint8_t datagrams[BATCH_MAX][8192];
};

/* A way that both processes go, each in its part. */
typedef void way_fn(struct side *side, uint64_t count);

static void need(bool good, const char *what)
{
	if (!good)
		bench_fail(what, errno);
}

static void tell(const struct side *side, const void *bytes, size_t length)
{
	need(write(side->peer, bytes, length) == (ssize_t)length, "write to the other process");
}

static void hear(const struct side *side, void *bytes, size_t length)
{
	need(read(side->peer, bytes, length) == (ssize_t)length, "read from the other process");
}

/* Both processes are here. */
static void meet(const struct side *side)
{
	char byte = 0;

	tell(side, &byte, 1);
	hear(side, &byte, 1);
}

/* --- the plain program --- */

static void open_plain(struct side *side)
{
	static const int buffer_bytes = 4 << 20;
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(own);

	side->plain = socket(AF_INET, SOCK_DGRAM, 0);
	need(side->plain >= 0, "socket");
	need(!bind(side->plain, (struct sockaddr *)&own, length), "bind");
	need(!getsockname(side->plain, (struct sockaddr *)&own, &length), "getsockname");
	/* As much as the wire asks for. */
	if (setsockopt(side->plain, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(int)))
		setsockopt(side->plain, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(int));
	tell(side, &own, sizeof(own));
	hear(side, &side->plain_peer, sizeof(side->plain_peer));
	for (unsigned int i = 0; i < BATCH_MAX; i++) {
		side->parts[i] =
			(struct iovec){side->datagrams[i], side->size + BTH_BYTES + ICRC_BYTES};
		side->messages[i].msg_hdr = (struct msghdr){
			.msg_iov = &side->parts[i],
			.msg_iovlen = 1,
		};
	}
}

static void plain_send(struct side *side)
{
	need(sendto(side->plain, side->datagrams[0], side->parts[0].iov_len, 0,
		    (struct sockaddr *)&side->plain_peer, sizeof(side->plain_peer)) > 0,
	     "sendto");
}

static void plain_receive(struct side *side)
{
	while (recv(side->plain, side->datagrams[1], sizeof(side->datagrams[1]), MSG_DONTWAIT) < 0)
		need(errno == EAGAIN, "recv");
}

static void plain_pingpong(struct side *side, uint64_t count)
{
	while (count--) {
		if (side->parent)
			plain_send(side);
		plain_receive(side);
		if (!side->parent)
			plain_send(side);
	}
}

/* The child sends until the parent has received `count` datagrams: some are lost. */
static void plain_stream_sender(struct side *side)
{
	char byte;

	for (unsigned int i = 0; i < BATCH_MAX; i++) {
		side->messages[i].msg_hdr.msg_name = &side->plain_peer;
		side->messages[i].msg_hdr.msg_namelen = sizeof(side->plain_peer);
	}
	while (recv(side->peer, &byte, 1, MSG_DONTWAIT) < 0)
		need(sendmmsg(side->plain, side->messages, (unsigned int)side->batch, 0) > 0,
		     "sendmmsg");
}

static unsigned int plain_batch(struct side *side)
{
	const int got = recvmmsg(side->plain, side->messages, (unsigned int)side->batch,
				 MSG_DONTWAIT, NULL);

	need(got > 0 || errno == EAGAIN, "recvmmsg");
	return got > 0 ? (unsigned int)got : 0;
}

static void plain_stream(struct side *side, uint64_t count)
{
	uint64_t received = 0;

	if (!side->parent) {
		plain_stream_sender(side);
		return;
	}
	for (unsigned int i = 0; i < BATCH_MAX; i++)
		side->messages[i].msg_hdr.msg_name = NULL;
	while (received < count)
		received += plain_batch(side);
	tell(side, "", 1);
}

/* What the sender has sent beyond that is not of the next round. */
static void drain(struct side *side)
{
	while (side->parent && plain_batch(side))
		;
}

/* --- the wire --- */

static void post_receive(struct side *side)
{
	struct bench_node *node = &side->pair.a;
	struct ibv_sge sge = {(uintptr_t)node->buffer + side->posted++ % RECEIVES * side->size,
			      (uint32_t)side->size, node->mr->lkey};
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;

	bench_check("post_recv", ibv_post_recv(node->qp, &receive, &bad));
}

/* Posts `count` sends at once. Only the last is signalled. */
static void post_sends(struct side *side, uint64_t count)
{
	struct bench_node *node = &side->pair.a;
	struct ibv_sge sge = {(uintptr_t)node->buffer + RECEIVES * side->size, (uint32_t)side->size,
			      node->mr->lkey};
	struct ibv_send_wr sends[BATCH_MAX], *bad;

	for (uint64_t i = 0; i < count; i++)
		sends[i] =
			(struct ibv_send_wr){.next = i + 1 < count ? &sends[i + 1] : NULL,
					     .sg_list = &sge,
					     .num_sge = 1,
					     .opcode = IBV_WR_SEND,
					     .send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED};
	bench_check("post_send", ibv_post_send(node->qp, sends, &bad));
}

/* Polls once. Returns how many receives have completed, for each of which another one is posted; adds
 * those of sends to *sent. */
static unsigned int poll_some(struct side *side, uint64_t *sent)
{
	struct ibv_wc done[BENCH_POLL_MAX];
	const int taken = ibv_poll_cq(side->pair.a.cq, BENCH_POLL_MAX, done);
	unsigned int received = 0;

	for (int i = 0; i < taken; i++) {
		need(done[i].status == IBV_WC_SUCCESS, vb_wc_status_str(done[i].status));
		if (!(done[i].opcode & IBV_WC_RECV)) {
			++*sent;
			continue;
		}
		received++;
		post_receive(side);
	}
	return received;
}

static void wire_pingpong(struct side *side, uint64_t count)
{
	uint64_t sent = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (side->parent)
			post_sends(side, 1);
		while (!poll_some(side, &sent))
			;
		if (!side->parent)
			post_sends(side, 1);
	}
	while (sent < count)
		poll_some(side, &sent);
}

/* The child keeps two batches under way. */
static void wire_stream(struct side *side, uint64_t count)
{
	const uint64_t batches = count / side->batch + 1;
	uint64_t sent = 0, received = 0;

	if (side->parent) {
		while (received < batches * side->batch)
			received += poll_some(side, &sent);
		return;
	}
	for (uint64_t posted = 0; sent < batches;) {
		if (posted < batches && posted - sent < 2) {
			post_sends(side, side->batch);
			posted++;
		}
		poll_some(side, &sent);
	}
}

static void open_wire(struct side *side)
{
	static const struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 1,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_UDP}},
	};
	struct bench_node *own = &side->pair.a, *peer = &side->pair.b;
	uint32_t qpn, peer_qpn;

	bench_check("configure", vb_sim_configure(&config));
	bench_open_node(own, "sim0", (RECEIVES + 1) * side->size, 2 * RECEIVES);
	own->qp = bench_qp(own, RECEIVES);
	qpn = own->qp->qp_num;
	tell(side, &qpn, sizeof(qpn));
	hear(side, &peer_qpn, sizeof(peer_qpn));
	tell(side, &own->gid, sizeof(own->gid));
	hear(side, &peer->gid, sizeof(peer->gid));
	bench_connect(own->qp, peer, peer_qpn);
	for (unsigned int i = 0; i < RECEIVES; i++)
		post_receive(side);
	meet(side);
}

static void close_wire(struct side *side)
{
	meet(side);
	bench_close_node(&side->pair.a);
}

/* --- both --- */

static way_fn *const ways[] = {plain_pingpong, wire_pingpong, plain_stream, wire_stream};

enum { PLAIN_PINGPONG, WIRE_PINGPONG, PLAIN_STREAM, WIRE_STREAM, NO_WAY };

struct order {
	uint64_t way, count;
};

static void go(struct side *side, uint64_t way, uint64_t count)
{
	const struct order order = {way, count};

	tell(side, &order, sizeof(order));
	ways[way](side, count);
	meet(side);
	drain(side);
}

static void obey(struct side *side)
{
	struct order order;

	for (hear(side, &order, sizeof(order)); order.way != NO_WAY;
	     hear(side, &order, sizeof(order))) {
		ways[order.way](side, order.count);
		meet(side);
	}
}

static void ours_pingpong(void *arg, uint64_t count)
{
	go(arg, WIRE_PINGPONG, count);
}

static void theirs_pingpong(void *arg, uint64_t count)
{
	go(arg, PLAIN_PINGPONG, count);
}

static void ours_stream(void *arg, uint64_t count)
{
	go(arg, WIRE_STREAM, count);
}

static void theirs_stream(void *arg, uint64_t count)
{
	go(arg, PLAIN_STREAM, count);
}

static void measure(struct side *side, uint64_t count)
{
	const struct order end = {NO_WAY, 0};
	struct bench_comparison found;

	found = bench_compare(ours_pingpong, theirs_pingpong, side, count / 10);
	printf("half round trip: %.2f us, plain %.2f us\n", found.ours_ns / 2000,
	       found.theirs_ns / 2000);
	printf("half round trip ratio: %.2f\n", found.ratio);
	found = bench_compare(ours_stream, theirs_stream, side, count);
	printf("datagrams: %.3f million/s, plain %.3f million/s\n", 1000 / found.ours_ns,
	       1000 / found.theirs_ns);
	printf("datagram ratio: %.2f\n", 1 / found.ratio);
	tell(side, &end, sizeof(end));
}

int main(int argc, char **argv)
{
	static struct side side = {.size = 64, .batch = BATCH_MAX};
	uint64_t count = 500000;
	const struct bench_option options[] = {
		{"--size", "bytes of a message", &side.size, 1, 4096, NULL},
		{"--count", "datagrams", &count, 100, UINT32_MAX, NULL},
		{"--batch", "datagrams of a call", &side.batch, 1, BATCH_MAX, NULL},
		{0},
	};
	int pair[2], status = 0;

	bench_options(argc, argv, "measures the wire udp between two processes", options);
	need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	side.parent = fork();
	side.peer = pair[!side.parent];
	close(pair[side.parent]);
	open_plain(&side);
	open_wire(&side);
	if (side.parent)
		measure(&side, count);
	else
		obey(&side);
	close_wire(&side);
	if (side.parent)
		need(wait(&status) > 0, "wait");
	return status ? 1 : 0;
}
