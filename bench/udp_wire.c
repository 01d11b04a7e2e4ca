/* SPDX-License-Identifier: MIT */
/*
 * Measures the wire `udp` between two processes that poll, beside a plain program that sends datagrams of
 * the same length over UDP sockets of the same network:
 *
 * - half a round trip of RC SEND, and of one datagram;
 * - the datagrams of RC SEND a second, and those of sendmmsg(2) and recvmmsg(2), `batch` at a time. The
 *   datagrams of ACKs are not counted.
 */
#include "sides.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define BATCH_MAX  BENCH_LIST_MAX
#define RECEIVES   512
#define BTH_BYTES  12
#define ICRC_BYTES 4

/* One of the two processes. */
struct side {
	struct bench_side both;
	uint64_t size, batch;
	struct bench_pair pair; /* a is this process's device */
	int plain;
	struct sockaddr_in plain_peer;
	uint64_t posted; /* receives */
	struct mmsghdr messages[BATCH_MAX];
	struct iovec parts[BATCH_MAX];
	uint8_t datagrams[BATCH_MAX][8192];
};

/* --- the plain program --- */

static void open_plain(struct side *side)
{
	static const int buffer_bytes = 4 << 20;
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(own);

	side->plain = socket(AF_INET, SOCK_DGRAM, 0);
	bench_expect(side->plain >= 0, "socket");
	bench_expect(!bind(side->plain, (struct sockaddr *)&own, length), "bind");
	bench_expect(!getsockname(side->plain, (struct sockaddr *)&own, &length), "getsockname");
	/* As much as the wire asks for. */
	if (setsockopt(side->plain, SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof(int)))
		setsockopt(side->plain, SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(int));
	bench_tell(&side->both, &own, sizeof(own));
	bench_hear(&side->both, &side->plain_peer, sizeof(side->plain_peer));
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
	bench_expect(sendto(side->plain, side->datagrams[0], side->parts[0].iov_len, 0,
			    (struct sockaddr *)&side->plain_peer, sizeof(side->plain_peer)) > 0,
		     "sendto");
}

static void plain_receive(struct side *side)
{
	while (recv(side->plain, side->datagrams[1], sizeof(side->datagrams[1]), MSG_DONTWAIT) < 0)
		bench_expect(errno == EAGAIN, "recv");
}

static void plain_pingpong(void *arg, uint64_t count)
{
	struct side *side = arg;
	while (count--) {
		if (side->both.parent)
			plain_send(side);
		plain_receive(side);
		if (!side->both.parent)
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
	while (recv(side->both.peer, &byte, 1, MSG_DONTWAIT) < 0)
		bench_expect(sendmmsg(side->plain, side->messages, (unsigned int)side->batch, 0) >
				     0,
			     "sendmmsg");
}

static unsigned int plain_batch(struct side *side)
{
	const int got = recvmmsg(side->plain, side->messages, (unsigned int)side->batch,
				 MSG_DONTWAIT, NULL);

	bench_expect(got > 0 || errno == EAGAIN, "recvmmsg");
	return got > 0 ? (unsigned int)got : 0;
}

static void plain_stream(void *arg, uint64_t count)
{
	struct side *side = arg;
	uint64_t received = 0;

	if (!side->both.parent) {
		plain_stream_sender(side);
		return;
	}
	for (unsigned int i = 0; i < BATCH_MAX; i++)
		side->messages[i].msg_hdr.msg_name = NULL;
	while (received < count)
		received += plain_batch(side);
	bench_tell(&side->both, "", 1);
}

/* What the sender has sent beyond that is not of the next round. */
static void drain(struct side *side)
{
	while (side->both.parent && plain_batch(side))
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

static void post_sends(struct side *side, uint64_t count)
{
	bench_post_sends(&side->pair.a, RECEIVES * side->size, side->size, count);
}

/* Polls once. Returns how many receives have completed, for each of which another one is posted; adds
 * those of sends to *sent. */
static unsigned int poll_some(struct side *side, uint64_t *sent)
{
	struct ibv_wc done[BENCH_POLL_MAX];
	const int taken = ibv_poll_cq(side->pair.a.cq, BENCH_POLL_MAX, done);
	unsigned int received = 0;

	for (int i = 0; i < taken; i++) {
		bench_expect(done[i].status == IBV_WC_SUCCESS, vb_wc_status_str(done[i].status));
		if (!(done[i].opcode & IBV_WC_RECV)) {
			++*sent;
			continue;
		}
		received++;
		post_receive(side);
	}
	return received;
}

static void wire_pingpong(void *arg, uint64_t count)
{
	struct side *side = arg;
	uint64_t sent = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (side->both.parent)
			post_sends(side, 1);
		while (!poll_some(side, &sent))
			;
		if (!side->both.parent)
			post_sends(side, 1);
	}
	while (sent < count)
		poll_some(side, &sent);
}

/* The child keeps two batches under way. */
static void wire_stream(void *arg, uint64_t count)
{
	struct side *side = arg;
	const uint64_t batches = count / side->batch + 1;
	uint64_t sent = 0, received = 0;

	if (side->both.parent) {
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
	bench_tell(&side->both, &qpn, sizeof(qpn));
	bench_hear(&side->both, &peer_qpn, sizeof(peer_qpn));
	bench_tell(&side->both, &own->gid, sizeof(own->gid));
	bench_hear(&side->both, &peer->gid, sizeof(peer->gid));
	bench_connect(own->qp, peer, peer_qpn);
	for (unsigned int i = 0; i < RECEIVES; i++)
		post_receive(side);
	bench_meet(&side->both);
}

static void close_wire(struct side *side)
{
	bench_meet(&side->both);
	bench_close_node(&side->pair.a);
}

/* --- both --- */

static bench_way *const table[] = {plain_pingpong, wire_pingpong, plain_stream, wire_stream};

enum { PLAIN_PINGPONG, WIRE_PINGPONG, PLAIN_STREAM, WIRE_STREAM };

static const struct bench_ways ways = {table, sizeof(table) / sizeof(table[0])};

static void go(void *arg, unsigned int way, uint64_t count)
{
	struct side *side = arg;

	bench_go(&side->both, &ways, way, side, count);
	drain(side);
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
	struct bench_comparison found;

	found = bench_compare(ours_pingpong, theirs_pingpong, side, count / 10);
	printf("half round trip: %.2f us, plain %.2f us\n", found.ours_ns / 2000,
	       found.theirs_ns / 2000);
	printf("half round trip ratio: %.2f\n", found.ratio);
	found = bench_compare(ours_stream, theirs_stream, side, count);
	printf("datagrams: %.3f million/s, plain %.3f million/s\n", 1000 / found.ours_ns,
	       1000 / found.theirs_ns);
	printf("datagram ratio: %.2f\n", 1 / found.ratio);
	bench_dismiss(&side->both, &ways);
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

	bench_options(argc, argv, "measures the wire udp between two processes", options);
	bench_split(&side.both);
	open_plain(&side);
	open_wire(&side);
	if (side.both.parent)
		measure(&side, count);
	else
		bench_obey(&side.both, &ways, &side);
	close_wire(&side);
	return bench_unite(&side.both);
}
