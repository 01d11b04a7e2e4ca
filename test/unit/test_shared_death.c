/* SPDX-License-Identifier: MIT */
/*
 * A process of a shared world is killed while it has a communication with another one: the events of the
 * survivor, in each state.
 */
#include "test/support/engine.h"
#include "test/unit/attached_cm.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define SERVICE	  UINT64_C(0x0000000001065556)
#define WATCH_NS  UINT64_C(200000000)
#define SETTLE_NS UINT64_C(1000000)
#define LONG_NS	  UINT64_C(60000000000)
#define ANSWER_NS UINT64_C(1000000000)
#define LIMIT_S	  60

static const uint8_t any[16];

struct process {
	struct engine engine;
	struct wires wires;
	struct sim_cm *cm; /* of the last event, or the own one */
	unsigned int reason;
	/* The last event that the process answers; later ones are only counted. */
	unsigned int answers;
	volatile unsigned int *counts; /* of enum sim_cm_event_kind */
};

static struct process survivor;
/* Counts the events of the child; in shared memory. */
static volatile unsigned int *seen;
static struct wire *wire; /* of the survivor */
static unsigned int own_counts[SIM_CM_EVENT_SIDR_ERROR + 1];

#define ANSWERS(kind) (1u << SIM_CM_EVENT_##kind)
/* The process asks for time by an MRA. */
#define DELAYS(kind) (ANSWERS(kind) << 16)

_Static_assert(SIM_CM_EVENT_SIDR_ERROR < 16, "both masks fit");

static enum sim_cm_verdict on_event(void *arg, struct sim_cm *cm, const struct sim_cm_event *event)
{
	struct process *own = arg;
	const struct sim_cm_reply reply = {.qpn = 0x200, .starting_psn = 1};
	const struct sim_cm_private none = {NULL, 0};

	own->counts[event->kind]++;
	own->cm = cm;
	if (event->kind == SIM_CM_EVENT_REJ)
		own->reason = event->rejection.reason;
	if (event->kind == SIM_CM_EVENT_SIDR_REP)
		own->reason = event->answer.status;
	if (own->answers >> 16 & 1u << event->kind)
		sim_cm_send_mra(cm, 20, &none);
	if (!(own->answers & 1u << event->kind))
		return SIM_CM_TAKEN;
	if (event->kind == SIM_CM_EVENT_REQ)
		sim_cm_send_rep(cm, &reply);
	else if (event->kind == SIM_CM_EVENT_REP)
		sim_cm_send_rtu(cm, &none);
	else if (event->kind == SIM_CM_EVENT_DREQ)
		sim_cm_send_drep(cm, &none);
	return SIM_CM_TAKEN;
}

static struct wire *open_process(struct process *process, volatile unsigned int *counts)
{
	const struct sim_cm_owner owner = {process, on_event};

	*process = (struct process){.counts = counts};
	return attach_cm(&process->engine, &process->wires, &owner);
}

void setUp(void)
{
	alarm(LIMIT_S);
	name_world();
	memset(own_counts, 0, sizeof(own_counts));
	seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_TRUE(seen != MAP_FAILED);
	wire = open_process(&survivor, own_counts);
}

void tearDown(void)
{
	detach_cm(&survivor.engine, &survivor.wires);
	munmap((void *)seen, 4096);
	TEST_ASSERT_FALSE(world_exists());
	alarm(0);
}

static void run(struct process *process)
{
	run_cm(&process->engine, &process->wires);
}

/* --- steps of a connection --- */

static void begin_listen(struct process *process)
{
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(process->cm, SERVICE, NULL, any));
}

static struct sim_cm_path path(const struct process *process)
{
	return (struct sim_cm_path){.attr = engine_ah_attr(&process->engine.sides[1].gid),
				    .pkey = 0xffff,
				    .mtu = IBV_MTU_1024,
				    .packet_life_time = 14};
}

static void begin_ask(struct process *process)
{
	const struct sim_cm_request request = {
		.service_id = SERVICE,
		.path = path(process),
		.qpn = (uint32_t)getpid() & 0xffffff,
		.qp_type = IBV_QPT_RC,
		.remote_response_timeout = 20,
		.local_response_timeout = 20,
		.max_cm_retries = 15,
	};

	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->cm));
	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_send_req(process->cm, process->engine.sides[0].device, &request));
}

static void begin_query(struct process *process)
{
	const struct sim_cm_query query = {
		.service_id = SERVICE,
		.path = path(process),
		.timeout = 20,
		.max_cm_retries = 15,
	};

	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->cm));
	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_send_sidr_req(process->cm, process->engine.sides[0].device, &query));
}

static const struct scenario {
	const char *name;
	void (*survivor)(struct process *process);
	unsigned int survivor_answers;
	void (*child)(struct process *process);
	unsigned int child_answers;
	enum sim_cm_state state;	/* of the survivor, when the child is killed, */
	enum sim_cm_event_kind awaited; /* after the child has seen this */
	bool disconnects;		/* the survivor, once the connection stands */
	enum sim_cm_event_kind learned; /* by the survivor */
	unsigned int reason;
	enum sim_cm_state after;
	bool asked; /* the survivor's program has not answered the last message */
} scenarios[] = {
	{"REQ_SENT", begin_ask, 0, begin_listen, 0, SIM_CM_REQ_SENT, SIM_CM_EVENT_REQ, false,
	 SIM_CM_EVENT_REJ, SIM_CM_REJ_CONSUMER, SIM_CM_IDLE},
	{"REQ_RCVD", begin_listen, 0, begin_ask, 0, SIM_CM_REQ_RCVD, SIM_CM_EVENT_REQ_ERROR, false,
	 SIM_CM_EVENT_REJ, SIM_CM_REJ_TIMEOUT, SIM_CM_IDLE, true},
	{"REP_SENT", begin_listen, ANSWERS(REQ), begin_ask, 0, SIM_CM_REP_SENT, SIM_CM_EVENT_REP,
	 false, SIM_CM_EVENT_REJ, SIM_CM_REJ_CONSUMER, SIM_CM_IDLE},
	{"REP_RCVD", begin_ask, 0, begin_listen, ANSWERS(REQ), SIM_CM_REP_RCVD, SIM_CM_EVENT_REQ,
	 false, SIM_CM_EVENT_REJ, SIM_CM_REJ_CONSUMER, SIM_CM_TIMEWAIT, true},
	{"ESTABLISHED, active", begin_ask, ANSWERS(REP) | ANSWERS(DREQ), begin_listen, ANSWERS(REQ),
	 SIM_CM_ESTABLISHED, SIM_CM_EVENT_RTU, false, SIM_CM_EVENT_DREQ, 0, SIM_CM_TIMEWAIT},
	{"ESTABLISHED, passive", begin_listen, ANSWERS(REQ) | ANSWERS(DREQ), begin_ask,
	 ANSWERS(REP), SIM_CM_ESTABLISHED, SIM_CM_EVENT_REP, false, SIM_CM_EVENT_DREQ, 0,
	 SIM_CM_TIMEWAIT},
	{"DREQ_SENT", begin_ask, ANSWERS(REP), begin_listen, ANSWERS(REQ), SIM_CM_DREQ_SENT,
	 SIM_CM_EVENT_DREQ, true, SIM_CM_EVENT_DREP, 0, SIM_CM_TIMEWAIT},
	{"SIDR_REQ_SENT", begin_query, 0, begin_listen, 0, SIM_CM_SIDR_REQ_SENT,
	 SIM_CM_EVENT_SIDR_REQ, false, SIM_CM_EVENT_SIDR_REP, SIM_CM_SIDR_REJECT, SIM_CM_IDLE},
	{"MRA_REQ_RCVD", begin_ask, 0, begin_listen, DELAYS(REQ), SIM_CM_MRA_REQ_RCVD,
	 SIM_CM_EVENT_REQ, false, SIM_CM_EVENT_REJ, SIM_CM_REJ_CONSUMER, SIM_CM_IDLE},
	{"MRA_REQ_SENT", begin_listen, DELAYS(REQ), begin_ask, 0, SIM_CM_MRA_REQ_SENT,
	 SIM_CM_EVENT_MRA, false, SIM_CM_EVENT_REJ, SIM_CM_REJ_TIMEOUT, SIM_CM_IDLE, true},
	{"MRA_REP_RCVD", begin_listen, ANSWERS(REQ), begin_ask, DELAYS(REP), SIM_CM_MRA_REP_RCVD,
	 SIM_CM_EVENT_REP, false, SIM_CM_EVENT_REJ, SIM_CM_REJ_CONSUMER, SIM_CM_IDLE},
	{"MRA_REP_SENT", begin_ask, DELAYS(REP), begin_listen, ANSWERS(REQ), SIM_CM_MRA_REP_SENT,
	 SIM_CM_EVENT_MRA, false, SIM_CM_EVENT_REJ, SIM_CM_REJ_CONSUMER, SIM_CM_TIMEWAIT, true},
};

/* --- the two together --- */

static _Noreturn void be_child(const struct scenario *scenario)
{
	static struct process process;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_process(&process, seen);
	process.answers = scenario->child_answers;
	scenario->child(&process);
	seen[64] = 1;
	for (;;) {
		run(&process);
		sched_yield();
	}
}

static pid_t start_child(const struct scenario *scenario)
{
	const pid_t child = fork();

	TEST_ASSERT_TRUE(child >= 0);
	if (!child)
		be_child(scenario);
	while (!seen[64])
		sched_yield();
	return child;
}

static bool is_ready(const struct scenario *scenario)
{
	if (!survivor.cm || sim_cm_state(survivor.cm) != scenario->state)
		return false;
	/* A child that has asked has nothing to see. */
	return scenario->awaited == SIM_CM_EVENT_REQ_ERROR || seen[scenario->awaited];
}

static pid_t reach(const struct scenario *scenario)
{
	const struct sim_cm_private none = {NULL, 0};
	bool disconnected = !scenario->disconnects;
	pid_t child;

	survivor.answers = scenario->survivor_answers;
	if (scenario->survivor == begin_listen)
		scenario->survivor(&survivor);
	child = start_child(scenario);
	if (scenario->survivor != begin_listen)
		scenario->survivor(&survivor);
	while (!is_ready(scenario)) {
		run(&survivor);
		if (!disconnected && seen[SIM_CM_EVENT_RTU])
			disconnected = !sim_cm_send_dreq(survivor.cm, &none);
		sched_yield();
	}
	return child;
}

/* Starts one more process, to which the survivor is connected then. */
static pid_t reach_another(const struct scenario *scenario)
{
	pid_t child;

	memset((void *)seen, 0, 4096);
	survivor.cm = NULL;
	child = start_child(scenario);
	while (!is_ready(scenario)) {
		run(&survivor);
		sched_yield();
	}
	return child;
}

/* Moves the survivor's time. */
static void pass(uint64_t duration_ns)
{
	struct sim_engine *engine = survivor.engine.sim;

	run(&survivor);
	sim_engine_advance(engine, sim_engine_now_ns(engine) + duration_ns);
	run(&survivor);
}

/* Sleeps until the bell of the survivor rings for an ended process. */
static void await_bell(void)
{
	struct bell *bell = shared_bell(wire);

	for (;;) {
		const uint32_t seen_rings = bell_listen(bell);

		if (wires_have_arrivals(&survivor.wires))
			break;
		bell_wait(bell, seen_rings, UINT64_MAX);
	}
	bell_ignore(bell);
}

static void expect_end(const struct scenario *scenario)
{
	TEST_ASSERT_EQUAL_UINT_MESSAGE(0, own_counts[scenario->learned], scenario->name);
	await_bell();
	pass(SETTLE_NS);
	for (uint64_t waited_ns = 0; scenario->asked && waited_ns < 2 * ANSWER_NS;
	     waited_ns += SETTLE_NS) {
		if (own_counts[scenario->learned])
			break;
		pass(SETTLE_NS);
	}
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, own_counts[scenario->learned], scenario->name);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(scenario->reason, survivor.reason, scenario->name);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(sim_cm_state_name(scenario->after),
					 sim_cm_state_name(sim_cm_state(survivor.cm)),
					 scenario->name);
	/* No event comes twice, and the survivor watches no process. */
	pass(3 * WATCH_NS);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, own_counts[scenario->learned], scenario->name);
	TEST_ASSERT_EQUAL_UINT64_MESSAGE(SIM_NEVER, survivor.engine.sim->cm->watch.deadline_ns,
					 scenario->name);
}

void test_a_killed_process_in_each_state(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		pid_t child = reach(&scenarios[i]);

		/* While the process lives, nothing ends. */
		pass(WATCH_NS);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(0, own_counts[scenarios[i].learned],
					       scenarios[i].name);
		child_kill(child);
		expect_end(&scenarios[i]);
		tearDown();
		setUp();
	}
}

/* The death of one peer leaves the connection with another one alone. */
void test_connections_with_two_processes(void)
{
	const struct scenario *scenario = &scenarios[5];
	pid_t first = reach(scenario), second;
	struct sim_cm *one = survivor.cm, *other;

	second = reach_another(scenario);
	other = survivor.cm;
	TEST_ASSERT_TRUE(one != other);
	child_kill(first);
	await_bell();
	pass(SETTLE_NS);
	TEST_ASSERT_EQUAL_UINT(1, own_counts[SIM_CM_EVENT_DREQ]);
	TEST_ASSERT_EQUAL_INT(SIM_CM_TIMEWAIT, sim_cm_state(one));
	TEST_ASSERT_EQUAL_INT(SIM_CM_ESTABLISHED, sim_cm_state(other));
	child_kill(second);
	await_bell();
	pass(SETTLE_NS);
	TEST_ASSERT_EQUAL_UINT(2, own_counts[SIM_CM_EVENT_DREQ]);
}

/* A process that waits for long for its peer to die has no timer, and does not wake up. */
void test_watching_costs_no_time(void)
{
	const struct scenario *scenario = &scenarios[5];
	pid_t child = reach(scenario);

	pass(2 * LONG_NS);
	TEST_ASSERT_EQUAL_UINT64(SIM_NEVER, survivor.engine.sim->cm->watch.deadline_ns);
	child_kill(child);
	await_bell();
	pass(SETTLE_NS);
	TEST_ASSERT_EQUAL_UINT(1, own_counts[scenario->learned]);
}

/* Plays the child of a fork of the survivor, which has inherited a connection. */
static void inherit(void)
{
	wires_forked(&survivor.wires);
	sim_cm_forked(survivor.engine.sim);
}

/* The child of a fork has a connection of its own, with a process that is killed. */
static int outlive_another(void)
{
	const struct scenario *scenario = &scenarios[5];
	pid_t child;

	inherit();
	alarm(LIMIT_S);
	memset((void *)seen, 0, 4096);
	memset(own_counts, 0, sizeof(own_counts));
	survivor.cm = NULL;
	if (wires_resume(&survivor.wires))
		return 1;
	child = reach(scenario);
	pass(WATCH_NS);
	if (own_counts[scenario->learned])
		return 1;
	child_kill(child);
	await_bell();
	pass(SETTLE_NS);
	return own_counts[scenario->learned] != 1;
}

static int leave_at_once(void)
{
	inherit();
	alarm(LIMIT_S);
	detach_cm(&survivor.engine, &survivor.wires);
	return 0;
}

/* The thread that watches is the parent's. A child of a fork begins a thread of its own, and leaves the parent's
 * alone when it ends. */
void test_a_child_watches_for_itself(void)
{
	static int (*const lives[])(void) = {outlive_another, leave_at_once};
	const struct scenario *scenario = &scenarios[5];

	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		struct sim_cm *listener;
		pid_t peer, child;

		begin_listen(&survivor);
		listener = survivor.cm;
		survivor.answers = scenario->survivor_answers;
		peer = start_child(scenario);
		while (!is_ready(scenario)) {
			run(&survivor);
			sched_yield();
		}
		sim_cm_destroy(listener);
		pass(WATCH_NS);
		child = child_begin(lives[i]);
		child_kill(child);
		pass(WATCH_NS);
		TEST_ASSERT_EQUAL_UINT(0, own_counts[scenario->learned]);
		child_kill(peer);
		await_bell();
		pass(SETTLE_NS);
		TEST_ASSERT_EQUAL_UINT(1, own_counts[scenario->learned]);
		tearDown();
		setUp();
	}
}

/* The maker of a world looks for worlds whose processes are dead. It wakes no process of a world that is alive. */
void test_a_new_world_wakes_no_process_of_another(void)
{
	const int closed = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	struct inotify_event event;
	struct segment other;
	char path[sizeof(world_path)], name[sizeof(world_name)];

	strcpy(path, world_path);
	strcpy(name, world_name);
	TEST_ASSERT_TRUE(inotify_add_watch(closed, path, IN_CLOSE_WRITE) >= 0);
	name_world();
	attach(&other);
	TEST_ASSERT_EQUAL_INT(-1, read(closed, &event, sizeof(event)));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	places_leave(&other);
	close(closed);
	strcpy(world_path, path);
	strcpy(world_name, name);
}

/* The kernel tells of a closed file before it releases the locks of the process: a look comes too early. */
void test_a_process_that_ends_slowly(void)
{
	const struct scenario *scenario = &scenarios[5];
	pid_t child = reach(scenario);

	pass(WATCH_NS);
	/* The file is closed, and the child still has its lock. */
	close(open(world_path, O_RDWR | O_CLOEXEC));
	await_bell();
	pass(SETTLE_NS);
	TEST_ASSERT_EQUAL_UINT(0, own_counts[scenario->learned]);
	child_kill(child);
	pass(2 * SETTLE_NS);
	TEST_ASSERT_EQUAL_UINT(1, own_counts[scenario->learned]);
}

/* The child is killed, and gets no processor for half a second before it releases its lock. The time passes without
 * the report of the kill itself: the child closes its file once. */
void test_a_process_that_ends_very_slowly(void)
{
	const struct scenario *scenario = &scenarios[5];
	pid_t child = reach(scenario);
	struct sim_engine *engine = survivor.engine.sim;

	pass(WATCH_NS);
	close(open(world_path, O_RDWR | O_CLOEXEC));
	await_bell();
	pass(5 * WATCH_NS / 2);
	TEST_ASSERT_EQUAL_UINT(0, own_counts[scenario->learned]);
	child_kill(child);
	sim_engine_advance(engine, sim_engine_now_ns(engine) + 5 * WATCH_NS);
	TEST_ASSERT_EQUAL_UINT(1, own_counts[scenario->learned]);
}

/* A new connection is watched as soon as the first one, though the looks have become rare. */
void test_a_new_peer_is_looked_at_soon(void)
{
	const struct scenario *scenario = &scenarios[5];
	pid_t first = reach(scenario), second;
	const struct sim_timer *watch;

	watch = &survivor.engine.sim->cm->watch;
	pass(LONG_NS / 2);
	TEST_ASSERT_TRUE(watch->deadline_ns > sim_engine_now_ns(survivor.engine.sim) + WATCH_NS);
	second = reach_another(scenario);
	TEST_ASSERT_TRUE(watch->deadline_ns <= sim_engine_now_ns(survivor.engine.sim) + WATCH_NS);
	child_kill(first);
	child_kill(second);
}

/* Without a descriptor for inotify(7), the survivor looks from time to time. */
void test_watching_without_a_descriptor(void)
{
	const struct scenario *scenario = &scenarios[5];
	struct rlimit limit, none;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, getrlimit(RLIMIT_NOFILE, &limit));
	none = limit;
	none.rlim_cur = 0;
	survivor.answers = scenario->survivor_answers;
	begin_listen(&survivor);
	child = start_child(scenario);
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &none));
	while (!is_ready(scenario)) {
		run(&survivor);
		sched_yield();
	}
	TEST_ASSERT_EQUAL_INT(0, setrlimit(RLIMIT_NOFILE, &limit));
	pass(3 * WATCH_NS);
	TEST_ASSERT_EQUAL_UINT(0, own_counts[scenario->learned]);
	child_kill(child);
	pass(WATCH_NS);
	TEST_ASSERT_EQUAL_UINT(1, own_counts[scenario->learned]);
}
