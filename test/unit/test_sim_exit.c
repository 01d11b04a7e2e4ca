/* SPDX-License-Identifier: MIT */
/*
 * exit(3) while threads are inside verbs, on the real clock with the wire `shared`: the process ends soon, with its
 * own status, and leaves no file of its world. Each test forks a process; alarm(2) ends one that hangs.
 */
#include "backends/sim/world/process.h"
#include "test/unit/event_waits.h"
#include "test/unit/shared_world.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define B	     vb_backend_sim
#define HANG_SECONDS 60
#define STATUS	     7
#define OPEN_TIMES   10
#define MANY_BYTES   (1u << 20) /* more pages than are touched: reg_mr reads /proc/self/maps */

static struct ibv_cq *cq;
static sem_t begun;
static void (*verb)(void);

void setUp(void)
{
	name_world();
}

void tearDown(void)
{
}

/* --- verbs: they may fail once exit(3) has ended the wire --- */

static void poll_once(void)
{
	struct ibv_wc wc;

	ibv_poll_cq(cq, 1, &wc);
}

static void register_once(void)
{
	static char memory[MANY_BYTES];
	struct ibv_pd *pd = B.alloc_pd(context);
	struct ibv_mr *mr = pd ? B.reg_mr(pd, memory, sizeof(memory), 0) : NULL;

	if (mr)
		B.dereg_mr(mr);
	if (pd)
		B.dealloc_pd(pd);
}

/* No device stays open between two calls. */
static void open_once(void)
{
	struct ibv_device **list = B.get_device_list(NULL);
	struct ibv_context *opened = list ? B.open_device(list[0]) : NULL;

	if (opened)
		B.close_device(opened);
	if (list)
		B.free_device_list(list);
}

/* --- the process that exits --- */

static void configure(void)
{
	struct vb_sim_config config = {
		.device_count = 1,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_SHARED}},
		.clock = VB_SIM_CLOCK_REAL,
	};

	strcpy(config.world, world_name);
	if (vb_sim_configure(&config))
		_exit(1);
}

static void open_objects(void)
{
	struct ibv_device **list = B.get_device_list(NULL);

	context = B.open_device(list[0]);
	B.free_device_list(list);
	channel = B.create_comp_channel(context);
	cq = B.create_cq(context, 16, NULL, channel, 0);
	if (!cq || ibv_req_notify_cq(cq, 0))
		_exit(1);
}

static void *repeat_verb(void *unused)
{
	(void)unused;
	sem_post(&begun);
	for (;;)
		verb();
	return NULL;
}

static void *call_exit(void *unused)
{
	(void)unused;
	sem_wait(&begun);
	exit(STATUS);
}

static void exit_on_signal(int number)
{
	(void)number;
	exit(STATUS); /* NOLINT(bugprone-signal-handler): programs do so */
}

/* The verb runs in another thread. */
static void exit_here(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, repeat_verb, NULL);
	call_exit(NULL);
}

/* The verb runs in main()'s thread. */
static void exit_elsewhere(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, call_exit, NULL);
	repeat_verb(NULL);
}

/* As if the thread waited for a processor while it has the world's lock. */
static void *hold_for_long(void *unused)
{
	const struct timespec long_time = {.tv_nsec = 500000000};
	HOLD hold = process_hold(NULL);

	(void)unused;
	(void)hold;
	sem_post(&begun);
	nanosleep(&long_time, NULL);
	return NULL;
}

static void exit_while_locked(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, hold_for_long, NULL);
	call_exit(NULL);
}

/* A signal handler calls exit(3) while its thread has the world's lock. */
static void exit_in_handler(void)
{
	signal(SIGUSR1, exit_on_signal);
	for (;;) {
		HOLD hold = process_hold(NULL);

		(void)hold;
		raise(SIGUSR1);
	}
}

/* --- verbs after exit(3) has closed the wires --- */

static struct ibv_device **late_list;

/* Registers more MRs than a process has numbers for without the other processes of its world. Returns true if the
 * verb is refused at last. */
static bool registers_no_more(void)
{
	static char memory[64];
	struct ibv_pd *pd = B.alloc_pd(context);
	unsigned int count = 0;

	while (pd && count < 10000 && B.reg_mr(pd, memory, sizeof(memory), 0))
		count++;
	return count < 10000;
}

/* The C library flushes its streams after all destructors. A program can call a verb that late. */
static ssize_t call_verbs_late(void *unused, const char *bytes, size_t length)
{
	(void)unused;
	(void)bytes;
	(void)length;
	if (B.open_device(late_list[0]) || errno != ENODEV || said()->reason != VB_WHY_WORLD_ENDED)
		_exit(1);
	_exit(registers_no_more() ? STATUS : 2);
}

static void exit_with_late_verbs(void)
{
	FILE *late = fopencookie(NULL, "w", (cookie_io_functions_t){.write = call_verbs_late});

	late_list = B.get_device_list(NULL);
	fputc('x', late);
	exit(3);
}

/* --- tests --- */

static void expect_exit(void (*objects)(void), void (*repeated)(void), void (*run)(void))
{
	int status;
	pid_t child = fork();

	TEST_ASSERT_GREATER_OR_EQUAL(0, child);
	if (!child) {
		alarm(HANG_SECONDS);
		signal(SIGSEGV, SIG_DFL); /* the runner has a handler */
		verb = repeated;
		sem_init(&begun, 0, 0);
		configure();
		objects();
		run();
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(STATUS, WEXITSTATUS(status));
}

/* Another thread is in the verb, then main()'s. */
static void expect_no_file_after(void (*objects)(void), void (*repeated)(void))
{
	expect_exit(objects, repeated, exit_here);
	TEST_ASSERT_FALSE(world_exists());
	expect_exit(objects, repeated, exit_elsewhere);
	TEST_ASSERT_FALSE(world_exists());
}

void test_while_a_thread_waits_for_a_completion_event(void)
{
	expect_no_file_after(open_objects, wait_cq_event);
}

void test_while_a_thread_waits_for_an_asynchronous_event(void)
{
	expect_no_file_after(open_objects, wait_async_event);
}

void test_while_a_thread_polls(void)
{
	expect_no_file_after(open_objects, poll_once);
}

void test_while_a_thread_registers_memory(void)
{
	expect_no_file_after(open_objects, register_once);
}

void test_while_a_thread_has_the_lock_for_long(void)
{
	expect_exit(open_objects, NULL, exit_while_locked);
	TEST_ASSERT_FALSE(world_exists());
}

/* At some times no device is open, and the program has no list of devices: the world stays for the thread. */
void test_while_a_thread_opens_devices(void)
{
	for (unsigned int i = 0; i < OPEN_TIMES; i++)
		expect_no_file_after(open_once, open_once);
}

/* The thread that has the lock leaves the world itself. */
void test_in_a_handler_that_interrupts_a_verb(void)
{
	expect_exit(open_objects, NULL, exit_in_handler);
	TEST_ASSERT_FALSE(world_exists());
	expect_exit(open_once, NULL, exit_in_handler);
	TEST_ASSERT_FALSE(world_exists());
}

/* A verb fails after exit(3) has closed the wires, and does not create the world's file again. */
void test_verbs_after_the_end(void)
{
	expect_exit(open_objects, NULL, exit_with_late_verbs);
	TEST_ASSERT_FALSE(world_exists());
}

/* --- exit(3) while the default world is made --- */

static const struct vb_sim_config *exit_in_configuration(void)
{
	exit(STATUS);
}

/* As the drop-in's destructor. */
static void forget_default(void)
{
	vb_sim_set_default(NULL);
}

/* The thread has the lock of the default world, and never gives it back. */
void test_while_the_default_world_is_made(void)
{
	int status;
	pid_t child = fork();

	TEST_ASSERT_GREATER_OR_EQUAL(0, child);
	if (!child) {
		alarm(HANG_SECONDS);
		atexit(forget_default);
		vb_sim_set_default(exit_in_configuration);
		B.get_device_list(NULL);
		_exit(1);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_TRUE(WIFEXITED(status));
	TEST_ASSERT_EQUAL_INT(STATUS, WEXITSTATUS(status));
}
