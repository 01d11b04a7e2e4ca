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

/* --- the contents of the files, by their names below the device's folder --- */

/* Writes a GUID or a GID, which are in network byte order. */
static void write_words(FILE *out, const void *address, size_t size)
{
	const uint8_t *bytes = address;

	for (size_t i = 0; i < size; i += 2)
		fprintf(out, "%s%02x%02x", i ? ":" : "", bytes[i], bytes[i + 1]);
}

/* Writes a file of the device. Returns false if it has no file of this name. */
static bool write_device_file(FILE *out, const char *name, const char *device,
			      const struct ibv_device_attr *attr)
{
	if (!strcmp(name, "fw_ver"))
		fputs(attr->fw_ver, out);
	else if (!strcmp(name, "node_desc"))
		fputs(device, out);
	else if (!strcmp(name, "node_guid"))
		write_words(out, &attr->node_guid, sizeof(attr->node_guid));
	else if (!strcmp(name, "node_type"))
		fprintf(out, "%d: CA", IBV_NODE_CA);
	else if (!strcmp(name, "sys_image_guid"))
		write_words(out, &attr->sys_image_guid, sizeof(attr->sys_image_guid));
	else
		return false;
	return true;
}

/* Writes a state as the kernel does: "4: ACTIVE". */
static void write_state(FILE *out, unsigned int value, const char *const *words, size_t count,
			const char *unknown)
{
	fprintf(out, "%u: %s", value, value < count && words[value] ? words[value] : unknown);
}

/* Writes a file of a port. Returns false if a port has no file of this name. */
static bool write_port_file(FILE *out, const char *name, const struct ibv_port_attr *port)
{
	static const char *const states[] = {"NOP",   "DOWN",	"INIT",
					     "ARMED", "ACTIVE", "ACTIVE_DEFER"};
	static const char *const phys_states[] = {
		[1] = "Sleep",	  [2] = "Polling",
		[3] = "Disabled", [4] = "PortConfigurationTraining",
		[5] = "LinkUp",	  [6] = "LinkErrorRecovery",
		[7] = "Phy Test"};

	if (!strcmp(name, "cap_mask"))
		fprintf(out, "0x%08x", port->port_cap_flags);
	else if (!strcmp(name, "lid"))
		fprintf(out, "0x%x", port->lid);
	else if (!strcmp(name, "lid_mask_count"))
		fprintf(out, "%u", port->lmc);
	else if (!strcmp(name, "link_layer"))
		fputs(port->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", out);
	else if (!strcmp(name, "phys_state"))
		write_state(out, port->phys_state, phys_states, COUNT(phys_states), "<unknown>");
	else if (!strcmp(name, "sm_lid"))
		fprintf(out, "0x%x", port->sm_lid);
	else if (!strcmp(name, "sm_sl"))
		fprintf(out, "%u", port->sm_sl);
	else if (!strcmp(name, "state"))
		write_state(out, port->state, states, COUNT(states), "UNKNOWN");
	else
		return false;
	return true;
}

/* An entry of a port's table: writes it, and returns 0 or an errno value. */
typedef int write_entry(FILE *out, struct ibv_context *context, uint8_t port, unsigned int index);

static int write_gid(FILE *out, struct ibv_context *context, uint8_t port, unsigned int index)
{
	union ibv_gid value;

	if (vb_query_gid(context, port, (int)index, &value))
		return errno;
	write_words(out, value.raw, sizeof(value.raw));
	return 0;
}

static int write_gid_type(FILE *out, struct ibv_context *context, uint8_t port, unsigned int index)
{
	enum dropin_gid_type type;

	if (ibv_query_gid_type(context, port, index, &type))
		return errno;
	fputs(type == DROPIN_GID_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1", out);
	return 0;
}

static int write_pkey(FILE *out, struct ibv_context *context, uint8_t port, unsigned int index)
{
	__be16 value;

	if (vb_query_pkey(context, port, (int)index, &value))
		return errno;
	fprintf(out, "0x%04x", ntohs(value));
	return 0;
}

static const struct {
	const char *folder;
	write_entry *write;
} tables[] = {
	{"gid_attrs/types/", write_gid_type},
	{"gids/", write_gid},
	{"pkeys/", write_pkey},
};

/* Writes an entry of a port's table, such as "gids/3". Returns 0 or an errno value. */
static int write_table_file(FILE *out, const char *name, struct ibv_context *context, uint8_t port)
{
	for (size_t i = 0; i < COUNT(tables); i++) {
		size_t length = strlen(tables[i].folder);
		unsigned int index;
		int end = 0;

		if (!strncmp(name, tables[i].folder, length) &&
		    sscanf(name + length, "%u%n", &index, &end) == 1 && !name[length + end])
			return tables[i].write(out, context, port, index);
	}
	return ENOENT;
}

/* Writes the file @name of a device. Returns 0 or an errno value. */
static int write_file(FILE *out, struct ibv_context *context, const char *name)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	uint8_t port_num;
	int end = 0;
	int err = vb_query_device(context, &device);

	if (err)
		return err;
	if (write_device_file(out, name, context->device->name, &device))
		return 0;
	if (sscanf(name, "ports/%" SCNu8 "/%n", &port_num, &end) != 1 || !end ||
	    vb_query_port(context, port_num, &port, sizeof(port)))
		return ENOENT;
	if (write_port_file(out, name + end, &port))
		return 0;
	return write_table_file(out, name + end, context, port_num);
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
	err = out ? write_file(out, context, name) : ENOMEM;
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
