/* SPDX-License-Identifier: MIT */
/* Processes that sleep, do nothing, fork, become another program, and die. */
#include "test/pairs/content.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The memory of each process. */
enum {
	SIZE = 50000,
	SOURCE = 0,
	SENT = 65536,
	WRITTEN = 2 * 65536,
	WORD = 3 * 65536,
	BYTES = 4 * 65536
};
enum { ROUNDS = 20, KILLS = 5, IDLE_S = 2, CQ_DEPTH = 64 };

/* RETRY_EXC_ERR after 8 times 1.07 s: a peer that lives has this long to run on a busy machine. */
static const struct link_times patient = {.timeout = 18, .retry = 7};
/* RETRY_EXC_ERR after 3 times 268 ms: set when no living peer has to answer any more. */
static const struct link_times hasty = {.timeout = 16, .retry = 2};

struct end {
	struct adapter adapter;
	struct link link;
};

static void open_end(struct end *end, const struct settings *settings, const struct peer *peer)
{
	adapter_open(&end->adapter, settings->adapter, BYTES, CQ_DEPTH, settings->events);
	link_join(&end->link, &end->adapter, LINK_RC, IBV_MTU_1024, patient, peer);
}

static void close_end(struct end *end, const struct peer *peer)
{
	peer_meet(peer);
	link_destroy(&end->link);
	adapter_close(&end->adapter);
}

static void do_work(struct link *link, enum ibv_wr_opcode opcode, size_t offset, size_t length,
		    size_t remote_offset)
{
	struct ibv_wc wc;

	link_work(link, opcode, offset, length, remote_offset);
	adapter_success(link->adapter, &wc);
}

static void expect(const struct link *link, const char *what, size_t offset, uint64_t key)
{
	if (!pattern_holds(link->adapter->memory + offset, SIZE, key))
		fail("%s: the data is wrong", what);
}

/* Both processes send to the other's receive and write to its memory; each checks what it got. */
static void talk(struct link *link, const struct settings *settings, const struct peer *peer,
		 unsigned int role, unsigned int round)
{
	uint64_t mine = (settings->seed + round) * 2 + role,
		 theirs = (settings->seed + round) * 2 + !role;
	struct ibv_sge sge = link_sge(link->adapter, SOURCE, SIZE);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	pattern_fill(link->adapter->memory + SOURCE, SIZE, mine);
	link_receive(link, 0, SENT, SIZE);
	peer_meet(peer);
	link_post(link, &wr, 0);
	wr.opcode = IBV_WR_RDMA_WRITE;
	link_post(link, &wr, WRITTEN);
	for (unsigned int left = 3; left; left--) {
		struct ibv_wc wc;

		adapter_success(link->adapter, &wc);
	}
	peer_meet(peer);
	expect(link, "SEND", SENT, theirs);
	expect(link, "RDMA WRITE", WRITTEN, theirs);
}

/* Posts until the other process, which has gone, no longer answers. Returns the first bad status. */
static enum ibv_wc_status post_until_bad(struct link *link)
{
	struct ibv_sge sge = link_sge(link->adapter, SOURCE, SIZE);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct ibv_wc wc;

	do {
		link_post(link, &wr, WRITTEN);
		adapter_wait(link->adapter, &wc);
	} while (wc.status == IBV_WC_SUCCESS);
	return wc.status;
}

static void expect_retry_exceeded(struct link *link)
{
	enum ibv_wc_status status = post_until_bad(link);

	if (status != IBV_WC_RETRY_EXC_ERR)
		fail("a request to a process that has gone: %s, not %s", ibv_wc_status_str(status),
		     ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR));
}

static void sleep_ms(unsigned int ms)
{
	struct timespec left = {ms / 1000, (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

/* --- sleeper: one-sided work at a process that is in no verb until all work has completed --- */

static void sleeper_first(const struct settings *settings, struct peer *peer)
{
	struct end end;
	uint64_t value;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, 0, 0);
	peer_meet(peer);
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		pattern_fill(end.adapter.memory + SOURCE, SIZE, round);
		do_work(&end.link, IBV_WR_RDMA_WRITE, SOURCE, SIZE, WRITTEN);
		do_work(&end.link, IBV_WR_RDMA_READ, SENT, SIZE, WRITTEN);
		expect(&end.link, "RDMA READ", SENT, round);
		do_work(&end.link, IBV_WR_ATOMIC_FETCH_AND_ADD, WORD, sizeof(value), WORD);
		memcpy(&value, end.adapter.memory + WORD, sizeof(value));
		same("the value that FETCH_ADD has found", 3 * (round - 1), value);
	}
	peer_meet(peer);
	close_end(&end, peer);
}

static void sleeper_second(const struct settings *settings, struct peer *peer)
{
	struct end end;
	uint64_t value;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, 1, 0);
	peer_meet(peer);
	/* The process sleeps in read(2) until the other one has finished. */
	peer_meet(peer);
	expect(&end.link, "RDMA WRITE", WRITTEN, ROUNDS);
	memcpy(&value, end.adapter.memory + WORD, sizeof(value));
	same("the value that FETCH_ADD has left", 3 * ROUNDS, value);
	close_end(&end, peer);
}

/* --- idle: a process without work does not run --- */

/* Reads the processor's time of this process in ms, and how often a thread of it went to sleep. */
static void read_usage(long *ms, long *sleeps)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	*ms = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	      (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
	*sleeps = usage.ru_nvcsw;
}

static void expect_idle(const char *where, long ms, long sleeps)
{
	long ms_now, sleeps_now;

	read_usage(&ms_now, &sleeps_now);
	if (ms_now - ms > IDLE_S * 50)
		fail("%s for %d s used %ld ms of the processor", where, IDLE_S, ms_now - ms);
	if (sleeps_now - sleeps > IDLE_S * 100)
		fail("%s for %d s, threads woke up %ld times", where, IDLE_S, sleeps_now - sleeps);
}

static void idle(const struct settings *settings, struct peer *peer)
{
	struct end end;
	long ms, sleeps;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, settings->role, 0);
	read_usage(&ms, &sleeps);
	sleep_ms(IDLE_S * 1000);
	expect_idle("sleeping", ms, sleeps);
	peer_meet(peer);
	close_end(&end, peer);
}

/* Waits for a completion that comes when the other process has slept. */
static void blocked_first(const struct settings *settings, struct peer *peer)
{
	struct settings events = *settings;
	struct end end;
	struct ibv_wc wc;
	long ms, sleeps;

	events.events = true;
	open_end(&end, &events, peer);
	link_receive(&end.link, 0, SENT, SIZE);
	peer_meet(peer);
	read_usage(&ms, &sleeps);
	adapter_success(&end.adapter, &wc);
	expect_idle("waiting for an event", ms, sleeps);
	close_end(&end, peer);
}

static void blocked_second(const struct settings *settings, struct peer *peer)
{
	struct end end;

	open_end(&end, settings, peer);
	peer_meet(peer);
	sleep_ms(IDLE_S * 1000);
	do_work(&end.link, IBV_WR_SEND, SOURCE, SIZE, 0);
	close_end(&end, peer);
}

/* --- fork: the child opens an adapter of its own, and talks to its parent --- */

static _Noreturn void be_child(const struct settings *settings, const struct peer *parent)
{
	struct end end;

	peer_name = "child";
	open_end(&end, settings, parent);
	for (unsigned int round = 0; round < ROUNDS; round++)
		talk(&end.link, settings, parent, 1, 1000 + round);
	close_end(&end, parent);
	_exit(0);
}

static struct peer fork_child(const struct settings *settings)
{
	int ends[2];
	struct peer child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		fail("socketpair: %s", strerror(errno));
	child = (struct peer){fork(), ends[0]};
	if (child.pid < 0)
		fail("fork: %s", strerror(errno));
	if (!child.pid) {
		close(ends[0]);
		be_child(settings, &(struct peer){0, ends[1]});
	}
	close(ends[1]);
	return child;
}

static void fork_first(const struct settings *settings, struct peer *peer)
{
	struct end end;
	struct link to_child;
	struct peer child;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, 0, 0);
	child = fork_child(settings);
	link_join(&to_child, &end.adapter, LINK_RC, IBV_MTU_1024, patient, &child);
	for (unsigned int round = 0; round < ROUNDS; round++) {
		talk(&end.link, settings, peer, 0, 1 + round);
		talk(&to_child, settings, &child, 0, 1000 + round);
	}
	peer_meet(&child);
	peer_end(&child);
	talk(&end.link, settings, peer, 0, 1 + ROUNDS);
	link_destroy(&to_child);
	close_end(&end, peer);
}

static void fork_second(const struct settings *settings, struct peer *peer)
{
	struct end end;

	open_end(&end, settings, peer);
	for (unsigned int round = 0; round < ROUNDS + 2; round++)
		talk(&end.link, settings, peer, 1, round);
	close_end(&end, peer);
}

/* --- exec: a process becomes another program, and its QPs are gone --- */

static void exec_first(const struct settings *settings, struct peer *peer)
{
	struct end end;
	struct link again;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, 0, 0);
	link_join(&again, &end.adapter, LINK_RC, IBV_MTU_1024, patient, peer);
	talk(&again, settings, peer, 0, 1);
	link_set_times(&end.link, hasty);
	expect_retry_exceeded(&end.link);
	talk(&again, settings, peer, 0, 2);
	link_destroy(&again);
	close_end(&end, peer);
}

static void exec_second(const struct settings *settings, struct peer *peer)
{
	struct end end;
	char number[16];
	const char *argv[24] = {program_invocation_name, "--peer", number};
	int count = 3;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, 1, 0);
	snprintf(number, sizeof(number), "%d", peer->fd);
	for (const char *const *word = settings->arguments; *word; word++)
		argv[count++] = *word;
	argv[count] = "after_exec";
	execv("/proc/self/exe", (char **)argv);
	fail("exec: %s", strerror(errno));
}

static void after_exec(const struct settings *settings, struct peer *peer)
{
	struct end end;

	open_end(&end, settings, peer);
	talk(&end.link, settings, peer, 1, 1);
	talk(&end.link, settings, peer, 1, 2);
	close_end(&end, peer);
}

/* --- killed: a process ends in the middle of its work, by SIGKILL --- */

/* Writes to the other process until it is killed. */
static void killed_second(const struct settings *settings, struct peer *peer)
{
	struct end end;

	open_end(&end, settings, peer);
	for (;;)
		do_work(&end.link, IBV_WR_RDMA_WRITE, SOURCE, SIZE, SENT);
}

/* Kills the peer after some messages; the requests that are left must end, and when they should. */
static void kill_one(struct end *end, const struct settings *settings, struct peer *peer,
		     unsigned int round)
{
	unsigned int messages = (unsigned int)((settings->seed * 31 + round * 17) % 100);
	uint64_t least_ns = (hasty.retry + 1) * (4096ULL << hasty.timeout) * 9 / 10, began_ns,
		 took_ns;

	link_join(&end->link, &end->adapter, LINK_RC, IBV_MTU_1024, patient, peer);
	while (messages--)
		do_work(&end->link, IBV_WR_RDMA_WRITE, SOURCE, SIZE, WRITTEN);
	link_set_times(&end->link, hasty);
	began_ns = now_ns();
	peer_kill(peer);
	expect_retry_exceeded(&end->link);
	took_ns = now_ns() - began_ns;
	if (took_ns < least_ns || took_ns > 20 * least_ns)
		fail("RETRY_EXC_ERR came after %.0f ms, not after about %.0f ms",
		     (double)took_ns / 1e6, (double)least_ns / 1e6);
	link_destroy(&end->link);
}

static void killed_first(const struct settings *settings, struct peer *peer)
{
	struct end end;

	adapter_open(&end.adapter, settings->adapter, BYTES, CQ_DEPTH, settings->events);
	for (unsigned int round = 0; round < KILLS; round++) {
		kill_one(&end, settings, peer, round);
		*peer = scenario_start(settings, round + 1 < KILLS ? "killed" : "third");
	}
	link_join(&end.link, &end.adapter, LINK_RC, IBV_MTU_1024, patient, peer);
	for (unsigned int round = 0; round < ROUNDS; round++)
		talk(&end.link, settings, peer, 0, round);
	close_end(&end, peer);
}

static void third(const struct settings *settings, struct peer *peer)
{
	struct end end;

	open_end(&end, settings, peer);
	for (unsigned int round = 0; round < ROUNDS; round++)
		talk(&end.link, settings, peer, 1, round);
	close_end(&end, peer);
}

const struct scenario life_scenarios[] = {
	{"sleeper", sleeper_first, sleeper_second}, {"idle", idle, idle},
	{"blocked", blocked_first, blocked_second}, {"fork", fork_first, fork_second},
	{"exec", exec_first, exec_second},	    {"after_exec", NULL, after_exec},
	{"killed", killed_first, killed_second},    {"third", NULL, third},
	{"imports", imports_first, imports_second}, {"targets", targets_first, targets_second},
	{"new_target", NULL, targets_third},
};

const unsigned int life_scenario_count = sizeof(life_scenarios) / sizeof(*life_scenarios);
