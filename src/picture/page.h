/* SPDX-License-Identifier: MIT */
/*
 * A ladder as one file for browsers. The page is in src/picture/page/; this adds the data:
 *
 *	page.c		what the page has of each event besides its row
 *	page_follow.c	the rows of each work request
 *	page_write.c	the data in columns, compressed
 *	pattern.c	texts that differ in numbers
 */
#ifndef SRC_PICTURE_PAGE_H
#define SRC_PICTURE_PAGE_H

#include "src/picture/bytes.h"
#include "src/picture/ladder.h"
#include "src/picture/pattern.h"

/* So many bytes of a frame are in the page: all headers, and the beginning of the payload. */
#define PAGE_FRAME_BYTES 256

/* What a packet is in a message. */
enum page_step {
	PAGE_REQUEST = 1 << 0,
	PAGE_BEGINS = 1 << 1, /* a request: the first of a message */
	PAGE_RESPONSE = 1 << 2,
	PAGE_NAK = 1 << 3,
};

/* A frame of a capture. */
struct page_frame {
	const uint8_t *bytes;
	size_t length_bytes;
	bool infiniband;
};

/* A work request of a post. */
struct page_post {
	uint64_t wr_id;
	bool sends;    /* packets, unless the QP fails before */
	bool receives; /* of a receive queue or an SRQ */
};

/* What the page has of an event besides its row. */
struct page_event {
	size_t line; /* its JSON text, in page->lines */
	size_t frame;
	uint32_t frame_kept_bytes, frame_bytes; /* in the page, and of the capture; 0: none */
	bool infiniband;
	uint8_t steps; /* enum page_step */
	bool has_psn;
	uint32_t qpn, dest_qpn, source_qpn, psn; /* 0: none */
	uint64_t wr_id;
	uint32_t sent_psn;  /* of a rewind */
	uint32_t srq;	    /* of a post: the number of the SRQ; 0: none */
	size_t post;	    /* of a post: the first request in page->posts */
	unsigned int posts; /* how many there are */
	bool completes;	    /* the event is a completion */
	bool fails;	    /* the event is a failure of a work request */
	bool receives;	    /* of a completion or a failure: of a receive */
	bool may_be_send;   /* of a failed completion: which queue is unknown */
	bool resets;	    /* the QP is in RESET */
	uint8_t kind;	    /* the index of its kind in page->kinds */
};

struct page {
	struct patterns patterns;
	struct bytes lines, frames, events, posts; /* events: struct page_event, from 1 */
	char **kinds;				   /* of events, as the log names them */
	size_t kind_count;
};

/* --- page.c --- */

/* Keeps what the page needs of the row's event. @frame is NULL for an event of a log. */
void page_take(struct page *page, struct row *row, const json_t *event, const char *line,
	       const struct page_frame *frame);

const struct page_event *page_event(const struct page *page, size_t index);

void page_free(struct page *page);

/* --- page_follow.c --- */

/* The work requests of each row: those of row I are works[at[I]] up to works[at[I + 1]], numbers from 1.
 * The same number in another row is the same work request, or the same message if no post is known. */
struct page_works {
	uint32_t *at;
	struct bytes works; /* uint32_t */
	bool *repeated;	    /* the row's packet has been sent before */
};

void page_follow(const struct page *page, const struct ladder *ladder, struct page_works *works);

void page_works_free(struct page_works *works);

/* --- page_write.c --- */

/* Writes the page. Returns 0 or an errno value. */
int page_write(struct page *page, const struct ladder *ladder, FILE *out);

/* --- made of src/picture/page/ when Verbena is built --- */

/* The page with a line "<!-- data -->". */
extern const char page_text[];

#endif /* SRC_PICTURE_PAGE_H */
