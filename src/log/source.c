/* SPDX-License-Identifier: MIT */
#include "src/log/source.h"

#include "src/layer/layer.h"
#include "src/layer/watch.h"
#include "src/log/argument.h"
#include "src/log/call.h"
#include "src/log/connection.h"
#include "src/log/log.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <verbena/explain.h>
#include <verbena/verbs.h>

#define OBJECT_NAME_BYTES 64

/* --- events of backends --- */

/* An object has the same name in events of devices and in calls of verbs. */
static void watch(void *arg, const struct vb_event *event)
{
	struct record record = {0};
	struct vb_event named;
	char name[OBJECT_NAME_BYTES] = "";

	if (event->object)
		layer_object_name(event->object, name, sizeof(name));
	if (name[0]) {
		named = *event;
		named.texts[0] = name;
		event = &named;
	}
	log_write(event, &record);
}

/* --- verbs and completions --- */

static bool is_poll(enum layer_verb verb)
{
	return verb == LAYER_poll_cq || verb == LAYER_start_poll || verb == LAYER_next_poll;
}

/* Of these the log has nothing to say. */
static bool is_silent(enum layer_verb verb)
{
	return verb == LAYER_end_poll || verb == LAYER_wr_start;
}

/* The time of an adapter is CLOCK_MONOTONIC, counted from the beginning of the log. */
static uint64_t now_ns(const struct layer_call *call)
{
	const uint64_t now = layer_now_ns(call);

	return call->backend && call->backend->now_ns ? now : now - log_started_ns();
}

/* Notes when the verb began. 0 is no time. */
static int before(struct layer_call *call)
{
	if (call->context && !is_poll(call->verb) && !is_silent(call->verb))
		call->state = now_ns(call) + 1;
	return 0;
}

/* Bits of struct vb_event.absent: the fields of VERB. */
enum { DURATION = 1 << 0, LKEY = 1 << 1, RKEY = 1 << 2 };

/* The keys of what the verb has made. */
static void add_keys(const struct layer_call *call, struct vb_event *event)
{
	const void *made = (const void *)(uintptr_t)call->result;
	struct layer_object found;

	if (layer_verb_info(call->verb)->convention != LAYER_POINTER ||
	    !layer_object_find(made, &found))
		return;
	if (strcmp(found.kind, "mr") == 0) {
		event->values[1] = ((const struct ibv_mr *)made)->lkey;
		event->values[2] = ((const struct ibv_mr *)made)->rkey;
		event->absent &= ~(unsigned int)(LKEY | RKEY);
	} else if (strcmp(found.kind, "mw") == 0) {
		event->values[2] = ((const struct ibv_mw *)made)->rkey;
		event->absent &= ~(unsigned int)RKEY;
	}
}

static void add_verb(const struct layer_call *call)
{
	const uint64_t began_ns = call->state ? call->state - 1 : 0;
	struct record record = {.arguments = argument_all, .result = call_result, .arg = call};
	struct vb_event event = {
		.kind = VB_EVENT_VERB,
		.device = call_device(call),
		.qpn = call_qpn(call),
		.absent = LKEY | RKEY | (call->state ? 0 : DURATION),
		.texts = {layer_verb_info(call->verb)->name,
			  call->err ? strerrorname_np(call->err) : NULL},
		.why = call->err ? call->why : NULL,
	};

	/* close_device() has no context left. */
	event.time_ns = call->context ? now_ns(call) : began_ns;
	record.no_time = !call->context && !call->state;
	event.values[0] = event.time_ns - began_ns;
	add_keys(call, &event);
	log_write(&event, &record);
}

static const char *cq_name(const struct layer_call *call, char *text, size_t size_bytes)
{
	const void *cq = (const void *)(uintptr_t)call->arguments[0];

	layer_object_name(cq, text, size_bytes);
	return text[0] ? text : NULL;
}

/* Bits of struct vb_event.absent: the fields of COMPLETION. */
enum {
	OPCODE = 1 << 2,
	BYTES = 1 << 3,
	FLAGS = 1 << 4,
	IMM = 1 << 5,
	INVALIDATED = 1 << 6,
	SOURCE_QP = 1 << 7,
	VENDOR_ERR = 1 << 8,
};

/* Which members of the completion mean something: ibv_poll_cq(3). */
static unsigned int absent_of(const struct ibv_wc *wc)
{
	unsigned int absent = VENDOR_ERR;

	if (wc->status != IBV_WC_SUCCESS)
		return OPCODE | BYTES | FLAGS | IMM | INVALIDATED | SOURCE_QP;
	if (wc->opcode < IBV_WC_RECV && wc->opcode != IBV_WC_RDMA_READ)
		absent |= BYTES;
	if (!wc->wc_flags)
		absent |= FLAGS;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM))
		absent |= IMM;
	if (!(wc->wc_flags & IBV_WC_WITH_INV))
		absent |= INVALIDATED;
	if (wc->opcode < IBV_WC_RECV || !wc->src_qp)
		absent |= SOURCE_QP;
	return absent;
}

static void add_completion(const struct layer_call *call, const struct ibv_wc *wc, uint64_t time_ns,
			   const char *cq)
{
	struct vb_event event = {.kind = VB_EVENT_COMPLETION, .device = call->device};
	struct vb_completion_why why = {0};
	struct record record = {0};

	event.time_ns = time_ns;
	event.qpn = wc->qp_num;
	event.texts[0] = cq;
	event.absent = absent_of(wc);
	memcpy(event.values,
	       (const uint64_t[]){wc->wr_id, wc->status, wc->opcode, wc->byte_len, wc->wc_flags,
				  be32toh(wc->imm_data), wc->invalidated_rkey, wc->src_qp,
				  wc->vendor_err},
	       sizeof(event.values));
	if (wc->status != IBV_WC_SUCCESS && call->backend->completion_why &&
	    call->backend->completion_why(call->context, wc, &why) == 0) {
		event.why = &why.why;
		event.peer_why = &why.peer_why;
	}
	log_write(&event, &record);
}

/* poll_cq(cq, num_entries, wc); start_poll(cq, wc) and next_poll(cq, wc) take one completion. */
static void add_completions(const struct layer_call *call)
{
	const bool many = call->verb == LAYER_poll_cq;
	const struct ibv_wc *wc = (const void *)(uintptr_t)call->arguments[many ? 2 : 1];
	const int count = many ? (int)call->result : !call->err;
	char name[OBJECT_NAME_BYTES];
	uint64_t time_ns;

	if (count <= 0 || !wc)
		return;
	time_ns = now_ns(call);
	cq_name(call, name, sizeof(name));
	for (int i = 0; i < count; i++)
		add_completion(call, &wc[i], time_ns, name[0] ? name : NULL);
}

static void after(const struct layer_call *call)
{
	if (call->verb == LAYER_cm_get_cm_event && !call->err) {
		connection_write(call, now_ns(call));
	} else if (!is_poll(call->verb)) {
		if (!is_silent(call->verb))
			add_verb(call);
	} else if (!call->err) {
		add_completions(call);
	} else if (call->err != ENOENT) {
		add_verb(call);
	}
}

static struct layer layer = {.name = "log", .before = before, .after = after};

int source_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err;

	pthread_once(&once, argument_prepare);
	err = layer_add(&layer);
	if (err)
		return err;
	err = layer_watch(watch, NULL);
	if (err)
		layer_remove(&layer);
	return err;
}

void source_stop(void)
{
	layer_unwatch(watch, NULL);
	layer_remove(&layer);
}
