/* SPDX-License-Identifier: MIT */
#include "runner.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

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

/* From the top folder: the build tells the compiler a path from its own directory. */
static const char *from_top(const char *file)
{
	const char *top = file;

	for (const char *next = file; (next = strstr(next, "/test/")); next++)
		top = next + 1;
	return top;
}

/* Counts the failure and begins its text; false where enough have been shown. */
static bool begin(struct vt *t, struct vt_at at, const char *expr)
{
	struct vt_result *result = t->run->result;

	if (++result->failures > VT_FAILURES_SHOWN_MAX)
		return false;
	vt_result_line(result, "%s:%d: %s%s", from_top(at.file), at.line, expr,
		       result->ending ? " (cleaning up)" : "");
	if (result->row[0])
		vt_result_line(result, "    row:    %s", result->row);
	return true;
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
	if (begin(t, at, expr))
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
	if (begin(t, at, expr)) {
		name_value(kind, got, got_text, sizeof(got_text));
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
	if (begin(t, at, expr))
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
	if (begin(t, at, expr)) {
		for (size_t i = first; i < length_bytes; i++)
			bad += g[i] != w[i];
		shown = length_bytes - first < 16 ? length_bytes - first : 16;
		hex(g + first, shown, got_text);
		hex(w + first, shown, want_text);
		got_wanted(t, got_text, want_text);
		vt_result_line(t->run->result, "    from byte %zu of %zu; %zu differ", first,
			       length_bytes, bad);
	}
	return end(t, at);
}

/* A verb that failed: what it returned, errno, and its sentence. */
static void returned(struct vt *t, const char *got, int error, const char *want)
{
	char name[64];

	name_errno(error, name, sizeof(name));
	vt_result_line(t->run->result, "    got:    %s%s%s", got, error ? ", errno " : "",
		       error ? name : "");
	vt_result_line(t->run->result, "    wanted: %s", want);
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
	if (begin(t, at, expr))
		returned(t, text, got < 0 ? error : 0, "0");
	return end(t, at);
}

bool vt_minus_errno(struct vt *t, struct vt_at at, const char *expr, int got, int error, int want)
{
	char text[64], want_text[96];

	if (got == -1 && error == want)
		return true;
	snprintf(text, sizeof(text), "%d", got);
	snprintf(want_text, sizeof(want_text), "-1, errno %s (%d)", vt_errno_name(want), want);
	if (begin(t, at, expr))
		returned(t, text, error, want_text);
	return end(t, at);
}

bool vt_null_errno(struct vt *t, struct vt_at at, const char *expr, const void *got, int error,
		   int want)
{
	char want_text[96];

	if (!got && error == want)
		return true;
	snprintf(want_text, sizeof(want_text), "NULL, errno %s (%d)", vt_errno_name(want), want);
	if (begin(t, at, expr))
		returned(t, got ? "an object" : "NULL", error, want_text);
	return end(t, at);
}

void vt_no_object(struct vt *t, struct vt_at at, const char *expr, int error)
{
	if (begin(t, at, expr))
		returned(t, "NULL", error, "an object");
	longjmp(t->run->end, 1);
}

void vt_fail(struct vt *t, struct vt_at at, const char *fmt, ...)
{
	char text[VT_LINE_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	begin(t, at, text);
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

void vt_defer(struct vt *t, void (*fn)(void *arg), void *arg)
{
	struct vt_deferred *deferred = malloc(sizeof(*deferred));

	if (!deferred) {
		fn(arg);
		VT_FAIL(t, "no memory");
	}
	*deferred = (struct vt_deferred){t->run->deferred, fn, arg};
	t->run->deferred = deferred;
}

void *vt_alloc(struct vt *t, size_t length_bytes)
{
	void *memory = calloc(1, length_bytes ? length_bytes : 1);

	if (!memory)
		VT_FAIL(t, "no memory for %zu bytes", length_bytes);
	vt_defer(t, free, memory);
	return memory;
}

/* splitmix64, by Sebastiano Vigna, public domain: https://prng.di.unimi.it/splitmix64.c */
uint64_t vt_random(struct vt *t)
{
	uint64_t z = t->run->random += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

uint64_t vt_random_below(struct vt *t, uint64_t limit)
{
	return vt_random(t) % limit;
}

void vt_random_fill(struct vt *t, void *buffer, size_t length_bytes)
{
	uint8_t *bytes = buffer;
	uint64_t value;

	for (size_t i = 0; i < length_bytes; i += sizeof(value)) {
		value = vt_random(t);
		memcpy(bytes + i, &value,
		       length_bytes - i < sizeof(value) ? length_bytes - i : sizeof(value));
	}
}

const char *vt_wc_status_name(int status)
{
	return vb_wc_status_name((enum ibv_wc_status)status);
}

const char *vt_qp_state_name(int state)
{
	return vb_qp_state_name((enum ibv_qp_state)state);
}

const char *vt_event_name(int event)
{
	return vb_event_type_name((enum ibv_event_type)event);
}

const char *vt_errno_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "unknown";
}
