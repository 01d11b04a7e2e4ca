/* SPDX-License-Identifier: MIT */
/* What the files of connected pairs share. */
#ifndef SRC_EXPECT_PAIR_H
#define SRC_EXPECT_PAIR_H

#include <verbena/connect.h>
#include <verbena/expect.h>

/* An end, and what it is made of. */
struct pair_side {
	struct vb_pair_end *end;
	struct vb_device *device; /* NULL with cm: the identifier opens it */
	struct vb_region *region; /* NULL with cm */
	void *memory;		  /* with cm */
	struct vb_prepared_qp *prepared;
	struct rdma_event_channel *channel; /* with cm */
};

struct pair {
	struct vb_pair pair; /* first */
	struct vb_pair_options options;
	struct pair_side sides[2];
	struct rdma_cm_id *listener; /* with cm */
};

/* Notes the failure of a verb, which has a sentence, and returns its errno. */
int pair_failed(const char *what);

/* 0, or an errno with a sentence. What was made is ended by vb_pair_close(). */
int pair_open_xrc(struct pair *pair);
int pair_open_cm(struct pair *pair);

/* Makes PD, CQ and SRQ of an end whose context is open. */
int pair_make_queues(struct pair *pair, struct pair_side *side);

/* Ends what pair_open_cm() has made. Returns 0 or the first errno. */
int pair_close_cm(struct pair *pair);

#endif
