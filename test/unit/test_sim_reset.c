/* SPDX-License-Identifier: MIT */
/* vb_sim_reset(): the end of the default world, with open objects, unread events, waiting threads. */
#include "backends/sim/world/world.h"
#include "unity.h"

#include <verbena/error.h>
#include <verbena/fault.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static uint8_t buffer[4096];

static struct ibv_context *open_device(unsigned int index)
{
	struct ibv_device **list = vb_get_device_list("sim", NULL);
	struct ibv_context *opened;

	TEST_ASSERT_NOT_NULL(list);
	opened = vb_open_device(list[index]);
	vb_free_device_list(list);
	TEST_ASSERT_NOT_NULL(opened);
	return opened;
}

/* Makes what each test leaves behind. */
static void begin(enum vb_sim_clock clock)
{
	struct vb_sim_config config = {.clock = clock};
	struct ibv_qp_init_attr init = {.cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_RC};

	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(&config));
	context = open_device(0);
	pd = vb_alloc_pd(context);
	channel = vb_create_comp_channel(context);
	cq = vb_create_cq(context, 8, NULL, channel, 0);
	init.send_cq = init.recv_cq = cq;
	qp = vb_create_qp(pd, &init);
	TEST_ASSERT_NOT_NULL(qp);
}

/* The next test finds a fresh world. */
static void check_fresh(void)
{
	static const struct vb_sim_objects none;
	struct vb_sim_objects objects;

	vb_sim_count_objects(NULL, &objects);
	TEST_ASSERT_EQUAL_MEMORY(&none, &objects, sizeof(none));
	TEST_ASSERT_EQUAL_UINT64(0, vb_fault_hits(NULL, 1));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
	TEST_ASSERT_EQUAL_UINT64(0, vb_sim_now_ns(NULL));
}

void setUp(void)
{
}

void tearDown(void)
{
	vb_sim_reset();
}

void test_without_a_world(void)
{
	vb_sim_reset();
	vb_sim_reset();
	check_fresh();
}

static void make_srqs(struct ibv_context *in)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_xrcd_init_attr xrcd = {.comp_mask =
						  IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1,
					  .oflags = O_CREAT};
	struct ibv_srq_init_attr_ex ex = {
		.attr = {.max_wr = 4, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = pd,
		.cq = cq,
	};

	TEST_ASSERT_NOT_NULL(vb_create_srq(pd, &init));
	ex.xrcd = vb_open_xrcd(in, &xrcd);
	TEST_ASSERT_NOT_NULL(vb_create_srq_ex(in, &ex));
}

static void make_regions(struct ibv_context *in)
{
	struct ibv_td_init_attr td = {0};
	struct ibv_parent_domain_init_attr parent = {.pd = pd, .td = vb_alloc_td(in, &td)};
	struct ibv_alloc_dm_attr length = {.length = 64};
	struct ibv_dm *dm = vb_alloc_dm(in, &length);

	TEST_ASSERT_NOT_NULL(vb_alloc_parent_domain(in, &parent));
	TEST_ASSERT_NOT_NULL(vb_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_ZERO_BASED));
	TEST_ASSERT_NOT_NULL(vb_reg_mr(pd, buffer, sizeof(buffer), 0));
	TEST_ASSERT_NOT_NULL(vb_alloc_mw(pd, IBV_MW_TYPE_2));
}

static void make_datagrams(void)
{
	static const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 9}};
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = {4, 4, 1, 1, 0}, .qp_type = IBV_QPT_UD};
	struct ibv_ah_attr av = {
		.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}};
	struct ibv_qp *member = vb_create_qp(pd, &init);

	TEST_ASSERT_EQUAL_INT(0, vb_attach_mcast(member, &group, 0));
	TEST_ASSERT_EQUAL_INT(0, vb_query_gid(context, 1, 1, &av.grh.dgid));
	TEST_ASSERT_NOT_NULL(vb_create_ah(pd, &av));
}

/* Another context shares the file and the PD, as after ibv_import_pd(3). */
static void make_imports(void)
{
	struct ibv_context *other = vb_import_device("sim", dup(context->cmd_fd));

	TEST_ASSERT_NOT_NULL(other);
	TEST_ASSERT_NOT_NULL(vb_import_pd(other, pd->handle));
}

void test_each_kind_of_object(void)
{
	begin(VB_SIM_CLOCK_VIRTUAL);
	make_srqs(context);
	make_regions(context);
	make_datagrams();
	make_imports();
	TEST_ASSERT_NOT_NULL(open_device(1));
	TEST_ASSERT_EQUAL_INT(0, vb_fault_add(NULL, &(struct vb_fault_rule){0}, NULL));
	vb_sim_reset();
	check_fresh();
}

/* A port's event is unread in each queue, and a completion event is read but not acknowledged. */
void test_events_that_nobody_took(void)
{
	struct ibv_async_event event;

	begin(VB_SIM_CLOCK_VIRTUAL);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(context, 1, false));
	TEST_ASSERT_EQUAL_INT(0, vb_sim_port_state(context, 1, true));
	TEST_ASSERT_EQUAL_INT(0, vb_get_async_event(context, &event));
	vb_sim_reset();
	check_fresh();
}

/* The program's pointers are stale now. They are errors and no crashes, as after a destroy. */
void test_stale_pointers_are_errors(void)
{
	struct ibv_device **list;
	struct ibv_wc wc;
	struct ibv_recv_wr wr = {0}, *bad;

	begin(VB_SIM_CLOCK_VIRTUAL);
	list = vb_get_device_list("sim", NULL);
	vb_sim_reset();
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_destroy_qp(qp));
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_destroy_cq(cq));
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_destroy_comp_channel(channel));
	TEST_ASSERT_EQUAL_INT(ENOENT, vb_dealloc_pd(pd));
	TEST_ASSERT_TRUE(ibv_poll_cq(cq, 1, &wc) < 0);
	TEST_ASSERT_EQUAL_INT(EINVAL, ibv_post_recv(qp, &wr, &bad));
	TEST_ASSERT_NULL(vb_alloc_pd(context));
	TEST_ASSERT_EQUAL_INT(-1, vb_close_device(context));
	TEST_ASSERT_NULL(vb_open_device(list[0]));
	TEST_ASSERT_EQUAL_INT(ENODEV, errno);
	vb_free_device_list(list);
	check_fresh();
}

/* --- threads that wait --- */

struct waiter {
	pthread_t thread;
	int (*wait)(void);
	int err;
};

static int wait_for_completion(void)
{
	struct ibv_cq *of;
	void *user;

	return vb_get_cq_event(channel, &of, &user) ? errno : 0;
}

static int wait_for_event(void)
{
	struct ibv_async_event event;

	return vb_get_async_event(context, &event) ? errno : 0;
}

static int wait_on_the_cq(void)
{
	struct ibv_wc wc;

	return vb_sim_wait_cq(cq, 1, &wc, VB_SIM_NEVER) < 0 ? errno : 0;
}

static int wait_for_time(void)
{
	return vb_sim_run(NULL, 1000000);
}

static void *wait_there(void *arg)
{
	struct waiter *waiter = arg;

	if (vb_sim_clock_of(NULL) == VB_SIM_CLOCK_VIRTUAL)
		vb_sim_thread_enter(NULL);
	waiter->err = waiter->wait();
	return NULL;
}

static bool is_asleep(struct vb_sim *world)
{
	bool asleep;

	pthread_mutex_lock(&world->driver.mutex);
	asleep = world->driver.asleep;
	pthread_mutex_unlock(&world->driver.mutex);
	return asleep;
}

static void check_waiter(enum vb_sim_clock clock, int (*wait)(void))
{
	struct waiter waiter = {.wait = wait};

	begin(clock);
	/* A second registered thread, this one, acts: so the other one waits, and time stands. */
	if (clock == VB_SIM_CLOCK_VIRTUAL)
		vb_sim_thread_enter(NULL);
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&waiter.thread, NULL, wait_there, &waiter));
	while (!is_asleep(vb_sim_of(context)))
		sched_yield();
	vb_sim_reset();
	TEST_ASSERT_EQUAL_INT(0, pthread_join(waiter.thread, NULL));
	TEST_ASSERT_EQUAL_INT(ENODEV, waiter.err);
	check_fresh();
}

void test_thread_that_waits_for_a_completion(void)
{
	check_waiter(VB_SIM_CLOCK_VIRTUAL, wait_for_completion);
	check_waiter(VB_SIM_CLOCK_REAL, wait_for_completion);
}

void test_thread_that_waits_for_an_event(void)
{
	check_waiter(VB_SIM_CLOCK_VIRTUAL, wait_for_event);
	check_waiter(VB_SIM_CLOCK_REAL, wait_for_event);
}

void test_thread_that_waits_on_the_virtual_clock(void)
{
	check_waiter(VB_SIM_CLOCK_VIRTUAL, wait_on_the_cq);
	check_waiter(VB_SIM_CLOCK_VIRTUAL, wait_for_time);
}

/* --- what EBUSY names --- */

void test_busy_world_is_named(void)
{
	begin(VB_SIM_CLOCK_VIRTUAL);
	TEST_ASSERT_NOT_NULL(vb_alloc_pd(context));
	TEST_ASSERT_NOT_NULL(open_device(1));
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_configure(NULL));
	TEST_ASSERT_EQUAL_STRING(
		"vb_sim_configure: devices of the default world are open: sim0 (1 QP, 1 CQ, 2 PDs, "
		"1 channel), sim1; close them first, or call vb_sim_reset(), which closes them",
		vb_last_error());
}

void test_busy_world_of_ones_own_is_named(void)
{
	struct vb_sim *world = vb_sim_open(NULL);
	struct ibv_device **list = vb_sim_device_list(world, NULL);
	struct ibv_context *own = vb_open_device(list[0]);

	TEST_ASSERT_EQUAL_INT(EBUSY, vb_sim_close(world));
	TEST_ASSERT_EQUAL_STRING(
		"vb_sim_close: devices of the world are open: sim0; close them first",
		vb_last_error());
	vb_sim_reset(); /* ends the default world only */
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(own));
	vb_free_device_list(list);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_close(world));
}

/* --- the rest --- */

void test_trace_is_closed(void)
{
	char path[] = "/tmp/test_sim_reset.XXXXXX";
	int fd = mkstemp(path);

	begin(VB_SIM_CLOCK_VIRTUAL);
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_open(NULL, path));
	vb_sim_reset();
	/* Nobody writes there any more: the new world has no trace to end. */
	TEST_ASSERT_EQUAL_INT(0, vb_sim_trace_close(NULL));
	TEST_ASSERT_EQUAL_INT(24, lseek(fd, 0, SEEK_END)); /* the header of a pcap file */
	close(fd);
	unlink(path);
}

void test_child_of_fork_may_reset(void)
{
	int status = -1;
	pid_t pid;

	begin(VB_SIM_CLOCK_REAL);
	pid = fork();
	if (!pid) {
		vb_sim_reset();
		_exit(vb_sim_configure(NULL));
	}
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
	/* The parent's objects live on. */
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(qp));
}

void test_default_function_stays(void)
{
	struct ibv_device **list;
	int count = 0;

	vb_sim_set_default(NULL);
	begin(VB_SIM_CLOCK_VIRTUAL);
	vb_sim_reset();
	list = vb_get_device_list("sim", &count);
	TEST_ASSERT_EQUAL_INT(2, count);
	vb_free_device_list(list);
}
