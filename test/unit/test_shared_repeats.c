/* SPDX-License-Identifier: MIT */
/*
 * Requests that are sent again in a shared world, after their listener has ended. All processes are engines of this
 * program, so the order of their steps is forced. Each row runs with a REQ and with a SIDR_REQ, on a link with and without
 * delay, on both link layers.
 */
#include "test/support/engine.h"
#include "test/unit/attached_cm.h"

#include "sim/net/fault.h"

#include <string.h>

#define SERVICE	    UINT64_C(0x0000000001065559)
#define PATIENCE_NS UINT64_C(100000000)
#define STEP_NS	    UINT64_C(1000000)
#define DELAY_NS    UINT64_C(2000000)
/* A request is repeated once within REPEAT_NS and not before SOON_NS. */
#define SOON_NS	   UINT64_C(390000000)
#define BRIEFLY_NS UINT64_C(30000000)
#define REPEAT_NS  UINT64_C(700000000)
#define REASON	   7

static const uint8_t any[16];
static const struct sim_cm_private none;

/* The client, and two servers. */
enum who { A, B, C, EVERYBODY };

struct process {
	struct engine engine;
	struct wires wires;
	struct wire *wire;
	struct sim_cm *own, *listener,
		*taken; /* the request's, and the one that a request has made */
	bool is_full;	/* it has no room for a request */
	char seen[64];	/* the events */
};

static struct process processes[EVERYBODY];
static bool connects;	  /* by a REQ, not by a SIDR_REQ */
static bool infiniband;	  /* the link layer; messages have no GRH */
static uint64_t delay_ns; /* of the client's requests */

/* --- events --- */

static void note(struct process *process, const char *word)
{
	const size_t used = strlen(process->seen), left = sizeof(process->seen) - used;

	snprintf(process->seen + used, left, "%s%s", used ? " " : "", word);
}

/* The words are the same for both kinds of requests. */
static enum sim_cm_verdict on_event(void *arg, struct sim_cm *cm, const struct sim_cm_event *event)
{
	struct process *own = arg;
	char word[16];

	switch (event->kind) {
	case SIM_CM_EVENT_REQ:
	case SIM_CM_EVENT_SIDR_REQ:
		if (own->is_full)
			return SIM_CM_NO_ROOM;
		own->taken = cm;
		note(own, "asked");
		break;
	case SIM_CM_EVENT_REP:
		note(own, "answered");
		TEST_ASSERT_EQUAL_INT(0, sim_cm_send_rtu(cm, &none));
		break;
	case SIM_CM_EVENT_SIDR_REP:
		note(own, event->answer.status ? "refused" : "answered");
		break;
	case SIM_CM_EVENT_REJ:
		snprintf(word, sizeof(word), "REJ-%u", event->rejection.reason);
		note(own, word);
		break;
	case SIM_CM_EVENT_MRA:
		note(own, "MRA");
		break;
	case SIM_CM_EVENT_RTU:
		break;
	default:
		note(own, "other");
		break;
	}
	return SIM_CM_TAKEN;
}

/* Reports of ended processes that never come: looks at the peers are rare, and no thread watches them. */
static bool have_reports(void *arg)
{
	(void)arg;
	return true;
}

static void open_process(struct process *process)
{
	const struct sim_cm_owner owner = {process, on_event};

	*process = (struct process){0};
	process->wire = attach_cm_on(&process->engine, &process->wires, &owner, infiniband);
	process->wire->way.watches = have_reports;
	sim_cm_set_patience(process->engine.sim, PATIENCE_NS);
}

static void open_all(void)
{
	name_world();
	for (unsigned int i = 0; i < EVERYBODY; i++)
		open_process(&processes[i]);
}

static void close_all(void)
{
	for (unsigned int i = 0; i < EVERYBODY; i++) {
		if (processes[i].wire)
			detach_cm(&processes[i].engine, &processes[i].wires);
		processes[i].wire = NULL;
	}
	TEST_ASSERT_FALSE(world_exists());
}

void setUp(void)
{
}

void tearDown(void)
{
	for (unsigned int i = 0; i < EVERYBODY; i++)
		if (processes[i].wire)
			detach_cm(&processes[i].engine, &processes[i].wires);
}

/* --- steps --- */

static void run(struct process *process)
{
	run_cm(&process->engine, &process->wires);
}

static void run_all(void)
{
	for (unsigned int i = 0; i < EVERYBODY; i++)
		if (processes[i].wire)
			run(&processes[i]);
}

static void send_all(struct process *process)
{
	sim_engine_run(process->engine.sim);
	wires_flush(&process->wires);
}

static void advance(struct process *process, uint64_t duration_ns)
{
	struct sim_engine *sim = process->engine.sim;

	sim_engine_advance(sim, sim_engine_now_ns(sim) + duration_ns);
}

static void pass(uint64_t duration_ns)
{
	for (uint64_t passed_ns = 0; passed_ns < duration_ns; passed_ns += STEP_NS) {
		for (unsigned int i = 0; i < EVERYBODY; i++)
			if (processes[i].wire)
				advance(&processes[i], STEP_NS);
		run_all();
	}
}

static void wait_soon(struct process *process)
{
	(void)process;
	pass(SOON_NS);
}

/* With wait_soon(): a REQ was repeated, and no look at its peer comes before the next step. */
static void wait_briefly(struct process *process)
{
	(void)process;
	pass(BRIEFLY_NS);
}

static void wait_for_repetition(struct process *process)
{
	(void)process;
	pass(REPEAT_NS);
}

static void hear(struct process *process)
{
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->listener));
	TEST_ASSERT_EQUAL_INT(0, sim_cm_listen(process->listener, SERVICE, NULL, any));
}

static void hear_no_more(struct process *process)
{
	sim_cm_destroy(process->listener);
	process->listener = NULL;
}

static void be_full(struct process *process)
{
	process->is_full = true;
}

static enum sim_cm_message request_kind(void)
{
	return connects ? SIM_CM_REQ : SIM_CM_SIDR_REQ;
}

static void add_rule(struct process *process, struct sim_fault_rule rule)
{
	unsigned int id;

	TEST_ASSERT_EQUAL_INT(0, sim_fault_add(process->engine.sim, &rule, &id));
}

static void lose_request(struct process *process)
{
	add_rule(process, (struct sim_fault_rule){
				  .action = SIM_FAULT_DROP, .message = request_kind(), .count = 1});
}

static void slow_down(struct process *process)
{
	add_rule(process, (struct sim_fault_rule){.action = SIM_FAULT_DELAY,
						  .message = request_kind(),
						  .delay_ns = delay_ns});
}

static struct sim_cm_path path_from(const struct process *process)
{
	struct sim_cm_path path = {.attr = engine_ah_attr(&process->engine.sides[1].gid),
				   .pkey = 0xffff,
				   .mtu = IBV_MTU_1024,
				   .packet_life_time = 14};

	if (infiniband) {
		path.attr.is_global = 0;
		path.attr.dlid = process->engine.sides[1].device->ports[0].lid;
	}
	return path;
}

/* The request is under way if the link has a delay. */
static void send(struct process *process)
{
	const struct sim_cm_path path = path_from(process);
	const struct sim_cm_request request = {
		.service_id = SERVICE,
		.path = path,
		.qpn = 0x100,
		.qp_type = IBV_QPT_RC,
		.remote_response_timeout = 16,
		.local_response_timeout = 16,
		.max_cm_retries = 15,
	};
	const struct sim_cm_query query = {
		.service_id = SERVICE, .path = path, .timeout = 17, .max_cm_retries = 15};
	struct sim_device *device = process->engine.sides[0].device;

	if (delay_ns)
		slow_down(process);
	TEST_ASSERT_EQUAL_INT(0, sim_cm_create(process->engine.sim, process, &process->own));
	TEST_ASSERT_EQUAL_INT(0, connects ? sim_cm_send_req(process->own, device, &request)
					  : sim_cm_send_sidr_req(process->own, device, &query));
	send_all(process);
}

static void ask(struct process *process)
{
	send(process);
	if (!delay_ns)
		return;
	advance(process, delay_ns);
	send_all(process);
}

static void answer(struct process *process)
{
	const struct sim_cm_reply reply = {.qpn = 0x200, .starting_psn = 1};

	TEST_ASSERT_NOT_NULL(process->taken);
	TEST_ASSERT_EQUAL_INT(
		0, connects ? sim_cm_send_rep(process->taken, &reply)
			    : sim_cm_send_sidr_rep(process->taken, &(struct sim_cm_answer){0}));
	send_all(process);
	run_all();
}

/* The client's repetition asks for this answer a second time. */
static void refuse_in_vain(struct process *process)
{
	add_rule(process,
		 (struct sim_fault_rule){.action = SIM_FAULT_DROP,
					 .message = connects ? SIM_CM_REJ : SIM_CM_SIDR_REP,
					 .count = 1});
	sim_cm_destroy(process->taken);
	send_all(process);
}

static void delay_answer(struct process *process)
{
	if (connects)
		TEST_ASSERT_EQUAL_INT(0, sim_cm_prepare_mra(process->taken, 18));
}

static void die(struct process *process)
{
	wires_forked(&process->wires);
	sim_cm_forked(process->engine.sim);
	detach_cm(&process->engine, &process->wires);
	process->wire = NULL;
}

/* --- rows --- */

#define STEPS_MAX 10

static const struct row {
	const char *name;
	struct {
		enum who who;
		void (*act)(struct process *process); /* NULL: the end */
	} steps[STEPS_MAX];
	const char *seen[EVERYBODY];
	unsigned int only; /* with: */
#define CONNECTS 1u
#define DELAY	 2u
} rows[] = {
	{"the listener ends",
	 {{B, hear}, {A, ask}, {B, run}, {B, hear_no_more}, {A, wait_for_repetition}, {B, answer}},
	 {"answered", "asked", ""}},
	{"another process listens",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, hear_no_more},
	  {C, hear},
	  {A, wait_for_repetition},
	  {B, answer}},
	 {"answered", "asked", ""}},
	{"the sender listens",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, hear_no_more},
	  {A, hear},
	  {A, wait_for_repetition},
	  {B, answer}},
	 {"answered", "asked", ""}},
	{"the repetition is answered again",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, delay_answer},
	  {B, hear_no_more},
	  {A, wait_for_repetition},
	  {A, wait_for_repetition},
	  {A, wait_for_repetition},
	  {B, answer}},
	 {"MRA answered", "asked", ""},
	 CONNECTS},
	{"the repetition waits for no listener",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, delay_answer},
	  {B, hear_no_more},
	  {A, wait_soon},
	  {A, wait_briefly}},
	 {"MRA", "asked", ""},
	 CONNECTS},
	/* The first request is lost. */
	{"no process has taken the request",
	 {{B, hear},
	  {A, lose_request},
	  {A, ask},
	  {B, hear_no_more},
	  {C, hear},
	  {A, wait_for_repetition},
	  {C, answer}},
	 {"answered", "", "asked"}},
	{"a late listener",
	 {{A, lose_request},
	  {A, ask},
	  {A, wait_soon},
	  {C, hear},
	  {A, wait_for_repetition},
	  {C, answer}},
	 {"answered", "", "asked"}},
	{"a server without room",
	 {{B, hear},
	  {B, be_full},
	  {A, ask},
	  {B, run},
	  {B, hear_no_more},
	  {C, hear},
	  {A, wait_for_repetition},
	  {C, answer}},
	 {"answered", "", "asked"},
	 CONNECTS},
	{"a refusal that is lost",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, refuse_in_vain},
	  {B, hear_no_more},
	  {C, hear},
	  {A, wait_for_repetition},
	  {C, answer}},
	 {"answered", "asked", "asked"}},
	{"a refusal that is lost, and nobody listens",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, refuse_in_vain},
	  {B, hear_no_more},
	  {A, wait_for_repetition}},
	 {"REJ-8", "asked", ""},
	 CONNECTS},
	{"the taker is dead",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, hear_no_more},
	  {C, hear},
	  {A, wait_soon},
	  {B, die},
	  {A, wait_for_repetition},
	  {C, answer}},
	 {"answered", "asked", "asked"}},
	/* The client watches the taker, though the repetition is lost. */
	{"the taker dies after a repetition",
	 {{B, hear},
	  {A, ask},
	  {B, run},
	  {B, hear_no_more},
	  {A, lose_request},
	  {A, wait_soon},
	  {A, wait_briefly},
	  {B, die},
	  {A, wait_for_repetition}},
	 {"REJ-28", "asked", ""},
	 CONNECTS},
	{"the sender is the taker",
	 {{A, hear},
	  {A, ask},
	  {A, run},
	  {A, hear_no_more},
	  {C, hear},
	  {A, wait_for_repetition},
	  {A, answer}},
	 {"asked answered", "", ""}},
	/* The listener changes while the request is under way: the client watches the second one. */
	{"a listener at the time of the arrival",
	 {{B, hear},
	  {A, send},
	  {B, hear_no_more},
	  {C, hear},
	  {A, wait_briefly},
	  {C, die},
	  {A, wait_soon}},
	 {"REJ-28", "", "asked"},
	 CONNECTS | DELAY},
};

static void expect_row(const struct row *row)
{
	char about[128];

	if ((row->only & CONNECTS && !connects) || (row->only & DELAY && !delay_ns))
		return;
	open_all();
	for (unsigned int i = 0; i < STEPS_MAX && row->steps[i].act; i++)
		row->steps[i].act(&processes[row->steps[i].who]);
	for (unsigned int i = 0; i < EVERYBODY; i++) {
		snprintf(about, sizeof(about), "%s: %s%s%s, process %c", row->name,
			 connects ? "REQ" : "SIDR_REQ", delay_ns ? ", delay" : "",
			 infiniband ? ", InfiniBand" : "", "ABC"[i]);
		TEST_ASSERT_EQUAL_STRING_MESSAGE(row->seen[i], processes[i].seen, about);
	}
	close_all();
}

void test_a_repeated_request(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		connects = i & 1;
		delay_ns = i & 2 ? DELAY_NS : 0;
		infiniband = i & 4;
		for (size_t j = 0; j < sizeof(rows) / sizeof(rows[0]); j++)
			expect_row(&rows[j]);
	}
}
