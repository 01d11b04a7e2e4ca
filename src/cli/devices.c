/* SPDX-License-Identifier: MIT */
#include "src/base/count.h"
#include "src/cli/options.h"
#include "src/project/environment.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/verbs.h>

#define ROW "%-10s %-19s  %-10s  %4s  %-8s  %-10s  %5s  %4s  %-6s  %s\n"

struct arguments {
	const char *backend, *project, *wire, *world;
};

static const struct cli_option options[] = {
	{"backend", 0, "B", "the backend [VERBENA_BACKEND, else sim]", NULL, cli_take_text,
	 offsetof(struct arguments, backend), .words = cli_backend},
	{"project", 0, "FILE",
	 "the simulated devices [VERBENA_PROJECT, else\n./project.yml if it exists, else sim0 and "
	 "sim1]",
	 NULL, cli_take_text, offsetof(struct arguments, project)},
	{"wire", 0, "W",
	 "of all simulated devices: memory, shared,\nudp[=ADDRESS|INTERFACE] [VERBENA_WIRE, else "
	 "the project's,\nelse memory]",
	 NULL, cli_take_text, offsetof(struct arguments, wire)},
	{"world", 0, "NAME",
	 "processes with the same NAME share the devices\n[VERBENA_WORLD, else the project's, else "
	 "all of this user's\nwith the same devices]",
	 NULL, cli_take_text, offsetof(struct arguments, world)},
	{0},
};

static const char *const transports[] = {
	[IBV_TRANSPORT_IB] = "InfiniBand",
	[IBV_TRANSPORT_IWARP] = "iWARP",
	[IBV_TRANSPORT_USNIC] = "usNIC",
	[IBV_TRANSPORT_USNIC_UDP] = "usNIC UDP",
};

static const char *const link_layers[] = {
	[IBV_LINK_LAYER_INFINIBAND] = "infiniband",
	[IBV_LINK_LAYER_ETHERNET] = "ethernet",
};

/* The name of a value of a table, whose holes and end mean other. */
static const char *name_of(const char *const *names, size_t count, int value, const char *other)
{
	return value >= 0 && (size_t)value < count && names[value] ? names[value] : other;
}

/* Returns the wire of a simulated device; "-" for another backend's. */
static const char *wire_of(const struct vb_project *project, struct ibv_device *device,
			   const char *backend)
{
	const struct vb_sim_config *sim = &project->sim;

	if (strcmp(backend, "sim") != 0)
		return "-";
	for (unsigned int i = 0; i < sim->device_count; i++)
		if (!strcmp(sim->devices[i].name, vb_get_device_name(device)))
			return vb_project_wire_name((unsigned int)sim->devices[i].wire);
	return vb_project_wire_name(VB_SIM_WIRE_MEMORY);
}

/*
 * Writes the first entry that is not empty, an IPv4 address as such. A device of the wire udp has its
 * address behind the link-local GID.
 */
static void first_gid(struct ibv_context *context, uint8_t port, int first, int length, char *text,
		      size_t size_bytes)
{
	static const union ibv_gid none;
	union ibv_gid gid;

	snprintf(text, size_bytes, "-");
	for (int i = first; i < length; i++) {
		if (vb_query_gid(context, port, i, &gid) || !memcmp(&gid, &none, sizeof(gid)))
			continue;
		if (IN6_IS_ADDR_V4MAPPED((struct in6_addr *)gid.raw))
			inet_ntop(AF_INET, gid.raw + 12, text, size_bytes);
		else
			inet_ntop(AF_INET6, gid.raw, text, size_bytes);
		return;
	}
}

static void print_port(struct ibv_device *device, struct ibv_context *context, uint8_t port,
		       const char *wire)
{
	const bool has_address = !strcmp(wire, vb_project_wire_name(VB_SIM_WIRE_UDP));
	uint64_t guid = be64toh(vb_get_device_guid(device));
	char guid_text[24], gid[INET6_ADDRSTRLEN], port_text[8], lid[8] = "-", mtu[8];
	struct ibv_port_attr attr;
	int rc = vb_query_port(context, port, &attr, sizeof(attr));

	if (rc) {
		fprintf(stderr, "verbena devices: %s port %u: %s\n", vb_get_device_name(device),
			port, strerror(rc));
		return;
	}
	snprintf(guid_text, sizeof(guid_text), "%04x:%04x:%04x:%04x", (unsigned int)(guid >> 48),
		 (unsigned int)(guid >> 32 & 0xffff), (unsigned int)(guid >> 16 & 0xffff),
		 (unsigned int)(guid & 0xffff));
	snprintf(port_text, sizeof(port_text), "%u", port);
	if (attr.link_layer == IBV_LINK_LAYER_INFINIBAND)
		snprintf(lid, sizeof(lid), "%u", attr.lid);
	snprintf(mtu, sizeof(mtu), "%u", 128u << attr.active_mtu);
	first_gid(context, port, has_address, attr.gid_tbl_len, gid, sizeof(gid));
	printf(ROW, vb_get_device_name(device), guid_text,
	       name_of(transports, COUNT(transports), device->transport_type, "other"), port_text,
	       vb_port_state_str(attr.state),
	       name_of(link_layers, COUNT(link_layers), attr.link_layer, "unknown"), lid, mtu, wire,
	       gid);
}

static bool print_device(struct ibv_device *device, const char *wire)
{
	struct ibv_context *context = vb_open_device(device);
	struct ibv_device_attr attr;
	int rc;

	if (!context) {
		fprintf(stderr, "verbena devices: %s cannot be opened: %s\n",
			vb_get_device_name(device), strerror(errno));
		return false;
	}
	rc = vb_query_device(context, &attr);
	if (rc)
		fprintf(stderr, "verbena devices: %s: %s\n", vb_get_device_name(device),
			strerror(rc));
	for (unsigned int port = 1; !rc && port <= attr.phys_port_cnt; port++)
		print_port(device, context, port, wire);
	vb_close_device(context);
	return !rc;
}

/* The last verb's sentence, or that of errno. */
static const char *why(void)
{
	int error = errno;
	const char *sentence = vb_last_error();

	return sentence[0] ? sentence : strerror(error);
}

static int list_devices(const char *backend, const struct vb_project *project)
{
	struct ibv_device **list;
	int count = 0, status = CLI_EXIT_OK;

	list = vb_get_device_list(backend, &count);
	if (!list || !count) {
		fprintf(stderr,
			"verbena devices: backend %s has no device%s%s: load an adapter's driver, "
			"make a SoftRoCE device (rdma link add rxe0 type rxe netdev NAME), or use "
			"--backend sim\n",
			backend, list ? "" : ": ", list ? "" : why());
		if (list)
			vb_free_device_list(list);
		return CLI_EXIT_NO_DEVICE;
	}
	printf(ROW, "DEVICE", "NODE GUID", "TRANSPORT", "PORT", "STATE", "LINK LAYER", "LID", "MTU",
	       "WIRE", "GID");
	for (int i = 0; i < count; i++)
		if (!print_device(list[i], wire_of(project, list[i], backend)))
			status = CLI_EXIT_FAILED;
	vb_free_device_list(list);
	return status;
}

/* An option, else a variable, else NULL. */
static const char *given(const char *option, const char *name)
{
	const char *value = option ? option : getenv(name);

	return value && *value ? value : NULL;
}

static int choose_wires(const struct arguments *arguments, struct vb_project *project)
{
	const char *wire = given(arguments->wire, VB_ENVIRONMENT_WIRE);
	const char *world = given(arguments->world, VB_ENVIRONMENT_WORLD);
	struct vb_project_error error;

	/* VERBENA_WIRE also says how many devices there are. */
	if (wire && setenv(VB_ENVIRONMENT_WIRE, wire, 1)) {
		fprintf(stderr, "verbena devices: no memory\n");
		return CLI_EXIT_FAILED;
	}
	if (vb_environment_set_devices(project, &error) &&
	    (!wire || vb_project_set_wire(project, arguments->wire ? "--wire" : VB_ENVIRONMENT_WIRE,
					  wire, &error)) &&
	    (!world ||
	     vb_project_set_world(project, arguments->world ? "--world" : VB_ENVIRONMENT_WORLD,
				  world, &error)))
		return CLI_EXIT_OK;
	return cli_bad_usage(&cli_devices, "%s", error.text);
}

/* Configures the simulator without the project's trace, which would overwrite that of the last run. With a wire
 * to other processes, it takes the real clock, so that the devices are those that these processes see. */
static int configure(struct vb_project *project)
{
	struct vb_sim_config *config = &project->sim;
	const char *trace = config->trace;
	int rc;

	if (vb_project_wired(project))
		config->clock = VB_SIM_CLOCK_REAL;
	config->trace = NULL;
	rc = vb_sim_configure(config);
	config->trace = trace;
	if (!rc)
		return CLI_EXIT_OK;
	fprintf(stderr, "verbena devices: the simulated devices cannot be made: %s%s%s\n",
		strerror(rc), vb_last_error()[0] ? ": " : "", vb_last_error());
	return CLI_EXIT_USAGE;
}

static int run(int argc, char **argv)
{
	struct arguments arguments = {0};
	struct vb_project *project;
	int status = cli_read_options(&cli_devices, argc, argv, &arguments);

	if (status)
		return status;
	arguments.backend = cli_find_backend(&cli_devices, arguments.backend);
	if (!arguments.backend)
		return CLI_EXIT_USAGE;
	project = cli_load_project(arguments.project);
	if (!project)
		return CLI_EXIT_USAGE;
	status = choose_wires(&arguments, project);
	if (!status)
		status = configure(project);
	if (!status)
		status = list_devices(arguments.backend, project);
	vb_project_free(project);
	return status;
}

const struct cli_command cli_devices = {
	.name = "devices",
	.summary = "list the devices of a backend",
	.synopsis = "[OPTION...]",
	.about = "Lists a backend's devices, one line for each port.\n",
	.options = options,
	.run = run,
};
