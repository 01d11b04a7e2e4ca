/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[512];

int say(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	errno = error;
	return error;
}

const char *said(void)
{
	return sentence;
}
