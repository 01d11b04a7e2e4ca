/* SPDX-License-Identifier: MIT */
/*
 * The contents of a device's files, as drivers/infiniband/core/sysfs.c of Linux writes them. The
 * counters are those of SoftRoCE, which are the simulator's.
 */
#include "src/files/content.h"
#include "src/base/count.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

/* Writes a GUID or a GID, which are in network byte order. */
static void write_words(FILE *out, const void *address, size_t size)
{
	const uint8_t *bytes = address;

	for (size_t i = 0; i < size; i += 2)
		fprintf(out, "%s%02x%02x", i ? ":" : "", bytes[i], bytes[i + 1]);
}

/* --- files of the device --- */

static void write_fw_ver(FILE *out, const char *device, const struct ibv_device_attr *attr)
{
	fputs(attr->fw_ver, out);
}

static void write_node_desc(FILE *out, const char *device, const struct ibv_device_attr *attr)
{
	fputs(device, out);
}

static void write_node_guid(FILE *out, const char *device, const struct ibv_device_attr *attr)
{
	write_words(out, &attr->node_guid, sizeof(attr->node_guid));
}

static void write_node_type(FILE *out, const char *device, const struct ibv_device_attr *attr)
{
	fprintf(out, "%d: CA", IBV_NODE_CA);
}

static void write_image_guid(FILE *out, const char *device, const struct ibv_device_attr *attr)
{
	write_words(out, &attr->sys_image_guid, sizeof(attr->sys_image_guid));
}

static const struct {
	const char *name;
	void (*write)(FILE *out, const char *device, const struct ibv_device_attr *attr);
} device_files[] = {
	{"fw_ver", write_fw_ver},
	{"node_desc", write_node_desc},
	{"node_guid", write_node_guid},
	{"node_type", write_node_type},
	{"sys_image_guid", write_image_guid},
};

/* --- files of a port --- */

static void write_cap_mask(FILE *out, const struct ibv_port_attr *port)
{
	fprintf(out, "0x%08x", port->port_cap_flags);
}

static void write_lid(FILE *out, const struct ibv_port_attr *port)
{
	fprintf(out, "0x%x", port->lid);
}

static void write_lid_mask_count(FILE *out, const struct ibv_port_attr *port)
{
	fprintf(out, "%u", port->lmc);
}

static void write_link_layer(FILE *out, const struct ibv_port_attr *port)
{
	fputs(port->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand", out);
}

static void write_sm_lid(FILE *out, const struct ibv_port_attr *port)
{
	fprintf(out, "0x%x", port->sm_lid);
}

static void write_sm_sl(FILE *out, const struct ibv_port_attr *port)
{
	fprintf(out, "%u", port->sm_sl);
}

/* Writes a state as the kernel does: "4: ACTIVE". */
static void write_named(FILE *out, unsigned int value, const char *const *words, size_t count,
			const char *unknown)
{
	fprintf(out, "%u: %s", value, value < count && words[value] ? words[value] : unknown);
}

static void write_state(FILE *out, const struct ibv_port_attr *port)
{
	static const char *const states[] = {"NOP",   "DOWN",	"INIT",
					     "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	write_named(out, port->state, states, COUNT(states), "UNKNOWN");
}

static void write_phys_state(FILE *out, const struct ibv_port_attr *port)
{
	static const char *const states[] = {[1] = "Sleep",    [2] = "Polling",
					     [3] = "Disabled", [4] = "PortConfigurationTraining",
					     [5] = "LinkUp",   [6] = "LinkErrorRecovery",
					     [7] = "Phy Test"};

	write_named(out, port->phys_state, states, COUNT(states), "<unknown>");
}

/* Writes lanes times the speed of a lane: "100 Gb/sec (4X EDR)". */
static void write_rate(FILE *out, const struct ibv_port_attr *port)
{
	/* A bit of active_speed each; the speed in units of 100 Mbit/s. */
	static const struct {
		unsigned int speed;
		const char *name;
	} speeds[] = {{25, " SDR"},  {50, " DDR"},  {100, " QDR"}, {100, " FDR10"},
		      {140, " FDR"}, {250, " EDR"}, {500, " HDR"}, {1000, " NDR"}};
	/* A bit of active_width each. */
	static const unsigned int widths[] = {1, 4, 8, 12, 2};
	const int speed = ffs(port->active_speed), width = ffs(port->active_width);
	const unsigned int lanes = width && (size_t)width <= COUNT(widths) ? widths[width - 1] : 1;
	const size_t at = speed && (size_t)speed <= COUNT(speeds) ? (size_t)speed - 1 : 0;
	const unsigned int rate = speeds[at].speed * lanes;

	fprintf(out, "%u%s Gb/sec (%uX%s)", rate / 10, rate % 10 ? ".5" : "", lanes,
		speeds[at].name);
}

static const struct {
	const char *name;
	void (*write)(FILE *out, const struct ibv_port_attr *port);
} port_files[] = {
	{"cap_mask", write_cap_mask},
	{"lid", write_lid},
	{"lid_mask_count", write_lid_mask_count},
	{"link_layer", write_link_layer},
	{"phys_state", write_phys_state},
	{"rate", write_rate},
	{"sm_lid", write_sm_lid},
	{"sm_sl", write_sm_sl},
	{"state", write_state},
};

/* --- tables of a port --- */

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

/* The kernel fails read(2) of an entry without a GID; here such an entry has no file. */
static int write_gid_type(FILE *out, struct ibv_context *context, uint8_t port, unsigned int index)
{
	struct ibv_gid_entry entry;
	int err = vb_query_gid_ex(context, port, index, &entry, 0, sizeof(entry));

	if (err)
		return err == ENODATA ? EINVAL : err;
	fputs(entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1", out);
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

/* The counters cover all ports of the device. */
static int write_counter(FILE *out, struct ibv_context *context, uint8_t port, unsigned int index)
{
	const char *name = vb_sim_counter_name(index, NULL);
	uint64_t value;
	int err = name ? vb_sim_counter(context, name, &value) : ENOENT;

	if (!err)
		fprintf(out, "%" PRIu64, value);
	return err;
}

/* The name of the entry at an index, in @text or constant; NULL behind the last entry. */
typedef const char *name_entry(const struct ibv_port_attr *port, unsigned int index, char text[16]);

static const char *number(unsigned int index, int count, char text[16])
{
	if (count < 0 || index >= (unsigned int)count)
		return NULL;
	snprintf(text, 16, "%u", index);
	return text;
}

static const char *name_gid(const struct ibv_port_attr *port, unsigned int index, char text[16])
{
	return number(index, port->gid_tbl_len, text);
}

static const char *name_pkey(const struct ibv_port_attr *port, unsigned int index, char text[16])
{
	return number(index, port->pkey_tbl_len, text);
}

static const char *name_counter(const struct ibv_port_attr *port, unsigned int index, char text[16])
{
	return vb_sim_counter_name(index, NULL);
}

static const struct {
	const char *folder;
	name_entry *name;
	write_entry *write;
} tables[] = {
	{"gid_attrs/types/", name_gid, write_gid_type},
	{"gids/", name_gid, write_gid},
	{"hw_counters/", name_counter, write_counter},
	{"pkeys/", name_pkey, write_pkey},
};

/* Writes an entry of a port's table, such as "gids/3". Returns 0 or an errno value. */
static int write_table_file(FILE *out, const char *name, struct ibv_context *context,
			    uint8_t port_num, const struct ibv_port_attr *port)
{
	char text[16];
	const char *entry;

	for (size_t i = 0; i < COUNT(tables); i++) {
		size_t length = strlen(tables[i].folder);

		if (strncmp(name, tables[i].folder, length) != 0)
			continue;
		for (unsigned int k = 0; (entry = tables[i].name(port, k, text)); k++)
			if (!strcmp(name + length, entry))
				return tables[i].write(out, context, port_num, k);
	}
	return ENOENT;
}

int files_write(FILE *out, struct ibv_context *context, const char *name)
{
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	uint8_t port_num;
	int end = 0;
	int err = vb_query_device(context, &device);

	if (err)
		return err;
	for (size_t i = 0; i < COUNT(device_files); i++)
		if (!strcmp(name, device_files[i].name)) {
			device_files[i].write(out, context->device->name, &device);
			return 0;
		}
	if (sscanf(name, "ports/%" SCNu8 "/%n", &port_num, &end) != 1 || !end ||
	    vb_query_port(context, port_num, &port, sizeof(port)))
		return ENOENT;
	for (size_t i = 0; i < COUNT(port_files); i++)
		if (!strcmp(name + end, port_files[i].name)) {
			port_files[i].write(out, &port);
			return 0;
		}
	return write_table_file(out, name + end, context, port_num, &port);
}

/* --- all files --- */

struct seer {
	struct ibv_context *context;
	files_see *see;
	void *arg;
};

/* Shows a file. A file that cannot be written is left out. */
static int show(const struct seer *seer, const char *name)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	int err = out ? files_write(out, seer->context, name) : ENOMEM;
	bool left_out = out && err;

	if (out && fclose(out))
		err = ENOMEM;
	if (!err)
		err = seer->see(seer->arg, name, text);
	free(text);
	return left_out ? 0 : err;
}

static int show_port(const struct seer *seer, uint8_t port_num)
{
	struct ibv_port_attr port;
	char name[128], text[16];
	const char *entry;
	int err = vb_query_port(seer->context, port_num, &port, sizeof(port));

	for (size_t i = 0; i < COUNT(port_files) && !err; i++) {
		snprintf(name, sizeof(name), "ports/%u/%s", port_num, port_files[i].name);
		err = show(seer, name);
	}
	for (size_t i = 0; i < COUNT(tables) && !err; i++)
		for (unsigned int k = 0; !err && (entry = tables[i].name(&port, k, text)); k++) {
			snprintf(name, sizeof(name), "ports/%u/%s%s", port_num, tables[i].folder,
				 entry);
			err = show(seer, name);
		}
	return err;
}

int files_each(struct ibv_context *context, files_see *see, void *arg)
{
	const struct seer seer = {context, see, arg};
	struct ibv_device_attr device;
	int err = vb_query_device(context, &device);

	for (size_t i = 0; i < COUNT(device_files) && !err; i++)
		err = show(&seer, device_files[i].name);
	for (unsigned int port = 1; !err && port <= device.phys_port_cnt; port++)
		err = show_port(&seer, (uint8_t)port);
	return err;
}
