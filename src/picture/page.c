/* SPDX-License-Identifier: MIT */
#include "src/picture/page.h"

#include "src/picture/event.h"

#include <stdlib.h>
#include <string.h>

/* --- packets --- */

static bool has(const char *text, const char *part)
{
	return strstr(text, part);
}

static uint8_t steps_of(const json_t *packet)
{
	const char *opcode = event_string(packet, "opcode");

	if (has(opcode, "ACKNOWLEDGE") || has(opcode, "READ_RESPONSE"))
		return PAGE_RESPONSE |
		       (has(event_string(packet, "syndrome"), "NAK") ? PAGE_NAK : 0);
	if (has(opcode, "_MIDDLE") || has(opcode, "_LAST"))
		return PAGE_REQUEST;
	return PAGE_REQUEST | PAGE_BEGINS;
}

static void take_number(const json_t *object, const char *key, uint32_t *into)
{
	uint64_t number;

	if (event_number(json_object_get(object, key), &number))
		*into = (uint32_t)number;
}

static void take_packet(const json_t *packet, struct page_event *kept)
{
	kept->steps = steps_of(packet);
	kept->has_psn = true;
	take_number(packet, "psn", &kept->psn);
	take_number(packet, "dest_qp", &kept->dest_qpn);
	take_number(packet, "source_qp", &kept->source_qpn);
}

static void take_frame(struct page *page, const struct page_frame *frame, struct page_event *kept)
{
	const size_t length = frame->length_bytes;

	kept->infiniband = frame->infiniband;
	kept->frame_bytes = (uint32_t)length;
	kept->frame_kept_bytes = (uint32_t)(length < PAGE_FRAME_BYTES ? length : PAGE_FRAME_BYTES);
	kept->frame = page->frames.used;
	bytes_add(&page->frames, frame->bytes, kept->frame_kept_bytes);
}

/* --- work requests --- */

/* Returns true for work requests that send no packet. */
static bool is_local(const char *opcode)
{
	return strcmp(opcode, "LOCAL_INV") == 0 || strcmp(opcode, "BIND_MW") == 0;
}

/* Keeps the work requests that were posted. The log gives a refused one no length. */
static void take_posts(struct page *page, const json_t *requests, bool receives,
		       struct page_event *kept)
{
	const json_t *request;
	size_t i;

	kept->post = page->posts.used / sizeof(struct page_post);
	json_array_foreach(requests, i, request)
	{
		struct page_post post = {.receives = receives};

		if (!json_is_object(request) || !json_object_get(request, "length"))
			continue;
		event_number(json_object_get(request, "wr_id"), &post.wr_id);
		post.sends = !receives && !is_local(event_string(request, "opcode"));
		bytes_add(&page->posts, &post, sizeof(post));
		kept->posts++;
	}
}

static void take_verb(struct page *page, const json_t *event, struct page_event *kept)
{
	const json_t *arguments = json_object_get(event, "args");
	const char *srq = event_string(arguments, "srq");
	const struct post_verb *post = post_verb_of(event);

	if (post)
		take_posts(page, json_object_get(arguments, post->requests), post->receives, kept);
	if (strncmp(srq, "srq", 3) == 0)
		kept->srq = (uint32_t)strtoul(srq + 3, NULL, 10);
}

/* --- events --- */

static void take_kind(struct page *page, const json_t *event, struct page_event *kept)
{
	const char *kind = event_string(event, "kind");
	size_t i = 0;

	while (i < page->kind_count && strcmp(page->kinds[i], kind) != 0)
		i++;
	if (i == page->kind_count && i < UINT8_MAX) {
		page->kinds = bytes_sure(realloc(page->kinds, (i + 1) * sizeof(*page->kinds)));
		page->kinds[page->kind_count++] = bytes_sure(strdup(kind));
	}
	kept->kind = (uint8_t)i;
}

/* Keeps what the event says of the end of a work request. */
static void take_end(const json_t *event, struct page_event *kept)
{
	const char *kind = event_string(event, "kind"), *opcode = event_string(event, "opcode");

	kept->completes = strcmp(kind, "completion") == 0;
	kept->fails = strcmp(kind, "failure") == 0;
	kept->receives = strncmp(opcode, "RECV", 4) == 0 ||
			 strcmp(event_string(event, "queue"), "receive") == 0;
	kept->may_be_send = !kept->receives;
	event_number(json_object_get(event, "wr_id"), &kept->wr_id);
	kept->resets = strcmp(event_string(event, "to"), "RESET") == 0;
}

void page_take(struct page *page, struct row *row, const json_t *event, const char *line,
	       const struct page_frame *frame)
{
	const json_t *packet = json_object_get(event, "packet");
	struct page_event kept = {0};

	if (!page->events.used)
		bytes_add(&page->events, &kept, sizeof(kept));
	take_kind(page, event, &kept);
	take_number(event, "qp", &kept.qpn);
	take_verb(page, event, &kept);
	take_end(event, &kept);
	if (packet) {
		take_packet(packet, &kept);
	} else if (json_object_get(event, "psn")) {
		kept.has_psn = true;
		take_number(event, "psn", &kept.psn);
		take_number(event, "sent_psn", &kept.sent_psn);
	}
	if (frame)
		take_frame(page, frame, &kept);
	kept.line = pattern_add(&page->patterns, &page->lines, line);
	row->page_event = page->events.used / sizeof(kept);
	bytes_add(&page->events, &kept, sizeof(kept));
}

const struct page_event *page_event(const struct page *page, size_t index)
{
	return (const struct page_event *)(const void *)page->events.at + index;
}

void page_free(struct page *page)
{
	patterns_free(&page->patterns);
	bytes_free(&page->lines);
	bytes_free(&page->frames);
	bytes_free(&page->events);
	bytes_free(&page->posts);
	for (size_t i = 0; i < page->kind_count; i++)
		free(page->kinds[i]);
	free(page->kinds);
	*page = (struct page){0};
}
