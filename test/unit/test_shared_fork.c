/* SPDX-License-Identifier: MIT */
/* A process of a shared world forks. Its child opens the device anew, as another process of the world. */
#include "backends/sim/world/world.h"
#include "test/unit/sharer.h"

enum { MESSAGE_BYTES = 64, THERE = 1024 };

/* What the parent and its child tell each other. */
struct hello {
	uint32_t qpn, rkey, lkey;
};

static struct ibv_qp *qp;
static int other; /* a socket to the other process */

static void open_world(void)
{
	static unsigned int count;
	struct vb_sim_config config;

	snprintf(share_world, sizeof(share_world), "fork-%d-%u", (int)getpid(), ++count);
	share_config(&config);
	open_alone(&config);
}

void setUp(void)
{
	alarm(60);
	open_world();
}

void tearDown(void)
{
	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	alarm(0);
}

static void swap(const void *own, void *theirs, size_t length)
{
	TEST_ASSERT_EQUAL_INT(length, write(other, own, length));
	TEST_ASSERT_EQUAL_INT(length, recv(other, theirs, length, MSG_WAITALL));
}

static struct hello make_objects(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_RC);

	qp = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(qp);
	return (struct hello){.qpn = qp->qp_num, .rkey = a.mr->rkey, .lkey = a.mr->lkey};
}

/* Makes objects in both processes, whose numbers differ, and connects the QPs. Returns the rkey of the other process. */
static uint32_t connect_processes(void)
{
	const struct hello own = make_objects();
	struct hello theirs;
	char byte = 0;

	swap(&own, &theirs, sizeof(own));
	TEST_ASSERT_TRUE(own.qpn != theirs.qpn);
	TEST_ASSERT_TRUE(own.rkey != theirs.rkey && own.lkey != theirs.lkey);
	connect_qp(qp, &a, theirs.qpn);
	swap(&byte, &byte, 1);
	return theirs.rkey;
}

/* The two write to each other's memory, which has the same addresses in both, and send a message behind that. */
static void exchange(uint32_t rkey, uint8_t own, uint8_t theirs)
{
	struct ibv_sge receive_sge = sge_of(&a, 2048, MESSAGE_BYTES);
	struct ibv_recv_wr receive = {.sg_list = &receive_sge, .num_sge = 1}, *bad;
	struct ibv_sge sge = sge_of(&a, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .wr.rdma = {(uintptr_t)a.buffer + THERE, rkey}};
	char byte = 0;

	memset(a.buffer, own, MESSAGE_BYTES);
	memset(a.buffer + THERE, 0, MESSAGE_BYTES);
	TEST_ASSERT_EQUAL_INT(0, ibv_post_recv(qp, &receive, &bad));
	swap(&byte, &byte, 1);
	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
	wr.opcode = IBV_WR_SEND;
	TEST_ASSERT_EQUAL_INT(0, post_wr(qp, &wr));
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(IBV_WC_SUCCESS, share_wait(a.cq).status);
	for (size_t i = 0; i < MESSAGE_BYTES; i++) {
		TEST_ASSERT_EQUAL_HEX8(theirs, a.buffer[THERE + i]);
		TEST_ASSERT_EQUAL_HEX8(theirs, a.buffer[2048 + i]);
	}
	swap(&byte, &byte, 1);
}

static void be_child(void)
{
	struct ibv_device **list;
	uint32_t rkey;

	list = B.get_device_list(NULL);
	open_end(&a, list[0]);
	B.free_device_list(list);
	rkey = connect_processes();
	exchange(rkey, 2, 1);
	exchange(rkey, 2, 1);
}

/* The child makes objects of the device that its parent has opened. */
static void inherit(void)
{
	a.mr = B.reg_mr(a.pd, a.buffer, sizeof(a.buffer), ACCESS_ALL);
	TEST_ASSERT_NOT_NULL(a.mr);
	connect_processes();
}

/* A child that opens nothing, and ends as a program does. */
static void fork_and_exit(void)
{
	const pid_t child = fork();
	int status;

	if (!child)
		exit(0);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
}

static pid_t begin_child(void (*be)(void))
{
	int ends[2];
	pid_t child;

	make_objects();
	TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	child = fork();
	other = ends[!child];
	close(ends[!!child]);
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be();
		_exit(0);
	}
	return child;
}

static void end_child(pid_t child)
{
	int status;

	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	close(other);
}

void test_a_parent_and_its_child_have_different_numbers(void)
{
	const pid_t child = begin_child(be_child);
	const uint32_t rkey = connect_processes();

	exchange(rkey, 1, 2);
	fork_and_exit();
	exchange(rkey, 1, 2);
	end_child(child);
}

void test_a_child_that_opens_no_device_has_numbers_of_its_own(void)
{
	const pid_t child = begin_child(inherit);

	connect_processes();
	end_child(child);
}
