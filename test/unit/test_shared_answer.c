/* SPDX-License-Identifier: MIT */
/* Two processes on the wire `shared`: a message whose ACK is put off is acknowledged, although its receiver
 * answers no more. */
#include "backends/sim/world/world.h"
#include "test/unit/sim_pair.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Messages that are answered before the test gives up: an ACK is put off before. */
#define MESSAGES_MAX 1000000u

static char world_name[32];
static int other; /* a socket to the other process */
static struct vb_sim *sim;
static struct ibv_qp *qp;

static void tell(const void *bytes, size_t length)
{
	TEST_ASSERT_EQUAL_INT(length, write(other, bytes, length));
}

static void hear(void *bytes, size_t length)
{
	TEST_ASSERT_EQUAL_INT(length, recv(other, bytes, length, MSG_WAITALL));
}

static void post_receive(void)
{
	struct ibv_sge sge = sge_of(&a, 0, 64);
	struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;

	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &receive, &bad));
}

static void post_message(void)
{
	struct ibv_sge sge = sge_of(&a, 64, 64);
	struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};

	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &send));
}

/* Opens sim0 and connects a QP to that of the other process. */
static void open_end_of_wire(void)
{
	struct vb_sim_config config = {
		.clock = VB_SIM_CLOCK_REAL,
		.device_count = 1,
		.devices = {{.name = "sim0", .wire = VB_SIM_WIRE_SHARED}},
	};
	struct ibv_qp_init_attr_ex attr;
	struct ibv_device **list;
	uint32_t qpn;

	strcpy(config.world, world_name);
	sim = vb_sim_open(&config);
	list = vb_sim_device_list(sim, NULL);
	open_end(&a, list[0]);
	B.free_device_list(list);
	attr = qp_attr(&a, IBV_QPT_RC);
	qp = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(qp);
	tell(&qp->qp_num, sizeof(qp->qp_num));
	hear(&qpn, sizeof(qpn));
	connect_qp(qp, &a, qpn);
	post_receive();
	/* Both are connected. */
	tell(&qpn, 1);
	hear(&qpn, 1);
}

/* Polls until a message has come. */
static void take_message(void)
{
	struct ibv_wc wc = {.opcode = IBV_WC_SEND};

	while (wc.opcode != IBV_WC_RECV) {
		if (ibv_poll_cq(a.cq, 1, &wc) == 1)
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
		else
			sched_yield();
	}
	post_receive();
}

static bool is_put_off(void)
{
	bool put_off;

	pthread_mutex_lock(&sim->driver.mutex);
	put_off = sim->driver.put_off;
	pthread_mutex_unlock(&sim->driver.mutex);
	return put_off;
}

/* The child answers until a message waits for its ACK, which it leaves behind. */
static void answer_until(void (*end)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_end_of_wire();
	for (uint32_t i = 0; i < MESSAGES_MAX; i++) {
		take_message();
		if (is_put_off())
			end();
		post_message();
	}
	_exit(1);
}

/* Sends messages until the child has ended. Each is acknowledged. Returns the child's status. */
static int ask_until_end(pid_t child)
{
	unsigned int unsent = 0;
	struct ibv_wc wc;
	int status = 0;
	bool ended = false;

	open_end_of_wire();
	for (bool ask = true; !ended || unsent;) {
		if (ask && !ended) {
			post_message();
			unsent++;
		}
		ask = false;
		if (!ended)
			ended = waitpid(child, &status, WNOHANG) == child;
		while (ibv_poll_cq(a.cq, 1, &wc) == 1) {
			TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, wc.status);
			if (wc.opcode == IBV_WC_SEND) {
				unsent--;
				continue;
			}
			post_receive();
			ask = true;
		}
		sched_yield();
	}
	return status;
}

static void run(void (*end)(void))
{
	static unsigned int count;
	int ends[2];
	pid_t child;

	snprintf(world_name, sizeof(world_name), "answer-%d-%u", (int)getpid(), count++);
	TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = fork();
	other = ends[!child];
	close(ends[!!child]);
	if (!child)
		answer_until(end);
	TEST_ASSERT_EQUAL_INT(0, ask_until_end(child));
	close(other);
	B.close_device(a.context);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(sim));
}

void setUp(void)
{
	alarm(60);
}

void tearDown(void)
{
	alarm(0);
}

static void leave(void)
{
	exit(0);
}

void test_a_process_that_exits_has_acknowledged(void)
{
	run(leave);
}

/* The child of the fork has no part in the ACK. */
static void fork_and_leave(void)
{
	const pid_t child = fork();

	if (!child)
		_exit(0);
	_exit(child < 0 || is_put_off());
}

void test_a_process_that_forks_has_acknowledged(void)
{
	run(fork_and_leave);
}
