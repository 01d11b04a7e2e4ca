/* SPDX-License-Identifier: MIT */
/*
 * vb_* from end to end: through the verbs layer, the backend ibverbs and the stand-in.
 *
 * The cases of cases.c call a struct vb_backend. Here it is one whose verbs are the vb_* functions,
 * so that the same table checks that each of them finds the backend, hands its arguments on in
 * order and brings the answer back. VERBENA_LIBIBVERBS names the stand-in.
 */
#include "cases.h"

#include "src/verbs/registry.h"

#include <verbena/error.h>
#include <verbena/verbs.h>

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct ibv_device **named_get_device_list(int *num_devices)
{
	return vb_get_device_list("ibverbs", num_devices);
}

static struct ibv_context *named_import_device(int cmd_fd)
{
	return vb_import_device("ibverbs", cmd_fd);
}

static int named_fork_init(void)
{
	return vb_fork_init("ibverbs");
}

static enum ibv_fork_status named_is_fork_initialized(void)
{
	return vb_is_fork_initialized("ibverbs");
}

static const struct vb_backend through = {
	.name = "through",
	.get_device_list = named_get_device_list,
	.free_device_list = vb_free_device_list,
	.get_device_name = vb_get_device_name,
	.get_device_index = vb_get_device_index,
	.get_device_guid = vb_get_device_guid,
	.open_device = vb_open_device,
	.close_device = vb_close_device,
	.import_device = named_import_device,
	.query_device = vb_query_device,
	.query_device_ex = vb_query_device_ex,
	.query_port = vb_query_port,
	.query_gid = vb_query_gid,
	.query_gid_ex = vb_query_gid_ex,
	.query_gid_table = vb_query_gid_table,
	.query_pkey = vb_query_pkey,
	.get_pkey_index = vb_get_pkey_index,
	.query_rt_values_ex = vb_query_rt_values_ex,
	.get_async_event = vb_get_async_event,
	.ack_async_event = vb_ack_async_event,
	.resolve_eth_l2_from_gid = vb_resolve_eth_l2_from_gid,
	.fork_init = named_fork_init,
	.is_fork_initialized = named_is_fork_initialized,
	.alloc_pd = vb_alloc_pd,
	.dealloc_pd = vb_dealloc_pd,
	.import_pd = vb_import_pd,
	.unimport_pd = vb_unimport_pd,
	.alloc_td = vb_alloc_td,
	.dealloc_td = vb_dealloc_td,
	.alloc_parent_domain = vb_alloc_parent_domain,
	.open_xrcd = vb_open_xrcd,
	.close_xrcd = vb_close_xrcd,
	.reg_mr = vb_reg_mr,
	.reg_mr_iova = vb_reg_mr_iova,
	.reg_mr_iova2 = vb_reg_mr_iova2,
	.reg_dmabuf_mr = vb_reg_dmabuf_mr,
	.rereg_mr = vb_rereg_mr,
	.dereg_mr = vb_dereg_mr,
	.import_mr = vb_import_mr,
	.unimport_mr = vb_unimport_mr,
	.alloc_null_mr = vb_alloc_null_mr,
	.reg_dm_mr = vb_reg_dm_mr,
	.advise_mr = vb_advise_mr,
	.alloc_mw = vb_alloc_mw,
	.bind_mw = vb_bind_mw,
	.dealloc_mw = vb_dealloc_mw,
	.alloc_dm = vb_alloc_dm,
	.free_dm = vb_free_dm,
	.import_dm = vb_import_dm,
	.unimport_dm = vb_unimport_dm,
	.create_comp_channel = vb_create_comp_channel,
	.destroy_comp_channel = vb_destroy_comp_channel,
	.create_cq = vb_create_cq,
	.create_cq_ex = vb_create_cq_ex,
	.resize_cq = vb_resize_cq,
	.modify_cq = vb_modify_cq,
	.destroy_cq = vb_destroy_cq,
	.get_cq_event = vb_get_cq_event,
	.ack_cq_events = vb_ack_cq_events,
	.poll_cq = vb_poll_cq,
	.req_notify_cq = vb_req_notify_cq,
	.create_srq = vb_create_srq,
	.create_srq_ex = vb_create_srq_ex,
	.modify_srq = vb_modify_srq,
	.query_srq = vb_query_srq,
	.get_srq_num = vb_get_srq_num,
	.destroy_srq = vb_destroy_srq,
	.post_srq_recv = vb_post_srq_recv,
	.post_srq_ops = vb_post_srq_ops,
	.create_qp = vb_create_qp,
	.create_qp_ex = vb_create_qp_ex,
	.qp_to_qp_ex = vb_qp_to_qp_ex,
	.open_qp = vb_open_qp,
	.modify_qp = vb_modify_qp,
	.query_qp = vb_query_qp,
	.query_qp_data_in_order = vb_query_qp_data_in_order,
	.modify_qp_rate_limit = vb_modify_qp_rate_limit,
	.set_ece = vb_set_ece,
	.query_ece = vb_query_ece,
	.destroy_qp = vb_destroy_qp,
	.post_send = vb_post_send,
	.post_recv = vb_post_recv,
	.attach_mcast = vb_attach_mcast,
	.detach_mcast = vb_detach_mcast,
	.create_ah = vb_create_ah,
	.init_ah_from_wc = vb_init_ah_from_wc,
	.create_ah_from_wc = vb_create_ah_from_wc,
	.destroy_ah = vb_destroy_ah,
	.create_wq = vb_create_wq,
	.modify_wq = vb_modify_wq,
	.destroy_wq = vb_destroy_wq,
	.create_rwq_ind_table = vb_create_rwq_ind_table,
	.destroy_rwq_ind_table = vb_destroy_rwq_ind_table,
	.create_flow = vb_create_flow,
	.destroy_flow = vb_destroy_flow,
	.create_flow_action_esp = vb_create_flow_action_esp,
	.modify_flow_action_esp = vb_modify_flow_action_esp,
	.destroy_flow_action = vb_destroy_flow_action,
	.create_counters = vb_create_counters,
	.destroy_counters = vb_destroy_counters,
	.attach_counters_point_flow = vb_attach_counters_point_flow,
	.read_counters = vb_read_counters,
};

/*
 * Verbs that this table cannot judge: those that make or end lists and contexts, on which the
 * others depend (test_registry.c has them), and the events' one, which goes by the event
 * (test_verbs.c).
 */
static const char *const elsewhere[] = {
	"get_device_list", "free_device_list", "open_device",
	"close_device",	   "import_device",    "ack_async_event",
};

/* The data path goes through the object and asks no backend. */
static const char *const inline_verbs[] = {"poll_cq", "req_notify_cq", "post_send", "post_recv",
					   "post_srq_recv"};

/* They have no object: they name their backend. */
static const char *const named_verbs[] = {"fork_init", "is_fork_initialized"};

static bool is_in(const char *verb, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(verb, list[i]))
			return true;
	return false;
}

static struct {
	void (*script)(uint64_t answer, int err);
	const struct standin_call *(*last)(void);
	unsigned int (*calls)(void);
	void (*fill_context)(struct verbs_context *vctx);
} standin;

static struct ibv_device *a_device_list[2];

static void find(void *handle, const char *name, void *place)
{
	void *found = dlsym(handle, name);

	assert_non_null(found);
	memcpy(place, &found, sizeof(found));
}

static int load_standin(void **state)
{
	void *handle = dlopen(getenv("VERBENA_LIBIBVERBS"), RTLD_NOW | RTLD_LOCAL);

	assert_non_null(handle);
	find(handle, "standin_script", &standin.script);
	find(handle, "standin_last", &standin.last);
	find(handle, "standin_calls", &standin.calls);
	find(handle, "standin_fill_context", &standin.fill_context);
	backend = &through;
	return 0;
}

static int set_up(void **state)
{
	cases_set_up();
	standin.fill_context(&a_vctx);
	a_vctx.context.device = &a_device;
	return 0;
}

/* The device of the cases is in a list of ibverbs, and their context is of that device. */
static int open_context(void **state)
{
	set_up(state);
	a_device_list[0] = &a_device;
	standin.script((uintptr_t)a_device_list, 0);
	assert_ptr_equal(vb_get_device_list("ibverbs", NULL), a_device_list);
	standin.script((uintptr_t)&a_vctx.context, 0);
	assert_ptr_equal(vb_open_device(a_device_list[0]), &a_vctx.context);
	return 0;
}

static int close_context(void **state)
{
	standin.script(0, 0);
	assert_int_equal(vb_close_device(&a_vctx.context), 0);
	vb_free_device_list(a_device_list);
	assert_int_equal(standin.calls(), 2);
	return 0;
}

struct outcome {
	uint64_t answer;
	int err;
};

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
		return (struct outcome){(uint64_t)IBV_REREG_MR_ERR_INPUT, err};
	default:
		return (struct outcome){0, err};
	}
}

static void check_failure(const struct verb_case *c, int err, bool err_in_void)
{
	struct outcome expected = fails(c->convention, err);
	uint64_t answer;

	if ((c->convention == NOTHING || c->convention == NUMBER) && !err_in_void)
		expected.err = 0;
	errno = 0;
	answer = c->call();
	if (answer != expected.answer || errno != expected.err) {
		print_error("%s answers %#llx with errno %d, not %#llx with %d\n", c->verb,
			    (unsigned long long)answer, errno, (unsigned long long)expected.answer,
			    expected.err);
		fail();
	}
}

/* The sentence begins with the verb's name, then a colon. */
static void check_sentence(const struct verb_case *c, const char *word)
{
	const char *why = vb_last_error();

	if (strncmp(why, c->verb, strlen(c->verb)) != 0 || why[strlen(c->verb)] != ':' ||
	    !strstr(why, word)) {
		print_error("%s: the sentence is \"%s\"\n", c->verb, why);
		fail();
	}
}

static void check_call(const struct verb_case *c)
{
	const struct standin_call *call = standin.last();

	if (standin.calls() != 1 || strcmp(call->target, c->target) != 0 ||
	    call->count != c->count || memcmp(call->args, c->args, sizeof(call->args)) != 0) {
		print_error("%s made %u calls, the last to %s, or with other arguments\n", c->verb,
			    standin.calls(), call->target ? call->target : "nothing");
		fail();
	}
}

static void every_verb_reaches_the_library(void **state)
{
	static uint64_t space[512];

	for (size_t i = 0; i < case_count; i++) {
		const struct verb_case *c = &cases[i];
		uint64_t answer = c->convention == POINTER ? (uintptr_t)space : 0;

		if (is_in(c->verb, elsewhere, COUNT(elsewhere)))
			continue;
		standin.script(answer, 0);
		assert_int_equal(c->call(), answer);
		check_call(c);
	}
}

static void every_failure_comes_back(void **state)
{
	for (size_t i = 0; i < case_count; i++) {
		const struct verb_case *c = &cases[i];
		struct outcome scripted = fails(c->convention, EDQUOT);

		if (is_in(c->verb, elsewhere, COUNT(elsewhere)))
			continue;
		if (c->convention == NOTHING || c->convention == NUMBER)
			scripted.err = 0;
		standin.script(scripted.answer, scripted.err);
		check_failure(c, EDQUOT, false);
		check_call(c);
	}
}

/* A backend that says nothing more than an errno is put in words. */
static void a_failure_has_a_sentence(void **state)
{
	standin.script(EDQUOT, 0);
	assert_int_equal(vb_modify_qp(&a_qp, NULL, 0), EDQUOT);
	assert_string_equal(vb_last_error(), "modify_qp: Disk quota exceeded (backend ibverbs)");
	standin.script((uint64_t)-1, EDQUOT);
	assert_int_equal(vb_query_gid(&a_vctx.context, 1, 0, NULL), -1);
	assert_string_equal(vb_last_error(), "query_gid: Disk quota exceeded (backend ibverbs)");
	standin.script((uint64_t)-EDQUOT, 0);
	assert_int_equal(vb_query_gid_table(&a_vctx.context, NULL, 0, 0, 0), -EDQUOT);
	assert_string_equal(vb_last_error(),
			    "query_gid_table: Disk quota exceeded (backend ibverbs)");

	/* Success says nothing new. */
	standin.script(0, 0);
	assert_int_equal(vb_destroy_qp(&a_qp), 0);
	assert_string_equal(vb_last_error(),
			    "query_gid_table: Disk quota exceeded (backend ibverbs)");
}

/* Nobody handed out this context: EINVAL in each convention, and no call. */
static void an_unknown_context_is_einval(void **state)
{
	unsigned int checked = 0;

	for (size_t i = 0; i < case_count; i++) {
		const struct verb_case *c = &cases[i];

		if (is_in(c->verb, inline_verbs, COUNT(inline_verbs)) ||
		    is_in(c->verb, named_verbs, COUNT(named_verbs)) ||
		    is_in(c->verb, elsewhere, 3) || !strcmp(c->verb, "import_device") ||
		    !strcmp(c->verb, "ack_async_event"))
			continue;
		standin.script(0, 0);
		check_failure(c, EINVAL, true);
		check_sentence(c, "belongs to no backend");
		assert_int_equal(standin.calls(), 0);
		checked++;
	}
	assert_int_equal(checked, case_count - COUNT(inline_verbs) - COUNT(named_verbs) - 5);
}

/* A backend that has nothing at all and owns the cases' context and device while it is told so. */
static bool empty_owns;

static bool empty_owns_device(const struct ibv_device *device)
{
	return empty_owns;
}

static bool empty_owns_context(const struct ibv_context *context)
{
	return empty_owns;
}

static const struct vb_backend empty = {
	.name = "empty",
	.owns_device = empty_owns_device,
	.owns_context = empty_owns_context,
};

static void a_verb_the_backend_lacks_is_eopnotsupp(void **state)
{
	assert_int_equal(registry_add(&empty), 0);
	empty_owns = true;
	for (size_t i = 0; i < case_count; i++) {
		const struct verb_case *c = &cases[i];

		if (is_in(c->verb, inline_verbs, COUNT(inline_verbs)) ||
		    is_in(c->verb, named_verbs, COUNT(named_verbs)) ||
		    !strcmp(c->verb, "get_device_list") || !strcmp(c->verb, "free_device_list") ||
		    !strcmp(c->verb, "import_device") || !strcmp(c->verb, "ack_async_event"))
			continue;
		check_failure(c, EOPNOTSUPP, true);
		check_sentence(c, "the backend empty does not have this verb");
	}
	empty_owns = false;

	errno = 0;
	assert_null(vb_get_device_list("empty", NULL));
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
	assert_null(vb_import_device("empty", 0));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(vb_fork_init("empty"), EOPNOTSUPP);
	assert_int_equal(vb_is_fork_initialized("empty"), IBV_FORK_DISABLED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_unknown_context_is_einval, set_up),
		cmocka_unit_test_setup_teardown(every_verb_reaches_the_library, open_context,
						close_context),
		cmocka_unit_test_setup_teardown(every_failure_comes_back, open_context,
						close_context),
		cmocka_unit_test_setup_teardown(a_failure_has_a_sentence, open_context,
						close_context),
		cmocka_unit_test_setup(a_verb_the_backend_lacks_is_eopnotsupp, set_up),
	};

	return cmocka_run_group_tests(tests, load_standin, NULL);
}
