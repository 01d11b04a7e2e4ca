/* SPDX-License-Identifier: MIT */
/*
 * Judges the completions of a running program by completion_check.h. It puts hooks into every verb
 * that posts, polls, makes or destroys a QP, CQ or SRQ; each hook reports to the checker and calls
 * the verb. It works with every backend:
 *
 *	the backend's table	opening devices; making, modifying and destroying objects; bind_mw
 *	each context's ops	post_send, post_recv, post_srq_recv, poll_cq, bind_mw
 *	struct verbs_context	create_qp_ex, create_cq_ex, open_qp, create_srq_ex, which are inline too
 *	each ibv_cq_ex		start_poll, next_poll (opcode and byte_len by the read_* it has)
 *	each ibv_qp_ex		wr_start, wr_complete, wr_abort and the calls that begin a WR
 *
 * Not watched are contexts that were open before, objects that a program makes through pointers
 * that it saved before, WQs, and completions that ibv_start_poll() shows in a CQ without
 * read_qp_num.
 */
#ifndef TEST_SUPPORT_COMPLETION_WATCH_H
#define TEST_SUPPORT_COMPLETION_WATCH_H

#include <verbena/backend.h>

/*
 * Begins the only watch of the process. report is called with one sentence for each fault, from any
 * thread, but from one at a time. The table stays changed until completion_watch_end().
 */
void completion_watch_begin(struct vb_backend *backend,
			    void (*report)(void *arg, const char *sentence), void *arg);

/*
 * Empties all CQs of the watch, waits up to wait_ms of real time for WRs of QPs in ERR, and reports
 * those that did not complete.
 */
void completion_watch_settle(unsigned int wait_ms);

/* Ends the watch. Open contexts stay usable; extended CQs and QPs must have been destroyed. */
void completion_watch_end(void);

#endif
