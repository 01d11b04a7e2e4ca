/* SPDX-License-Identifier: MIT */
/* Functions that list folders. */
#include "src/base/fork.h"
#include "src/redirect/redirect.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

REDIRECTED(int, scandir, AT_FDCWD,
	   (const char *path, struct dirent ***list, int (*choose)(const struct dirent *),
	    int (*compare)(const struct dirent **, const struct dirent **)),
	   (path, list, choose, compare))
REDIRECTED(int, scandir64, AT_FDCWD,
	   (const char *path, struct dirent64 ***list, int (*choose)(const struct dirent64 *),
	    int (*compare)(const struct dirent64 **, const struct dirent64 **)),
	   (path, list, choose, compare))
REDIRECTED(int, scandirat, folder,
	   (int folder, const char *path, struct dirent ***list,
	    int (*choose)(const struct dirent *),
	    int (*compare)(const struct dirent **, const struct dirent **)),
	   (folder, path, list, choose, compare))
REDIRECTED(int, scandirat64, folder,
	   (int folder, const char *path, struct dirent64 ***list,
	    int (*choose)(const struct dirent64 *),
	    int (*compare)(const struct dirent64 **, const struct dirent64 **)),
	   (folder, path, list, choose, compare))

/* --- folders of the machine to which the devices' folders are added --- */

enum { NAMES = 3 };

static const struct {
	const char *path;
	const char *names[NAMES];
} shared[] = {
	{"/dev", {"infiniband"}},
	{"/sys/class", {"infiniband", "infiniband_mad", "infiniband_verbs"}},
	{"/sys/devices/virtual", {"infiniband", "infiniband_verbs"}},
};

/* Such a folder, from opendir() to closedir(). */
struct reading {
	struct reading *next;
	const DIR *folder;
	const char *names
		[NAMES]; /* the names to add: the machine does not have them. NULL ends them. */
	unsigned int next_name; /* an index in names */
	struct dirent entry;
	struct dirent64 entry64;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct reading *first;
static atomic_uint
	readings; /* counts the list, so that readdir() takes no lock while it is empty */

HOLD_DURING_FORK(lock);

/* Fills in the names to add to a folder. Returns false if there is none. */
static bool choose_names(const char *plain, const char *names[NAMES])
{
	unsigned int count = 0;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++)
		for (size_t k = 0; k < NAMES && !strcmp(plain, shared[i].path); k++) {
			if (!shared[i].names[k])
				break;
			stpcpy(stpcpy(stpcpy(path, plain), "/"), shared[i].names[k]);
			if (REAL(access)(path, F_OK))
				names[count++] = shared[i].names[k];
		}
	if (count < NAMES)
		names[count] = NULL;
	return count > 0;
}

/* Remembers an open folder if names are to be added to it. errno may change. */
static __attribute__((noinline)) void note(const char *path, const DIR *folder)
{
	struct reading *reading;
	char plain[PATH_MAX];
	const char *names[NAMES];
	size_t length;

	if (*path == '/' ? !redirect_plain(path, plain) : !REAL(getcwd)(plain, sizeof(plain)))
		return;
	if (!choose_names(plain, names) || !place_hold(&length))
		return;
	reading = calloc(1, sizeof(*reading));
	if (!reading)
		return;
	reading->folder = folder;
	memcpy(reading->names, names, sizeof(names));
	pthread_mutex_lock(&lock);
	reading->next = first;
	first = reading;
	pthread_mutex_unlock(&lock);
	atomic_fetch_add(&readings, 1);
}

/* Returns the link to the folder's entry of the list. The caller holds the lock. */
static struct reading **find(const DIR *folder)
{
	struct reading **at = &first;

	while (*at && (*at)->folder != folder)
		at = &(*at)->next;
	return at;
}

/* Returns true if the path may be one of shared[]: a cheap test before note(). */
static bool may_be_shared(const char *path)
{
	return *path == '/' ? strstr(path, "dev") || strstr(path, "sys") : !strcmp(path, ".");
}

static __attribute__((noinline)) DIR *opendir_elsewhere(const char *path)
{
	char buffer[PATH_MAX];

	return REAL(opendir)(redirect_path(AT_FDCWD, path, buffer));
}

EXPORT DIR *opendir(const char *path)
{
	DIR *folder;

	if (redirect_concerns(path))
		return opendir_elsewhere(path);
	folder = REAL(opendir)(path);
	if (folder && may_be_shared(path)) {
		const int err = errno;

		note(path, folder);
		errno = err;
	}
	return folder;
}

/* readdir(3): after the last entry of the machine, it returns the names that are added. */
#define READDIR(name, type, field)                                                                 \
	static __attribute__((noinline)) type name##_more(const DIR *folder)                       \
	{                                                                                          \
		struct reading *reading;                                                           \
		type entry = NULL;                                                                 \
                                                                                                   \
		pthread_mutex_lock(&lock);                                                         \
		reading = *find(folder);                                                           \
		if (reading && reading->next_name < NAMES && reading->names[reading->next_name]) { \
			entry = &reading->field;                                                   \
			entry->d_ino = 1;                                                          \
			entry->d_reclen = sizeof(*entry);                                          \
			entry->d_type = DT_DIR;                                                    \
			strcpy(entry->d_name, reading->names[reading->next_name++]);               \
		}                                                                                  \
		pthread_mutex_unlock(&lock);                                                       \
		return entry;                                                                      \
	}                                                                                          \
	EXPORT type name(DIR *folder)                                                              \
	{                                                                                          \
		type entry = REAL(name)(folder);                                                   \
                                                                                                   \
		return entry || !atomic_load(&readings) ? entry : name##_more(folder);             \
	}

READDIR(readdir, struct dirent *, entry)
READDIR(readdir64, struct dirent64 *, entry64)

EXPORT void rewinddir(DIR *folder)
{
	struct reading *reading;

	REAL(rewinddir)(folder);
	if (!atomic_load(&readings))
		return;
	pthread_mutex_lock(&lock);
	reading = *find(folder);
	if (reading)
		reading->next_name = 0;
	pthread_mutex_unlock(&lock);
}

static __attribute__((noinline)) void forget(const DIR *folder)
{
	struct reading **at, *reading;

	pthread_mutex_lock(&lock);
	at = find(folder);
	reading = *at;
	if (reading) {
		*at = reading->next;
		atomic_fetch_sub(&readings, 1);
	}
	pthread_mutex_unlock(&lock);
	free(reading);
}

EXPORT int closedir(DIR *folder)
{
	if (atomic_load(&readings))
		forget(folder);
	return REAL(closedir)(folder);
}
