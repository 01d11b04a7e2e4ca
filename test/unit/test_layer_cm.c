/* SPDX-License-Identifier: MIT */
/*
 * Each function of the connection manager through a layer, on a backend whose functions write down how
 * they are called.
 */
#include "src/layer/layer.h"
#include "src/layer/pack.h"
#include "src/layer/table.h"
#include "src/verbs/registry.h"
#include "unity.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <verbena/cm.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A call, as the fake and as the layer have seen it. */
struct seen {
	enum layer_verb verb;
	uint64_t arguments[LAYER_ARGUMENTS_MAX];
	uint64_t result;
	int err;
	unsigned int count;
};

static struct seen fake_seen, before_seen, after_seen;
static int answer, answer_errno;
static int refusal; /* of the layer */

/* --- the fake --- */

static void note(enum layer_verb verb, const uint64_t *arguments, size_t bytes)
{
	fake_seen.verb = verb;
	fake_seen.count++;
	memset(fake_seen.arguments, 0, sizeof(fake_seen.arguments));
	memcpy(fake_seen.arguments, arguments, bytes);
	if (answer_errno)
		errno = answer_errno;
}

#define GIVE_MINUS_ONE(result) return answer
#define GIVE_GAI(result)       return answer
#define GIVE_POINTER(result)   return NULL
#define GIVE_NOTHING(result)

#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	static result fake_##name parameters                                        \
	{                                                                           \
		const uint64_t numbers[] = {NUMBERS arguments};                     \
                                                                                    \
		note(LAYER_cm_##name, numbers, sizeof(numbers));                    \
		GIVE_##convention(result);                                          \
	}
#include <verbena/cm.def>

static struct rdma_event_channel the_channel;
static struct rdma_cm_id the_id;

static struct rdma_event_channel *make_channel(void)
{
	return &the_channel;
}

static int make_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	*id = &the_id;
	return 0;
}

static struct vb_cm_backend fake_cm = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = fake_##name,
#include <verbena/cm.def>
};

static const struct vb_backend fake = {
	.name = "fake",
	.description = "writes down its calls",
	.cm = &fake_cm,
};

/* --- the layer --- */

static void copy(struct seen *seen, const struct layer_call *call)
{
	seen->verb = call->verb;
	seen->count++;
	seen->result = call->result;
	seen->err = call->err;
	memset(seen->arguments, 0, sizeof(seen->arguments));
	for (unsigned int i = 0; i < layer_verb_info(call->verb)->parameter_count; i++)
		seen->arguments[i] = call->arguments[i];
}

static int before(struct layer_call *call)
{
	copy(&before_seen, call);
	return refusal;
}

static void after(const struct layer_call *call)
{
	copy(&after_seen, call);
}

static struct layer layer = {.name = "witness", .before = before, .after = after};

/* --- the calls of an identifier --- */

typedef uint64_t call_fn(struct rdma_cm_id *, uint64_t, uint64_t, uint64_t, uint64_t);

static const struct {
	enum layer_verb verb;
	call_fn *call;
	bool returns; /* an int */
} ways[] = {
#define RETURNS_MINUS_ONE true
#define RETURNS_NOTHING	  false
#define WAY_ID(name, convention) \
	{LAYER_cm_##name, (call_fn *)(void *)vb_cm_##name, RETURNS_##convention},
#define WAY_NAMED(name, convention)
#define WAY_BY_HAND(name, convention)
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	WAY_##by(name, convention)
#include <verbena/cm.def>
};

static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;

void setUp(void)
{
	static bool added;

	if (!added)
		TEST_ASSERT_EQUAL_INT(0, vb_backend_add(&fake));
	added = true;
	fake_cm.create_event_channel = make_channel;
	fake_cm.create_id = make_id;
	refusal = answer = answer_errno = 0;
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer));
	channel = vb_cm_create_event_channel("fake");
	TEST_ASSERT_EQUAL_PTR(&the_channel, channel);
	TEST_ASSERT_EQUAL_INT(0, vb_cm_create_id("fake", channel, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_PTR(&the_id, id);
	fake_seen = before_seen = after_seen = (struct seen){0};
}

void tearDown(void)
{
	refusal = answer = 0;
	if (id)
		vb_cm_destroy_id(id);
	if (channel)
		vb_cm_destroy_event_channel(channel);
	id = NULL;
	channel = NULL;
	layer_remove(&layer);
}

static void expect_seen(const struct seen *seen, enum layer_verb verb, const uint64_t *arguments)
{
	const char *name = layer_verb_info(verb)->name;

	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, seen->count, name);
	TEST_ASSERT_EQUAL_STRING(name, layer_verb_info(seen->verb)->name);
	for (unsigned int i = 0; i < layer_verb_info(verb)->parameter_count; i++)
		TEST_ASSERT_EQUAL_HEX64_MESSAGE(arguments[i], seen->arguments[i], name);
}

/* Calls the function of row i; returns its result. The arguments differ, and fit the narrowest type. */
static int call_way(unsigned int i, uint64_t arguments[LAYER_ARGUMENTS_MAX])
{
	arguments[0] = (uintptr_t)id;
	for (unsigned int j = 1; j < LAYER_ARGUMENTS_MAX; j++)
		arguments[j] = 10 * i + j;
	fake_seen = before_seen = after_seen = (struct seen){0};
	errno = 0;
	return (int)ways[i].call(id, arguments[1], arguments[2], arguments[3], arguments[4]);
}

void test_layer_cm_every_function_goes_through(void)
{
	for (unsigned int i = 0; i < COUNT(ways); i++) {
		uint64_t arguments[LAYER_ARGUMENTS_MAX];
		const int result = call_way(i, arguments);

		expect_seen(&before_seen, ways[i].verb, arguments);
		expect_seen(&fake_seen, ways[i].verb, arguments);
		expect_seen(&after_seen, ways[i].verb, arguments);
		TEST_ASSERT_EQUAL_INT(0, after_seen.err);
		if (ways[i].returns)
			TEST_ASSERT_EQUAL_INT(0, result);
	}
}

void test_layer_cm_every_failure_goes_through(void)
{
	answer = -1;
	answer_errno = ENODATA;
	for (unsigned int i = 0; i < COUNT(ways); i++) {
		uint64_t arguments[LAYER_ARGUMENTS_MAX];
		const int result = call_way(i, arguments);

		expect_seen(&after_seen, ways[i].verb, arguments);
		if (!ways[i].returns)
			continue;
		TEST_ASSERT_EQUAL_INT(-1, result);
		TEST_ASSERT_EQUAL_INT(ENODATA, errno);
		TEST_ASSERT_EQUAL_INT(ENODATA, after_seen.err);
		TEST_ASSERT_EQUAL_INT64(-1, (int64_t)after_seen.result);
	}
}

void test_layer_cm_refuses_every_function_in_its_convention(void)
{
	refusal = ENOMEM;
	for (unsigned int i = 0; i < COUNT(ways); i++) {
		uint64_t arguments[LAYER_ARGUMENTS_MAX];
		const int result = call_way(i, arguments);

		TEST_ASSERT_EQUAL_UINT(0, fake_seen.count);
		TEST_ASSERT_EQUAL_UINT(0, after_seen.count);
		TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
		TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "the layer witness makes the call"));
		if (ways[i].returns)
			TEST_ASSERT_EQUAL_INT(-1, result);
	}
}

void test_layer_cm_refuses_what_makes_objects(void)
{
	struct rdma_cm_event *event = NULL;
	struct rdma_addrinfo *found = NULL;
	struct rdma_cm_id *made = NULL;
	int count = 1;

	refusal = ENOMEM;
	TEST_ASSERT_NULL(vb_cm_create_event_channel("fake"));
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_NULL(vb_cm_get_devices("fake", &count));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_create_id("fake", channel, &made, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_create_ep("fake", &made, NULL, NULL, NULL));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_get_request(id, &made));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_getaddrinfo("fake", "host", "1", NULL, &found));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_migrate_id(id, channel));
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_destroy_id(id));
	TEST_ASSERT_EQUAL_INT(ENOMEM, errno);
	TEST_ASSERT_NULL(made);
	TEST_ASSERT_EQUAL_UINT(0, fake_seen.count);
	/* The identifier lives on. */
	refusal = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_cm_listen(id, 1));
	TEST_ASSERT_EQUAL_INT(LAYER_cm_listen, fake_seen.verb);
}

/* Layers see the reason of an answer of getaddrinfo(3), and the caller gets the answer. */
void test_layer_cm_answers_of_getaddrinfo(void)
{
	struct rdma_addrinfo *found = NULL;

	answer = EAI_NONAME;
	TEST_ASSERT_EQUAL_INT(EAI_NONAME, vb_cm_getaddrinfo("fake", "host", "1", NULL, &found));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	TEST_ASSERT_EQUAL_INT(EINVAL, after_seen.err);
	TEST_ASSERT_EQUAL_INT64(EAI_NONAME, (int64_t)after_seen.result);
	answer = -1;
	answer_errno = ENODATA;
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_getaddrinfo("fake", "host", "1", NULL, &found));
	TEST_ASSERT_EQUAL_INT(ENODATA, errno);
	TEST_ASSERT_EQUAL_INT(ENODATA, after_seen.err);
}

/* A QP that has ended without a call leaves its entry to the next one at its address. */
void test_layer_cm_knows_a_qp_by_its_number(void)
{
	struct ibv_qp qp = {.qp_num = 17};
	struct layer_entry *entry = table_enter_unknown(&qp, LAYER_QP, NULL);

	TEST_ASSERT_NOT_NULL(entry);
	TEST_ASSERT_NULL(table_enter_unknown(&qp, LAYER_QP, NULL));
	qp.qp_num = 18;
	TEST_ASSERT_EQUAL_PTR(entry, table_enter_unknown(&qp, LAYER_QP, NULL));
	TEST_ASSERT_EQUAL_UINT32(18, entry->number);
	table_remove(entry, entry->serial);
}

/* A pointer of no backend is not read. */
void test_layer_cm_sees_a_call_of_no_backend(void)
{
	struct rdma_cm_id *const wild = (struct rdma_cm_id *)(uintptr_t)8;

	TEST_ASSERT_EQUAL_INT(-1, vb_cm_connect(wild, NULL));
	TEST_ASSERT_EQUAL_INT(EINVAL, errno);
	vb_cm_destroy_qp(wild);
	TEST_ASSERT_EQUAL_INT(-1, vb_cm_destroy_id(wild));
	vb_cm_destroy_ep(wild);
	TEST_ASSERT_EQUAL_UINT(4, after_seen.count);
	TEST_ASSERT_EQUAL_INT(EINVAL, after_seen.err);
	TEST_ASSERT_EQUAL_UINT(0, fake_seen.count);
}

void test_layer_cm_comes_and_goes(void)
{
	TEST_ASSERT_NOT_EQUAL(&fake_cm, vb_find_backend("fake")->cm);
	layer_remove(&layer);
	TEST_ASSERT_EQUAL_PTR(&fake_cm, vb_find_backend("fake")->cm);
	TEST_ASSERT_EQUAL_INT(0, vb_cm_listen(id, 1));
	TEST_ASSERT_EQUAL_UINT(1, fake_seen.count);
	TEST_ASSERT_EQUAL_UINT(0, before_seen.count);
	TEST_ASSERT_EQUAL_INT(0, layer_add(&layer));
	TEST_ASSERT_EQUAL_INT(0, vb_cm_listen(id, 1));
	TEST_ASSERT_EQUAL_UINT(2, fake_seen.count);
	TEST_ASSERT_EQUAL_UINT(1, after_seen.count);
}
