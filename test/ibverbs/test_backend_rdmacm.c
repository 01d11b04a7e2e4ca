/* SPDX-License-Identifier: MIT */
/*
 * usage: VERBENA_LIBRDMACM=FILE test_backend_rdmacm full|dropin|absent
 *
 * The connection manager of the backend ibverbs, on a stand-in for librdmacm.
 */
#include "backends/ibverbs/backend.h"
#include "backends/ibverbs/load.h"
#include "test/ibverbs/standin_rdmacm.h"

#include <verbena/cm_backend.h>
#include <verbena/why.h>

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct vb_cm_backend *cm;
static struct standin_rdmacm *standin;
static bool kernel_has_it;

int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	assert_string_equal(path, "/dev/infiniband/rdma_cm");
	errno = ENOENT;
	return kernel_has_it ? 0 : -1;
}

static void expect_reason(enum vb_reason reason, const char *sentence)
{
	char text[512];

	assert_int_equal(reason, load_last_why()->reason);
	assert_string_equal(sentence, vb_why_text(load_last_why(), text, sizeof(text)));
}

static int load_standin(void **state)
{
	void *handle = dlopen(getenv("VERBENA_LIBRDMACM"), RTLD_NOW | RTLD_LOCAL);

	standin = handle ? dlsym(handle, "standin_rdmacm") : NULL;
	return standin ? 0 : -1;
}

static void a_call_and_its_answer_pass_unchanged(void **state)
{
	struct rdma_conn_param param;
	struct rdma_cm_id id;
	struct rdma_event_channel *channel;

	standin->error = 0;
	channel = cm->create_event_channel();
	assert_non_null(channel);
	assert_int_equal(0, cm->connect(&id, &param));
	assert_ptr_equal(&id, standin->id);
	assert_ptr_equal(&param, standin->param);
	cm->destroy_event_channel(channel);
	assert_ptr_equal(channel, standin->ended);

	standin->error = ECONNREFUSED;
	assert_int_equal(-1, cm->connect(&id, &param));
	assert_int_equal(ECONNREFUSED, errno);
	assert_int_equal(VB_WHY_NONE, load_last_why()->reason);
}

static void a_kernel_without_the_manager_is_said(void **state)
{
	struct rdma_addrinfo *list;

	kernel_has_it = false;
	standin->error = EPERM;
	assert_null(cm->create_event_channel());
	assert_int_equal(ENOSYS, errno);
	expect_reason(
		VB_WHY_CM_KERNEL_WITHOUT,
		"cm_create_event_channel: the kernel's connection manager is not loaded: there "
		"is no /dev/infiniband/rdma_cm; load it (modprobe rdma_ucm)");
	standin->error = EAI_NONAME;
	assert_int_equal(EAI_NONAME, cm->getaddrinfo("x", NULL, NULL, &list));
	assert_int_equal(VB_WHY_CM_KERNEL_WITHOUT, load_last_why()->reason);

	kernel_has_it = true;
	standin->error = EPERM;
	assert_null(cm->create_event_channel());
	assert_int_equal(EPERM, errno);
	assert_int_equal(VB_WHY_NONE, load_last_why()->reason);
}

static void a_function_that_the_library_lacks_is_unsupported(void **state)
{
	assert_int_equal(-1, cm->listen(NULL, 1));
	assert_int_equal(EOPNOTSUPP, errno);
	expect_reason(VB_WHY_VERB_LACKING,
		      "cm_listen: librdmacm does not have this verb; do without the verb when it "
		      "fails with EOPNOTSUPP, or use a device that has it");
}

static void the_dropin_is_refused(void **state)
{
	char expected[512];

	assert_null(cm->create_event_channel());
	assert_int_equal(ENOSYS, errno);
	snprintf(expected, sizeof(expected),
		 "cm_create_event_channel: %s is Verbena's own drop-in, beside which the real "
		 "librdmacm cannot be loaded; run without the drop-in to reach real devices",
		 getenv("VERBENA_LIBRDMACM"));
	expect_reason(VB_WHY_CM_LIBRARY_IS_DROPIN, expected);
}

static void an_absent_library_names_the_package(void **state)
{
	char expected[512];
	const char *file = getenv("VERBENA_LIBRDMACM");

	assert_null(cm->get_devices(NULL));
	assert_int_equal(ENOSYS, errno);
	snprintf(expected, sizeof(expected),
		 "cm_get_devices: librdmacm cannot be loaded from %s (%s: cannot open shared "
		 "object file: No such file or directory); install librdmacm1 (Debian, Ubuntu) or "
		 "librdmacm (Fedora, SUSE), or name the file in VERBENA_LIBRDMACM",
		 file, file);
	expect_reason(VB_WHY_CM_LIBRARY_MISSING, expected);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest full[] = {
		cmocka_unit_test(a_call_and_its_answer_pass_unchanged),
		cmocka_unit_test(a_kernel_without_the_manager_is_said),
		cmocka_unit_test(a_function_that_the_library_lacks_is_unsupported),
	};
	const struct CMUnitTest dropin[] = {cmocka_unit_test(the_dropin_is_refused)};
	const struct CMUnitTest absent[] = {cmocka_unit_test(an_absent_library_names_the_package)};

	cm = vb_backend_ibverbs.cm;
	if (argc == 2 && !strcmp(argv[1], "full"))
		return cmocka_run_group_tests(full, load_standin, NULL);
	if (argc == 2 && !strcmp(argv[1], "dropin"))
		return cmocka_run_group_tests(dropin, NULL, NULL);
	if (argc == 2 && !strcmp(argv[1], "absent"))
		return cmocka_run_group_tests(absent, NULL, NULL);
	fprintf(stderr, "usage: VERBENA_LIBRDMACM=FILE %s full|dropin|absent\n", argv[0]);
	return 2;
}
