/* SPDX-License-Identifier: MIT */
/*
 * Prints docs/errors.md from the table of reasons. With --check FILE, compares FILE with what it
 * would print.
 */
#include "docs/gen/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/verbs.h>
#include <verbena/why.h>

static void intro(FILE *out)
{
	fputs("# Reasons\n"
	      "\n"
	      "`docs/gen/errors.c` prints this from `include/verbena/reasons.def`; `scripts/docs`\n"
	      "runs it, and a test fails if this file is stale.\n"
	      "\n"
	      "Each reason says what was found and what to do. A word in angle brackets stands "
	      "for\n"
	      "a value. `vb_last_error()` returns the sentence with its values, "
	      "`vb_last_reason()`\n"
	      "the number.\n",
	      out);
}

/* Prints a text of the table: {4:mask} becomes <mask>. */
static void print_text(FILE *out, const char *text)
{
	while (*text) {
		const size_t plain = strcspn(text, "{");

		fprintf(out, "%.*s", (int)plain, text);
		text += plain;
		if (*text) {
			const char *kind = strchr(text, ':') + 1, *end = strchr(kind, '}');

			fprintf(out, "`<%.*s>`", (int)(end - kind), kind);
			text = end + 1;
		}
	}
}

static void print_reason(FILE *out, const struct vb_reason_info *info)
{
	fprintf(out, "\n### %s\n\n", info->name);
	if (info->error)
		fprintf(out, "%s, number 0x%x.\n", strerrorname_np(info->error),
			(unsigned int)info->reason);
	else if (info->status)
		fprintf(out, "`%s`, number 0x%x.\n",
			vb_wc_status_name((enum ibv_wc_status)info->status),
			(unsigned int)info->reason);
	else
		fprintf(out, "Number 0x%x.\n", (unsigned int)info->reason);
	fputs("\n- Cause: ", out);
	print_text(out, info->cause);
	if (info->remedy[0]) {
		fputs(".\n- Remedy: ", out);
		print_text(out, info->remedy);
	}
	fprintf(out, ".\n- Source: %s.\n", info->source);
}

/* Prints the section of the reasons for which @belongs returns true. */
static void print_section(FILE *out, const char *heading,
			  int (*belongs)(const struct vb_reason_info *info))
{
	const struct vb_reason_info *info;
	bool begun = false;

	for (unsigned int i = 0; (info = vb_reason_at(i)); i++) {
		if (!belongs(info))
			continue;
		if (!begun)
			fprintf(out, "\n## %s\n", heading);
		begun = true;
		print_reason(out, info);
	}
}

static int is_refusal(const struct vb_reason_info *info)
{
	return info->error;
}

static int is_failure(const struct vb_reason_info *info)
{
	return info->status;
}

static int is_loss(const struct vb_reason_info *info)
{
	return !info->error && !info->status && info->reason != VB_WHY_SAID;
}

static char *make(void)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	intro(out);
	print_section(out, "Calls that are refused", is_refusal);
	print_section(out, "Completions that fail", is_failure);
	print_section(out, "Packets that are dropped", is_loss);
	return fclose(out) ? NULL : text;
}

int main(int argc, char **argv)
{
	return page_print(argc, argv, make());
}
