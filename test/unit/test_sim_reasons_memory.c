/* SPDX-License-Identifier: MIT */
/*
 * Reasons of protection domains, memory regions, memory windows and device memory: each mistake, and
 * the whole sentence that the program gets.
 */
#include "test/unit/sim_sentence.h"

#include <unistd.h>

void setUp(void)
{
	open_pair();
}

void tearDown(void)
{
	close_pair();
}

/* --- objects that do not exist --- */

void test_a_destroyed_object(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context);

	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	expect_reason(VB_WHY_OBJECT_GONE,
		      "dealloc_pd: the PD of handle %u is not live: the program has destroyed it, "
		      "or gives a copy of its structure; give the pointer that the verb returned "
		      "which made the PD, and only until the PD is destroyed",
		      pd->handle);
}

void test_an_overwritten_handle(void)
{
	struct ibv_pd *pd = B.alloc_pd(a.context);
	const uint32_t handle = pd->handle;

	pd->handle = 77;
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(pd));
	expect_reason(VB_WHY_OBJECT_HANDLE,
		      "dealloc_pd: the PD has handle %u, and the program has overwritten the "
		      "handle in its structure with 77; leave the fields of libibverbs' structures "
		      "unchanged",
		      handle);
	pd->handle = handle;
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
}

void test_an_import_without_its_original(void)
{
	struct ibv_context *context = B.import_device(dup(a.context->cmd_fd));
	struct ibv_pd *pd = B.alloc_pd(a.context);
	struct ibv_pd *imported = B.import_pd(context, pd->handle);

	TEST_ASSERT_NOT_NULL(imported);
	TEST_ASSERT_EQUAL_INT(0, B.dealloc_pd(pd));
	TEST_ASSERT_EQUAL_INT(ENOENT, B.dealloc_pd(imported));
	expect_reason(VB_WHY_IMPORT_GONE,
		      "dealloc_pd: the PD of handle %u is an import, and the PD that it stands for "
		      "was destroyed; unimport the PD",
		      imported->handle);
	B.unimport_pd(imported);
	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
}

void test_no_object_and_an_object_of_another_context(void)
{
	struct ibv_parent_domain_init_attr attr = {0};

	expect_null(EINVAL, B.alloc_parent_domain(a.context, &attr));
	expect_reason(VB_WHY_OBJECT_NULL,
		      "alloc_parent_domain: the PD is NULL; make the PD first; the verb that makes "
		      "it returns NULL if it fails");
	attr.pd = b.pd;
	expect_null(EINVAL, B.alloc_parent_domain(a.context, &attr));
	expect_reason(VB_WHY_OBJECT_FOREIGN,
		      "alloc_parent_domain: the PD belongs to another ibv_context than the other "
		      "objects of the call; make all objects that work together in one "
		      "ibv_context");
}

void test_a_closed_context(void)
{
	struct ibv_context *context = a.context;

	TEST_ASSERT_EQUAL_INT(0, B.close_device(context));
	a.context = NULL;
	expect_null(EINVAL, B.alloc_pd(context));
	expect_reason(VB_WHY_CONTEXT_CLOSED,
		      "alloc_pd: the ibv_context is closed; close the device after the last use of "
		      "its context");
}
