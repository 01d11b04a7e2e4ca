/* SPDX-License-Identifier: MIT */
#include "src/base/path.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void path_expand(const char *path, char *text, size_t size_bytes)
{
	size_t used = 0;

	while (*path && used + 1 < size_bytes) {
		bool is_process = !strncmp(path, "%p", 2);
		char piece[24] = {*path};

		if (is_process)
			snprintf(piece, sizeof(piece), "%ld", (long)getpid());
		used += (size_t)snprintf(text + used, size_bytes - used, "%s", piece);
		path += is_process ? 2 : 1;
	}
}
