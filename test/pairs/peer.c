/* SPDX-License-Identifier: MIT */
#include "test/pairs/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ARGUMENTS_MAX = 32 };

const char *peer_name = "";

void fail(const char *format, ...)
{
	char text[512];
	va_list values;

	va_start(values, format);
	/* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() is the line above. */
	vsnprintf(text, sizeof(text), format, values);
	va_end(values);
	fprintf(stderr, "%s %s (process %d): %s\n", program_invocation_short_name, peer_name,
		(int)getpid(), text);
	_exit(1);
}

void *need(const char *what, void *object)
{
	if (!object)
		fail("%s: %s", what, strerror(errno));
	return object;
}

void check(const char *what, int err)
{
	if (err)
		fail("%s: %s", what, strerror(err));
}

void same(const char *what, uint64_t expected, uint64_t found)
{
	if (expected != found)
		fail("%s is %llu, not %llu", what, (unsigned long long)found,
		     (unsigned long long)expected);
}

/* In the child: a process that its starter does not outlive. */
static _Noreturn void become_peer(int fd, const char *const *arguments)
{
	char number[16];
	char *argv[ARGUMENTS_MAX] = {program_invocation_name, (char *)"--peer", number};
	int count = 3;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", fd);
	while (*arguments && count < ARGUMENTS_MAX - 1)
		argv[count++] = (char *)*arguments++;
	execv("/proc/self/exe", argv);
	fail("exec: %s", strerror(errno));
}

struct peer peer_start(const char *const *arguments)
{
	int ends[2];
	struct peer peer;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		fail("socketpair: %s", strerror(errno));
	peer = (struct peer){fork(), ends[0]};
	if (peer.pid < 0)
		fail("fork: %s", strerror(errno));
	if (!peer.pid)
		become_peer(ends[1], arguments);
	close(ends[1]);
	return peer;
}

void peer_put(const struct peer *peer, const void *bytes, size_t length)
{
	while (length) {
		ssize_t count = send(peer->fd, bytes, length, MSG_NOSIGNAL);

		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			fail("the other process has ended: %s", strerror(errno));
		bytes = (const char *)bytes + count;
		length -= (size_t)count;
	}
}

void peer_take(const struct peer *peer, void *bytes, size_t length)
{
	while (length) {
		ssize_t count = recv(peer->fd, bytes, length, 0);

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			fail("the other process has ended");
		bytes = (char *)bytes + count;
		length -= (size_t)count;
	}
}

void peer_swap(const struct peer *peer, const void *mine, void *theirs, size_t length)
{
	peer_put(peer, mine, length);
	peer_take(peer, theirs, length);
}

void peer_meet(const struct peer *peer)
{
	char mine = 'm', theirs;

	peer_swap(peer, &mine, &theirs, 1);
}

void peer_kill(struct peer *peer)
{
	kill(peer->pid, SIGKILL);
	waitpid(peer->pid, NULL, 0);
	close(peer->fd);
}

void peer_end(struct peer *peer)
{
	int status;

	while (waitpid(peer->pid, &status, 0) < 0)
		if (errno != EINTR)
			fail("waitpid: %s", strerror(errno));
	close(peer->fd);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("the other process ended with status 0x%x", (unsigned int)status);
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* splitmix64 */
static uint64_t pattern_word(uint64_t at)
{
	uint64_t z = at * 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

void pattern_fill(void *bytes, size_t length, uint64_t key)
{
	uint64_t at = pattern_word(key);

	for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
		uint64_t word = pattern_word(++at);
		size_t rest = length - done;

		memcpy((char *)bytes + done, &word, rest < sizeof(word) ? rest : sizeof(word));
	}
}

bool pattern_holds(const void *bytes, size_t length, uint64_t key)
{
	uint64_t at = pattern_word(key);

	for (size_t done = 0; done < length; done += sizeof(uint64_t)) {
		uint64_t word = pattern_word(++at);
		size_t rest = length - done;

		if (memcmp((const char *)bytes + done, &word,
			   rest < sizeof(word) ? rest : sizeof(word)) != 0)
			return false;
	}
	return true;
}
