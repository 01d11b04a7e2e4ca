/* SPDX-License-Identifier: MIT */
#include "src/cli/pcapng_read.h"

#include "src/cli/make_room.h"
#include "src/cli/pcapng_format.h"

#include <stdlib.h>
#include <string.h>

/* A damaged length must not ask for all memory. */
#define BLOCK_BYTES_MAX (UINT32_C(64) << 20)

static uint32_t number_at(const struct pcapng_reader *reader, size_t offset)
{
	uint32_t number;

	memcpy(&number, reader->block + offset, sizeof(number));
	return number;
}

/* Reads a block without its type and lengths. */
static enum pcapng_read read_block(struct pcapng_reader *reader, uint32_t *type)
{
	uint32_t head[2], tail;
	const size_t got = fread(head, 1, sizeof(head), reader->file);

	if (got < sizeof(head))
		return got ? PCAPNG_DAMAGED : PCAPNG_END;
	if (head[1] < PCAPNG_BLOCK_BYTES || head[1] % 4 || head[1] > BLOCK_BYTES_MAX ||
	    !make_room(&reader->block, &reader->room, head[1]))
		return PCAPNG_DAMAGED;
	*type = head[0];
	reader->bytes = head[1] - PCAPNG_BLOCK_BYTES;
	if (fread(reader->block, 1, reader->bytes, reader->file) < reader->bytes ||
	    fread(&tail, 1, sizeof(tail), reader->file) < sizeof(tail) || tail != head[1])
		return PCAPNG_DAMAGED;
	return PCAPNG_FRAME;
}

/* Returns true if the options, which begin at @at, say that times are in nanoseconds. */
static bool has_nanoseconds(const struct pcapng_reader *reader, size_t at)
{
	while (at + 4 <= reader->bytes) {
		const uint32_t head = number_at(reader, at), length = head >> 16;

		if ((head & 0xffff) == PCAPNG_OPTION_RESOLUTION && at + 4 < reader->bytes)
			return reader->block[at + 4] == PCAPNG_NANOSECONDS;
		at += 4 + (length + 3) / 4 * 4;
	}
	return false;
}

static bool take_interface(struct pcapng_reader *reader)
{
	if (reader->bytes < 8 || reader->interface_count == PCAPNG_INTERFACES_MAX ||
	    !has_nanoseconds(reader, 8))
		return false;
	reader->link_types[reader->interface_count++] = number_at(reader, 0) & 0xffff;
	return true;
}

static bool take_frame(struct pcapng_reader *reader, struct pcapng_frame *frame)
{
	if (reader->bytes < 20 || number_at(reader, 0) >= reader->interface_count ||
	    number_at(reader, 12) > reader->bytes - 20)
		return false;
	*frame = (struct pcapng_frame){
		.interface = number_at(reader, 0),
		.time_ns = (uint64_t)number_at(reader, 4) << 32 | number_at(reader, 8),
		.bytes = reader->block + 20,
		.length = number_at(reader, 12),
		.whole = number_at(reader, 16),
	};
	return true;
}

enum pcapng_read pcapng_read(struct pcapng_reader *reader, struct pcapng_frame *frame)
{
	enum pcapng_read got;
	uint32_t type;

	while ((got = read_block(reader, &type)) == PCAPNG_FRAME) {
		if (type == PCAPNG_SECTION_HEADER) {
			if (reader->bytes < 4 || number_at(reader, 0) != PCAPNG_BYTE_ORDER)
				return PCAPNG_DAMAGED;
			reader->interface_count = 0;
		} else if (type == PCAPNG_INTERFACE_DESCRIPTION) {
			if (!take_interface(reader))
				return PCAPNG_DAMAGED;
		} else if (type == PCAPNG_ENHANCED_PACKET) {
			return take_frame(reader, frame) ? PCAPNG_FRAME : PCAPNG_DAMAGED;
		}
	}
	return got;
}

void pcapng_read_end(struct pcapng_reader *reader)
{
	free(reader->block);
	reader->block = NULL;
}

bool pcapng_has_events(FILE *file)
{
	struct pcapng_reader reader = {.file = file};
	struct pcapng_frame frame;
	bool found = false;

	if (fseek(file, 0, SEEK_SET))
		return false;
	/* The interfaces stand before the first frame. */
	pcapng_read(&reader, &frame);
	for (unsigned int i = 0; i < reader.interface_count; i++)
		found |= reader.link_types[i] == PCAPNG_USER15;
	pcapng_read_end(&reader);
	return !fseek(file, 0, SEEK_SET) && found;
}
