/* SPDX-License-Identifier: MIT */
/* How much waits in the socket of a peer on this machine: sock_diag(7) tells without privileges, in some
 * microseconds. The kernel answers within send(), so that each answer belongs to the last question. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/wire/udp_private.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <string.h>

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 socket;
};

struct answer {
	struct nlmsghdr head;
	struct inet_diag_msg socket;
	uint8_t attributes[512];
};

/* The kernel wants source and destination swapped: Linux net/ipv4/udp_diag.c, udp_dump_one. */
static struct question ask_for(const uint8_t gid[16])
{
	const bool ipv4 = sim_gid_is_ipv4(gid);
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.socket = {.sdiag_family = ipv4 ? AF_INET : AF_INET6,
			   .sdiag_protocol = IPPROTO_UDP,
			   .idiag_states = UINT32_MAX,
			   .id = {.idiag_dport = htons(SIM_UDP_PORT),
				  .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};

	memcpy(question.socket.id.idiag_dst, ipv4 ? gid + 12 : gid, ipv4 ? 4 : 16);
	return question;
}

/* Returns true if the answer is about the address itself: a socket that is bound to all addresses, as SoftRoCE's,
 * is found for the address of another machine, too. */
static bool is_about(const struct answer *answer, ssize_t bytes, const struct question *question)
{
	return bytes >= (ssize_t)offsetof(struct answer, attributes) &&
	       answer->head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
	       memcmp(answer->socket.id.idiag_src, question->socket.id.idiag_dst,
		      sizeof(answer->socket.id.idiag_src)) == 0;
}

int udp_queue_open(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

bool udp_queued_bytes(int fd, const uint8_t gid[16], uint32_t *bytes)
{
	const struct question question = ask_for(gid);
	const int state = cancel_off();
	struct answer answer;
	const bool known =
		send(fd, &question, sizeof(question), 0) == sizeof(question) &&
		is_about(&answer, recv(fd, &answer, sizeof(answer), MSG_DONTWAIT), &question);

	cancel_restore(state);
	if (known)
		*bytes = answer.socket.idiag_rqueue;
	return known;
}
