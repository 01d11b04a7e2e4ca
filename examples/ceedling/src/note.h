/* SPDX-License-Identifier: MIT */
/*
 * Notes: short texts that one program sends another over an RC QP. The code under test; it knows
 * nothing of Verbena.
 */
#ifndef NOTE_H
#define NOTE_H

#include <infiniband/verbs.h>

#define NOTE_BYTES 64

/* A place for notes in registered memory, and the QP that moves them. */
struct note_box {
	struct ibv_qp *qp;
	struct ibv_mr *mr; /* of at least 2 * NOTE_BYTES: a note to send, then a note that came */
};

/* Posts a receive for the next note. 0 or errno. */
int note_expect(const struct note_box *box);

/* Sends a note and waits until the peer has it. A longer text is cut. */
enum ibv_wc_status note_send(const struct note_box *box, const char *text);

/* Waits for the note that was expected. NULL if the receive failed. */
const char *note_take(const struct note_box *box);

#endif
