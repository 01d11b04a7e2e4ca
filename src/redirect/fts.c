/* SPDX-License-Identifier: MIT */
/*
 * fts(3). The functions of libc walk the folder where the files are. The program sees an entry
 * with the path that it knows, and libc gets the entry back with its own path.
 */
#include "src/redirect/redirect.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A walk of which a root is in the folder. */
struct walk {
	struct walk *next;
	const void *fts;
	void *entry;   /* which the program sees, or NULL */
	size_t hidden; /* bytes that the program does not see of its path */
	bool access;   /* true if they are not in fts_accpath either */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct walk *first;
static atomic_uint walks; /* counts them: most programs have none */

/* A walk is used by one thread at a time, as fts(3) asks. */
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

static bool concerns_any(char *const *paths)
{
	while (*paths)
		if (redirect_concerns(*paths++))
			return true;
	return false;
}

static void free_roots(char **roots)
{
	for (size_t i = 0; roots && roots[i]; i++)
		free(roots[i]);
	free(roots);
}

/* The roots of a walk, where they are; NULL without memory. */
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

/* Shows an entry to the program, or gives it back to libc, with the change of its path. */
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
