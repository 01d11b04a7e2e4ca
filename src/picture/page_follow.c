/* SPDX-License-Identifier: MIT */
/*
 * Finds the rows of each work request ("work" for short).
 *
 * - The N-th message that a QP sends belongs to the N-th work of its send queue that sends a message.
 * - A response belongs to the message that has its PSN.
 * - A completion belongs to the oldest work with its wr_id that has not completed.
 *
 * The log has a verb when it has returned, so the packets of a work may precede its post.
 *
 * A packet of a capture does not name the QP that sent it. There a flow has the packets from a node to a QP,
 * and a response belongs to the flow whose newest PSNs it acknowledges.
 */
#include "src/picture/page.h"

#include <stdlib.h>
#include <string.h>

#define PSN_MASK	 0xffffffu
#define PSN_HALF	 0x800000u
#define OUTSTANDING_PSNS 4096u /* how far a response is behind the newest request */

/* A work request in a queue. */
struct work {
	uint64_t wr_id;
	uint32_t number; /* as in struct page_works */
	bool sends;
};

/* A message that a QP has begun to send. */
struct message {
	uint32_t psn;	 /* of its first packet */
	uint32_t number; /* of its work */
};

/* The queues and messages of a QP, of an SRQ, or of the packets of a capture from a node to a QP. */
struct flow {
	uint64_t key;		      /* key_of() */
	struct bytes sends, receives; /* struct work */
	struct bytes messages;	      /* struct message */
	size_t sent_works;	      /* counts the works whose message has been seen */
	size_t next_send;	      /* index in sends: works before it need no message any more */
	size_t open_send,
		open_receive; /* index in sends and receives: works before it have completed */
	bool has_psn;
	uint32_t max_psn; /* the newest PSN that was sent; valid with has_psn */
	uint64_t awaited; /* of the responses of a capture: the key of the requests; 0: unknown */
};

/* The state of page_follow(). */
struct following {
	const struct page *page;
	const struct ladder *ladder;
	struct page_works *out;
	struct bytes flows;
	uint32_t *slots; /* a hash table of the flows' indices plus 1 */
	size_t slot_count;
	uint32_t last_number; /* of a work request */
};

/* --- flows --- */

enum { KEY_SRQ = 1, KEY_REQUESTS, KEY_RESPONSES };

/* Returns the key of a flow: of QP @number of a node if the tag is 0. No key is 0. */
static uint64_t key_of(unsigned int tag, int node, int peer, uint32_t number)
{
	return (uint64_t)tag << 62 | (uint64_t)((unsigned int)node + 1) << 43 |
	       (uint64_t)((unsigned int)peer + 1) << 24 | (number & PSN_MASK);
}

static struct flow *flow_at(const struct following *following, size_t index)
{
	return (struct flow *)(void *)following->flows.at + index;
}

static size_t flow_count(const struct following *following)
{
	return following->flows.used / sizeof(struct flow);
}

static uint32_t *slot_of(const struct following *following, uint64_t key)
{
	size_t slot = (key * UINT64_C(0x9e3779b97f4a7c15) >> 20) % following->slot_count;

	while (following->slots[slot] && flow_at(following, following->slots[slot] - 1)->key != key)
		slot = (slot + 1) % following->slot_count;
	return &following->slots[slot];
}

static void grow_slots(struct following *following)
{
	following->slot_count = following->slot_count ? 2 * following->slot_count : 256;
	free(following->slots);
	following->slots = bytes_sure(calloc(following->slot_count, sizeof(*following->slots)));
	for (size_t i = 0; i < flow_count(following); i++)
		*slot_of(following, flow_at(following, i)->key) = (uint32_t)i + 1;
}

static struct flow *flow_of(struct following *following, uint64_t key)
{
	const struct flow new = {.key = key};
	uint32_t *slot;

	if (2 * (flow_count(following) + 1) > following->slot_count)
		grow_slots(following);
	slot = slot_of(following, key);
	if (!*slot) {
		bytes_add(&following->flows, &new, sizeof(new));
		*slot = (uint32_t)flow_count(following);
	}
	return flow_at(following, *slot - 1);
}

static void free_flow(struct flow *flow)
{
	bytes_free(&flow->sends);
	bytes_free(&flow->receives);
	bytes_free(&flow->messages);
}

/* --- lists --- */

static struct work *works_of(const struct bytes *list)
{
	return (struct work *)(void *)list->at;
}

static size_t work_count(const struct bytes *list)
{
	return list->used / sizeof(struct work);
}

static struct message *messages_of(const struct flow *flow)
{
	return (struct message *)(void *)flow->messages.at;
}

static size_t message_count(const struct flow *flow)
{
	return flow->messages.used / sizeof(struct message);
}

/* Says that the present row belongs to a work; 0: to none. */
static void add_to_row(struct following *following, uint32_t number)
{
	if (number)
		bytes_add(&following->out->works, &number, sizeof(number));
}

/* --- posts and messages --- */

/* Adds a work to its queue. If its message has been seen already, the work gets the message's number. */
static void post_one(struct following *following, struct flow *flow, const struct page_post *post)
{
	struct work work = {.wr_id = post->wr_id, .sends = post->sends};
	const bool is_next = flow->next_send == work_count(&flow->sends);
	const bool is_sent = post->sends && is_next && flow->sent_works < message_count(flow);

	if (is_sent)
		work.number = messages_of(flow)[flow->sent_works++].number;
	else
		work.number = ++following->last_number;
	if (is_sent || (is_next && !post->receives && !post->sends))
		flow->next_send++;
	bytes_add(post->receives ? &flow->receives : &flow->sends, &work, sizeof(work));
	add_to_row(following, work.number);
}

static void post(struct following *following, const struct row *row, const struct page_event *event)
{
	const struct page_post *posts = (const void *)following->page->posts.at;
	const uint64_t key = event->srq ? key_of(KEY_SRQ, row->node, -1, event->srq)
					: key_of(0, row->node, -1, event->qpn);
	struct flow *flow = flow_of(following, key);

	for (unsigned int i = 0; i < event->posts; i++)
		post_one(following, flow, &posts[event->post + i]);
}

/* Returns the number of a new message: that of the next work that sends, or a new one if the log has no post
 * of it yet. */
static uint32_t next_number(struct following *following, struct flow *flow)
{
	const struct work *works = works_of(&flow->sends);

	while (flow->next_send < work_count(&flow->sends)) {
		const struct work *work = &works[flow->next_send++];

		if (!work->sends)
			continue;
		flow->sent_works++;
		return work->number;
	}
	return ++following->last_number;
}

/* Returns the number of the message that has the PSN: the newest that begins at it or before; 0: none. */
static uint32_t number_at(const struct flow *flow, uint32_t psn)
{
	for (size_t i = message_count(flow); i-- > 0;)
		if (((psn - messages_of(flow)[i].psn) & PSN_MASK) < PSN_HALF)
			return messages_of(flow)[i].number;
	return 0;
}

static bool is_new(const struct flow *flow, uint32_t psn)
{
	return !flow->has_psn || ((psn - flow->max_psn - 1) & PSN_MASK) < PSN_HALF;
}

/* Advances max_psn to a PSN. Returns false if max_psn is there already or beyond. */
static bool reach(struct flow *flow, uint32_t psn)
{
	if (!is_new(flow, psn))
		return false;
	flow->has_psn = true;
	flow->max_psn = psn;
	return true;
}

/* Takes a request packet. Returns true if it is a retransmission. */
static bool request(struct following *following, struct flow *flow, const struct page_event *event)
{
	const bool is_first = reach(flow, event->psn);

	if (is_first && event->steps & PAGE_BEGINS) {
		const struct message message = {event->psn, next_number(following, flow)};

		bytes_add(&flow->messages, &message, sizeof(message));
	}
	add_to_row(following, number_at(flow, event->psn));
	return !is_first;
}

/* --- responses --- */

/* Finds the flow of requests that a capture's response answers. The first response decides for all responses
 * of that node to that QP. Returns NULL if no flow has outstanding requests near the PSN. */
static struct flow *find_awaiting(struct following *following, const struct row *row,
				  const struct page_event *event)
{
	struct flow *responses =
		flow_of(following, key_of(KEY_RESPONSES, row->node, row->peer, event->dest_qpn));
	const uint64_t wanted = key_of(KEY_REQUESTS, row->peer, row->node, 0);

	if (responses->awaited)
		return flow_of(following, responses->awaited);
	for (size_t i = 0; i < flow_count(following); i++) {
		struct flow *flow = flow_at(following, i);

		if ((flow->key & ~(uint64_t)PSN_MASK) != wanted || !flow->has_psn ||
		    ((flow->max_psn - event->psn) & PSN_MASK) >= OUTSTANDING_PSNS)
			continue;
		responses->awaited = flow->key;
		return flow;
	}
	return NULL;
}

static struct flow *requests_of(struct following *following, const struct row *row,
				const struct page_event *event)
{
	if (event->source_qpn || event->qpn)
		return flow_of(following, key_of(0, row->peer, -1, event->dest_qpn));
	return find_awaiting(following, row, event);
}

static void packet(struct following *following, const struct row *row,
		   const struct page_event *event, size_t index)
{
	const uint32_t source = event->source_qpn ?: event->qpn;
	struct flow *flow;

	if (row->kind != ROW_PACKET)
		return;
	if (event->steps & PAGE_REQUEST) {
		flow = flow_of(following, source ? key_of(0, row->node, -1, source)
						 : key_of(KEY_REQUESTS, row->node, row->peer,
							  event->dest_qpn));
		following->out->repeated[index] = request(following, flow, event);
		return;
	}
	flow = requests_of(following, row, event);
	if (!flow)
		return;
	reach(flow, event->psn);
	add_to_row(following, number_at(flow, event->psn));
}

/* --- completions and the rest --- */

/* Returns the number of the oldest work from *open on that has the wr_id; 0: none. With @ends this work
 * completes, and *open is set behind it. */
static uint32_t find_work(const struct bytes *list, size_t *open, uint64_t wr_id, bool ends)
{
	for (size_t i = *open; i < work_count(list); i++) {
		if (works_of(list)[i].wr_id != wr_id)
			continue;
		if (ends)
			*open = i + 1;
		return works_of(list)[i].number;
	}
	return 0;
}

static uint32_t find_in_srqs(struct following *following, const struct row *row,
			     const struct page_event *event)
{
	const uint64_t wanted = key_of(KEY_SRQ, row->node, -1, 0);
	uint32_t number = 0;

	for (size_t i = 0; i < flow_count(following) && !number; i++) {
		struct flow *flow = flow_at(following, i);
		size_t open = 0; /* receives of an SRQ complete in any order */

		if ((flow->key & ~(uint64_t)PSN_MASK) == wanted)
			number = find_work(&flow->receives, &open, event->wr_id, false);
	}
	return number;
}

static void end(struct following *following, const struct row *row, const struct page_event *event)
{
	struct flow *flow = flow_of(following, key_of(0, row->node, -1, event->qpn));
	uint32_t number = 0;

	if (event->may_be_send)
		number = find_work(&flow->sends, &flow->open_send, event->wr_id, event->completes);
	if (!number)
		number = find_work(&flow->receives, &flow->open_receive, event->wr_id,
				   event->completes);
	add_to_row(following, number ? number : find_in_srqs(following, row, event));
}

static void reset(struct following *following, const struct row *row,
		  const struct page_event *event)
{
	struct flow *flow = flow_of(following, key_of(0, row->node, -1, event->qpn));
	const struct flow empty = {.key = flow->key};

	free_flow(flow);
	*flow = empty;
}

/* Takes a timer or a rewind. Both name the PSN of the oldest message that is not acknowledged. */
static void timer(struct following *following, const struct row *row,
		  const struct page_event *event)
{
	struct flow *flow = flow_of(following, key_of(0, row->node, -1, event->qpn));

	if (event->sent_psn)
		reach(flow, (event->sent_psn - 1) & PSN_MASK);
	add_to_row(following, number_at(flow, event->psn));
}

static void follow(struct following *following, size_t index)
{
	const struct row *row = &following->ladder->rows[index];
	const struct page_event *event = page_event(following->page, row->page_event);

	if (event->posts)
		post(following, row, event);
	else if (event->completes || event->fails)
		end(following, row, event);
	else if (event->resets)
		reset(following, row, event);
	else if (event->steps)
		packet(following, row, event, index);
	else if (event->has_psn)
		timer(following, row, event);
}

void page_follow(const struct page *page, const struct ladder *ladder, struct page_works *works)
{
	struct following following = {.page = page, .ladder = ladder, .out = works};

	works->at = bytes_sure(calloc(ladder->row_count + 1, sizeof(*works->at)));
	works->repeated = bytes_sure(calloc(ladder->row_count + 1, sizeof(*works->repeated)));
	for (size_t i = 0; i < ladder->row_count; i++) {
		works->at[i] = (uint32_t)(works->works.used / sizeof(uint32_t));
		follow(&following, i);
	}
	works->at[ladder->row_count] = (uint32_t)(works->works.used / sizeof(uint32_t));
	for (size_t i = 0; i < flow_count(&following); i++)
		free_flow(flow_at(&following, i));
	bytes_free(&following.flows);
	free(following.slots);
}

void page_works_free(struct page_works *works)
{
	free(works->at);
	free(works->repeated);
	bytes_free(&works->works);
	*works = (struct page_works){0};
}
