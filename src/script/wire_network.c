/* SPDX-License-Identifier: MIT */
/*
 * The wire to a device of the machine, such as the kernel's SoftRoCE: frames through a packet socket on
 * the other end of a veth pair, on the machine's clock. Nothing answers there but the script.
 */
#include "src/script/script.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <verbena/error.h>

#define SETTLE_NS     20000000 /* how long a device may need to answer */
#define STEP_MS	      1
#define IPV4_BYTES    20
#define UDP_PORT      4791
#define PROTOCOL_UDP  17
#define ADDRESS_BYTES 6

struct network_wire {
	struct script_wire wire; /* the first member */
	int socket;
	uint8_t mac[ADDRESS_BYTES]; /* of the peer's interface */
	uint8_t device_mac[ADDRESS_BYTES];
};

static struct network_wire *own(struct script_wire *wire)
{
	return (struct network_wire *)wire;
}

static uint64_t now(struct script_wire *wire)
{
	struct timespec time;

	(void)wire;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Returns true for a datagram to RoCE's port of the peer. */
static bool is_for_peer(const struct script_wire *wire, const uint8_t *frame, size_t length_bytes)
{
	const uint8_t *ip = frame + sizeof(struct ether_header), *udp = ip + IPV4_BYTES;

	return length_bytes > sizeof(struct ether_header) + IPV4_BYTES + 8 && frame[12] == 0x08 &&
	       frame[13] == 0x00 && ip[0] == 0x45 && ip[9] == PROTOCOL_UDP &&
	       memcmp(ip + 16, wire->peer_gid.raw + 12, 4) == 0 &&
	       (udp[2] << 8 | udp[3]) == UDP_PORT;
}

/* Returns when the kernel has received the frame: this process may have slept since then. */
static uint64_t arrival(struct script_wire *wire, struct msghdr *message)
{
	const struct cmsghdr *control = CMSG_FIRSTHDR(message);
	struct timespec stamp, time;
	int64_t age_ns;

	if (!control || control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_TIMESTAMPNS)
		return now(wire);
	memcpy(&stamp, CMSG_DATA(control), sizeof(stamp));
	clock_gettime(CLOCK_REALTIME, &time);
	age_ns = (int64_t)(time.tv_sec - stamp.tv_sec) * 1000000000 + time.tv_nsec - stamp.tv_nsec;
	return now(wire) - (uint64_t)(age_ns > 0 ? age_ns : 0);
}

static void receive(struct script_wire *wire)
{
	uint8_t frame[VB_FRAME_BYTES_MAX + 64];
	char control[CMSG_SPACE(sizeof(struct timespec))];
	struct iovec place = {frame, sizeof(frame)};
	ssize_t length_bytes;

	for (;;) {
		struct msghdr message = {
			.msg_iov = &place,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};

		length_bytes = recvmsg(own(wire)->socket, &message, MSG_DONTWAIT);
		if (length_bytes <= 0)
			return;
		if (is_for_peer(wire, frame, (size_t)length_bytes))
			script_wire_keep(wire, arrival(wire, &message), false, frame,
					 (size_t)length_bytes);
	}
}

static int inject(struct script_wire *wire, const uint8_t *frame, size_t length_bytes)
{
	struct network_wire *network = own(wire);
	uint8_t copy[VB_FRAME_BYTES_MAX];

	memcpy(copy, frame, length_bytes);
	memcpy(copy, network->device_mac, ADDRESS_BYTES);
	memcpy(copy + ADDRESS_BYTES, network->mac, ADDRESS_BYTES);
	script_wire_keep(wire, now(wire), true, copy, length_bytes);
	return send(network->socket, copy, length_bytes, 0) < 0 ? errno : 0;
}

static void pass(struct script_wire *wire, uint64_t until_ns)
{
	struct pollfd fd = {.fd = own(wire)->socket, .events = POLLIN};

	poll(&fd, 1, until_ns > now(wire) ? STEP_MS : 0);
	receive(wire);
}

static int poll_cq(struct script_wire *wire, struct ibv_cq *cq, struct ibv_wc *wc)
{
	(void)wire;
	return ibv_poll_cq(cq, 1, wc);
}

static void end(struct script_wire *wire)
{
	if (wire->context)
		vb_close_device(wire->context);
	if (own(wire)->socket >= 0)
		close(own(wire)->socket);
	free(wire->frames);
	free(own(wire));
}

/* --- opening --- */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = vb_get_device_list("ibverbs", NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (strcmp(vb_get_device_name(list[i]), name) == 0)
			context = vb_open_device(list[i]);
	if (list)
		vb_free_device_list(list);
	return context;
}

/* Finds the GID that is an IPv4 address, and the MTU. */
static bool find_addresses(struct script_wire *wire)
{
	static const uint8_t ipv4[12] = {[10] = 0xff, [11] = 0xff};
	struct ibv_port_attr attr;

	if (vb_query_port(wire->context, 1, &attr, sizeof(attr)))
		return false;
	wire->mtu = attr.active_mtu;
	for (int i = 0; i < attr.gid_tbl_len && i < UINT8_MAX; i++) {
		wire->gid_index = (uint8_t)i;
		if (!vb_query_gid(wire->context, 1, i, &wire->gid) &&
		    memcmp(wire->gid.raw, ipv4, sizeof(ipv4)) == 0)
			return true;
	}
	return false;
}

/* Reads a line of a file of sysfs. */
static bool read_line(const char *path, char *text, size_t size_bytes)
{
	FILE *file = fopen(path, "re");
	bool is_read = file && fgets(text, (int)size_bytes, file);

	if (file)
		fclose(file);
	if (is_read)
		text[strcspn(text, "\n")] = '\0';
	return is_read;
}

static bool read_mac(const char *interface, uint8_t *mac)
{
	char path[128], text[32];

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", interface);
	return read_line(path, text, sizeof(text)) &&
	       sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2], &mac[3],
		      &mac[4], &mac[5]) == ADDRESS_BYTES;
}

/* The interface of a GID stands in sysfs. */
static bool read_device_mac(const struct script_wire *wire, const char *device, uint8_t *mac)
{
	char path[128], interface[IF_NAMESIZE + 1];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%u", device,
		 wire->gid_index);
	return read_line(path, interface, sizeof(interface)) && read_mac(interface, mac);
}

static bool open_socket(struct network_wire *wire, const char *interface)
{
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = (int)if_nametoindex(interface),
	};

	const int yes = 1;

	wire->socket = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_IP));
	setsockopt(wire->socket, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof(yes));
	return wire->socket >= 0 && address.sll_ifindex &&
	       !bind(wire->socket, (const struct sockaddr *)&address, sizeof(address));
}

static bool refuse(char *why, size_t why_bytes, const char *what, const char *name,
		   const char *cause)
{
	snprintf(why, why_bytes, "%s %s: %s", what, name, cause);
	return false;
}

static bool open_all(struct network_wire *wire, const struct script_place *place, char *why,
		     size_t why_bytes)
{
	struct script_wire *own_wire = &wire->wire;

	own_wire->context = open_device(place->device);
	if (!own_wire->context)
		return refuse(why, why_bytes, "the device", place->device,
			      "no device has this name; `verbena devices` lists them");
	if (!find_addresses(own_wire) ||
	    !read_device_mac(own_wire, place->device, wire->device_mac))
		return refuse(why, why_bytes, "the device", place->device,
			      "it has no IPv4 address on an interface of Ethernet");
	own_wire->peer_gid.raw[10] = own_wire->peer_gid.raw[11] = 0xff;
	if (inet_pton(AF_INET, place->peer, own_wire->peer_gid.raw + 12) != 1)
		return refuse(why, why_bytes, "--peer", place->peer, "it is no IPv4 address");
	if (!read_mac(place->interface, wire->mac))
		return refuse(why, why_bytes, "the interface", place->interface,
			      "it does not exist, or has no MAC address");
	if (!open_socket(wire, place->interface))
		return refuse(why, why_bytes, "the interface", place->interface, strerror(errno));
	return true;
}

struct script_wire *script_wire_network(const struct script_place *place, char *why,
					size_t why_bytes)
{
	struct network_wire *wire = calloc(1, sizeof(*wire));

	if (!wire) {
		snprintf(why, why_bytes, "no memory is left");
		return NULL;
	}
	wire->socket = -1;
	wire->wire = (struct script_wire){
		.tolerance_ns = place->tolerance_ns,
		.settle_ns = SETTLE_NS,
		.now = now,
		.inject = inject,
		.pass = pass,
		.poll = poll_cq,
		.close = end,
	};
	if (open_all(wire, place, why, why_bytes))
		return &wire->wire;
	end(&wire->wire);
	return NULL;
}
