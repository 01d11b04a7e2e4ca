/* SPDX-License-Identifier: MIT */
/*
 * Writes a ladder as one HTML file for browsers. The page itself is in src/picture/page/; these sources add the
 * data:
 *
 *	page.c		keeps the parts of each event that its row does not have
 *	page_follow.c	finds the rows of each work request
 *	page_write.c	writes the data in columns, compressed
 *	pattern.c	stores texts that differ only in numbers
 *
 * The caller owns a struct page, zeroed before the first call, and one thread uses it.
 */
#ifndef SRC_PICTURE_PAGE_H
#define SRC_PICTURE_PAGE_H

#include "src/picture/bytes.h"
#include "src/picture/ladder.h"
#include "src/picture/pattern.h"

/* The page has at most this many bytes of a frame: all headers, and the beginning of the payload. */
#define PAGE_FRAME_BYTES 256

/* The part of a packet in its message, as bits. */
enum page_step {
	PAGE_REQUEST = 1 << 0,
	PAGE_BEGINS = 1 << 1, /* a request: the first packet of a message */
	PAGE_RESPONSE = 1 << 2,
	PAGE_NAK = 1 << 3,
};

/* A frame of a capture; its bytes belong to the caller of page_take(). */
struct page_frame {
	const uint8_t *bytes;
	size_t length_bytes;
	bool infiniband;
};

/* A work request of a post. */
struct page_post {
	uint64_t wr_id;
	bool sends;    /* the work request sends packets, unless the QP fails first */
	bool receives; /* the work request is of a receive queue or an SRQ */
};

/* The parts of an event that its row does not have. */
struct page_event {
	size_t line;		   /* the offset of its JSON text in page->lines */
	size_t frame;		   /* the offset of its frame in page->frames */
	uint32_t frame_kept_bytes; /* bytes in page->frames */
	uint32_t frame_bytes; /* length of the frame in the capture; 0: the event has no frame */
	bool infiniband;      /* the frame is InfiniBand's, not Ethernet's */
	uint8_t steps;	      /* enum page_step; 0: no packet */
	bool has_psn;
	uint32_t qpn, dest_qpn, source_qpn, psn; /* 0: none */
	uint64_t wr_id;
	uint32_t sent_psn;  /* of a rewind: the PSN that would have been sent next */
	uint32_t srq;	    /* of a post: the number of the SRQ; 0: none */
	size_t post;	    /* of a post: the index of its first work request in page->posts */
	unsigned int posts; /* of a post: counts its work requests */
	bool completes;	    /* the event is a completion */
	bool fails;	    /* the event is a failure of a work request */
	bool receives;	    /* of a completion or a failure: of a receive */
	bool may_be_send; /* of a completion or a failure: true unless it is known to be a receive's */
	bool resets;	  /* the QP enters RESET */
	uint8_t kind;	  /* the index of its kind in page->kinds */
};

struct page {
	struct patterns patterns;
	struct bytes lines, frames;
	struct bytes events; /* struct page_event; index 0 is unused */
	struct bytes posts;  /* struct page_post */
	char **kinds;	     /* the kinds of events, as the log names them */
	size_t kind_count;
};

/* --- page.c --- */

/* Keeps what the page needs of the row's event. @line is the event's JSON text; @frame is NULL for an event of
 * a log. Copies both. */
void page_take(struct page *page, struct row *row, const json_t *event, const char *line,
	       const struct page_frame *frame);

const struct page_event *page_event(const struct page *page, size_t index);

void page_free(struct page *page);

/* --- page_follow.c --- */

/* The work requests of each row. A work request is a number from 1; rows with the same number belong to the
 * same work request, or to the same message if no post is known. */
struct page_works {
	uint32_t *at; /* row I has the numbers from works[at[I]] up to, without, works[at[I + 1]] */
	struct bytes works; /* uint32_t */
	bool *repeated;	    /* of each row: true if its packet is a retransmission */
};

void page_follow(const struct page *page, const struct ladder *ladder, struct page_works *works);

void page_works_free(struct page_works *works);

/* --- page_write.c --- */

/* Writes the page. Returns 0 or an errno value: EFBIG if the data exceed 32-bit offsets, or that of @out. */
int page_write(struct page *page, const struct ladder *ladder, FILE *out);

/* --- built from src/picture/page/ by src/picture/page/assemble --- */

/* The page. Its line "<!-- data -->" is where the data go. */
extern const char page_text[];

#endif /* SRC_PICTURE_PAGE_H */
