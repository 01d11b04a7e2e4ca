/* SPDX-License-Identifier: MIT */
/*
 * Prints a ladder as lines of text:
 *
 *	                sim0                                                        sim1
 *	       0.000 us  | QP 0x10: post_send 0x1 SEND, 12 bytes                       |
 *	       0.000 us  |-- RC SEND_ONLY PSN 100, QP 0x10 > 0x12, 12 bytes ---------->|
 */
#include "src/picture/ladder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_US   1000
#define TIME_DIGITS 8
#define GAP_COLUMNS_MIN \
	24 /* between two nodes; with less, lines have no rails and name their nodes */
#define PIECE_BYTES_MAX (4 * LADDER_WIDTH_MAX + 3)
#define COLUMNS_MIN	20 /* for a text */

static const char plain[] = "\033[0m", faint[] = "\033[2m", bold[] = "\033[1m";

/* The colours of rows. */
static const char *const colours[ROW_KINDS] = {
	[ROW_PACKET] = "\033[36m", [ROW_COMPLETION] = "\033[32m", [ROW_STATE] = "\033[35m",
	[ROW_TIMER] = "\033[33m",  [ROW_FAULT] = "\033[33m",	  [ROW_FAILURE] = "\033[31m",
	[ROW_DROP] = "\033[31m",   [ROW_EVENT] = "\033[35m",	  [ROW_VERB] = "\033[2m",
};

struct drawing {
	const struct ladder *ladder;
	const struct ladder_style *style;
	FILE *out;
	int time_digits, time_columns;
	int inner;  /* columns to the right of the time */
	bool rails; /* true if each node has a vertical line */
};

/* A line of output: a part of an arrow or a note, with its text. Columns count from the end of the time. */
struct stroke {
	int from, to; /* the columns of a packet's rails, from < to; of a note both are 0 */
	bool leftwards;
	bool lost;
	bool first; /* the line with the arrow */
	int text_at;
	struct piece piece;
	const char *colour; /* "": none */
};

/* --- places --- */

/* Returns the column of a node's vertical line. */
static int rail(const struct drawing *drawing, int node)
{
	const int last = (int)drawing->ladder->node_count - 1;

	return last > 0 ? node * (drawing->inner - 1) / last : 0;
}

static bool is_rail(const struct drawing *drawing, int column)
{
	const int count = (int)drawing->ladder->node_count;

	if (!drawing->rails)
		return false;
	for (int node = 0; node < count; node++)
		if (rail(drawing, node) == column)
			return true;
	return false;
}

/* --- lines --- */

static void print_time(const struct drawing *drawing, const struct row *row, bool first)
{
	const char *shade = drawing->style->colour ? faint : "";

	if (!first || !row->has_time)
		fprintf(drawing->out, "%*s", drawing->time_columns, "");
	else
		fprintf(drawing->out, "%s%*" PRIu64 ".%03u us%s  ", shade, drawing->time_digits,
			row->time_ns / NS_PER_US, (unsigned int)(row->time_ns % NS_PER_US),
			*shade ? plain : "");
}

/* Returns the character at a column that has no text: a part of the arrow, a rail or a space. */
static char mark(const struct drawing *drawing, const struct stroke *stroke, int column)
{
	const int length = stroke->to - stroke->from;
	const int head = stroke->leftwards ? stroke->from + 1 : stroke->to - 1;
	/* The arrow of a lost packet ends at four fifths of its way. */
	const int end = stroke->leftwards ? stroke->from + length / 5 : stroke->to - length / 5;

	if (column <= stroke->from || column >= stroke->to || !stroke->first)
		return is_rail(drawing, column) ? '|' : ' ';
	if (!stroke->lost)
		return column == head ? stroke->leftwards ? '<' : '>' : '-';
	if (column == end)
		return 'X';
	if (stroke->leftwards ? column < end : column > end)
		return is_rail(drawing, column) ? '|' : ' ';
	return '-';
}

/* Returns the length of the line, in columns. */
static int last_column(const struct drawing *drawing, const struct stroke *stroke)
{
	const int text_end = stroke->text_at + stroke->piece.columns;

	/* With several rails the last one is the last column; a single rail is column 0. */
	return drawing->rails && drawing->ladder->node_count > 1 ? drawing->inner : text_end;
}

static void print_stroke(const struct drawing *drawing, const struct stroke *stroke)
{
	const bool coloured = drawing->style->colour && *stroke->colour;
	const int begin = stroke->to && stroke->from + 1 < stroke->text_at ? stroke->from + 1
									   : stroke->text_at;
	const int text_end = stroke->text_at + stroke->piece.columns;
	const int end = stroke->to > text_end ? stroke->to : text_end;
	const int last = last_column(drawing, stroke);

	for (int column = 0; column < last; column++) {
		if (coloured && column == begin)
			fputs(stroke->colour, drawing->out);
		if (coloured && column == end)
			fputs(plain, drawing->out);
		if (column == stroke->text_at && stroke->piece.bytes) {
			fwrite(stroke->piece.text, 1, stroke->piece.bytes, drawing->out);
			column = text_end - 1;
		} else {
			fputc(mark(drawing, stroke, column), drawing->out);
		}
	}
	if (coloured && end >= last)
		fputs(plain, drawing->out);
	fputc('\n', drawing->out);
}

static const char *colour_of(const struct row *row)
{
	if (row->kind == ROW_PACKET && row->lost)
		return colours[ROW_FAULT];
	if (row->failed || strstr(row->text, "NAK"))
		return colours[ROW_FAILURE];
	return colours[row->kind] ? colours[row->kind] : "";
}

/* --- rows --- */

static void draw_packet(const struct drawing *drawing, const struct row *row)
{
	const int a = rail(drawing, row->node), b = rail(drawing, row->peer);
	struct stroke stroke = {.from = a < b ? a : b,
				.to = a < b ? b : a,
				.leftwards = a > b,
				.lost = row->lost,
				.first = true,
				.colour = colour_of(row)};
	const int length = stroke.to - stroke.from;
	/* Between two rails: "-- ", the text, " ->". The arrow of a lost packet is a fifth shorter. */
	const int columns = length - 1 - 3 - 3 - (row->lost ? length / 5 : 0);
	const char *text = row->text;

	while (ladder_piece(&text, columns, &stroke.piece)) {
		char spaced[PIECE_BYTES_MAX];

		/* The text has a space on each side. */
		snprintf(spaced, sizeof(spaced), " %.*s ", (int)stroke.piece.bytes,
			 stroke.piece.text);
		stroke.piece = (struct piece){spaced, strlen(spaced), stroke.piece.columns + 2};
		stroke.text_at =
			stroke.leftwards ? stroke.to - 2 - stroke.piece.columns : stroke.from + 3;
		print_time(drawing, row, stroke.first);
		print_stroke(drawing, &stroke);
		stroke.first = false;
	}
}

/* Prints a note to the right of its rail; notes of the last node stand to the left. */
static void draw_note(const struct drawing *drawing, const struct row *row)
{
	const int count = (int)drawing->ladder->node_count;
	const bool leftwards = count > 1 && row->node == count - 1;
	const int at = rail(drawing, row->node);
	const int next = leftwards		 ? rail(drawing, row->node - 1)
			 : row->node + 1 < count ? rail(drawing, row->node + 1)
						 : drawing->inner;
	const int columns = abs(next - at) - 3;
	struct stroke stroke = {.first = true, .colour = colour_of(row)};
	const char *text = row->text;

	while (ladder_piece(&text, columns, &stroke.piece)) {
		stroke.text_at = leftwards ? at - 1 - stroke.piece.columns : at + 2;
		print_time(drawing, row, stroke.first);
		print_stroke(drawing, &stroke);
		stroke.first = false;
	}
}

/* Prints a row without rails: the event belongs to no node, or the line is too short for all nodes. */
static void draw_plain(const struct drawing *drawing, const struct row *row)
{
	const struct ladder *ladder = drawing->ladder;
	struct stroke stroke = {.first = true, .colour = colour_of(row)};
	struct drawing without = *drawing;
	const char *text;
	char *whole;

	if (asprintf(&whole, "%s%s%s%s%s",
		     row->node == LADDER_NOWHERE ? "" : ladder->nodes[row->node],
		     row->peer == LADDER_NOWHERE ? ""
		     : row->lost		 ? " >X "
						 : " > ",
		     row->peer == LADDER_NOWHERE ? "" : ladder->nodes[row->peer],
		     row->node == LADDER_NOWHERE ? "" : "  ", row->text) < 0)
		return;
	without.rails = false;
	text = whole;
	while (ladder_piece(&text, drawing->inner, &stroke.piece)) {
		print_time(drawing, row, stroke.first);
		print_stroke(&without, &stroke);
		stroke.first = false;
	}
	free(whole);
}

static void draw_row(const struct drawing *drawing, const struct row *row)
{
	if (!drawing->rails || row->node == LADDER_NOWHERE)
		draw_plain(drawing, row);
	else if (row->peer == LADDER_NOWHERE)
		draw_note(drawing, row);
	else
		draw_packet(drawing, row);
}

/* --- the head --- */

/* Returns the first column of a node's name, which is centred above the rail but stays inside the line. */
static int name_column(const struct drawing *drawing, int node)
{
	const int columns = ladder_columns(drawing->ladder->nodes[node]);
	int at = rail(drawing, node) - columns / 2;

	if (at + columns > drawing->inner)
		at = drawing->inner - columns;
	return at > 0 ? at : 0;
}

/* Prints the names of the nodes in one line, or in several if two names would overlap. */
static void print_names(const struct drawing *drawing)
{
	const int count = (int)drawing->ladder->node_count;
	int column = 0;

	fprintf(drawing->out, "%*s%s", drawing->time_columns, "",
		drawing->style->colour ? bold : "");
	for (int node = 0; node < count; node++) {
		const char *name = drawing->ladder->nodes[node];
		int at = name_column(drawing, node);

		if (node && at <= column) {
			fprintf(drawing->out, "\n%*s", drawing->time_columns, "");
			column = 0;
		}
		fprintf(drawing->out, "%*s%s", at - column, "", name);
		column = at + ladder_columns(name);
	}
	fprintf(drawing->out, "%s\n", drawing->style->colour ? plain : "");
}

static int digits_of(const struct ladder *ladder)
{
	int digits = TIME_DIGITS, needed = 1;
	uint64_t last = 0;

	for (size_t i = 0; i < ladder->row_count; i++)
		if (ladder->rows[i].has_time && ladder->rows[i].time_ns > last)
			last = ladder->rows[i].time_ns;
	for (last /= NS_PER_US; last >= 10; last /= 10)
		needed++;
	return needed > digits ? needed : digits;
}

void ladder_print(const struct ladder *ladder, const struct ladder_style *style, FILE *out)
{
	const int digits = digits_of(ladder), gaps = (int)ladder->node_count - 1;
	struct drawing drawing = {
		.ladder = ladder,
		.style = style,
		.out = out,
		.time_digits = digits,
		.time_columns = digits + (int)strlen(".000 us  "),
	};

	drawing.inner = style->width - drawing.time_columns;
	if (drawing.inner < COLUMNS_MIN)
		drawing.inner = COLUMNS_MIN;
	drawing.rails = gaps >= 0 && (gaps == 0 || drawing.inner / gaps >= GAP_COLUMNS_MIN);
	if (ladder->left_out)
		fprintf(out, "%" PRIu64 " row%s before\n", ladder->left_out,
			ladder->left_out == 1 ? "" : "s");
	if (drawing.rails)
		print_names(&drawing);
	for (size_t i = 0; i < ladder->row_count; i++)
		draw_row(&drawing, &ladder->rows[i]);
}
