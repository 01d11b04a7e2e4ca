/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"

#include <ctype.h>
#include <string.h>

/* XML 1.0 has no control characters, and the output of a test need not be UTF-8. */
static void put_xml(FILE *file, const char *text)
{
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '<')
			fputs("&lt;", file);
		else if (c == '>')
			fputs("&gt;", file);
		else if (c == '&')
			fputs("&amp;", file);
		else if (c == '"')
			fputs("&quot;", file);
		else if (c == '\n')
			fputs("&#10;", file);
		else if (c == '\t')
			fputs("&#9;", file);
		else
			fputc(isprint(c) && isascii(c) ? c : '?', file);
	}
}

static void put_element(FILE *file, const char *name, const char *text)
{
	fprintf(file, "      <%s>", name);
	put_xml(file, text);
	fprintf(file, "</%s>\n", name);
}

static void put_case(FILE *file, const struct vt_record *record)
{
	char first[VT_LINE_MAX];

	fprintf(file, "    <testcase classname=\"%s\" name=\"%s\" time=\"%.6f\">\n",
		record->suite->name, record->test->name, record->seconds);
	if (record->outcome == VT_SKIPPED) {
		fprintf(file, "      <skipped message=\"");
		put_xml(file, record->text);
		fprintf(file, "\"/>\n");
	} else if (record->outcome == VT_KNOWN) {
		fprintf(file, "      <skipped message=\"known to fail: %s\"/>\n", record->quirks);
	} else if (record->outcome == VT_FAILED) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(record->text, "\n"),
			 record->text);
		fprintf(file, "      <failure message=\"");
		put_xml(file, first);
		fprintf(file, "\">");
		put_xml(file, record->text);
		fprintf(file, "</failure>\n");
	}
	if (record->output[0])
		put_element(file, "system-out", record->output);
	fprintf(file, "    </testcase>\n");
}

static void put_counts(FILE *file, const struct vt_record *records, unsigned int count)
{
	unsigned int failed = 0, skipped = 0;
	double seconds = 0;

	for (unsigned int i = 0; i < count; i++) {
		failed += records[i].outcome == VT_FAILED;
		skipped += records[i].outcome == VT_SKIPPED || records[i].outcome == VT_KNOWN;
		seconds += records[i].seconds;
	}
	fprintf(file, "tests=\"%u\" failures=\"%u\" errors=\"0\" skipped=\"%u\" time=\"%.6f\"",
		count, failed, skipped, seconds);
}

static void put_suites(FILE *file, const struct vt_options *options,
		       const struct vt_record *records, unsigned int count)
{
	unsigned int first = 0, end;

	fprintf(file, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"verbena\" ");
	put_counts(file, records, count);
	fprintf(file, ">\n");
	for (; first < count; first = end) {
		for (end = first; end < count && records[end].suite == records[first].suite; end++)
			;
		fprintf(file, "  <testsuite name=\"%s\" ", records[first].suite->name);
		put_counts(file, records + first, end - first);
		fprintf(file,
			">\n    <properties>\n      <property name=\"seed\" value=\"%llu\"/>\n"
			"      <property name=\"backend\" value=\"%s\"/>\n    </properties>\n",
			(unsigned long long)options->seed, options->backend);
		for (unsigned int i = first; i < end; i++)
			put_case(file, &records[i]);
		fprintf(file, "  </testsuite>\n");
	}
	fprintf(file, "</testsuites>\n");
}

bool vt_write_junit(FILE *file, const struct vt_options *options, const struct vt_record *records,
		    unsigned int count)
{
	bool failed;

	errno = 0;
	put_suites(file, options, records, count);
	failed = ferror(file);
	failed |= fclose(file) != 0;
	if (failed)
		fprintf(stderr, "verbena test: --junit %s: %s\n", options->junit,
			strerror(errno ? errno : EIO));
	return !failed;
}
