/* SPDX-License-Identifier: MIT */
#include "test/peer/exchange.h"

#include "test/peer/memory.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS_MAX 2

/* How often a waiter looks before it sleeps, and how long it sleeps before it looks if the other
 * process is still there. */
#define LOOKS	 2000
#define SLEEP_NS 20000000

static struct exchange *shared;
static int sockets[2] = {-1, -1}; /* the test's and B's end; in each process, the other one is -1 */

static const char *const names[ROWS] = {
#define PEER_INLINE(owner, result, name, parameters, arguments, convention) [ROW_##name] = #name,
#include "test/peer/inline.def"
#define VB_VERB(result, name, parameters, arguments, convention, by, object) [ROW_##name] = #name,
#include <verbena/verbs.def>
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	[ROW_cm_##name] = "cm_" #name,
#include <verbena/cm.def>
	[ROW_COUNT_OBJECTS] = "counting its objects",
	[ROW_PROTECT] = "mprotect",
	[ROW_END] = "its end",
};

const char *exchange_name(enum row row)
{
	return names[row];
}

struct exchange *exchange(void)
{
	return shared;
}

bool exchange_begin(void)
{
	shared = memory_alloc(sizeof(*shared));
	if (!shared) {
		errno = ENOMEM;
		return false;
	}
	return !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets);
}

void exchange_end(void)
{
	for (unsigned int i = 0; i < 2; i++) {
		if (sockets[i] >= 0)
			close(sockets[i]);
		sockets[i] = -1;
	}
	shared = NULL;
}

/* --- turns --- */

static void give(enum turn turn)
{
	atomic_store(&shared->turn, turn);
	syscall(SYS_futex, &shared->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Returns true if the turn came; false after a while. */
static bool wait_turn(enum turn turn)
{
	const struct timespec while_ = {.tv_nsec = SLEEP_NS};
	uint32_t now = atomic_load(&shared->turn);

	for (unsigned int i = 0; now != turn && i < LOOKS; i++)
		now = atomic_load(&shared->turn);
	if (now != turn)
		syscall(SYS_futex, &shared->turn, FUTEX_WAIT, now, &while_, NULL, 0);
	return atomic_load(&shared->turn) == turn;
}

static bool has_ended(pid_t peer)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)peer, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == peer;
}

bool exchange_ask(pid_t peer)
{
	give(TURN_ASKED);
	while (!wait_turn(TURN_ANSWERED))
		if (has_ended(peer) && atomic_load(&shared->turn) != TURN_ANSWERED)
			return false;
	return true;
}

bool exchange_wait_ready(pid_t peer)
{
	while (!wait_turn(TURN_ANSWERED))
		if (has_ended(peer) && atomic_load(&shared->turn) != TURN_ANSWERED)
			return false;
	return atomic_load(&shared->ready);
}

void exchange_be_served(void)
{
	close(sockets[0]);
	sockets[0] = -1;
}

void exchange_take(void)
{
	while (!wait_turn(TURN_ASKED))
		;
}

void exchange_answer(void)
{
	give(TURN_ANSWERED);
}

/* --- descriptors --- */

/* The test's process has both ends, and B's only its own. */
static int own_socket(void)
{
	return sockets[0] >= 0 ? sockets[0] : sockets[1];
}

union ancillary {
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr header;
};

bool exchange_send(const int *fds, unsigned int count)
{
	char byte = 0;
	struct iovec part = {&byte, 1};
	union ancillary ancillary = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = ancillary.bytes,
				 .msg_controllen = CMSG_SPACE(count * sizeof(int))};

	ancillary.header.cmsg_level = SOL_SOCKET;
	ancillary.header.cmsg_type = SCM_RIGHTS;
	ancillary.header.cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(&ancillary.header), fds, count * sizeof(int));
	return sendmsg(own_socket(), &message, MSG_NOSIGNAL) == 1;
}

bool exchange_receive(int *fds, unsigned int count)
{
	char byte;
	struct iovec part = {&byte, 1};
	union ancillary ancillary = {0};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = ancillary.bytes,
				 .msg_controllen = sizeof(ancillary)};

	if (recvmsg(own_socket(), &message, MSG_CMSG_CLOEXEC) != 1 ||
	    ancillary.header.cmsg_len != CMSG_LEN(count * sizeof(int)))
		return false;
	memcpy(fds, CMSG_DATA(&ancillary.header), count * sizeof(int));
	return true;
}
