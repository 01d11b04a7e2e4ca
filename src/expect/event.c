/* SPDX-License-Identifier: MIT */
/* Expected asynchronous events, and events of the connection manager. */
#include "src/base/async_event.h"
#include "src/cm/cause.h"
#include "src/expect/clock.h"
#include "src/expect/words.h"

#include <inttypes.h>
#include <string.h>
#include <verbena/cm.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

/* The fields of both patterns: the event, and two values. */
enum { EVENT, FIRST, SECOND, FIELDS };

static void set(struct expect_want *want, uint64_t value)
{
	want->given = true;
	want->value = value;
}

static bool name_async(const char *word, struct expect_want *wants)
{
	for (unsigned int i = 0; i <= IBV_EVENT_WQ_FATAL; i++)
		if (expect_is_name(word, "IBV_EVENT_", vb_event_type_name(i))) {
			set(&wants[EVENT], i);
			return true;
		}
	return false;
}

static bool name_cm(const char *word, struct expect_want *wants)
{
	for (unsigned int i = 0; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		if (expect_is_name(word, "RDMA_CM_EVENT_", vb_cm_event_str(i))) {
			set(&wants[EVENT], i);
			return true;
		}
	return false;
}

/* Writes and reads the pattern. Returns false after a failure. */
static bool read_pattern(struct expect_place place, const struct expect_grammar *grammar,
			 char text[EXPECT_PATTERN_BYTES], const char *format, va_list arguments)
{
	return expect_write(place, text, format, arguments) && expect_read(place, text, grammar);
}

/* --- asynchronous events --- */

/* The QP's number and the port's; of an event of another object none. */
static void numbers_of(const struct ibv_async_event *event, uint64_t *qp, uint64_t *port,
		       bool *has_qp, bool *has_port)
{
	const enum event_of of = async_event_of(event->event_type);

	*has_qp = of == EVENT_OF_QP;
	*has_port = of == EVENT_OF_NO_OBJECT && event->event_type != IBV_EVENT_DEVICE_FATAL;
	*qp = *has_qp ? event->element.qp->qp_num : 0;
	*port = *has_port ? (uint64_t)event->element.port_num : 0;
}

static void say_async(const struct ibv_async_event *event)
{
	uint64_t qp, port;
	bool has_qp, has_port;

	numbers_of(event, &qp, &port, &has_qp, &has_port);
	expect_say("%s", vb_event_type_name(event->event_type) + strlen("IBV_EVENT_"));
	if (has_qp)
		expect_say(" qp=0x%" PRIx64, qp);
	if (has_port)
		expect_say(" port=%" PRIu64, port);
}

/* Adds to the message. Returns true if the event differs. */
static bool differs(const struct ibv_async_event *event, const struct expect_want wants[FIELDS])
{
	uint64_t qp, port;
	bool has_qp, has_port, other;

	numbers_of(event, &qp, &port, &has_qp, &has_port);
	other = wants[EVENT].given && wants[EVENT].value != event->event_type;
	other |= expect_say_difference(&wants[FIRST], has_qp, qp, true);
	other |= expect_say_difference(&wants[SECOND], has_port, port, false);
	return other;
}

/* Takes the event, and acknowledges it after the message has its description. */
static bool take_async(struct expect_place place, struct ibv_context *context,
		       const struct expect_want *wants)
{
	struct ibv_async_event event;
	bool other;

	if (vb_get_async_event(context, &event)) {
		expect_say("; %s", vb_last_error());
		return expect_fail(place);
	}
	say_async(&event);
	expect_say(" came");
	other = !wants || differs(&event, wants);
	vb_ack_async_event(&event);
	return other ? expect_fail(place) : true;
}

bool vb_expect_event_at(const char *file, int line, struct ibv_context *context,
			const char *pattern, ...)
{
	struct expect_want wants[FIELDS] = {{.field = "event"}, {.field = "qp"}, {.field = "port"}};
	const struct expect_grammar grammar = {wants, FIELDS, name_async,
					       "an event such as QP_FATAL (without IBV_EVENT_)"};
	const struct expect_place place = {file, line};
	char text[EXPECT_PATTERN_BYTES];
	enum expect_end end;
	va_list arguments;
	bool good;

	va_start(arguments, pattern);
	good = read_pattern(place, &grammar, text, pattern, arguments);
	va_end(arguments);
	if (!good)
		return false;
	if (!context)
		return expect_fail_with(place, "expected event \"%s\", but the context is NULL",
					text);
	end = expect_wait_fd(context->async_fd, expect_timeout_ns());
	expect_begin_message();
	expect_say("expected event \"%s\", and ", text);
	if (end == EXPECT_CAME)
		return take_async(place, context, wants);
	expect_say("none came");
	expect_say_nothing(end, expect_timeout_ns(), context);
	return expect_fail(place);
}

bool vb_expect_no_event_at(const char *file, int line, struct ibv_context *context,
			   uint64_t duration_ns)
{
	const struct expect_place place = {file, line};

	if (!context)
		return expect_fail_with(place, "expected no event, but the context is NULL");
	if (expect_wait_fd_whole(context->async_fd, duration_ns) != EXPECT_CAME)
		return true;
	expect_begin_message();
	expect_say("expected no event within ");
	expect_say_time(duration_ns);
	expect_say(", and ");
	return take_async(place, context, NULL);
}

/* --- events of the connection manager --- */

static void say_cause(const struct rdma_cm_event *event)
{
	char text[512];
	struct vb_why why = {.reason = VB_WHY_NONE};

	if (cause_of_event(event, &why))
		expect_say("\n  %s", vb_why_text(&why, text, sizeof(text)));
}

/* Adds to the message. Returns true if the event is the expected one. A negative status is compared as the
 * pattern writes it, without the sign. */
static bool compare_cm(const struct rdma_cm_event *event, const struct expect_want wants[FIELDS])
{
	const uint64_t status =
		event->status < 0 ? (uint64_t)-event->status : (uint64_t)event->status;
	bool other = wants[EVENT].given && wants[EVENT].value != event->event;

	expect_say("%s status=%d came", vb_cm_event_str(event->event) + strlen("RDMA_CM_EVENT_"),
		   event->status);
	other |= expect_say_difference(&wants[FIRST], true, status, false);
	if (other)
		say_cause(event);
	return !other;
}

static bool take_cm(struct expect_place place, struct rdma_event_channel *channel,
		    struct rdma_cm_event **kept, const struct expect_want *wants)
{
	struct rdma_cm_event *event;
	bool good;

	if (vb_cm_get_cm_event(channel, &event)) {
		expect_say("none came; %s", vb_last_error());
		return expect_fail(place);
	}
	good = compare_cm(event, wants);
	if (good && kept)
		*kept = event;
	else
		vb_cm_ack_cm_event(event);
	return good ? true : expect_fail(place);
}

bool vb_expect_cm_event_at(const char *file, int line, struct rdma_event_channel *channel,
			   struct rdma_cm_event **event, const char *pattern, ...)
{
	struct expect_want wants[2] = {{.field = "event"}, {.field = "status"}};
	const struct expect_grammar grammar = {
		wants, 2, name_cm, "an event such as ESTABLISHED (without RDMA_CM_EVENT_)"};
	const struct expect_place place = {file, line};
	char text[EXPECT_PATTERN_BYTES];
	enum expect_end end;
	va_list arguments;
	bool good;

	if (event)
		*event = NULL;
	va_start(arguments, pattern);
	good = read_pattern(place, &grammar, text, pattern, arguments);
	va_end(arguments);
	if (!good)
		return false;
	if (!channel)
		return expect_fail_with(place, "expected event \"%s\", but the channel is NULL",
					text);
	end = expect_wait_fd(channel->fd, expect_timeout_ns());
	expect_begin_message();
	expect_say("expected event \"%s\", and ", text);
	if (end == EXPECT_CAME)
		return take_cm(place, channel, event, wants);
	expect_say("none came");
	expect_say_nothing(end, expect_timeout_ns(), NULL);
	return expect_fail(place);
}
