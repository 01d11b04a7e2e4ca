/* SPDX-License-Identifier: MIT */
#include "src/cli/trace_align.h"

#include "src/log/line.h"

#include <string.h>

/* A packet is captured this long before or after its event, since the last packet that was found. */
#define WINDOW_NS INT64_C(50000000)

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

/* Finds the packet among the frames from number @from. Returns the number of frames if none is near enough. */
static size_t find_frame(const struct trace_marks *frames, const struct trace_mark *packet,
			 uint64_t offset_ns, size_t from)
{
	const uint64_t time_ns = packet->time_ns + offset_ns;
	size_t at = frame_at(frames, time_ns - WINDOW_NS);

	for (at = at > from ? at : from; at < frames->count; at++) {
		if (frames->marks[at].time_ns > time_ns + WINDOW_NS)
			break;
		if (trace_same_packet(&frames->marks[at], packet))
			return at;
	}
	return frames->count;
}

/* --- the first packet that both have --- */

/* Counts the packets from event @first on that the capture has, too. */
static unsigned int count_found(const struct trace_log *log, const struct trace_marks *frames,
				size_t first, uint64_t offset_ns)
{
	unsigned int tries = 0, found = 0;
	size_t from = 0;

	for (size_t i = first; i < log->count && tries < TRIES; i++) {
		const struct trace_mark *packet = &log->events[i].mark;
		size_t at;

		if (log->events[i].text)
			continue;
		tries++;
		at = find_frame(frames, packet, offset_ns, from);
		if (at == frames->count)
			continue;
		found++;
		from = at + 1;
		offset_ns = frames->marks[at].time_ns - packet->time_ns;
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

static void move_events(struct trace_log *log, const struct trace_marks *frames, uint64_t offset_ns)
{
	size_t from = 0;

	for (size_t i = 0; i < log->count; i++) {
		struct trace_mark *mark = &log->events[i].mark;
		const size_t at = log->events[i].text ? frames->count
						      : find_frame(frames, mark, offset_ns, from);

		if (at < frames->count) {
			offset_ns = frames->marks[at].time_ns - mark->time_ns;
			from = at + 1;
		}
		mark->time_ns += offset_ns;
	}
	/* What happened before a packet stands before it. */
	for (size_t i = log->count; i-- > 1;)
		if (log->events[i - 1].text &&
		    log->events[i - 1].mark.time_ns > log->events[i].mark.time_ns)
			log->events[i - 1].mark.time_ns = log->events[i].mark.time_ns;
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
