/* SPDX-License-Identifier: MIT */
/* Memory regions and keys. Expected: ibv_reg_mr(3). */
#include "test/support/engine.h"
#include "unity.h"

#include <errno.h>

#define LENGTH 1000u
#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct engine engine;
static struct sim_device *device;
static struct sim_mr *mr;
static _Alignas(4096) uint8_t buffer[LENGTH + 100];

void setUp(void)
{
	engine_open_bare(&engine, 1);
	device = engine_add_device(&engine, "one", 1, NULL);
	mr = NULL;
}

void tearDown(void)
{
	if (mr)
		sim_mr_destroy(mr);
	engine_close(&engine);
}

static struct sim_mr_init plain(int access)
{
	return (struct sim_mr_init){.pd = 3,
				    .addr = buffer,
				    .length = LENGTH,
				    .iova = (uintptr_t)buffer,
				    .access = access};
}

static void create(int access)
{
	const struct sim_mr_init init = plain(access);

	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &mr));
}

/* Looks the key up without the cache of earlier look-ups. */
static void *reach(enum sim_key_kind kind, uint32_t pd, uint32_t key, uint64_t addr,
		   uint64_t length, int access)
{
	struct sim_reach anew = {.device = device, .pd = pd};

	return sim_memory_at(&anew, kind, key, addr, length, access);
}

static void *local(uint64_t offset, uint64_t length, int access)
{
	return reach(SIM_KEY_LOCAL, 3, mr->lkey, (uintptr_t)buffer + offset, length, access);
}

static void *remote(uint64_t offset, uint64_t length, int access)
{
	return reach(SIM_KEY_REMOTE, 3, mr->rkey, (uintptr_t)buffer + offset, length, access);
}

void test_bounds(void)
{
	create(ALL);
	TEST_ASSERT_EQUAL_PTR(buffer, local(0, LENGTH, 0));
	TEST_ASSERT_EQUAL_PTR(buffer + LENGTH - 1, local(LENGTH - 1, 1, IBV_ACCESS_LOCAL_WRITE));
	TEST_ASSERT_NULL(local(LENGTH, 1, 0));
	TEST_ASSERT_EQUAL_PTR(buffer + LENGTH, local(LENGTH, 0, 0)); /* an empty range is inside */
	TEST_ASSERT_NULL(local(LENGTH + 1, 0, 0));
	TEST_ASSERT_NULL(local(0, LENGTH + 1, 0));
	TEST_ASSERT_NULL(local((uint64_t)-1, 1, 0));
	TEST_ASSERT_NULL(local(1, UINT64_MAX, 0)); /* the end wraps around to the start */
	TEST_ASSERT_NULL(local(0, UINT64_MAX, 0));
	TEST_ASSERT_EQUAL_PTR(buffer + 8, remote(8, 8, IBV_ACCESS_REMOTE_ATOMIC));
	TEST_ASSERT_NULL(remote(LENGTH - 7, 8, IBV_ACCESS_REMOTE_READ));
}

void test_keys_have_their_own_use(void)
{
	create(ALL);
	TEST_ASSERT_NOT_EQUAL(mr->lkey, mr->rkey);
	TEST_ASSERT_NULL(reach(SIM_KEY_LOCAL, 3, mr->rkey, (uintptr_t)buffer, 1, 0));
	TEST_ASSERT_NULL(reach(SIM_KEY_REMOTE, 3, mr->lkey, (uintptr_t)buffer, 1, 0));
	TEST_ASSERT_NULL(reach(SIM_KEY_LOCAL, 3, mr->lkey ^ 1, (uintptr_t)buffer, 1, 0));
	TEST_ASSERT_NULL(reach(SIM_KEY_LOCAL, 3, 0, (uintptr_t)buffer, 1, 0));
}

void test_pd_is_checked(void)
{
	create(ALL);
	TEST_ASSERT_NULL(reach(SIM_KEY_LOCAL, 4, mr->lkey, (uintptr_t)buffer, 1, 0));
	TEST_ASSERT_NULL(
		reach(SIM_KEY_REMOTE, 4, mr->rkey, (uintptr_t)buffer, 1, IBV_ACCESS_REMOTE_READ));
}

void test_rights_are_checked_one_by_one(void)
{
	static const int rights[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
				     IBV_ACCESS_REMOTE_ATOMIC};

	for (unsigned int i = 0; i < 3; i++) {
		create(rights[i] | IBV_ACCESS_LOCAL_WRITE);
		for (unsigned int j = 0; j < 3; j++)
			TEST_ASSERT_EQUAL_INT(i == j, remote(0, 8, rights[j]) != NULL);
		sim_mr_destroy(mr);
	}
	create(0);
	TEST_ASSERT_NOT_NULL_MESSAGE(local(0, 1, 0), "local read is always granted");
	TEST_ASSERT_NULL(local(0, 1, IBV_ACCESS_LOCAL_WRITE));
}

/* ibv_reg_mr(3): remote write and remote atomic need local write. */
void test_flags_that_do_not_fit(void)
{
	static const int flags[] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC,
				    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, 1 << 19,
				    1 << 30};

	for (unsigned int i = 0; i < 5; i++) {
		const struct sim_mr_init init = plain(flags[i]);

		TEST_ASSERT_EQUAL_INT(EINVAL, sim_mr_create(device, &init, &mr));
	}
	TEST_ASSERT_NULL(mr);
	TEST_ASSERT_EQUAL_UINT32(0, device->regions.live);
}

void test_ranges_that_cannot_be(void)
{
	struct sim_mr_init init = plain(IBV_ACCESS_LOCAL_WRITE);

	init.addr = (void *)(uintptr_t)(UINTPTR_MAX - 10);
	TEST_ASSERT_EQUAL_INT(EFAULT, sim_mr_create(device, &init, &mr));
	init = plain(IBV_ACCESS_LOCAL_WRITE);
	init.iova = UINT64_MAX - 10;
	TEST_ASSERT_NOT_EQUAL(0, sim_mr_create(device, &init, &mr));
	init = plain(IBV_ACCESS_LOCAL_WRITE);
	engine_poison(buffer + 500, 1);
	TEST_ASSERT_EQUAL_INT(EFAULT, sim_mr_create(device, &init, &mr));
	TEST_ASSERT_EQUAL_UINT32(0, device->regions.live);
}

void test_iova(void)
{
	struct sim_mr_init init = plain(ALL);

	init.iova = UINT64_C(0x123456789000);
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &mr));
	TEST_ASSERT_EQUAL_PTR(buffer + 5, reach(SIM_KEY_LOCAL, 3, mr->lkey, init.iova + 5, 1, 0));
	TEST_ASSERT_NULL(local(0, 1, 0));
}

void test_zero_based(void)
{
	create(ALL | IBV_ACCESS_ZERO_BASED);
	TEST_ASSERT_EQUAL_PTR(buffer, reach(SIM_KEY_LOCAL, 3, mr->lkey, 0, LENGTH, 0));
	TEST_ASSERT_NULL(local(0, 1, 0));
}

void test_zero_length_covers_no_byte(void)
{
	struct sim_mr_init init = plain(ALL);

	init.length = 0;
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &mr));
	TEST_ASSERT_NULL(local(0, 1, 0));
}

/* An old key becomes valid again only after the key space has wrapped around. */
void test_old_keys_stay_dead(void)
{
	uint32_t lkey;

	create(ALL);
	lkey = mr->lkey;
	for (unsigned int i = 0; i < 5000; i++) {
		sim_mr_destroy(mr);
		create(ALL);
		TEST_ASSERT_NOT_EQUAL(lkey, mr->lkey);
		TEST_ASSERT_NULL(reach(SIM_KEY_LOCAL, 3, lkey, (uintptr_t)buffer, 1, 0));
	}
}

/* Several MRs over the same memory have their own keys and rights. */
void test_overlapping_regions(void)
{
	struct sim_mr_init init = plain(0);
	struct sim_mr *other;

	create(ALL);
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &other));
	TEST_ASSERT_NOT_EQUAL(mr->lkey, other->lkey);
	TEST_ASSERT_NULL(
		reach(SIM_KEY_LOCAL, 3, other->lkey, (uintptr_t)buffer, 1, IBV_ACCESS_LOCAL_WRITE));
	sim_mr_destroy(other);
	TEST_ASSERT_NOT_NULL(local(0, 1, IBV_ACCESS_LOCAL_WRITE));
}

/* A queue forgets its cached MR when the MR ends, even if a new MR takes its place. */
void test_what_is_remembered_ends_with_the_mr(void)
{
	struct sim_reach memo = {.device = device, .pd = 3};
	uint32_t lkey;

	create(ALL);
	lkey = mr->lkey;
	for (unsigned int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_PTR(
			buffer, sim_memory_at(&memo, SIM_KEY_LOCAL, lkey, (uintptr_t)buffer, 1, 0));
	TEST_ASSERT_NULL(
		sim_memory_at(&memo, SIM_KEY_LOCAL, lkey ^ 0x100, (uintptr_t)buffer, 1, 0));
	TEST_ASSERT_EQUAL_PTR(buffer,
			      sim_memory_at(&memo, SIM_KEY_LOCAL, lkey, (uintptr_t)buffer, 1, 0));
	sim_mr_destroy(mr);
	create(ALL);
	TEST_ASSERT_NULL(sim_memory_at(&memo, SIM_KEY_LOCAL, lkey, (uintptr_t)buffer, 1, 0));
}

static int try_create(const struct sim_mr_init *init)
{
	int err = sim_mr_create(device, init, &mr);

	if (!err) {
		sim_mr_destroy(mr);
		mr = NULL;
	}
	return err;
}

/* The last byte of the address space, and of the I/O virtual addresses, belongs to both. */
void test_ranges_at_the_end_of_the_addresses(void)
{
	struct sim_mr_init init = plain(0);

	init.trusted = true;
	init.iova = UINT64_MAX - LENGTH + 1;
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init = plain(0);
	init.iova = UINT64_MAX - LENGTH + 1;
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init.iova++;
	TEST_ASSERT_EQUAL_INT(EINVAL, try_create(&init));
	init.access = IBV_ACCESS_ZERO_BASED; /* the address, which is ignored */
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init = plain(IBV_ACCESS_ON_DEMAND);
	init.addr = (void *)(UINTPTR_MAX - LENGTH + 1);
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init.length++;
	TEST_ASSERT_EQUAL_INT(EFAULT, try_create(&init));
}

void test_max_mr_size(void)
{
	struct sim_profile small = *device->profile;
	struct sim_mr_init init = plain(0);

	small.limits.max_mr_size = LENGTH;
	device->profile = &small;
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init.length++;
	TEST_ASSERT_EQUAL_INT(EINVAL, try_create(&init));
}

/* The quirk refuses empty regions at the start of a page. The null region is not empty. */
void test_empty_regions_refused(void)
{
	struct sim_mr_init init = plain(0);

	init.length = 0;
	engine_quirk(device, "empty_regions_refused", true);
	TEST_ASSERT_EQUAL_INT(EINVAL, try_create(&init));
	init.addr = buffer + 8;
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init.addr = buffer;
	init.null = true;
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init = plain(0);
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
}

/* ibv_reg_mr(3), on demand: memory that is not mapped yet can be registered. */
void test_on_demand(void)
{
	struct sim_mr_init init = plain(IBV_ACCESS_ON_DEMAND);

	engine_poison(buffer, LENGTH);
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init.access = 0;
	TEST_ASSERT_EQUAL_INT(EFAULT, try_create(&init));
}

/* Address 0 with SIZE_MAX, on demand, gives access to all memory; no other combination does. */
void test_implicit_on_demand(void)
{
	struct sim_mr_init init = {.pd = 3, .length = SIZE_MAX, .access = IBV_ACCESS_ON_DEMAND};

	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &mr));
	TEST_ASSERT_EQUAL_PTR(buffer, local(0, LENGTH, 0));
	TEST_ASSERT_EQUAL_PTR(buffer, local(0, SIZE_MAX - (uintptr_t)buffer, 0));
	sim_mr_destroy(mr);
	init.length--;
	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &mr));
	TEST_ASSERT_NULL(local(0, SIZE_MAX - (uintptr_t)buffer, 0));
	sim_mr_destroy(mr);
	mr = NULL;
	init.length = SIZE_MAX;
	init.addr = buffer;
	TEST_ASSERT_EQUAL_INT(EFAULT, try_create(&init));
	init.addr = NULL;
	init.access = IBV_ACCESS_REMOTE_READ;
	engine_poison(buffer, 1);
	TEST_ASSERT_EQUAL_INT(EFAULT, try_create(&init));
}

/* Reads of the null region give zeros, and writes are discarded, at any address and length. */
void test_null_region(void)
{
	const struct sim_mr_init init = {.pd = 3, .null = true, .access = IBV_ACCESS_LOCAL_WRITE};
	const uint8_t *zeros;
	uint8_t *nowhere;

	TEST_ASSERT_EQUAL_INT(0, sim_mr_create(device, &init, &mr));
	zeros = reach(SIM_KEY_LOCAL, 3, mr->lkey, UINT64_MAX - 9, 9, 0);
	nowhere = reach(SIM_KEY_LOCAL, 3, mr->lkey, 12345, 4096, IBV_ACCESS_LOCAL_WRITE);
	TEST_ASSERT_NOT_NULL(zeros);
	TEST_ASSERT_NOT_NULL(nowhere);
	for (unsigned int i = 0; i < 4096; i++)
		nowhere[i] = 1;
	for (unsigned int i = 0; i < 4096; i++)
		TEST_ASSERT_EQUAL_UINT(0, zeros[i]);
	TEST_ASSERT_EQUAL_INT(EINVAL, sim_mr_change(mr, IBV_REREG_MR_CHANGE_ACCESS, &init));
}

/* ibv_rereg_mr(3): each of the three changes, and no change on an error. */
void test_change(void)
{
	struct sim_mr_init next = {.pd = 4,
				   .addr = buffer + 8,
				   .length = 16,
				   .iova = 0x1000,
				   .access = IBV_ACCESS_LOCAL_WRITE};
	uint32_t lkey;

	create(0);
	lkey = mr->lkey;
	TEST_ASSERT_EQUAL_INT(0, sim_mr_change(mr, IBV_REREG_MR_CHANGE_ACCESS, &next));
	TEST_ASSERT_EQUAL_PTR(buffer, local(0, LENGTH, IBV_ACCESS_LOCAL_WRITE));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_change(mr, IBV_REREG_MR_CHANGE_TRANSLATION, &next));
	TEST_ASSERT_NULL(local(0, 1, 0));
	TEST_ASSERT_EQUAL_PTR(buffer + 8, reach(SIM_KEY_LOCAL, 3, lkey, 0x1000, 16, 0));
	TEST_ASSERT_EQUAL_INT(0, sim_mr_change(mr, IBV_REREG_MR_CHANGE_PD, &next));
	TEST_ASSERT_NULL(reach(SIM_KEY_LOCAL, 3, lkey, 0x1000, 1, 0));
	TEST_ASSERT_NOT_NULL(reach(SIM_KEY_LOCAL, 4, lkey, 0x1000, 1, 0));
	next = plain(IBV_ACCESS_REMOTE_WRITE);
	TEST_ASSERT_EQUAL_INT(
		EINVAL,
		sim_mr_change(mr, IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION,
			      &next));
	TEST_ASSERT_NOT_NULL(reach(SIM_KEY_LOCAL, 4, lkey, 0x1000, 16, IBV_ACCESS_LOCAL_WRITE));
	TEST_ASSERT_EQUAL_HEX32(lkey, mr->lkey);
}

/* The smallest range, and ranges that are not checked. */
void test_ranges_that_are_not_looked_at(void)
{
	struct sim_mr_init init = plain(0);

	init.length = 1;
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init = (struct sim_mr_init){.pd = 3, .addr = buffer, .length = SIZE_MAX, .null = true};
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
	init = plain(0);
	init.trusted = true;
	engine_poison(buffer, LENGTH);
	TEST_ASSERT_EQUAL_INT(0, try_create(&init));
}
