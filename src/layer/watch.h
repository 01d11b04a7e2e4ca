/* SPDX-License-Identifier: MIT */
/* Gives the events of all backends to several watchers: a backend has one, `watch` of <verbena/backend.h>. */
#ifndef SRC_LAYER_WATCH_H
#define SRC_LAYER_WATCH_H

#include <stdbool.h>
#include <verbena/event.h>

#define WATCHERS_MAX 8

/*
 * Calls fn(arg, event) for each event of the devices of all backends from now on. Returns 0, EEXIST
 * (fn with arg is a watcher already) or ENOMEM (there are WATCHERS_MAX watchers). fn runs under locks
 * of the backend: it must not call a verb or another function of the backend.
 */
int layer_watch(vb_event_fn *fn, void *arg);

/* Removes a watcher. When it returns, fn is not running and will not be called again. */
void layer_unwatch(vb_event_fn *fn, void *arg);

/*
 * For destructors. Returns true if exit(3) has interrupted this thread in a layered verb, as from a signal handler or
 * from a function that a verb has called: the thread may have any lock, and never gives it back. From then on, no
 * watcher is called.
 */
bool layer_left_inside(void);

#endif /* SRC_LAYER_WATCH_H */
