/* SPDX-License-Identifier: MIT */
#include "backends/sim/base/holder.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns true if a descriptor in the folder, PATH/fd, is the target. Sets *empty if there is no descriptor. */
static bool folder_has(const char *folder_path, const char *target, bool *empty)
{
	char path[PATH_MAX], link[PATH_MAX];
	DIR *folder = opendir(folder_path);
	struct dirent *entry;
	bool found = false;

	*empty = false;
	if (!folder)
		return false;
	*empty = true;
	while (!found && (entry = readdir(folder))) {
		ssize_t length;

		snprintf(path, sizeof(path), "%s/%s", folder_path, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		*empty &= length <= 0;
		found = strcmp(link, target) == 0;
	}
	closedir(folder);
	return found;
}

/* Returns true if a thread of the process has the target. */
static bool threads_have(const char *pid, const char *target)
{
	char path[PATH_MAX];
	struct dirent *entry;
	bool found = false, empty;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/task/%s/fd", pid, entry->d_name);
		found = folder_has(path, target, &empty);
	}
	if (folder)
		closedir(folder);
	return found;
}

/* The folder of a process is that of its first thread, which has no descriptors once it has ended. Those of the other
 * threads are in their folders: proc(5), /proc/PID/task. */
static bool process_has(const char *pid, const char *target)
{
	char path[PATH_MAX];
	bool empty;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	return folder_has(path, target, &empty) || (empty && threads_have(pid, target));
}

void holder_name(int pid, struct holder *holder)
{
	char path[32];
	FILE *file;

	holder->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(holder->program, sizeof(holder->program), file))
		strcpy(holder->program, "a program");
	holder->program[strcspn(holder->program, "\n")] = '\0';
	if (file)
		fclose(file);
}

void holder_find(const char *target, int except, struct holder *holder)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	*holder = (struct holder){0};
	while (folder && !holder->pid && (entry = readdir(folder))) {
		const int pid = (int)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && pid != except && process_has(entry->d_name, target))
			holder_name(pid, holder);
	}
	if (folder)
		closedir(folder);
}
