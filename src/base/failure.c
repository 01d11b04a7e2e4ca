/* SPDX-License-Identifier: MIT */
#include "src/base/failure.h"

#include "src/verbs/dispatch.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <verbena/verbs.h>

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define SENTENCE_BYTES 768

/* What is not here is of the driver, the network or the peer. */
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

enum vb_error_kind vb_last_error_kind(void)
{
	return vb_error_kind(dispatch_err());
}

/* why may be the present sentence, so all is put together before it is replaced. */
static int tell(int err, const char *why, const char *format, va_list arguments)
{
	char sentence[SENTENCE_BYTES];
	size_t used;

	used = (size_t)snprintf(sentence, sizeof(sentence),
				"%s: ", vb_error_kind_str(vb_error_kind(err)));
	used += (size_t)vsnprintf(sentence + used, sizeof(sentence) - used, format, arguments);
	if (why && used < sizeof(sentence))
		snprintf(sentence + used, sizeof(sentence) - used, ": %s", why);
	dispatch_fail(err, sentence);
	errno = err;
	return err;
}

int fail(int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	tell(err, NULL, format, arguments);
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
	va_list arguments;

	va_start(arguments, format);
	tell(err, last_cause(), format, arguments);
	va_end(arguments);
	return err;
}

int fail_inline(int err, struct ibv_context *context, const char *format, ...)
{
	const struct vb_backend *backend = vb_context_backend(context);
	const char *why = backend && backend->last_error ? backend->last_error() : NULL;
	va_list arguments;

	va_start(arguments, format);
	tell(err, why && *why ? why : strerrordesc_np(err), format, arguments);
	va_end(arguments);
	return err;
}
