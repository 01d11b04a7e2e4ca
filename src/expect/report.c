/* SPDX-License-Identifier: MIT */
#include "src/expect/report.h"

#include "src/base/count.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMEOUT_NS UINT64_C(10000000000)

static _Thread_local struct {
	char text[8192];
	size_t used;
} message;

static struct {
	vb_expect_failed_fn *fn;
	void *arg;
	uint64_t timeout_ns;
} settings;

void vb_expect_set_handler(vb_expect_failed_fn *fn, void *arg)
{
	settings.fn = fn;
	settings.arg = arg;
}

void vb_expect_set_timeout(uint64_t timeout_ns)
{
	settings.timeout_ns = timeout_ns;
}

uint64_t expect_timeout_ns(void)
{
	return settings.timeout_ns ? settings.timeout_ns : TIMEOUT_NS;
}

void expect_begin_message(void)
{
	message.used = 0;
	message.text[0] = '\0';
}

static void say(const char *format, va_list arguments)
{
	const size_t room = sizeof(message.text) - message.used;
	int length = vsnprintf(message.text + message.used, room, format, arguments);

	if (length > 0)
		message.used += (size_t)length < room ? (size_t)length : room - 1;
}

void expect_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

bool expect_fail(struct expect_place place)
{
	if (settings.fn) {
		settings.fn(settings.arg, place.file, place.line, message.text);
		return false;
	}
	fprintf(stderr, "%s:%d: %s\n", place.file, place.line, message.text);
	abort();
}

bool expect_fail_with(struct expect_place place, const char *format, ...)
{
	va_list arguments;

	expect_begin_message();
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	return expect_fail(place);
}

void expect_say_time(uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};
	size_t i = 0;

	while (i < COUNT(units) - 1 && ns < units[i].ns)
		i++;
	expect_say("%.12g %s", (double)ns / (double)units[i].ns, units[i].name);
}
