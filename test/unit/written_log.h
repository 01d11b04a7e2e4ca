/* SPDX-License-Identifier: MIT */
/* A log that a test writes (<verbena/log.h>), and its events as JSON. */
#ifndef TEST_UNIT_WRITTEN_LOG_H
#define TEST_UNIT_WRITTEN_LOG_H

#include "unity.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/log.h>

#define EVENTS_MAX 512

static char log_path[64];
static json_t *events[EVENTS_MAX];
static unsigned int event_count;

static inline void begin_log(void)
{
	int fd;

	strcpy(log_path, "/tmp/verbena-test-log-XXXXXX");
	fd = mkstemp(log_path);
	TEST_ASSERT_TRUE(fd >= 0);
	close(fd);
	event_count = 0;
	TEST_ASSERT_EQUAL_INT(0, vb_log_open(log_path));
}

/* Ends the log and reads all its events. */
static inline void read_log(void)
{
	char *line = NULL;
	size_t size = 0;
	FILE *file;

	TEST_ASSERT_EQUAL_INT(0, vb_log_close());
	file = fopen(log_path, "r");
	TEST_ASSERT_NOT_NULL(file);
	while (getline(&line, &size, file) > 0) {
		TEST_ASSERT_TRUE(event_count < EVENTS_MAX);
		events[event_count] = json_loads(line, 0, NULL);
		TEST_ASSERT_NOT_NULL_MESSAGE(events[event_count], line);
		event_count++;
	}
	free(line);
	fclose(file);
}

/* Ends the log if need be, and removes its file. */
static inline void end_log(void)
{
	vb_log_close();
	for (unsigned int i = 0; i < event_count; i++)
		json_decref(events[i]);
	unlink(log_path);
}

/* Returns the member of an event as JSON, or "absent". The caller frees the text. */
static inline char *member_text(const json_t *event, const char *member)
{
	json_t *value = json_object_get(event, member);

	return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("absent");
}

#endif
