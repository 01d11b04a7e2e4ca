/* SPDX-License-Identifier: MIT */
/*
 * The backend ibverbs against stand-ins for the library.
 *
 * usage: test_backend_ibverbs full|bare|dropin|absent|other
 *
 * A process loads the library once, so each kind of library has its own run of this program.
 * VERBENA_LIBIBVERBS names the file.
 */
#include "test/ibverbs/cases.h"

#include <verbena/error.h>
#include <verbena/verbs.h>

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* An errno value that neither the backend nor the stand-in sets on its own. */
#define ERR EDQUOT

static struct {
	void (*script)(uint64_t answer, int err);
	const struct standin_call *(*last)(void);
	unsigned int (*calls)(void);
	void (*fill_context)(struct verbs_context *vctx);
} standin;

/* Successful verbs return a pointer to this; create_wq writes to it. */
static union {
	struct ibv_wq wq;
	struct ibv_qp qp;
	char bytes[4096];
} answer_space;

static void find(void *handle, const char *name, void *place)
{
	void *found = dlsym(handle, name);

	assert_non_null(found);
	memcpy(place, &found, sizeof(found));
}

static int load_standin(void **state)
{
	void *handle = dlopen(getenv("VERBENA_LIBIBVERBS"), RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		print_error("%s\n", dlerror());
		return -1;
	}
	find(handle, "standin_script", &standin.script);
	find(handle, "standin_last", &standin.last);
	find(handle, "standin_calls", &standin.calls);
	find(handle, "standin_fill_context", &standin.fill_context);
	return 0;
}

static int set_up(void **state)
{
	cases_set_up();
	standin.fill_context(&a_vctx);
	return 0;
}

/* The bare library does not export standin_*, and its contexts have no operation. */
static int set_up_bare(void **state)
{
	cases_set_up();
	memset(&a_vctx, 0, sizeof(a_vctx));
	a_vctx.sz = sizeof(a_vctx);
	a_vctx.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	return 0;
}

/* --- each verb, by the table --- */

struct outcome {
	uint64_t answer;
	int err; /* the value of errno afterwards */
};

static struct outcome succeeds(enum convention convention)
{
	switch (convention) {
	case POINTER:
		return (struct outcome){(uintptr_t)&answer_space, 0};
	case MINUS_ONE:
	case NEGATED:
		return (struct outcome){5, 0};
	case NUMBER:
		return (struct outcome){1, 0};
	default:
		return (struct outcome){0, 0};
	}
}

static struct outcome fails(enum convention convention, int err)
{
	switch (convention) {
	case ERRNO:
		return (struct outcome){(uint64_t)err, 0};
	case POINTER:
		return (struct outcome){0, err};
	case MINUS_ONE:
		return (struct outcome){(uint64_t)-1, err};
	case NEGATED:
		return (struct outcome){(uint64_t)-err, 0};
	case REREG:
		return (struct outcome){(uint64_t)IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW, err};
	default:
		return (struct outcome){0, 0};
	}
}

static void check_outcome(const struct verb_case *c, struct outcome expected, uint64_t answer,
			  int err)
{
	if (answer != expected.answer || err != expected.err) {
		print_error("%s answers %#llx with errno %d, not %#llx with %d\n", c->verb,
			    (unsigned long long)answer, err, (unsigned long long)expected.answer,
			    expected.err);
		fail();
	}
}

static void check_call(const struct verb_case *c)
{
	const struct standin_call *call = standin.last();

	if (standin.calls() != 1 || strcmp(call->target, c->target) != 0 ||
	    call->count != c->count) {
		print_error("%s made %u calls, the last to %s with %u arguments\n", c->verb,
			    standin.calls(), call->target ? call->target : "nothing", call->count);
		fail();
	}
	for (unsigned int i = 0; i < c->count; i++) {
		if (call->args[i] != c->args[i]) {
			print_error("%s: argument %u is %#llx, not %#llx\n", c->verb, i,
				    (unsigned long long)call->args[i],
				    (unsigned long long)c->args[i]);
			fail();
		}
	}
}

static void run_case(const struct verb_case *c, struct outcome scripted)
{
	uint64_t answer;

	standin.script(scripted.answer, scripted.err);
	errno = 0;
	answer = c->call();
	check_outcome(c, scripted, answer, errno);
	check_call(c);
}

static void every_verb_passes_call_and_success(void **state)
{
	for (size_t i = 0; i < case_count; i++)
		run_case(&cases[i], succeeds(cases[i].convention));
}

static void every_verb_passes_failure_unchanged(void **state)
{
	for (size_t i = 0; i < case_count; i++)
		run_case(&cases[i], fails(cases[i].convention, ERR));
}

/* rereg_mr returns every code of the library. */
static void rereg_mr_passes_each_code(void **state)
{
	for (int code = IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW; code <= 0; code++) {
		standin.script((uint64_t)code, code ? ERR : 0);
		errno = 0;
		assert_int_equal(backend->rereg_mr(&(struct ibv_mr){0}, 0, NULL, NULL, 0, 0), code);
		assert_int_equal(errno, code ? ERR : 0);
	}
}

/* verbs.def has the verbs in the order of the members of struct vb_backend. */
static void rows_are_in_the_order_of_the_members(void **state)
{
	static const size_t places[] = {
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	offsetof(struct vb_backend, name),
#include <verbena/verbs.def>
	};

	for (size_t i = 0; i < COUNT(places); i++)
		assert_int_equal(places[i], offsetof(struct vb_backend, get_device_list) +
						    i * sizeof(void (*)(void)));
	assert_int_equal(places[COUNT(places) - 1] + sizeof(void (*)(void)),
			 sizeof(struct vb_backend));
}

static void check_row(const char *verb, int convention, const void *function)
{
	unsigned int found = 0;

	assert_non_null(function);
	for (size_t i = 0; i < case_count; i++) {
		if (strcmp(cases[i].verb, verb) != 0)
			continue;
		if ((int)cases[i].convention != convention)
			fail_msg("verbs.def has another convention for %s than its case", verb);
		found++;
	}
	if (found != 1)
		fail_msg("%s has %u cases", verb, found);
}

/* Each row of verbs.def has one case, with the same convention; and the backend has every verb. */
static void each_row_has_a_case(void **state)
{
	/* The cases have one convention for both. */
	enum { POSTED = ERRNO, OPTIONAL = POINTER, ANSWER = NUMBER };
	size_t rows = 0;

#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	check_row(#name, (int)(convention), (const void *)backend->name);    \
	rows++;
#include <verbena/verbs.def>
	assert_int_equal(rows, case_count);
}

/* --- a context that lacks operations --- */

static bool is_export(const struct verb_case *c)
{
	return !strncmp(c->target, "ibv_", 4) || !strncmp(c->target, "_ibv_", 5);
}

/* EOPNOTSUPP in each convention; rereg's code for "nothing has changed". */
static void check_unsupported(const struct verb_case *c)
{
	struct outcome expected = fails(c->convention, EOPNOTSUPP);
	uint64_t answer;

	if (c->convention == REREG)
		expected.answer = (uint64_t)IBV_REREG_MR_ERR_INPUT;
	errno = 0;
	answer = c->call();
	check_outcome(c, expected, answer, errno);
}

static void check_all_unsupported(const char *group)
{
	unsigned int checked = 0;

	for (size_t i = 0; i < case_count; i++) {
		const struct verb_case *c = &cases[i];

		if (strncmp(c->target, group, strlen(group)) != 0 || c->flags & FALLS_BACK)
			continue;
		standin.script(0, 0);
		check_unsupported(c);
		assert_int_equal(standin.calls(), 0);
		checked++;
	}
	assert_true(checked > 0);
}

static void null_operations_are_unsupported(void **state)
{
	memset(&a_vctx, 0, offsetof(struct verbs_context, sz));
	check_all_unsupported("verbs_context.");
	memset(&a_vctx.context.ops, 0, sizeof(a_vctx.context.ops));
	check_all_unsupported("ops.");
}

/* verbs_context grows at its beginning: its last sz bytes are valid. */
static void operations_beyond_sz_are_unsupported(void **state)
{
	a_vctx.sz = sizeof(struct ibv_context);
	check_all_unsupported("verbs_context.");
}

static void sz_is_honoured_to_the_pointer(void **state)
{
	struct ibv_td td = {.context = &a_vctx.context};

	a_vctx.sz = sizeof(a_vctx) - offsetof(struct verbs_context, dealloc_td);
	standin.script(0, 0);
	assert_int_equal(backend->dealloc_td(&td), 0);
	assert_int_equal(standin.calls(), 1);
	a_vctx.sz -= 1;
	assert_int_equal(backend->dealloc_td(&td), EOPNOTSUPP);
	assert_int_equal(standin.calls(), 1);
}

static void a_plain_context_has_no_extended_verbs(void **state)
{
	a_vctx.context.abi_compat = NULL;
	check_all_unsupported("verbs_context.");
}

static void post_srq_ops_names_the_first_when_unsupported(void **state)
{
	a_vctx.post_srq_ops = NULL;
	a_ops_wr_p = NULL;
	assert_int_equal(backend->post_srq_ops(&a_srq, &a_ops_wr, &a_ops_wr_p), EOPNOTSUPP);
	assert_ptr_equal(a_ops_wr_p, &a_ops_wr);
}

/* --- where the header's wrappers do more than pass on --- */

static void expect_call(const char *target, unsigned int count)
{
	assert_int_equal(standin.calls(), 1);
	assert_string_equal(standin.last()->target, target);
	assert_int_equal(standin.last()->count, count);
}

/* The export writes to a whole structure; the fields that it does not fill are 0. */
static void query_port_falls_back_on_the_export(void **state)
{
	struct {
		struct ibv_port_attr attr;
		uint64_t guard;
	} space;
	const size_t short_size = offsetof(struct ibv_port_attr, port_cap_flags2);

	a_vctx.query_port = NULL;
	memset(&space, 0xee, sizeof(space));
	standin.script(0, 0);
	assert_int_equal(backend->query_port(&a_vctx.context, 3, &space.attr, short_size), 0);
	expect_call("ibv_query_port", 3);
	assert_ptr_equal(standin.last()->args[0], &a_vctx.context);
	assert_int_equal(standin.last()->args[1], 3);
	assert_int_equal(space.attr.lid, 0);
	assert_int_equal(space.attr.port_cap_flags2, 0xeeee);
	assert_int_equal(space.guard, 0xeeeeeeeeeeeeeeee);

	standin.script(ERR, 0);
	assert_int_equal(backend->query_port(&a_vctx.context, 3, &space.attr, sizeof(space.attr)),
			 ERR);
}

static void query_device_ex_falls_back_on_query_device(void **state)
{
	struct ibv_device_attr_ex attr;

	a_vctx.query_device_ex = NULL;
	memset(&attr, 0xee, sizeof(attr));
	standin.script(0, 0);
	assert_int_equal(backend->query_device_ex(&a_vctx.context, NULL, &attr, sizeof(attr)), 0);
	expect_call("ibv_query_device", 2);
	assert_ptr_equal(standin.last()->args[1], &attr.orig_attr);
	assert_int_equal(attr.comp_mask, 0);
	assert_int_equal(attr.max_dm_size, 0);

	standin.script(0, 0);
	assert_int_equal(backend->query_device_ex(&a_vctx.context, NULL, &attr, 8), EINVAL);
	assert_int_equal(standin.calls(), 0);
}

/* A provider without the verb answers EOPNOTSUPP; an old provider answers ENOSYS. */
static void query_device_ex_falls_back_on_those_errors(void **state)
{
	static const int errors[] = {EOPNOTSUPP, ENOSYS};
	struct ibv_device_attr_ex attr;

	for (size_t i = 0; i < COUNT(errors); i++) {
		standin.script((uint64_t)errors[i], 0);
		assert_int_equal(
			backend->query_device_ex(&a_vctx.context, NULL, &attr, sizeof(attr)),
			errors[i]);
		assert_int_equal(standin.calls(), 2);
		assert_string_equal(standin.last()->target, "ibv_query_device");
	}
}

static void query_device_ex_refuses_input_bits(void **state)
{
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex attr;

	standin.script(0, 0);
	assert_int_equal(backend->query_device_ex(&a_vctx.context, &input, &attr, sizeof(attr)),
			 EINVAL);
	assert_int_equal(standin.calls(), 0);
}

static void create_qp_ex_with_only_a_pd_is_create_qp(void **state)
{
	a_qp_init_attr_ex.comp_mask = IBV_QP_INIT_ATTR_PD;
	a_qp_init_attr_ex.pd = &a_pd;
	standin.script((uintptr_t)&answer_space, 0);
	assert_ptr_equal(backend->create_qp_ex(&a_vctx.context, &a_qp_init_attr_ex), &answer_space);
	expect_call("ibv_create_qp", 2);
	assert_ptr_equal(standin.last()->args[0], &a_pd);
	assert_ptr_equal(standin.last()->args[1], &a_qp_init_attr_ex);
}

static void create_srq_ex_of_a_basic_one_is_create_srq(void **state)
{
	static const struct {
		uint32_t comp_mask;
		enum ibv_srq_type type;
		bool plain;
	} rows[] = {
		{IBV_SRQ_INIT_ATTR_PD, IBV_SRQT_XRC, true},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, true},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_XRC, false},
		{IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ, IBV_SRQT_BASIC, false},
		{IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, false},
		{0, IBV_SRQT_BASIC, false},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		a_srq_init_attr_ex.comp_mask = rows[i].comp_mask;
		a_srq_init_attr_ex.srq_type = rows[i].type;
		a_srq_init_attr_ex.pd = &a_pd;
		standin.script((uintptr_t)&answer_space, 0);
		assert_ptr_equal(backend->create_srq_ex(&a_vctx.context, &a_srq_init_attr_ex),
				 &answer_space);
		expect_call(rows[i].plain ? "ibv_create_srq" : "verbs_context.create_srq_ex", 2);
		assert_ptr_equal(standin.last()->args[0],
				 rows[i].plain ? (void *)&a_pd : (void *)&a_vctx.context);
	}
}

/* The header's macros do the same for the flags that the old exports do not know. */
static void optional_access_flags_go_to_iova2(void **state)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING;
	char buffer[8];

	standin.script((uintptr_t)&answer_space, 0);
	assert_ptr_equal(backend->reg_mr(&a_pd, buffer, 8, access), &answer_space);
	expect_call("ibv_reg_mr_iova2", 5);
	assert_ptr_equal(standin.last()->args[1], buffer);
	assert_int_equal(standin.last()->args[2], 8);
	assert_int_equal(standin.last()->args[3], (uintptr_t)buffer);
	assert_int_equal(standin.last()->args[4], access);

	standin.script(0, ERR);
	errno = 0;
	assert_null(backend->reg_mr_iova(&a_pd, buffer, 8, 0x1234, access));
	assert_int_equal(errno, ERR);
	expect_call("ibv_reg_mr_iova2", 5);
	assert_int_equal(standin.last()->args[3], 0x1234);
	assert_int_equal(standin.last()->args[4], access);
}

static void bind_mw_refuses_what_the_wrapper_refuses(void **state)
{
	struct ibv_pd other_pd = {.context = &a_vctx.context};
	struct ibv_mr mr = {.context = &a_vctx.context, .pd = &other_pd};

	standin.script(0, 0);
	a_mw.type = IBV_MW_TYPE_2;
	assert_int_equal(backend->bind_mw(&a_qp_ex.qp_base, &a_mw, &a_mw_bind), EINVAL);
	assert_int_equal(backend->last_why()->reason, VB_WHY_BIND_MW_TYPE);
	a_mw.type = IBV_MW_TYPE_1;
	a_mw_bind.bind_info.length = 1;
	assert_int_equal(backend->bind_mw(&a_qp_ex.qp_base, &a_mw, &a_mw_bind), EINVAL);
	assert_int_equal(backend->last_why()->reason, VB_WHY_BIND_MW_NO_MR);
	a_mw_bind.bind_info.length = 0;
	a_mw_bind.bind_info.addr = 1;
	assert_int_equal(backend->bind_mw(&a_qp_ex.qp_base, &a_mw, &a_mw_bind), EINVAL);
	a_mw_bind.bind_info.mr = &mr;
	a_mw.pd = &a_pd;
	assert_int_equal(backend->bind_mw(&a_qp_ex.qp_base, &a_mw, &a_mw_bind), EPERM);
	assert_int_equal(backend->last_why()->reason, VB_WHY_BIND_MW_PD);
	assert_string_equal(backend->last_why()->verb, "bind_mw");
	assert_int_equal(standin.calls(), 0);

	mr.pd = &a_pd;
	assert_int_equal(backend->bind_mw(&a_qp_ex.qp_base, &a_mw, &a_mw_bind), 0);
	expect_call("ops.bind_mw", 3);
	a_mw.pd = NULL;
}

/* Providers leave these fields to the caller. */
static void create_wq_fills_the_callers_fields(void **state)
{
	memset(&answer_space, 0xee, sizeof(answer_space));
	a_wq_init_attr.wq_context = &a_pd;
	standin.script((uintptr_t)&answer_space, 0);
	assert_ptr_equal(backend->create_wq(&a_vctx.context, &a_wq_init_attr), &answer_space);
	assert_ptr_equal(answer_space.wq.wq_context, &a_pd);
	assert_int_equal(answer_space.wq.events_completed, 0);
	assert_int_equal(pthread_mutex_trylock(&answer_space.wq.mutex), 0);
	assert_int_equal(pthread_mutex_unlock(&answer_space.wq.mutex), 0);
}

/* The backend's last verb failed for this reason, with this whole sentence. */
static void expect_reason(enum vb_reason reason, const char *expected)
{
	char text[512];

	assert_int_equal(backend->last_why()->reason, reason);
	assert_string_equal(vb_why_text(backend->last_why(), text, sizeof(text)), expected);
}

static void a_failure_of_the_library_has_no_reason(void **state)
{
	standin.script(0, ERR);
	assert_null(backend->get_device_list(NULL));
	expect_reason(VB_WHY_NONE, "");
}

/* The reason is of the last verb, and a verb that succeeds ends it. */
static void a_missing_verb_is_said_until_the_next_verb(void **state)
{
	struct ibv_context *plain = &a_vctx.context;
	struct verbs_context none = {0};

	none.context = *plain;
	none.context.ops.req_notify_cq = NULL;
	assert_int_equal(backend->req_notify_cq(&(struct ibv_cq){.context = &none.context}, 0),
			 EOPNOTSUPP);
	expect_reason(VB_WHY_VERB_LACKING,
		      "req_notify_cq: libibverbs or the driver of the device does not have this "
		      "verb; do without the verb when it fails with EOPNOTSUPP, or use a device "
		      "that has it");
	standin.script(0, 0);
	assert_int_equal(backend->dealloc_pd(&a_pd), 0);
	expect_reason(VB_WHY_NONE, "");
}

/* ENOSYS of a loaded library: man ibv_get_device_list(3), "No kernel support for RDMA". */
static void a_kernel_without_support_is_said(void **state)
{
	standin.script(0, ENOSYS);
	assert_null(backend->get_device_list(NULL));
	assert_int_equal(errno, ENOSYS);
	expect_reason(
		VB_WHY_KERNEL_WITHOUT_RDMA,
		"get_device_list: the kernel has no RDMA support loaded: there is no "
		"/sys/class/infiniband_verbs; load the driver of the adapter, or rdma_rxe for "
		"SoftRoCE (modprobe rdma_rxe)");

	standin.script((uintptr_t)&answer_space, 0);
	assert_non_null(backend->get_device_list(NULL));
	expect_reason(VB_WHY_NONE, "");
}

/* --- other libraries --- */

/* A verb that the library does not export answers EOPNOTSUPP. */
static void missing_exports_are_unsupported(void **state)
{
	unsigned int checked = 0;
	int num_devices = -1;

	for (size_t i = 0; i < case_count; i++) {
		if (!strcmp(cases[i].verb, "get_device_list"))
			continue;
		if (!is_export(&cases[i]) && !(cases[i].flags & FALLS_BACK))
			continue;
		/* The fallback would write to the case's size, which is larger than memory. */
		if (!strcmp(cases[i].verb, "query_device_ex"))
			continue;
		check_unsupported(&cases[i]);
		checked++;
	}
	assert_true(checked > 50);
	assert_non_null(backend->get_device_list(&num_devices));
	assert_int_equal(num_devices, 0);
}

/* The backend refuses with ENOSYS and this sentence, in which %s is the file's name. */
static void refuses_with(enum vb_reason reason, const char *sentence)
{
	char expected[512];
	const char *file = getenv("VERBENA_LIBIBVERBS");
	int num_devices = -1;

	if (!file) {
		fail();
		return;
	}
	errno = 0;
	assert_null(backend->get_device_list(&num_devices));
	assert_int_equal(errno, ENOSYS);
	errno = 0;
	assert_null(backend->import_device(0));
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(backend->fork_init(), ENOSYS);
	assert_int_equal(backend->is_fork_initialized(), IBV_FORK_DISABLED);

	snprintf(expected, sizeof(expected), sentence, file, file);
	expect_reason(reason, expected);
}

static void the_dropin_is_refused(void **state)
{
	refuses_with(VB_WHY_LIBRARY_IS_DROPIN,
		     "is_fork_initialized: %s is Verbena's own drop-in, beside which the real "
		     "libibverbs cannot be loaded; run without the drop-in to reach real devices");
}

static void an_absent_library_names_the_package(void **state)
{
	refuses_with(VB_WHY_LIBRARY_MISSING,
		     "is_fork_initialized: %s (%s: cannot open shared object file: No such file or "
		     "directory) cannot be loaded; install libibverbs1 and ibverbs-providers "
		     "(Debian, Ubuntu) or rdma-core (Fedora, SUSE), or name the file in "
		     "VERBENA_LIBIBVERBS");
}

static void another_library_is_refused(void **state)
{
	refuses_with(VB_WHY_LIBRARY_MISSING,
		     "is_fork_initialized: %s (it has no ibv_get_device_list) cannot be loaded; "
		     "install libibverbs1 and ibverbs-providers (Debian, Ubuntu) or rdma-core "
		     "(Fedora, SUSE), or name the file in VERBENA_LIBIBVERBS");
}

static int run_full(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_verb_passes_call_and_success, set_up),
		cmocka_unit_test_setup(every_verb_passes_failure_unchanged, set_up),
		cmocka_unit_test_setup(rereg_mr_passes_each_code, set_up),
		cmocka_unit_test(rows_are_in_the_order_of_the_members),
		cmocka_unit_test(each_row_has_a_case),
		cmocka_unit_test_setup(null_operations_are_unsupported, set_up),
		cmocka_unit_test_setup(operations_beyond_sz_are_unsupported, set_up),
		cmocka_unit_test_setup(sz_is_honoured_to_the_pointer, set_up),
		cmocka_unit_test_setup(a_plain_context_has_no_extended_verbs, set_up),
		cmocka_unit_test_setup(post_srq_ops_names_the_first_when_unsupported, set_up),
		cmocka_unit_test_setup(query_port_falls_back_on_the_export, set_up),
		cmocka_unit_test_setup(query_device_ex_falls_back_on_query_device, set_up),
		cmocka_unit_test_setup(query_device_ex_falls_back_on_those_errors, set_up),
		cmocka_unit_test_setup(query_device_ex_refuses_input_bits, set_up),
		cmocka_unit_test_setup(create_qp_ex_with_only_a_pd_is_create_qp, set_up),
		cmocka_unit_test_setup(create_srq_ex_of_a_basic_one_is_create_srq, set_up),
		cmocka_unit_test_setup(optional_access_flags_go_to_iova2, set_up),
		cmocka_unit_test_setup(bind_mw_refuses_what_the_wrapper_refuses, set_up),
		cmocka_unit_test_setup(create_wq_fills_the_callers_fields, set_up),
		cmocka_unit_test_setup(a_failure_of_the_library_has_no_reason, set_up),
		cmocka_unit_test_setup(a_missing_verb_is_said_until_the_next_verb, set_up),
		cmocka_unit_test_setup(a_kernel_without_support_is_said, set_up),
	};

	return cmocka_run_group_tests(tests, load_standin, NULL);
}

static int run_one(const char *kind)
{
	const struct CMUnitTest bare[] = {
		cmocka_unit_test_setup(missing_exports_are_unsupported, set_up_bare),
	};
	const struct CMUnitTest dropin[] = {cmocka_unit_test(the_dropin_is_refused)};
	const struct CMUnitTest absent[] = {cmocka_unit_test(an_absent_library_names_the_package)};
	const struct CMUnitTest other[] = {cmocka_unit_test(another_library_is_refused)};

	if (!strcmp(kind, "bare"))
		return cmocka_run_group_tests(bare, NULL, NULL);
	if (!strcmp(kind, "dropin"))
		return cmocka_run_group_tests(dropin, NULL, NULL);
	if (!strcmp(kind, "absent"))
		return cmocka_run_group_tests(absent, NULL, NULL);
	if (!strcmp(kind, "other"))
		return cmocka_run_group_tests(other, NULL, NULL);
	return -1;
}

int main(int argc, char **argv)
{
	int status = -1;

	if (argc == 2 && getenv("VERBENA_LIBIBVERBS"))
		status = !strcmp(argv[1], "full") ? run_full() : run_one(argv[1]);
	if (status < 0)
		fprintf(stderr, "usage: VERBENA_LIBIBVERBS=FILE %s full|bare|dropin|absent|other\n",
			argv[0]);
	return status ? 1 : 0;
}
