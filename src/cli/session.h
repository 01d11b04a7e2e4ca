/* SPDX-License-Identifier: MIT */
/*
 * The files of simulated devices that the programs of one `verbena run` find in sysfs and in
 * /dev: in a folder that the first of them makes when it looks for a device, and the last of them
 * removes.
 */
#ifndef SRC_CLI_SESSION_H
#define SRC_CLI_SESSION_H

#include <stdbool.h>

/* Variables of a program under `verbena run`: the folder, and the program that makes it. */
#define SESSION_FOLDER "VERBENA_FILES"
#define SESSION_MAKER  "VERBENA_FILES_BY"

/* The library that leads paths into the folder, beside the drop-in. */
#define SESSION_LIBRARY "libverbena-files.so"

/*
 * Finds the folder of Verbena's libibverbs: beside this program in a build, else as installed. folder has
 * PATH_MAX bytes. Returns false after a message of the command.
 */
bool session_find_folder(const char *command, char *folder);

/*
 * Makes the environment of a program that runs on simulated devices: the libraries in @folder stand
 * before others, and the variables above name a folder that no other run has. Removes folders that
 * processes of the same user have left. Returns an exit status.
 */
int session_begin(const char *folder);

/* Says that there is no memory. Returns an exit status. */
int session_no_memory(void);

/* Makes the folder, for the devices that the variables and the project configure. Returns an exit
 * status. */
int session_make(const char *folder);

#endif
