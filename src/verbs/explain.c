/* SPDX-License-Identifier: MIT */
/* Why a completion failed, in sentences: both sides' view. */
#include <verbena/explain.h>

#include "src/base/why.h"
#include "src/verbs/dispatch.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <verbena/verbs.h>

#define TEXT_BYTES 2048 /* four causes, each of 512 bytes at most */

static _Thread_local enum vb_reason last;
static _Thread_local char text[TEXT_BYTES];

/* --- which side found the error --- */

/* True if the QP's own reason is only that its peer sent a NAK. */
static bool is_nak(enum vb_reason reason)
{
	return reason >= VB_WHY_NAK_ACCESS && reason <= VB_WHY_NAK_DATAGRAM;
}

static enum vb_reason finder(const struct vb_why *own, const struct vb_why *peer)
{
	return is_nak(own->reason) && peer->reason ? peer->reason : own->reason;
}

static enum vb_reason found_in(const struct vb_completion_why *why)
{
	return why->first.reason ? finder(&why->first, &why->first_peer)
				 : finder(&why->why, &why->peer_why);
}

/* --- sentences --- */

struct sentence {
	size_t used;
};

static void add(struct sentence *sentence, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add(struct sentence *sentence, const char *format, ...)
{
	const size_t room = sizeof(text) - sentence->used;
	va_list arguments;
	int wanted;

	va_start(arguments, format);
	wanted = vsnprintf(text + sentence->used, room, format, arguments);
	va_end(arguments);
	sentence->used += wanted < 0 ? 0 : (size_t)wanted < room ? (size_t)wanted : room - 1;
}

/* Reasons whose cause is a predicate: its subject is the QP, or the device of the QP that the cause
 * names itself. */
static const struct {
	enum vb_reason from, to;
	bool of_device;
} predicates[] = {
	{VB_WHY_RKEY_UNKNOWN, VB_WHY_REQUEST_SRQ, false},
	{VB_WHY_DROP_TRUNCATED, VB_WHY_DROP_CUT_MESSAGE, true},
	{VB_WHY_PEER_STATE, VB_WHY_PEER_SENT, false},
	{VB_WHY_PEER_GONE, VB_WHY_PEER_ELSEWHERE, false},
};

static void add_subject(struct sentence *sentence, const char *device, uint32_t qpn,
			enum vb_reason reason)
{
	if (!device)
		return;
	for (size_t i = 0; i < sizeof(predicates) / sizeof(predicates[0]); i++) {
		if (reason < predicates[i].from || reason > predicates[i].to)
			continue;
		if (predicates[i].of_device)
			add(sentence, "%s ", device);
		else
			add(sentence, "%s QP 0x%x ", device, qpn);
		return;
	}
	add(sentence, "%s QP 0x%x: ", device, qpn);
}

/* One failure, as this side and its peer know it. The remedy is that of the side that knows why. */
static void add_failure(struct sentence *sentence, const struct vb_completion_why *why,
			const struct vb_why *own, const struct vb_why *peer)
{
	const bool peer_knows = peer->reason && peer->reason != VB_WHY_PEER_SENT;
	char words[512];

	if (!is_nak(own->reason) || !peer->reason)
		add(sentence, "%s; ", why_cause(own, words, sizeof(words)));
	if (peer->reason) {
		add_subject(sentence, why->peer, why->peer_qpn, peer->reason);
		add(sentence, "%s; ", why_cause(peer, words, sizeof(words)));
	}
	add(sentence, "%s", why_remedy(peer_knows ? peer : own, words, sizeof(words)));
}

static void add_known(struct sentence *sentence, const struct vb_completion_why *why)
{
	char words[512];

	if (!why->first.reason) {
		add_failure(sentence, why, &why->why, &why->peer_why);
		return;
	}
	add(sentence, "%s: ", why_cause(&why->why, words, sizeof(words)));
	add_failure(sentence, why, &why->first, &why->first_peer);
}

/* --- the questions --- */

/* A failing call has given the completion its status: no device knows it. */
static bool is_injected(const struct ibv_wc *wc)
{
	return wc->status != IBV_WC_SUCCESS &&
	       (wc->vendor_err == VB_WHY_FAIL_COMPLETION || wc->vendor_err == VB_WHY_FAIL_MADE);
}

static int ask(struct ibv_context *context, const struct ibv_wc *wc, struct vb_completion_why *why)
{
	const struct vb_backend *slot = enter("vb_completion_why", context);
	int err;

	*why = (struct vb_completion_why){0};
	if (is_injected(wc)) {
		why->qpn = wc->qp_num;
		why->why.reason = (enum vb_reason)wc->vendor_err;
		err = 0;
		leave();
	} else if (!slot->completion_why) {
		err = refuse("vb_completion_why");
		leave();
	} else {
		err = leave_errno(slot->completion_why(context, wc, why));
	}
	last = err ? why->why.reason : found_in(why);
	return err;
}

int vb_completion_why(struct ibv_context *context, const struct ibv_wc *wc,
		      struct vb_completion_why *why)
{
	return ask(context, wc, why);
}

enum vb_reason vb_last_completion_reason(void)
{
	return last;
}

const char *vb_explain(struct ibv_context *context, const struct ibv_wc *wc)
{
	struct sentence sentence = {0};
	struct vb_completion_why why;
	const int saved = errno;
	const int err = ask(context, wc, &why);
	char words[512];

	if (context)
		add(&sentence, "%s ", context->device->name);
	add(&sentence, "QP 0x%x, wr_id %lu: %s: ", wc->qp_num, wc->wr_id,
	    vb_wc_status_name(wc->status));
	if (!err)
		add_known(&sentence, &why);
	else if (why_row(why.why.reason, words, sizeof(words))[0])
		add(&sentence, "%s (its values are not known any more)", words);
	else
		add(&sentence, "%s", vb_wc_status_str(wc->status));
	errno = saved;
	return text;
}
