/* SPDX-License-Identifier: MIT */
#include "src/explore/keep.h"

#include "src/parts/merge.h"
#include "src/parts/tail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <verbena/log.h>

#define LOG_VARIABLE   "VERBENA_LOG_LIMIT"
#define TRACE_VARIABLE "VERBENA_TRACE_LIMIT"

#define KEPT_DEFAULT "10000"

static struct vb_limit read_limit(const char *variable)
{
	const char *text = getenv(variable);
	struct vb_limit limit;

	if (!text || !*text || !vb_limit_read(text, &limit))
		vb_limit_read(KEPT_DEFAULT, &limit);
	return limit;
}

struct keep keep_limits(void)
{
	return (struct keep){read_limit(LOG_VARIABLE), read_limit(TRACE_VARIABLE)};
}

static void set_default(const char *variable)
{
	const char *text = getenv(variable);

	if (!text || !*text)
		setenv(variable, KEPT_DEFAULT, 1);
}

void keep_by_programs(void)
{
	set_default(LOG_VARIABLE);
	set_default(TRACE_VARIABLE);
}

void keep_limit_log(void)
{
	const struct vb_limit limit = keep_limits().log;

	vb_log_limit(limit.bytes_max, limit.count_max);
}

void keep_release_log(void)
{
	if (!getenv(LOG_VARIABLE))
		vb_log_limit(0, 0);
}

static int join_trace(const char *path, uint64_t count)
{
	char *whole = realpath(path, NULL), sentence[MERGE_SENTENCE_BYTES];
	uint64_t left_out;
	int err = whole ? merge_parts(whole, sentence) : 0;

	if (err)
		fprintf(stderr, "verbena: the parts of the trace %s are not joined: %s\n", path,
			sentence);
	else if (whole && count)
		err = tail_capture(whole, count, &left_out);
	free(whole);
	return err;
}

/* Less than a log and a trace need to grow. */
#define ROOM_BYTES 65536

/* The output of the run, where the process says that the disk is full, is on the same disk. */
static bool is_disk_full(const char *path)
{
	struct statvfs room;

	return !statvfs(path, &room) && room.f_blocks &&
	       (uint64_t)room.f_bavail * room.f_frsize < ROOM_BYTES;
}

struct kept keep_files(const char *log, const char *trace, uint64_t packets)
{
	const struct keep keep = keep_limits();
	/* Joining may make room. */
	struct kept kept = {.disk_full =
				    (trace && is_disk_full(trace)) || (log && is_disk_full(log))};
	int err = log && !access(log, F_OK) ? tail_join_log(log, keep.log.count_max, &kept.events)
					    : 0;

	if (err)
		fprintf(stderr, "verbena: the halves of the log %s are not joined: %s\n", log,
			strerror(err));
	if (!trace || access(trace, F_OK))
		return kept;
	if (join_trace(trace, keep.trace.count_max))
		return kept;
	if (!kept.disk_full && keep.trace.count_max && packets > keep.trace.count_max)
		kept.packets = keep.trace.count_max;
	return kept;
}
