/* SPDX-License-Identifier: MIT */
#include "src/verbs/inline.h"

#include "src/base/failure.h"

#include <string.h>
#include <verbena/verbs.h>

/* A backend without `listen` does not see inline verbs, and its last reason is of another verb. */
static const char *sentence_of(const struct vb_backend *backend, char *text, size_t size_bytes)
{
	return backend->listen && backend->last_why
		       ? vb_why_text(backend->last_why(), text, size_bytes)
		       : NULL;
}

int fail_inline(int err, struct ibv_context *context, const char *format, ...)
{
	char text[512];
	const struct vb_backend *backend = vb_context_backend(context);
	const char *why = backend ? sentence_of(backend, text, sizeof(text)) : NULL;
	va_list arguments;

	va_start(arguments, format);
	fail_for(err, why && *why ? why : strerrordesc_np(err), format, arguments);
	va_end(arguments);
	return err;
}
