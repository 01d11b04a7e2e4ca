/* SPDX-License-Identifier: MIT */
/* What the device does: its packets, completions and events, in the order in which they were seen. */
#include "src/script/run.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define POLLED 16

static void add(struct script_run *run, const struct script_seen *seen)
{
	if (run->seen_count == run->seen_room) {
		const unsigned int room = run->seen_room ? run->seen_room * 2 : 64;
		struct script_seen *more = realloc(run->seen, room * sizeof(*more));

		if (!more)
			return; /* the line that waits for it fails */
		run->seen = more;
		run->seen_room = room;
	}
	run->seen[run->seen_count++] = *seen;
}

static void collect_packets(struct script_run *run)
{
	for (; run->frames_seen < run->wire->frame_count; run->frames_seen++) {
		const struct script_frame *frame = &run->wire->frames[run->frames_seen];

		if (!frame->from_peer)
			add(run, &(struct script_seen){.kind = SCRIPT_SEEN_PACKET,
						       .time_ns = frame->time_ns,
						       .frame = run->frames_seen});
	}
}

static void collect_completions(struct script_run *run, unsigned int qp, unsigned int queue)
{
	struct script_seen seen = {.kind = SCRIPT_SEEN_COMPLETION, .qp = qp, .queue = queue};
	struct ibv_cq *cq = run->qps[qp].cqs[queue];

	while (cq && run->wire->poll(run->wire, cq, &seen.wc) > 0) {
		seen.time_ns = run->wire->now(run->wire);
		seen.taken = run->ignore_completions;
		add(run, &seen);
	}
}

/* The kernel's poll(2), since that of libverbena.so may move the virtual clock. */
static bool is_readable(int fd)
{
	struct pollfd look = {.fd = fd, .events = POLLIN};

	return syscall(SYS_ppoll, &look, 1, &(struct timespec){0}, NULL, 0) == 1;
}

static void collect_events(struct script_run *run)
{
	struct ibv_context *context = run->wire->context;
	struct ibv_async_event event;

	while (is_readable(context->async_fd) && !vb_get_async_event(context, &event)) {
		add(run, &(struct script_seen){.kind = SCRIPT_SEEN_EVENT,
					       .time_ns = run->wire->now(run->wire),
					       .event = event.event_type});
		vb_ack_async_event(&event);
	}
}

static void collect_manager_events(struct script_run *run)
{
	struct script_seen seen = {.kind = SCRIPT_SEEN_MANAGER};

	while (run->manager.channel && is_readable(run->manager.channel->fd) &&
	       script_take_manager_event(run, &seen)) {
		seen.time_ns = run->wire->now(run->wire);
		add(run, &seen);
	}
}

static void collect(struct script_run *run)
{
	collect_packets(run);
	for (unsigned int i = 0; i < run->script->qp_count; i++)
		for (unsigned int queue = 0; queue < 2; queue++)
			collect_completions(run, i, queue);
	collect_packets(run);
	collect_events(run);
	collect_manager_events(run);
}

void script_pass(struct script_run *run, uint64_t until_ns)
{
	const unsigned int before = run->seen_count;

	run->wire->pass(run->wire, 0);
	collect(run);
	while (run->seen_count == before && run->wire->now(run->wire) < until_ns) {
		run->wire->pass(run->wire, until_ns);
		collect(run);
	}
}

struct script_seen *script_first(const struct script_run *run, enum script_seen_kind kind,
				 unsigned int qp, unsigned int queue)
{
	for (unsigned int i = 0; i < run->seen_count; i++) {
		struct script_seen *seen = &run->seen[i];

		if (!seen->taken && seen->kind == kind &&
		    (kind != SCRIPT_SEEN_COMPLETION || (seen->qp == qp && seen->queue == queue)))
			return seen;
	}
	return NULL;
}

static bool tell_completion(struct script_run *run, const struct script_seen *seen,
			    const struct script_line *line)
{
	char id[32];

	snprintf(id, sizeof(id), "%llu", (unsigned long long)seen->wc.wr_id);
	script_row(run->failure, "queue", NULL, seen->queue ? "recv" : "send", true);
	script_row(run->failure, "id", NULL, id, false);
	script_row(run->failure, "status", NULL,
		   vb_wc_status_name(seen->wc.status) + strlen("IBV_WC_"), false);
	return script_fail(run->failure, line,
			   "the device has completed a work request, and no line expects it");
}

bool script_nothing_more(struct script_run *run, const struct script_line *line)
{
	for (unsigned int i = 0; i < run->seen_count; i++) {
		const struct script_seen *seen = &run->seen[i];

		if (seen->taken || seen->kind == SCRIPT_SEEN_EVENT ||
		    seen->kind == SCRIPT_SEEN_MANAGER)
			continue;
		if (seen->kind == SCRIPT_SEEN_COMPLETION)
			return tell_completion(run, seen, line);
		script_packet_tell(run, &run->wire->frames[seen->frame]);
		return script_fail(run->failure, line,
				   "the device has sent a packet, and no line expects it");
	}
	return true;
}
