/* SPDX-License-Identifier: MIT */
/*
 * fts(3). libc walks the folder that has the files (place.c). Before an entry goes to the program, its path is
 * shortened to the path that the program knows; before it goes back to libc, the path is restored.
 */
#include "src/base/fork.h"
#include "src/guard/readable.h"
#include "src/redirect/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A walk that has a root in the folder. */
struct walk {
	struct walk *next;
	const void *fts;
	void *entry;   /* the entry that the program has, or NULL */
	size_t hidden; /* bytes that are cut off the beginning of its fts_path */
	bool access;   /* true if they are cut off fts_accpath, too */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct walk *first;
static atomic_uint walks; /* counts the list, so that most programs take no lock */

HOLD_DURING_FORK(lock);

/* Returns the walk, or NULL. By fts(3) one thread at a time uses a walk, so it stays. */
static struct walk *find(const void *fts)
{
	struct walk *walk = NULL;

	if (!atomic_load(&walks))
		return NULL;
	pthread_mutex_lock(&lock);
	for (walk = first; walk && walk->fts != fts;)
		walk = walk->next;
	pthread_mutex_unlock(&lock);
	return walk;
}

static void note(const void *fts)
{
	struct walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return;
	walk->fts = fts;
	pthread_mutex_lock(&lock);
	walk->next = first;
	first = walk;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&walks, 1);
}

static void forget(const void *fts)
{
	struct walk **at, *walk;

	if (!atomic_load(&walks))
		return;
	pthread_mutex_lock(&lock);
	for (at = &first; *at && (*at)->fts != fts;)
		at = &(*at)->next;
	walk = *at;
	if (walk) {
		*at = walk->next;
		atomic_fetch_sub(&walks, 1);
	}
	pthread_mutex_unlock(&lock);
	free(walk);
}

/* Returns true if a path may be that of a device's file. An array that cannot be read to its end is libc's. */
static bool concerns_any(char *const *paths)
{
	bool any = false;

	for (; guard_is_readable(paths, sizeof(*paths)); paths++) {
		if (!*paths)
			return any;
		any = any || redirect_concerns(*paths);
	}
	return false;
}

static void free_roots(char **roots)
{
	for (size_t i = 0; roots && roots[i]; i++)
		free(roots[i]);
	free(roots);
}

/* Returns the redirected roots of a walk, which free_roots() frees; NULL without memory. */
static char **find_roots(char *const *paths)
{
	size_t count = 0;
	char buffer[PATH_MAX];
	char **roots;

	while (paths[count])
		count++;
	roots = calloc(count + 1, sizeof(*roots));
	for (size_t i = 0; roots && i < count; i++) {
		const bool concerned = redirect_concerns(paths[i]);

		roots[i] = strdup(concerned ? redirect_path(AT_FDCWD, paths[i], buffer) : paths[i]);
		if (!roots[i]) {
			free_roots(roots);
			roots = NULL;
		}
	}
	return roots;
}

typedef int compare_entries(const FTSENT **, const FTSENT **);
typedef int compare_entries64(const FTSENT64 **, const FTSENT64 **);

/* prefix_show() shortens an entry's path for the program, prefix_take() restores it for libc. */
#define FTS_FUNCTIONS(prefix, walk_type, entry_type, compare_type)                            \
	static void prefix##_show(struct walk *walk, entry_type entry)                        \
	{                                                                                     \
		walk->entry = entry;                                                          \
		if (!entry)                                                                   \
			return;                                                               \
		walk->hidden = redirect_hidden(entry->fts_path);                              \
		walk->access = entry->fts_accpath == entry->fts_path;                         \
		entry->fts_path += walk->hidden;                                              \
		entry->fts_pathlen -= (unsigned short)walk->hidden;                           \
		if (walk->access)                                                             \
			entry->fts_accpath = entry->fts_path;                                 \
	}                                                                                     \
	static void prefix##_take(struct walk *walk)                                          \
	{                                                                                     \
		entry_type entry = walk->entry;                                               \
                                                                                              \
		walk->entry = NULL;                                                           \
		if (!entry)                                                                   \
			return;                                                               \
		entry->fts_path -= walk->hidden;                                              \
		entry->fts_pathlen += (unsigned short)walk->hidden;                           \
		if (walk->access)                                                             \
			entry->fts_accpath = entry->fts_path;                                 \
	}                                                                                     \
	EXPORT walk_type prefix##_open(char *const *paths, int options, compare_type compare) \
	{                                                                                     \
		char **roots;                                                                 \
		walk_type fts;                                                                \
                                                                                              \
		if (!concerns_any(paths))                                                     \
			return REAL(prefix##_open)(paths, options, compare);                  \
		roots = find_roots(paths);                                                    \
		if (!roots) {                                                                 \
			errno = ENOMEM;                                                       \
			return NULL;                                                          \
		}                                                                             \
		fts = REAL(prefix##_open)(roots, options, compare);                           \
		if (fts)                                                                      \
			note(fts);                                                            \
		free_roots(roots);                                                            \
		return fts;                                                                   \
	}                                                                                     \
	EXPORT entry_type prefix##_read(walk_type fts)                                        \
	{                                                                                     \
		struct walk *walk = find(fts);                                                \
		entry_type entry;                                                             \
                                                                                              \
		if (!walk)                                                                    \
			return REAL(prefix##_read)(fts);                                      \
		prefix##_take(walk);                                                          \
		entry = REAL(prefix##_read)(fts);                                             \
		prefix##_show(walk, entry);                                                   \
		return entry;                                                                 \
	}                                                                                     \
	EXPORT entry_type prefix##_children(walk_type fts, int options)                       \
	{                                                                                     \
		struct walk *walk = find(fts);                                                \
		entry_type list;                                                              \
		entry_type entry;                                                             \
                                                                                              \
		if (!walk)                                                                    \
			return REAL(prefix##_children)(fts, options);                         \
		entry = walk->entry;                                                          \
		prefix##_take(walk);                                                          \
		list = REAL(prefix##_children)(fts, options);                                 \
		prefix##_show(walk, entry);                                                   \
		return list;                                                                  \
	}                                                                                     \
	EXPORT int prefix##_close(walk_type fts)                                              \
	{                                                                                     \
		struct walk *walk = find(fts);                                                \
                                                                                              \
		if (walk)                                                                     \
			prefix##_take(walk);                                                  \
		forget(fts);                                                                  \
		return REAL(prefix##_close)(fts);                                             \
	}

FTS_FUNCTIONS(fts, FTS *, FTSENT *, compare_entries *)
FTS_FUNCTIONS(fts64, FTS64 *, FTSENT64 *, compare_entries64 *)
