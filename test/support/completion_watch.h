/* SPDX-License-Identifier: MIT */
/*
 * Puts completion_check.h under a running program: every verb that posts, polls, makes or ends a
 * QP, CQ or SRQ tells the checker and then does what it did before. Works on every backend:
 *
 *	the backend's table	opening devices; making, modifying and destroying objects; bind_mw
 *	each context's ops	post_send, post_recv, post_srq_recv, poll_cq, bind_mw
 *	struct verbs_context	create_qp_ex, create_cq_ex, open_qp, create_srq_ex, which are inline too
 *	each ibv_cq_ex		start_poll, next_poll (opcode and byte_len by the read_* it has)
 *	each ibv_qp_ex		wr_start, wr_complete, wr_abort and what begins a WR
 *
 * Not watched, and therefore never at fault: contexts that were open before, objects that a program
 * makes through pointers of its own, WQs, and completions that ibv_start_poll() shows in a CQ whose
 * read_qp_num does not exist.
 */
#ifndef TEST_SUPPORT_COMPLETION_WATCH_H
#define TEST_SUPPORT_COMPLETION_WATCH_H

#include <verbena/backend.h>

/*
 * Begins; report is called with one sentence for each fault, by any thread but by one at a time.
 * One watch at a time. The table is written to until completion_watch_end().
 */
void completion_watch_begin(struct vb_backend *backend,
			    void (*report)(void *arg, const char *sentence), void *arg);

/*
 * Polls all CQs of the watch empty and reports the WRs of QPs in ERR that never completed. For up
 * to wait_ms of real time it waits for them.
 */
void completion_watch_settle(unsigned int wait_ms);

/* Ends it. Contexts that are open still go on unwatched; extended CQs and QPs must be gone. */
void completion_watch_end(void);

#endif
