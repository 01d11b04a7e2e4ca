/* SPDX-License-Identifier: MIT */
/* Expected completions. */
#include "src/base/count.h"
#include "src/expect/clock.h"
#include "src/expect/words.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>
#include <verbena/explain.h>
#include <verbena/verbs.h>

/* The fields, in the order of a message. */
enum { STATUS, OPCODE, WR_ID, LENGTH, QP, SRC_QP, IMM, KEY, FLAGS, VENDOR_ERR, FIELDS };

static const char *const fields[FIELDS] = {"status", "opcode",	  "wr_id", "length",
					   "qp",     "src_qp",	  "imm",   "invalidated_rkey",
					   "flags",  "vendor_err"};

/* enum ibv_wc_opcode has two ranges. */
static const enum ibv_wc_opcode opcodes[] = {
	IBV_WC_SEND,	  IBV_WC_RDMA_WRITE,	    IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,
	IBV_WC_FETCH_ADD, IBV_WC_BIND_MW,	    IBV_WC_LOCAL_INV, IBV_WC_ATOMIC_WRITE,
	IBV_WC_RECV,	  IBV_WC_RECV_RDMA_WITH_IMM};

static void set(struct expect_want *want, uint64_t value)
{
	want->given = true;
	want->value = value;
}

static bool name(const char *word, struct expect_want *wants)
{
	for (unsigned int i = 0; i < COUNT(opcodes); i++)
		if (expect_is_name(word, "IBV_WC_", vb_wc_opcode_str(opcodes[i]))) {
			set(&wants[OPCODE], opcodes[i]);
			return true;
		}
	for (unsigned int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		if (expect_is_name(word, "IBV_WC_", vb_wc_status_name(i))) {
			set(&wants[STATUS], i);
			return true;
		}
	return false;
}

static bool read_pattern(struct expect_place place, const char *pattern,
			 struct expect_want wants[FIELDS])
{
	const struct expect_grammar grammar = {
		wants, FIELDS, name,
		"an opcode such as RECV, a status such as WR_FLUSH_ERR (both without IBV_WC_)"};

	for (unsigned int i = 0; i < FIELDS; i++)
		wants[i] = (struct expect_want){.field = fields[i]};
	if (!expect_read(place, pattern, &grammar))
		return false;
	if (!wants[STATUS].given && !wants[STATUS].any)
		set(&wants[STATUS], IBV_WC_SUCCESS);
	return true;
}

static const char *short_status(enum ibv_wc_status status)
{
	const char *text = vb_wc_status_name(status);

	return strncmp(text, "IBV_WC_", 7) ? text : text + 7;
}

/* Describes the completion: fields that a failed completion does not have are left out. */
static void say_completion(const struct ibv_wc *wc)
{
	expect_say("%s", short_status(wc->status));
	if (wc->status == IBV_WC_SUCCESS) {
		expect_say(" %s", vb_wc_opcode_str(wc->opcode));
		if (wc->opcode & IBV_WC_RECV)
			expect_say(" length=%" PRIu32, wc->byte_len);
	}
	expect_say(" wr_id=%" PRIu64 " qp=0x%" PRIx32, wc->wr_id, wc->qp_num);
}

/* The values in the order of the fields. */
static void values_of(const struct ibv_wc *wc, uint64_t values[FIELDS], bool has[FIELDS])
{
	const bool good = wc->status == IBV_WC_SUCCESS;
	const uint64_t all[FIELDS] = {wc->status,	   wc->opcode,		 wc->wr_id,
				      wc->byte_len,	   wc->qp_num,		 wc->src_qp,
				      ntohl(wc->imm_data), wc->invalidated_rkey, wc->wc_flags,
				      wc->vendor_err};

	for (unsigned int i = 0; i < FIELDS; i++) {
		values[i] = all[i];
		has[i] = good || i == STATUS || i == WR_ID || i == QP || i == VENDOR_ERR;
	}
	has[IMM] = good && wc->wc_flags & IBV_WC_WITH_IMM;
	has[KEY] = good && wc->wc_flags & IBV_WC_WITH_INV;
}

/* Adds what differs. Status and opcode stand in the description already. Returns true if anything differs. */
static bool say_differences(const struct ibv_wc *wc, const struct expect_want wants[FIELDS])
{
	uint64_t values[FIELDS];
	bool has[FIELDS], differs;

	values_of(wc, values, has);
	differs = wants[STATUS].given && wants[STATUS].value != values[STATUS];
	if (wants[OPCODE].given && has[OPCODE] && wants[OPCODE].value != values[OPCODE])
		differs = true;
	for (unsigned int i = WR_ID; i < FIELDS; i++)
		/* What a failed completion lacks follows from its status. */
		if ((has[i] || wc->status == IBV_WC_SUCCESS) &&
		    expect_say_difference(&wants[i], has[i], values[i],
					  i == QP || i == SRC_QP || i == IMM || i == KEY))
			differs = true;
	return differs;
}

static bool compare(struct expect_place place, struct ibv_cq *cq, const struct ibv_wc *wc,
		    const char *pattern, const struct expect_want wants[FIELDS])
{
	expect_begin_message();
	expect_say("expected completion \"%s\", and ", pattern);
	say_completion(wc);
	expect_say(" came");
	if (!say_differences(wc, wants))
		return true;
	if (wc->status != IBV_WC_SUCCESS)
		expect_say("\n  %s", vb_explain(cq->context, wc));
	return expect_fail(place);
}

bool vb_expect_completion_at(const char *file, int line, struct ibv_cq *cq, struct ibv_wc *wc,
			     const char *pattern, ...)
{
	const struct expect_place place = {file, line};
	struct expect_want wants[FIELDS];
	char text[EXPECT_PATTERN_BYTES];
	struct ibv_wc own;
	enum expect_end end;
	va_list arguments;
	bool written;

	va_start(arguments, pattern);
	written = expect_write(place, text, pattern, arguments);
	va_end(arguments);
	if (!written || !read_pattern(place, text, wants))
		return false;
	if (!cq)
		return expect_fail_with(place, "expected completion \"%s\", but the CQ is NULL",
					text);
	if (!wc)
		wc = &own;
	end = expect_wait_cq(cq, wc, expect_timeout_ns());
	if (end == EXPECT_CAME)
		return compare(place, cq, wc, text, wants);
	expect_begin_message();
	expect_say("expected completion \"%s\", and none came", text);
	expect_say_nothing(end, expect_timeout_ns(), cq->context);
	return expect_fail(place);
}

bool vb_expect_no_completion_at(const char *file, int line, struct ibv_cq *cq, uint64_t duration_ns)
{
	const struct expect_place place = {file, line};
	struct ibv_wc wc;
	enum expect_end end;

	if (!cq)
		return expect_fail_with(place, "expected no completion, but the CQ is NULL");
	end = expect_wait_cq_whole(cq, &wc, duration_ns);
	if (end == EXPECT_TIME_UP)
		return true;
	expect_begin_message();
	expect_say("expected no completion within ");
	expect_say_time(duration_ns);
	if (end == EXPECT_BROKEN) {
		expect_say_nothing(end, duration_ns, cq->context);
		return expect_fail(place);
	}
	expect_say(", and ");
	say_completion(&wc);
	expect_say(" came");
	if (wc.status != IBV_WC_SUCCESS)
		expect_say("\n  %s", vb_explain(cq->context, &wc));
	return expect_fail(place);
}
