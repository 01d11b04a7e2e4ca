/* SPDX-License-Identifier: MIT */
#include "src/explain/explain.h"

#include "src/base/count.h"
#include "src/cm/cause.h"
#include "src/explain/flush.h"
#include "src/explain/place.h"
#include "src/explain/tally.h"
#include "src/layer/layer.h"
#include "src/layer/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <verbena/cm.h>
#include <verbena/explain.h>

#define SENTENCE_BYTES 3072

static struct sink sink;

/* --- answers that are no failures --- */

/* O_NONBLOCK and no event; a signal; an empty entry of the table; no kernel with RDMA. */
static const struct {
	enum layer_verb verb;
	int err;
} answers[] = {
	{LAYER_get_cq_event, EAGAIN},	 {LAYER_get_cq_event, EINTR},
	{LAYER_get_async_event, EAGAIN}, {LAYER_get_async_event, EINTR},
	{LAYER_query_gid_ex, ENODATA},	 {LAYER_get_device_list, ENOSYS},
	{LAYER_cm_get_cm_event, EAGAIN}, {LAYER_cm_get_cm_event, EINTR},
};

static bool is_answer(const struct layer_call *call)
{
	for (size_t i = 0; i < COUNT(answers); i++)
		if (call->verb == answers[i].verb && call->err == answers[i].err)
			return true;
	return false;
}

/* A program may try what few devices have, again and again: once is enough. */
static bool is_known_lack(const struct layer_call *call)
{
	static atomic_bool known[LAYER_VERBS];

	return call->err == EOPNOTSUPP && atomic_exchange(&known[call->verb], true);
}

/* --- lines --- */

static void print_line(const char *place, const char *sentence)
{
	const uint64_t count = tally_count(place, sentence);
	char line[SENTENCE_BYTES + 64];

	if (!count)
		return;
	if (count == 1)
		snprintf(line, sizeof(line), "%s", sentence);
	else
		snprintf(line, sizeof(line), "%s (the same %" PRIu64 " times)", sentence, count);
	sink_write(&sink, place, line);
}

static void print_plain(const char *sentence)
{
	sink_write(&sink, "", sentence);
}

/* --- verbs --- */

/* A backend names vb_cm_connect() "connect". */
static bool is_name(const char *verb, const char *text, size_t length)
{
	const char *plain = strncmp(verb, "cm_", 3) == 0 ? verb + 3 : verb;

	return (strlen(verb) == length && !memcmp(verb, text, length)) ||
	       (strlen(plain) == length && !memcmp(plain, text, length));
}

/* Returns a sentence without the name of a verb before it. */
static const char *without_verb(const char *sentence)
{
	const size_t length = strcspn(sentence, ":");

	if (strncmp(sentence + length, ": ", 2) != 0)
		return sentence;
	for (int verb = 0; verb < LAYER_VERBS; verb++) {
		if (is_name(layer_verb_info((enum layer_verb)verb)->name, sentence, length))
			return sentence + length + 2;
	}
	return sentence;
}

/* Returns the cause and the remedy. */
static const char *reason_of(const struct layer_call *call, char *text, size_t size_bytes)
{
	if (!call->why)
		return strerrordesc_np(call->err) ?: "unknown error";
	return without_verb(vb_why_text(call->why, text, size_bytes));
}

static void explain_failure(const struct layer_call *call)
{
	const char *verb = layer_verb_info(call->verb)->name;
	const char *name = strerrorname_np(call->err);
	char reason[SENTENCE_BYTES - 128], sentence[SENTENCE_BYTES];
	struct place place;

	if (is_answer(call) || is_known_lack(call))
		return;
	place_find(verb, &place);
	snprintf(sentence, sizeof(sentence), "%s: %s (%s)", place.verb,
		 reason_of(call, reason, sizeof(reason)), name ?: "no errno");
	print_line(place.text, sentence);
}

/* --- completions --- */

static enum flush_queue queue_of(struct ibv_context *context, const struct ibv_wc *wc)
{
	struct vb_completion_why why;

	if (vb_completion_why(context, wc, &why))
		return FLUSH_EITHER;
	return why.send ? FLUSH_SENDS : FLUSH_RECEIVES;
}

static void explain_completion(const struct layer_call *call, const struct ibv_wc *wc)
{
	const char *verb = layer_verb_info(call->verb)->name;
	char sentence[SENTENCE_BYTES];
	struct place place;

	if (wc->status == IBV_WC_WR_FLUSH_ERR) {
		if (!flush_count(call->context, wc->qp_num, queue_of(call->context, wc)))
			return;
	} else {
		flush_end(call->context, wc->qp_num, print_plain);
	}
	if (wc->status == IBV_WC_SUCCESS)
		return;
	place_find(verb, &place);
	snprintf(sentence, sizeof(sentence), "%s: %s", place.verb, vb_explain(call->context, wc));
	print_line(place.text, sentence);
}

static void explain_completions(const struct layer_call *call)
{
	const bool poll = call->verb == LAYER_poll_cq;
	const struct ibv_wc *wc = (const struct ibv_wc *)(uintptr_t)call->arguments[poll ? 2 : 1];
	/* An empty CQ is no failure of the other two verbs, and then there is no completion. */
	const uint64_t count = poll ? call->result : wc != NULL;

	for (uint64_t i = 0; i < count; i++)
		explain_completion(call, &wc[i]);
}

/* --- events of the connection manager --- */

static void explain_event(const struct layer_call *call)
{
	const struct rdma_cm_event *event =
		*(struct rdma_cm_event *const *)(uintptr_t)call->arguments[1];
	char reason[SENTENCE_BYTES - 512], sentence[SENTENCE_BYTES], id[32];
	struct place place;
	struct vb_why why;

	if (!cause_of_event(event, &why))
		return;
	place_find(layer_verb_info(call->verb)->name, &place);
	snprintf(sentence, sizeof(sentence), "%s: %s of %s: %s", place.verb,
		 vb_cm_event_str(event->event), layer_object_name(event->id, id, sizeof(id)),
		 vb_why_text(&why, reason, sizeof(reason)));
	print_line(place.text, sentence);
}

/* --- the layer --- */

/* Returns the QP that the call ends; NULL if it ends none. */
static const void *ending_qp(const struct layer_call *call)
{
	const void *object = (const void *)(uintptr_t)call->arguments[0];
	struct layer_object id;

	if (call->verb == LAYER_destroy_qp)
		return object;
	/* An identifier that is unknown may be any pointer. */
	if (call->verb == LAYER_cm_destroy_qp && layer_object_find(object, &id))
		return ((const struct rdma_cm_id *)object)->qp;
	return NULL;
}

/* Notes the QPN of a QP that ends. */
static int before(struct layer_call *call)
{
	struct layer_object qp;

	if (layer_object_find(ending_qp(call), &qp))
		call->state = qp.qpn;
	return 0;
}

static void after(const struct layer_call *call)
{
	const int err = errno;

	if (call->err) {
		explain_failure(call);
		errno = err;
		return;
	}
	switch (call->verb) {
	case LAYER_poll_cq:
	case LAYER_start_poll:
	case LAYER_next_poll:
		explain_completions(call);
		break;
	case LAYER_cm_get_cm_event:
		explain_event(call);
		break;
	case LAYER_cm_destroy_qp:
	case LAYER_destroy_qp:
		flush_end(call->context, (uint32_t)call->state, print_plain);
		break;
	case LAYER_close_device:
		flush_end((const struct ibv_context *)(uintptr_t)call->arguments[0], FLUSH_ALL_QPS,
			  print_plain);
		break;
	case LAYER_modify_qp:
		flush_end(call->context,
			  ((const struct ibv_qp *)(uintptr_t)call->arguments[0])->qp_num,
			  print_plain);
		break;
	default:
		break;
	}
	errno = err;
}

static struct layer explains = {.name = "explain", .before = before, .after = after};

/* --- packets --- */

/* Explains the first packet that a QP drops for a reason. The report counts all of them. */
static void see(void *arg, const struct vb_event *event)
{
	char key[128], sentence[SENTENCE_BYTES], reason[SENTENCE_BYTES - 128];
	const char *device = event->device ?: "a device";

	if (event->kind != VB_EVENT_DROP || !event->why || !event->why->reason)
		return;
	snprintf(key, sizeof(key), "%s 0x%x 0x%x", device, event->qpn, event->why->reason);
	if (tally_count("drop", key) != 1)
		return;
	snprintf(sentence, sizeof(sentence), "%s %s", device,
		 vb_why_text(event->why, reason, sizeof(reason)));
	sink_write(&sink, "", sentence);
}

/* --- beginning and end --- */

static void before_fork(void)
{
	place_lock();
	flush_lock();
	tally_lock();
}

static void after_fork(void)
{
	tally_unlock();
	flush_unlock();
	place_unlock();
}

int explain_start(const struct sink *to)
{
	int err;

	sink = *to;
	place_start();
	pthread_atfork(before_fork, after_fork, after_fork);
	err = layer_add(&explains);
	return err ? err : layer_watch(see, NULL);
}

void explain_end(void)
{
	flush_end(NULL, 0, print_plain);
}
