/* SPDX-License-Identifier: MIT */
/*
 * Notes: what happens in the engine, as events (include/verbena/event.h) for its owner. While nobody
 * watches, a place that may note something costs one test:
 *
 *	if (sim_watched(engine))
 *		note_this(...);
 *
 * The way of a packet that no filter looks at has no such place: the filter of sim/net/notes.h notes
 * packets, and is active only while somebody watches.
 */
#ifndef SIM_BASE_NOTE_H
#define SIM_BASE_NOTE_H

#include "sim/base/core.h"

#include <verbena/event.h>

/* Returns true while the owner watches: sim_notes_watch(). */
static inline bool sim_watched(const struct sim_engine *engine)
{
	return __builtin_expect(engine->watched, false);
}

/*
 * Gives an event to the owner, with the engine's time. The caller has filled in the rest: the device's
 * name, too. element is the `user` of the CQ that the event is about, or NULL. Call this only while
 * sim_watched().
 */
static inline void sim_note(struct sim_engine *engine, struct vb_event *event, void *element)
{
	event->time_ns = sim_clock_now_ns(&engine->clock);
	engine->host.note(engine->host.arg, event, element);
}

#endif
