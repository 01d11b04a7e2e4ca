/* SPDX-License-Identifier: MIT */
/*
 * The files by which programs find the devices of a machine without libibverbs: those of sysfs, and
 * the character devices in /dev/infiniband. Those of simulated devices are made from the devices'
 * attributes, with the contents that the kernel would give them.
 */
#ifndef SRC_FILES_FILES_H
#define SRC_FILES_FILES_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Writes the contents of a device's file without the newline. @name is its path below the
 * device's folder, such as "ports/1/gids/0". Returns 0 or an errno value (ENOENT: a device has no
 * such file).
 */
int files_write(FILE *out, struct ibv_context *context, const char *name);

/* Is called with a file's name and contents. Returns 0, or an errno value to stop. */
typedef int files_see(void *arg, const char *name, const char *text);

/* Calls see() for each file of a device. Returns 0 or an errno value. */
int files_each(struct ibv_context *context, files_see *see, void *arg);

/*
 * Makes the folder, which must not exist, and in it sys/ and dev/ with the files of the devices
 * of the list. No other process finds the folder before it is complete. Returns 0 or an errno
 * value; EEXIST if another process was quicker.
 */
int files_plant(const char *folder, struct ibv_device **list);

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

/* The kernel's numbers of the character device uverbs0 (drivers/infiniband/core/uverbs_main.c). */
enum { FILES_UVERBS_MAJOR = 231, FILES_UVERBS_MINOR = 192 };

/*
 * What stands for the character device of a simulated device. It can be opened by everybody,
 * write(2) fails with ENOSPC and ioctl(2) with ENOTTY, so that no program believes its command
 * was taken.
 */
#define FILES_CHARACTER_DEVICE "/dev/full"

#endif
