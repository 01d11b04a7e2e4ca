/* SPDX-License-Identifier: MIT */
#include "src/layer/watch.h"

#include "src/layer/passage.h"
#include "src/verbs/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct watcher {
	_Atomic(vb_event_fn *) fn; /* NULL: free */
	void *_Atomic arg;
};

static struct watcher watchers[WATCHERS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while watchers change */

static atomic_bool left_inside; /* set for ever by layer_left_inside() */

bool layer_left_inside(void)
{
	if (passage_inside())
		atomic_store(&left_inside, true);
	return atomic_load(&left_inside);
}

static void see(void *unused, const struct vb_event *event)
{
	if (atomic_load_explicit(&left_inside, memory_order_relaxed))
		return;
	for (unsigned int i = 0; i < WATCHERS_MAX; i++) {
		vb_event_fn *fn = atomic_load_explicit(&watchers[i].fn, memory_order_acquire);

		if (fn)
			fn(atomic_load(&watchers[i].arg), event);
	}
}

/* The caller holds the lock. Returns WATCHERS_MAX if there is none; fn NULL: a free place. */
static unsigned int find(vb_event_fn *fn, const void *arg)
{
	unsigned int i = 0;

	while (i < WATCHERS_MAX &&
	       (atomic_load(&watchers[i].fn) != fn || (fn && atomic_load(&watchers[i].arg) != arg)))
		i++;
	return i;
}

/* The caller holds the lock. */
static void watch_backends(vb_event_fn *fn)
{
	const struct vb_backend *backend;

	for (unsigned int i = 0; (backend = registry_at(i)); i++)
		if (backend->watch)
			backend->watch(fn, NULL);
}

int layer_watch(vb_event_fn *fn, void *arg)
{
	unsigned int place;
	int err = 0;

	pthread_mutex_lock(&lock);
	place = find(NULL, NULL);
	if (find(fn, arg) != WATCHERS_MAX) {
		err = EEXIST;
	} else if (place == WATCHERS_MAX) {
		err = ENOMEM;
	} else {
		atomic_store(&watchers[place].arg, arg);
		atomic_store_explicit(&watchers[place].fn, fn, memory_order_release);
		watch_backends(see);
	}
	pthread_mutex_unlock(&lock);
	return err;
}

void layer_unwatch(vb_event_fn *fn, void *arg)
{
	unsigned int place;
	bool others = false;

	pthread_mutex_lock(&lock);
	place = find(fn, arg);
	if (place != WATCHERS_MAX) {
		atomic_store(&watchers[place].fn, NULL);
		for (unsigned int i = 0; i < WATCHERS_MAX; i++)
			others |= atomic_load(&watchers[i].fn) != NULL;
		/* `watch` returns when no call that may have seen the watcher runs. */
		watch_backends(others ? see : NULL);
	}
	pthread_mutex_unlock(&lock);
}
