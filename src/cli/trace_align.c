/* SPDX-License-Identifier: MIT */
#include "src/cli/trace_align.h"

#include "src/log/line.h"

#include <string.h>

/* A packet is captured at most this long before or after its event, since the last packet that was found. */
#define WINDOW_NS UINT64_C(50000000)

/* So many frames on each side of the expected time are looked at. */
#define FRAMES_MAX 10000

/* How many pairs of the log's first packets and of frames are tried, and how many packets judge each pair. */
#define PAIRS_MAX 64
#define TRIES	  64

bool trace_same_packet(const struct trace_mark *a, const struct trace_mark *b)
{
	return a->psn == b->psn && a->dest_qpn == b->dest_qpn && strcmp(a->opcode, b->opcode) == 0;
}

/* Returns the first frame at this time or later. */
static size_t frame_at(const struct trace_marks *frames, uint64_t time_ns)
{
	size_t low = 0, high = frames->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (frames->marks[middle].time_ns < time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static bool is_packet_of(const struct trace_mark *frame, const struct trace_mark *packet)
{
	return !frame->is_found && trace_same_packet(frame, packet);
}

/* Finds the packet among the frames, as near to its time as possible. Packets of one moment may leave in another order
 * than that of the log. Returns NULL if none is near enough. */
static struct trace_mark *find_frame(const struct trace_marks *frames,
				     const struct trace_mark *packet, uint64_t offset_ns)
{
	const uint64_t time_ns = packet->time_ns + offset_ns;
	const size_t middle = frame_at(frames, time_ns);
	struct trace_mark *found = NULL;
	uint64_t nearest = WINDOW_NS;

	for (size_t at = middle; at < frames->count && at - middle < FRAMES_MAX && !found; at++) {
		const uint64_t far = distance(frames->marks[at].time_ns, time_ns);

		if (far >= nearest)
			break;
		if (!is_packet_of(&frames->marks[at], packet))
			continue;
		nearest = far;
		found = &frames->marks[at];
	}
	for (size_t at = middle; at-- > 0 && middle - at < FRAMES_MAX;) {
		if (distance(frames->marks[at].time_ns, time_ns) >= nearest)
			break;
		if (is_packet_of(&frames->marks[at], packet))
			return &frames->marks[at];
	}
	return found;
}

/* --- the first packet that both have --- */

/* Counts the packets from event @first on that the capture has, too. */
static unsigned int count_found(const struct trace_log *log, const struct trace_marks *frames,
				size_t first, uint64_t offset_ns)
{
	unsigned int tries = 0, found = 0;

	for (size_t i = first; i < log->count && tries < TRIES; i++) {
		const struct trace_mark *packet = &log->events[i].mark, *frame;

		if (log->events[i].text)
			continue;
		tries++;
		frame = find_frame(frames, packet, offset_ns);
		if (!frame)
			continue;
		found++;
		offset_ns = frame->time_ns - packet->time_ns;
	}
	return found;
}

/* Chooses the offset with which most packets are found. Returns how many. */
static unsigned int find_offset(const struct trace_log *log, const struct trace_marks *frames,
				uint64_t *offset_ns)
{
	unsigned int most = 0, pairs = 0;

	for (size_t i = 0; i < log->count && pairs < PAIRS_MAX; i++) {
		for (size_t k = 0; k < frames->count && !log->events[i].text; k++) {
			const struct trace_mark *packet = &log->events[i].mark;
			const uint64_t offset = frames->marks[k].time_ns - packet->time_ns;
			unsigned int found;

			if (!trace_same_packet(&frames->marks[k], packet))
				continue;
			found = count_found(log, frames, i, offset);
			if (found > most)
				*offset_ns = offset;
			most = found > most ? found : most;
			if (++pairs == PAIRS_MAX)
				break;
		}
	}
	return most;
}

/* --- all events --- */

/* What happened before a packet stands before it. */
static void move_before_packets(struct trace_log *log)
{
	uint64_t first_ns = UINT64_MAX;

	for (size_t i = log->count; i-- > 0;) {
		uint64_t *time_ns = &log->events[i].mark.time_ns;

		if (log->events[i].text && *time_ns > first_ns)
			*time_ns = first_ns;
		first_ns = *time_ns < first_ns ? *time_ns : first_ns;
	}
}

/* Events are nearly in order; those of one time stay in their order. */
static void sort_events(struct trace_log *log)
{
	for (size_t i = 1; i < log->count; i++) {
		const struct trace_event event = log->events[i];
		size_t at = i;

		for (; at > 0 && log->events[at - 1].mark.time_ns > event.mark.time_ns; at--)
			log->events[at] = log->events[at - 1];
		log->events[at] = event;
	}
}

static void move_events(struct trace_log *log, const struct trace_marks *frames, uint64_t offset_ns)
{
	for (size_t i = 0; i < log->count; i++) {
		struct trace_mark *mark = &log->events[i].mark, *frame = NULL;

		if (!log->events[i].text)
			frame = find_frame(frames, mark, offset_ns);
		if (frame) {
			frame->is_found = true;
			offset_ns = frame->time_ns - mark->time_ns;
		}
		mark->time_ns += offset_ns;
	}
	move_before_packets(log);
	sort_events(log);
}

static bool has_packets(const struct trace_log *log)
{
	for (size_t i = 0; i < log->count; i++)
		if (!log->events[i].text)
			return true;
	return false;
}

/* Returns true if an event is within the times of the capture. */
static bool overlaps(const struct trace_log *log, const struct trace_marks *frames)
{
	return log->events[0].mark.time_ns <= frames->marks[frames->count - 1].time_ns &&
	       log->events[log->count - 1].mark.time_ns >= frames->marks[0].time_ns;
}

const char *trace_align(struct trace_log *log, const struct trace_marks *frames)
{
	uint64_t offset_ns = log->started_ns;

	/* The clock of a simulated world begins at 0, that of a machine in 1970. */
	if (!log->count || !frames->count || frames->marks[0].time_ns < LINE_NUMBER_LIMIT)
		return NULL;
	if (has_packets(log)) {
		if (!find_offset(log, frames, &offset_ns))
			return "none of the log's packets is in the capture; take the log and the "
			       "capture of the same run";
		move_events(log, frames, offset_ns);
		return NULL;
	}
	if (!offset_ns)
		return "the capture has the time of day, and the log has neither packets nor a "
		       "date; take a log of the real clock";
	move_events(log, frames, offset_ns);
	return overlaps(log, frames)
		       ? NULL
		       : "the log ends before the capture begins, or begins after its "
			 "end; take the log and the capture of the same run and machine";
}
