/* SPDX-License-Identifier: MIT */
/*
 * The events of all backends for several watchers: `watch` of <verbena/backend.h> has one.
 */
#ifndef SRC_LAYER_WATCH_H
#define SRC_LAYER_WATCH_H

#include <verbena/event.h>

#define WATCHERS_MAX 8

/*
 * Calls fn(arg, event) for each event of the devices of all backends from now on. Returns 0, EEXIST
 * (fn with arg is a watcher already) or ENOMEM (there are WATCHERS_MAX watchers). fn runs under locks
 * of the backend: it must not call a verb or another function of the backend.
 */
int layer_watch(vb_event_fn *fn, void *arg);

/* Ends that. When it returns, fn is not running and is not called any more. */
void layer_unwatch(vb_event_fn *fn, void *arg);

#endif /* SRC_LAYER_WATCH_H */
