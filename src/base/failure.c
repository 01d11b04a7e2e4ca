/* SPDX-License-Identifier: MIT */
#include "src/base/failure.h"

#include "src/base/count.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Room for the longest sentence, which lists all backends. */
#define SENTENCE_BYTES 1024

#define TEXT_BYTES 512 /* of a reason */

struct failure {
	int err;
	/* At most one of them is set: the sentence is what explain returns, or that of the reason. */
	const char *(*explain)(void);
	const struct vb_why *(*explain_why)(void);
	struct vb_why why; /* what explain_why returns for a reason of the verbs layer */
	char text[TEXT_BYTES];
	enum vb_reason reason; /* of the sentence */
	char sentence[SENTENCE_BYTES];
};

static _Thread_local struct failure last;

/* The kind of each errno value. All other values are VB_ERROR_DRIVER. */
static const struct {
	int err;
	enum vb_error_kind kind;
} kinds[] = {
	{0, VB_ERROR_NONE},
	{EINVAL, VB_ERROR_INVALID_INPUT},
	{ERANGE, VB_ERROR_INVALID_INPUT},
	{EDOM, VB_ERROR_INVALID_INPUT},
	{EFAULT, VB_ERROR_INVALID_INPUT},
	{EBADF, VB_ERROR_INVALID_INPUT},
	{EBADMSG, VB_ERROR_INVALID_INPUT},
	{EMSGSIZE, VB_ERROR_INVALID_INPUT},
	{EPROTO, VB_ERROR_INVALID_INPUT},
	{EPROTONOSUPPORT, VB_ERROR_INVALID_INPUT},
	{ENOENT, VB_ERROR_INVALID_INPUT},
	{ENODEV, VB_ERROR_INVALID_INPUT},
	{ENODATA, VB_ERROR_INVALID_INPUT},
	{ENOTCONN, VB_ERROR_INVALID_INPUT},
	{EISCONN, VB_ERROR_INVALID_INPUT},
	{EALREADY, VB_ERROR_INVALID_INPUT},
	{ESTALE, VB_ERROR_INVALID_INPUT},
	{ENOMEM, VB_ERROR_RESOURCE},
	{ENOSPC, VB_ERROR_RESOURCE},
	{ENOBUFS, VB_ERROR_RESOURCE},
	{EMFILE, VB_ERROR_RESOURCE},
	{ENFILE, VB_ERROR_RESOURCE},
	{EAGAIN, VB_ERROR_RESOURCE},
	{EBUSY, VB_ERROR_RESOURCE},
	{EDQUOT, VB_ERROR_RESOURCE},
	{EADDRINUSE, VB_ERROR_RESOURCE},
	{EPERM, VB_ERROR_PERMISSION},
	{EACCES, VB_ERROR_PERMISSION},
};

static const char *const kind_names[] = {
	[VB_ERROR_NONE] = "no error",	  [VB_ERROR_INVALID_INPUT] = "invalid input",
	[VB_ERROR_RESOURCE] = "resource", [VB_ERROR_PERMISSION] = "permission",
	[VB_ERROR_DRIVER] = "driver",
};

enum vb_error_kind vb_error_kind(int err)
{
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (kinds[i].err == err)
			return kinds[i].kind;
	return VB_ERROR_DRIVER;
}

const char *vb_error_kind_str(enum vb_error_kind kind)
{
	return kind_names[(size_t)kind < COUNT(kind_names) ? kind : VB_ERROR_NONE];
}

void failure_set_err(int err)
{
	last.err = err;
}

void failure_vsay(const char *format, va_list arguments)
{
	vsnprintf(last.sentence, sizeof(last.sentence), format, arguments);
	last.reason = VB_WHY_SAID;
	failure_ask(NULL);
}

void failure_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	failure_vsay(format, arguments);
	va_end(arguments);
}

void failure_ask(const char *(*explain)(void))
{
	last.explain = explain;
	last.explain_why = NULL;
}

void failure_ask_why(const struct vb_why *(*explain)(void))
{
	last.explain = NULL;
	last.explain_why = explain;
}

static const struct vb_why *own_why(void)
{
	return &last.why;
}

void failure_why(const struct vb_why *why)
{
	last.why = *why;
	if (why->text) {
		snprintf(last.text, sizeof(last.text), "%s", why->text);
		last.why.text = last.text;
	}
	failure_ask_why(own_why);
}

const char *vb_last_error(void)
{
	const char *why = last.explain ? last.explain() : last.sentence;

	if (last.explain_why)
		return vb_why_text(last.explain_why(), last.sentence, sizeof(last.sentence));
	return why ? why : "";
}

const struct vb_why *failure_last_why(void)
{
	return last.explain_why ? last.explain_why() : NULL;
}

enum vb_reason vb_last_reason(void)
{
	if (last.explain_why)
		return last.explain_why()->reason;
	return last.explain ? VB_WHY_SAID : last.reason;
}

enum vb_error_kind vb_last_error_kind(void)
{
	return vb_error_kind(last.err);
}

/* @why may be the present sentence: the new one is complete before it replaces that. */
int fail_for(int err, const char *why, const char *format, va_list arguments)
{
	char text[768];
	char sentence[SENTENCE_BYTES];

	vsnprintf(text, sizeof(text), format, arguments);
	snprintf(sentence, sizeof(sentence), "%s: %s%s%s", vb_error_kind_str(vb_error_kind(err)),
		 text, why ? ": " : "", why ? why : "");
	failure_say("%s", sentence);
	last.err = errno = err;
	return err;
}

int fail(int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	fail_for(err, NULL, format, arguments);
	va_end(arguments);
	return err;
}

/* The present sentence without the kind that it may begin with. */
static const char *last_cause(void)
{
	const char *why = vb_last_error(), *kind = vb_error_kind_str(vb_last_error_kind());
	size_t length = strlen(kind);

	return strncmp(why, kind, length) == 0 && strncmp(why + length, ": ", 2) == 0
		       ? why + length + 2
		       : why;
}

int fail_because(int err, const char *format, ...)
{
	const enum vb_reason reason = vb_last_reason();
	va_list arguments;

	va_start(arguments, format);
	fail_for(err, last_cause(), format, arguments);
	va_end(arguments);
	last.reason = reason;
	return err;
}
