/* SPDX-License-Identifier: MIT */
#include "test/conformance/runner.h"
#include "test/support/completion_watch.h"
#include "test/support/trace_check.h"

#include <stdlib.h>
#include <string.h>

/* How long WRs of a QP in ERR may take to be flushed, in real time. */
#define FLUSH_MS 200

/* The rules of trace_check.h that a test may break, by what its row allows. */
static const struct {
	unsigned int may;
	const char *rules; /* each between blanks */
} allowed[] = {
	/* The checker skips a damaged packet, and misses what the packet said. */
	{VT_MAY_CORRUPT, " frame icrc psn message repeat answer response msn dead "},
	{VT_MAY_CHANGE_DATA, " repeat "},
	/* A NAK names the expected PSN, which nobody sent. */
	{VT_MAY_MISTAKE_PSN, " answer "},
	{VT_MAY_MISADDRESS, " answer "},
	{VT_MAY_RECONNECT, " psn message repeat answer response msn dead "},
};

/* Lists of known failures have "#" for the numbers in a checker's sentence: they follow addresses,
 * QPNs and the order of packets. */
static void find_fault(struct vt_result *result, const char *checker, const char *sentence)
{
	char got[VT_LINE_MAX];
	size_t used = 0;

	while (*sentence && used + 1 < sizeof(got)) {
		bool is_hex = sentence[0] == '0' && sentence[1] == 'x';
		size_t digits = strspn(sentence, is_hex ? "x0123456789abcdef" : "0123456789");

		got[used++] = digits ? '#' : *sentence;
		sentence += digits ? digits : 1;
	}
	got[used] = '\0';
	vt_find(result, checker, got);
}

static void completion_fault(void *arg, const char *sentence)
{
	find_fault(arg, "completions", sentence);
	vt_begin_failure(arg, "completions: %s", sentence);
}

void vt_watch_completions(const char *backend, struct vt_result *result)
{
	completion_watch_begin(vb_backend_slot(backend), completion_fault, result);
}

void vt_settle_completions(const struct vt_result *result)
{
	if (!result->failures && result->outcome == VT_RUNNING)
		completion_watch_settle(FLUSH_MS);
}

void vt_end_completions(void)
{
	completion_watch_end();
}

/* A line of the trace checker is "packet N: rule: ...". */
static bool is_allowed(unsigned int may, const char *line)
{
	char number[16], rule[16], word[20];

	if (sscanf(line, "packet %15[0-9]: %15[a-z]:", number, rule) != 2)
		return false;
	snprintf(word, sizeof(word), " %s ", rule);
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (may & allowed[i].may && strstr(allowed[i].rules, word))
			return true;
	return false;
}

void vt_check_trace(const char *path, unsigned int may, struct vt_result *result)
{
	char *text = NULL, *line, *rest = NULL;
	size_t text_bytes;
	FILE *report = open_memstream(&text, &text_bytes);

	if (!report) {
		vt_begin_failure(result, "trace: %s", strerror(errno));
		return;
	}
	trace_check(path, report);
	fclose(report);
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!is_allowed(may, line)) {
			find_fault(result, "trace", line);
			vt_begin_failure(result, "trace: %s", line);
		}
	free(text);
}
