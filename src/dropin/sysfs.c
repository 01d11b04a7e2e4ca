/* SPDX-License-Identifier: MIT */
/* libibverbs' own way to the files of sysfs that describe a device. */
#include "src/dropin/dropin.h"

#include "src/files/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define SYSFS	"/sys"
#define DEVICES SYSFS "/class/infiniband/" /* the beginning of every ibdev_path */

/* --- finding the device --- */

/* Opens the simulated device whose folder has the file @path, and sets *name to the rest of it. */
static struct ibv_context *open_of_path(const char *path, const char **name)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list = vb_get_device_list(BACKEND, NULL);
	int err = ENOENT;

	for (unsigned int i = 0; list && list[i] && !context; i++) {
		size_t length = strlen(list[i]->ibdev_path);

		if (strncmp(path, list[i]->ibdev_path, length) != 0 || path[length] != '/')
			continue;
		*name = path + length + strspn(path + length, "/");
		context = vb_open_device(list[i]);
		err = errno;
	}
	vb_free_device_list(list);
	errno = err;
	return context;
}

static int read_simulated(const char *path, char *buf, size_t size)
{
	const char *name;
	struct ibv_context *context = open_of_path(path, &name);
	char *text = NULL;
	size_t length = 0;
	FILE *out;
	int err;

	if (!context)
		return -1;
	out = open_memstream(&text, &length);
	err = out ? files_write(out, context, name) : ENOMEM;
	if (out && fclose(out))
		err = ENOMEM;
	vb_close_device(context);
	if (!err) {
		length = length < size ? length : size;
		memcpy(buf, text, length);
		if (length < size)
			buf[length] = '\0';
	}
	free(text);
	errno = err;
	return err ? -1 : (int)length;
}

static int read_real(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;
	int err;

	if (fd < 0)
		return -1;
	length = read(fd, buf, size);
	err = errno;
	close(fd);
	errno = err;
	if (length > 0 && buf[length - 1] == '\n')
		buf[--length] = '\0';
	else if (length >= 0 && (size_t)length < size)
		buf[length] = '\0';
	return (int)length;
}

const char *ibv_get_sysfs_path(void)
{
	return SYSFS;
}

int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	bool simulated;
	char *path;
	int length;

	if (asprintf(&path, "%s/%s", dir, file) < 0) {
		errno = ENOMEM;
		return -1;
	}
	/* Never read the files of an adapter, which may have the name of a simulated device. */
	simulated = !strncmp(path, DEVICES, strlen(DEVICES));
	length = simulated ? read_simulated(path, buf, size) : read_real(path, buf, size);
	free(path);
	return length;
}
