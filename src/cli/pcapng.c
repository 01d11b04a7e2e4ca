/* SPDX-License-Identifier: MIT */
#include "src/cli/pcapng.h"

#include "src/cli/pcapng_format.h"

#include <string.h>

static uint32_t padded(size_t bytes)
{
	return (uint32_t)((bytes + 3) / 4 * 4);
}

static void put_16(FILE *out, unsigned int value)
{
	const uint16_t number = (uint16_t)value;

	fwrite(&number, sizeof(number), 1, out);
}

static void put_32(FILE *out, uint32_t value)
{
	fwrite(&value, sizeof(value), 1, out);
}

static void put_bytes(FILE *out, const void *bytes, size_t length)
{
	static const char zeros[4];

	fwrite(bytes, 1, length, out);
	fwrite(zeros, 1, padded(length) - length, out);
}

/* --- options --- */

static uint32_t option_bytes(size_t length)
{
	return 4 + padded(length);
}

static void put_option(FILE *out, unsigned int code, const void *bytes, size_t length)
{
	put_16(out, code);
	put_16(out, (unsigned int)length);
	put_bytes(out, bytes, length);
}

static void put_end_of_options(FILE *out)
{
	put_32(out, 0);
}

/* --- blocks --- */

void pcapng_begin(FILE *out, const char *program)
{
	const uint32_t bytes = PCAPNG_BLOCK_BYTES + 16 + option_bytes(strlen(program)) + 4;

	put_32(out, PCAPNG_SECTION_HEADER);
	put_32(out, bytes);
	put_32(out, PCAPNG_BYTE_ORDER);
	put_16(out, PCAPNG_VERSION_MAJOR);
	put_16(out, 0);
	/* The section's length is not known. */
	put_32(out, UINT32_MAX);
	put_32(out, UINT32_MAX);
	put_option(out, PCAPNG_OPTION_USER_APPLICATION, program, strlen(program));
	put_end_of_options(out);
	put_32(out, bytes);
}

void pcapng_add_interface(FILE *out, unsigned int link_type, const char *name, const char *about)
{
	static const uint8_t resolution = PCAPNG_NANOSECONDS;
	const uint32_t bytes = PCAPNG_BLOCK_BYTES + 8 + option_bytes(strlen(name)) +
			       option_bytes(strlen(about)) + option_bytes(1) + 4;

	put_32(out, PCAPNG_INTERFACE_DESCRIPTION);
	put_32(out, bytes);
	put_16(out, link_type);
	put_16(out, 0);
	put_32(out, 0); /* frames are never cut */
	put_option(out, PCAPNG_OPTION_NAME, name, strlen(name));
	put_option(out, PCAPNG_OPTION_DESCRIPTION, about, strlen(about));
	put_option(out, PCAPNG_OPTION_RESOLUTION, &resolution, 1);
	put_end_of_options(out);
	put_32(out, bytes);
}

void pcapng_add_frame(FILE *out, const struct pcapng_frame *frame)
{
	const uint32_t bytes = PCAPNG_BLOCK_BYTES + 20 + padded(frame->length);

	put_32(out, PCAPNG_ENHANCED_PACKET);
	put_32(out, bytes);
	put_32(out, frame->interface);
	put_32(out, (uint32_t)(frame->time_ns >> 32));
	put_32(out, (uint32_t)frame->time_ns);
	put_32(out, (uint32_t)frame->length);
	put_32(out, (uint32_t)frame->whole);
	put_bytes(out, frame->bytes, frame->length);
	put_32(out, bytes);
}
