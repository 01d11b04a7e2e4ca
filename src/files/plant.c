/* SPDX-License-Identifier: MIT */
/* A folder with the files of all devices, at the places that they have below / on a machine. */
#include "src/files/plant.h"

#include "src/files/content.h"
#include "src/files/remove.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <verbena/verbs.h>

/* The devices are virtual ones: they sit on no bus. */
#define CLASS	"sys/class/"
#define VIRTUAL "sys/devices/virtual/"

enum {
	/* How often another process may remove the new folder before it is locked. */
	TRIES = 1000,
	/* How often, at 1 ms each, the lock is asked for while another process has it. */
	LOCK_TRIES = 10000,
};

/* Makes the folders above a file. Returns 0 or an errno value. */
static int make_folders(int root, const char *path)
{
	char folder[PATH_MAX];

	for (const char *end = strchr(path, '/'); end; end = strchr(end + 1, '/')) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(end - path), path);
		if (mkdirat(root, folder, 0755) && errno != EEXIST)
			return errno;
	}
	return 0;
}

/* Makes a file with a line, as the files of sysfs have. Returns 0 or an errno value. */
static int make_file(int root, const char *path, const char *text)
{
	int err = make_folders(root, path);
	int fd;

	if (err)
		return err;
	fd = openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return errno;
	if (dprintf(fd, "%s\n", text) < 0)
		err = errno;
	if (close(fd) && !err)
		err = errno;
	return err;
}

static int make_link(int root, const char *path, const char *target)
{
	int err = make_folders(root, path);

	return !err && symlinkat(target, root, path) ? errno : err;
}

/* A folder of files of sysfs. */
struct place {
	int root;
	const char *folder;
};

static int make_below(void *arg, const char *name, const char *text)
{
	const struct place *place = arg;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", place->folder, name);
	return make_file(place->root, path, text);
}

/* A device of a class: a folder among the virtual devices, and a link to it in the class. */
static int make_member(int root, const char *class_name, const char *name)
{
	char path[PATH_MAX], target[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), CLASS "%s/%s", class_name, name);
	snprintf(target, sizeof(target), "../../devices/virtual/%s/%s", class_name, name);
	err = make_link(root, path, target);
	if (err)
		return err;
	snprintf(path, sizeof(path), VIRTUAL "%s/%s/subsystem", class_name, name);
	snprintf(target, sizeof(target), "../../../../class/%s", class_name);
	return make_link(root, path, target);
}

/*
 * The network interface of an adapter, as a folder of its bus device. The addresses of all interfaces of the
 * machine lead to simulated adapters; each machine has the loopback interface.
 */
static int make_interface(int root, const char *device)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), VIRTUAL "infiniband/%s/device/net/lo", device);
	return make_link(root, path, "/sys/class/net/lo");
}

/* The files of the adapter itself. */
static int make_adapter(int root, struct ibv_device *device)
{
	struct ibv_context *context = vb_open_device(device);
	char folder[256];
	struct place place = {root, folder};
	int err;

	if (!context)
		return errno;
	snprintf(folder, sizeof(folder), VIRTUAL "infiniband/%s/", device->name);
	err = make_member(root, "infiniband", device->name);
	if (!err)
		err = make_interface(root, device->name);
	if (!err)
		err = files_each(context, make_below, &place);
	vb_close_device(context);
	return err;
}

/* The character device, and the files that lead from it to the adapter. */
static int make_uverbs(int root, const struct ibv_device *device, unsigned int number)
{
	char folder[256], path[PATH_MAX], text[128];
	struct place place = {root, folder};
	int err;

	snprintf(folder, sizeof(folder), VIRTUAL "infiniband_verbs/%s/", device->dev_name);
	err = make_member(root, "infiniband_verbs", device->dev_name);
	if (!err)
		err = make_below(&place, "ibdev", device->name);
	if (!err)
		err = make_below(&place, "abi_version", "1");
	snprintf(text, sizeof(text), "%u:%u", FILES_UVERBS_MAJOR, FILES_UVERBS_MINOR + number);
	if (!err)
		err = make_below(&place, "dev", text);
	snprintf(text, sizeof(text), "MAJOR=%u\nMINOR=%u\nDEVNAME=infiniband/%s",
		 FILES_UVERBS_MAJOR, FILES_UVERBS_MINOR + number, device->dev_name);
	if (!err)
		err = make_below(&place, "uevent", text);
	snprintf(path, sizeof(path), "dev/infiniband/%s", device->dev_name);
	return err ? err : make_link(root, path, FILES_CHARACTER_DEVICE);
}

static int make_all(int root, struct ibv_device **list)
{
	/* Versions of include/uapi/rdma/ib_user_verbs.h and include/uapi/rdma/ib_user_mad.h. */
	int err = make_file(root, CLASS "infiniband_verbs/abi_version", "6");

	if (!err)
		err = make_file(root, CLASS "infiniband_mad/abi_version", "5");
	for (unsigned int i = 0; list[i] && !err; i++) {
		err = make_adapter(root, list[i]);
		if (!err)
			err = make_uverbs(root, list[i], i);
	}
	return err;
}

/* Takes a shared lock. Another process that looks at the folder has the lock for a moment. Returns 0 or an errno value:
 * EBUSY if a process keeps the lock. */
static int lock(int folder)
{
	const struct timespec millisecond = {.tv_nsec = 1000000};

	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		if (!flock(folder, LOCK_SH | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return errno;
		nanosleep(&millisecond, NULL);
	}
	return EBUSY;
}

/* Makes a folder and locks it. Returns 0, with the folder open, or an errno value: ESTALE if another
 * process took it for what a killed process left, and removed it before it was locked. */
static int make_locked(const char *name, int *folder)
{
	int fd, err;

	if (mkdir(name, 0755)) {
		err = errno;
		files_take_back(name); /* a killed process had the same number */
		return err == EEXIST ? ESTALE : err;
	}
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? ESTALE : errno;
	err = lock(fd);
	if (!err && !files_is_named(fd, name, NULL))
		err = ESTALE;
	else if (err)
		rmdir(name);
	if (err)
		close(fd);
	else
		*folder = fd;
	return err;
}

int files_plant(const char *folder, struct ibv_device **list)
{
	char fresh[PATH_MAX];
	int root = -1, err = ESTALE;

	if (snprintf(fresh, sizeof(fresh), "%s.%d", folder, (int)getpid()) >= (int)sizeof(fresh))
		return ENAMETOOLONG;
	for (unsigned int i = 0; i < TRIES && err == ESTALE; i++)
		err = make_locked(fresh, &root);
	if (err)
		return err;
	err = make_all(root, list);
	/* rename(2) fails where another process has put a folder that is not empty. */
	if (!err && rename(fresh, folder))
		err = errno == ENOTEMPTY ? EEXIST : errno;
	close(root);
	if (err)
		files_remove(fresh);
	return err;
}
