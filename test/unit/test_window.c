/* SPDX-License-Identifier: MIT */
/* Memory windows of both types: ibv_alloc_mw(3), ibv_bind_mw(3), ibv_post_send(3). */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

#define LENGTH 256u
#define PD     3u
#define QPN    17u
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

static struct engine engine;
static struct sim_device *device;
static struct sim_mr *region;
static struct sim_mr *mw;
static uint8_t buffer[LENGTH];

static void open_region(int access)
{
	const struct sim_mr_init init = {.pd = PD,
					 .addr = buffer,
					 .length = LENGTH,
					 .iova = (uintptr_t)buffer,
					 .access = access};

	if (region)
		TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(region));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &region));
}

static void open_window(enum ibv_mw_type type)
{
	if (mw)
		sim_mw_destroy(mw);
	TEST_ASSERT_EQUAL_INT(0, sim_mw_create(device, PD, type, &mw));
}

void setUp(void)
{
	engine_open_bare(&engine, 1);
	device = engine_add_device(&engine, "one", 1, NULL);
	region = mw = NULL;
	open_region(ALL);
	open_window(IBV_MW_TYPE_2);
}

void tearDown(void)
{
	if (mw)
		sim_mw_destroy(mw);
	if (region)
		TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(region));
	engine_close(&engine);
}

/* A valid binding: bytes 64 to 128, with remote read. */
static struct sim_mw_bind good(void)
{
	return (struct sim_mw_bind){
		.new_rkey = (mw->rkey & 0xffffff00) | ((mw->rkey + 1) & 0xff),
		.region_lkey = region->lkey,
		.addr = (uintptr_t)buffer + 64,
		.length = 64,
		.access = IBV_ACCESS_REMOTE_READ,
	};
}

static bool bind_it(const struct sim_mw_bind *bind)
{
	return sim_mw_bind(device, PD, QPN, mw->number, bind);
}

static void bind_good(void)
{
	const struct sim_mw_bind bind = good();

	TEST_ASSERT_TRUE(bind_it(&bind));
}

static void *reach(uint32_t qpn, uint64_t addr, uint64_t length, int access)
{
	struct sim_reach anew = {.device = device, .pd = PD, .qpn = qpn};

	return sim_memory_at(&anew, SIM_KEY_REMOTE, mw->rkey, addr, length, access);
}

/* Looks an access of the QP through the window up, by an offset in the buffer. */
static void *at(uint64_t offset, uint64_t length, int access)
{
	return reach(QPN, (uintptr_t)buffer + offset, length, access);
}

void test_an_unbound_window_reaches_nothing(void)
{
	TEST_ASSERT_NULL(at(64, 1, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(reach(QPN, 0, 1, 0));
}

void test_a_bound_window_reaches_its_bytes(void)
{
	bind_good();
	TEST_ASSERT_EQUAL_PTR(buffer + 64, at(64, 64, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_EQUAL_PTR(buffer + 127, at(127, 1, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(at(63, 1, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(at(128, 1, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(at(64, 65, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(at(64, 1, IBV_ACCESS_REMOTE_WRITE));
}

/* The window covers its whole region, for either order of checks. */
void test_a_window_of_the_whole_region(void)
{
	for (unsigned int wrap = 0; wrap < 2; wrap++) {
		struct sim_mw_bind bind = good();

		engine_quirk(device, "window_ranges_wrap", wrap);
		bind.addr = (uintptr_t)buffer;
		bind.length = LENGTH;
		TEST_ASSERT_TRUE(bind_it(&bind));
		TEST_ASSERT_NOT_NULL(at(0, LENGTH, IBV_ACCESS_REMOTE_READ));
		open_window(IBV_MW_TYPE_2);
		bind = good();
		bind.addr = (uintptr_t)buffer;
		bind.length = LENGTH + 1;
		TEST_ASSERT_FALSE(bind_it(&bind));
		bind.addr = (uintptr_t)buffer - 1;
		bind.length = 2;
		TEST_ASSERT_FALSE(bind_it(&bind));
	}
}

void test_type_2_is_one_qps(void)
{
	bind_good();
	TEST_ASSERT_NULL(reach(QPN + 1, (uintptr_t)buffer + 64, 1, IBV_ACCESS_REMOTE_READ));
	open_window(IBV_MW_TYPE_1);
	bind_good();
	TEST_ASSERT_NOT_NULL(reach(QPN + 1, (uintptr_t)buffer + 64, 1, IBV_ACCESS_REMOTE_READ));
}

void test_zero_based_window(void)
{
	struct sim_mw_bind bind = good();

	bind.access |= IBV_ACCESS_ZERO_BASED;
	TEST_ASSERT_TRUE(bind_it(&bind));
	TEST_ASSERT_EQUAL_PTR(buffer + 64, reach(QPN, 0, 64, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(at(64, 1, IBV_ACCESS_REMOTE_READ));
}

void test_a_binding_keeps_the_upper_bits_of_the_key(void)
{
	struct sim_mw_bind bind = good();
	const uint32_t upper = mw->rkey & 0xffffff00;

	bind.new_rkey = (upper ^ 0x80000100) | 0x77;
	TEST_ASSERT_TRUE(bind_it(&bind));
	TEST_ASSERT_EQUAL_HEX32(upper | 0x77, mw->rkey);
}

void test_type_1_is_never_zero_based(void)
{
	struct sim_mw_bind bind;

	open_window(IBV_MW_TYPE_1);
	bind = good();
	bind.access |= IBV_ACCESS_ZERO_BASED;
	TEST_ASSERT_FALSE(bind_it(&bind));
	bind_good();
}

/* Each invalid field of a binding alone: the window keeps its old binding. */
void test_bindings_that_are_refused(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		struct sim_mw_bind bind = good();
		uint32_t pd = PD;
		uint32_t number = mw->number;

		switch (i) {
		case 0:
			bind.region_lkey ^= 0x100;
			break;
		case 1:
			bind.region_lkey = region->rkey;
			break;
		case 2:
			bind.addr = (uintptr_t)buffer - 1;
			break;
		case 3:
			bind.length = LENGTH - 63;
			break;
		case 4:
			bind.access = IBV_ACCESS_MW_BIND;
			break;
		case 5:
			pd = PD + 1;
			break;
		case 6:
			number = region->number;
			bind.new_rkey = region->rkey;
			break;
		default:
			number = mw->number + 1;
		}
		TEST_ASSERT_FALSE_MESSAGE(sim_mw_bind(device, pd, QPN, number, &bind),
					  ((char[]){(char)('0' + i), 0}));
		TEST_ASSERT_NULL(mw->region);
	}
	TEST_ASSERT_EQUAL_UINT32(0, region->windows);
	bind_good();
}

/* The whole region and an empty range at its end can be bound. */
void test_bounds_of_the_region(void)
{
	struct sim_mw_bind bind = good();

	bind.addr = (uintptr_t)buffer;
	bind.length = LENGTH;
	TEST_ASSERT_TRUE(bind_it(&bind));
	open_window(IBV_MW_TYPE_2);
	bind = good();
	bind.addr = (uintptr_t)buffer + LENGTH;
	bind.length = 1;
	TEST_ASSERT_FALSE(bind_it(&bind));
	bind.addr = (uintptr_t)buffer + 1;
	bind.length = LENGTH;
	TEST_ASSERT_FALSE(bind_it(&bind));
}

/* ibv_bind_mw(3): the region needs MW_BIND and, for a writable window, LOCAL_WRITE. */
void test_rights_of_the_region(void)
{
	struct sim_mw_bind bind;

	open_region(ALL & ~IBV_ACCESS_MW_BIND);
	bind = good();
	TEST_ASSERT_FALSE(bind_it(&bind));
	open_region(IBV_ACCESS_MW_BIND);
	bind = good();
	TEST_ASSERT_TRUE(bind_it(&bind));
	TEST_ASSERT_TRUE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	bind = good();
	bind.access = IBV_ACCESS_REMOTE_WRITE;
	TEST_ASSERT_FALSE(bind_it(&bind));
	bind.access = IBV_ACCESS_REMOTE_ATOMIC;
	TEST_ASSERT_FALSE(bind_it(&bind));
	open_region(IBV_ACCESS_MW_BIND | IBV_ACCESS_LOCAL_WRITE);
	bind = good();
	bind.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
	TEST_ASSERT_TRUE(bind_it(&bind));
}

/* A window cannot be bound to a region of another PD, or to a key of no region. */
void test_regions_that_cannot_be_seen_through(void)
{
	struct sim_mr_init init = {.pd = PD + 1,
				   .addr = buffer,
				   .length = LENGTH,
				   .iova = (uintptr_t)buffer,
				   .access = ALL};
	struct sim_mw_bind bind = good();
	struct sim_mr *other;

	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &other));
	bind.region_lkey = other->lkey;
	TEST_ASSERT_FALSE(bind_it(&bind));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(other));
	init.pd = PD;
	init.null = true;
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &other));
	bind.region_lkey = other->lkey;
	TEST_ASSERT_FALSE(bind_it(&bind));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(other));
}

void test_type_2_is_invalidated_before_it_is_bound_again(void)
{
	struct sim_mw_bind bind;

	bind_good();
	bind = good();
	TEST_ASSERT_FALSE(bind_it(&bind));
	TEST_ASSERT_TRUE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	TEST_ASSERT_NULL(at(64, 1, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_TRUE(bind_it(&bind));
}

void test_type_1_is_bound_again_and_unbound_by_no_length(void)
{
	struct sim_mw_bind bind;

	open_window(IBV_MW_TYPE_1);
	bind_good();
	bind_good();
	TEST_ASSERT_EQUAL_UINT32(1, region->windows);
	bind = good();
	bind.length = 0;
	TEST_ASSERT_TRUE(bind_it(&bind));
	TEST_ASSERT_EQUAL_HEX32(bind.new_rkey, mw->rkey);
	TEST_ASSERT_EQUAL_UINT32(0, region->windows);
	TEST_ASSERT_NULL(at(64, 1, IBV_ACCESS_REMOTE_READ));
}

void test_invalidations_that_are_refused(void)
{
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	bind_good();
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, QPN, mw->rkey ^ 1));
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD + 1, QPN, mw->rkey));
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, QPN + 1, mw->rkey));
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, QPN, region->rkey));
	TEST_ASSERT_NOT_NULL(at(64, 1, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_TRUE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	open_window(IBV_MW_TYPE_1);
	bind_good();
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	TEST_ASSERT_FALSE(sim_mw_invalidate(device, PD, 0, mw->rkey));
}

/* ibv_dereg_mr(3) and ibv_rereg_mr(3) refuse a region with windows. */
void test_a_region_with_windows_is_busy(void)
{
	const struct sim_mr_init init = {.pd = PD};

	bind_good();
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_mr_destroy(region));
	TEST_ASSERT_EQUAL_INT(EBUSY, sim_mr_change(region, IBV_REREG_MR_CHANGE_PD, &init));
	TEST_ASSERT_TRUE(sim_mw_invalidate(device, PD, QPN, mw->rkey));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_change(region, IBV_REREG_MR_CHANGE_PD, &init));
}

void test_a_window_that_ends_lets_its_region_go(void)
{
	bind_good();
	sim_mw_destroy(mw);
	mw = NULL;
	TEST_ASSERT_EQUAL_INT(0, sim_mr_destroy(region));
	region = NULL;
}

/* With the quirk, a window of type 2 gives access to its whole region. */
void test_bounds_that_nobody_checks(void)
{
	engine_quirk(device, "window_bounds_unchecked", true);
	bind_good();
	TEST_ASSERT_EQUAL_PTR(buffer, at(0, LENGTH, IBV_ACCESS_REMOTE_READ));
	TEST_ASSERT_NULL(at(0, LENGTH + 1, IBV_ACCESS_REMOTE_READ));
}
