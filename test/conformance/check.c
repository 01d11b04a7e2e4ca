/* SPDX-License-Identifier: MIT */
#include "test/conformance/result.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <verbena/error.h>

static void add_line(struct vt_result *result, const char *fmt, va_list args)
{
	size_t room = sizeof(result->text) - result->text_bytes;
	int used = vsnprintf(result->text + result->text_bytes, room, fmt, args);

	if (used < 0 || (size_t)used + 1 >= room) {
		result->text[result->text_bytes] = '\0';
		return;
	}
	result->text_bytes += used;
	memcpy(result->text + result->text_bytes++, "\n", 2);
}

void vt_result_line(struct vt_result *result, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	add_line(result, fmt, args);
	va_end(args);
}

/* Writes "check => got" in one line. */
static void name_found(char *what, const char *check, const char *got)
{
	snprintf(what, VT_LINE_MAX, "%s%s%s", check, got[0] ? " => " : "", got);
	for (char *c = what; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
}

void vt_find(struct vt_result *result, const char *check, const char *got)
{
	char what[VT_LINE_MAX];
	unsigned int at = 0;

	name_found(what, check, got);
	while (at < result->found_count && strcmp(result->found[at].what, what) != 0)
		at++;
	if (at == VT_FOUND_MAX) {
		snprintf(result->found[--at].what, VT_LINE_MAX, "more checks");
	} else if (at == result->found_count) {
		memcpy(result->found[at].what, what, sizeof(what));
		result->found_count++;
	}
	result->found[at].count++;
}

bool vt_begin_failure(struct vt_result *result, const char *fmt, ...)
{
	va_list args;

	if (++result->failures > VT_FAILURES_SHOWN_MAX)
		return false;
	va_start(args, fmt);
	add_line(result, fmt, args);
	va_end(args);
	if (result->row[0] && !result->ending)
		vt_result_line(result, "    row:    %s", result->row);
	return true;
}

/* The path from the top folder: __FILE__ is a path from the folder of the build. */
static const char *from_top(const char *file)
{
	const char *top = file;

	for (const char *next = file; (next = strstr(next, "/test/")); next++)
		top = next + 1;
	return top;
}

static bool begin(struct vt *t, struct vt_at at, const char *expr, const char *got)
{
	vt_find(t->run->result, expr, got);
	return vt_begin_failure(t->run->result, "%s:%d: %s%s", from_top(at.file), at.line, expr,
				t->run->result->ending ? " (cleaning up)" : "");
}

static bool end(struct vt *t, struct vt_at at)
{
	if (at.ends)
		longjmp(t->run->end, 1);
	return false;
}

static void got_wanted(struct vt *t, const char *got, const char *want)
{
	vt_result_line(t->run->result, "    got:    %s", got);
	vt_result_line(t->run->result, "    wanted: %s", want);
}

static void name_errno(int error, char *text, size_t size_bytes)
{
	snprintf(text, size_bytes, "%s (%d)", vt_errno_name(error), error);
}

bool vt_check(struct vt *t, struct vt_at at, const char *expr, bool holds)
{
	if (holds)
		return true;
	if (begin(t, at, expr, ""))
		vt_result_line(t->run->result, "    does not hold");
	return end(t, at);
}

static void name_value(enum vt_kind kind, long long value, char *text, size_t size_bytes)
{
	switch (kind) {
	case VT_KIND_STATUS:
		snprintf(text, size_bytes, "%s (%lld)", vt_wc_status_name(value), value);
		break;
	case VT_KIND_STATE:
		snprintf(text, size_bytes, "%s (%lld)", vt_qp_state_name(value), value);
		break;
	case VT_KIND_EVENT:
		snprintf(text, size_bytes, "%s (%lld)", vt_event_name(value), value);
		break;
	case VT_KIND_ERRNO:
		name_errno(value, text, size_bytes);
		break;
	default:
		if (value < 0 || value > 9)
			snprintf(text, size_bytes, "%lld (0x%llx)", value, value);
		else
			snprintf(text, size_bytes, "%lld", value);
	}
}

bool vt_eq(struct vt *t, struct vt_at at, enum vt_kind kind, const char *expr, long long got,
	   long long want)
{
	char got_text[96], want_text[96];
	const char *sentence = kind == VT_KIND_ERRNO && got ? vb_last_error() : "";

	if (got == want)
		return true;
	name_value(kind, got, got_text, sizeof(got_text));
	if (begin(t, at, expr, got_text)) {
		name_value(kind, want, want_text, sizeof(want_text));
		got_wanted(t, got_text, want_text);
		if (sentence[0])
			vt_result_line(t->run->result, "    says:   %s", sentence);
	}
	return end(t, at);
}

bool vt_eq_str(struct vt *t, struct vt_at at, const char *expr, const char *got, const char *want)
{
	if (got && want ? !strcmp(got, want) : got == want)
		return true;
	if (begin(t, at, expr, got ? got : "NULL"))
		got_wanted(t, got ? got : "NULL", want ? want : "NULL");
	return end(t, at);
}

static void hex(const uint8_t *bytes, size_t length, char *text)
{
	for (size_t i = 0; i < length; i++)
		text += sprintf(text, "%s%02x", i ? " " : "", bytes[i]);
}

bool vt_eq_mem(struct vt *t, struct vt_at at, const char *expr, const void *got, const void *want,
	       size_t length_bytes)
{
	const uint8_t *g = got, *w = want;
	size_t first = 0, shown, bad = 0;
	char got_text[64], want_text[64];

	while (first < length_bytes && g[first] == w[first])
		first++;
	if (first == length_bytes)
		return true;
	shown = length_bytes - first < 16 ? length_bytes - first : 16;
	hex(g + first, shown, got_text);
	if (begin(t, at, expr, got_text)) {
		for (size_t i = first; i < length_bytes; i++)
			bad += g[i] != w[i];
		hex(w + first, shown, want_text);
		got_wanted(t, got_text, want_text);
		vt_result_line(t->run->result, "    from byte %zu of %zu; %zu differ", first,
			       length_bytes, bad);
	}
	return end(t, at);
}

/* Begins a failure with what a verb returned, its errno, and the sentence of vb_last_error(). */
static void returned(struct vt *t, struct vt_at at, const char *expr, const char *got, int error,
		     const char *want)
{
	char name[64], text[160];

	name_errno(error, name, sizeof(name));
	snprintf(text, sizeof(text), "%s%s%s", got, error ? ", errno " : "", error ? name : "");
	if (!begin(t, at, expr, text))
		return;
	got_wanted(t, text, want);
	if (vb_last_error()[0])
		vt_result_line(t->run->result, "    says:   %s", vb_last_error());
}

bool vt_ok(struct vt *t, struct vt_at at, const char *expr, int got, int error)
{
	char text[64];

	if (!got)
		return true;
	if (got > 0)
		name_errno(got, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%d", got);
	returned(t, at, expr, text, got < 0 ? error : 0, "0");
	return end(t, at);
}

bool vt_minus_errno(struct vt *t, struct vt_at at, const char *expr, int got, int error, int want)
{
	char text[64], want_text[96];

	if (got == -1 && error == want)
		return true;
	snprintf(text, sizeof(text), "%d", got);
	snprintf(want_text, sizeof(want_text), "-1, errno %s (%d)", vt_errno_name(want), want);
	returned(t, at, expr, text, error, want_text);
	return end(t, at);
}

bool vt_null_errno(struct vt *t, struct vt_at at, const char *expr, const void *got, int error,
		   int want)
{
	char want_text[96];

	if (!got && error == want)
		return true;
	snprintf(want_text, sizeof(want_text), "NULL, errno %s (%d)", vt_errno_name(want), want);
	returned(t, at, expr, got ? "an object" : "NULL", error, want_text);
	return end(t, at);
}

void vt_no_object(struct vt *t, struct vt_at at, const char *expr, int error)
{
	returned(t, at, expr, "NULL", error, "an object");
	longjmp(t->run->end, 1);
}

void vt_fail(struct vt *t, struct vt_at at, const char *fmt, ...)
{
	char text[VT_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	begin(t, at, text, "");
	longjmp(t->run->end, 1);
}

void vt_skip(struct vt *t, const char *fmt, ...)
{
	struct vt_result *result = t->run->result;
	va_list args;

	va_start(args, fmt);
	vsnprintf(result->reason, sizeof(result->reason), fmt, args);
	va_end(args);
	result->outcome = VT_SKIPPED;
	longjmp(t->run->end, 1);
}

void vt_row(struct vt *t, const char *fmt, ...)
{
	struct vt_result *result = t->run->result;
	va_list args;

	result->row[0] = '\0';
	if (!fmt)
		return;
	va_start(args, fmt);
	vsnprintf(result->row, sizeof(result->row), fmt, args);
	va_end(args);
}

void vt_note(struct vt *t, const char *fmt, ...)
{
	char text[VT_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	vt_result_line(t->run->result, "    note:   %s", text);
}
