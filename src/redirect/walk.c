/* SPDX-License-Identifier: MIT */
/* Functions that walk a tree of files and give the program the paths that they find. */
#include "src/redirect/redirect.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>

/* --- nftw(3) and ftw(3) --- */

/* The program's function, which the walk of this thread calls for each file. */
static _Thread_local union {
	__nftw_func_t nftw;
	__nftw64_func_t nftw64;
	__ftw_func_t ftw;
	__ftw64_func_t ftw64;
} called;

#define SEE_NFTW(name, status_type)                                                     \
	static int see_##name(const char *path, const status_type *status, int kind,    \
			      struct FTW *where)                                        \
	{                                                                               \
		struct FTW there = *where;                                              \
                                                                                        \
		there.base -= (int)redirect_hidden(path);                               \
		return called.name(path + redirect_hidden(path), status, kind, &there); \
	}

#define SEE_FTW(name, status_type)                                                   \
	static int see_##name(const char *path, const status_type *status, int kind) \
	{                                                                            \
		return called.name(path + redirect_hidden(path), status, kind);      \
	}

SEE_NFTW(nftw, struct stat)
SEE_NFTW(nftw64, struct stat64)
SEE_FTW(ftw, struct stat)
SEE_FTW(ftw64, struct stat64)

#define WALK(name, parameters, arguments, found_arguments)                \
	static __attribute__((noinline)) int name##_elsewhere parameters; \
	static int name##_elsewhere parameters                            \
	{                                                                 \
		NEXT(name);                                               \
		char buffer[PATH_MAX];                                    \
                                                                          \
		path = redirect_path(AT_FDCWD, path, buffer);             \
		called.name = see;                                        \
		return next found_arguments;                              \
	}                                                                 \
	EXPORT int name parameters                                        \
	{                                                                 \
		NEXT(name);                                               \
		if (redirect_concerns(path))                              \
			return name##_elsewhere arguments;                \
		return next arguments;                                    \
	}

WALK(nftw, (const char *path, __nftw_func_t see, int descriptors, int flags),
     (path, see, descriptors, flags), (path, see_nftw, descriptors, flags))
WALK(nftw64, (const char *path, __nftw64_func_t see, int descriptors, int flags),
     (path, see, descriptors, flags), (path, see_nftw64, descriptors, flags))
WALK(ftw, (const char *path, __ftw_func_t see, int descriptors), (path, see, descriptors),
     (path, see_ftw, descriptors))
WALK(ftw64, (const char *path, __ftw64_func_t see, int descriptors), (path, see, descriptors),
     (path, see_ftw64, descriptors))

/* --- glob(3) --- */

/* Shortens paths that are in the folder. Paths of earlier calls (GLOB_APPEND) are short already. */
static void paths_back(char **paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (paths[i])
			paths[i][redirect_back(paths[i], strlen(paths[i]))] = '\0';
}

#define GLOB(name, type)                                                                          \
	static __attribute__((noinline)) int name##_elsewhere(                                    \
		const char *path, int flags, int (*error)(const char *, int), type found)         \
	{                                                                                         \
		char buffer[PATH_MAX];                                                            \
		int result;                                                                       \
                                                                                                  \
		path = redirect_path(AT_FDCWD, path, buffer);                                     \
		result = REAL(name)(path, flags, error, found);                                   \
		if (!result && found->gl_pathv)                                                   \
			paths_back(found->gl_pathv + (flags & GLOB_DOOFFS ? found->gl_offs : 0),  \
				   found->gl_pathc);                                              \
		return result;                                                                    \
	}                                                                                         \
	EXPORT int name(const char *path, int flags, int (*error)(const char *, int), type found) \
	{                                                                                         \
		if (redirect_concerns(path))                                                      \
			return name##_elsewhere(path, flags, error, found);                       \
		return REAL(name)(path, flags, error, found);                                     \
	}

GLOB(glob, glob_t *)
GLOB(glob64, glob64_t *)
