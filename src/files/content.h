/* SPDX-License-Identifier: MIT */
/*
 * The files by which programs find the devices of a machine without libibverbs: those of sysfs, and
 * the character devices in /dev/infiniband. Those of simulated devices are made from the devices'
 * attributes, with the contents that the kernel would give them.
 */
#ifndef SRC_FILES_CONTENT_H
#define SRC_FILES_CONTENT_H

#include <infiniband/verbs.h>
#include <stdio.h>

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

#endif
