/* SPDX-License-Identifier: MIT */
/*
 * Messages of the connection manager whose sender is dead when they are read, in a shared world: a row for each
 * message. Both processes are engines of this program, so the order of their steps is forced. A process dies as a
 * killed one does: it leaves its rings and its locks to the kernel, and says nothing.
 */
#include "test/support/engine.h"
#include "test/unit/attached_cm.h"

#include "sim/net/trace.h"

#include <string.h>

#define SERVICE	  UINT64_C(0x0000000001065557)
#define WATCH_NS  UINT64_C(200000000)
#define ANSWER_NS UINT64_C(1000000000)
#define STEP_NS	  UINT64_C(10000000)
#define LIMIT_NS  UINT64_C(2000000000)
#define REASON	  7

static const uint8_t any[16];
static const struct sim_cm_private none;

struct process {
	struct engine engine;
	struct wires wires;
	struct wire *wire;
	struct sim_cm *cm; /* of the last event, or the own one */
	unsigned int answers;
	char seen[128]; /* the names of the events */
};

/* The newcomer attaches to the world when the peer is dead, and gets the peer's place. */
static struct process survivor, peer, newcomer;
static unsigned int requests; /* that were sent */

#define ANSWERS(kind) (1u << SIM_CM_EVENT_##kind)
/* The process asks for time by an MRA before it answers. */
#define DELAYS(kind) (ANSWERS(kind) << 16)

static void note(struct process *own, const struct sim_cm_event *event)
{
	static const char *const names[] = {
		[SIM_CM_EVENT_REQ] = "REQ",
		[SIM_CM_EVENT_REP] = "REP",
		[SIM_CM_EVENT_RTU] = "RTU",
		[SIM_CM_EVENT_REJ] = "REJ",
		[SIM_CM_EVENT_MRA] = "MRA",
		[SIM_CM_EVENT_DREQ] = "DREQ",
		[SIM_CM_EVENT_DREP] = "DREP",
		[SIM_CM_EVENT_REQ_ERROR] = "REQ_ERROR",
		[SIM_CM_EVENT_REP_ERROR] = "REP_ERROR",
		[SIM_CM_EVENT_DREQ_ERROR] = "DREQ_ERROR",
		[SIM_CM_EVENT_TIMEWAIT_EXIT] = NULL,
		[SIM_CM_EVENT_SIDR_REQ] = "SIDR_REQ",
		[SIM_CM_EVENT_SIDR_REP] = "SIDR_REP",
		[SIM_CM_EVENT_SIDR_ERROR] = "SIDR_ERROR",
	};
	const size_t used = strlen(own->seen), left = sizeof(own->seen) - used;
	const char *space = used ? ", " : "";

	if (event->kind == SIM_CM_EVENT_REJ)
		snprintf(own->seen + used, left, "%sREJ %u", space, event->rejection.reason);
	else if (event->kind == SIM_CM_EVENT_SIDR_REP)
		snprintf(own->seen + used, left, "%sSIDR_REP %u", space, event->answer.status);
	else if (names[event->kind])
		snprintf(own->seen + used, left, "%s%s", space, names[event->kind]);
}

static enum sim_cm_verdict on_event(void *arg, struct sim_cm *cm, const struct sim_cm_event *event)
{
	struct process *own = arg;
	const struct sim_cm_reply reply = {.qpn = 0x200, .starting_psn = 1};

	note(own, event);
	own->cm = cm;
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
	else if (event->kind == SIM_CM_EVENT_SIDR_REQ)
		sim_cm_send_sidr_rep(cm, &(struct sim_cm_answer){.qpn = 0x200, .qkey = 1});
	return SIM_CM_TAKEN;
}

/* A process without reports of ended processes looks at its peers from time to time. */
static void open_process(struct process *process, bool has_reports)
{
	const struct sim_cm_owner owner = {process, on_event};

	*process = (struct process){0};
	process->wire = attach_cm(&process->engine, &process->wires, &owner);
	if (!has_reports)
		process->wire->way.watches = NULL;
}

static void close_process(struct process *process)
{
	if (process->wire)
		detach_cm(&process->engine, &process->wires);
	process->wire = NULL;
}

void setUp(void)
{
	name_world();
}

void tearDown(void)
{
	close_process(&survivor);
	close_process(&peer);
	close_process(&newcomer);
	TEST_ASSERT_FALSE(world_exists());
}

static void run(struct process *process)
{
	run_cm(&process->engine, &process->wires);
}

/* Moves the survivor's time. A survivor that is not `awake` reads no message. */
static void pass(uint64_t duration_ns, bool awake)
{
	struct sim_engine *sim = survivor.engine.sim;

	for (uint64_t passed_ns = 0; passed_ns < duration_ns; passed_ns += STEP_NS) {
		sim_engine_advance(sim, sim_engine_now_ns(sim) + STEP_NS);
		if (awake)
			run(&survivor);
	}
}

/* --- the steps of both processes --- */

static void create(struct process *process)
{
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->cm));
}

static void send_all(struct process *process)
{
	sim_engine_run(process->engine.sim);
	wires_flush(&process->wires);
}

static void hear(struct process *process)
{
	create(process);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(process->cm, SERVICE, NULL, any));
}

static struct sim_cm_path path(const struct process *process)
{
	return (struct sim_cm_path){.attr = engine_ah_attr(&process->engine.sides[1].gid),
				    .pkey = 0xffff,
				    .mtu = IBV_MTU_1024,
				    .packet_life_time = 14};
}

static void ask_again(struct process *process)
{
	const struct sim_cm_request request = {
		.service_id = SERVICE,
		.path = path(process),
		.qpn = 0x100 + requests++,
		.qp_type = IBV_QPT_RC,
		.remote_response_timeout = 20,
		.local_response_timeout = 20,
		.max_cm_retries = 15,
	};

	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_send_req(process->cm, process->engine.sides[0].device, &request));
	send_all(process);
}

static void ask(struct process *process)
{
	create(process);
	ask_again(process);
}

static void query(struct process *process)
{
	const struct sim_cm_query query = {
		.service_id = SERVICE,
		.path = path(process),
		.timeout = 20,
		.max_cm_retries = 15,
	};

	create(process);
	TEST_ASSERT_EQUAL_INT(
		0, sim_cm_send_sidr_req(process->cm, process->engine.sides[0].device, &query));
	send_all(process);
}

static void disconnect(struct process *process)
{
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_dreq(process->cm, &none));
	send_all(process);
}

static void reject(struct process *process)
{
	const struct sim_cm_rejection rejection = {.reason = REASON};

	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rej(process->cm, &rejection));
	send_all(process);
}

static void destroy(struct process *process)
{
	sim_cm_destroy(process->cm);
	send_all(process);
}

/* The engine sends no LAP and no APR of its own accord. */
static void send_raw(struct process *process, enum sim_cm_message message)
{
	struct sim_cm *cm = process->cm;
	uint8_t mad[SIM_MAD_BYTES];

	sim_mad_begin(mad, message, 1);
	sim_mad_set(mad, SIM_CM_REP_LOCAL_ID, cm->local_id);
	sim_mad_set(mad, SIM_CM_REP_REMOTE_ID, cm->remote_id);
	if (message == SIM_CM_LAP)
		sim_mad_set(mad, SIM_CM_LAP_REMOTE_QPN, cm->remote_qpn);
	sim_gsi_send(process->engine.sim, &cm->path, cm->pkey, mad);
	send_all(process);
}

static void send_lap(struct process *process)
{
	send_raw(process, SIM_CM_LAP);
}

static void send_apr(struct process *process)
{
	send_raw(process, SIM_CM_APR);
}

struct step {
	struct process *process; /* NULL: none */
	void (*act)(struct process *process);
};

#define S(act)                 \
	{                      \
		&survivor, act \
	}
#define P(act)             \
	{                  \
		&peer, act \
	}
#define CONNECT P(hear), S(ask), P(run), S(run), P(run)

/* The peer dies after the last step. Until then the survivor reads only where a step says so. */
static const struct row {
	const char *name;
	struct step steps[8];
	unsigned int survivor, peer; /* what they answer */
	const char *seen;	     /* by the survivor, in the end */
} rows[] = {
	{"REQ", {S(hear), P(ask)}, 0, 0, "REQ, REJ 4"},
	{"REQ, answered", {S(hear), P(ask)}, ANSWERS(REQ), 0, "REQ, REJ 28"},
	{"REQ, unread", {P(hear), S(ask)}, 0, 0, "REJ 28"},
	{"MRA", {P(hear), S(ask), P(run)}, 0, DELAYS(REQ), "MRA, REJ 28"},
	{"REJ", {P(hear), S(ask), P(run), P(reject)}, 0, 0, "REJ 7"},
	{"REP", {P(hear), S(ask), P(run)}, 0, ANSWERS(REQ), "REP, REJ 28"},
	{"REP, answered", {P(hear), S(ask), P(run)}, ANSWERS(REP), ANSWERS(REQ), "REP, DREQ"},
	{"RTU", {S(hear), P(ask), S(run), P(run)}, ANSWERS(REQ), ANSWERS(REP), "REQ, RTU, DREQ"},
	{"MRA of a REP",
	 {S(hear), P(ask), S(run), P(run)},
	 ANSWERS(REQ),
	 DELAYS(REP),
	 "REQ, MRA, REJ 28"},
	{"DREQ", {CONNECT, P(disconnect)}, ANSWERS(REP), ANSWERS(REQ), "REP, DREQ"},
	{"DREQ, answered",
	 {CONNECT, P(disconnect)},
	 ANSWERS(REP) | ANSWERS(DREQ),
	 ANSWERS(REQ),
	 "REP, DREQ"},
	{"DREP",
	 {CONNECT, S(disconnect), P(run)},
	 ANSWERS(REP),
	 ANSWERS(REQ) | ANSWERS(DREQ),
	 "REP, DREP"},
	{"DREQ, unread", {CONNECT, S(disconnect)}, ANSWERS(REP), ANSWERS(REQ), "REP, DREP"},
	{"SIDR_REQ", {S(hear), P(query)}, ANSWERS(SIDR_REQ), 0, "SIDR_REQ"},
	{"SIDR_REQ, unread", {P(hear), S(query)}, 0, 0, "SIDR_REP 2"},
	{"SIDR_REP", {P(hear), S(query), P(run)}, 0, ANSWERS(SIDR_REQ), "SIDR_REP 0"},
	{"LAP", {CONNECT, P(send_lap)}, ANSWERS(REP), ANSWERS(REQ), "REP, DREQ"},
	{"APR", {CONNECT, P(send_apr)}, ANSWERS(REP), ANSWERS(REQ), "REP, DREQ"},
	/* The second frame of a route has no headers. */
	{"REQ of another connection",
	 {S(hear), P(ask), S(run), P(ask)},
	 0,
	 0,
	 "REQ, REQ, REJ 4, REJ 4"},
	/* Several messages of a communication: the peer has ended in order before it died, or not. */
	{"REQ, REJ", {S(hear), P(ask), P(destroy)}, 0, 0, "REQ, REJ 4"},
	{"MRA, REP",
	 {P(hear), S(ask), P(run)},
	 ANSWERS(REP),
	 ANSWERS(REQ) | DELAYS(REQ),
	 "MRA, REP, DREQ"},
	{"REP, REJ",
	 {P(hear), S(ask), P(run), P(destroy)},
	 ANSWERS(REP),
	 ANSWERS(REQ),
	 "REP, REJ 28"},
	{"RTU, DREQ",
	 {S(hear), P(ask), S(run), P(run), P(destroy)},
	 ANSWERS(REQ) | ANSWERS(DREQ),
	 ANSWERS(REP),
	 "REQ, RTU, DREQ"},
};

static void die(struct process *process)
{
	wires_forked(&process->wires);
}

/* What happens between the death and the survivor's read. */
struct between {
	bool has_reports; /* of the survivor */
	bool looks;	  /* the survivor looks at its peers' processes */
	bool has_trace;	  /* of the peer: its frames are encoded */
	bool is_replaced; /* a new process gets the place and the service of the dead one */
};

static void replace_peer(bool listens)
{
	const uint64_t before = shared_process(peer.wire);
	uint64_t after;

	die(&peer);
	open_process(&newcomer, false);
	after = shared_process(newcomer.wire);
	TEST_ASSERT_EQUAL_UINT32(segment_id_place(before), segment_id_place(after));
	TEST_ASSERT_TRUE(before != after);
	if (listens)
		hear(&newcomer);
}

static void see(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
		unsigned int flags)
{
	(void)arg;
	(void)now_ns;
	(void)frame;
	(void)length_bytes;
	(void)flags;
}

static const struct sim_trace_sink sink = {NULL, see};

static void expect_row(const struct row *row, const struct between *between)
{
	char about[96];

	snprintf(about, sizeof(about), "%s%s%s%s%s", row->name,
		 between->has_reports ? ", reports" : "", between->looks ? ", looks" : "",
		 between->has_trace ? ", trace" : "", between->is_replaced ? ", replaced" : "");
	open_process(&survivor, between->has_reports);
	open_process(&peer, false);
	if (between->has_trace)
		sim_trace_set(peer.engine.sim, SIM_TRACE_FILE, &sink);
	survivor.answers = row->survivor;
	peer.answers = row->peer;
	for (const struct step *step = row->steps; step->process; step++)
		step->act(step->process);
	if (between->is_replaced)
		replace_peer(row->steps[0].act == hear && row->steps[0].process == &peer);
	else
		die(&peer);
	if (between->looks)
		pass(2 * WATCH_NS, false);
	run(&survivor);
	pass(LIMIT_NS, true);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(row->seen, survivor.seen, about);
	/* No event comes twice, and the survivor watches no process; only a late report makes it look once more. */
	pass(LIMIT_NS, true);
	TEST_ASSERT_EQUAL_STRING_MESSAGE(row->seen, survivor.seen, about);
	if (!between->has_reports)
		TEST_ASSERT_EQUAL_UINT64_MESSAGE(SIM_NEVER,
						 survivor.engine.sim->cm->watch.deadline_ns, about);
	if (between->is_replaced)
		run(&newcomer);
	TEST_ASSERT_EQUAL_STRING_MESSAGE("", newcomer.seen, about);
	tearDown();
	setUp();
}

void test_a_message_of_a_dead_sender(void)
{
	static const struct between betweens[] = {
		{0},
		{.has_reports = true},
		{.looks = true},
		{.has_trace = true},
		{.is_replaced = true},
		{.has_reports = true, .looks = true, .has_trace = true, .is_replaced = true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t j = 0; j < sizeof(betweens) / sizeof(betweens[0]); j++)
			expect_row(&rows[i], &betweens[j]);
}

static void open_both(void)
{
	open_process(&survivor, false);
	open_process(&peer, false);
}

static void expect_seen(const char *seen)
{
	TEST_ASSERT_EQUAL_STRING(seen, survivor.seen);
}

/* The survivor was stopped: it reads the REP, and finds its sender dead, before its program runs. */
void test_a_program_has_time_for_its_rtu(void)
{
	open_both();
	peer.answers = ANSWERS(REQ);
	hear(&peer);
	ask(&survivor);
	run(&peer);
	die(&peer);
	run(&survivor);
	pass(ANSWER_NS - WATCH_NS, true);
	expect_seen("REP");
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rtu(survivor.cm, &none));
	pass(WATCH_NS * 4, true);
	expect_seen("REP, DREQ");
}

/* Reports of ended processes that never come, as if their thread had no processor. */
static bool have_reports(void *arg)
{
	(void)arg;
	return true;
}

/* The looks at the peer's process have become rare. */
void test_a_program_that_sends_no_rtu(void)
{
	open_both();
	survivor.wire->way.watches = have_reports;
	peer.answers = ANSWERS(REQ);
	hear(&peer);
	ask(&survivor);
	run(&peer);
	die(&peer);
	run(&survivor);
	pass(WATCH_NS + ANSWER_NS - STEP_NS, true);
	expect_seen("REP");
	pass(2 * STEP_NS, true);
	expect_seen("REP, REJ 28");
	/* The next attempt has its own time. */
	pass(WATCH_NS, true);
	open_process(&newcomer, false);
	newcomer.answers = ANSWERS(REQ);
	hear(&newcomer);
	ask_again(&survivor);
	run(&newcomer);
	die(&newcomer);
	run(&survivor);
	pass(ANSWER_NS, true);
	expect_seen("REP, REJ 28, REP");
	pass(2 * WATCH_NS, true);
	expect_seen("REP, REJ 28, REP, REJ 28");
}

void test_a_program_has_time_for_its_rep(void)
{
	const struct sim_cm_reply reply = {.qpn = 0x200, .starting_psn = 1};

	open_both();
	hear(&survivor);
	ask(&peer);
	die(&peer);
	run(&survivor);
	pass(ANSWER_NS - WATCH_NS, true);
	expect_seen("REQ");
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(survivor.cm, &reply));
	pass(WATCH_NS * 4, true);
	expect_seen("REQ, REJ 28");
}

/* A request that has waited for a listener goes to a process that was not there when it was sent first. */
void test_a_repeated_request_to_a_process_that_dies(void)
{
	open_both();
	sim_cm_set_patience(survivor.engine.sim, LIMIT_NS);
	ask(&survivor);
	pass(STEP_NS, true);
	hear(&peer);
	pass(STEP_NS, true);
	run(&peer);
	TEST_ASSERT_EQUAL_STRING("REQ", peer.seen);
	die(&peer);
	pass(LIMIT_NS, true);
	expect_seen("REJ 28");
}

/* The survivor repeats its request to the peer, which listens no more. */
void test_an_answer_of_a_process_that_listens_no_more(void)
{
	struct sim_cm *listener;
	const struct sim_cm_reply reply = {.qpn = 0x200, .starting_psn = 1};

	open_both();
	survivor.answers = ANSWERS(REP);
	hear(&peer);
	listener = peer.cm;
	ask(&survivor);
	run(&peer);
	sim_cm_destroy(listener);
	pass(3 * LIMIT_NS, true);
	TEST_ASSERT_EQUAL_INT(SIM_CM_REQ_SENT, sim_cm_state(survivor.cm));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rep(peer.cm, &reply));
	send_all(&peer);
	die(&peer);
	pass(LIMIT_NS, true);
	expect_seen("REP, DREQ");
}
