/* SPDX-License-Identifier: MIT */
/* Memory that grows to what is needed. */
#ifndef SRC_CLI_MAKE_ROOM_H
#define SRC_CLI_MAKE_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Makes room for so many bytes. Returns false without memory; then nothing has changed. */
static inline bool make_room(uint8_t **memory, size_t *room, size_t bytes)
{
	uint8_t *larger = bytes > *room ? realloc(*memory, bytes) : *memory;

	if (!larger)
		return false;
	*memory = larger;
	*room = bytes > *room ? bytes : *room;
	return true;
}

#endif /* SRC_CLI_MAKE_ROOM_H */
