/* SPDX-License-Identifier: MIT */
/* What is in a world's trace when its process ends or forks. */
#include "backends/sim/capture/pcapfile.h"
#include "backends/sim/world/world.h"
#include "test/unit/sim_pair.h"

#include <pcap/pcap.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITES 100

static char path[64];

void setUp(void)
{
	int fd;

	snprintf(path, sizeof(path), "/tmp/verbena-test-trace-XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
}

void tearDown(void)
{
	char command[160];

	close_pair();
	snprintf(command, sizeof(command), "rm -f %s %s.*", path, path);
	TEST_ASSERT_EQUAL_INT(0, system(command));
}

static void open_shared_pair(void)
{
	static struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 2,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_SHARED},
			    {.name = "sim1", .wire = VB_SIM_WIRE_SHARED}},
	};

	snprintf(config.world, sizeof(config.world), "test-sim-trace-%d", (int)getpid());
	for (unsigned int i = 0; i < 2; i++) {
		config.devices[i].gid_count = 2;
		vb_sim_default_gids(i + 1, config.devices[i].gids);
	}
	open_pair_of(&config);
}

static void write_once(struct ibv_qp *qp)
{
	struct ibv_sge sge = sge_of(&a, 0, 100);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
	};

	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
	expect_wc(&a, 0, IBV_WC_SUCCESS);
}

/* Traces WRITES RDMA WRITEs: each is one request and one ACK. Returns the QP. */
static struct ibv_qp *write_traced(void)
{
	struct ibv_qp *from, *to;

	open_pair();
	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(NULL, path));
	for (unsigned int i = 0; i < WRITES; i++)
		write_once(from);
	return from;
}

static unsigned int count_frames(void)
{
	char why[PCAP_ERRBUF_SIZE] = "";
	pcap_t *pcap = pcap_open_offline(path, why);
	struct pcap_pkthdr *header;
	const u_char *bytes;
	unsigned int count = 0;
	int result;

	TEST_ASSERT_NOT_NULL_MESSAGE(pcap, why);
	while ((result = pcap_next_ex(pcap, &header, &bytes)) == 1)
		count++;
	TEST_ASSERT_EQUAL_INT_MESSAGE(PCAP_ERROR_BREAK, result, pcap_geterr(pcap));
	pcap_close(pcap);
	return count;
}

/* Runs write_traced() and then end in a child. The trace must hold every packet. */
static void check_end(void (*end)(void))
{
	pid_t child = fork();

	if (child == 0) {
		const struct rlimit no_core = {0, 0};

		setrlimit(RLIMIT_CORE, &no_core);
		write_traced();
		end();
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_UINT(2 * WRITES, count_frames());
}

static void end_exit(void)
{
	exit(0);
}

static void end__exit(void)
{
	_exit(0);
}

static void *call__exit(void *arg)
{
	(void)arg;
	_exit(0);
}

static void end__exit_in_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, call__exit, NULL);
	pthread_join(thread, NULL);
}

static void end_kill(void)
{
	kill(getpid(), SIGKILL);
}

void test_a_trace_survives_exit(void)
{
	check_end(end_exit);
}

void test_a_trace_survives__exit(void)
{
	check_end(end__exit);
}

void test_a_trace_survives__exit_in_a_thread(void)
{
	check_end(end__exit_in_thread);
}

void test_a_trace_survives_abort(void)
{
	check_end(abort);
}

void test_a_trace_survives_sigkill(void)
{
	check_end(end_kill);
}

/* The child of a fork() writes nothing into its parent's trace, whatever it sends. */
void test_a_forked_child_does_not_write_the_trace(void)
{
	struct ibv_qp *qp = write_traced();
	pid_t child = fork();

	if (child == 0) {
		write_once(qp);
		close_pair();
		exit(0);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_UINT(2 * WRITES, count_frames());
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_close(NULL));
	TEST_ASSERT_EQUAL_UINT(2 * WRITES, count_frames());
}

/* --- several processes with one trace --- */

static void let_go(const int *pipe_fds)
{
	TEST_ASSERT_EQUAL_INT(1, write(pipe_fds[1], "", 1));
}

static void await(const int *pipe_fds)
{
	char byte;

	TEST_ASSERT_EQUAL_INT(1, read(pipe_fds[0], &byte, 1));
}

static bool is_joined(pid_t process)
{
	char part[96];

	snprintf(part, sizeof(part), "%s.%d.part", path, (int)process);
	return access(part, F_OK) != 0;
}

/*
 * Two children write one trace at the same time; the second one's world begins its packets later. Each ends
 * by its function: first the one that has the file, then the one that has a part.
 */
static void check_two(void (*end_first)(void), void (*end_second)(void), bool joined)
{
	int first_writes[2], second_ended[2];
	pid_t first, second;

	TEST_ASSERT_EQUAL_INT(0, pipe(first_writes));
	TEST_ASSERT_EQUAL_INT(0, pipe(second_ended));
	first = fork();
	if (first == 0) {
		write_traced();
		let_go(first_writes);
		await(second_ended);
		end_first();
	}
	await(first_writes);
	second = fork();
	if (second == 0) {
		vb_sim_run(NULL, 1000000);
		write_traced();
		end_second();
	}
	TEST_ASSERT_EQUAL_INT(second, waitpid(second, NULL, 0));
	TEST_ASSERT_EQUAL_UINT(2 * WRITES, count_frames());
	TEST_ASSERT_FALSE(is_joined(second));
	let_go(second_ended);
	TEST_ASSERT_EQUAL_INT(first, waitpid(first, NULL, 0));
	TEST_ASSERT_EQUAL_INT(joined, is_joined(second));
	TEST_ASSERT_EQUAL_UINT(joined ? 4 * WRITES : 2 * WRITES, count_frames());
}

static void end_in_order(void)
{
	close_pair();
	exit(0);
}

void test_the_last_process_joins_the_trace(void)
{
	check_two(end_in_order, end_in_order, true);
}

/* Programs that exit with open devices are usual. */
void test_a_process_that_exits_with_open_devices_joins_the_trace(void)
{
	check_two(end_exit, end_exit, true);
}

void test_a_part_survives_sigkill_and_is_joined(void)
{
	check_two(end_exit, end_kill, true);
}

/* Nobody is left to join: `verbena trace merge` does. */
void test_a_trace_whose_processes_are_killed_keeps_its_part(void)
{
	check_two(end_kill, end_in_order, false);
}

/* What another process does when this one has ended its trace at exit, and has not yet ended. */
static void (*after_the_trace)(void);

void __real_world_close_wires(struct vb_sim *world);
void __wrap_world_close_wires(struct vb_sim *world);
void __wrap_world_close_wires(struct vb_sim *world)
{
	if (after_the_trace)
		after_the_trace();
	__real_world_close_wires(world);
}

static void begin_and_end(void)
{
	char error[256];

	pcapfile_close(pcapfile_open(path, false, NULL, error, sizeof(error)));
}

/* A process that begins and ends while another one exits leaves no part. */
void test_a_process_that_begins_while_another_exits_leaves_no_part(void)
{
	const pid_t child = fork();

	if (child == 0) {
		write_traced();
		after_the_trace = begin_and_end;
		exit(0);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_TRUE(is_joined(child));
}

/* A trace may begin again in the same file, and the world does not take itself for another process. */
void test_a_world_begins_its_trace_again(void)
{
	struct ibv_qp *qp = write_traced();

	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(NULL, path));
	TEST_ASSERT_EQUAL_UINT(0, count_frames());
	TEST_ASSERT_TRUE(is_joined(getpid()));
	write_once(qp);
	TEST_ASSERT_EQUAL_UINT(2, count_frames());
}

/* Waits for the completion of a send on the real clock. */
static void write_and_wait(struct ibv_qp *qp)
{
	struct ibv_sge sge = sge_of(&a, 0, 100);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = {(uintptr_t)b.buffer, b.mr->rkey},
	};
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
	while (B.poll_cq(a.cq, 1, &wc) == 0)
		;
	TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
}

/* The child opens devices of its own, and sends. */
static void write_in_child(void)
{
	struct ibv_device **list = B.get_device_list(NULL);
	struct ibv_qp *from, *to;

	open_end(&a, list[0]);
	open_end(&b, list[1]);
	connect_pair(&from, &to);
	write_and_wait(from);
	write_and_wait(from);
	exit(0);
}

/*
 * Processes of a world write one trace, also those that are made by fork(). A child that opens devices when
 * the parent has ended its trace adds to the trace.
 */
static void check_child(bool parent_ends_first)
{
	int end[2];
	struct ibv_qp *from, *to;
	pid_t child;

	TEST_ASSERT_EQUAL_INT(0, pipe(end));
	open_shared_pair();
	connect_pair(&from, &to);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(NULL, path));
	write_and_wait(from);
	child = fork();
	if (child == 0) {
		await(end);
		write_in_child();
	}
	if (parent_ends_first)
		TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_close(NULL));
	let_go(end);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, NULL, 0));
	TEST_ASSERT_EQUAL_INT(parent_ends_first, is_joined(child));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_close(NULL));
	TEST_ASSERT_TRUE(is_joined(child));
	TEST_ASSERT_EQUAL_UINT(6, count_frames());
}

void test_a_child_with_devices_writes_a_part_of_the_world_s_trace(void)
{
	check_child(false);
}

void test_a_child_keeps_the_trace_that_its_parent_has_ended(void)
{
	check_child(true);
}
