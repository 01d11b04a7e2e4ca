/* SPDX-License-Identifier: MIT */
/* Making a folder with the files of all devices, at the places that they have below / on a machine. */
#ifndef SRC_FILES_PLANT_H
#define SRC_FILES_PLANT_H

#include <infiniband/verbs.h>

/*
 * Makes the folder, which must not exist, and in it sys/ and dev/ with the files of the devices
 * of the list. No other process finds the folder before it is complete. Returns 0 or an errno
 * value; EEXIST if another process was quicker.
 */
int files_plant(const char *folder, struct ibv_device **list);

/* The kernel's numbers of the character device uverbs0 (drivers/infiniband/core/uverbs_main.c). */
enum { FILES_UVERBS_MAJOR = 231, FILES_UVERBS_MINOR = 192 };

/*
 * What stands for the character device of a simulated device. It can be opened by everybody,
 * write(2) fails with ENOSPC and ioctl(2) with ENOTTY, so that no program believes its command
 * was taken.
 */
#define FILES_CHARACTER_DEVICE "/dev/full"

#endif
