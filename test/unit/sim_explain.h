/* SPDX-License-Identifier: MIT */
/* What vb_explain() says of failed completions of two ends. */
#ifndef TEST_UNIT_SIM_EXPLAIN_H
#define TEST_UNIT_SIM_EXPLAIN_H

#include "test/unit/sim_pair.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <verbena/explain.h>
#include <verbena/verbs.h>

/* Compares the sentence and the reason of a completion. */
static inline void check_explained(const struct end *end, const struct ibv_wc *wc,
				   enum vb_reason reason, const char *format, va_list arguments)
{
	char expected[1024];

	vsnprintf(expected, sizeof(expected), format, arguments);
	TEST_ASSERT_EQUAL_STRING(expected, vb_explain(end->context, wc));
	TEST_ASSERT_EQUAL_HEX(reason, vb_last_completion_reason());
}

static inline void expect_sentence(const struct end *end, const struct ibv_wc *wc,
				   enum vb_reason reason, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	check_explained(end, wc, reason, format, arguments);
	va_end(arguments);
}

static inline enum vb_reason peer_reason(const struct end *end, const struct ibv_wc *wc)
{
	struct vb_completion_why why;

	TEST_ASSERT_EQUAL_INT(0, vb_completion_why(end->context, wc, &why));
	return why.peer_why.reason;
}

/* Compares the sentence of the QP's own side, and the reason of the peer's. */
static inline void expect_views(const struct end *end, const struct ibv_wc *wc, enum vb_reason peer,
				const char *own)
{
	struct vb_completion_why why;
	char text[512];

	TEST_ASSERT_EQUAL_INT(0, vb_completion_why(end->context, wc, &why));
	TEST_ASSERT_EQUAL_STRING(own, vb_why_text(&why.why, text, sizeof(text)));
	TEST_ASSERT_EQUAL_HEX(peer, why.peer_why.reason);
}

/* Takes the next completion of an end, which has failed. */
static inline struct ibv_wc expect_failed(struct end *end, uint64_t wr_id,
					  enum ibv_wc_status status)
{
	const struct ibv_wc wc = wait_wc(end);

	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	TEST_ASSERT_EQUAL_INT(status, wc.status);
	return wc;
}

static inline void expect_explained(struct end *end, uint64_t wr_id, enum ibv_wc_status status,
				    enum vb_reason reason, const char *format, ...)
{
	const struct ibv_wc wc = expect_failed(end, wr_id, status);
	va_list arguments;

	va_start(arguments, format);
	check_explained(end, &wc, reason, format, arguments);
	va_end(arguments);
}

/* The send of a QP of end a with wr_id 7 has failed; format is the sentence behind the status. */
__attribute__((format(printf, 4, 0))) static inline void expect_failed_send(
	const struct ibv_qp *qp, enum ibv_wc_status status, enum vb_reason reason,
	const char *format, va_list arguments)
{
	char words[1024];

	vsnprintf(words, sizeof(words), format, arguments);
	expect_explained(&a, 7, status, reason, "sim0 QP 0x%x, wr_id 7: %s: %s", qp->qp_num,
			 vb_wc_status_name(status), words);
}

#endif
