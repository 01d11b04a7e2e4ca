/* SPDX-License-Identifier: MIT */
/*
 * Processes of a shared world are killed at random instructions, and new ones come. Two survivors, which
 * are ends of this process, exchange frames meanwhile: none is lost or damaged, no lock stays held, and
 * what the dead had is free.
 */
#include "test/unit/seed.h"
#include "test/unit/shared_ends.h"

#include "sim/base/core.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <time.h>

#define CHILDREN    6
#define KILLS	    300
#define STEPPED	    100
#define REOPENED    32
#define SENDERS	    ((KILLS + STEPPED + CHILDREN + 2) * REOPENED)
#define NOBODYS_QPN (1023 * SIM_BLOCK_PLACES)
#define CALLS_MAX   60 /* a stepped child makes at most so many system calls, */
#define STEPS_LOG   11 /* and then 2 to this power instructions */

static struct end a, b;
static uint64_t state; /* of the random numbers */

/* The head of each frame; bytes that follow from the sender and the number follow. */
struct head {
	uint32_t sender, number, bytes, qpn;
};

/* The next number of each sender, at the end that this process watches. */
static uint32_t next_at[2][SENDERS];
static unsigned int damaged, misordered, misled;

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)(sim_random_next(&state) >> 33) % limit;
}

static uint8_t byte_of(const struct head *head, size_t at)
{
	return (uint8_t)(head->sender * 31 + head->number * 7 + at);
}

static void check_frame(struct end *end, const uint8_t *frame, size_t frame_bytes)
{
	struct head head;
	uint32_t *next;

	memcpy(&head, frame, sizeof(head));
	if (frame_bytes < sizeof(head) || head.bytes != frame_bytes || head.sender >= SENDERS) {
		damaged++;
		return;
	}
	for (size_t i = sizeof(head); i < frame_bytes; i++)
		damaged += frame[i] != byte_of(&head, i);
	if (end != &a && end != &b)
		return;
	misled += head.qpn != end->qpn;
	next = &next_at[end == &b][head.sender];
	misordered += head.number != *next;
	*next = head.number + 1;
}

/* Sends the next frame of a sender; of random length, or short. */
static bool send_next(struct end *end, uint32_t qpn, uint32_t sender, uint32_t *number)
{
	uint8_t frame[SIM_FRAME_BYTES_MAX];
	struct head head = {sender, *number, sizeof(head), qpn};

	head.bytes += random_below(random_below(4) ? 200 : sizeof(frame) - sizeof(head));
	memcpy(frame, &head, sizeof(head));
	for (size_t i = sizeof(head); i < head.bytes; i++)
		frame[i] = byte_of(&head, i);
	if (!send_frame(end, qpn, frame, head.bytes))
		return false;
	++*number;
	return true;
}

void setUp(void)
{
	const uint64_t seed = choose_seed();

	signal(SIGALRM, on_alarm);
	alarm(300);
	state = seed;
	memset(next_at, 0, sizeof(next_at));
	damaged = misordered = misled = 0;
	on_arrival = check_frame;
	name_world();
	open_end(&a);
	open_end(&b);
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
	alarm(0);
	TEST_ASSERT_FALSE(world_exists());
}

/* --- the survivors --- */

static uint32_t sent_by_a, sent_by_b;

static void drain_end(struct end *end)
{
	while (receive(end))
		;
	flush(end);
}

static void survivors_work(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		if (room_to(&a, b.qpn))
			TEST_ASSERT_TRUE(send_next(&a, b.qpn, 0, &sent_by_a));
		if (room_to(&b, a.qpn))
			TEST_ASSERT_TRUE(send_next(&b, a.qpn, 1, &sent_by_b));
	}
	flush(&a);
	flush(&b);
	drain_end(&a);
	drain_end(&b);
}

/* Nothing of the dead is left, and nothing of the living was lost. */
static void expect_sound(void)
{
	struct segment probe;
	segment_id owners[SEGMENT_QP_BLOCKS];
	unsigned int owned = 0, areas = 0;

	survivors_work();
	attach(&probe);
	for (uint32_t i = 0; i < SEGMENT_QP_BLOCKS; i++) {
		owners[i] = blocks_owner(&probe, 0, SIM_NUMBERS_QP, i);
		owned += owners[i] != 0;
	}
	survivors_work();
	for (uint32_t i = 0; i < atomic_load(&probe.header->areas_used); i++)
		areas += atomic_load(&segment_area_at(&probe, i)->state) != 0;
	TEST_ASSERT_TRUE(segment_lock(&probe, 0));
	segment_unlock(&probe);
	places_leave(&probe);
	TEST_ASSERT_EQUAL_UINT(2, owned);
	TEST_ASSERT_TRUE(owners[0] && owners[1] && owners[0] != owners[1]);
	TEST_ASSERT_EQUAL_UINT(2, areas);
	TEST_ASSERT_EQUAL_UINT(0, damaged);
	TEST_ASSERT_EQUAL_UINT(0, misordered);
	TEST_ASSERT_EQUAL_UINT(0, misled);
	TEST_ASSERT_EQUAL_UINT32(sent_by_a, next_at[1][0]);
	TEST_ASSERT_EQUAL_UINT32(sent_by_b, next_at[0][1]);
}

/* --- the processes that are killed --- */

static struct end child_end;
static _Atomic uint32_t *child_qpn; /* in memory that the child shares */

static void live_once(uint32_t sender)
{
	uint32_t to_a = 0, to_b = 0, to_others = 0, block;
	uint16_t generation;

	open_end(&child_end);
	for (uint32_t i = random_below(400); i > 0; i--) {
		switch (random_below(8)) {
		case 0:
		case 1:
			if (room_to(&child_end, a.qpn))
				send_next(&child_end, a.qpn, sender, &to_a);
			break;
		case 2:
			if (room_to(&child_end, b.qpn))
				send_next(&child_end, b.qpn, sender, &to_b);
			break;
		case 3:
			send_next(&child_end, (2 + random_below(40)) * SIM_BLOCK_PLACES, sender,
				  &to_others);
			break;
		case 4:
			shared_claim(child_end.wire, random_below(3), random_below(SIM_NUMBERS),
				     &block, &generation);
			break;
		case 5:
			find_from(&child_end, random_below(40) * SIM_BLOCK_PLACES);
			break;
		case 6:
			flush(&child_end);
			child_end.wire->listen(child_end.wire, random_below(2));
			break;
		default:
			receive(&child_end);
			break;
		}
		if (damaged)
			_exit(1);
	}
	close_end(&child_end);
}

static void live(uint32_t life)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	a.wire->forked(a.wire);
	b.wire->forked(b.wire);
	for (uint32_t i = 0; i < REOPENED; i++)
		live_once(life * REOPENED + i);
	pause();
	_exit(2);
}

static pid_t begin(uint32_t life)
{
	pid_t child;

	sim_random_next(&state);
	child = fork();
	if (!child)
		live(life);
	TEST_ASSERT_TRUE(child > 0);
	return child;
}

static void end(pid_t child)
{
	int status;

	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Each child has up to 4 ms to live. */
void test_processes_are_killed_at_random_times(void)
{
	pid_t children[CHILDREN];
	uint64_t until_ns[CHILDREN];
	uint32_t life = 1;

	sent_by_a = sent_by_b = 0;
	survivors_work();
	for (unsigned int i = 0; i < CHILDREN; i++) {
		children[i] = begin(life++);
		until_ns[i] = segment_now_ns() + random_below(4000000);
	}
	while (life < KILLS) {
		const unsigned int i = random_below(CHILDREN);

		survivors_work();
		if (segment_now_ns() < until_ns[i])
			continue;
		end(children[i]);
		children[i] = begin(life++);
		until_ns[i] = segment_now_ns() + random_below(4000000);
	}
	for (unsigned int i = 0; i < CHILDREN; i++)
		end(children[i]);
	expect_sound();
}

/* --- by single steps --- */

enum step {
	STEP_ATTACH,
	STEP_CLAIM,
	STEP_SEND,
	STEP_RECEIVE,
	STEP_LEAVE,
	STEP_ALL,
	STEPS,
};

/* Stops before one step, whose instructions the parent counts. */
static void live_by_steps(uint32_t sender, enum step step)
{
	uint32_t number = 0, block;
	uint16_t generation;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	a.wire->forked(a.wire);
	b.wire->forked(b.wire);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(errno);
	if (step == STEP_ATTACH)
		raise(SIGSTOP);
	open_end(&child_end);
	*child_qpn = child_end.qpn;
	if (step == STEP_CLAIM)
		raise(SIGSTOP);
	shared_claim(child_end.wire, 1, SIM_NUMBERS_KEY, &block, &generation);
	if (step == STEP_SEND)
		raise(SIGSTOP);
	send_next(&child_end, a.qpn, sender, &number);
	flush(&child_end);
	if (step == STEP_RECEIVE)
		raise(SIGSTOP);
	/* The parent, which counts system calls, may have nothing for the child. */
	while (!receive(&child_end))
		sched_yield();
	if (step == STEP_LEAVE)
		raise(SIGSTOP);
	close_end(&child_end);
	if (step == STEP_ALL)
		raise(SIGSTOP);
	live_once(sender + 1);
	/* Who is stepped must not sleep. */
	while (true)
		sched_yield();
}

/* Lets a child go to the next system call, or its end, or to the next instruction: count times. */
static void go(pid_t child, enum __ptrace_request how, uint32_t count)
{
	int status = 0;

	while (count-- && !ptrace(how, child, NULL, NULL)) {
		TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
		TEST_ASSERT_TRUE(WIFSTOPPED(status));
	}
}

/* A child may wait for a frame: the survivors send until it has stopped. */
static bool wait_for_stop(pid_t child)
{
	uint32_t number = 0;
	int status;
	pid_t found;

	while (!(found = waitpid(child, &status, WNOHANG))) {
		survivors_work();
		send_next(&b, *child_qpn, 1, &number);
		flush(&b);
	}
	TEST_ASSERT_EQUAL_INT(child, found);
	send_next(&b, *child_qpn, 1, &number);
	return WIFSTOPPED(status);
}

void test_processes_are_killed_at_random_instructions(void)
{
	child_qpn = mmap(NULL, sizeof(*child_qpn), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	sent_by_a = sent_by_b = 0;
	for (uint32_t life = 1; life <= STEPPED; life++) {
		const enum step step = random_below(STEPS);
		const uint32_t calls = random_below(CALLS_MAX);
		const uint32_t steps = random_below(1u << (1 + random_below(STEPS_LOG)));
		pid_t child;

		*child_qpn = NOBODYS_QPN;
		child = fork();
		if (!child)
			live_by_steps(life * REOPENED, step);
		TEST_ASSERT_TRUE(wait_for_stop(child));
		go(child, PTRACE_SYSCALL, 2 * calls);
		go(child, PTRACE_SINGLESTEP, steps);
		end(child);
		expect_sound();
	}
	munmap(child_qpn, sizeof(*child_qpn));
}
