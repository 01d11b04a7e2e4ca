/* SPDX-License-Identifier: MIT */
/* Removing a folder with the files of devices, unless a process uses it. */
#ifndef SRC_FILES_REMOVE_H
#define SRC_FILES_REMOVE_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * A process that uses such a folder holds a shared lock on it (flock(2)). Removes the folder,
 * unless a process holds one. This function and the two below call nothing of libc but syscall():
 * they also run in the library that stands in front of libc's functions, while a process ends.
 */
void files_take_back(const char *folder);

/* Removes a folder and all that is below it. */
void files_remove(const char *folder);

/*
 * Returns true if the open folder still has the name: another process may remove the folder before
 * its lock is taken. Sets *inode to that of the open folder, unless @inode is NULL.
 */
bool files_is_named(long folder, const char *name, ino_t *inode);

#endif
