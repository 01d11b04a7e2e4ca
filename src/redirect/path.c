/* SPDX-License-Identifier: MIT */
/* Finds out which paths lead to files of a device, and where these files are. */
#include "src/redirect/redirect.h"

#include "src/guard/readable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The folders that belong to devices, without the / at the beginning. */
static const char *const roots[] = {
	"dev/infiniband",
	"sys/class/infiniband",
	"sys/class/infiniband_mad",
	"sys/class/infiniband_verbs",
	"sys/devices/virtual/infiniband",
	"sys/devices/virtual/infiniband_mad",
	"sys/devices/virtual/infiniband_verbs",
};

/* Returns the entry of roots[] that equals the path; NULL if there is none. */
static const char *root_of(const char *path)
{
	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++)
		if (!strcmp(path, roots[i]))
			return roots[i];
	return NULL;
}

bool redirect_concerns(const char *path)
{
	const ssize_t length = guard_string_length(path, PATH_MAX);

	return length > 0 && length < PATH_MAX &&
	       (strstr(path, "infiniband") || strstr(path, "uverbs"));
}

/* An absolute path that is read part by part. */
struct walk {
	char plain[PATH_MAX]; /* the parts so far, each after a '/'; "." and ".." are resolved */
	size_t length;	      /* of plain */
	const char *root;     /* the root that the path so far is at or below, or NULL */
	const char *rest;     /* the part of the path below the root, as it was given */
	int depth;	      /* counts the parts below the root */
	bool left;	      /* true after the path has left a root by ".." */
};

static void go_up(struct walk *walk)
{
	while (walk->length && walk->plain[--walk->length] != '/')
		;
	walk->plain[walk->length] = '\0';
	if (walk->root && --walk->depth < 0) {
		walk->root = NULL;
		walk->left = true;
	}
}

static void go_down(struct walk *walk, const char *part, size_t length)
{
	if (walk->length + length + 2 > sizeof(walk->plain))
		return;
	walk->plain[walk->length++] = '/';
	memcpy(walk->plain + walk->length, part, length);
	walk->length += length;
	walk->plain[walk->length] = '\0';
	if (walk->root) {
		walk->depth++;
		return;
	}
	walk->root = root_of(walk->plain + 1);
	walk->rest = part + length;
	walk->depth = 0;
}

/* Reads a path part by part. Symbolic links are not followed: none leads to a root. */
static void read_path(struct walk *walk, const char *path)
{
	walk->length = 0;
	walk->plain[0] = '\0';
	walk->root = NULL;
	walk->left = false;
	while (*path) {
		size_t length = strcspn(path, "/");

		if (length == 2 && path[0] == '.' && path[1] == '.')
			go_up(walk);
		else if (length && !(length == 1 && path[0] == '.'))
			go_down(walk, path, length);
		path += length + (path[length] == '/');
	}
}

/* Writes the absolute form of a path to @whole, of PATH_MAX bytes. Returns false if it is too long, or if
 * @folder has no path. */
static bool make_absolute(int folder, const char *path, char *whole)
{
	char link[64];
	ssize_t length = 0;

	if (*path != '/') {
		if (folder == AT_FDCWD)
			snprintf(link, sizeof(link), "/proc/self/cwd");
		else
			snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
		length = REAL(readlink)(link, whole, PATH_MAX - 1);
		if (length <= 0 || *whole != '/')
			return false;
		whole[length++] = '/';
	}
	if ((size_t)length + strlen(path) + 1 > PATH_MAX)
		return false;
	strcpy(whole + length, path);
	return true;
}

size_t redirect_hidden(const char *path)
{
	size_t length;
	const char *place = place_held(&length);

	return place && !strncmp(path, place, length) && path[length] == '/' ? length : 0;
}

/* redirect_path(), but errno may change. */
static const char *find(int folder, const char *path, char *buffer)
{
	char whole[PATH_MAX];
	struct walk walk;
	size_t length;
	const char *place;

	if (!make_absolute(folder, path, whole))
		return path;
	if (redirect_hidden(whole)) {
		strcpy(buffer, whole);
		return buffer;
	}
	read_path(&walk, whole);
	if (walk.left && !walk.root) {
		strcpy(buffer, walk.plain);
		return buffer;
	}
	place = walk.root ? place_hold(&length) : NULL;
	if (!place ||
	    snprintf(buffer, PATH_MAX, "%s/%s%s", place, walk.root, walk.rest) >= PATH_MAX)
		return path;
	return buffer;
}

bool redirect_plain(const char *path, char *plain)
{
	struct walk walk;

	if (*path != '/' || strlen(path) >= PATH_MAX)
		return false;
	read_path(&walk, path);
	strcpy(plain, walk.plain);
	return true;
}

const char *redirect_path(int folder, const char *path, char *buffer)
{
	int err = errno;

	path = find(folder, path, buffer);
	errno = err;
	return path;
}

size_t redirect_back(char *path, size_t length)
{
	size_t before;
	const char *place = place_held(&before);

	if (!place || length <= before || strncmp(path, place, before) != 0 || path[before] != '/')
		return length;
	memmove(path, path + before, length - before);
	return length - before;
}

int redirect_character_device(const char *path)
{
	size_t length;
	const char *place = place_held(&length);
	int number, end = 0;

	if (!place || strncmp(path, place, length) != 0 ||
	    sscanf(path + length, "/dev/infiniband/uverbs%d%n", &number, &end) != 1 ||
	    path[length + (size_t)end])
		return -1;
	return number;
}
