/* SPDX-License-Identifier: MIT */
/*
 * Each verb of verbs.def through layers, on a backend whose functions write down how they are called.
 * The fake has two functions for each verb: one in its table, one in the objects of its context.
 */
#include "src/layer/layer.h"
#include "src/layer/pack.h"
#include "src/verbs/registry.h"
#include "unity.h"

#include <verbena/error.h>
#include <verbena/verbs.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum place { NOWHERE, TABLE, OBJECT };

/* The fake's last call. */
static struct {
	enum place place;
	enum layer_verb verb;
	uint64_t arguments[LAYER_ARGUMENTS_MAX];
	unsigned int count; /* counts all calls */
} called;

/* What the fake returns, and the errno that it sets unless it is 0. */
static uint64_t answer;
static int answer_errno;

static void note(enum place place, enum layer_verb verb, const uint64_t *arguments, size_t bytes)
{
	called.place = place;
	called.verb = verb;
	called.count++;
	memcpy(called.arguments, arguments, bytes);
	if (answer_errno)
		errno = answer_errno;
}

#define BYTES_VALUE(result)   sizeof(result)
#define BYTES_NOTHING(result) 0
#define GIVE_VALUE(result)    return (result)(uintptr_t)answer
#define GIVE_NOTHING(result)
#define GIVE_ERRNO	GIVE_VALUE
#define BYTES_ERRNO	BYTES_VALUE
#define GIVE_POSTED	GIVE_VALUE
#define BYTES_POSTED	BYTES_VALUE
#define GIVE_POINTER	GIVE_VALUE
#define BYTES_POINTER	BYTES_VALUE
#define GIVE_OPTIONAL	GIVE_VALUE
#define BYTES_OPTIONAL	BYTES_VALUE
#define GIVE_MINUS_ONE	GIVE_VALUE
#define BYTES_MINUS_ONE BYTES_VALUE
#define GIVE_NEGATED	GIVE_VALUE
#define BYTES_NEGATED	BYTES_VALUE
#define GIVE_REREG	GIVE_VALUE
#define BYTES_REREG	BYTES_VALUE
#define GIVE_ANSWER	GIVE_VALUE
#define BYTES_ANSWER	BYTES_VALUE

#define FAKE(place, result, name, parameters, arguments, convention) \
	static result place##_##name parameters                      \
	{                                                            \
		const uint64_t numbers[] = {NUMBERS arguments};      \
                                                                     \
		note(place, LAYER_##name, numbers, sizeof(numbers)); \
		GIVE_##convention(result);                           \
	}

#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	FAKE(TABLE, result, name, parameters, arguments, convention)
#include <verbena/verbs.def>
#define VB_VERB(...)
#define VB_EXPORT(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	FAKE(OBJECT, result, name, parameters, arguments, convention)
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	FAKE(OBJECT, result, name, parameters, arguments, convention)
#include <verbena/verbs.def>

static const struct vb_backend fake = {
	.name = "fake",
	.description = "writes down its calls",
#define VB_VERB(result, name, parameters, arguments, convention, by, object) .name = TABLE_##name,
#include <verbena/verbs.def>
};

/* How to call a verb. All arguments are numbers of at most 64 bits, which are passed in registers. */
typedef uint64_t verb_fn(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* One row for each way to reach a verb. */
struct way {
	enum layer_verb verb;
	verb_fn *call;	    /* vb_<name>(); NULL: through the object */
	size_t place;	    /* of the pointer in struct verbs_context */
	bool takes_backend; /* vb_<name>() takes the backend's name first */
	size_t result_bytes;
};

#define HOW_CONTEXT(name) (verb_fn *)(void *)vb_##name, 0, false
#define HOW_OBJECT(name)  HOW_CONTEXT(name)
#define HOW_DEVICE(name)  HOW_CONTEXT(name)
#define HOW_NAMED(name)	  (verb_fn *)(void *)vb_##name, 0, true
/* devices.c does more than to call the backend: these have tests of their own. */
#define HOW_BY_HAND(name) NULL, 0, false
/* vb_<name>() is inline, and the same as the way through the object. */
#define HOW_INLINE(name) NULL, 0, false

static const struct way ways[] = {
#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	{LAYER_##name, HOW_##by(name), BYTES_##convention(result)},
#include <verbena/verbs.def>
#define VB_VERB(...)
#define VB_EXPORT(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	{LAYER_##name, NULL, offsetof(struct verbs_context, op), false, sizeof(result)},
#define VB_BASIC(result, name, parameters, arguments, convention, by, object)         \
	{LAYER_##name, NULL, offsetof(struct verbs_context, context.ops.name), false, \
	 sizeof(result)},
#include <verbena/verbs.def>
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static struct ibv_device device = {.name = "fake0"};
static struct ibv_device *list[] = {&device, NULL};
static struct verbs_context verbs;
static struct ibv_context *const context = &verbs.context;
/* Objects and structures of any kind: the first words of an object point to its context. */
static struct ibv_context *objects[LAYER_ARGUMENTS_MAX][128];
static uint64_t made[128]; /* an object that the fake makes */

static void fill_context(void)
{
	memset(&verbs, 0, sizeof(verbs));
#define VB_VERB(...)
#define VB_EXPORT(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	verbs.op = OBJECT_##name;
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	context->ops.name = OBJECT_##name;
#include <verbena/verbs.def>
	verbs.sz = sizeof(verbs);
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->device = &device;
}

static void fill_objects(void)
{
	for (unsigned int i = 0; i < LAYER_ARGUMENTS_MAX; i++) {
		memset(objects[i], 0, sizeof(objects[i]));
		objects[i][0] = objects[i][1] = context;
	}
}

/* --- two layers that write down what they see --- */

static char course[256];
static struct layer_call seen;
static uint64_t seen_arguments[LAYER_ARGUMENTS_MAX];
static char seen_text[512];
static int refusal;

static void write_course(const char *word)
{
	strncat(course, word, sizeof(course) - strlen(course) - 1);
}

static int before_a(struct layer_call *call)
{
	write_course("a(");
	call->state = 0xa;
	return 0;
}

static void after_a(const struct layer_call *call)
{
	TEST_ASSERT_EQUAL_HEX64(0xa, call->state);
	write_course(")a");
	seen = *call;
	memcpy(seen_arguments, call->arguments,
	       layer_verb_info(call->verb)->parameter_count * sizeof(uint64_t));
	*seen_text = '\0';
	if (call->why)
		vb_why_text(call->why, seen_text, sizeof(seen_text));
}

static int before_b(struct layer_call *call)
{
	TEST_ASSERT_EQUAL_HEX64(0, call->state);
	write_course("b(");
	call->state = 0xb;
	return refusal;
}

static void after_b(const struct layer_call *call)
{
	TEST_ASSERT_EQUAL_HEX64(0xb, call->state);
	write_course(")b");
}

static struct layer layer_a = {.name = "a", .before = before_a, .after = after_a};
static struct layer layer_b = {.name = "b", .before = before_b, .after = after_b};

void setUp(void)
{
	int err = vb_backend_add(&fake);

	TEST_ASSERT_TRUE(err == 0 || err == EEXIST);
	fill_context();
	fill_objects();
	memset(made, 0, sizeof(made));
	*course = '\0';
	refusal = 0;
	answer_errno = 0;
	answer = (uintptr_t)list;
	TEST_ASSERT_EQUAL_PTR(list, vb_get_device_list("fake", NULL));
	answer = (uintptr_t)context;
	TEST_ASSERT_EQUAL_PTR(context, vb_open_device(&device));
	memset(&called, 0, sizeof(called));
}

void tearDown(void)
{
	layer_remove(&layer_b);
	layer_remove(&layer_a);
	answer = 0;
	answer_errno = 0;
	vb_close_device(context);
	vb_free_device_list(list);
}

static void add_both(void)
{
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_a));
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_b));
}

/* Different for each parameter: an address for a pointer, else a number that fits in 8 bits. */
static void make_arguments(const struct way *way, uint64_t *arguments)
{
	const struct layer_verb_info *info = layer_verb_info(way->verb);

	for (unsigned int i = 0; i < LAYER_ARGUMENTS_MAX; i++) {
		const char *type = i < info->parameter_count ? info->parameters[i].type : "";

		arguments[i] = strchr(type, '*') ? (uintptr_t)objects[i] : 0x11 * (i + 1);
		if (strcmp(type, "struct ibv_device *") == 0)
			arguments[i] = (uintptr_t)&device;
		if (strcmp(type, "struct ibv_context *") == 0)
			arguments[i] = (uintptr_t)context;
	}
}

static uint64_t call(const struct way *way, const uint64_t *a)
{
	verb_fn *fn = way->call;

	if (way->takes_backend)
		return fn((uintptr_t) "fake", a[0], a[1], a[2], a[3], a[4], a[5]);
	if (!fn)
		memcpy(&fn, (char *)&verbs + way->place, sizeof(fn));
	return fn(a[0], a[1], a[2], a[3], a[4], a[5], 0);
}

/* devices.c enters what these two return into a table: they have a test of their own. */
static bool is_way(const struct way *way)
{
	return (way->call || way->place) && way->verb != LAYER_get_device_list &&
	       way->verb != LAYER_import_device;
}

/* The bytes of a result; a function that returns nothing leaves none. */
static uint64_t result_of(const struct way *way, uint64_t value)
{
	if (layer_verb_info(way->verb)->convention == LAYER_NOTHING)
		return 0;
	return way->result_bytes == 8 ? value : value & 0xffffffff;
}

/* What the fake answers to a verb that succeeds, and to one that fails with EBUSY. */
static uint64_t success(enum layer_verb verb)
{
	switch (layer_verb_info(verb)->convention) {
	case LAYER_POINTER:
		return (uintptr_t)made;
	case LAYER_ANSWER:
	case LAYER_NEGATED:
		return 5;
	default:
		return 0;
	}
}

static uint64_t failure(enum layer_convention convention, int err)
{
	switch (convention) {
	case LAYER_ERRNO:
	case LAYER_POSTED:
		return (uint64_t)err;
	case LAYER_NEGATED:
		return (uint64_t)(int64_t)-err;
	case LAYER_MINUS_ONE:
		return (uint64_t)-1;
	case LAYER_REREG:
		return (uint64_t)IBV_REREG_MR_ERR_INPUT;
	default:
		return 0;
	}
}

static void check_arguments(const struct way *way, const uint64_t *wanted, const uint64_t *found,
			    const char *who)
{
	const struct layer_verb_info *info = layer_verb_info(way->verb);
	char text[128];

	for (unsigned int i = 0; i < info->parameter_count; i++) {
		snprintf(text, sizeof(text), "%s: %s of %s", who, info->parameters[i].name,
			 info->name);
		TEST_ASSERT_EQUAL_HEX64_MESSAGE(wanted[i], found[i], text);
	}
}

static void begin_way(void)
{
	fill_objects();
	memset(&called, 0, sizeof(called));
	memset(&seen, 0, sizeof(seen));
	*course = '\0';
}

static void check_course(const struct way *way, const char *wanted)
{
	TEST_ASSERT_EQUAL_STRING_MESSAGE(wanted, course, layer_verb_info(way->verb)->name);
	TEST_ASSERT_EQUAL_UINT_MESSAGE(way->verb, seen.verb, layer_verb_info(way->verb)->name);
}

/* --- every verb --- */

/* Calls each verb on each way; err 0: the fake succeeds. */
static void run_all_ways(int err)
{
	unsigned int count = 0;

	for (const struct way *way = ways; way < ways + WAYS; way++) {
		const struct layer_verb_info *info = layer_verb_info(way->verb);
		uint64_t arguments[LAYER_ARGUMENTS_MAX], result;

		if (!is_way(way))
			continue;
		count++;
		begin_way();
		make_arguments(way, arguments);
		answer = err ? failure(info->convention, err) : success(way->verb);
		answer_errno = err;
		errno = ERANGE;
		result = call(way, arguments);
		TEST_ASSERT_EQUAL_INT_MESSAGE(err ? err : ERANGE, errno, info->name);
		TEST_ASSERT_EQUAL_HEX64_MESSAGE(result_of(way, answer), result_of(way, result),
						info->name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(way->call ? TABLE : OBJECT, called.place,
					       info->name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(way->verb, called.verb, info->name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(1, called.count, info->name);
		check_arguments(way, arguments, called.arguments, "backend");
		check_arguments(way, arguments, seen_arguments, "layer");
		check_course(way, "a(b()b)a");
		TEST_ASSERT_EQUAL_STRING_MESSAGE("fake", seen.backend->name, info->name);
		TEST_ASSERT_EQUAL_HEX64_MESSAGE(result_of(way, answer), result_of(way, seen.result),
						info->name);
		/* OPTIONAL and the like: the result does not say that the verb has failed. */
		TEST_ASSERT_EQUAL_INT_MESSAGE(info->convention < LAYER_OPTIONAL ||
							      info->convention == LAYER_MINUS_ONE ||
							      info->convention == LAYER_NEGATED ||
							      info->convention == LAYER_REREG
						      ? err
						      : 0,
					      seen.err, info->name);
		if (way->takes_backend)
			continue;
		TEST_ASSERT_EQUAL_STRING_MESSAGE("fake0", seen.device, info->name);
		if (strncmp(info->name, "get_device_", 11) != 0)
			TEST_ASSERT_EQUAL_PTR_MESSAGE(context, seen.context, info->name);
	}
	TEST_ASSERT_GREATER_THAN(100, count);
}

void test_layer_every_verb_goes_through(void)
{
	add_both();
	run_all_ways(0);
}

void test_layer_every_failure_goes_through(void)
{
	add_both();
	run_all_ways(EBUSY);
}

void test_layer_refuses_every_verb_in_its_convention(void)
{
	add_both();
	refusal = EPERM;
	for (const struct way *way = ways; way < ways + WAYS; way++) {
		const struct layer_verb_info *info = layer_verb_info(way->verb);
		uint64_t arguments[LAYER_ARGUMENTS_MAX], result;
		char sentence[200];

		if (!is_way(way))
			continue;
		begin_way();
		make_arguments(way, arguments);
		errno = ERANGE;
		result = call(way, arguments);
		TEST_ASSERT_EQUAL_INT_MESSAGE(EPERM, errno, info->name);
		TEST_ASSERT_EQUAL_HEX64_MESSAGE(result_of(way, failure(info->convention, EPERM)),
						result_of(way, result), info->name);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(0, called.count, info->name);
		check_course(way, "a(b()a");
		TEST_ASSERT_EQUAL_INT_MESSAGE(EPERM, seen.err, info->name);
		snprintf(sentence, sizeof(sentence),
			 "%s: the layer b makes the call fail with EPERM", info->name);
		TEST_ASSERT_EQUAL_STRING(sentence, vb_last_error());
		TEST_ASSERT_EQUAL_STRING(sentence, seen_text);
		if (info->convention == LAYER_POSTED)
			TEST_ASSERT_EQUAL_PTR_MESSAGE((void *)(uintptr_t)arguments[1],
						      *(void **)(uintptr_t)arguments[2],
						      info->name);
	}
}

static void check_nothing_in_the_way(void)
{
	const struct vb_backend *slot = vb_find_backend("fake");

#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	TEST_ASSERT_TRUE_MESSAGE(slot->name == TABLE_##name, #name);
#include <verbena/verbs.def>
#define VB_VERB(...)
#define VB_EXPORT(...)
#define VB_EXTENDED(result, name, parameters, arguments, convention, by, object, op) \
	TEST_ASSERT_TRUE_MESSAGE(verbs.op == OBJECT_##name, #name);
#define VB_BASIC(result, name, parameters, arguments, convention, by, object) \
	TEST_ASSERT_TRUE_MESSAGE(context->ops.name == OBJECT_##name, #name);
#include <verbena/verbs.def>
}

void test_layer_leaves_nothing_behind(void)
{
	check_nothing_in_the_way();
	for (unsigned int i = 0; i < 3; i++) {
		add_both();
		TEST_ASSERT_TRUE(vb_find_backend("fake")->alloc_pd != TABLE_alloc_pd);
		TEST_ASSERT_TRUE(context->ops.post_send != OBJECT_post_send);
		layer_remove(&layer_a);
		TEST_ASSERT_TRUE(context->ops.post_send != OBJECT_post_send);
		layer_remove(&layer_b);
		check_nothing_in_the_way();
	}
}

/* --- the verbs that devices.c dispatches by hand --- */

void test_layer_sees_devices_and_contexts(void)
{
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR,
					.element.cq = (struct ibv_cq *)objects[0]};

	add_both();
	answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(context));
	TEST_ASSERT_EQUAL_INT(LAYER_close_device, seen.verb);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)context, seen_arguments[0]);
	TEST_ASSERT_NULL(seen.context);
	TEST_ASSERT_EQUAL_STRING("fake0", seen.device);
	TEST_ASSERT_TRUE(context->ops.post_send == OBJECT_post_send);

	answer = (uintptr_t)context;
	TEST_ASSERT_EQUAL_PTR(context, vb_open_device(&device));
	TEST_ASSERT_EQUAL_INT(LAYER_open_device, seen.verb);
	TEST_ASSERT_EQUAL_PTR(context, seen.context);
	TEST_ASSERT_EQUAL_STRING("fake0", seen.device);
	TEST_ASSERT_TRUE(context->ops.post_send != OBJECT_post_send);

	vb_ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(LAYER_ack_async_event, seen.verb);
	TEST_ASSERT_EQUAL_HEX64((uintptr_t)&event, seen_arguments[0]);
	TEST_ASSERT_EQUAL_STRING("fake0", seen.device);

	vb_free_device_list(list);
	TEST_ASSERT_EQUAL_INT(LAYER_free_device_list, seen.verb);
	TEST_ASSERT_EQUAL_INT(LAYER_free_device_list, called.verb);
	answer = (uintptr_t)list;
	TEST_ASSERT_EQUAL_PTR(list, vb_get_device_list("fake", NULL));
	TEST_ASSERT_EQUAL_INT(LAYER_get_device_list, seen.verb);
	TEST_ASSERT_EQUAL_STRING("a(b()b)aa(b()b)aa(b()b)aa(b()b)aa(b()b)a", course);
}

void test_layer_sees_an_imported_context(void)
{
	add_both();
	answer = 0;
	vb_close_device(context);
	answer = (uintptr_t)context;
	TEST_ASSERT_EQUAL_PTR(context, vb_import_device("fake", 7));
	TEST_ASSERT_EQUAL_INT(LAYER_import_device, seen.verb);
	TEST_ASSERT_EQUAL_HEX64(7, called.arguments[0]);
	TEST_ASSERT_EQUAL_HEX64(7, seen_arguments[0]);
	TEST_ASSERT_EQUAL_PTR(context, seen.context);
	TEST_ASSERT_TRUE(context->ops.post_send != OBJECT_post_send);
}

/* A context that could not be closed is still layered. */
void test_layer_stays_in_a_context_that_does_not_close(void)
{
	add_both();
	answer = (uint64_t)-1;
	answer_errno = EBUSY;
	TEST_ASSERT_EQUAL_INT(-1, vb_close_device(context));
	TEST_ASSERT_EQUAL_INT(EBUSY, seen.err);
	TEST_ASSERT_EQUAL_PTR(context, seen.context);
	TEST_ASSERT_TRUE(context->ops.post_send != OBJECT_post_send);
}

/* --- a program that calls a backend's table without vb_* --- */

void test_layer_sees_calls_of_the_table(void)
{
	const struct vb_backend *slot = vb_find_backend("fake");
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};
	struct verbs_context other = {.sz = 0};

	add_both();
	answer = (uintptr_t)list;
	TEST_ASSERT_EQUAL_PTR(list, slot->get_device_list(NULL));
	TEST_ASSERT_EQUAL_INT(LAYER_get_device_list, called.verb);
	TEST_ASSERT_EQUAL_STRING("fake", seen.backend->name);
	answer = 0;
	slot->dealloc_pd((struct ibv_pd *)objects[0]);
	TEST_ASSERT_EQUAL_INT(LAYER_dealloc_pd, called.verb);
	TEST_ASSERT_EQUAL_STRING("fake", seen.backend->name);
	slot->get_device_index(&device);
	TEST_ASSERT_EQUAL_INT(LAYER_get_device_index, called.verb);
	TEST_ASSERT_EQUAL_STRING("a(b()b)aa(b()b)aa(b()b)a", course);
	event.element.cq = (struct ibv_cq *)objects[0];
	slot->ack_async_event(&event);
	TEST_ASSERT_EQUAL_INT(LAYER_ack_async_event, called.verb);
	TEST_ASSERT_EQUAL_PTR(context, seen.context);

	/* A context that was opened without vb_open_device(). */
	other.context.device = &device;
	answer = (uintptr_t)&other.context;
	TEST_ASSERT_EQUAL_PTR(&other.context, slot->open_device(&device));
	TEST_ASSERT_EQUAL_INT(LAYER_open_device, called.verb);
	answer = ENOMEM;
	TEST_ASSERT_EQUAL_INT(ENOMEM, slot->query_device(&other.context, NULL));
	TEST_ASSERT_EQUAL_INT(LAYER_query_device, called.verb);
	answer = 0;
	TEST_ASSERT_EQUAL_INT(0, slot->close_device(&other.context));
	TEST_ASSERT_EQUAL_INT(LAYER_close_device, called.verb);
}

/* --- calls without an object --- */

void test_layer_sees_a_verb_of_no_backend(void)
{
	add_both();
	errno = 0;
	TEST_ASSERT_NULL(vb_alloc_pd(NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_STRING("a(b()b)a", course);
	TEST_ASSERT_EQUAL_INT(EINVAL, seen.err);
	TEST_ASSERT_NULL(seen.context);
	TEST_ASSERT_EQUAL_STRING(
		"alloc_pd: the object, or the context pointer in it, is NULL; pass the object that "
		"its verb returned; a verb that cannot make an object returns NULL and sets errno",
		seen_text);
	TEST_ASSERT_EQUAL_INT(EINVAL, vb_destroy_qp(NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, seen.err);
}

/* A thread that has read a wrapper may call it after the last layer is gone. */
void test_layer_wrapper_outlives_the_layers(void)
{
	int (*post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
	struct ibv_pd *(*alloc_pd)(struct ibv_context *);

	add_both();
	post_send = context->ops.post_send;
	alloc_pd = vb_find_backend("fake")->alloc_pd;
	layer_remove(&layer_b);
	layer_remove(&layer_a);
	answer = ENOMEM;
	TEST_ASSERT_EQUAL_INT(ENOMEM, post_send((struct ibv_qp *)objects[0], NULL, NULL));
	TEST_ASSERT_EQUAL_INT(LAYER_post_send, called.verb);
	answer = (uintptr_t)made;
	TEST_ASSERT_EQUAL_PTR(made, alloc_pd(context));
	TEST_ASSERT_EQUAL_UINT(2, called.count);
	TEST_ASSERT_EQUAL_STRING("", course);
}

/* --- failures --- */

/* A backend that fails without errno still fails. */
void test_layer_gives_a_failure_an_errno(void)
{
	add_both();
	answer = (uint64_t)-2;
	errno = ERANGE;
	TEST_ASSERT_EQUAL_INT(-2, vb_poll_cq((struct ibv_cq *)objects[0], 1, NULL));
	TEST_ASSERT_EQUAL_INT(ERANGE, errno);
	TEST_ASSERT_EQUAL_INT(EIO, seen.err);
	TEST_ASSERT_EQUAL_INT64(-2, (int64_t)seen.result);
}

/* The sentence of an earlier call does not explain a later one. */
void test_layer_has_no_stale_reason(void)
{
	add_both();
	TEST_ASSERT_NULL(vb_alloc_pd(NULL));
	TEST_ASSERT_NOT_NULL(seen.why);
	answer = ENOMEM;
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_req_notify_cq((struct ibv_cq *)objects[0], 0));
	TEST_ASSERT_EQUAL_INT(ENOMEM, seen.err);
	TEST_ASSERT_NULL(seen.why);
	TEST_ASSERT_EQUAL_INT(ENOMEM, vb_dealloc_pd((struct ibv_pd *)objects[0]));
	TEST_ASSERT_EQUAL_INT(ENOMEM, seen.err);
	TEST_ASSERT_NULL(seen.why);
}

static int refuse_with_words(struct layer_call *call)
{
	call->refusal = "no memory is injected";
	return ENOMEM;
}

void test_layer_says_why_it_refuses(void)
{
	struct layer layer_c = {.name = "c", .before = refuse_with_words};

	add_both();
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_c));
	errno = 0;
	TEST_ASSERT_NULL(vb_alloc_pd(context));
	layer_remove(&layer_c);
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_EQUAL_STRING("alloc_pd: layer c: no memory is injected", vb_last_error());
	TEST_ASSERT_EQUAL_STRING("a(b()b)a", course);
	TEST_ASSERT_EQUAL_INT(ENOMEM, seen.err);
	TEST_ASSERT_EQUAL_UINT(0, called.count);
}

/* --- layers that need no after() --- */

static int before_and_skip(struct layer_call *call)
{
	write_course("c(");
	call->skips_after = true;
	return 0;
}

static void after_c(const struct layer_call *call)
{
	write_course(")c");
}

static void post(int result, const char *expected)
{
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	*course = '\0';
	answer = (uint64_t)result;
	TEST_ASSERT_EQUAL_INT(result, ibv_post_recv((struct ibv_qp *)objects[0], &wr, &bad));
	TEST_ASSERT_EQUAL_STRING(expected, course);
	*course = '\0';
	TEST_ASSERT_EQUAL_INT(result, vb_dealloc_pd((struct ibv_pd *)objects[0]));
	TEST_ASSERT_EQUAL_STRING(expected, course);
}

void test_layer_skips_after_unless_the_verb_fails(void)
{
	struct layer layer_c = {.name = "c", .before = before_and_skip, .after = after_c};

	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_a));
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_c));
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_b));
	post(0, "a(c(b()b)a");
	post(ENOMEM, "a(c(b()b)c)a");
	refusal = EINVAL; /* of the layer below */
	post(EINVAL, "a(c(b()c)a");
	layer_remove(&layer_c);
}

/* --- adding --- */

void test_layer_is_added_once_and_up_to_a_limit(void)
{
	struct layer more[LAYERS_MAX] = {{.name = "nothing"}};
	unsigned int added = 0;

	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_a));
	TEST_ASSERT_EQUAL_INT(EEXIST, layer_add(&layer_a));
	while (added < LAYERS_MAX && !layer_add(&more[added]))
		added++;
	TEST_ASSERT_EQUAL_UINT(LAYERS_MAX - 1, added);
	TEST_ASSERT_EQUAL_INT(ENOMEM, layer_add(&layer_b));
	answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_dealloc_pd((struct ibv_pd *)objects[0]));
	TEST_ASSERT_EQUAL_STRING("a()a", course);
	while (added--)
		layer_remove(&more[added]);
	layer_remove(&layer_b); /* not added: nothing happens */
}

void test_layer_covers_backends_that_come_later(void)
{
	static const struct vb_backend later = {
		.name = "later",
		.get_device_list = TABLE_get_device_list,
		.free_device_list = TABLE_free_device_list,
	};

	add_both();
	TEST_ASSERT_EQUAL_INT(0, vb_backend_add(&later));
	answer = (uintptr_t)list;
	vb_free_device_list(list);
	begin_way();
	TEST_ASSERT_EQUAL_PTR(list, vb_get_device_list("later", NULL));
	TEST_ASSERT_EQUAL_STRING("a(b()b)a", course);
	TEST_ASSERT_EQUAL_STRING("later", seen.backend->name);
	vb_free_device_list(list);
	TEST_ASSERT_EQUAL_PTR(list, vb_get_device_list("fake", NULL));
}

void test_layer_leaves_backends_alone_that_come_after_it(void)
{
	static const struct vb_backend after = {.name = "after", .alloc_pd = TABLE_alloc_pd};

	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_a));
	layer_remove(&layer_a);
	TEST_ASSERT_EQUAL_INT(0, vb_backend_add(&after));
	TEST_ASSERT_TRUE(vb_find_backend("after")->alloc_pd == TABLE_alloc_pd);
}

/* The real libibverbs answers as without a layer, whether this machine has devices or not. */
void test_layer_on_the_real_library(void)
{
	struct ibv_device **without, **with;
	int err, count = -1, layered_count = -1;

	errno = 0;
	without = vb_get_device_list("ibverbs", &count);
	err = errno;
	if (without)
		vb_free_device_list(without);
	add_both();
	errno = 0;
	with = vb_get_device_list("ibverbs", &layered_count);
	TEST_ASSERT_EQUAL_INT(count, layered_count);
	TEST_ASSERT_EQUAL_INT(!without, !with);
	TEST_ASSERT_EQUAL_STRING("a(b()b)a", course);
	TEST_ASSERT_EQUAL_STRING("ibverbs", seen.backend->name);
	if (with) {
		TEST_ASSERT_EQUAL_INT(0, seen.err);
		vb_free_device_list(with);
		return;
	}
	TEST_ASSERT_EQUAL_INT(err, errno);
	TEST_ASSERT_EQUAL_INT(err, seen.err);
	TEST_ASSERT_EQUAL_STRING(vb_last_error(), seen_text);
}

/* --- shorter structures, and functions that a provider does not have --- */

void test_layer_leaves_what_a_provider_lacks(void)
{
	verbs.sz = sizeof(verbs) - offsetof(struct verbs_context, create_cq_ex);
	verbs.open_qp = NULL;
	context->ops.bind_mw = NULL;
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_a));
	TEST_ASSERT_NULL(context->ops.bind_mw);
	TEST_ASSERT_NULL(verbs.open_qp);
	/* These lie before the structure's beginning. */
	TEST_ASSERT_TRUE(verbs.query_port == OBJECT_query_port);
	TEST_ASSERT_TRUE(verbs.query_rt_values == OBJECT_query_rt_values_ex);
	TEST_ASSERT_TRUE(verbs.create_cq_ex != OBJECT_create_cq_ex);
	layer_remove(&layer_a);
	verbs.sz = sizeof(verbs);
	context->abi_compat = NULL; /* an old provider: no struct verbs_context at all */
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer_a));
	TEST_ASSERT_TRUE(verbs.create_cq_ex == OBJECT_create_cq_ex);
	TEST_ASSERT_TRUE(context->ops.poll_cq != OBJECT_poll_cq);
}

/* --- names of objects --- */

static const char *name_of(const void *object)
{
	static char text[32];

	return layer_object_name(object, text, sizeof(text));
}

void test_layer_names_objects(void)
{
	struct layer_object found;
	struct ibv_qp qp = {.context = context, .qp_num = 0x11};
	struct ibv_mr mrs[2] = {{.context = context}, {.context = context}};

	add_both();
	TEST_ASSERT_EQUAL_STRING("", name_of(&qp));
	TEST_ASSERT_FALSE(layer_object_find(&qp, &found));
	answer = (uintptr_t)&qp;
	vb_create_qp((struct ibv_pd *)objects[0], (void *)objects[1]);
	TEST_ASSERT_EQUAL_STRING("qp 0x11", name_of(&qp));
	TEST_ASSERT_TRUE(layer_object_find(&qp, &found));
	TEST_ASSERT_EQUAL_HEX32(0x11, found.qpn);
	TEST_ASSERT_EQUAL_STRING("fake0", found.device);
	TEST_ASSERT_EQUAL_PTR(context, found.context);

	for (unsigned int i = 0; i < 2; i++) {
		answer = (uintptr_t)&mrs[i];
		vb_reg_mr((struct ibv_pd *)objects[0], NULL, 0, 0);
	}
	TEST_ASSERT_TRUE(layer_object_find(&mrs[0], &found));
	TEST_ASSERT_EQUAL_STRING("mr", found.kind);
	TEST_ASSERT_EQUAL_UINT(0, found.qpn);
	TEST_ASSERT_TRUE(layer_object_find(&mrs[1], &found));
	TEST_ASSERT_EQUAL_STRING("mr", found.kind);
	TEST_ASSERT_EQUAL_STRING("mr", (layer_object_find(&mrs[0], &found), found.kind));

	/* A name lives until the object is destroyed; a failure keeps it. */
	answer = EBUSY;
	TEST_ASSERT_EQUAL_INT(EBUSY, vb_destroy_qp(&qp));
	TEST_ASSERT_EQUAL_STRING("qp 0x11", name_of(&qp));
	answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_destroy_qp(&qp));
	TEST_ASSERT_EQUAL_STRING("", name_of(&qp));
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(context));
	TEST_ASSERT_EQUAL_STRING("", name_of(&mrs[0]));
	answer = (uintptr_t)context;
	vb_open_device(&device);
}

/* An MR whose context was closed behind the layer's back, and another one at its address. */
void test_layer_names_an_object_at_an_address_used_again(void)
{
	struct ibv_context second = {.device = &device};
	struct ibv_pd pds[2] = {{.context = context}, {.context = &second}};
	struct ibv_mr mr = {.context = context};
	struct layer_object found;
	unsigned int number;

	add_both();
	answer = (uintptr_t)&second;
	TEST_ASSERT_EQUAL_PTR(&second, vb_open_device(&device));
	answer = (uintptr_t)&mr;
	TEST_ASSERT_EQUAL_PTR(&mr, vb_reg_mr(&pds[0], NULL, 0, 0));
	TEST_ASSERT_TRUE(layer_object_find(&mr, &found));
	TEST_ASSERT_EQUAL_PTR(context, found.context);
	number = found.number;
	mr.context = &second;
	TEST_ASSERT_EQUAL_PTR(&mr, vb_reg_mr(&pds[1], NULL, 0, 0));
	TEST_ASSERT_TRUE(layer_object_find(&mr, &found));
	TEST_ASSERT_EQUAL_PTR(&second, found.context);
	TEST_ASSERT_EQUAL_UINT(number + 1, found.number);
	answer = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_close_device(&second));
	TEST_ASSERT_FALSE(layer_object_find(&mr, &found));
}

/* Contexts of one device, each with two MRs. There are more contexts than CONTEXT_BUCKETS of src/layer/table.c, so some
 * share a list. */
enum { CROWD = 600 };
static struct ibv_context crowd[CROWD];
static struct ibv_mr crowd_mrs[CROWD][2];

static void open_crowd(void)
{
	struct ibv_pd pd = {.handle = 0};

	for (unsigned int i = 0; i < CROWD; i++) {
		crowd[i] = (struct ibv_context){.device = &device};
		answer = (uintptr_t)&crowd[i];
		TEST_ASSERT_EQUAL_PTR(&crowd[i], vb_open_device(&device));
		pd.context = &crowd[i];
		for (unsigned int k = 0; k < 2; k++) {
			crowd_mrs[i][k].context = &crowd[i];
			answer = (uintptr_t)&crowd_mrs[i][k];
			vb_reg_mr(&pd, NULL, 0, 0);
		}
	}
	answer = 0;
}

void test_layer_ends_the_objects_of_a_context_with_it(void)
{
	struct layer_object found;

	add_both();
	open_crowd();
	/* The first MR of each third context ends before its context. */
	for (unsigned int i = 0; i < CROWD; i += 3)
		TEST_ASSERT_EQUAL_INT(0, vb_dereg_mr(&crowd_mrs[i][0]));
	for (unsigned int i = 0; i < CROWD; i += 2)
		TEST_ASSERT_EQUAL_INT(0, vb_close_device(&crowd[i]));
	for (unsigned int i = 0; i < CROWD; i++) {
		TEST_ASSERT_EQUAL_INT(i % 2 && i % 3, layer_object_find(&crowd_mrs[i][0], &found));
		TEST_ASSERT_EQUAL_INT(i % 2, layer_object_find(&crowd_mrs[i][1], &found));
		TEST_ASSERT_EQUAL_INT(i % 2, layer_object_find(&crowd[i], &found));
	}
	for (unsigned int i = 1; i < CROWD; i += 2)
		TEST_ASSERT_EQUAL_INT(0, vb_close_device(&crowd[i]));
	for (unsigned int i = 0; i < CROWD; i++)
		TEST_ASSERT_FALSE(layer_object_find(&crowd_mrs[i][1], &found));
}

/* after() may still name an object that the verb has destroyed. */
static char last_name[32];

static void name_first(const struct layer_call *call)
{
	layer_object_name((void *)(uintptr_t)call->arguments[0], last_name, sizeof(last_name));
}

void test_layer_names_an_object_that_has_just_ended(void)
{
	struct layer namer = {.name = "namer", .after = name_first};
	struct ibv_qp qp = {.context = context, .qp_num = 0x22};

	TEST_ASSERT_EQUAL_INT(0, layer_add(&namer));
	answer = (uintptr_t)&qp;
	vb_create_qp((struct ibv_pd *)objects[0], (void *)objects[1]);
	answer = 0;
	vb_destroy_qp(&qp);
	layer_remove(&namer);
	TEST_ASSERT_EQUAL_STRING("qp 0x22", last_name);
}

void test_layer_counts_names_by_kind(void)
{
	uint64_t first, pds[2][16] = {{0}};
	struct layer_object found;
	struct ibv_mr mr = {.context = context};

	add_both();
	answer = (uintptr_t)pds[0];
	vb_alloc_pd(context);
	TEST_ASSERT_TRUE(layer_object_find(pds[0], &found));
	first = found.number;
	answer = (uintptr_t)&mr;
	vb_reg_mr((struct ibv_pd *)objects[0], NULL, 0, 0);
	answer = (uintptr_t)pds[1];
	vb_alloc_pd(context);
	TEST_ASSERT_TRUE(layer_object_find(pds[1], &found));
	TEST_ASSERT_EQUAL_UINT(first + 1, found.number);
}

/* --- what a layer knows about verbs --- */

static void check_parameter(enum layer_verb verb, unsigned int i, const char *type,
			    const char *name)
{
	TEST_ASSERT_GREATER_THAN(i, layer_verb_info(verb)->parameter_count);
	TEST_ASSERT_EQUAL_STRING(type, layer_verb_info(verb)->parameters[i].type);
	TEST_ASSERT_EQUAL_STRING(name, layer_verb_info(verb)->parameters[i].name);
}

void test_layer_knows_the_parameters(void)
{
	TEST_ASSERT_EQUAL_STRING("modify_qp", layer_verb_info(LAYER_modify_qp)->name);
	TEST_ASSERT_EQUAL_INT(LAYER_ERRNO, layer_verb_info(LAYER_modify_qp)->convention);
	TEST_ASSERT_EQUAL_UINT(3, layer_verb_info(LAYER_modify_qp)->parameter_count);
	check_parameter(LAYER_modify_qp, 0, "struct ibv_qp *", "qp");
	check_parameter(LAYER_modify_qp, 1, "struct ibv_qp_attr *", "attr");
	check_parameter(LAYER_modify_qp, 2, "int", "attr_mask");
	TEST_ASSERT_EQUAL_UINT(0, layer_verb_info(LAYER_fork_init)->parameter_count);
	TEST_ASSERT_EQUAL_UINT(6, layer_verb_info(LAYER_rereg_mr)->parameter_count);
	check_parameter(LAYER_rereg_mr, 5, "int", "access");
	check_parameter(LAYER_resolve_eth_l2_from_gid, 2, "uint8_t *", "eth_mac");
	check_parameter(LAYER_get_cq_event, 1, "struct ibv_cq **", "cq");
	check_parameter(LAYER_attach_mcast, 1, "const union ibv_gid *", "gid");
	TEST_ASSERT_EQUAL_INT(LAYER_POSTED, layer_verb_info(LAYER_post_send)->convention);
	check_parameter(LAYER_wr_complete, 1, "struct ibv_send_wr *", "wr");
	check_parameter(LAYER_start_poll, 1, "struct ibv_wc *", "wc");
	TEST_ASSERT_NULL(layer_verb_info(LAYER_VERBS));
}

/* Every name and type is found: each parameter has both. */
void test_layer_knows_each_parameter(void)
{
	for (unsigned int i = 0; i < LAYER_VERBS; i++)
		for (unsigned int j = 0; j < layer_verb_info(i)->parameter_count; j++) {
			TEST_ASSERT_TRUE_MESSAGE(*layer_verb_info(i)->parameters[j].name,
						 layer_verb_info(i)->name);
			TEST_ASSERT_TRUE_MESSAGE(*layer_verb_info(i)->parameters[j].type,
						 layer_verb_info(i)->name);
		}
}

/* --- time --- */

static uint64_t fake_now(const struct ibv_context *asked)
{
	return asked == context ? 12345 : 0;
}

void test_layer_time_is_the_backends(void)
{
	struct vb_backend timed = {.now_ns = fake_now};
	struct layer_call of_context = {.backend = &timed, .context = context};
	struct layer_call of_none = {.backend = &timed};
	uint64_t now_ns = layer_now_ns(&of_none);

	TEST_ASSERT_EQUAL_UINT64(12345, layer_now_ns(&of_context));
	TEST_ASSERT_GREATER_THAN(0, now_ns);
	TEST_ASSERT_GREATER_OR_EQUAL(now_ns, layer_now_ns(&of_none));
}

/* --- fork() --- */

void test_layer_goes_on_in_a_child(void)
{
	int status;
	pid_t child;

	add_both();
	child = fork();
	if (!child) {
		answer = 0;
		vb_dealloc_pd((struct ibv_pd *)objects[0]);
		_exit(strcmp(course, "a(b()b)a") != 0);
	}
	TEST_ASSERT_EQUAL_INT(child, waitpid(child, &status, 0));
	TEST_ASSERT_EQUAL_INT(0, status);
}
