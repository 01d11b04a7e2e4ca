/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/say.h"

#include <errno.h>
#include <stdio.h>

static _Thread_local struct vb_why last;
static _Thread_local char text[512]; /* of the reason */
static say_heard_fn *listener;

void say_listen(say_heard_fn *heard)
{
	listener = heard;
}

int say_why(int error, const struct vb_why *why)
{
	last = *why;
	if (why->text) {
		if (why->text != text)
			snprintf(text, sizeof(text), "%s", why->text);
		last.text = text;
	}
	if (listener)
		listener(error, said);
	errno = error;
	return error;
}

const struct vb_why *said(void)
{
	return &last;
}
