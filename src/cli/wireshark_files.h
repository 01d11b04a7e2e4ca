/* SPDX-License-Identifier: MIT */
/* The files of share/wireshark/, which src/cli/embed puts into the program. */
#ifndef SRC_CLI_WIRESHARK_FILES_H
#define SRC_CLI_WIRESHARK_FILES_H

#include <stdbool.h>

struct wireshark_file {
	const char *name;
	bool is_plugin; /* else a file of the profile */
	const char *text;
};

extern const struct wireshark_file wireshark_files[]; /* up to a NULL name */

#endif /* SRC_CLI_WIRESHARK_FILES_H */
