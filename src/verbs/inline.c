/* SPDX-License-Identifier: MIT */
#include "src/verbs/inline.h"

#include "src/base/failure.h"

#include <string.h>
#include <verbena/verbs.h>

int fail_inline(int err, struct ibv_context *context, const char *format, ...)
{
	const struct vb_backend *backend = vb_context_backend(context);
	const char *why = backend && backend->last_error ? backend->last_error() : NULL;
	va_list arguments;

	va_start(arguments, format);
	fail_for(err, why && *why ? why : strerrordesc_np(err), format, arguments);
	va_end(arguments);
	return err;
}
