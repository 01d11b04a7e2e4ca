/* SPDX-License-Identifier: MIT */
/*
 * Writes a ladder as an SVG picture that needs no other file. Each row is a group:
 *
 *	<g class="row packet" data-n="39"><title>...</title>...</g>
 *
 * data-n is the event's number; the title is the time and the whole text.
 */
#include "src/picture/ladder.h"

#include <inttypes.h>
#include <string.h>

/* In pixels; TIME_COLUMNS in characters, which are a little more than 7 pixels wide. */
#define CHARACTER    7.3
#define LINE	     16
#define ROW_GAP	     6
#define MARGIN	     16
#define TIME_COLUMNS 20
#define HEAD	     40

/* In characters. */
#define GAP_MIN	 40
#define GAP_MAX	 100
#define GAP_MORE 10 /* the part of an arrow without text */

static const char style[] =
	"<style>"
	"svg{background:#fff;color:#1b1b1b}"
	"text{font:12px monospace;fill:currentColor;white-space:pre}"
	".time{fill:#777}.node{font-weight:bold}.rail{stroke:#bbb}"
	".row line{stroke:currentColor;stroke-width:1.3}.row path{fill:currentColor}"
	".row .cross{fill:none;stroke:currentColor;stroke-width:1.6}"
	".row circle{fill:currentColor}"
	".packet{color:#0b6e8a}.completion{color:#1f7a34}.state,.event{color:#8a2f8a}"
	".timer,.fault{color:#8a5a00}.drop,.failure,.failed{color:#b3261e}.lost{color:#8a5a00}"
	"@media(prefers-color-scheme:dark){svg{background:#161616;color:#ddd}.time{fill:#999}"
	".rail{stroke:#555}.packet{color:#4cc3e0}.completion{color:#6fcf7f}"
	".state,.event{color:#d78ad7}.timer,.fault,.lost{color:#e0a84c}"
	".drop,.failure,.failed{color:#ff8a80}}"
	"</style>\n";

struct drawing {
	const struct ladder *ladder;
	FILE *out;
	int gap;    /* characters between two nodes */
	double top; /* of the next row */
};

/* --- text --- */

static void put_character(char c, FILE *out)
{
	switch (c) {
	case '<':
		fputs("&lt;", out);
		break;
	case '>':
		fputs("&gt;", out);
		break;
	case '&':
		fputs("&amp;", out);
		break;
	case '"':
		fputs("&quot;", out);
		break;
	default:
		fputc(c, out);
	}
}

static void put_text(const char *text, size_t bytes, FILE *out)
{
	for (size_t i = 0; i < bytes; i++)
		put_character(text[i], out);
}

/* --- places --- */

/* Returns the x coordinate of a node's vertical line. */
static double rail(const struct drawing *drawing, int node)
{
	return MARGIN + TIME_COLUMNS * CHARACTER + node * drawing->gap * CHARACTER;
}

static double width(const struct drawing *drawing)
{
	const int count = (int)drawing->ladder->node_count;
	/* With one node, its notes need the width of a gap. */
	const int last = count > 1 ? count - 1 : 1;

	return rail(drawing, last) + MARGIN + 4 * CHARACTER;
}

static int pieces_of(const char *text, int columns)
{
	struct piece piece;
	int count = 0;

	while (ladder_piece(&text, columns, &piece))
		count++;
	return count;
}

static int columns_of(const struct drawing *drawing)
{
	return drawing->gap - GAP_MORE;
}

static double height_of(const struct drawing *drawing, const struct row *row)
{
	return pieces_of(row->text, columns_of(drawing)) * LINE + ROW_GAP;
}

/* --- rows --- */

/* Writes the row's text as lines. @anchor is "start" or "end" of a line, which is at x. Returns the y
 * coordinate below the last line. */
static double put_lines(const struct drawing *drawing, const struct row *row, double x,
			const char *anchor)
{
	const char *text = row->text;
	double y = drawing->top;
	struct piece piece;

	while (ladder_piece(&text, columns_of(drawing), &piece)) {
		y += LINE;
		fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y - 4,
			anchor);
		put_text(piece.text, piece.bytes, drawing->out);
		fputs("</text>", drawing->out);
	}
	return y;
}

/* Draws an arrow; that of a lost packet ends with a cross at four fifths of its way. */
static void put_arrow(const struct drawing *drawing, double from, double to, double y, bool lost)
{
	const double ahead = from < to ? 1 : -1;
	const double end = lost ? to - (to - from) / 5 : to;

	fprintf(drawing->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", from, y,
		end - ahead * (lost ? 0 : 6), y);
	if (lost)
		fprintf(drawing->out, "<path class=\"cross\" d=\"M%.1f %.1fl8 8m0 -8l-8 8\"/>",
			end - 4, y - 4);
	else
		fprintf(drawing->out, "<path d=\"M%.1f %.1fl%.1f -4v8z\"/>", end, y, -ahead * 8);
}

/* Draws an arrow with the text above it, on the sender's side. */
static void put_packet(const struct drawing *drawing, const struct row *row)
{
	const double from = rail(drawing, row->node), to = rail(drawing, row->peer);
	const double ahead = from < to ? 1 : -1;
	const double y =
		put_lines(drawing, row, from + ahead * 2 * CHARACTER, from < to ? "start" : "end");

	put_arrow(drawing, from, to, y, row->lost);
}

static void put_note(const struct drawing *drawing, const struct row *row)
{
	const int count = (int)drawing->ladder->node_count;
	const bool leftwards = count > 1 && row->node == count - 1;
	double x = MARGIN + TIME_COLUMNS * CHARACTER;

	if (row->node != LADDER_NOWHERE) {
		x = rail(drawing, row->node);
		fprintf(drawing->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>", x,
			drawing->top + LINE - 8);
	}
	put_lines(drawing, row, x + (leftwards ? -1 : 1) * 1.5 * CHARACTER,
		  leftwards ? "end" : "start");
}

static void put_time(const struct row *row, FILE *out)
{
	if (row->has_time)
		fprintf(out, "%" PRIu64 ".%03u us", row->time_ns / 1000,
			(unsigned int)(row->time_ns % 1000));
}

static void put_row(const struct drawing *drawing, const struct row *row)
{
	FILE *out = drawing->out;

	fprintf(out, "<g class=\"row %s%s\" data-n=\"%" PRIu64 "\"><title>",
		row_kind_name(row->kind),
		row->lost     ? " lost"
		: row->failed ? " failed"
			      : "",
		row->number);
	put_time(row, out);
	fputs("  ", out);
	put_text(row->text, strlen(row->text), out);
	fprintf(out, "</title><text class=\"time\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
		MARGIN + (TIME_COLUMNS - 2) * CHARACTER, drawing->top + LINE - 4);
	put_time(row, out);
	fputs("</text>", out);
	if (row->peer == LADDER_NOWHERE)
		put_note(drawing, row);
	else
		put_packet(drawing, row);
	fputs("</g>\n", out);
}

/* --- the picture --- */

/* Chooses the distance of two nodes, in characters: enough for the longest text, up to GAP_MAX. */
static int choose_gap(const struct ladder *ladder)
{
	int gap = GAP_MIN;

	for (size_t i = 0; i < ladder->row_count; i++) {
		const int wanted = ladder_columns(ladder->rows[i].text) + GAP_MORE;

		if (wanted > gap)
			gap = wanted;
	}
	return gap < GAP_MAX ? gap : GAP_MAX;
}

static void put_rails(const struct drawing *drawing, double height)
{
	for (size_t i = 0; i < drawing->ladder->node_count; i++) {
		const char *name = drawing->ladder->nodes[i];
		const double x = rail(drawing, (int)i);

		fprintf(drawing->out,
			"<text class=\"node\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
			HEAD - 16);
		put_text(name, strlen(name), drawing->out);
		fprintf(drawing->out,
			"</text><line class=\"rail\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" "
			"y2=\"%.1f\"/>\n",
			x, HEAD - 10, x, height - MARGIN);
	}
}

void ladder_print_svg(const struct ladder *ladder, FILE *out)
{
	struct drawing drawing = {ladder, out, choose_gap(ladder), HEAD};
	double height = HEAD + MARGIN;

	for (size_t i = 0; i < ladder->row_count; i++)
		height += height_of(&drawing, &ladder->rows[i]);
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"viewBox=\"0 0 %.0f %.0f\">\n",
		width(&drawing), height, width(&drawing), height);
	fputs(style, out);
	put_rails(&drawing, height);
	for (size_t i = 0; i < ladder->row_count; i++) {
		put_row(&drawing, &ladder->rows[i]);
		drawing.top += height_of(&drawing, &ladder->rows[i]);
	}
	fputs("</svg>\n", out);
}
