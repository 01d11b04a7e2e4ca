/* SPDX-License-Identifier: MIT */
/*
 * Writes the data of the page: an index in JSON, and sections of bytes, which are compressed (raw DEFLATE) and
 * written in base64. The section "columns" holds tables column by column, with a value for each row, in the
 * byte order of the machine (little-endian). src/picture/page/data.js reads the columns in the same order: a
 * column that you add here, add there.
 */
#include "src/picture/page.h"

#include "src/base/count.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL		  6 /* of compression, of 12 */
#define FRAME_BLOCK_BYTES (512u << 10)
#define NO_NODE		  0xffff
#define NONE		  0xffffffffu

/* The bits of the column "flags". */
enum {
	FLAG_LOST = 1 << 0,
	FLAG_FAILED = 1 << 1,
	FLAG_NAK = 1 << 2,
	FLAG_REPEATED = 1 << 3,
	FLAG_RESPONSE = 1 << 4,
	FLAG_INFINIBAND = 1 << 5,
	FLAG_NO_TIME = 1 << 6,
};

struct writing {
	struct page *page;
	const struct ladder *ladder;
	FILE *out;
	struct page_works works;
	struct bytes texts;	 /* of the rows, as pattern_add() writes them */
	struct bytes text_at;	 /* uint32_t: of each row, the offset in texts */
	struct bytes frames;	 /* of the rows, in the order of the rows */
	struct bytes frame_at;	 /* uint32_t: of each row, the offset in frames, or NONE */
	struct bytes block_at;	 /* uint32_t: of each block of frames, the offset in frames */
	struct bytes compressed; /* of the present section */
};

/* --- sections --- */

static void put_base64(const struct bytes *bytes, FILE *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes->used; i += 3) {
		const size_t left = bytes->used - i;
		const uint8_t *at = bytes->at + i;
		const uint32_t three = (uint32_t)at[0] << 16 |
				       (left > 1 ? (uint32_t)at[1] << 8 : 0) |
				       (left > 2 ? at[2] : 0);

		fputc(digits[three >> 18], out);
		fputc(digits[three >> 12 & 63], out);
		fputc(left > 1 ? digits[three >> 6 & 63] : '=', out);
		fputc(left > 2 ? digits[three & 63] : '=', out);
	}
}

static void put_section(struct writing *writing, const char *name, const void *from,
			size_t size_bytes)
{
	struct libdeflate_compressor *compressor = bytes_sure(libdeflate_alloc_compressor(LEVEL));
	struct bytes *into = &writing->compressed;

	into->used = 0;
	bytes_more(into, libdeflate_deflate_compress_bound(compressor, size_bytes));
	into->used =
		libdeflate_deflate_compress(compressor, from, size_bytes, into->at, into->used);
	libdeflate_free_compressor(compressor);
	fprintf(writing->out, "<script type=\"text/plain\" id=\"data-%s\">", name);
	put_base64(into, writing->out);
	fputs("</script>\n", writing->out);
}

/* --- columns --- */

static void add_32(struct bytes *bytes, uint32_t value)
{
	bytes_add(bytes, &value, sizeof(value));
}

static const struct page_event *event_of(const struct writing *writing, size_t row)
{
	return page_event(writing->page, writing->ladder->rows[row].page_event);
}

/* Returns the event of the row, or of the same packet in another file, that has a frame; NULL if neither
 * has. */
static const struct page_event *framed(const struct writing *writing, size_t index)
{
	const struct row *row = &writing->ladder->rows[index];
	const struct page_event *event = page_event(writing->page, row->page_event);

	if (!event->frame_bytes && row->page_event_other)
		event = page_event(writing->page, row->page_event_other);
	return event->frame_bytes ? event : NULL;
}

static uint8_t flags_of(const struct writing *writing, size_t index)
{
	const struct row *row = &writing->ladder->rows[index];
	const struct page_event *event = event_of(writing, index), *with = framed(writing, index);
	const bool is_packet = row->kind == ROW_PACKET;

	return (row->lost ? FLAG_LOST : 0) | (row->failed ? FLAG_FAILED : 0) |
	       (is_packet && event->steps & PAGE_NAK ? FLAG_NAK : 0) |
	       (writing->works.repeated[index] ? FLAG_REPEATED : 0) |
	       (is_packet && event->steps & PAGE_RESPONSE ? FLAG_RESPONSE : 0) |
	       (with && with->infiniband ? FLAG_INFINIBAND : 0) |
	       (row->has_time ? 0 : FLAG_NO_TIME);
}

/* Each of these functions returns the value of a 32-bit column for row @i. */
static uint32_t line_column(const struct writing *writing, size_t i)
{
	return (uint32_t)event_of(writing, i)->line;
}

static uint32_t text_column(const struct writing *writing, size_t i)
{
	return ((const uint32_t *)(const void *)writing->text_at.at)[i];
}

static uint32_t works_column(const struct writing *writing, size_t i)
{
	return writing->works.at[i];
}

static uint32_t qp_column(const struct writing *writing, size_t i)
{
	const struct page_event *event = event_of(writing, i);

	return writing->ladder->rows[i].kind == ROW_PACKET && event->source_qpn ? event->source_qpn
										: event->qpn;
}

static uint32_t dest_qp_column(const struct writing *writing, size_t i)
{
	return event_of(writing, i)->dest_qpn;
}

static uint32_t psn_column(const struct writing *writing, size_t i)
{
	return event_of(writing, i)->has_psn ? event_of(writing, i)->psn : NONE;
}

static uint32_t frame_column(const struct writing *writing, size_t i)
{
	return ((const uint32_t *)(const void *)writing->frame_at.at)[i];
}

static uint32_t frame_bytes_column(const struct writing *writing, size_t i)
{
	const struct page_event *event = framed(writing, i);

	return event ? event->frame_bytes : 0;
}

static uint32_t (*const columns_32[])(const struct writing *, size_t) = {
	line_column,	works_column, text_column,  qp_column,
	dest_qp_column, psn_column,   frame_column, frame_bytes_column,
};

static uint16_t node_number(int node)
{
	return (uint16_t)(node == LADDER_NOWHERE ? NO_NODE : node);
}

static void add_columns_16(const struct writing *writing, struct bytes *into)
{
	const struct ladder *ladder = writing->ladder;
	const size_t count = ladder->row_count;
	uint16_t *columns = (void *)bytes_more(into, 3 * count * sizeof(*columns));

	for (size_t i = 0; i < count; i++) {
		const struct page_event *with = framed(writing, i);

		columns[i] = node_number(ladder->rows[i].node);
		columns[count + i] = node_number(ladder->rows[i].peer);
		columns[2 * count + i] = (uint16_t)(with ? with->frame_kept_bytes : 0);
	}
}

static void add_columns_8(const struct writing *writing, struct bytes *into)
{
	const struct ladder *ladder = writing->ladder;
	const size_t count = ladder->row_count;
	uint8_t *columns = bytes_more(into, 4 * count);

	for (size_t i = 0; i < count; i++) {
		columns[i] = (uint8_t)ladder->rows[i].kind;
		columns[count + i] = event_of(writing, i)->kind;
		columns[2 * count + i] = flags_of(writing, i);
		columns[3 * count + i] = (uint8_t)ladder->rows[i].file;
	}
}

static void put_columns(struct writing *writing)
{
	const struct ladder *ladder = writing->ladder;
	struct bytes all = {0};

	for (size_t i = 0; i < ladder->row_count; i++) {
		const double time_ns = (double)ladder->rows[i].order_ns;

		bytes_add(&all, &time_ns, sizeof(time_ns));
	}
	for (size_t column = 0; column < COUNT(columns_32); column++)
		for (size_t i = 0; i < ladder->row_count; i++)
			add_32(&all, columns_32[column](writing, i));
	bytes_add(&all, writing->works.works.at, writing->works.works.used);
	add_columns_16(writing, &all);
	add_columns_8(writing, &all);
	put_section(writing, "columns", all.at, all.used);
	bytes_free(&all);
}

/* --- texts and frames --- */

static void add_texts(struct writing *writing)
{
	for (size_t i = 0; i < writing->ladder->row_count; i++)
		add_32(&writing->text_at,
		       (uint32_t)pattern_add(&writing->page->patterns, &writing->texts,
					     writing->ladder->rows[i].text));
}

static void add_frame(struct writing *writing, const struct page_event *event)
{
	const uint32_t *blocks = (const void *)writing->block_at.at;
	const size_t count = writing->block_at.used / sizeof(*blocks);

	if (!count || writing->frames.used - blocks[count - 1] >= FRAME_BLOCK_BYTES)
		add_32(&writing->block_at, (uint32_t)writing->frames.used);
	add_32(&writing->frame_at, (uint32_t)writing->frames.used);
	bytes_add(&writing->frames, writing->page->frames.at + event->frame,
		  event->frame_kept_bytes);
}

static void add_frames(struct writing *writing)
{
	for (size_t i = 0; i < writing->ladder->row_count; i++) {
		const struct page_event *event = framed(writing, i);

		if (event)
			add_frame(writing, event);
		else
			add_32(&writing->frame_at, NONE);
	}
}

/* Writes each block of frames as a section: a page decompresses only the blocks that it shows. */
static void put_frames(struct writing *writing)
{
	const uint32_t *blocks = (const void *)writing->block_at.at;
	const size_t count = writing->block_at.used / sizeof(*blocks);

	for (size_t i = 0; i < count; i++) {
		const size_t end = i + 1 < count ? blocks[i + 1] : writing->frames.used;
		char name[32];

		snprintf(name, sizeof(name), "frames-%zu", i);
		put_section(writing, name, writing->frames.at + blocks[i], end - blocks[i]);
	}
}

static void put_patterns(struct writing *writing)
{
	const struct patterns *patterns = &writing->page->patterns;
	struct bytes all = {0};

	for (size_t i = 0; i < patterns->count; i++)
		bytes_add(&all, patterns->texts[i], strlen(patterns->texts[i]) + 1);
	put_section(writing, "patterns", all.at, all.used);
	bytes_free(&all);
}

/* --- the index --- */

static json_t *strings(char *const *texts, size_t count)
{
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, json_string(texts[i]) ?: json_string("?"));
	return array;
}

static json_t *file_names(const struct ladder *ladder)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < ladder->file_count; i++)
		json_array_append_new(array,
				      json_string(ladder->files[i].name) ?: json_string("?"));
	return array;
}

static json_t *row_kinds(void)
{
	json_t *array = json_array();

	for (unsigned int kind = 0; kind < ROW_KINDS; kind++)
		json_array_append_new(array, json_string(row_kind_name(kind)));
	return array;
}

static json_t *numbers(const struct bytes *bytes)
{
	const uint32_t *values = (const void *)bytes->at;
	json_t *array = json_array();

	for (size_t i = 0; i < bytes->used / sizeof(*values); i++)
		json_array_append_new(array, json_integer(values[i]));
	return array;
}

static void put_index(const struct writing *writing)
{
	const struct ladder *ladder = writing->ladder;
	json_t *index = json_pack(
		"{s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:s}", "rows",
		(json_int_t)ladder->row_count, "works",
		(json_int_t)(writing->works.works.used / sizeof(uint32_t)), "leftOut",
		(json_int_t)ladder->left_out, "nodes", strings(ladder->nodes, ladder->node_count),
		"files", file_names(ladder), "rowKinds", row_kinds(), "kinds",
		strings(writing->page->kinds, writing->page->kind_count), "blocks",
		numbers(&writing->block_at), "verbena", VERBENA_VERSION);
	char *text = bytes_sure(json_dumps(index, JSON_COMPACT));

	fputs("<script type=\"application/json\" id=\"index\">", writing->out);
	/* A name that contains "</script>" must not end the element. */
	for (const char *at = text; *at; at++)
		if (*at == '<')
			fputs("\\u003c", writing->out);
		else
			fputc(*at, writing->out);
	fputs("</script>\n", writing->out);
	free(text);
	json_decref(index);
}

/* --- the page --- */

static void put_data(struct writing *writing)
{
	page_follow(writing->page, writing->ladder, &writing->works);
	add_texts(writing);
	add_frames(writing);
	put_index(writing);
	put_columns(writing);
	put_patterns(writing);
	put_section(writing, "texts", writing->texts.at, writing->texts.used);
	put_section(writing, "lines", writing->page->lines.at, writing->page->lines.used);
	put_frames(writing);
}

/* Offsets in the page have 32 bits. */
static bool is_too_large(const struct writing *writing)
{
	return writing->page->lines.used > UINT32_MAX || writing->page->frames.used > UINT32_MAX;
}

int page_write(struct page *page, const struct ladder *ladder, FILE *out)
{
	static const char mark[] = "<!-- data -->\n";
	const char *data = strstr(page_text, mark);
	struct writing writing = {.page = page, .ladder = ladder, .out = out};

	if (is_too_large(&writing))
		return EFBIG;
	fwrite(page_text, 1, (size_t)(data - page_text), out);
	put_data(&writing);
	fputs(data + strlen(mark), out);
	page_works_free(&writing.works);
	bytes_free(&writing.texts);
	bytes_free(&writing.text_at);
	bytes_free(&writing.frames);
	bytes_free(&writing.frame_at);
	bytes_free(&writing.block_at);
	bytes_free(&writing.compressed);
	return ferror(out) ? errno : 0;
}
