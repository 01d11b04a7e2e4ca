/* SPDX-License-Identifier: MIT */
/* Finds the process that has a UDP port: by the socket's inode in proc(5), /proc/net/udp, and the
 * descriptors of the processes. */
#include "backends/sim/wire/udp_private.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of an IPv6 address in hexadecimal digits. */
#define DIGITS_MAX 32

/* Writes an address as /proc/net does: each word of four bytes as a number of this machine. */
static void write_words(const uint8_t *bytes, size_t count, char text[DIGITS_MAX + 1])
{
	for (size_t i = 0; i < count; i += 4) {
		uint32_t word;

		memcpy(&word, bytes + i, 4);
		snprintf(text + 2 * i, 9, "%08X", word);
	}
}

/* Returns true if a socket that is bound to `digits` keeps others from binding the address. */
static bool conflicts(const struct udp_address *address, const char *digits)
{
	char own[DIGITS_MAX + 1];

	if (strspn(digits, "0") == strlen(digits))
		return true;
	if (strlen(digits) == 8)
		write_words(address->gid.raw + 12, 4, own);
	else
		write_words(address->gid.raw, 16, own);
	return strcmp(digits, own) == 0;
}

/* Returns the inode of the socket in a file of /proc/net that has the port of the address, and sets
 * holder->everywhere; 0: none. */
static unsigned long find_inode(const char *path, const struct udp_address *address,
				struct udp_holder *holder)
{
	FILE *file = fopen(path, "re");
	unsigned long found = 0;
	char line[512];

	if (!file)
		return 0;
	while (!found && fgets(line, sizeof(line), file)) {
		char digits[DIGITS_MAX + 1];
		unsigned int port;
		unsigned long inode;

		if (sscanf(line, " %*d: %32[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %*s %lu", digits,
			   &port, &inode) != 3 ||
		    port != SIM_UDP_PORT || !conflicts(address, digits))
			continue;
		found = inode;
		holder->everywhere = strspn(digits, "0") == strlen(digits);
	}
	fclose(file);
	return found;
}

/* Returns true if a descriptor in the folder, PATH/fd, is the socket. Sets *empty if there is no descriptor. */
static bool folder_has_socket(const char *folder_path, unsigned long inode, bool *empty)
{
	char path[PATH_MAX], wanted[64], link[64];
	DIR *folder = opendir(folder_path);
	struct dirent *entry;
	bool found = false;

	*empty = false;
	if (!folder)
		return false;
	*empty = true;
	snprintf(wanted, sizeof(wanted), "socket:[%lu]", inode);
	while (!found && (entry = readdir(folder))) {
		ssize_t length;

		snprintf(path, sizeof(path), "%s/%s", folder_path, entry->d_name);
		length = readlink(path, link, sizeof(link) - 1);
		link[length > 0 ? length : 0] = '\0';
		*empty &= length <= 0;
		found = strcmp(link, wanted) == 0;
	}
	closedir(folder);
	return found;
}

/* Returns true if a thread of the process has the socket. */
static bool threads_have_socket(const char *pid, unsigned long inode)
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
		found = folder_has_socket(path, inode, &empty);
	}
	if (folder)
		closedir(folder);
	return found;
}

/* The folder of a process is that of its first thread, which has no descriptors once it has ended. Those of the other
 * threads are in their folders: proc(5), /proc/PID/task. */
static bool has_socket(const char *pid, unsigned long inode)
{
	char path[PATH_MAX];
	bool empty;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	return folder_has_socket(path, inode, &empty) || (empty && threads_have_socket(pid, inode));
}

static void read_program(const char *pid, struct udp_holder *holder)
{
	char path[300];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file || !fgets(holder->program, sizeof(holder->program), file))
		strcpy(holder->program, "a program");
	holder->program[strcspn(holder->program, "\n")] = '\0';
	if (file)
		fclose(file);
}

static void find_process(unsigned long inode, struct udp_holder *holder)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	while (folder && !holder->pid && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !has_socket(entry->d_name, inode))
			continue;
		holder->pid = (int)strtol(entry->d_name, NULL, 10);
		read_program(entry->d_name, holder);
	}
	if (folder)
		closedir(folder);
}

void udp_find_holder(const struct udp_address *address, struct udp_holder *holder)
{
	unsigned long inode = 0;

	memset(holder, 0, sizeof(*holder));
	/* A socket of IPv6 that is bound to all addresses has the port of IPv4, too. */
	if (!address->ipv6)
		inode = find_inode("/proc/net/udp", address, holder);
	if (!inode)
		inode = find_inode("/proc/net/udp6", address, holder);
	if (inode)
		find_process(inode, holder);
}
