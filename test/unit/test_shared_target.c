/* SPDX-License-Identifier: MIT */
/* ibv_open_qp(3) of a target QP that another process has created. */
#include "backends/sim/verb/verbs.h"
#include "backends/sim/wire/shared_private.h"
#include "backends/sim/world/world.h"
#include "test/unit/seed.h"
#include "test/unit/sharer_target.h"

void setUp(void)
{
	begin_sharing();
}

void tearDown(void)
{
	end_sharing();
}

static struct sharing here;
static uint32_t number, srq;

/* The other process has a target; this one opens it, and has an SRQ of the domain. */
static struct ibv_qp *open_theirs(void)
{
	struct share_answer answer = {0};
	const struct share_answer *theirs;

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	theirs = share_ask(&other, SHARE_MAKE_TARGET, 0);
	TEST_ASSERT_EQUAL_INT(0, theirs->error);
	number = theirs->number;
	here = (struct sharing){.xrcd = share_domain(a.context, share_file, 0)};
	TEST_ASSERT_NOT_NULL(here.xrcd);
	share_make_srq(&here, &answer);
	TEST_ASSERT_EQUAL_INT(0, answer.error);
	srq = answer.number;
	target = share_open_target(here.xrcd, number);
	TEST_ASSERT_NOT_NULL(target);
	return target;
}

static void make_initiator(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_XRC_SEND);

	attr.recv_cq = NULL;
	attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	initiator = B.create_qp_ex(a.context, &attr);
	connect_qp(initiator, &a, number);
}

/* Connects the target by the handle of this process. */
static void connect_theirs(void)
{
	open_theirs();
	make_initiator();
	connect_qp(target, &a, initiator->qp_num);
}

static void restart(void)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};

	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(initiator, &reset, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(0, B.modify_qp(target, &reset, IBV_QP_STATE));
	connect_qp(initiator, &a, number);
	connect_qp(target, &a, initiator->qp_num);
}

/* A message goes through the other process to the SRQ of this one. */
static void expect_message(uint32_t bytes)
{
	unsigned int receives = 0;

	TEST_ASSERT_EQUAL_INT(0, share_post(&here, 1));
	post_xrc(IBV_WR_SEND, srq, 0, bytes, 0);
	for (unsigned int i = 0; i < 2; i++) {
		const struct ibv_wc wc = share_wait(a.cq);

		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		if (wc.opcode == IBV_WC_RECV && wc.byte_len == bytes && wc.qp_num == number)
			receives++;
	}
	TEST_ASSERT_EQUAL_UINT(1, receives);
}

static enum ibv_qp_state their_state(void)
{
	return share_ask(&other, SHARE_QUERY_TARGET, 0)->number;
}

static struct share_answer own_query(void)
{
	struct share_answer answer = {0};

	share_query(target, &answer);
	return answer;
}

static void expect_none(void)
{
	expect_null(EINVAL, share_open_target(here.xrcd, number));
	expect_reason(
		VB_WHY_QP_OPEN_NONE,
		"open_qp: the XRC domain has no QP 0x%x of type XRC_RECV; give the qp_num of "
		"an XRC_RECV QP that was created with a domain of the same inode, and that is "
		"not destroyed",
		number);
}

void test_an_opener_connects_the_target_of_another_process(void)
{
	open_theirs();
	TEST_ASSERT_EQUAL_HEX32(number, target->qp_num);
	TEST_ASSERT_EQUAL_PTR(&a, target->qp_context);
	TEST_ASSERT_EQUAL_INT(IBV_QPT_XRC_RECV, target->qp_type);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, target->state);
	make_initiator();
	for (unsigned int round = 0; round < 5; round++) {
		connect_qp(target, &a, initiator->qp_num);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, target->state);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, their_state());
		TEST_ASSERT_EQUAL_HEX32(initiator->qp_num, own_query().count);
		expect_message(100 + round);
		expect_message(1200 + round);
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_RESET_TARGET, 0));
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, own_query().number);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, target->state);
		TEST_ASSERT_EQUAL_INT(
			0, B.modify_qp(initiator, &(struct ibv_qp_attr){0}, IBV_QP_STATE));
		connect_qp(initiator, &a, number);
	}
}

void test_a_handle_opened_late_has_the_state_of_the_target(void)
{
	struct ibv_qp *second;

	connect_theirs();
	second = share_open_target(here.xrcd, number);
	TEST_ASSERT_NOT_NULL(second);
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, second->state);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	target = second;
	expect_message(500);
}

void test_the_process_of_the_target_refuses_a_change(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

	open_theirs();
	TEST_ASSERT_EQUAL_INT(EINVAL, B.modify_qp(target, &attr, IBV_QP_STATE));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RESET, target->state);
	TEST_ASSERT_EQUAL_STRING("modify_qp", B.last_why()->verb);
	TEST_ASSERT_NOT_NULL(strstr(sentence(), "RESET to RTS"));
	make_initiator();
	connect_qp(target, &a, initiator->qp_num);
	expect_message(10);
}

/* --- how long the target lives --- */

void test_a_target_lives_until_its_last_handle_is_closed(void)
{
	connect_theirs();
	expect_message(10);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_TARGET, 0));
	for (unsigned int round = 0; round < 3; round++) {
		expect_message(20 + round);
		restart();
		expect_message(30 + round);
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_TARGET, (int)number));
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, their_state());
		TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_TARGET, 0));
	}
	TEST_ASSERT_EQUAL_INT(EBUSY, B.close_xrcd(here.xrcd));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	expect_none();
	TEST_ASSERT_EQUAL_INT(EINVAL, ask(SHARE_OPEN_TARGET, (int)number));
}

void test_the_creators_handle_keeps_the_target(void)
{
	connect_theirs();
	for (unsigned int round = 0; round < 3; round++) {
		expect_message(20 + round);
		TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, their_state());
		target = share_open_target(here.xrcd, number);
		TEST_ASSERT_NOT_NULL(target);
		expect_message(40 + round);
	}
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_TARGET, 0));
	expect_none();
}

void test_each_of_two_handles_keeps_the_target(void)
{
	struct ibv_qp *second;

	connect_theirs();
	second = share_open_target(here.xrcd, number);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_TARGET, 0));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	expect_message(20);
	target = second;
	restart();
	expect_message(21);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(second));
	expect_none();
}

/* The creator has the domain until the target ends. */
void test_a_target_keeps_its_domain(void)
{
	connect_theirs();
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_TARGET, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	expect_message(20);
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	expect_none();
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(here.srq));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(here.xrcd));
	TEST_ASSERT_EQUAL_INT(EAGAIN, ask(SHARE_OPEN_DOMAIN, 0));
}

void test_a_killed_opener_keeps_no_target(void)
{
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	domain = share_domain(a.context, share_file, 0);
	target = share_make_target(domain);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_TARGET, (int)target->qp_num));
	share_kill(&other);
	number = target->qp_num;
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	TEST_ASSERT_NULL(sim_table_find(&context_of(a.context)->device->engine->qps, number));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(domain));
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
}

static void expect_ended(const char *verb)
{
	expect_reason(VB_WHY_QP_FAR_ENDED,
		      "%s: the process that has created QP 0x%x has ended or has closed the "
		      "device, and the QP with it; destroy this handle, and connect with a QP of a "
		      "process that runs",
		      verb, number);
}

void test_the_process_of_the_target_is_killed(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init;

	connect_theirs();
	expect_message(20);
	share_kill(&other);
	TEST_ASSERT_EQUAL_INT(EIO, B.modify_qp(target, &attr, IBV_QP_STATE));
	expect_ended("modify_qp");
	TEST_ASSERT_EQUAL_INT(EIO, B.query_qp(target, &attr, IBV_QP_STATE, &init));
	expect_ended("query_qp");
	post_xrc(IBV_WR_SEND, srq, 0, 10, 0);
	TEST_ASSERT_EQUAL_INT(IBV_WC_RETRY_EXC_ERR, sent());
	/* The process was buried meanwhile. */
	TEST_ASSERT_EQUAL_INT(EIO, B.query_qp(target, &attr, IBV_QP_STATE, &init));
	expect_ended("query_qp");
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	expect_none();
	/* A new target, of this process. */
	target = share_make_target(here.xrcd);
	number = target->qp_num;
	restart();
	expect_message(30);
}

void test_the_process_of_the_target_closes_the_device(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	connect_theirs();
	expect_message(20);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DEVICE, 0));
	TEST_ASSERT_EQUAL_UINT32(IBV_EVENT_QP_FATAL, share_event(target));
	TEST_ASSERT_EQUAL_INT(EIO, B.modify_qp(target, &attr, IBV_QP_STATE));
	expect_ended("modify_qp");
	TEST_ASSERT_EQUAL_INT(0, B.destroy_qp(target));
	TEST_ASSERT_EQUAL_INT(0, B.destroy_srq(here.srq));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(here.xrcd));
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
}

/* The answer to the first call, which is refused, comes while the second call waits for its own. */
void test_the_process_of_the_target_is_stopped(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};

	connect_theirs();
	share_stop(&other);
	TEST_ASSERT_EQUAL_INT(ETIMEDOUT, B.modify_qp(target, &attr, IBV_QP_STATE));
	expect_reason(VB_WHY_QP_FAR_SILENT,
		      "modify_qp: the process that has QP 0x%x has not answered for 2 s; let that "
		      "process run on, and repeat the call",
		      number);
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, own_query().number);
	TEST_ASSERT_EQUAL_INT(0, own_query().error);
	restart();
	expect_message(20);
}

static void *query_theirs(void *arg)
{
	share_query(target, arg);
	return NULL;
}

/* Answers the error, and the text of the reason. */
static void *modify_theirs(void *arg)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct share_answer *answer = arg;

	answer->error = B.modify_qp(target, &attr, IBV_QP_STATE);
	snprintf((char *)answer->bytes, sizeof(answer->bytes), "%s", B.last_why()->text);
	return NULL;
}

/* A thread that asks the process of the target to do a verb. */
struct asker {
	pthread_t thread;
	void *stack;
	uint32_t serial; /* of the question */
	struct share_answer answer;
};

enum { STACK_BYTES = 1 << 20 };

/* The thread waits for its answer when this returns. */
static void start_verb(struct asker *asker, void *(*verb)(void *arg))
{
	struct vb_sim *world = context_of(a.context)->world;
	const uint32_t before = world->calls.last_serial;
	pthread_attr_t attr;

	asker->stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, asker->stack, STACK_BYTES);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&asker->thread, &attr, verb, &asker->answer));
	pthread_attr_destroy(&attr);
	for (asker->serial = before; asker->serial == before;) {
		pthread_mutex_lock(&world->driver.mutex);
		asker->serial = world->calls.last_serial;
		pthread_mutex_unlock(&world->driver.mutex);
	}
}

static void start_asking(struct asker *asker)
{
	start_verb(asker, query_theirs);
}

static void end_asking(const struct asker *asker)
{
	pthread_join(asker->thread, NULL);
	munmap(asker->stack, STACK_BYTES);
}

static void expect_state(const struct asker *asker, enum ibv_qp_state state)
{
	end_asking(asker);
	TEST_ASSERT_EQUAL_INT(0, asker->answer.error);
	TEST_ASSERT_EQUAL_INT(state, asker->answer.number);
}

/* Hands over bytes as the wire does with those of another process. */
static void be_called(uint64_t process, const void *bytes, size_t length)
{
	struct vb_sim *world = context_of(a.context)->world;
	const struct shared *shared = shared_of(world->shared);

	pthread_mutex_lock(&world->driver.mutex);
	shared->called(shared->called_arg, process, bytes, length);
	pthread_mutex_unlock(&world->driver.mutex);
}

/* A thread waits for the answer of one process to one question. */
void test_answers_that_nobody_waits_for(void)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct world_call answer = {.is_answer = true, .error = EPERM};
	static struct asker asker;
	uint64_t process;

	connect_theirs();
	process = world_qp_process(world, context_of(a.context)->device->engine, number);
	share_stop(&other);
	start_asking(&asker);
	answer.serial = asker.serial;
	be_called(12345, &answer, sizeof(answer));
	be_called(process, &answer, sizeof(answer) - 1);
	answer.serial--;
	be_called(process, &answer, sizeof(answer));
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	expect_state(&asker, IBV_QPS_RTS);
}

/* The thread that has asked first has its answer first. */
void test_two_threads_wait_for_answers(void)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct world_call answer = {.is_answer = true, .attr = {.qp_state = IBV_QPS_SQE}};
	static struct asker askers[2];
	uint64_t process;

	connect_theirs();
	process = world_qp_process(world, context_of(a.context)->device->engine, number);
	share_stop(&other);
	start_asking(&askers[0]);
	start_asking(&askers[1]);
	answer.serial = askers[0].serial;
	be_called(process, &answer, sizeof(answer));
	expect_state(&askers[0], IBV_QPS_SQE);
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	expect_state(&askers[1], IBV_QPS_RTS);
}

/* The serial of a question is never 0, which is the serial of a notice. */
void test_questions_whose_serials_wrap_around(void)
{
	struct vb_sim *world = context_of(a.context)->world;

	connect_theirs();
	pthread_mutex_lock(&world->driver.mutex);
	world->calls.last_serial = UINT32_MAX - 2;
	pthread_mutex_unlock(&world->driver.mutex);
	for (unsigned int i = 0; i < 4; i++) {
		const struct share_answer answer = own_query();

		TEST_ASSERT_EQUAL_INT(0, answer.error);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, answer.number);
	}
	expect_message(20);
}

/* The text of the answer has no terminating NUL. */
void test_an_answer_with_a_long_text(void)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct world_call answer = {
		.is_answer = true, .error = EPERM, .why = {.reason = VB_WHY_ERRNO_ONLY}};
	static struct asker asker;
	uint64_t process;

	connect_theirs();
	process = world_qp_process(world, context_of(a.context)->device->engine, number);
	share_stop(&other);
	start_verb(&asker, modify_theirs);
	answer.serial = asker.serial;
	memset(answer.text, 'x', sizeof(answer.text));
	be_called(process, &answer, sizeof(answer));
	end_asking(&asker);
	TEST_ASSERT_EQUAL_INT(EPERM, asker.answer.error);
	TEST_ASSERT_EQUAL_UINT(sizeof(answer.text) - 1, strlen((char *)asker.answer.bytes));
	TEST_ASSERT_EQUAL_UINT(sizeof(answer.text) - 1, strspn((char *)asker.answer.bytes, "x"));
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	restart();
	expect_message(20);
}

/* vb_sim_reset() ends the wait of a thread for an answer with EIO. */
void test_a_reset_while_a_thread_waits_for_an_answer(void)
{
	static struct asker asker;

	connect_theirs();
	expect_message(20);
	share_stop(&other);
	start_asking(&asker);
	vb_sim_reset();
	a.context = NULL;
	end_asking(&asker);
	TEST_ASSERT_EQUAL_INT(EIO, asker.answer.error);
	/* The next world of this process reaches the other process. */
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	open_own();
	connect_theirs();
	expect_message(30);
}

/* Sends this process the answer to a question that no thread has asked. */
static int hear_an_answer(void)
{
	const struct world_call answer = {.is_answer = true, .serial = 12345};
	struct vb_sim *world = context_of(a.context)->world;
	int err;

	pthread_mutex_lock(&world->driver.mutex);
	err = world_resume_wires(world);
	if (!err) {
		world_tell(world, shared_process(world->shared), &answer);
		driver_catch_up(&world->driver);
	}
	pthread_mutex_unlock(&world->driver.mutex);
	return err;
}

/* The child of a fork has no thread that waits, and may use its memory for something else. */
void test_a_child_waits_for_no_answer(void)
{
	static struct asker asker;
	int status;
	pid_t child;

	connect_theirs();
	share_stop(&other);
	start_asking(&asker);
	child = fork();
	if (!child) {
		signal(SIGSEGV, SIG_DFL);
		munmap(asker.stack, STACK_BYTES);
		_exit(hear_an_answer());
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	TEST_ASSERT_EQUAL_INT(0, kill(other.pid, SIGCONT));
	expect_state(&asker, IBV_QPS_RTS);
}

/* --- events --- */

void test_each_handle_of_each_process_gets_an_event(void)
{
	connect_theirs();
	expect_message(20);
	for (unsigned int round = 0; round < 3; round++) {
		their_rkey = 0x1234;
		post_xrc(IBV_WR_RDMA_WRITE, srq, 0, 10, 0x1000);
		TEST_ASSERT_EQUAL_INT(IBV_WC_REM_ACCESS_ERR, sent());
		TEST_ASSERT_EQUAL_UINT32(IBV_EVENT_QP_ACCESS_ERR, share_event(target));
		TEST_ASSERT_EQUAL_UINT32(IBV_EVENT_QP_ACCESS_ERR,
					 share_ask(&other, SHARE_EVENT, 0)->number);
		TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, own_query().number);
		restart();
		expect_message(30 + round);
	}
}

/* --- opens that fail --- */

void test_only_target_qps_of_the_domain_are_opened(void)
{
	const int file = memfd_create("other", MFD_CLOEXEC);
	struct ibv_xrcd *mine;

	open_theirs();
	mine = share_domain(a.context, file, O_CREAT);
	expect_null(EINVAL, share_open_target(mine, number));
	expect_null(EINVAL, share_open_target(here.xrcd, number + 1));
	TEST_ASSERT_NOT_NULL(share_open_target(here.xrcd, number));
	close(file);
}

/* --- calls that no process makes --- */

static struct world_call random_call(uint64_t *random, uint32_t own, const struct sim_xrcd *xrcd)
{
	struct world_call call;
	uint8_t *bytes = (uint8_t *)&call;

	for (size_t i = 0; i < sizeof(call); i++)
		bytes[i] = (uint8_t)sim_random_next(random);
	call.what %= CALL_DESTROY + 2;
	call.is_answer = false;
	if (sim_random_next(random) % 4)
		call.number = sim_random_next(random) % 4 ? own : call.number % 64;
	if (sim_random_next(random) % 4)
		call.device = 0;
	if (sim_random_next(random) % 4)
		memcpy(call.key, xrcd->key, sizeof(call.key));
	call.mask %= 64;
	return call;
}

/* Does what another process asks for. Returns the error of the answer. */
static int serve(uint64_t process, enum verb_call what, const struct ibv_qp *qp,
		 enum ibv_qp_state state)
{
	struct vb_sim *world = context_of(a.context)->world;
	const struct sim_xrcd *xrcd = ((struct xrcd *)here.xrcd)->domain->engine;
	struct world_call call = {.what = what,
				  .number = qp->qp_num,
				  .key = {xrcd->key[0], xrcd->key[1]},
				  .attr = {.qp_state = state},
				  .mask = IBV_QP_STATE};

	pthread_mutex_lock(&world->driver.mutex);
	world->calls.serve(world, process, &call);
	pthread_mutex_unlock(&world->driver.mutex);
	return call.error;
}

/* The other process has opened the target; a third one has not. */
void test_only_openers_change_a_target(void)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct ibv_qp *own;
	uint64_t process;

	connect_theirs();
	process = world_qp_process(world, context_of(a.context)->device->engine, number);
	own = share_make_target(here.xrcd);
	connect_qp(own, &a, initiator->qp_num);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_TARGET, (int)own->qp_num));
	TEST_ASSERT_EQUAL_INT(EIO, serve(12345, CALL_MODIFY, own, IBV_QPS_ERR));
	TEST_ASSERT_EQUAL_INT(EIO, serve(12345, CALL_QUERY, own, 0));
	TEST_ASSERT_EQUAL_INT(EIO, serve(12345, CALL_CLOSE, own, 0));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_RTS, their_state());
	TEST_ASSERT_EQUAL_INT(0, serve(process, CALL_MODIFY, own, IBV_QPS_ERR));
	TEST_ASSERT_EQUAL_INT(IBV_QPS_ERR, their_state());
}

static void tell_event(uint64_t process, uint32_t device, enum ibv_event_type type)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct world_call call = {
		.what = CALL_EVENT, .device = device, .number = number, .mask = type};

	pthread_mutex_lock(&world->driver.mutex);
	world->calls.serve(world, process, &call);
	pthread_mutex_unlock(&world->driver.mutex);
}

/* Only the process of the target says what happens to it, and nothing else. */
void test_events_that_are_not_of_the_target(void)
{
	struct vb_sim *world = context_of(a.context)->world;
	struct pollfd one = {a.context->async_fd, POLLIN, 0};
	uint64_t process;

	connect_theirs();
	process = world_qp_process(world, context_of(a.context)->device->engine, number);
	tell_event(12345, 0, IBV_EVENT_QP_FATAL);
	tell_event(process, 1, IBV_EVENT_QP_FATAL);
	tell_event(process, 0, IBV_EVENT_PORT_ERR);
	tell_event(process, 0, IBV_EVENT_SRQ_ERR);
	tell_event(process, 0, (enum ibv_event_type)77);
	TEST_ASSERT_EQUAL_INT(0, poll(&one, 1, 0));
	tell_event(process, 0, IBV_EVENT_QP_REQ_ERR);
	TEST_ASSERT_EQUAL_UINT32(IBV_EVENT_QP_REQ_ERR, share_event(target));
}

void test_calls_that_no_process_makes(void)
{
	struct vb_sim *world = context_of(a.context)->world;
	uint64_t random = choose_seed(), process;
	uint32_t own;

	connect_theirs();
	process = world_qp_process(world, context_of(a.context)->device->engine, number);
	TEST_ASSERT_TRUE(process != 0);
	own = share_make_target(here.xrcd)->qp_num;
	for (unsigned int round = 0; round < 20000; round++) {
		struct world_call call =
			random_call(&random, own, ((struct xrcd *)here.xrcd)->domain->engine);

		pthread_mutex_lock(&world->driver.mutex);
		world->calls.serve(world, round % 3 ? process : 12345, &call);
		pthread_mutex_unlock(&world->driver.mutex);
	}
	expect_message(20);
}
