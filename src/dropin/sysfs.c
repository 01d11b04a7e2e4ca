/* SPDX-License-Identifier: MIT */
/*
 * The files of sysfs that describe a device. Those of a simulated device are made from the device's
 * attributes, with the contents that the kernel would give them.
 */
#include "src/dropin/dropin.h"

#include "src/base/count.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbena/verbs.h>

#define SYSFS	"/sys"
#define DEVICES SYSFS "/class/infiniband/" /* the beginning of every ibdev_path */

/* What the contents of a file are made from. */
struct question {
	struct ibv_context *context;
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	uint8_t port_num;
	unsigned int index; /* of the entry in a table, such as the GID table */
};

/* Writes the contents of a file. Returns 0 or an errno value. */
typedef int answer(FILE *out, const struct question *question);

/* --- files of the device --- */

static int guid(FILE *out, __be64 guid)
{
	uint64_t host = be64toh(guid);

	fprintf(out, "%04x:%04x:%04x:%04x", (unsigned int)(host >> 48),
		(unsigned int)(host >> 32 & 0xffff), (unsigned int)(host >> 16 & 0xffff),
		(unsigned int)(host & 0xffff));
	return 0;
}

static int node_guid(FILE *out, const struct question *question)
{
	return guid(out, question->device.node_guid);
}

static int sys_image_guid(FILE *out, const struct question *question)
{
	return guid(out, question->device.sys_image_guid);
}

static int node_type(FILE *out, const struct question *question)
{
	fprintf(out, "%d: CA", IBV_NODE_CA);
	return 0;
}

static int node_desc(FILE *out, const struct question *question)
{
	fputs(question->context->device->name, out);
	return 0;
}

static int fw_ver(FILE *out, const struct question *question)
{
	fputs(question->device.fw_ver, out);
	return 0;
}

/* --- files of a port --- */

static int state(FILE *out, const struct question *question)
{
	/* The kernel's words, by enum ibv_port_state. */
	static const char *const words[] = {"NOP",   "DOWN",   "INIT",
					    "ARMED", "ACTIVE", "ACTIVE_DEFER"};
	unsigned int value = question->port.state;

	fprintf(out, "%u: %s", value, value < COUNT(words) ? words[value] : "UNKNOWN");
	return 0;
}

static int phys_state(FILE *out, const struct question *question)
{
	static const char *const words[] = {[1] = "Sleep",    [2] = "Polling",
					    [3] = "Disabled", [4] = "PortConfigurationTraining",
					    [5] = "LinkUp",   [6] = "LinkErrorRecovery",
					    [7] = "Phy Test"};
	unsigned int value = question->port.phys_state;

	fprintf(out, "%u: %s", value, value && value < COUNT(words) ? words[value] : "<unknown>");
	return 0;
}

static int lid(FILE *out, const struct question *question)
{
	fprintf(out, "0x%x", question->port.lid);
	return 0;
}

static int lid_mask_count(FILE *out, const struct question *question)
{
	fprintf(out, "%u", question->port.lmc);
	return 0;
}

static int sm_lid(FILE *out, const struct question *question)
{
	fprintf(out, "0x%x", question->port.sm_lid);
	return 0;
}

static int sm_sl(FILE *out, const struct question *question)
{
	fprintf(out, "%u", question->port.sm_sl);
	return 0;
}

static int cap_mask(FILE *out, const struct question *question)
{
	fprintf(out, "0x%08x", question->port.port_cap_flags);
	return 0;
}

static int link_layer(FILE *out, const struct question *question)
{
	fputs(question->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
	      out);
	return 0;
}

/* --- entries of a port's tables --- */

static int gid_entry(const struct question *question, struct ibv_gid_entry *entry)
{
	int err = vb_query_gid_ex(question->context, question->port_num, question->index, entry, 0,
				  sizeof(*entry));

	return err == ENODATA ? EINVAL : err;
}

static int gid(FILE *out, const struct question *question)
{
	union ibv_gid value;

	if (vb_query_gid(question->context, question->port_num, (int)question->index, &value))
		return errno;
	for (unsigned int i = 0; i < sizeof(value.raw); i += 2)
		fprintf(out, "%s%02x%02x", i ? ":" : "", value.raw[i], value.raw[i + 1]);
	return 0;
}

static int gid_type(FILE *out, const struct question *question)
{
	struct ibv_gid_entry entry;
	int err = gid_entry(question, &entry);

	if (!err)
		fputs(entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1", out);
	return err;
}

static int pkey(FILE *out, const struct question *question)
{
	__be16 value;

	if (vb_query_pkey(question->context, question->port_num, (int)question->index, &value))
		return errno;
	fprintf(out, "0x%04x", ntohs(value));
	return 0;
}

/* --- the names of the files --- */

struct file {
	const char *name;
	answer *answer;
};

static const struct file device_files[] = {
	{"fw_ver", fw_ver},	  {"node_desc", node_desc},	      {"node_guid", node_guid},
	{"node_type", node_type}, {"sys_image_guid", sys_image_guid},
};

static const struct file port_files[] = {
	{"cap_mask", cap_mask},
	{"lid", lid},
	{"lid_mask_count", lid_mask_count},
	{"link_layer", link_layer},
	{"phys_state", phys_state},
	{"sm_lid", sm_lid},
	{"sm_sl", sm_sl},
	{"state", state},
};

static const struct file table_files[] = {
	{"gid_attrs/types/", gid_type},
	{"gids/", gid},
	{"pkeys/", pkey},
};

static answer *find_file(const struct file *files, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(files[i].name, name))
			return files[i].answer;
	return NULL;
}

/* Finds the file of a table's entry, such as "gids/3", and sets *index to the number. */
static answer *find_entry(const char *name, unsigned int *index)
{
	for (size_t i = 0; i < COUNT(table_files); i++) {
		size_t length = strlen(table_files[i].name);
		int end = 0;

		if (!strncmp(name, table_files[i].name, length) &&
		    sscanf(name + length, "%u%n", index, &end) == 1 && !name[length + end])
			return table_files[i].answer;
	}
	return NULL;
}

static answer *find_port_file(struct question *question, const char *name)
{
	answer *found;
	int end = 0;

	if (sscanf(name, "ports/%" SCNu8 "/%n", &question->port_num, &end) != 1 || !end)
		return NULL;
	if (vb_query_port(question->context, question->port_num, &question->port,
			  sizeof(question->port)))
		return NULL;
	found = find_file(port_files, COUNT(port_files), name + end);
	return found ? found : find_entry(name + end, &question->index);
}

static int answer_into(FILE *out, struct ibv_context *context, const char *name)
{
	struct question question = {.context = context};
	answer *found = find_file(device_files, COUNT(device_files), name);
	int err = vb_query_device(context, &question.device);

	if (err)
		return err;
	if (!found)
		found = find_port_file(&question, name);
	return found ? found(out, &question) : ENOENT;
}

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
	err = out ? answer_into(out, context, name) : ENOMEM;
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

static bool is_of_device(const char *path)
{
	return !strncmp(path, DEVICES, strlen(DEVICES));
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
	char *path;
	int length;

	if (asprintf(&path, "%s/%s", dir, file) < 0) {
		errno = ENOMEM;
		return -1;
	}
	/*
	 * An adapter of this machine may have the name of a simulated device: do not read its
	 * files.
	 */
	length = is_of_device(path) ? read_simulated(path, buf, size) : read_real(path, buf, size);
	free(path);
	return length;
}
