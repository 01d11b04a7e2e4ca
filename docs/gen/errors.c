/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/errors.md from the table of reasons: the reasons by subject, and an index of their
 * names. With --check FILE, compares FILE with what it would print.
 */
#include "docs/gen/page.h"
#include "src/base/count.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>
#include <verbena/why.h>

/* A row of reasons.def: the title of a group, or a reason. */
struct row {
	const char *title; /* NULL: a reason */
	enum vb_reason reason;
};

static const struct row rows[] = {
#define VB_REASON_GROUP(title)			       {title, VB_WHY_NONE},
#define VB_REASON(number, name, cause, remedy, source) {NULL, VB_WHY_##name},
#include <verbena/reasons.def>
};

/* The kinds of reasons, by their numbers. */
static const struct part {
	unsigned int first, last;
	const char *heading, *about;
} parts[] = {
	{0x1000, 0x1fff, "Calls that are refused",
	 "A verb or a function of Verbena fails with the errno value, and changes nothing."},
	{0x0001, 0x0fff, "Completions that fail",
	 "A completion has the status. The number is its `vendor_err`, unless the device's profile "
	 "has\nmeasured values."},
	{0x2000, 0x2fff, "Packets that are dropped",
	 "No status tells it; the counters of the port do."},
};

/* What stands for a value of each kind. */
static const struct {
	const char *kind, *words;
} values[] = {
	{"d", "number"},
	{"x", "number"},
	{"bytes", "length"},
	{"ns", "duration"},
	{"mtu", "MTU"},
	{"state", "QP state"},
	{"type", "QP type"},
	{"mask", "attributes"},
	{"access", "access flags"},
	{"flags", "send flags"},
	{"wr", "opcode"},
	{"status", "status"},
	{"gid", "GID"},
	{"errno", "errno"},
	{"qpinit", "bits"},
	{"create", "create flags"},
	{"ops", "operations"},
	{"open", "bits"},
	{"srqinit", "bits"},
	{"cap", "device_cap_flags"},
	{"wc_flags", "wc_flags"},
	{"text", "name"},
};

static bool is_of(const struct part *part, enum vb_reason reason)
{
	return reason != VB_WHY_SAID && reason >= part->first && reason <= part->last;
}

/* --- texts --- */

static const char *words_of(const char *kind, size_t length)
{
	for (size_t i = 0; i < COUNT(values); i++)
		if (strlen(values[i].kind) == length && !strncmp(values[i].kind, kind, length))
			return values[i].words;
	return "value";
}

static void print_placeholder(FILE *out, const char *kind, size_t length)
{
	const size_t counted = strlen("n ");

	if (!strncmp(kind, "n ", counted))
		fprintf(out, "`<number>` %.*ss", (int)(length - counted), kind + counted);
	else
		fprintf(out, "`<%s>`", words_of(kind, length));
}

/* Prints a text of the table: {4:mask} becomes `<attributes>`, and < is itself. */
static void print_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '{') {
			const char *kind = strchr(text, ':') + 1, *end = strchr(kind, '}');

			print_placeholder(out, kind, (size_t)(end - kind));
			text = end;
		} else {
			if (*text == '<')
				putc('\\', out);
			putc(*text, out);
		}
	}
}

/* Prints the name by which links find a heading. */
static void print_anchor(FILE *out, const char *heading)
{
	for (; *heading; heading++) {
		if (*heading == ' ')
			putc('-', out);
		else if (isalnum((unsigned char)*heading) || strchr("_-", *heading))
			putc(tolower((unsigned char)*heading), out);
	}
}

static void print_link(FILE *out, const char *heading)
{
	fprintf(out, "[%s](#", heading);
	print_anchor(out, heading);
	putc(')', out);
}

/* Prints the errno value or the status that the program gets. */
static void print_answer(FILE *out, const struct vb_reason_info *info)
{
	if (info->error)
		fprintf(out, "`%s`", strerrorname_np(info->error));
	else if (is_of(&parts[1], info->reason))
		fprintf(out, "`%s`", vb_wc_status_name((enum ibv_wc_status)info->status));
	else if (is_of(&parts[0], info->reason))
		fputs("the errno of the cause", out);
	else
		fputs("-", out);
}

/* --- the reasons --- */

static void print_reason(FILE *out, const struct vb_reason_info *info)
{
	fprintf(out, "\n#### %s\n\n`0x%04x`", info->name, (unsigned int)info->reason);
	if (!is_of(&parts[2], info->reason)) {
		fputs(" · ", out);
		print_answer(out, info);
	}
	fputs("\n\n- **Cause:** ", out);
	print_text(out, info->cause);
	fputs(".\n- **Remedy:** ", out);
	print_text(out, info->remedy);
	fputs(".\n- **Source:** ", out);
	print_text(out, info->source);
	fputs(".\n", out);
}

/* Returns true if the group whose title is at @at has reasons of the part. */
static bool has_reasons(const struct part *part, size_t at)
{
	for (at++; at < COUNT(rows) && !rows[at].title; at++)
		if (is_of(part, rows[at].reason))
			return true;
	return false;
}

static void print_part(FILE *out, const struct part *part)
{
	bool begun = false;

	for (size_t i = 0; i < COUNT(rows); i++) {
		if (rows[i].title && has_reasons(part, i)) {
			if (!begun)
				fprintf(out, "\n## %s\n\n%s\n", part->heading, part->about);
			begun = true;
			fprintf(out, "\n### %s\n", rows[i].title);
		} else if (is_of(part, rows[i].reason)) {
			print_reason(out, vb_reason_info(rows[i].reason));
		}
	}
}

/* --- the lists --- */

static void print_contents(FILE *out)
{
	for (size_t p = 0; p < COUNT(parts); p++) {
		bool begun = false;

		for (size_t i = 0; i < COUNT(rows); i++) {
			if (!rows[i].title || !has_reasons(&parts[p], i))
				continue;
			if (!begun) {
				fputs("- ", out);
				print_link(out, parts[p].heading);
				putc('\n', out);
			}
			begun = true;
			fputs("  - ", out);
			print_link(out, rows[i].title);
			putc('\n', out);
		}
	}
	fputs("- [Index](#index)\n", out);
}

struct entry {
	const struct vb_reason_info *info;
};

static int compare_names(const void *a, const void *b)
{
	const struct entry *first = a, *second = b;

	return strcmp(first->info->name, second->info->name);
}

static void print_index(FILE *out)
{
	const struct vb_reason_info *info;
	struct entry sorted[COUNT(rows)];
	size_t count = 0;

	for (unsigned int i = 0; (info = vb_reason_at(i)); i++)
		if (info->reason != VB_WHY_SAID)
			sorted[count++].info = info;
	qsort(sorted, count, sizeof(sorted[0]), compare_names);
	fputs("\n## Index\n\n| reason | number | errno or status |\n| --- | --- | --- |\n", out);
	for (size_t i = 0; i < count; i++) {
		fputs("| ", out);
		print_link(out, sorted[i].info->name);
		fprintf(out, " | `0x%04x` | ", (unsigned int)sorted[i].info->reason);
		print_answer(out, sorted[i].info);
		fputs(" |\n", out);
	}
}

static void intro(FILE *out)
{
	fputs("# Reasons\n"
	      "\n"
	      "`docs/gen/errors.c` prints this from `include/verbena/reasons.def`; `scripts/docs`\n"
	      "runs it, and a test fails if this file is stale.\n"
	      "\n"
	      "Each reason says what was found, what to do, and where the rule stands. Words in\n"
	      "angle brackets stand for a value. `vb_last_error()` returns the sentence with its\n"
	      "values, such as\n"
	      "\n"
	      "    modify_qp: QP 0x11 (RC): INIT to RTR needs IBV_QP_DEST_QPN; set the "
	      "attributes, ...\n"
	      "\n"
	      "and `vb_last_reason()` returns the number. A number never changes its meaning. A\n"
	      "failure whose sentence comes from elsewhere, such as a project file, has the "
	      "reason\n"
	      "`SAID`, `0x1fff`.\n"
	      "\n",
	      out);
}

static char *make(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	intro(out);
	print_contents(out);
	for (size_t i = 0; i < COUNT(parts); i++)
		print_part(out, &parts[i]);
	print_index(out);
	return fclose(out) ? NULL : text;
}

int main(int argc, char **argv)
{
	return page_print(argc, argv, make());
}
