/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct vb_why last;
static _Thread_local char sentence[512];
static say_heard_fn *listener;

void say_listen(say_heard_fn *heard)
{
	listener = heard;
}

int say_why(int error, const struct vb_why *why)
{
	last = *why;
	if (why->text) {
		if (why->text != sentence)
			snprintf(sentence, sizeof(sentence), "%s", why->text);
		last.text = sentence;
	}
	if (listener)
		listener(error, said);
	errno = error;
	return error;
}

int say(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	return say_why(error, &(struct vb_why){.reason = VB_WHY_SAID, .text = sentence});
}

const struct vb_why *said(void)
{
	return &last;
}
