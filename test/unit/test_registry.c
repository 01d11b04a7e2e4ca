/* SPDX-License-Identifier: MIT */
/*
 * Choosing a backend, and finding the one of an object, with fake backends beside the built-in
 * ones.
 */
#include "src/base/failure.h"
#include "src/verbs/inline.h"
#include "src/verbs/registry.h"
#include "test/unit/last_sentence.h"

#include <verbena/error.h>
#include <verbena/verbs.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#define DEVICES 2

/* Two fakes that answer query_device with a vendor_id of their own. */
struct fake {
	uint32_t vendor_id;
	struct ibv_device devices[DEVICES];
	unsigned int lists; /* that are not freed */
	unsigned int queries;
	int close_answer;
	int query_answer;
	struct vb_why why;
};

static struct fake alpha = {.vendor_id = 0xa};
static struct fake beta = {.vendor_id = 0xb};

static struct ibv_device **fake_list(struct fake *fake, int *num_devices)
{
	struct ibv_device **list = calloc(DEVICES + 1, sizeof(struct ibv_device *));

	for (int i = 0; list && i < DEVICES; i++)
		list[i] = &fake->devices[i];
	if (num_devices)
		*num_devices = DEVICES;
	__atomic_fetch_add(&fake->lists, 1, __ATOMIC_RELAXED);
	return list;
}

static void fake_free_list(struct fake *fake, struct ibv_device **list)
{
	__atomic_fetch_sub(&fake->lists, 1, __ATOMIC_RELAXED);
	free(list);
}

static struct ibv_context *fake_open(struct ibv_device *device)
{
	struct ibv_context *context = calloc(1, sizeof(*context));

	if (context)
		context->device = device;
	return context;
}

/*
 * Contexts that are closed, linked by abi_compat. Their memory is kept to the test's end, since a
 * program that uses one has the backends look at it.
 */
static struct ibv_context *closed;
static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;

static void bury(struct ibv_context *context)
{
	pthread_mutex_lock(&closed_lock);
	context->abi_compat = closed;
	closed = context;
	pthread_mutex_unlock(&closed_lock);
}

static int fake_close(struct fake *fake, struct ibv_context *context)
{
	if (fake->close_answer) {
		errno = EBUSY;
		return fake->close_answer;
	}
	bury(context);
	return 0;
}

static int fake_query(struct fake *fake, struct ibv_device_attr *attr)
{
	__atomic_fetch_add(&fake->queries, 1, __ATOMIC_RELAXED);
	attr->vendor_id = fake->vendor_id;
	return 0;
}

static struct ibv_device **alpha_list(int *num_devices)
{
	return fake_list(&alpha, num_devices);
}

static struct ibv_device **beta_list(int *num_devices)
{
	return fake_list(&beta, num_devices);
}

static void alpha_free_list(struct ibv_device **list)
{
	fake_free_list(&alpha, list);
}

static void beta_free_list(struct ibv_device **list)
{
	fake_free_list(&beta, list);
}

static int alpha_close(struct ibv_context *context)
{
	return fake_close(&alpha, context);
}

static int beta_close(struct ibv_context *context)
{
	return fake_close(&beta, context);
}

static int alpha_query(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return fake_query(&alpha, attr);
}

static int beta_query(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return beta.query_answer ? beta.query_answer : fake_query(&beta, attr);
}

static void listen_to_nobody(void (*heard)(int err, const struct vb_why *(*explain)(void)))
{
	(void)heard;
}

static const struct vb_why *beta_last_why(void)
{
	return &beta.why;
}

static const char *alpha_name(struct ibv_device *device)
{
	return "a";
}

static const char *beta_name(struct ibv_device *device)
{
	return "b";
}

static int alpha_query_port(struct ibv_context *context, uint8_t port_num,
			    struct ibv_port_attr *attr, size_t size)
{
	return EINVAL;
}

static const char *alpha_last_error(void)
{
	return "query_port: device a has one port, not 7";
}

static struct ibv_context *alpha_import(int cmd_fd)
{
	return fake_open(&alpha.devices[1]);
}

static const struct vb_backend alpha_backend = {
	.name = "alpha",
	.description = "a fake",
	.last_error = alpha_last_error,
	.get_device_list = alpha_list,
	.free_device_list = alpha_free_list,
	.get_device_name = alpha_name,
	.open_device = fake_open,
	.close_device = alpha_close,
	.import_device = alpha_import,
	.query_device = alpha_query,
	.query_port = alpha_query_port,
};

static const struct vb_backend beta_backend = {
	.name = "beta",
	.description = "another fake",
	.last_why = beta_last_why,
	.get_device_list = beta_list,
	.free_device_list = beta_free_list,
	.get_device_name = beta_name,
	.open_device = fake_open,
	.close_device = beta_close,
	.query_device = beta_query,
};

void setUp(void)
{
	int err = vb_backend_add(&alpha_backend);

	TEST_ASSERT_TRUE(err == 0 || err == EEXIST);
	err = vb_backend_add(&beta_backend);
	TEST_ASSERT_TRUE(err == 0 || err == EEXIST);
	unsetenv("VERBENA_BACKEND");
	alpha.close_answer = 0;
}

void tearDown(void)
{
	unsetenv("VERBENA_BACKEND");
	while (closed) {
		struct ibv_context *next = closed->abi_compat;

		free(closed);
		closed = next;
	}
}

/* The first device of a fake, opened, with its list freed at once. */
static struct ibv_context *open_first(const char *backend)
{
	struct ibv_device **list = vb_get_device_list(backend, NULL);
	struct ibv_context *context;

	TEST_ASSERT_NOT_NULL(list);
	context = vb_open_device(list[0]);
	TEST_ASSERT_NOT_NULL(context);
	vb_free_device_list(list);
	return context;
}

static const char *chosen(const char *argument)
{
	const struct vb_backend *backend = vb_find_backend(argument);

	return backend ? backend->name : NULL;
}

void test_registry_default_is_sim(void)
{
	TEST_ASSERT_EQUAL_STRING("sim", chosen(NULL));
	TEST_ASSERT_EQUAL_STRING("sim", chosen(""));
	setenv("VERBENA_BACKEND", "", 1);
	TEST_ASSERT_EQUAL_STRING("sim", chosen(NULL));
}

void test_registry_environment_is_before_default(void)
{
	setenv("VERBENA_BACKEND", "beta", 1);
	TEST_ASSERT_EQUAL_STRING("beta", chosen(NULL));
	TEST_ASSERT_EQUAL_STRING("beta", chosen(""));
}

void test_registry_argument_is_before_environment(void)
{
	setenv("VERBENA_BACKEND", "beta", 1);
	TEST_ASSERT_EQUAL_STRING("alpha", chosen("alpha"));
	TEST_ASSERT_EQUAL_STRING("ibverbs", chosen("ibverbs"));
}

void test_registry_unknown_name_lists_the_known(void)
{
	int num_devices = 7;

	errno = 0;
	TEST_ASSERT_NULL(vb_find_backend("nosuch"));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(
		VB_WHY_BACKEND_UNKNOWN,
		"find_backend: there is no backend \"nosuch\"; the known ones are sim, "
		"ibverbs, alpha, beta; give one of these names, or set VERBENA_BACKEND to one "
		"and give NULL");

	setenv("VERBENA_BACKEND", "neither", 1);
	errno = 0;
	TEST_ASSERT_NULL(vb_get_device_list(NULL, &num_devices));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(0, num_devices);
	expect_reason(
		VB_WHY_BACKEND_UNKNOWN,
		"get_device_list: there is no backend \"neither\"; the known ones are sim, "
		"ibverbs, alpha, beta; give one of these names, or set VERBENA_BACKEND to one "
		"and give NULL");
	errno = 0;
	TEST_ASSERT_NULL(vb_import_device("nosuch", 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_fork_init("nosuch"));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(IBV_FORK_DISABLED, vb_is_fork_initialized("nosuch"));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

static int shadow_query(struct ibv_context *context, struct ibv_device_attr *attr)
{
	int err = alpha_query(context, attr);

	attr->vendor_id += 100;
	return err;
}

void test_registry_layer_stacks_on_a_backend(void)
{
	struct vb_backend *slot = vb_backend_slot("alpha");
	struct ibv_context *context = open_first("alpha");
	struct ibv_device_attr attr = {0};

	TEST_ASSERT_EQUAL_PTR(vb_find_backend("alpha"), slot);
	slot->query_device = shadow_query;
	TEST_ASSERT_EQUAL_INT(0, vb_query_device(context, &attr));
	TEST_ASSERT_EQUAL_UINT(alpha.vendor_id + 100, attr.vendor_id);
	slot->query_device = alpha_query;
	TEST_ASSERT_EQUAL_INT(0, vb_query_device(context, &attr));
	TEST_ASSERT_EQUAL_UINT(alpha.vendor_id, attr.vendor_id);
	vb_close_device(context);

	errno = 0;
	TEST_ASSERT_NULL(vb_backend_slot("nosuch"));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
}

/* A name of any length is quoted in part, not copied past an end. */
void test_registry_long_name_is_cut(void)
{
	char name[5000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	TEST_ASSERT_NULL(vb_find_backend(name));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "sim, ibverbs"));
}

void test_registry_add_refuses_a_taken_name_and_none(void)
{
	const struct vb_backend nameless = {.name = NULL};
	const struct vb_backend empty = {.name = ""};
	const struct vb_backend again = {.name = "sim"};

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_backend_add(&nameless));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_backend_add(&empty));
	TEST_ASSERT_EQUAL_INT(EEXIST, vb_backend_add(&again));
	TEST_ASSERT_EQUAL_INT(EEXIST, vb_backend_add(&alpha_backend));
}

void test_registry_slots_have_no_null_verb(void)
{
	const struct vb_backend *slot;
	unsigned int count = 0;

	for (; (slot = vb_backend_at(count)); count++) {
		const size_t first = offsetof(struct vb_backend, get_device_list);
		const size_t verbs = (sizeof(*slot) - first) / sizeof(void *);
		const void *const *verb = (const void *)((const char *)slot + first);

		for (size_t i = 0; i < verbs; i++)
			TEST_ASSERT_NOT_NULL_MESSAGE(verb[i], slot->name);
	}
	TEST_ASSERT_EQUAL_UINT(4, count);
}

void test_registry_dispatches_by_context(void)
{
	struct ibv_context *a = open_first("alpha");
	struct ibv_context *b = open_first("beta");
	struct ibv_device_attr attr;

	TEST_ASSERT_EQUAL_INT(0, vb_query_device(a, &attr));
	TEST_ASSERT_EQUAL_HEX32(0xa, attr.vendor_id);
	TEST_ASSERT_EQUAL_INT(0, vb_query_device(b, &attr));
	TEST_ASSERT_EQUAL_HEX32(0xb, attr.vendor_id);
	TEST_ASSERT_EQUAL_STRING("alpha", vb_context_backend(a)->name);
	TEST_ASSERT_EQUAL_STRING("beta", vb_context_backend(b)->name);

	/* The list is freed, but the open context keeps its device known. */
	TEST_ASSERT_EQUAL_STRING("a", vb_get_device_name(a->device));
	TEST_ASSERT_EQUAL_STRING("beta", vb_device_backend(b->device)->name);

	TEST_ASSERT_EQUAL_INT(0, vb_close_device(a));
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(b));
	TEST_ASSERT_EQUAL_UINT(0, alpha.lists);
	TEST_ASSERT_EQUAL_UINT(0, beta.lists);
}

void test_registry_imported_context_is_known(void)
{
	struct ibv_context *a = vb_import_device("alpha", 3);
	struct ibv_device_attr attr;

	TEST_ASSERT_NOT_NULL(a);
	TEST_ASSERT_EQUAL_INT(0, vb_query_device(a, &attr));
	TEST_ASSERT_EQUAL_HEX32(0xa, attr.vendor_id);
	TEST_ASSERT_EQUAL_STRING("a", vb_get_device_name(a->device));
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(a));
}

void test_registry_forgets_devices_nobody_holds(void)
{
	struct ibv_device **first = vb_get_device_list("alpha", NULL);
	struct ibv_device **second = vb_get_device_list("alpha", NULL);
	struct ibv_device *device = first[0];

	vb_free_device_list(first);
	TEST_ASSERT_EQUAL_STRING("a", vb_get_device_name(device));
	vb_free_device_list(second);

	errno = 0;
	TEST_ASSERT_NULL(vb_get_device_name(device));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	errno = 0;
	TEST_ASSERT_NULL(vb_open_device(device));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(-1, vb_get_device_index(device));
	TEST_ASSERT_EQUAL_UINT64(0, vb_get_device_guid(device));
	TEST_ASSERT_NULL(vb_device_backend(device));
	expect_reason(VB_WHY_FOREIGN_DEVICE,
		      "device_backend: the device 0x%" PRIx64
		      " belongs to no backend; take a device "
		      "of vb_get_device_list(), and free the list after the device is opened",
		      (uint64_t)(uintptr_t)device);
}

/* Programs sort and cut the array that they were given; its devices are known all the same. */
void test_registry_list_may_be_changed_by_its_owner(void)
{
	struct ibv_device **list = vb_get_device_list("alpha", NULL);

	list[0] = list[1];
	list[1] = NULL;
	vb_free_device_list(list);
	TEST_ASSERT_NULL(vb_device_backend(&alpha.devices[0]));
	TEST_ASSERT_NULL(vb_device_backend(&alpha.devices[1]));
}

void test_registry_frees_a_list_once(void)
{
	struct ibv_device **list = vb_get_device_list("beta", NULL);
	struct ibv_device *strange[1] = {NULL};

	vb_free_device_list(list);
	TEST_ASSERT_EQUAL_UINT(0, beta.lists);
	vb_free_device_list(list);
	vb_free_device_list(strange);
	vb_free_device_list(NULL);
	TEST_ASSERT_EQUAL_UINT(0, beta.lists);
	expect_reason(VB_WHY_LIST_UNKNOWN,
		      "free_device_list: the list 0x%" PRIx64
		      " is of no backend, or freed already; "
		      "free each list of vb_get_device_list() once",
		      (uint64_t)(uintptr_t)strange);
	TEST_ASSERT_EQUAL_INT(VB_ERROR_INVALID_INPUT, vb_last_error_kind());
}

void test_registry_closed_context_is_unknown(void)
{
	struct ibv_context *a = open_first("alpha");
	struct ibv_device_attr attr;
	unsigned int before = alpha.queries;

	TEST_ASSERT_EQUAL_INT(0, vb_close_device(a));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_query_device(a, &attr));
	expect_reason(VB_WHY_FOREIGN_CONTEXT,
		      "query_device: the context 0x%" PRIx64
		      " belongs to no backend; use a context "
		      "of vb_open_device() or vb_import_device(), and close it after its last use",
		      (uint64_t)(uintptr_t)a);
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-1, vb_close_device(a));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_UINT(before, alpha.queries);
}

void test_registry_context_that_does_not_close_stays_known(void)
{
	struct ibv_context *a = open_first("alpha");
	struct ibv_device_attr attr;

	alpha.close_answer = -1;
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-1, vb_close_device(a));
	TEST_ASSERT_EQUAL_INT(EBUSY, errno);
	TEST_ASSERT_EQUAL_INT(0, vb_query_device(a, &attr));
	TEST_ASSERT_EQUAL_STRING("a", vb_get_device_name(a->device));
	alpha.close_answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(a));
}

void test_registry_null_objects_are_einval(void)
{
	errno = 0;
	TEST_ASSERT_NULL(vb_alloc_pd(NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	expect_reason(
		VB_WHY_NULL_OBJECT,
		"alloc_pd: the object, or the context pointer in it, is NULL; pass the object "
		"that its verb returned; a verb that cannot make an object returns NULL and "
		"sets errno");
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_destroy_qp(NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_dealloc_pd(&(struct ibv_pd){0}));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-1, vb_get_cq_event(NULL, NULL, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(-EINVAL, vb_query_gid_table(NULL, NULL, 0, 0, 0));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT, vb_rereg_mr(NULL, 0, NULL, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(0, vb_query_qp_data_in_order(NULL, IBV_WR_SEND, 0));
	TEST_ASSERT_NULL(vb_open_device(NULL));
	expect_reason(VB_WHY_NULL_DEVICE,
		      "open_device: the device is NULL; take a device of vb_get_device_list(); the "
		      "NULL at the end of the list is no device");
}

void test_registry_missing_verb_is_eopnotsupp(void)
{
	struct ibv_context *b = open_first("beta");
	struct ibv_pd pd = {.context = b};
	struct ibv_mr mr = {.context = b};

	errno = 0;
	TEST_ASSERT_NULL(vb_alloc_pd(b));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
	expect_reason(
		VB_WHY_VERB_LACKING,
		"alloc_pd: the backend beta does not have this verb; do without the verb when "
		"it fails with EOPNOTSUPP, or use a device that has it");
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, vb_dealloc_pd(&pd));
	TEST_ASSERT_EQUAL_INT(-EOPNOTSUPP, vb_query_gid_table(b, NULL, 0, 0, 0));
	errno = 0;
	TEST_ASSERT_EQUAL_INT(-1, vb_query_pkey(b, 1, 0, NULL));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);
	errno = 0;
	TEST_ASSERT_EQUAL_INT(IBV_REREG_MR_ERR_INPUT, vb_rereg_mr(&mr, 0, NULL, NULL, 0, 0));
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, errno);

	/* Also for one who calls the table without the verbs layer, whatever failed before. */
	vb_alloc_pd(NULL);
	TEST_ASSERT_EQUAL_INT(EOPNOTSUPP, vb_find_backend("beta")->dealloc_pd(&pd));
	expect_reason(
		VB_WHY_VERB_LACKING,
		"dealloc_pd: the backend does not have this verb; do without the verb when it "
		"fails with EOPNOTSUPP, or use a device that has it");
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(b));
}

/* beta has last_why and no listen: the reason is that of the failed call, or none. */
void test_registry_backend_gives_its_reasons(void)
{
	struct ibv_context *b = open_first("beta");
	struct ibv_device_attr attr;

	beta.query_answer = ENOMEM;
	beta.why = (struct vb_why){.reason = VB_WHY_NO_MEMORY, .verb = "query_device"};
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_query_device(b, &attr));
	expect_reason(VB_WHY_NO_MEMORY,
		      "query_device: the process has no memory left; free memory, or raise the "
		      "limit of the process (ulimit -v)");
	beta.why = (struct vb_why){0};
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_query_device(b, &attr));
	expect_reason(
		VB_WHY_ERRNO_ONLY,
		"query_device: the backend beta answered ENOMEM (Cannot allocate memory) and "
		"gave no reason; look up the errno in the manual page of the verb, or run the "
		"program on simulated devices, which name the cause");
	TEST_ASSERT_EQUAL_INT(VB_ERROR_RESOURCE, vb_last_error_kind());
	beta.query_answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(b));
}

/* A backend with listen tells each failure: its last reason is of an earlier call. */
void test_registry_silent_failure_has_no_old_reason(void)
{
	struct ibv_context *b = open_first("beta");
	struct vb_backend *slot = vb_backend_slot("beta");
	struct ibv_device_attr attr;

	beta.query_answer = ENOMEM;
	beta.why = (struct vb_why){.reason = VB_WHY_NO_MEMORY};
	slot->listen = listen_to_nobody;
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_query_device(b, &attr));
	slot->listen = NULL;
	TEST_ASSERT_EQUAL_HEX(VB_WHY_ERRNO_ONLY, vb_last_reason());
	beta.query_answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(b));
}

/* A backend without listen does not see inline verbs: its last reason is of another verb. */
void test_registry_inline_failure_has_no_old_reason(void)
{
	struct ibv_context *b = open_first("beta");

	beta.why = (struct vb_why){.reason = VB_WHY_NO_MEMORY};
	TEST_ASSERT_EQUAL_INT(EIO, fail_inline(EIO, b, "post"));
	TEST_ASSERT_EQUAL_STRING("driver: post: Input/output error", vb_last_error());
	beta.why = (struct vb_why){0};
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(b));
}

void test_registry_failure_keeps_the_reason_that_it_repeats(void)
{
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_dealloc_pd(NULL));
	fail_because(EINVAL, "closing the channel");
	TEST_ASSERT_EQUAL_HEX(VB_WHY_NULL_OBJECT, vb_last_reason());
	TEST_ASSERT_EQUAL_INT(0,
			      strncmp(vb_last_error(), "invalid input: closing the channel: ", 36));
}

void test_registry_backend_explains_its_failures(void)
{
	char kept[256];
	struct ibv_context *a = open_first("alpha");
	struct ibv_port_attr attr;

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_query_port(a, 7, &attr, sizeof(attr)));
	expect_reason(VB_WHY_SAID, "query_port: device a has one port, not 7");
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_dealloc_pd(NULL));
	snprintf(kept, sizeof(kept), "%s", vb_last_error());
	TEST_ASSERT_EQUAL_INT(VB_WHY_NULL_OBJECT, vb_last_reason());
	/* A call that succeeds does not bring alpha's old sentence back. */
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(a));
	expect_reason(VB_WHY_NULL_OBJECT, "%s", kept);
}

/* Its answer is whether the thread has a sentence already. */
static void *has_sentence(void *unused)
{
	return (void *)(uintptr_t)(vb_last_error()[0] != '\0');
}

void test_registry_sentences_are_of_one_thread(void)
{
	pthread_t thread;
	void *has;

	TEST_ASSERT_EQUAL_INT(EINVAL, vb_dealloc_pd(NULL));
	TEST_ASSERT_NOT_NULL(has_sentence(NULL));
	TEST_ASSERT_EQUAL_INT(0, pthread_create(&thread, NULL, has_sentence, NULL));
	TEST_ASSERT_EQUAL_INT(0, pthread_join(thread, &has));
	TEST_ASSERT_NULL(has);
}

#define THREADS 4
#define ROUNDS	2000

/* Opens, asks and closes on both fakes; the count of wrong answers. */
static void *churn(void *unused)
{
	static const char *const names[] = {"alpha", "beta"};
	uintptr_t wrong = 0;

	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_device **list = vb_get_device_list(names[i % 2], NULL);
		struct ibv_context *context = list ? vb_open_device(list[i / 2 % DEVICES]) : NULL;
		struct ibv_device_attr attr = {0};

		vb_free_device_list(list);
		wrong += vb_query_device(context, &attr) || attr.vendor_id != (i % 2 ? 0xb : 0xa);
		wrong += vb_close_device(context) != 0;
	}
	return (void *)wrong;
}

void test_registry_table_is_safe_for_threads(void)
{
	pthread_t threads[THREADS];
	void *wrong;

	for (int i = 0; i < THREADS; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, churn, NULL));
	for (int i = 0; i < THREADS; i++) {
		TEST_ASSERT_EQUAL_INT(0, pthread_join(threads[i], &wrong));
		TEST_ASSERT_NULL(wrong);
	}
	TEST_ASSERT_EQUAL_UINT(0, alpha.lists);
	TEST_ASSERT_EQUAL_UINT(0, beta.lists);
	TEST_ASSERT_NULL(vb_device_backend(&alpha.devices[0]));
}

/* include/verbena/backend.h: a program asks these bits before it traces or moves the clock. */
void test_capabilities_of_the_simulator(void)
{
	const struct vb_backend *backend = registry_find("sim");

	TEST_ASSERT_NOT_NULL(backend);
	TEST_ASSERT_TRUE(backend->capabilities & VB_BACKEND_SIMULATED);
	TEST_ASSERT_TRUE(backend->capabilities & VB_BACKEND_VIRTUAL_CLOCK);
	TEST_ASSERT_TRUE(backend->capabilities & VB_BACKEND_TRACE);
}
