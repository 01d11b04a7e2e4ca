/* SPDX-License-Identifier: MIT */
/* The connection manager over the wire `shared`: two engines with the same devices, as two processes have
 * them, attached to one world. */
#include "test/support/engine.h"
#include "test/unit/attached_cm.h"
#include "test/unit/free_room.h"

#include "sim/base/refuse.h"
#include "sim/cm/ip.h"
#include "sim/net/service_address.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SERVICE UINT64_C(0x0000000001065555)

static const uint8_t any[16];

struct process {
	struct engine engine;
	struct wires wires;
	struct wire *wire;
	struct sim_cm *cm, *listener; /* of the last event, and the own one */
	unsigned int counts[SIM_CM_EVENT_SIDR_ERROR + 1];
	unsigned int rejected; /* the reason of the last REJ */
	unsigned int requests; /* that it has sent */
	bool silent;
};

static struct process processes[3];

static enum sim_cm_verdict on_event(void *arg, struct sim_cm *cm, const struct sim_cm_event *event)
{
	struct process *own = arg;
	struct sim_cm_reply reply = {.qpn = 0x200 + own->counts[SIM_CM_EVENT_REQ],
				     .starting_psn = 1};

	own->counts[event->kind]++;
	if (event->kind == SIM_CM_EVENT_REQ)
		own->cm = cm;
	if (event->kind == SIM_CM_EVENT_REJ)
		own->rejected = event->rejection.reason;
	if (own->silent)
		return SIM_CM_TAKEN;
	if (event->kind == SIM_CM_EVENT_REQ)
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(cm, &reply));
	else if (event->kind == SIM_CM_EVENT_REP)
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rtu(cm, &(struct sim_cm_private){0}));
	else if (event->kind == SIM_CM_EVENT_DREQ)
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_drep(cm, &(struct sim_cm_private){0}));
	return SIM_CM_TAKEN;
}

static void open_process(struct process *process)
{
	const struct sim_cm_owner owner = {process, on_event};

	*process = (struct process){0};
	process->wire = attach_cm(&process->engine, &process->wires, &owner);
}

static void close_process(struct process *process)
{
	if (!process->wire)
		return;
	detach_cm(&process->engine, &process->wires);
	process->wire = NULL;
}

void setUp(void)
{
	name_world();
	free_room_bytes = 0;
	for (unsigned int i = 0; i < 3; i++)
		open_process(&processes[i]);
}

void tearDown(void)
{
	for (unsigned int i = 0; i < 3; i++)
		close_process(&processes[i]);
	TEST_ASSERT_FALSE(world_exists());
}

/* The child of a fork() has no threads of its parent. So a process that a test plays as a child has none from the
 * beginning: the thread that watches the world's file would outlive the wire. */
static void play_a_child(struct process *process)
{
	process->wire->way.watches = NULL;
}

static void run(void)
{
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 3; i++) {
			struct process *process = &processes[i];

			if (process->wire)
				run_cm(&process->engine, &process->wires);
		}
	}
}

static void listen_in(struct process *process)
{
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->listener));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(process->listener, SERVICE, NULL, any));
}

/* Sends a REQ for the service at port 1 of the second device, which all processes have. */
static struct sim_cm *send_req(struct process *process, uint32_t qpn)
{
	struct sim_cm_request request = {
		.service_id = SERVICE,
		.path = {.attr = engine_ah_attr(&process->engine.sides[1].gid),
			 .pkey = 0xffff,
			 .mtu = IBV_MTU_1024,
			 .packet_life_time = 14},
		.qpn = qpn,
		.qp_type = IBV_QPT_RC,
		.remote_response_timeout = 16,
		.local_response_timeout = 16,
		.max_cm_retries = 3,
	};
	struct sim_cm *cm;

	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_req(cm, process->engine.sides[0].device, &request));
	return cm;
}

static struct sim_cm *ask(struct process *process)
{
	struct sim_cm *cm = send_req(process, 0x100 + process->requests++);

	run();
	return cm;
}

static uint64_t dropped(const struct process *process)
{
	return process->engine.sides[0].device->counters.dropped_packets +
	       process->engine.sides[1].device->counters.dropped_packets;
}

static void expect_dropped_nothing(void)
{
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_UINT64(0, dropped(&processes[i]));
}

/* Each process has both ports; the third one sees nothing. */
void test_a_connection_of_two_processes(void)
{
	struct sim_cm *cm;

	listen_in(&processes[1]);
	cm = ask(&processes[0]);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(processes[1].cm));
	TEST_ASSERT_TRUE(sim_cm_local_id(cm) != sim_cm_local_id(processes[1].cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(processes[1].cm, &(struct sim_cm_private){0}));
	run();
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(processes[1].cm));
	for (unsigned int i = 0; i <= SIM_CM_EVENT_SIDR_ERROR; i++)
		TEST_ASSERT_EQUAL_UINT(0, processes[2].counts[i]);
	expect_dropped_nothing();
}

/* The sender's own engine answers. */
void test_a_service_that_no_process_has(void)
{
	ask(&processes[0]);
	TEST_ASSERT_EQUAL_UINT(1, processes[0].counts[SIM_CM_EVENT_REJ]);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_INVALID_SERVICE_ID, processes[0].rejected);
	listen_in(&processes[1]);
	sim_cm_destroy(processes[1].listener);
	ask(&processes[0]);
	TEST_ASSERT_EQUAL_UINT(2, processes[0].counts[SIM_CM_EVENT_REJ]);
	listen_in(&processes[2]);
	ask(&processes[0]);
	TEST_ASSERT_EQUAL_UINT(2, processes[0].counts[SIM_CM_EVENT_REJ]);
	TEST_ASSERT_EQUAL_UINT(1, processes[2].counts[SIM_CM_EVENT_RTU]);
	close_process(&processes[2]);
	processes[0].engine.sides[0].device->counters = (struct sim_counters){0};
	ask(&processes[1]);
	TEST_ASSERT_EQUAL_UINT(1, processes[1].counts[SIM_CM_EVENT_REJ]);
}

/* --- requests without a listener --- */

#define PATIENCE_NS UINT64_C(100000000)
#define MS	    UINT64_C(1000000)

/* Lets time pass in all processes. */
static void pass(uint64_t until_ns)
{
	for (uint64_t now_ns = 0; now_ns <= until_ns; now_ns += MS) {
		for (unsigned int i = 0; i < 3; i++)
			if (processes[i].wire &&
			    sim_engine_now_ns(processes[i].engine.sim) < now_ns)
				sim_engine_advance(processes[i].engine.sim, now_ns);
		run();
	}
}

static void be_patient(void)
{
	for (unsigned int i = 0; i < 3; i++)
		sim_cm_set_patience(processes[i].engine.sim, PATIENCE_NS);
}

static void expect_late_service(unsigned int server)
{
	const uint64_t now_ns = sim_engine_now_ns(processes[0].engine.sim);
	const unsigned int served = 16 * server;
	struct sim_cm *cm = ask(&processes[0]);

	/* on_event() numbers the QPs of one device by this count. */
	processes[server].counts[SIM_CM_EVENT_REQ] = served;
	pass(now_ns + PATIENCE_NS / 2);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_UINT(0, processes[0].counts[SIM_CM_EVENT_REJ]);
	listen_in(&processes[server]);
	pass(now_ns + PATIENCE_NS / 2 + 2 * MS);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_UINT(served + 1, processes[server].counts[SIM_CM_EVENT_REQ]);
	sim_cm_destroy(processes[server].listener);
	pass(now_ns + 2 * PATIENCE_NS);
	TEST_ASSERT_EQUAL_UINT(served + 1, processes[server].counts[SIM_CM_EVENT_REQ]);
	TEST_ASSERT_EQUAL_UINT(0, processes[0].counts[SIM_CM_EVENT_REJ]);
}

void test_a_request_waits_for_a_listener_of_any_process(void)
{
	be_patient();
	expect_late_service(1);
	expect_late_service(0);
	expect_late_service(2);
}

/* The listener ends before the request comes to its process, and another one begins there. */
void test_a_request_waits_in_the_process_that_it_has_come_to(void)
{
	struct sim_cm *cm;

	be_patient();
	listen_in(&processes[1]);
	cm = send_req(&processes[0], 0x100);
	sim_engine_run(processes[0].engine.sim);
	wires_flush(&processes[0].wires);
	sim_cm_destroy(processes[1].listener);
	pass(PATIENCE_NS / 2);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, sim_cm_state(cm));
	listen_in(&processes[1]);
	pass(PATIENCE_NS / 2 + 2 * MS);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_UINT(1, processes[1].counts[SIM_CM_EVENT_REQ]);
}

void test_patience_ends(void)
{
	struct sim_cm *cm;

	be_patient();
	cm = ask(&processes[0]);
	pass(PATIENCE_NS - MS);
	TEST_ASSERT_EQUAL_UINT(0, processes[0].counts[SIM_CM_EVENT_REJ]);
	pass(PATIENCE_NS + MS);
	TEST_ASSERT_EQUAL_UINT(1, processes[0].counts[SIM_CM_EVENT_REJ]);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_INVALID_SERVICE_ID, processes[0].rejected);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(cm));
	/* The next request has its own wait. */
	ask(&processes[0]);
	pass(2 * PATIENCE_NS);
	TEST_ASSERT_EQUAL_UINT(1, processes[0].counts[SIM_CM_EVENT_REJ]);
	pass(2 * PATIENCE_NS + 2 * MS);
	TEST_ASSERT_EQUAL_UINT(2, processes[0].counts[SIM_CM_EVENT_REJ]);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(processes[0].engine.sim));
}

/* A flood of requests without a listener takes the memory of 64 of them. */
void test_few_requests_wait(void)
{
	be_patient();
	for (unsigned int i = 0; i < 70; i++)
		send_req(&processes[0], 0x100 + i);
	run();
	TEST_ASSERT_EQUAL_UINT(70 - 64, processes[0].counts[SIM_CM_EVENT_REJ]);
	pass(PATIENCE_NS + MS);
	TEST_ASSERT_EQUAL_UINT(70, processes[0].counts[SIM_CM_EVENT_REJ]);
	for (unsigned int i = 0; i < 64; i++)
		send_req(&processes[0], 0x200 + i);
	run();
	TEST_ASSERT_EQUAL_UINT(70, processes[0].counts[SIM_CM_EVENT_REJ]);
	close_process(&processes[0]);
}

/* No listener gets the request of a requester that has given up. */
static void expect_given_up(unsigned int server, bool on_its_way)
{
	const uint64_t now_ns = sim_engine_now_ns(processes[0].engine.sim);
	struct sim_cm *cm;

	if (on_its_way)
		listen_in(&processes[server]);
	cm = send_req(&processes[0], 0x100 + processes[0].requests++);
	sim_engine_run(processes[0].engine.sim);
	wires_flush(&processes[0].wires);
	if (on_its_way)
		sim_cm_destroy(processes[server].listener);
	run();
	sim_cm_destroy(cm);
	run();
	listen_in(&processes[server]);
	pass(now_ns + 2 * PATIENCE_NS);
	TEST_ASSERT_EQUAL_UINT(0, processes[server].counts[SIM_CM_EVENT_REQ]);
	TEST_ASSERT_EQUAL_UINT(0, processes[0].counts[SIM_CM_EVENT_REJ]);
	sim_cm_destroy(processes[server].listener);
}

void test_a_request_whose_sender_gives_up_while_it_waits(void)
{
	be_patient();
	expect_given_up(0, false);
	expect_given_up(1, false);
	expect_given_up(1, true);
}

void test_no_request_waits_in_the_child_of_a_fork(void)
{
	struct process *child = &processes[0];

	be_patient();
	play_a_child(child);
	ask(child);
	wires_forked(&child->wires);
	sim_cm_forked(child->engine.sim);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(child->engine.sim));
	TEST_ASSERT_EQUAL_INT(0, wires_resume(&child->wires));
	listen_in(child);
	pass(2 * PATIENCE_NS);
	TEST_ASSERT_EQUAL_UINT(0, child->counts[SIM_CM_EVENT_REQ]);
	ask(child);
	TEST_ASSERT_EQUAL_UINT(1, child->counts[SIM_CM_EVENT_REQ]);
}

void test_a_port_of_the_world(void)
{
	struct sim_cm *cm;

	listen_in(&processes[1]);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(processes[2].engine.sim, &processes[2], &cm));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, sim_cm_listen(cm, SERVICE, NULL, any));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, sim_cm_reserve(processes[0].engine.sim, SERVICE, any,
							    SIM_SERVICE_SHARED));
	sim_cm_destroy(processes[1].listener);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(cm, SERVICE, NULL, any));
}

/* The refusal names the process that has the service ID: the words of the last refused call of an engine. */
static const char *refusal(const struct process *process, int error, enum vb_reason reason)
{
	static char text[512];
	struct vb_why why;

	TEST_ASSERT_TRUE(sim_take_refusal(process->engine.sim, error, &why));
	TEST_ASSERT_EQUAL_HEX(reason, why.reason);
	return vb_why_text(&why, text, sizeof(text));
}

void test_the_process_that_has_a_service_is_named(void)
{
	static const uint8_t one[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1};
	struct sim_engine *engine = processes[0].engine.sim;
	char program[16], words[512];

	TEST_ASSERT_EQUAL_INT(0, prctl(PR_GET_NAME, program));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_reserve(processes[1].engine.sim, SERVICE, one, 0));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, sim_cm_reserve(engine, SERVICE, one, 0));
	snprintf(words, sizeof(words),
		 "process %d (%s) of the same world uses the service ID 0x1065555 at the address; "
		 "choose another port or another address, end that process, or run this one in a "
		 "world of its own (--world new)",
		 (int)getpid(), program);
	TEST_ASSERT_EQUAL_STRING(words,
				 refusal(&processes[0], EADDRINUSE, VB_WHY_CM_SERVICE_TAKEN));
	TEST_ASSERT_EQUAL_INT(EADDRNOTAVAIL, sim_cm_reserve(engine, SERVICE, any, 0));
	snprintf(words, sizeof(words),
		 "process %d (%s) of the same world uses the service ID 0x1065555, and one of the "
		 "two addresses stands for all addresses; choose another port, end that process, "
		 "or run this one in a world of its own (--world new)",
		 (int)getpid(), program);
	TEST_ASSERT_EQUAL_STRING(words,
				 refusal(&processes[0], EADDRNOTAVAIL, VB_WHY_CM_SERVICE_BESIDE));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_reserve(engine, SERVICE + 1, one, 0));
	TEST_ASSERT_EQUAL_INT(EADDRINUSE, sim_cm_reserve(engine, SERVICE + 1, one, 0));
	TEST_ASSERT_EQUAL_STRING("the service ID 0x1065556 is used at the address; choose another "
				 "port or another address, or end the program that has it",
				 refusal(&processes[0], EADDRINUSE, VB_WHY_CM_SERVICE_USED));
}

/* The REJ of a process that gives up names no ID of its receiver, who is found all the same. */
void test_a_process_that_gives_up(void)
{
	struct sim_cm *cm;

	listen_in(&processes[1]);
	processes[1].silent = true;
	cm = ask(&processes[0]);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_RCVD, sim_cm_state(processes[1].cm));
	sim_cm_destroy(cm);
	run();
	TEST_ASSERT_EQUAL_UINT(1, processes[1].counts[SIM_CM_EVENT_REJ]);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_TIMEOUT, processes[1].rejected);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(processes[1].cm));
}

/* The child of a fork() connects to a listener of its parent. */
void test_a_child_of_a_fork(void)
{
	struct process *parent = &processes[1], *child = &processes[0];
	struct sim_cm *cm, *inherited;
	uint32_t id;

	/* The engine of process 0 plays the child, with the objects that the child inherits. */
	play_a_child(child);
	listen_in(child);
	inherited = ask(child);
	id = sim_cm_local_id(inherited);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(inherited));
	wires_forked(&child->wires);
	sim_cm_forked(child->engine.sim);
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(inherited));
	TEST_ASSERT_EQUAL_INT(SIM_CM_IDLE, sim_cm_state(child->listener));
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, sim_engine_next_ns(child->engine.sim));
	TEST_ASSERT_EQUAL_INT(0, wires_resume(&child->wires));
	/* The place of the parent is still used; the service belongs to a dead process. */
	listen_in(parent);
	cm = ask(child);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(parent->cm));
	TEST_ASSERT_EQUAL_UINT(1, parent->counts[SIM_CM_EVENT_REQ]);
	TEST_ASSERT_TRUE((id ^ sim_cm_local_id(cm)) & 0x3ff00);
	parent->counts[SIM_CM_EVENT_DREQ] = 0;
	sim_cm_destroy(inherited);
	run();
	TEST_ASSERT_EQUAL_UINT(0, parent->counts[SIM_CM_EVENT_DREQ]);
}

/* A peer that has gone without a word: the DREQ is answered at once. */
void test_a_peer_that_is_gone(void)
{
	struct sim_cm *cm;

	play_a_child(&processes[1]);
	listen_in(&processes[1]);
	cm = ask(&processes[0]);
	wires_forked(&processes[1].wires);
	close_process(&processes[1]);
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(cm, &(struct sim_cm_private){0}));
	run();
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(cm));
	TEST_ASSERT_EQUAL_UINT(1, processes[0].counts[SIM_CM_EVENT_DREP]);
	/* So is the next request. */
	ask(&processes[0]);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_INVALID_SERVICE_ID, processes[0].rejected);
}

/* --- bursts --- */

/* A ring that is made while /dev/shm has LITTLE_ROOM bytes free holds a fraction of BURST messages. */
#define BURST	    1000u
#define LITTLE_ROOM (8u << 20)

static uint64_t lost(const struct process *process)
{
	return process->engine.sides[0].device->counters.lost_packets +
	       process->engine.sides[1].device->counters.lost_packets;
}

static unsigned int count_in(struct process *process, enum sim_cm_state state)
{
	unsigned int count = 0;
	uint32_t cursor = 0;
	struct sim_cm *cm;

	while ((cm = sim_table_next(&process->engine.sim->cm->table, &cursor)))
		count += sim_cm_state(cm) == state;
	return count;
}

/* Process 0 sends requests that wait for room in the ring to process 1. */
static void send_burst(struct sim_cm **cms)
{
	free_room_bytes = LITTLE_ROOM;
	listen_in(&processes[1]);
	for (unsigned int i = 0; i < BURST; i++)
		cms[i] = send_req(&processes[0], 0x1000 + i);
	TEST_ASSERT_TRUE(sim_way_out_is_awaited(processes[0].engine.sim));
}

/* Process 0 sends all messages before process 1 takes one. */
void test_a_burst_of_messages_waits_for_room(void)
{
	static struct sim_cm *cms[BURST];

	send_burst(cms);
	for (unsigned int i = 0; i < 10; i++)
		run();
	TEST_ASSERT_EQUAL_UINT(BURST, processes[1].counts[SIM_CM_EVENT_REQ]);
	TEST_ASSERT_EQUAL_UINT(BURST, count_in(&processes[0], SIM_CM_ESTABLISHED));
	TEST_ASSERT_EQUAL_UINT(BURST, count_in(&processes[1], SIM_CM_ESTABLISHED));
	for (unsigned int i = 0; i < BURST; i++)
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(cms[i], &(struct sim_cm_private){0}));
	for (unsigned int i = 0; i < 10; i++)
		run();
	TEST_ASSERT_EQUAL_UINT(BURST, count_in(&processes[0], SIM_CM_TIMEWAIT));
	TEST_ASSERT_EQUAL_UINT(BURST, processes[1].counts[SIM_CM_EVENT_DREQ]);
	TEST_ASSERT_EQUAL_UINT64(0, lost(&processes[0]) + lost(&processes[1]));
	expect_dropped_nothing();
}

/* The receiver ends while messages wait for it: the sender's own engine answers them. */
void test_a_receiver_ends_while_messages_wait(void)
{
	static struct sim_cm *cms[BURST];

	send_burst(cms);
	close_process(&processes[1]);
	run();
	TEST_ASSERT_FALSE(sim_way_out_is_awaited(processes[0].engine.sim));
	TEST_ASSERT_TRUE(processes[0].counts[SIM_CM_EVENT_REJ] > BURST / 2);
	TEST_ASSERT_EQUAL_UINT(SIM_CM_REJ_INVALID_SERVICE_ID, processes[0].rejected);
}

/* The REJ of a process that gives up goes to all other processes, and waits for a process that has no room. */
void test_a_burst_of_requests_that_are_given_up(void)
{
	static struct sim_cm *cms[BURST];

	processes[1].silent = true;
	send_burst(cms);
	for (unsigned int i = 0; i < BURST; i++)
		sim_cm_destroy(cms[i]);
	for (unsigned int i = 0; i < 10; i++)
		run();
	TEST_ASSERT_EQUAL_UINT(BURST, processes[1].counts[SIM_CM_EVENT_REQ]);
	TEST_ASSERT_EQUAL_UINT(BURST, processes[1].counts[SIM_CM_EVENT_REJ]);
	TEST_ASSERT_EQUAL_UINT64(0, lost(&processes[0]));
}
