/* SPDX-License-Identifier: MIT */
/*
 * Finds out, before a program runs, whether it will load Verbena's libibverbs. If it will not, the
 * dynamic loader silently takes another library or none.
 */
#ifndef SRC_CLI_PROGRAM_H
#define SRC_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_LIBRARY "libibverbs.so.1"

/*
 * The file that execvp(3) would run, as a string that the caller frees. NULL with errno: ENOENT, or
 * EACCES if there is a file that may not be executed.
 */
char *program_find(const char *name);

/*
 * Returns true if the program, or the interpreter that its first line names, will load the library in
 * the folder once LD_LIBRARY_PATH names it. If not, reason says why and what to do, in one line without
 * newline. A file that cannot be read is accepted: execve(2) has the better message.
 */
bool program_takes(const char *path, const char *folder, char *reason, size_t reason_size_bytes);

#endif
