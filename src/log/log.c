/* SPDX-License-Identifier: MIT */
/* The event log of the process: its file, vb_log_open(), vb_log_close() and VERBENA_LOG. */
#include "src/log/log.h"

#include "src/base/failure.h"
#include "src/base/limit.h"
#include "src/base/path.h"
#include "src/layer/watch.h"
#include "src/log/file.h"
#include "src/log/source.h"
#include "src/parts/tail.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <verbena/log.h>

#define VARIABLE       "VERBENA_LOG"
#define LIMIT_VARIABLE "VERBENA_LOG_LIMIT"
#define CLOCK_VARIABLE "VERBENA_CLOCK"
#define NS_PER_S       UINT64_C(1000000000)
#define STAMP_BYTES    64
#define SENTENCE_BYTES (PATH_MAX + 256)

enum phase {
	CLOSED,	 /* no events are taken */
	WAITING, /* the first event opens the file */
	OPEN,	 /* events go to the file */
	FULL,	 /* the file cannot grow: events are counted */
	REFUSED, /* there is no file: events are ignored */
};

/* All of these belong to the lock. No other lock is taken while it is held. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static enum phase phase;
static struct log_file file;
static uint64_t number;		      /* of the last event */
static uint64_t lost;		      /* counts the events that are not in the file */
static char path_given[PATH_MAX + 1]; /* with "%p" */
static char path_now[PATH_MAX + 1];
static struct vb_limit limit; /* of logs that are opened */

/* Only vb_log_open(), vb_log_close() and the start of the process change these. */
static bool has_source;
static uint64_t started_ns;	/* when the log began: on CLOCK_MONOTONIC, */
static uint64_t started_utc_ns; /* and since 1970 */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t log_started_ns(void)
{
	return started_ns;
}

/* --- sentences --- */

/* The causes that have a remedy of their own. */
static const struct {
	int err;
	const char *remedy;
} remedies[] = {
	{ENODEV, "name a regular file on a local disk, since the log maps its file into memory"},
	{EBUSY, "another process writes its log there: give each process a file by %p in the name"},
	{EISDIR, "name a file in the directory"},
	{ENOENT, "make the directory of the file"},
	{ENOSPC, "make room, or name a file on another disk"},
	{EDQUOT, "make room, or name a file on another disk"},
	{EFBIG, "raise the limit of the size of files (ulimit -f)"},
	{0, "name a file that this process may write"},
};

static void say(int err, char sentence[SENTENCE_BYTES])
{
	unsigned int i = 0;

	while (remedies[i].err && remedies[i].err != err)
		i++;
	snprintf(sentence, SENTENCE_BYTES, "log %s: %s; %s", path_now, strerror(err),
		 remedies[i].remedy);
}

/* For failures while the program runs, which no function can return. */
static void complain(int err, const char *what_follows)
{
	char sentence[SENTENCE_BYTES];

	say(err, sentence);
	fprintf(stderr, "verbena: %s; %s\n", sentence, what_follows);
}

/* --- the file; the caller holds the lock, and cannot be cancelled --- */

/* Adds a line. Sets record->number for it before. */
static void add_line(const struct vb_event *event, struct record *record)
{
	struct line line = {0};

	line.at = log_file_room(&file, RECORD_BYTES_MAX, &line.end);
	/* Where a long list is cut does not depend on the file. */
	if (line.end - line.at > RECORD_BYTES_MAX)
		line.end = line.at + RECORD_BYTES_MAX;
	record_write(&line, event, record);
	if (!line.cut) {
		log_file_commit(&file, line.at);
		number = record->number;
		return;
	}
	lost++;
	if (!file.err)
		return;
	phase = FULL;
	complain(file.err, "the log ends here, the program continues");
}

/* On the virtual clock, two logs of the same run have the same bytes. */
static bool is_to_repeat(void)
{
	const char *clock = getenv(CLOCK_VARIABLE);

	return clock && strcmp(clock, "virtual") == 0;
}

static void write_head(void)
{
	const time_t started_s = (time_t)(started_utc_ns / NS_PER_S);
	char day[STAMP_BYTES], started[2 * STAMP_BYTES];
	struct record record = {.no_time = true};
	struct vb_event head = {
		.kind = VB_EVENT_LOG,
		.values = {VB_LOG_SCHEMA, (uint64_t)getpid(), started_ns},
		.texts = {VERBENA_VERSION, program_invocation_name, started, "device"},
	};
	struct tm utc;

	strftime(day, sizeof(day), "%Y-%m-%dT%H:%M:%S", gmtime_r(&started_s, &utc));
	snprintf(started, sizeof(started), "%s.%09" PRIu64 "Z", day, started_utc_ns % NS_PER_S);
	if (is_to_repeat()) {
		head.absent = 1u << 1 | 1u << 2; /* pid, monotonic_ns */
		head.texts[2] = NULL;		 /* started */
	}
	add_line(&head, &record);
	file.lines = 0;
}

/* Writes the first lines of a segment behind the event of that number. */
static void write_heads(uint64_t last)
{
	const struct vb_event left_out = {.kind = VB_EVENT_LEFT_OUT, .values = {last}};
	struct record record = {.number = last, .no_time = true};

	write_head();
	add_line(&left_out, &record);
	file.lines = 0;
	number = last;
}

/* Begins a segment of a log that has a limit. */
static void turn(void)
{
	const uint64_t last = number;
	struct log_file before;

	log_file_turn(&file, &before);
	write_heads(last);
	if (!log_file_turned(&file, &before))
		write_heads(last);
}

static void write_line(const struct vb_event *event, struct record *record)
{
	if (log_file_is_full(&file))
		turn();
	if (phase == OPEN)
		add_line(event, record);
	else
		lost++;
}

/* Opens the file that the path names in this process. Returns 0 or an errno value. */
static int open_file(void)
{
	int err;

	path_expand(path_given, path_now, sizeof(path_now));
	err = log_file_open(&file, path_now);
	phase = err ? REFUSED : OPEN;
	number = lost = 0;
	if (err)
		return err;
	if (limit.bytes_max || limit.count_max)
		log_file_limit(&file, limit.bytes_max, limit.count_max);
	write_head();
	return 0;
}

static void write_event(const struct vb_event *event, struct record *record)
{
	if (phase == WAITING) {
		int err = open_file();

		if (err)
			complain(err, "the program continues without a log");
	}
	record->number = number + 1;
	if (phase == OPEN)
		write_line(event, record);
	else if (phase == FULL)
		lost++;
}

void log_write(const struct vb_event *event, struct record *record)
{
	int state;

	/* A thread that is cancelled in write(2) would keep the lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&mutex);
	write_event(event, record);
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(state, NULL);
}

/* --- fork() --- */

static void before_fork(void)
{
	pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&mutex);
}

static void after_fork_in_child(void)
{
	if (phase == OPEN || phase == FULL) {
		log_file_abandon(&file);
		phase = strstr(path_given, "%p") ? WAITING : REFUSED;
	}
	pthread_mutex_unlock(&mutex);
}

/* --- beginning and end --- */

/* Sets the path, with no file yet. Returns 0 or an errno value. */
static int begin(const char *path)
{
	if (strlen(path) >= sizeof(path_given))
		return ENAMETOOLONG;
	strcpy(path_given, path);
	started_ns = clock_ns(CLOCK_MONOTONIC);
	started_utc_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

int vb_log_open(const char *path)
{
	char sentence[SENTENCE_BYTES];
	int err, state;

	vb_log_close();
	if (!path || !*path)
		return fail(EINVAL, "log: the path is empty; name a file");
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&mutex);
	err = begin(path);
	if (!err)
		err = open_file();
	if (err)
		phase = CLOSED;
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(state, NULL);
	if (!err) {
		err = source_start();
		has_source = !err;
	}
	if (!err)
		return 0;
	say(err, sentence);
	vb_log_close();
	return fail(err, "%s", sentence);
}

void vb_log_limit(uint64_t bytes_max, uint64_t events_max)
{
	pthread_mutex_lock(&mutex);
	limit = (struct vb_limit){bytes_max, events_max};
	pthread_mutex_unlock(&mutex);
}

/* Closes the file. Returns 0, or the errno value for which events are missing at its end. */
static int close_file(void)
{
	uint64_t left_out;
	int join_err, err = log_file_close(&file, &left_out, &join_err);

	if (left_out)
		fprintf(stderr,
			"verbena: log %s: the limit left out events at the beginning: %" PRIu64
			"; raise --log-limit (" LIMIT_VARIABLE ") to keep them\n",
			path_now, left_out);
	/* ENOENT: somebody has removed the log. */
	if (join_err && join_err != ENOENT)
		fprintf(stderr,
			"verbena: log %s: its two halves, this file and %s" TAIL_OLDER
			", are not joined: %s; `verbena trace %s` reads both\n",
			path_now, path_now, strerror(join_err), path_now);
	return err;
}

/* Ends the log. Returns 0, or the errno value for which events are missing at its end. */
static int end(void)
{
	int err = 0, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&mutex);
	if (phase == OPEN || phase == FULL)
		err = close_file();
	if (phase == FULL && !err)
		err = file.err;
	phase = CLOSED;
	pthread_mutex_unlock(&mutex);
	pthread_setcancelstate(state, NULL);
	return err;
}

int vb_log_close(void)
{
	int err;

	if (has_source)
		source_stop();
	has_source = false;
	err = end();
	if (err || lost)
		return fail(EIO,
			    "log %s: %" PRIu64 " events are missing after event %" PRIu64 ": %s",
			    path_now, lost, number, strerror(err ? err : EMSGSIZE));
	return 0;
}

/*
 * The handlers are there before those of any world, so that fork() takes the lock of the log after the
 * locks of worlds, as events do.
 *
 * A process that only loads the library writes no log: the first event opens the file.
 */
__attribute__((constructor)) static void begin_from_environment(void)
{
	const char *path = getenv(VARIABLE), *text = getenv(LIMIT_VARIABLE);

	/* `verbena run` and the simulated world complain of a wrong limit. */
	if (text && !vb_limit_read(text, &limit))
		limit = (struct vb_limit){0};
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
	if (!path || !*path || begin(path) || source_start())
		return;
	has_source = true;
	phase = WAITING;
}

/* Threads may still run verbs: their events are not taken any more. If exit(3) has interrupted this thread in a verb, the
 * file stays as after the death of the process. */
__attribute__((destructor)) static void end_at_exit(void)
{
	if (!layer_left_inside())
		end();
	else if (has_source)
		dprintf(STDERR_FILENO,
			"verbena: log %s: exit(3) was called inside a verb, as by a signal "
			"handler: the last events may be missing; call exit(3) outside verbs\n",
			path_now);
}
