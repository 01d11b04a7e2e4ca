/* SPDX-License-Identifier: MIT */
/*
 * A peer that dies in each step of each exchange. The exchange runs for k steps; then one of the
 * two ends dies silently. This is repeated for every k until the exchange ends before step k. Each
 * time the survivor's calls end, the regions of the dead end are released, the survivor's other
 * connection works, and after closing both ends the world has the same objects as before.
 */
#include "test/rdma/rdma.h"

/* Few, so that a lost operation is noticed. */
#define OPERATIONS  12
#define EXTRAS	    10 /* offers with a callback: more than can be unanswered */
#define LONG_BYTES  9000
#define STEPS_MAX   3000
#define STEPS_QUIET 24 /* steps of an exchange that no call waits for */

/* SILENT counts packets instead of steps: this many still pass, in turns of direction. */
enum death { KILLED, BROKEN, CUT, SILENT, DEATHS };

static const char *const death_names[DEATHS] = {"its device is killed", "its QP is in ERR",
						"its wire is cut", "its packets are lost"};

/* Two ends that talk, and a witness on sim2 that is connected to the survivor. */
static struct {
	struct ends ends;
	struct vb_rdma_agent *agent;
	struct vb_rdma_listener *listener;
	struct vb_rdma *rdma[2];  /* the survivor's end, the witness's */
	struct vb_rdma *spare[2]; /* QPs of the witness, so that no two agents have the same QPN */
	struct vb_sim_objects before;
	int victim;
	unsigned int cuts[2];
} world;

/* The operations under way, by side. */
static struct {
	bool pending[2];
	struct vb_rdma_op op[2];
	int err[2];
	struct vb_rdma_result result[2];
	struct vb_remote_mr *remote; /* of side 0 */
	struct vb_local_mr *local;   /* of side 0 */
	unsigned int extras, extras_ended;
	uint8_t from[LONG_BYTES], into[LONG_BYTES];
} now;

struct exchange {
	const char *name;
	void (*prepare)(void);
	void (*begin)(void);
	bool nobody_waits;
};

/* --- the world --- */

static void small(struct vb_rdma_options *options)
{
	vb_rdma_options_init(options);
	options->message_bytes = 512;
	options->slots = 4;
	options->connections = 3;
	options->operations = OPERATIONS;
	options->pool_bytes = 1 << 18;
}

static struct vb_rdma *join_two(struct vb_rdma_agent *from, struct vb_rdma_agent *to,
				struct vb_rdma_listener *listener, const char *address,
				struct vb_rdma **other)
{
	const struct ends two = {.agent = {from, to}, .listener = listener};
	const struct vb_rdma_request connect = {
		.operation = VB_RDMA_CONNECT, .agent = from, .address = address};
	const struct vb_rdma_request accept = {.operation = VB_RDMA_ACCEPT, .listener = listener};
	struct vb_rdma_op connecting = start(&connect), accepting = start(&accept);
	struct vb_rdma_result client, server;

	OK(finish(&two, connecting, &client));
	OK(finish(&two, accepting, &server));
	*other = server.rdma;
	return client.rdma;
}

static void world_open(int victim)
{
	struct ends *ends = &world.ends;
	struct vb_rdma_options options;

	memset(&now, 0, sizeof(now));
	small(&options);
	fresh_world(3, VB_SIM_CLOCK_VIRTUAL);
	ends_agents(ends, &options, &options);
	world.victim = victim;
	world.agent = agent_on(2, ends->hall, &options);
	world.listener = vb_rdma_listen(world.agent, "witness");
	HAVE(world.listener);
	world.spare[0] =
		join_two(world.agent, world.agent, world.listener, "witness", &world.spare[1]);
	if (victim)
		world.rdma[0] = join_two(ends->agent[0], world.agent, world.listener, "witness",
					 &world.rdma[1]);
	else
		world.rdma[1] = join_two(world.agent, ends->agent[1], ends->listener, "server",
					 &world.rdma[0]);
	/* An agent keeps the last piece of its pool; give each agent a piece from the start. */
	for (int i = 0; i < 2; i++)
		vb_local_mr_put(vb_alloc_local_mr(ends->agent[i], 1, 0));
	vb_sim_count_objects(NULL, &world.before);
	ends->rdma[0] =
		join_two(ends->agent[0], ends->agent[1], ends->listener, "server", &ends->rdma[1]);
}

static void witness_is_well(void)
{
	char got[8] = "";

	for (int i = 0; i < 2; i++) {
		OK(vb_rdma_send(world.rdma[i], "fine", 5, S));
		OK(vb_rdma_receive(world.rdma[!i], got, sizeof(got), NULL, S));
		TEST_ASSERT_EQUAL_STRING("fine", got);
	}
}

/* All operations of the survivor's agent can be taken. */
static void operations_are_free(void)
{
	const struct vb_rdma_request receive = {.operation = VB_RDMA_RECEIVE,
						.rdma = world.rdma[0]};
	struct vb_rdma_op ops[OPERATIONS];

	for (int i = 0; i < OPERATIONS; i++)
		OK(vb_rdma_start(&receive, &ops[i]));
	for (int i = 0; i < OPERATIONS; i++)
		OK(vb_rdma_cancel(ops[i]));
}

static void world_close(void)
{
	struct ends *ends = &world.ends;

	for (int i = 0; i < 2; i++) {
		OK(vb_rdma_close(world.rdma[i]));
		OK(vb_rdma_close(world.spare[i]));
	}
	OK(vb_rdma_listener_close(world.listener));
	OK(vb_rdma_agent_close(world.agent));
	ends_close(ends);
}

/* --- the exchanges: side 0 begins, side 1 has the other part --- */

static void launch(int side, struct vb_rdma_request request)
{
	request.rdma = world.ends.rdma[side];
	now.op[side] = start(&request);
	now.pending[side] = true;
}

static void local_of_0(void)
{
	now.local = vb_alloc_local_mr(world.ends.agent[0], LONG_BYTES, 0);
	HAVE(now.local);
}

static void remote_of_0(void)
{
	local_of_0();
	now.remote = request_mr(&world.ends, 0, LONG_BYTES, VB_MR_ALL, 0);
}

static void nothing(void)
{
}

static void request(void)
{
	launch(0, (struct vb_rdma_request){.operation = VB_RDMA_REQUEST_REMOTE_MR,
					   .length_bytes = 64,
					   .access = VB_MR_ALL});
}

static void request_a_lease(void)
{
	launch(0, (struct vb_rdma_request){.operation = VB_RDMA_REQUEST_REMOTE_MR,
					   .length_bytes = 64,
					   .access = VB_MR_ALL,
					   .lease_ns = 100 * S});
}

static void hand(void)
{
	launch(0, (struct vb_rdma_request){.operation = VB_RDMA_SEND_MR, .remote = now.remote});
	launch(1, (struct vb_rdma_request){.operation = VB_RDMA_RECEIVE_LOCAL_MR});
}

static void offer(void)
{
	launch(0, (struct vb_rdma_request){.operation = VB_RDMA_SEND_LOCAL_MR,
					   .slice.mr = now.local,
					   .access = VB_MR_READ});
	launch(1, (struct vb_rdma_request){.operation = VB_RDMA_RECEIVE_REMOTE_MR});
}

static void hand_to_nobody(void)
{
	launch(0, (struct vb_rdma_request){.operation = VB_RDMA_SEND_MR, .remote = now.remote});
}

static void extra_ended(void *arg, const struct vb_rdma_result *result)
{
	(void)arg;
	TEST_ASSERT_TRUE(result->err == 0 || result->err == EIO);
	now.extras_ended++;
}

static void offer_many_to_nobody(void)
{
	const struct vb_rdma_request extra = {.operation = VB_RDMA_SEND_LOCAL_MR,
					      .rdma = world.ends.rdma[0],
					      .slice.mr = now.local,
					      .access = VB_MR_READ,
					      .callback = extra_ended};

	for (now.extras = 0; now.extras < EXTRAS; now.extras++)
		OK(vb_rdma_start(&extra, NULL));
	launch(0, (struct vb_rdma_request){.operation = VB_RDMA_SEND_LOCAL_MR,
					   .slice.mr = now.local,
					   .access = VB_MR_READ});
}

static void release(void)
{
	vb_remote_mr_put(now.remote);
	now.remote = NULL;
}

static void send_long(void)
{
	fill(now.from, LONG_BYTES, 11);
	launch(0, (struct vb_rdma_request){
			  .operation = VB_RDMA_SEND, .from = now.from, .length_bytes = LONG_BYTES});
	launch(1, (struct vb_rdma_request){.operation = VB_RDMA_RECEIVE,
					   .into = now.into,
					   .length_bytes = LONG_BYTES});
}

static void one_sided(enum vb_rdma_operation operation)
{
	launch(0, (struct vb_rdma_request){.operation = operation,
					   .slice = {now.local, 0, LONG_BYTES},
					   .remote = now.remote,
					   .compare_add = 1});
}

static void write_long(void)
{
	one_sided(VB_RDMA_WRITE);
}

static void read_long(void)
{
	one_sided(VB_RDMA_READ);
}

static void compare_swap(void)
{
	one_sided(VB_RDMA_COMPARE_SWAP);
}

static void fetch_add(void)
{
	one_sided(VB_RDMA_FETCH_ADD);
}

/* --- a death --- */

static void step(int side)
{
	if (!now.pending[side]) {
		OK(vb_rdma_progress(world.ends.agent[side], 0));
		return;
	}
	now.err[side] = vb_rdma_poll(now.op[side], &now.result[side]);
	now.pending[side] = now.err[side] == EAGAIN;
}

static struct ibv_qp *qp_of(int side)
{
	return vb_rdma_qp(world.ends.rdma[side]);
}

/* This many packets still pass, in turns of direction; the first one is the victim's. */
static void cut(uint64_t passing)
{
	const char *const names[] = {"sim0", "sim1"};

	for (int i = 0; i < 2; i++) {
		int from = i ? !world.victim : world.victim;
		const struct vb_fault_rule rule = {.action = VB_FAULT_DROP,
						   .from = names[from],
						   .dest_qpn = qp_of(!from)->qp_num,
						   .skip = (passing + !i) / 2};

		OK(vb_fault_add(NULL, &rule, &world.cuts[i]));
	}
}

static void die(enum death death)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (death == KILLED)
		OK(vb_sim_kill_device(qp_of(world.victim)->context));
	else if (death == BROKEN)
		OK(vb_modify_qp(qp_of(world.victim), &attr, IBV_QP_STATE));
	else if (death == CUT)
		cut(0);
}

static bool is_cut(void)
{
	return vb_fault_hits(NULL, world.cuts[0]) || vb_fault_hits(NULL, world.cuts[1]);
}

/* The call of this side ends, or is cancelled at its timeout. */
static void end_call(int side)
{
	if (!now.pending[side])
		return;
	now.err[side] = vb_rdma_wait(now.op[side], 10 * S, &now.result[side]);
	now.pending[side] = false;
	if (now.err[side] == ETIMEDOUT) {
		assert_says("not within");
		OK(vb_rdma_cancel(now.op[side]));
	} else if (now.err[side]) {
		FAILS(EIO, now.err[side]);
		assert_says("the peer is gone");
	}
}

/* A call that is not answered in time reveals the death of the peer. From then on all calls fail,
 * with the reason. */
static void notices(int side)
{
	struct vb_rdma *rdma = world.ends.rdma[side];
	const char *why;

	if (!vb_rdma_error(rdma, NULL)) {
		TEST_ASSERT_NULL(vb_request_remote_mr(rdma, 8, 0, VB_MR_READ, 0, S));
		TEST_ASSERT_TRUE(errno == EIO || errno == ETIMEDOUT);
	}
	/* No answer comes: this waits for all retries. */
	if (!vb_rdma_error(rdma, NULL))
		FAILS(EIO, vb_rdma_send(rdma, now.from, LONG_BYTES, 10 * S));
	FAILS(EIO, vb_rdma_error(rdma, &why));
	TEST_ASSERT_MESSAGE(strstr(why, "the peer is gone") != NULL, why);
	FAILS(EIO, vb_rdma_send(rdma, "x", 1, VB_FOREVER));
	assert_says("the peer is gone");
	FAILS(EIO, vb_rdma_receive(rdma, now.into, LONG_BYTES, NULL, VB_FOREVER));
	assert_says("the peer is gone");
}

static void drop_results(void)
{
	for (int side = 0; side < 2; side++) {
		if (now.err[side])
			continue;
		vb_local_mr_put(now.result[side].local);
		vb_remote_mr_put(now.result[side].remote);
	}
	vb_remote_mr_put(now.remote);
	vb_local_mr_put(now.local);
}

static void after_the_death(void)
{
	int survivor = !world.victim;
	struct vb_sim_objects objects;

	end_call(survivor);
	notices(survivor);
	witness_is_well();
	/* If only its wire is cut, the other end is a survivor, too. */
	end_call(world.victim);
	notices(world.victim);
	TEST_ASSERT_EQUAL_UINT(now.extras, now.extras_ended);
	vb_sim_count_objects(NULL, &objects);
	TEST_ASSERT_EQUAL_UINT32(world.before.mrs, objects.mrs);
	drop_results();
	for (int side = 0; side < 2; side++) {
		OK(vb_rdma_close(world.ends.rdma[side]));
		world.ends.rdma[side] = NULL;
	}
	vb_sim_count_objects(NULL, &objects);
	TEST_ASSERT_EQUAL_MEMORY(&world.before, &objects, sizeof(objects));
	operations_are_free();
	witness_is_well();
	world_close();
}

static bool is_over(const struct exchange *exchange, unsigned int steps)
{
	if (exchange->nobody_waits)
		return steps > STEPS_QUIET;
	return !now.pending[0] && !now.pending[1];
}

/* Returns false if the exchange ended before this step. */
static bool dies_after(const struct exchange *exchange, int victim, enum death death,
		       unsigned int count)
{
	unsigned int steps = death == SILENT ? STEPS_MAX : count;
	bool over = false;

	world_open(victim);
	exchange->prepare();
	if (death == SILENT)
		cut(count);
	exchange->begin();
	for (unsigned int i = 0; i < steps && !over && !(death == SILENT && is_cut()); i++) {
		step((int)(i % 2));
		over = is_over(exchange, i);
	}
	if (death == SILENT && !is_cut())
		cut(0);
	die(death);
	after_the_death();
	return !over;
}

static void each_step_of(const struct exchange *exchange)
{
	for (int victim = 0; victim < 2; victim++)
		for (enum death death = KILLED; death < DEATHS; death++) {
			unsigned int steps = 0;

			while (dies_after(exchange, victim, death, steps) && steps < STEPS_MAX)
				steps++;
			printf("%s: side %d, %s: up to %u %s\n", exchange->name, victim,
			       death_names[death], steps, death == SILENT ? "packets" : "steps");
			TEST_ASSERT_TRUE(steps > 0 && steps < STEPS_MAX);
		}
}

static void run_deaths(const char *name, void (*prepare)(void), void (*begin)(void))
{
	const struct exchange exchange = {name, prepare, begin, begin == release};

	each_step_of(&exchange);
}

void setUp(void)
{
}

void tearDown(void)
{
}

void test_a_peer_that_dies_while_memory_is_requested(void)
{
	run_deaths("request", nothing, request);
	run_deaths("request with a lease", nothing, request_a_lease);
}

void test_a_peer_that_dies_while_a_region_is_handed_over(void)
{
	run_deaths("hand", remote_of_0, hand);
	run_deaths("hand to nobody", remote_of_0, hand_to_nobody);
}

void test_a_peer_that_dies_while_a_region_is_offered(void)
{
	run_deaths("offer", local_of_0, offer);
	run_deaths("many offers to nobody", local_of_0, offer_many_to_nobody);
}

void test_a_peer_that_dies_while_a_region_is_released(void)
{
	run_deaths("release", remote_of_0, release);
}

void test_a_peer_that_dies_in_the_middle_of_a_long_message(void)
{
	run_deaths("message", nothing, send_long);
}

void test_a_peer_that_dies_in_the_middle_of_a_write_or_read(void)
{
	run_deaths("write", remote_of_0, write_long);
	run_deaths("read", remote_of_0, read_long);
}

void test_a_peer_that_dies_in_the_middle_of_an_atomic(void)
{
	run_deaths("compare and swap", remote_of_0, compare_swap);
	run_deaths("fetch and add", remote_of_0, fetch_add);
}

/* The owner does not notice the death, but gets its memory back when the lease ends. */
void test_the_lease_of_a_peer_that_died_ends(void)
{
	struct vb_sim_objects objects;

	world_open(0);
	now.remote = request_mr(&world.ends, 0, 64, VB_MR_ALL, S);
	die(CUT);
	OK(vb_sim_run(NULL, S));
	OK(vb_rdma_progress(world.ends.agent[1], 0));
	OK(vb_rdma_error(world.ends.rdma[1], NULL));
	vb_sim_count_objects(NULL, &objects);
	TEST_ASSERT_EQUAL_UINT32(world.before.mrs, objects.mrs);
	after_the_death();
}

/* The wait for a goodbye that the peer does not receive is limited. */
void test_closing_a_connection_whose_peer_died(void)
{
	for (enum death death = KILLED; death < DEATHS; death++) {
		uint64_t began_ns;

		world_open(0);
		remote_of_0();
		die(death);
		began_ns = vb_sim_now_ns(NULL);
		for (int side = 1; side >= 0; side--) {
			OK(vb_rdma_close(world.ends.rdma[side]));
			world.ends.rdma[side] = NULL;
		}
		TEST_ASSERT_TRUE(vb_sim_now_ns(NULL) - began_ns <= 2 * S);
		TEST_ASSERT_EQUAL_UINT64(0, vb_remote_mr_left_ns(now.remote));
		drop_results();
		witness_is_well();
		world_close();
	}
}

/* Runs both ends of a connection that is being made. Returns false if it needed fewer steps. */
static bool falls_silent_after(int victim, unsigned int steps)
{
	struct ends *ends = &world.ends;
	const struct vb_rdma_request requests[] = {
		{.operation = VB_RDMA_CONNECT, .agent = ends->agent[0], .address = "server"},
		{.operation = VB_RDMA_ACCEPT, .listener = ends->listener},
	};
	bool made;

	for (int side = 0; side < 2; side++) {
		now.op[side] = start(&requests[side]);
		now.pending[side] = true;
	}
	for (unsigned int i = 0; i < steps; i++)
		step((int)(i % 2));
	made = !now.pending[0] && !now.pending[1];
	for (int i = 0; i < 2; i++) {
		int side = i ? victim : !victim;

		if (now.pending[side])
			now.err[side] = vb_rdma_wait(now.op[side], 10 * S, &now.result[side]);
		if (!now.err[side]) {
			OK(vb_rdma_close(now.result[side].rdma));
			continue;
		}
		assert_says(now.err[side] == ETIMEDOUT ? "rdma: " : "rdma: the line");
		if (vb_rdma_cancel(now.op[side]))
			assert_says("was taken");
	}
	return !made;
}

void test_a_peer_that_falls_silent_in_each_step_of_connecting(void)
{
	for (int victim = 0; victim < 2; victim++) {
		bool goes_on = true;

		for (unsigned int steps = 0; goes_on; steps++) {
			struct vb_sim_objects objects;

			TEST_ASSERT_TRUE(steps < 100);
			world_open(victim);
			for (int side = 0; side < 2; side++) {
				OK(vb_rdma_close(world.ends.rdma[side]));
				world.ends.rdma[side] = NULL;
			}
			goes_on = falls_silent_after(victim, steps);
			printf("connect: side %d: %u steps\n", victim, steps);
			vb_sim_count_objects(NULL, &objects);
			TEST_ASSERT_EQUAL_MEMORY(&world.before, &objects, sizeof(objects));
			operations_are_free();
			witness_is_well();
			world_close();
		}
	}
}
