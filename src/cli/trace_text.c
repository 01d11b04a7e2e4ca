/* SPDX-License-Identifier: MIT */
/*
 * An event as a line for people:
 *
 *	TIME         DEVICE  KIND        QP        what has happened
 *	0.000004096  sim0    packet      0x11      RC SEND_ONLY PSN 5 to 0x12, 64 bytes, ack request
 */
#include "src/cli/trace.h"

#include "src/picture/event.h"

#include <inttypes.h>
#include <string.h>

#define NS_PER_S     UINT64_C(1000000000)
#define DEVICE_WIDTH 5
#define KIND_WIDTH   10
#define QP_WIDTH     8
#define TIME_WIDTH   13

static const char faint[] = "\033[2m", red[] = "\033[31m", plain[] = "\033[0m";

static void print_time(const struct trace_text *text, const json_t *event, FILE *out)
{
	uint64_t ns;

	fputs(text->colour ? faint : "", out);
	if (event_number(json_object_get(event, "t"), &ns))
		fprintf(out, "%*" PRIu64 ".%09" PRIu64, TIME_WIDTH - 10, ns / NS_PER_S,
			ns % NS_PER_S);
	else
		fprintf(out, "%*s", TIME_WIDTH, "");
	fputs(text->colour ? plain : "", out);
}

void trace_print(struct trace_text *text, const json_t *event, FILE *out)
{
	const char *device = event_string(event, "device"), *kind = event_string(event, "kind");
	const bool is_red = text->colour && event_is_failure(event);

	if (text->device_width < DEVICE_WIDTH)
		text->device_width = DEVICE_WIDTH;
	if (text->device_width < (int)strlen(device))
		text->device_width = (int)strlen(device);
	print_time(text, event, out);
	fprintf(out, "  %-*s  %s%-*s  %-*s  ", text->device_width, device, is_red ? red : "",
		KIND_WIDTH, kind, QP_WIDTH, event_string(event, "qp"));
	event_text(event, out);
	fputs(is_red ? plain : "", out);
	fputs("\n", out);
}
