/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char sentence[512];

static void keep(const char *format, va_list args)
{
	vsnprintf(sentence, sizeof(sentence), format, args);
}

int say(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(format, args);
	va_end(args);
	return error;
}

void *say_null(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(format, args);
	va_end(args);
	errno = error;
	return NULL;
}

int say_minus(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(format, args);
	va_end(args);
	errno = error;
	return -1;
}

const char *said(void)
{
	return sentence;
}
