/* SPDX-License-Identifier: MIT */
/*
 * How the functions that create an object begin and how they fail.
 */
#ifndef SRC_CONNECT_OBJECT_H
#define SRC_CONNECT_OBJECT_H

#include "src/base/count.h"
#include "src/base/failure.h"

#include <errno.h>
#include <stdlib.h>

/* Returns zeroed memory, or NULL with ENOMEM and a sentence that names the object. */
static inline void *object_new(size_t length_bytes, const char *what)
{
	void *object = calloc(1, length_bytes);

	if (!object)
		fail(ENOMEM, "%s: no memory", what);
	return object;
}

/* Frees an object that could not be completed. Returns NULL with errno. */
static inline void *object_drop(void *object, int err)
{
	free(object);
	errno = err;
	return NULL;
}

#endif /* SRC_CONNECT_OBJECT_H */
