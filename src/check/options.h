/* SPDX-License-Identifier: MIT */
/*
 * The value of VERBENA_CHECK and of --check: "1", or settings with ',' between them, such as
 * "exit-status=0,bytes=4096".
 */
#ifndef SRC_CHECK_OPTIONS_H
#define SRC_CHECK_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <verbena/check.h>

#define CHECK_ERROR_BYTES 256

struct check_settings {
	struct vb_check_options options;
	char file[PATH_MAX], suppressions[PATH_MAX];
	char error[CHECK_ERROR_BYTES]; /* why the value is wrong */
};

/* Returns false for NULL, "" and "0", which ask for no sanitizer. */
bool check_settings_wanted(const char *value);

/* Reads a value that asks for the sanitizer. Returns false for a wrong one. The options point
 * into the settings. */
bool check_settings_read(struct check_settings *settings, const char *value);

#endif /* SRC_CHECK_OPTIONS_H */
