/* SPDX-License-Identifier: MIT */
/* Batches of the wire `udp`: many datagrams with one system call. docs/architecture.md says why each datagram
 * is one of its own for the kernel, too (no UDP_SEGMENT, no UDP_GRO). */
#include "backends/sim/base/cancel.h"
#include "backends/sim/wire/udp_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the sockets have without a control message. */
enum { TRAFFIC_CLASS = 0, HOP_LIMIT = 64 };

/* The lengths of a BTH, and of the datagram of an ACK: BTH, AETH, ICRC. */
enum { ACK_BYTES = BTH_BYTES + 4 + 4 };

struct udp_batch *udp_batch_create(void)
{
	struct udp_batch *batch = aligned_alloc(64, sizeof(*batch));

	if (!batch)
		return NULL;
	batch->count = batch->requests = batch->acks = 0;
	for (unsigned int i = 0; i < UDP_BATCH; i++) {
		batch->parts[i] =
			(struct iovec){batch->buffers[i] + UDP_HEAD_BYTES, UDP_DATAGRAM_BYTES_MAX};
		batch->messages[i] = (struct mmsghdr){
			.msg_hdr =
				{
					.msg_name = &batch->addresses[i],
					.msg_namelen = sizeof(batch->addresses[i]),
					.msg_iov = &batch->parts[i],
					.msg_iovlen = 1,
					.msg_control = batch->controls[i],
					.msg_controllen = sizeof(batch->controls[i]),
				},
		};
	}
	return batch;
}

/* --- sending --- */

/* Adds a number to the control messages. */
static void add_control(struct msghdr *message, int level, int type, int value)
{
	struct cmsghdr *control = (struct cmsghdr *)(void *)((uint8_t *)message->msg_control +
							     message->msg_controllen);

	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(control), &value, sizeof(value));
	message->msg_controllen += CMSG_SPACE(sizeof(value));
}

static void add_controls(struct msghdr *message, const struct sim_route *route, bool ipv6)
{
	message->msg_controllen = 0;
	if (route->traffic_class != TRAFFIC_CLASS)
		add_control(message, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_TCLASS : IP_TOS,
			    route->traffic_class);
	if (route->hop_limit != HOP_LIMIT)
		add_control(message, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP,
			    ipv6 ? IPV6_HOPLIMIT : IP_TTL, route->hop_limit);
}

uint8_t *udp_next_buffer(struct udp_socket *socket)
{
	if (socket->out->count == UDP_BATCH)
		udp_flush(socket);
	return socket->out->buffers[socket->out->count];
}

/* Counts the queued datagram at `index` as a request or an ACK. */
static void sort(struct udp_batch *out, unsigned int index)
{
	const uint8_t *bth = out->parts[index].iov_base;
	const uint32_t flags = sim_opcodes[bth[0]].flags;
	const bool is_ack = flags & SIM_OP_ACK && out->parts[index].iov_len == ACK_BYTES &&
			    (bth[BTH_BYTES] & SIM_AETH_TYPE) == SIM_AETH_ACK;

	out->request[index] = flags & SIM_OP_REQUEST;
	out->requests += out->request[index];
	out->acks += is_ack;
}

void udp_queue(struct udp_socket *socket, size_t offset, size_t datagram_bytes,
	       const struct sim_route *route)
{
	struct udp_batch *out = socket->out;
	const unsigned int index = out->count++;
	struct msghdr *message = &out->messages[index].msg_hdr;

	out->parts[index] = (struct iovec){out->buffers[index] + offset, datagram_bytes};
	message->msg_namelen = udp_sockaddr(route->dest_gid, &out->addresses[index]);
	if (socket->address.ipv6 && !socket->no_flow_labels)
		out->addresses[index].v6.sin6_flowinfo = htonl(route->flow_label);
	add_controls(message, route, socket->address.ipv6);
	sort(out, index);
}

/*
 * Returns true if the kernel refused a datagram for its flow label, which needs a lease where labels are
 * exclusive (Linux net/ipv6/ip6_flowlabel.c, fl6_sock_lookup). The ICRC leaves out the flow label: the
 * datagrams go without one from now on.
 */
static bool drop_flow_labels(struct udp_socket *socket, const struct msghdr *refused, int error)
{
	struct udp_batch *out = socket->out;

	if (error != EINVAL || !socket->address.ipv6 || socket->no_flow_labels ||
	    !((const struct sockaddr_in6 *)refused->msg_name)->sin6_flowinfo)
		return false;
	socket->no_flow_labels = true;
	for (unsigned int i = 0; i < out->count; i++)
		out->addresses[i].v6.sin6_flowinfo = 0;
	return true;
}

/* Counts the datagram as lost: the kernel refused to send it. */
static void lose(struct udp_socket *socket, int error)
{
	struct udp_counters *counters = &socket->counters;

	switch (error) {
	case EMSGSIZE:
		counters->too_long++;
		break;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EADDRNOTAVAIL:
		counters->unreachable++;
		break;
	default:
		counters->unsent++;
	}
	if (socket->device)
		socket->device->counters.lost_packets++;
}

static void send_all(struct udp_socket *socket, struct mmsghdr *messages, unsigned int count)
{
	unsigned int done = 0;

	while (done < count) {
		const int sent = sendmmsg(socket->fd, messages + done, count - done, MSG_DONTWAIT);

		if (sent > 0) {
			socket->counters.sent += (unsigned int)sent;
			done += (unsigned int)sent;
		} else if (errno != EINTR &&
			   !drop_flow_labels(socket, &messages[done].msg_hdr, errno)) {
			lose(socket, errno);
			done++;
		}
	}
}

/* Sends the requests, then the ACKs, each in their order. */
static void send_sorted(struct udp_socket *socket)
{
	const struct udp_batch *out = socket->out;
	struct mmsghdr sorted[UDP_BATCH];
	unsigned int request = 0, answer = out->requests;

	for (unsigned int i = 0; i < out->count; i++)
		sorted[out->request[i] ? request++ : answer++] = out->messages[i];
	send_all(socket, sorted, out->count);
}

void udp_flush(struct udp_socket *socket)
{
	struct udp_batch *out = socket->out;
	const int state = cancel_off();

	if (out->requests && out->requests < out->count)
		send_sorted(socket);
	else
		send_all(socket, out->messages, out->count);
	out->count = out->requests = out->acks = 0;
	cancel_restore(state);
}

bool udp_may_wait(const struct udp_socket *socket)
{
	return socket->out->acks == socket->out->count && socket->waits;
}

/* --- receiving --- */

unsigned int udp_receive(struct udp_socket *socket, int fd, struct udp_batch *in)
{
	const int state = cancel_off();
	const int count = recvmmsg(fd, in->messages, UDP_BATCH, MSG_DONTWAIT, NULL);

	cancel_restore(state);
	if (count <= 0)
		return 0;
	socket->counters.received += (unsigned int)count;
	return (unsigned int)count;
}

static void take_source(const union udp_sockaddr *source, struct udp_arrival *arrival)
{
	if (source->any.sa_family == AF_INET) {
		memset(arrival->source_gid, 0, 10);
		memset(arrival->source_gid + 10, 0xff, 2);
		memcpy(arrival->source_gid + 12, &source->v4.sin_addr, 4);
		arrival->source_port = ntohs(source->v4.sin_port);
		return;
	}
	memcpy(arrival->source_gid, &source->v6.sin6_addr, 16);
	arrival->source_port = ntohs(source->v6.sin6_port);
}

/* The traffic class of IPv4 is one byte, that of IPv6 and both hop limits are an int: ip(7), ipv6(7). */
static void take_controls(struct msghdr *message, struct udp_arrival *arrival)
{
	arrival->traffic_class = TRAFFIC_CLASS;
	arrival->hop_limit = HOP_LIMIT;
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control;
	     control = CMSG_NXTHDR(message, control)) {
		int value = 0;

		if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_TOS) {
			arrival->traffic_class = *CMSG_DATA(control);
			continue;
		}
		memcpy(&value, CMSG_DATA(control), sizeof(value));
		if (control->cmsg_type ==
		    (control->cmsg_level == IPPROTO_IP ? IP_TTL : IPV6_HOPLIMIT))
			arrival->hop_limit = (uint8_t)value;
		else if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_TCLASS)
			arrival->traffic_class = (uint8_t)value;
	}
}

void udp_take(struct udp_batch *in, unsigned int index, struct udp_arrival *arrival)
{
	struct msghdr *message = &in->messages[index].msg_hdr;

	arrival->payload = in->parts[index].iov_base;
	arrival->bytes = in->messages[index].msg_len;
	arrival->truncated = message->msg_flags & MSG_TRUNC;
	take_source(&in->addresses[index], arrival);
	take_controls(message, arrival);
	message->msg_namelen = sizeof(in->addresses[index]);
	message->msg_controllen = sizeof(in->controls[index]);
}
