/* SPDX-License-Identifier: MIT */
/* Paths of files that several processes write. */
#ifndef SRC_BASE_PATH_H
#define SRC_BASE_PATH_H

#include <stddef.h>

/* Copies a path with the number of the process for each %p. A text that is too long is cut. */
void path_expand(const char *path, char *text, size_t size_bytes);

#endif /* SRC_BASE_PATH_H */
