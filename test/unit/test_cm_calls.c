/* SPDX-License-Identifier: MIT */
/*
 * vb_cm_*() with two fake backends: each call reaches the backend of its object, and an object that
 * no backend has is refused.
 */
#include "src/verbs/convention.h"
#include "test/unit/last_sentence.h"

#include <verbena/cm.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One of two backends. */
struct fake {
	struct ibv_device device;
	struct ibv_context *context;	   /* which the backend opens by itself */
	struct rdma_cm_id *next_id;	   /* what create_id returns, instead of new memory */
	void (*destroying)(struct fake *); /* called by destroy_id, which has freed nothing yet */
	struct rdma_cm_event *event;	   /* what get_cm_event returns */
	int answer;			   /* of the functions on an identifier */
	const char *called;		   /* the last function */
	unsigned int channels, ids, lists; /* that live */
};

static struct fake alpha, beta;

/* Set while the table of owners gets no memory. */
static bool malloc_fails;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return malloc_fails ? NULL : __real_malloc(size);
}

/* --- the backends' functions: do_<name>() for both --- */

static struct rdma_event_channel *do_create_event_channel(struct fake *fake)
{
	fake->channels++;
	return calloc(1, sizeof(struct rdma_event_channel));
}

static void do_destroy_event_channel(struct fake *fake, struct rdma_event_channel *channel)
{
	fake->channels--;
	free(channel);
}

/* Without a channel, the test that looks at the new one ends it. */
static int do_create_id(struct fake *fake, struct rdma_event_channel *channel,
			struct rdma_cm_id **id, void *context, enum rdma_port_space ps)
{
	*id = fake->next_id ? fake->next_id : calloc(1, sizeof(**id));
	(*id)->channel = channel ? channel : do_create_event_channel(fake);
	(*id)->context = fake;
	fake->ids++;
	return 0;
}

static int do_create_ep(struct fake *fake, struct rdma_cm_id **id, struct rdma_addrinfo *res,
			struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	do_create_id(fake, NULL, id, NULL, RDMA_PS_TCP);
	(*id)->verbs = fake->context;
	return 0;
}

static int do_get_request(struct fake *fake, struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	return do_create_ep(fake, id, NULL, NULL, NULL);
}

static int do_destroy_id(struct fake *fake, struct rdma_cm_id *id)
{
	fake->called = "destroy_id";
	if (fake->answer) {
		errno = EBUSY;
		return -1;
	}
	fake->ids--;
	if (fake->destroying)
		fake->destroying(fake);
	if (id != fake->next_id)
		free(id);
	return 0;
}

static void do_destroy_ep(struct fake *fake, struct rdma_cm_id *id)
{
	do_destroy_id(fake, id);
	fake->called = "destroy_ep";
}

static int do_get_cm_event(struct fake *fake, struct rdma_event_channel *channel,
			   struct rdma_cm_event **event)
{
	fake->called = "get_cm_event";
	if (!fake->event)
		errno = EAGAIN;
	*event = fake->event;
	return *event ? 0 : -1;
}

static int do_ack_cm_event(struct fake *fake, struct rdma_cm_event *event)
{
	fake->called = "ack_cm_event";
	return 0;
}

static int do_migrate_id(struct fake *fake, struct rdma_cm_id *id,
			 struct rdma_event_channel *channel)
{
	fake->called = "migrate_id";
	id->channel = channel;
	return 0;
}

static struct ibv_context **do_get_devices(struct fake *fake, int *num_devices)
{
	struct ibv_context **list = calloc(2, sizeof(void *));

	list[0] = fake->context;
	if (num_devices)
		*num_devices = 1;
	fake->lists++;
	return list;
}

static void do_free_devices(struct fake *fake, struct ibv_context **list)
{
	fake->lists--;
	free(list);
}

static int do_getaddrinfo(struct fake *fake, const char *node, const char *service,
			  const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	errno = EMSGSIZE;
	if (fake->answer)
		return fake->answer;
	*res = calloc(1, sizeof(**res));
	fake->lists++;
	return 0;
}

static void do_freeaddrinfo(struct fake *fake, struct rdma_addrinfo *res)
{
	fake->lists--;
	free(res);
}

/* A row of an identifier notes its name, and the identifier has got the backend's device. */
static int on_id(struct fake *fake, const char *name, struct rdma_cm_id *id)
{
	fake->called = name;
	id->verbs = fake->context;
	if (fake->answer)
		errno = ETIMEDOUT;
	return fake->answer;
}

#define DO_MINUS_ONE(...) return on_id(__VA_ARGS__)
#define DO_NOTHING(...)	  on_id(__VA_ARGS__)
#define DO_ID(result, fake, name, parameters, arguments, convention, id) \
	static result fake##_##name parameters                           \
	{                                                                \
		DO_##convention(&(fake), #name, id);                     \
	}
#define WITH(fake, ...) (fake __VA_OPT__(, ) __VA_ARGS__)
#define DO(result, fake, name, parameters, arguments, convention, object) \
	static result fake##_##name parameters                            \
	{                                                                 \
		return do_##name WITH(&(fake), UNPACK arguments);         \
	}
#define DO_NAMED(...)	DO(__VA_ARGS__)
#define DO_BY_HAND(...) DO(__VA_ARGS__)

#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	DO_##by(result, alpha, name, parameters, arguments, convention, object)     \
		DO_##by(result, beta, name, parameters, arguments, convention, object)
#include <verbena/cm.def>

static const struct vb_cm_backend alpha_cm = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = alpha_##name,
#include <verbena/cm.def>
};

static const struct vb_cm_backend beta_cm = {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	.name = beta_##name,
#include <verbena/cm.def>
};

static const struct vb_backend alpha_backend = {
	.name = "alpha", .description = "a fake", .cm = &alpha_cm};
static const struct vb_backend beta_backend = {
	.name = "beta", .description = "a fake", .cm = &beta_cm};

/* The backend "bare" has no connection manager; "poor" has one without functions. */
static const struct vb_cm_backend poor_cm;
static const struct vb_backend poor_backend = {
	.name = "poor", .description = "a fake", .cm = &poor_cm};
static const struct vb_backend bare_backend = {.name = "bare", .description = "a fake"};

/* The library remembers contexts for the life of the process: each test has its own. */
static void open_fake(struct fake *fake)
{
	static struct ibv_context contexts[100];
	static size_t used;

	TEST_ASSERT_LESS_THAN(100, used);
	*fake = (struct fake){.context = &contexts[used++]};
	fake->context->device = &fake->device;
}

void setUp(void)
{
	static bool added;

	if (!added) {
		TEST_ASSERT_EQUAL(0, vb_backend_add(&alpha_backend));
		TEST_ASSERT_EQUAL(0, vb_backend_add(&beta_backend));
		TEST_ASSERT_EQUAL(0, vb_backend_add(&poor_backend));
		TEST_ASSERT_EQUAL(0, vb_backend_add(&bare_backend));
	}
	added = true;
	open_fake(&alpha);
	open_fake(&beta);
}

void tearDown(void)
{
}

/* --- the calls of an identifier --- */

/* An identifier of a backend, with its channel. */
struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

static struct end make_end(const char *backend)
{
	struct end end = {.channel = vb_cm_create_event_channel(backend)};

	TEST_ASSERT_NOT_NULL(end.channel);
	/* The channel decides, and not the name. */
	TEST_ASSERT_EQUAL(0, vb_cm_create_id("nobody", end.channel, &end.id, NULL, RDMA_PS_TCP));
	return end;
}

static void end_end(struct end end)
{
	TEST_ASSERT_EQUAL(0, vb_cm_destroy_id(end.id));
	vb_cm_destroy_event_channel(end.channel);
}

#define CALLED(function, ...)                                          \
	do {                                                           \
		vb_cm_##function(__VA_ARGS__);                         \
		TEST_ASSERT_NOT_NULL_MESSAGE(fake->called, #function); \
		TEST_ASSERT_EQUAL_STRING(#function, fake->called);     \
		fake->called = NULL;                                   \
		TEST_ASSERT_NULL(other->called);                       \
	} while (0)

static void call_each(struct fake *fake, struct fake *other, struct rdma_cm_id *id)
{
	CALLED(set_option, id, 0, 0, NULL, 0);
	CALLED(bind_addr, id, NULL);
	CALLED(resolve_addr, id, NULL, NULL, 0);
	CALLED(resolve_route, id, 0);
	CALLED(create_qp, id, NULL, NULL);
	CALLED(create_qp_ex, id, NULL);
	CALLED(destroy_qp, id);
	CALLED(create_srq, id, NULL, NULL);
	CALLED(create_srq_ex, id, NULL);
	CALLED(destroy_srq, id);
	CALLED(init_qp_attr, id, NULL, NULL);
	CALLED(listen, id, 0);
	CALLED(connect, id, NULL);
	CALLED(establish, id);
	CALLED(accept, id, NULL);
	CALLED(reject, id, NULL, 0);
	CALLED(reject_ece, id, NULL, 0);
	CALLED(notify, id, IBV_EVENT_COMM_EST);
	CALLED(disconnect, id);
	CALLED(set_local_ece, id, NULL);
	CALLED(get_remote_ece, id, NULL);
	CALLED(join_multicast, id, NULL, NULL);
	CALLED(join_multicast_ex, id, NULL, NULL);
	CALLED(leave_multicast, id, NULL);
}

void test_each_function_reaches_the_backend_of_its_identifier(void)
{
	struct end a = make_end("alpha");
	struct end b = make_end("beta");

	call_each(&alpha, &beta, a.id);
	call_each(&beta, &alpha, b.id);
	end_end(a);
	alpha.called = NULL;
	call_each(&beta, &alpha, b.id);
	end_end(b);
	TEST_ASSERT_EQUAL(0, alpha.ids + beta.ids + alpha.channels + beta.channels);
}

void test_a_failure_of_the_backend_is_the_callers(void)
{
	struct end a = make_end("alpha");

	alpha.answer = -1;
	TEST_ASSERT_EQUAL(-1, vb_cm_connect(a.id, NULL));
	TEST_ASSERT_EQUAL(ETIMEDOUT, errno);
	expect_reason(
		VB_WHY_ERRNO_ONLY,
		"cm_connect: the backend alpha answered ETIMEDOUT (Connection timed out) and "
		"gave no reason; look up the errno in the manual page of the verb, or run the "
		"program on simulated devices, which name the cause");
	alpha.answer = 0;
	TEST_ASSERT_EQUAL(0, vb_cm_connect(a.id, NULL));
	end_end(a);
}

void test_verbs_find_the_backend_of_a_device_that_the_manager_has_opened(void)
{
	struct end a = make_end("alpha");

	TEST_ASSERT_NULL(vb_context_backend(alpha.context));
	TEST_ASSERT_EQUAL(0, vb_cm_bind_addr(a.id, NULL));
	TEST_ASSERT_EQUAL_STRING("alpha", vb_context_backend(a.id->verbs)->name);
	end_end(a);
}

/* --- objects that no backend has --- */

void test_null_is_refused(void)
{
	struct rdma_cm_event *event;

	TEST_ASSERT_EQUAL(-1, vb_cm_listen(NULL, 1));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	expect_reason(VB_WHY_CM_NULL,
		      "cm_listen: the channel, the identifier or the event is NULL; pass the "
		      "object that vb_cm_*() made; a function that cannot make an object sets "
		      "errno");
	TEST_ASSERT_EQUAL(-1, vb_cm_get_cm_event(NULL, &event));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL(-1, vb_cm_ack_cm_event(NULL));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL(-1, vb_cm_destroy_id(NULL));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	vb_cm_destroy_event_channel(NULL);
	vb_cm_free_devices(NULL);
	vb_cm_freeaddrinfo(NULL);
}

void test_an_identifier_is_refused_after_its_end(void)
{
	struct end a = make_end("alpha");
	struct rdma_cm_id *old = a.id;

	alpha.next_id = old; /* keeps the memory */
	end_end(a);
	alpha.called = NULL;
	TEST_ASSERT_EQUAL(-1, vb_cm_listen(old, 1));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	expect_reason(VB_WHY_CM_ID_UNKNOWN,
		      "cm_listen: the identifier 0x%" PRIx64 " is of no backend, or destroyed "
		      "already; use an identifier of vb_cm_create_id(), vb_cm_create_ep(), "
		      "vb_cm_get_request() or of a connection request",
		      (uint64_t)(uintptr_t)old);
	TEST_ASSERT_EQUAL(-1, vb_cm_destroy_id(old));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	vb_cm_destroy_ep(old);
	TEST_ASSERT_NULL(alpha.called);
	free(old);
}

void test_an_identifier_that_cannot_be_ended_lives_on(void)
{
	struct end a = make_end("alpha");

	alpha.answer = -1;
	TEST_ASSERT_EQUAL(-1, vb_cm_destroy_id(a.id));
	TEST_ASSERT_EQUAL(EBUSY, errno);
	alpha.answer = 0;
	TEST_ASSERT_EQUAL(0, vb_cm_listen(a.id, 1));
	end_end(a);
}

void test_a_channel_is_refused_after_its_end(void)
{
	struct rdma_event_channel *channel = vb_cm_create_event_channel("alpha");
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	vb_cm_destroy_event_channel(channel);
	TEST_ASSERT_EQUAL(0, alpha.channels);
	TEST_ASSERT_EQUAL(-1, vb_cm_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	expect_reason(VB_WHY_CM_CHANNEL_UNKNOWN,
		      "cm_get_cm_event: the event channel 0x%" PRIx64 " is of no backend, or "
		      "destroyed already; use a channel of vb_cm_create_event_channel(), and "
		      "destroy it after its last identifier",
		      (uint64_t)(uintptr_t)channel);
	TEST_ASSERT_EQUAL(-1, vb_cm_create_id("alpha", channel, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	vb_cm_destroy_event_channel(channel);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_CM_CHANNEL_UNKNOWN, vb_last_reason());
	TEST_ASSERT_EQUAL(0, alpha.channels);
}

void test_an_unknown_backend_is_refused(void)
{
	struct rdma_addrinfo *addresses = NULL;
	struct rdma_cm_id *id = NULL;

	TEST_ASSERT_NULL(vb_cm_create_event_channel("nobody"));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "cm_create_event_channel: "));
	TEST_ASSERT_NOT_NULL(strstr(vb_last_error(), "\"nobody\""));
	TEST_ASSERT_NULL(vb_cm_get_devices("nobody", NULL));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL(-1, vb_cm_create_id("nobody", NULL, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL(-1, vb_cm_create_ep("nobody", &id, NULL, NULL, NULL));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL(-1, vb_cm_getaddrinfo("nobody", "x", NULL, NULL, &addresses));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_NULL(id);
	TEST_ASSERT_NULL(addresses);
}

void test_a_backend_without_the_function_is_refused(void)
{
	static const char *const backends[] = {"bare", "poor"};
	int devices = 7;

	for (size_t i = 0; i < 2; i++) {
		errno = 0;
		TEST_ASSERT_NULL(vb_cm_create_event_channel(backends[i]));
		TEST_ASSERT_EQUAL(EOPNOTSUPP, errno);
		expect_reason(
			VB_WHY_VERB_LACKING,
			"cm_create_event_channel: the backend %s does not have this verb; do "
			"without the verb when it fails with EOPNOTSUPP, or use a device that "
			"has it",
			backends[i]);
		TEST_ASSERT_NULL(vb_cm_get_devices(backends[i], &devices));
		TEST_ASSERT_EQUAL(EOPNOTSUPP, errno);
		TEST_ASSERT_EQUAL(0, devices);
	}
}

/* --- synchronous identifiers --- */

void test_a_synchronous_identifier_is_of_the_named_backend(void)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	TEST_ASSERT_EQUAL(0, vb_cm_create_id("beta", NULL, &id, NULL, RDMA_PS_UDP));
	TEST_ASSERT_EQUAL_PTR(&beta, id->context);
	TEST_ASSERT_EQUAL(0, vb_cm_listen(id, 1));
	/* Its channel is the backend's, but may be asked for events. */
	TEST_ASSERT_EQUAL(-1, vb_cm_get_cm_event(id->channel, &event));
	TEST_ASSERT_EQUAL(EAGAIN, errno);
	TEST_ASSERT_EQUAL_STRING("get_cm_event", beta.called);
	do_destroy_event_channel(&beta, id->channel);
	TEST_ASSERT_EQUAL(0, vb_cm_destroy_id(id));
}

void test_endpoints_and_requests_are_of_their_backend(void)
{
	struct rdma_cm_id *endpoint;
	struct rdma_cm_id *request;

	TEST_ASSERT_EQUAL(0, vb_cm_create_ep("alpha", &endpoint, NULL, NULL, NULL));
	TEST_ASSERT_EQUAL_STRING("alpha", vb_context_backend(endpoint->verbs)->name);
	TEST_ASSERT_EQUAL(0, vb_cm_get_request(endpoint, &request));
	TEST_ASSERT_EQUAL(0, vb_cm_accept(request, NULL));
	do_destroy_event_channel(&alpha, request->channel);
	do_destroy_event_channel(&alpha, endpoint->channel);
	vb_cm_destroy_ep(request);
	vb_cm_destroy_ep(endpoint);
	TEST_ASSERT_EQUAL(0, alpha.ids);
	TEST_ASSERT_EQUAL_STRING("destroy_ep", alpha.called);
}

void test_migration_changes_the_channel_that_is_known(void)
{
	struct rdma_event_channel *channel = vb_cm_create_event_channel("alpha");
	struct rdma_event_channel *private;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	TEST_ASSERT_EQUAL(0, vb_cm_create_id("alpha", NULL, &id, NULL, RDMA_PS_TCP));
	private = id->channel;
	TEST_ASSERT_EQUAL(0, vb_cm_migrate_id(id, channel));
	TEST_ASSERT_EQUAL(-1, vb_cm_get_cm_event(private, &event));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL(-1, vb_cm_get_cm_event(id->channel, &event));
	TEST_ASSERT_EQUAL(EAGAIN, errno);
	do_destroy_event_channel(&alpha, private);
	end_end((struct end){channel, id});
}

void test_migration_to_another_backends_channel_is_refused(void)
{
	struct end a = make_end("alpha");
	struct end b = make_end("beta");
	struct rdma_event_channel unknown = {0};

	alpha.called = NULL;
	TEST_ASSERT_EQUAL(-1, vb_cm_migrate_id(a.id, b.channel));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	expect_reason(VB_WHY_CM_CHANNEL_FOREIGN,
		      "cm_migrate_id: the event channel 0x%" PRIx64 " is of the backend beta, and "
		      "the identifier is of another; migrate an identifier to a channel of its own "
		      "backend",
		      (uint64_t)(uintptr_t)b.channel);
	TEST_ASSERT_EQUAL(-1, vb_cm_migrate_id(a.id, &unknown));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_CM_CHANNEL_UNKNOWN, vb_last_reason());
	TEST_ASSERT_NULL(alpha.called);
	TEST_ASSERT_EQUAL(0, vb_cm_migrate_id(a.id, NULL));
	TEST_ASSERT_EQUAL_STRING("migrate_id", alpha.called);
	end_end(a);
	end_end(b);
}

/* --- events --- */

void test_the_identifier_of_a_request_is_known(void)
{
	struct end a = make_end("alpha");
	struct rdma_cm_id *fresh = calloc(1, sizeof(*fresh));
	struct rdma_cm_event request = {
		.id = fresh, .listen_id = a.id, .event = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rdma_cm_event *event;

	fresh->verbs = alpha.context;
	TEST_ASSERT_EQUAL(-1, vb_cm_accept(fresh, NULL));
	alpha.event = &request;
	alpha.ids++;
	TEST_ASSERT_EQUAL(0, vb_cm_get_cm_event(a.channel, &event));
	TEST_ASSERT_EQUAL(0, vb_cm_accept(event->id, NULL));
	/* A program may end the identifier before it acknowledges the event. */
	TEST_ASSERT_EQUAL(0, vb_cm_destroy_id(event->id));
	TEST_ASSERT_EQUAL(0, vb_cm_ack_cm_event(event));
	TEST_ASSERT_EQUAL_STRING("ack_cm_event", alpha.called);
	end_end(a);
}

void test_an_event_of_no_backend_is_refused(void)
{
	struct rdma_cm_id stranger = {0};
	struct rdma_cm_event event = {.id = &stranger};

	TEST_ASSERT_EQUAL(-1, vb_cm_ack_cm_event(&event));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	expect_reason(VB_WHY_CM_EVENT_UNKNOWN,
		      "cm_ack_cm_event: the event 0x%" PRIx64 " has no identifier of a backend; "
		      "acknowledge each event of vb_cm_get_cm_event() once",
		      (uint64_t)(uintptr_t)&event);
}

static struct rdma_cm_event held;

static void *acknowledge(void *unused)
{
	TEST_ASSERT_EQUAL(0, vb_cm_ack_cm_event(&held));
	return NULL;
}

static void acknowledge_elsewhere(struct fake *fake)
{
	pthread_t thread;

	pthread_create(&thread, NULL, acknowledge, NULL);
	pthread_join(thread, NULL);
}

void test_events_are_acknowledged_while_their_identifier_ends(void)
{
	struct end a = make_end("alpha");

	held = (struct rdma_cm_event){.id = a.id, .event = RDMA_CM_EVENT_ESTABLISHED};
	alpha.destroying = acknowledge_elsewhere;
	end_end(a);
	TEST_ASSERT_EQUAL_STRING("ack_cm_event", alpha.called);
}

static struct end heir;

static void *inherit(void *unused)
{
	heir = make_end("beta");
	return NULL;
}

/* Another thread gets the memory of the identifier while its destruction is still being noted. */
static void give_memory_away(struct fake *fake)
{
	pthread_t thread;

	pthread_create(&thread, NULL, inherit, NULL);
	pthread_join(thread, NULL);
}

void test_a_new_identifier_at_the_address_of_an_old_one(void)
{
	struct rdma_cm_id *memory = calloc(1, sizeof(*memory));
	struct end a;

	alpha.next_id = beta.next_id = memory;
	a = make_end("alpha");
	alpha.destroying = give_memory_away;
	TEST_ASSERT_EQUAL(0, vb_cm_destroy_id(a.id));
	beta.called = NULL;
	TEST_ASSERT_EQUAL(0, vb_cm_listen(heir.id, 1));
	TEST_ASSERT_EQUAL_STRING("listen", beta.called);
	end_end(heir);
	vb_cm_destroy_event_channel(a.channel);
	TEST_ASSERT_EQUAL(-1, vb_cm_listen(memory, 1));
	free(memory);
}

static void *inherit_alone(void *unused)
{
	TEST_ASSERT_EQUAL(0, vb_cm_create_id("alpha", NULL, &heir.id, NULL, RDMA_PS_TCP));
	return NULL;
}

static void give_memory_to_itself(struct fake *fake)
{
	pthread_t thread;

	fake->destroying = NULL;
	pthread_create(&thread, NULL, inherit_alone, NULL);
	pthread_join(thread, NULL);
}

void test_a_new_identifier_of_the_same_backend_keeps_its_channel(void)
{
	struct rdma_cm_id *memory = calloc(1, sizeof(*memory));
	struct rdma_cm_event *event;
	struct end a;

	alpha.next_id = memory;
	a = make_end("alpha");
	alpha.destroying = give_memory_to_itself;
	TEST_ASSERT_EQUAL(0, vb_cm_destroy_id(a.id));
	TEST_ASSERT_EQUAL(-1, vb_cm_get_cm_event(heir.id->channel, &event));
	TEST_ASSERT_EQUAL(EAGAIN, errno);
	do_destroy_event_channel(&alpha, heir.id->channel);
	end_end((struct end){a.channel, heir.id});
	free(memory);
}

static void *come_and_go(void *unused)
{
	struct end guest = make_end("alpha");

	TEST_ASSERT_EQUAL(0, vb_cm_destroy_id(guest.id));
	TEST_ASSERT_EQUAL(0, vb_cm_ack_cm_event(&held));
	vb_cm_destroy_event_channel(guest.channel);
	return NULL;
}

static void lend_memory(struct fake *fake)
{
	pthread_t thread;

	pthread_create(&thread, NULL, come_and_go, NULL);
	pthread_join(thread, NULL);
}

/* An identifier of alpha has come and gone while beta ends its own at the same address. */
void test_the_end_of_an_identifier_leaves_another_backends_alone(void)
{
	struct rdma_cm_id *memory = calloc(1, sizeof(*memory));
	struct end b;

	alpha.next_id = beta.next_id = memory;
	b = make_end("beta");
	held = (struct rdma_cm_event){.id = b.id, .event = RDMA_CM_EVENT_ESTABLISHED};
	beta.destroying = lend_memory;
	end_end(b);
	TEST_ASSERT_EQUAL_STRING("ack_cm_event", beta.called);
	free(memory);
}

/* --- lists --- */

void test_a_list_of_devices(void)
{
	int count = 0;
	struct ibv_context **list = vb_cm_get_devices("alpha", &count);

	TEST_ASSERT_EQUAL(1, count);
	TEST_ASSERT_EQUAL_STRING("alpha", vb_context_backend(list[0])->name);
	vb_cm_free_devices(list);
	TEST_ASSERT_EQUAL(0, alpha.lists);
	vb_cm_free_devices(list);
	expect_reason(VB_WHY_CM_LIST_UNKNOWN,
		      "cm_free_devices: the list 0x%" PRIx64 " of the connection manager is of no "
		      "backend, or freed already; free each list of vb_cm_get_devices() and "
		      "vb_cm_getaddrinfo() once",
		      (uint64_t)(uintptr_t)list);
	TEST_ASSERT_EQUAL(0, alpha.lists);
}

void test_a_list_of_addresses(void)
{
	struct rdma_addrinfo *list;

	TEST_ASSERT_EQUAL(0, vb_cm_getaddrinfo("beta", "x", NULL, NULL, &list));
	TEST_ASSERT_EQUAL(1, beta.lists);
	vb_cm_freeaddrinfo(list);
	TEST_ASSERT_EQUAL(0, beta.lists);
	vb_cm_freeaddrinfo(list);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_CM_LIST_UNKNOWN, vb_last_reason());
	TEST_ASSERT_EQUAL(0, beta.lists);
}

void test_an_answer_of_getaddrinfo_is_kept_and_explained(void)
{
	struct rdma_addrinfo *list;

	beta.answer = EAI_NONAME;
	TEST_ASSERT_EQUAL(EAI_NONAME, vb_cm_getaddrinfo("beta", "x", NULL, NULL, &list));
	TEST_ASSERT_EQUAL(EINVAL, errno);
	expect_reason(
		VB_WHY_CM_NAME,
		"cm_getaddrinfo: the host or the service has no address: %s; give the name or "
		"the number of a host, and a service that fits the hints",
		gai_strerror(EAI_NONAME));
	beta.answer = EAI_SYSTEM;
	TEST_ASSERT_EQUAL(EAI_SYSTEM, vb_cm_getaddrinfo("beta", "x", NULL, NULL, &list));
	TEST_ASSERT_EQUAL(EMSGSIZE, errno);
	beta.answer = -1;
	TEST_ASSERT_EQUAL(-1, vb_cm_getaddrinfo("beta", "x", NULL, NULL, &list));
	TEST_ASSERT_EQUAL(EMSGSIZE, errno);
	TEST_ASSERT_EQUAL_HEX(VB_WHY_ERRNO_ONLY, vb_last_reason());
}

/* --- memory --- */

/* The call fails with ENOMEM, and what the backend has made is ended. */
#define STARVED(call)                                                      \
	do {                                                               \
		malloc_fails = true;                                       \
		answer = call;                                             \
		malloc_fails = false;                                      \
		TEST_ASSERT_EQUAL(ENOMEM, errno);                          \
		TEST_ASSERT_EQUAL_HEX(VB_WHY_NO_MEMORY, vb_last_reason()); \
		TEST_ASSERT_TRUE(answer);                                  \
	} while (0)

void test_what_cannot_be_remembered_is_ended(void)
{
	struct end a = make_end("alpha");
	struct rdma_cm_event request = {.listen_id = a.id, .event = RDMA_CM_EVENT_CONNECT_REQUEST};
	struct rdma_addrinfo *addresses;
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	int count = 3;
	bool answer;

	STARVED(!vb_cm_create_event_channel("alpha"));
	TEST_ASSERT_EQUAL(1, alpha.channels);
	STARVED(vb_cm_create_id("alpha", a.channel, &id, NULL, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL(1, alpha.ids);
	STARVED(!vb_cm_get_devices("alpha", &count));
	TEST_ASSERT_EQUAL(0, count);
	STARVED(vb_cm_getaddrinfo("alpha", "x", NULL, NULL, &addresses));
	TEST_ASSERT_EQUAL(0, alpha.lists);

	alpha.event = &request;
	request.id = calloc(1, sizeof(*id));
	alpha.ids++;
	STARVED(vb_cm_get_cm_event(a.channel, &event));
	TEST_ASSERT_EQUAL(1, alpha.ids);
	TEST_ASSERT_EQUAL_STRING("destroy_id", alpha.called);
	end_end(a);
}

/* --- functions without a backend --- */

void test_names_of_events(void)
{
	TEST_ASSERT_EQUAL_STRING("RDMA_CM_EVENT_ADDR_RESOLVED",
				 vb_cm_event_str(RDMA_CM_EVENT_ADDR_RESOLVED));
	TEST_ASSERT_EQUAL_STRING("RDMA_CM_EVENT_UNREACHABLE",
				 vb_cm_event_str(RDMA_CM_EVENT_UNREACHABLE));
	TEST_ASSERT_EQUAL_STRING("RDMA_CM_EVENT_TIMEWAIT_EXIT",
				 vb_cm_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT));
	TEST_ASSERT_EQUAL_STRING("UNKNOWN EVENT", vb_cm_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT + 1));
	TEST_ASSERT_EQUAL_STRING("UNKNOWN EVENT", vb_cm_event_str(-1));
}

void test_ports(void)
{
	struct rdma_cm_id id = {0};

	TEST_ASSERT_EQUAL(0, vb_cm_get_src_port(&id));
	id.route.addr.src_sin.sin_family = AF_INET;
	id.route.addr.src_sin.sin_port = htons(18515);
	id.route.addr.dst_sin6.sin6_family = AF_INET6;
	id.route.addr.dst_sin6.sin6_port = htons(7471);
	TEST_ASSERT_EQUAL(htons(18515), vb_cm_get_src_port(&id));
	TEST_ASSERT_EQUAL(htons(7471), vb_cm_get_dst_port(&id));
}
