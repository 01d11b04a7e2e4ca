/* SPDX-License-Identifier: MIT */
/*
 * vb_* from end to end: through the verbs layer, the backend ibverbs and the stand-in.
 *
 * The cases of cases.c call a struct vb_backend. Here its members are the vb_* functions, so the
 * cases check that each vb_* function finds the backend, passes its arguments in order and returns
 * the answer. VERBENA_LIBIBVERBS names the stand-in. With an argument, a layer is between.
 */
#include "test/ibverbs/cases.h"

#include "src/layer/layer.h"
#include "src/verbs/registry.h"

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

/* The function that stands for a verb, by how vb_<name>() finds the backend. */
#define THROUGH_CONTEXT(name) vb_##name
#define THROUGH_DEVICE(name)  vb_##name
#define THROUGH_OBJECT(name)  vb_##name
#define THROUGH_INLINE(name)  vb_##name
#define THROUGH_BY_HAND(name) vb_##name
#define THROUGH_NAMED(name)   named_##name

static const struct vb_backend through = {
	.name = "through",
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	.name = THROUGH_##by(name),
#include <verbena/verbs.def>
};

/* <verbena/verbs.h> declares each verb as <verbena/backend.h> does. */
#define VB_VERB(result, name, parameters, arguments, convention, by, object)                     \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&THROUGH_##by(name)),             \
						    __typeof__(((struct vb_backend *)0)->name)), \
		       "vb_" #name " has the type of the member " #name);
#include <verbena/verbs.def>

/*
 * Verbs that these tests leave out: those that create or end lists and contexts, on which the other
 * verbs depend (test_registry.c), and ack_async_event, which finds the backend by the event
 * (test_verbs.c).
 */
static const char *const elsewhere[] = {
	"get_device_list", "free_device_list", "open_device",
	"close_device",	   "import_device",    "ack_async_event",
};

/* The data path calls through the object. */
static const char *const inline_verbs[] = {"poll_cq", "req_notify_cq", "post_send", "post_recv",
					   "post_srq_recv"};

/* These have no object; the caller names the backend. */
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

/* Counts the calls that the layer sees. The backend calls through the objects of the provider, whose
 * wrappers must not count again. */
static unsigned int seen;
static bool layered;

static void see(const struct layer_call *call)
{
	seen++;
}

static struct layer counter = {.name = "counter", .after = see};

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

/* Puts the cases' device into a list of the backend ibverbs, and opens their context on it. */
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
		return (struct outcome){(uint64_t)err, err};
	case POINTER:
		return (struct outcome){0, err};
	case MINUS_ONE:
		return (struct outcome){(uint64_t)-1, err};
	case NEGATED:
		return (struct outcome){(uint64_t)-err, err};
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
	seen = 0;
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
	if (seen != layered) {
		print_error("the layer sees %u calls of %s\n", seen, c->verb);
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
		seen = 0;
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
		/* The dispatch sets errno where a library only returns the value. */
		if (c->convention == NOTHING || c->convention == NUMBER ||
		    ((c->convention == ERRNO || c->convention == NEGATED) &&
		     !is_in(c->verb, inline_verbs, COUNT(inline_verbs))))
			scripted.err = 0;
		standin.script(scripted.answer, scripted.err);
		check_failure(c, EDQUOT, false);
		check_call(c);
	}
}

static void check_errno_only(const char *verb)
{
	char expected[256];

	snprintf(expected, sizeof(expected),
		 "%s: the backend ibverbs answered EDQUOT (Disk quota exceeded) and gave no "
		 "reason; look up the errno in the manual page of the verb, or run the program on "
		 "simulated devices, which name the cause",
		 verb);
	assert_string_equal(vb_last_error(), expected);
	assert_int_equal(vb_last_reason(), VB_WHY_ERRNO_ONLY);
}

/* If a backend has no reason, the sentence describes the errno value. */
static void a_failure_has_a_sentence(void **state)
{
	standin.script(EDQUOT, 0);
	assert_int_equal(vb_modify_qp(&a_qp_ex.qp_base, NULL, 0), EDQUOT);
	check_errno_only("modify_qp");
	standin.script((uint64_t)-1, EDQUOT);
	assert_int_equal(vb_query_gid(&a_vctx.context, 1, 0, NULL), -1);
	check_errno_only("query_gid");
	standin.script((uint64_t)-EDQUOT, 0);
	assert_int_equal(vb_query_gid_table(&a_vctx.context, NULL, 0, 0, 0), -EDQUOT);
	check_errno_only("query_gid_table");

	/* A successful call leaves the sentence as it is. */
	standin.script(0, 0);
	assert_int_equal(vb_destroy_qp(&a_qp_ex.qp_base), 0);
	check_errno_only("query_gid_table");
}

/* No backend owns this context: each verb answers EINVAL in its convention and calls nothing. */
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

/* A backend without verbs, which owns the cases' context and device while empty_owns is set. */
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
	assert_int_equal(vb_backend_add(&empty), 0);
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

int main(int argc, char **argv)
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

	layered = argc > 1;
	if (layered && layer_add(&counter))
		return 1;
	return cmocka_run_group_tests(tests, load_standin, NULL);
}
