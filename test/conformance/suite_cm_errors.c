/* SPDX-License-Identifier: MIT */
/*
 * Connections: calls that fail, with the errno values of Linux.
 */
#include "test/conformance/sources.h"
#include "test/support/capability.h"
#include "test/support/manager.h"

#include <arpa/inet.h>
#include <linux/capability.h>

#define SRC_CMA SRC_CORE "cma.c, "

enum { BY_CONSUMER = 28, SIDR_REJECTED = 2 };

/* --- ports --- */

static struct rdma_cm_id *sharing(struct vt *t, struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = tc_id(t, channel, RDMA_PS_TCP);
	int on = 1;

	VT_OK(t, vb_cm_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	return id;
}

static int bind_to(struct rdma_cm_id *id, struct tc_address address)
{
	return vb_cm_bind_addr(id, tc_sockaddr(&address));
}

static uint16_t port_of(struct rdma_cm_id *id)
{
	return ntohs(vb_cm_get_src_port(id));
}

static void an_address_and_the_wildcard_exclude_each_other(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *first = tc_id(t, channel, RDMA_PS_TCP);
	struct rdma_cm_id *second = tc_id(t, channel, RDMA_PS_TCP);
	uint16_t port;

	VT_OK(t, bind_to(first, tc_address(&t->b, 0)));
	port = port_of(first);
	VT_MINUS_ERRNO(t, bind_to(second, tc_any(&t->b, port)), EADDRNOTAVAIL);
	tc_end(t, first);
	VT_OK(t, bind_to(second, tc_any(&t->b, port)));
	first = tc_id(t, channel, RDMA_PS_TCP);
	VT_MINUS_ERRNO(t, bind_to(first, tc_address(&t->b, port)), EADDRNOTAVAIL);
	VT_MINUS_ERRNO(t, bind_to(first, tc_any(&t->b, port)), EADDRNOTAVAIL);
	/* The identifier may have another port. */
	VT_OK(t, bind_to(first, tc_address(&t->b, 0)));
	VT_CHECK(t, port_of(first) != port);
}

static void the_wildcard_of_ipv6_is_for_both_families(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct rdma_cm_id *four = tc_id(t, channel, RDMA_PS_TCP);
	struct rdma_cm_id *six = tc_id(t, channel, RDMA_PS_TCP);
	int value = 0;

	VT_OK(t, vb_cm_bind_addr(four, (struct sockaddr *)&in));
	in6.sin6_port = vb_cm_get_src_port(four);
	VT_OK(t,
	      vb_cm_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof(value)));
	VT_MINUS_ERRNO(t, vb_cm_bind_addr(six, (struct sockaddr *)&in6), EADDRNOTAVAIL);
	value = 1;
	VT_OK(t,
	      vb_cm_set_option(six, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, sizeof(value)));
	VT_OK(t, vb_cm_bind_addr(six, (struct sockaddr *)&in6));
	VT_OK(t, vb_cm_listen(four, 1));
	VT_OK(t, vb_cm_listen(six, 1));
}

static void a_listener_excludes_those_that_share(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	struct rdma_cm_id *first = sharing(t, channel), *second = sharing(t, channel);
	struct rdma_cm_id *third = sharing(t, channel);
	uint16_t port;

	VT_OK(t, bind_to(first, tc_address(&t->b, 0)));
	port = port_of(first);
	VT_OK(t, bind_to(second, tc_address(&t->b, port)));
	VT_MINUS_ERRNO(t, vb_cm_listen(first, 1), EADDRINUSE);
	tc_end(t, second);
	VT_OK(t, vb_cm_listen(first, 1));
	VT_MINUS_ERRNO(t, bind_to(third, tc_address(&t->b, port)), EADDRINUSE);
	VT_MINUS_ERRNO(t, bind_to(third, tc_any(&t->b, port)), EADDRNOTAVAIL);
	tc_end(t, first);
	VT_OK(t, bind_to(third, tc_address(&t->b, port)));
}

static void a_chosen_port_has_one_owner(struct vt *t)
{
	struct rdma_event_channel *channel = tc_channel(t);
	enum { IDS = 8 };
	struct rdma_cm_id *ids[IDS];

	for (size_t i = 0; i < IDS; i++) {
		ids[i] = sharing(t, channel);
		/* The second identifier binds the port behind that of the first, which may be the next free port. */
		VT_OK(t, bind_to(ids[i], tc_address(&t->b, i == 1 ? port_of(ids[0]) + 1 : 0)));
		VT_CHECK(t, port_of(ids[i]) != 0);
		for (size_t j = 0; j < i; j++)
			VT_CHECK(t, port_of(ids[i]) != port_of(ids[j]));
	}
}

static void restore(void *unused)
{
	(void)unused;
	capability_restore(CAP_NET_BIND_SERVICE);
}

static void ports_below_1024_need_a_capability(struct vt *t)
{
	struct rdma_cm_id *id;

	/* Drops the right before it makes the channel: the kernel refuses calls on the channel after such a change. */
	if (capability_drop(CAP_NET_BIND_SERVICE))
		vt_defer(t, restore, NULL);
	id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	VT_MINUS_ERRNO(t, bind_to(id, tc_address(&t->b, 1)), EACCES);
	VT_MINUS_ERRNO(t, bind_to(id, tc_any(&t->b, 1023)), EACCES);
	VT_CHECK(t, !id->verbs);
	VT_EQ(t, port_of(id), 0);
	/* The first call has not left its device behind. */
	VT_OK(t, bind_to(id, tc_any(&t->b, 0)));
	VT_CHECK(t, !id->verbs);
}

/* --- addresses --- */

/* 198.51.100.0/24 is for documentation: RFC 5737. */
static void another_machines_address_cannot_be_bound(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc6336407)};
	struct tc_address to = tc_address(&t->b, 7471);

	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, (struct sockaddr *)&far), EADDRNOTAVAIL);
	if (tc_sockaddr(&to)->sa_family == AF_INET)
		VT_MINUS_ERRNO(
			t, vb_cm_resolve_addr(id, (struct sockaddr *)&far, tc_sockaddr(&to), 2000),
			EADDRNOTAVAIL);
	VT_CHECK(t, !id->verbs);
	VT_OK(t, bind_to(id, tc_address(&t->b, 0)));
}

static void a_link_local_address_needs_its_interface(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct sockaddr_in6 address = {
		.sin6_family = AF_INET6,
		.sin6_addr.s6_addr = {0xfe, 0x80, [15] = 1},
	};

	VT_MINUS_ERRNO(t, vb_cm_bind_addr(id, (struct sockaddr *)&address), EINVAL);
	VT_OK(t, bind_to(id, tc_address(&t->b, 0)));
}

static void families_of_source_and_destination(struct vt *t)
{
	struct rdma_cm_id *id = tc_id(t, tc_channel(t), RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, 7471);
	const bool is_ipv4 = tc_sockaddr(&to)->sa_family == AF_INET;
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct sockaddr *other = is_ipv4 ? (struct sockaddr *)&in6 : (struct sockaddr *)&in;

	VT_OK(t, vb_cm_bind_addr(id, other));
	VT_MINUS_ERRNO(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000), EINVAL);
	/* The identifier stays bound, and may listen. */
	VT_OK(t, vb_cm_listen(id, 1));
}

static void a_route_needs_time(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *id = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	struct tc_address to = tc_address(&t->b, pair->port);

	VT_OK(t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	VT_MINUS_ERRNO(t, vb_cm_resolve_route(id, 0), EINVAL);
	VT_OK(t, vb_cm_resolve_route(id, 2000));
	tc_expect(t, pair->a_channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* --- each call in each state --- */

enum state {
	IDLE,
	BOUND,
	ADDRESS_RESOLVED,
	ROUTE_RESOLVED,
	LISTENING,
	ASKED,	   /* the active side, before an answer */
	REQUESTED, /* the identifier of a request */
	REJECTED,  /* of a request that the program has rejected */
	ESTABLISHED,
	DISCONNECTED,
	STATES,
};

static const char *const state_names[STATES] = {
	"IDLE",	 "BOUND",     "ADDRESS_RESOLVED", "ROUTE_RESOLVED", "LISTENING",
	"ASKED", "REQUESTED", "REJECTED",	  "ESTABLISHED",    "DISCONNECTED",
};

/* Returns the pair of the identifier in *id, which is in the state. */
static struct tc_pair *enter(struct vt *t, enum state state, struct rdma_cm_id **id)
{
	struct tc_pair *pair = state < ESTABLISHED ? tc_pair(t, RDMA_PS_TCP) : tc_connected(t);
	struct tc_address here = tc_address(&t->b, 0), to = tc_address(&t->b, pair->port);

	*id = state == LISTENING ? pair->listener : pair->a;
	if (state < ROUTE_RESOLVED)
		*id = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	if (state == BOUND)
		VT_OK(t, vb_cm_bind_addr(*id, tc_sockaddr(&here)));
	if (state == ADDRESS_RESOLVED) {
		VT_OK(t, vb_cm_resolve_addr(*id, NULL, tc_sockaddr(&to), 2000));
		tc_expect(t, pair->a_channel, *id, RDMA_CM_EVENT_ADDR_RESOLVED);
	}
	if (state == ASKED || state == REQUESTED || state == REJECTED) {
		tc_ask(pair);
		tc_qp(t, pair->b);
	}
	if (state == REQUESTED || state == REJECTED)
		*id = pair->b;
	if (state == REJECTED)
		VT_OK(t, vb_cm_reject(*id, NULL, 0));
	if (state == DISCONNECTED) {
		VT_OK(t, vb_cm_disconnect(pair->a));
		tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_DISCONNECTED);
		VT_OK(t, vb_cm_disconnect(pair->b));
		tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
	}
	return pair;
}

static int call_bind(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	return bind_to(id, tc_address(&pair->t->b, 0));
}

static int call_resolve_addr(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	struct tc_address to = tc_address(&pair->t->b, pair->port);

	return vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000);
}

static int call_resolve_route(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	return vb_cm_resolve_route(id, 2000);
}

static int call_listen(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	return vb_cm_listen(id, 1);
}

static int call_connect(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = tc_param(NULL, 0);

	return vb_cm_connect(id, &param);
}

static int call_accept(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = tc_param(NULL, 0);

	return vb_cm_accept(id, &param);
}

static int call_reject(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	return vb_cm_reject(id, NULL, 0);
}

static int call_disconnect(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	return vb_cm_disconnect(id);
}

static int call_notify(const struct tc_pair *pair, struct rdma_cm_id *id)
{
	return vb_cm_notify(id, IBV_EVENT_COMM_EST);
}

/* In each row: the errno value in each state, in the order of enum state; 0: the call succeeds. */
static const struct {
	const char *name;
	int (*call)(const struct tc_pair *pair, struct rdma_cm_id *id);
	int errors[STATES];
} calls[] = {
	{"bind_addr",
	 call_bind,
	 {0, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}},
	{"resolve_addr",
	 call_resolve_addr,
	 {0, 0, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}},
	{"resolve_route",
	 call_resolve_route,
	 {EINVAL, EINVAL, 0, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}},
	{"listen",
	 call_listen,
	 {0, 0, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}},
	{"connect",
	 call_connect,
	 {EINVAL, EINVAL, EINVAL, 0, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL}},
	{"accept",
	 call_accept,
	 {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, 0, EINVAL, EINVAL, EINVAL}},
	{"reject",
	 call_reject,
	 {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, 0, 0, EINVAL, EINVAL, EINVAL}},
	{"disconnect", call_disconnect, {EINVAL, EINVAL, EINVAL, EINVAL, 0, 0, 0, 0, 0, 0}},
	{"notify",
	 call_notify,
	 {EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EINVAL, EISCONN, EINVAL}},
};

static void each_call_in_each_state(struct vt *t)
{
	for (size_t i = 0; i < TS_COUNT(calls); i++)
		for (enum state state = 0; state < STATES; state++) {
			struct rdma_cm_id *id;
			struct tc_pair *pair = enter(t, state, &id);
			int got;

			vt_row(t, "%s in %s", calls[i].name, state_names[state]);
			got = calls[i].call(pair, id);
			VT_EXPECT_ERRNO(t, got ? errno : 0, calls[i].errors[state]);
		}
}

/* --- requests and answers --- */

static void a_second_connect_leaves_the_first_alone(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_ask(pair);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
	tc_establish(pair);
	VT_MINUS_ERRNO(t, vb_cm_connect(pair->a, &param), EINVAL);
	tc_send(t, pair->a, pair->b);
}

/* B answers a request with more data than fit. */
static struct tc_pair *answer_too_much(struct vt *t, enum rdma_port_space space, uint8_t bytes)
{
	static const uint8_t data[UINT8_MAX];
	struct tc_pair *pair = tc_pair(t, space);
	struct rdma_conn_param param = tc_param(data, bytes);

	tc_ask(pair);
	tc_qp(t, pair->b);
	VT_MINUS_ERRNO(t, vb_cm_accept(pair->b, &param), EINVAL);
	return pair;
}

static void an_answer_with_too_much_data_rejects(struct vt *t)
{
	struct tc_pair *pair = answer_too_much(t, RDMA_PS_TCP, 197);

	VT_STATE(t, ts_query_state(t, pair->b->qp), IBV_QPS_ERR);
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
}

static void a_lookups_answer_with_too_much_data_rejects(struct vt *t)
{
	struct tc_pair *pair = answer_too_much(t, RDMA_PS_UDP, 137);

	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_UNREACHABLE, SIDR_REJECTED);
}

static void a_rejection_with_too_much_data_may_be_repeated(struct vt *t)
{
	static const uint8_t data[149];
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	tc_ask(pair);
	VT_MINUS_ERRNO(t, vb_cm_reject(pair->b, data, 149), EINVAL);
	VT_OK(t, vb_cm_reject(pair->b, data, 148));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, BY_CONSUMER);
	VT_MINUS_ERRNO(t, vb_cm_reject(pair->b, NULL, 0), EINVAL);
}

/* The messages of two communications come in their order: once the second request has come, the rejection of
 * the first one has come, too. */
static void a_request_that_was_given_up_has_no_event(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *next = tc_another(pair), *old;
	struct rdma_conn_param param = tc_param(NULL, 0);

	tc_qp(t, pair->a);
	tc_qp(t, next);
	tc_request(pair, &param);
	old = pair->b;
	tc_qp(t, old);
	tc_end(t, pair->a);
	pair->a = next;
	tc_request(pair, &param);
	VT_MINUS_ERRNO(t, vb_cm_accept(old, &param), EINVAL);
	tc_establish(pair);
	tc_send(t, pair->a, pair->b);
}

static void a_second_disconnect_changes_nothing(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);

	VT_OK(t, vb_cm_disconnect(pair->a));
	VT_OK(t, vb_cm_disconnect(pair->a));
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(pair->b));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_DISCONNECTED);
	VT_OK(t, vb_cm_disconnect(pair->b));
	VT_OK(t, vb_cm_disconnect(pair->a));
	tc_expect_both(pair, RDMA_CM_EVENT_TIMEWAIT_EXIT);
}

static const struct vt_test tests[] = {
	{"an_address_and_the_wildcard_exclude_each_other", SRC_CMA "cma_check_port: EADDRNOTAVAIL",
	 0, an_address_and_the_wildcard_exclude_each_other},
	{"the_wildcard_of_ipv6_is_for_both_families", SRC_CMA "cma_check_port: afonly", 0,
	 the_wildcard_of_ipv6_is_for_both_families},
	{"a_listener_excludes_those_that_share", SRC_CMA "rdma_listen: reuseaddr", 0,
	 a_listener_excludes_those_that_share},
	{"a_chosen_port_has_one_owner", SRC_CMA "cma_port_is_unique", 0,
	 a_chosen_port_has_one_owner},
	{"ports_below_1024_need_a_capability", SRC_CMA "cma_use_port: PROT_SOCK", 0,
	 ports_below_1024_need_a_capability},
	{"another_machines_address_cannot_be_bound", SRC_CORE "addr.c, rdma_translate_ip", 0,
	 another_machines_address_cannot_be_bound},
	{"a_link_local_address_needs_its_interface", SRC_CMA "cma_check_linklocal", 0,
	 a_link_local_address_needs_its_interface},
	{"families_of_source_and_destination", SRC_CMA "resolve_prepare_src", 0,
	 families_of_source_and_destination},
	{"a_route_needs_time", SRC_CMA "rdma_resolve_route: timeout_ms", 0, a_route_needs_time},
	/* It holds on SoftRoCE, too, but takes 100 s there. */
	{"each_call_in_each_state", SRC_CMA "cma_comp_exch; " SRC_CORE "cm.c, ib_send_cm_*",
	 VT_NEEDS_SIM, each_call_in_each_state},
	{"a_second_connect_leaves_the_first_alone", SRC_CMA "rdma_connect: cma_comp_exch", 0,
	 a_second_connect_leaves_the_first_alone},
	{"an_answer_with_too_much_data_rejects", SRC_CMA "rdma_accept: reject", 0,
	 an_answer_with_too_much_data_rejects},
	{"a_lookups_answer_with_too_much_data_rejects", SRC_CMA "rdma_accept: reject", 0,
	 a_lookups_answer_with_too_much_data_rejects},
	{"a_rejection_with_too_much_data_may_be_repeated", SRC_CORE "cm.c, ib_send_cm_rej", 0,
	 a_rejection_with_too_much_data_may_be_repeated},
	{"a_request_that_was_given_up_has_no_event", SRC_CORE "ucma.c, ucma_event_handler: uid", 0,
	 a_request_that_was_given_up_has_no_event},
	{"a_second_disconnect_changes_nothing", SRC_CMA "rdma_disconnect", 0,
	 a_second_disconnect_changes_nothing},
	{NULL},
};

const struct vt_suite vt_suite_cm_errors = {"cm_errors", "connections: calls that fail", tests};
