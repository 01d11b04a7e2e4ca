/* SPDX-License-Identifier: MIT */
/* XRC domains that processes share: which process opens, makes and closes them. */
#include "test/unit/sharer.h"

#include <stdio.h>

static struct sharer other;

void setUp(void)
{
	static unsigned int count;
	struct vb_sim_config config;

	snprintf(share_world, sizeof(share_world), "xrc-%d-%u", (int)getpid(), ++count);
	share_file = memfd_create("domain", MFD_CLOEXEC);
	share_begin(&other);
	share_config(&config);
	open_alone(&config);
}

void tearDown(void)
{
	share_kill(&other);
	close(share_file);
	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}

static int ask(enum share_order order, int argument)
{
	return share_ask(&other, order, argument)->error;
}

/* --- the domain of an inode --- */

void test_a_domain_exists_in_all_processes(void)
{
	struct ibv_xrcd *mine;

	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT | O_EXCL));
	mine = share_domain(a.context, share_file, 0);
	TEST_ASSERT_NOT_NULL(mine);
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(mine));
	mine = share_domain(a.context, share_file, O_CREAT);
	TEST_ASSERT_NOT_NULL(mine);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, ask(SHARE_OPEN_DOMAIN, O_CREAT | O_EXCL));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
}

void test_only_one_process_makes_a_domain(void)
{
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	expect_null(EINVAL, share_domain(a.context, share_file, O_CREAT | O_EXCL));
	expect_reason(
		VB_WHY_XRCD_EXISTS,
		"open_xrcd: the inode of fd %d has an XRC domain on the device, and oflags has "
		"O_EXCL; remove O_EXCL to share the domain, or give another file",
		share_file);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, share_file, O_CREAT | O_EXCL));
}

/* The domain ends with the last handle of the last process. */
void test_a_domain_ends_with_its_last_handle(void)
{
	struct ibv_xrcd *first, *second;

	first = share_domain(a.context, share_file, O_CREAT);
	second = share_domain(a.context, share_file, 0);
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(first));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(second));
	second = share_domain(a.context, share_file, 0);
	TEST_ASSERT_NOT_NULL(second);
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(second));
	TEST_ASSERT_EQUAL_INT(EAGAIN, ask(SHARE_OPEN_DOMAIN, 0));
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
}

void test_a_killed_process_has_no_domain(void)
{
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	share_kill(&other);
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, share_file, O_CREAT | O_EXCL));
}

/* Users in one process do not keep another process from closing its handle. */
void test_a_domain_with_users_is_busy_in_its_own_process(void)
{
	struct ibv_xrcd *mine = share_domain(a.context, share_file, O_CREAT);

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_MAKE_SRQ, 0));
	TEST_ASSERT_EQUAL_INT(EBUSY, ask(SHARE_CLOSE_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(mine));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_DESTROY_SRQ, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	expect_null(EAGAIN, share_domain(a.context, share_file, 0));
}

void test_other_inodes_and_no_inode_are_other_domains(void)
{
	const int file = memfd_create("other", MFD_CLOEXEC);

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	expect_null(EAGAIN, share_domain(a.context, file, 0));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, file, O_CREAT | O_EXCL));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, -1, O_CREAT));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, -1, O_CREAT));
	close(file);
}

/* As many domains as the world's file describes; then none, until one is closed. */
void test_a_world_has_so_many_domains(void)
{
	static struct ibv_xrcd *domains[4096];
	static int files[4097];
	unsigned int count = 0;

	while (count < 4096) {
		files[count] = memfd_create("many", MFD_CLOEXEC);
		if (files[count] < 0)
			TEST_IGNORE_MESSAGE("the limit of open files is too low");
		domains[count] = share_domain(a.context, files[count], O_CREAT);
		TEST_ASSERT_NOT_NULL(domains[count]);
		count++;
	}
	files[count] = memfd_create("many", MFD_CLOEXEC);
	expect_null(ENOMEM, share_domain(a.context, files[count], O_CREAT));
	expect_reason(VB_WHY_XRCD_FULL,
		      "open_xrcd: the processes of the world have as many XRC domains as its file "
		      "describes, or a process has held the lock of the file for 5 s; close XRC "
		      "domains, or end the process that does not run on");
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(domains[77]));
	TEST_ASSERT_NOT_NULL(share_domain(a.context, files[count], O_CREAT));
	TEST_ASSERT_EQUAL_INT(ENOMEM, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	while (count--)
		close(files[count]);
	close(files[4096]);
}

/* --- fork() --- */

void test_a_child_keeps_its_parents_domain(void)
{
	struct ibv_xrcd *mine = share_domain(a.context, share_file, O_CREAT);
	int ends[2], status;
	pid_t child;
	char byte;

	TEST_ASSERT_EQUAL_INT(0, pipe(ends));
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		byte = share_domain(a.context, share_file, 0) ? 'k' : 'f';
		_exit(write(ends[1], &byte, 1) != 1 || pause());
	}
	TEST_ASSERT_EQUAL_INT(1, read(ends[0], &byte, 1));
	TEST_ASSERT_EQUAL_INT('k', byte);
	TEST_ASSERT_EQUAL_INT(0, B.close_xrcd(mine));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, 0));
	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_CLOSE_DOMAIN, 0));
	kill(child, SIGKILL);
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(EAGAIN, ask(SHARE_OPEN_DOMAIN, 0));
}
