/* SPDX-License-Identifier: MIT */
/*
 * Whether a program will load our libibverbs when the environment asks for it, before it is run: the
 * dynamic loader answers silently with another library, or with none, where it will not.
 */
#ifndef SRC_CLI_PROGRAM_H
#define SRC_CLI_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#define PROGRAM_LIBRARY "libibverbs.so.1"

/*
 * The file that execvp(3) would run, as a string that the caller frees. NULL with errno: ENOENT, or
 * EACCES where there is one that may not be run.
 */
char *program_find(const char *name);

/*
 * Whether the program, or the interpreter that its first line names, takes the library of that folder,
 * with LD_LIBRARY_PATH set as it will be. If not, reason says why and what to do, in one line without
 * newline. What cannot be read is let through: execve(2) has the better message.
 */
bool program_takes(const char *path, const char *folder, char *reason, size_t reason_size_bytes);

#endif
