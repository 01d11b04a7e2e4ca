/* SPDX-License-Identifier: MIT */
#include "src/project/environment.h"

#include "src/base/number.h"
#include "src/base/path.h"
#include "src/base/words.h"
#include "src/project/failure.h"
#include "src/project/fault_rule.h"
#include "src/project/incident.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The drop-in replaces libibverbs and the provider libraries under it, and programs rely on what the
 * providers and adapters do beside the specification. Providers of hardware (mlx4, mlx5, hns and mthca
 * of rdma-core) remove a QP's completions from the CQ when the QP goes to RESET; by the specification
 * the completions stay. UCX finds the IP version of a datagram in the sl of its completion, where
 * adapters that use mlx5 have it; by the specification it is the service level.
 */
#define QUIRKS_DEFAULT "reset_removes_completions,sl_is_packet_type"

/* Returns the value of a variable; NULL if it is not set or empty. */
static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

__attribute__((format(printf, 2, 3))) static bool fail(struct vb_project_error *error,
						       const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, args);
	va_end(args);
	errno = EINVAL;
	return false;
}

static bool read_number(const char *name, uint64_t min, uint64_t max, uint64_t *number,
			struct vb_project_error *error)
{
	const char *text = variable(name);

	if (!text || vb_number_read(text, min, max, number) == VB_NUMBER_GOOD)
		return true;
	return fail(error, "%s: '%s' is not a number from %llu to %llu", name, text,
		    (unsigned long long)min, (unsigned long long)max);
}

/* Sets *index to that of the word in the variable; leaves it alone if the variable is not set. */
static bool read_word(const char *name, vb_words_fn *words, int *index,
		      struct vb_project_error *error)
{
	const char *text = variable(name);
	char allowed[128];

	if (!text)
		return true;
	*index = vb_words_find(words, text);
	return *index >= 0 || fail(error, "%s: '%s' is unknown (allowed: %s)", name, text,
				   vb_words_list(words, allowed, sizeof(allowed)));
}

static const char *choose_quirks(const struct vb_project *project)
{
	const char *given = getenv(VB_ENVIRONMENT_QUIRKS);

	if (given)
		return given;
	return project->file[0] || variable(VB_ENVIRONMENT_PROFILE) ? NULL : QUIRKS_DEFAULT;
}

static bool is_quirk(const char *name, size_t length)
{
	const char *known;

	for (unsigned int i = 0; (known = vb_sim_quirk_name(i, NULL)); i++)
		if (strlen(known) == length && !memcmp(known, name, length))
			return true;
	return false;
}

static bool check_quirks(const char *names, struct vb_project_error *error)
{
	if (strlen(names) >= VB_SIM_QUIRKS_TEXT)
		return fail(error, "%s: longer than %d bytes", VB_ENVIRONMENT_QUIRKS,
			    VB_SIM_QUIRKS_TEXT - 1);
	while (*names) {
		size_t length = strcspn(names, ",");

		if (!is_quirk(names, length))
			return fail(error, "%s: no quirk is called '%.*s'", VB_ENVIRONMENT_QUIRKS,
				    (int)length, names);
		names += length + (names[length] == ',');
	}
	return true;
}

/* Returns how many devices there are without a list: one if VERBENA_WIRE names an address, which only one device
 * can have. */
static uint64_t default_count(void)
{
	const char *wire = variable(VB_ENVIRONMENT_WIRE);

	return wire && strchr(wire, '=') ? 1 : VB_PROJECT_DEVICES;
}

bool vb_environment_set_devices(struct vb_project *project, struct vb_project_error *error)
{
	struct vb_sim_config *sim = &project->sim;
	const char *quirks = choose_quirks(project);
	int link_layer = -1, profile = -1;
	uint64_t count = default_count();

	if (!read_number(VB_ENVIRONMENT_DEVICES, 1, VB_SIM_DEVICES_MAX, &count, error) ||
	    !read_word(VB_ENVIRONMENT_LINK_LAYER, vb_project_link_layer_name, &link_layer, error) ||
	    !read_word(VB_ENVIRONMENT_PROFILE, vb_sim_profile_name, &profile, error))
		return false;
	if (quirks && !check_quirks(quirks, error))
		return false;
	if (sim->device_count && variable(VB_ENVIRONMENT_DEVICES))
		return fail(error, "%s: the project already lists its devices",
			    VB_ENVIRONMENT_DEVICES);
	vb_project_add_devices(sim, count);
	if (profile >= 0)
		vb_project_set_profile(sim, vb_sim_profile_name((unsigned int)profile));
	for (unsigned int i = 0; i < sim->device_count; i++) {
		struct vb_sim_device_config *device = &sim->devices[i];

		if (link_layer >= 0)
			device->link_layer = vb_project_link_layer((unsigned int)link_layer);
		if (quirks)
			strcpy(device->quirks, quirks);
	}
	return true;
}

/* Leaves *limit alone if the variable is not set. */
static bool read_limit(const char *name, struct vb_limit *limit, struct vb_project_error *error)
{
	const char *text = variable(name);

	return !text || vb_limit_read(text, limit) ||
	       fail(error, "%s: '%s' is not understood (" VB_LIMIT_ALLOWED ")", name, text);
}

static bool read_limits(struct vb_project *project, struct vb_project_error *error)
{
	struct vb_sim_config *sim = &project->sim;
	struct vb_limit limit = {sim->trace_bytes_max, sim->trace_packets_max};

	if (!read_limit(VB_ENVIRONMENT_TRACE_LIMIT, &limit, error) ||
	    !read_limit(VB_ENVIRONMENT_LOG_LIMIT, &project->log_limit, error))
		return false;
	sim->trace_bytes_max = limit.bytes_max;
	sim->trace_packets_max = limit.count_max;
	return true;
}

static bool read_world(struct vb_project *project, struct vb_project_error *error)
{
	const char *trace = variable(VB_ENVIRONMENT_TRACE), *log = variable(VB_ENVIRONMENT_LOG);
	struct vb_sim_config *sim = &project->sim;
	int clock = VB_SIM_CLOCK_REAL;

	if (!read_number(VB_ENVIRONMENT_SEED, 0, UINT64_MAX, &sim->seed, error) ||
	    !read_word(VB_ENVIRONMENT_CLOCK, vb_project_clock_name, &clock, error))
		return false;
	sim->seed_given |= variable(VB_ENVIRONMENT_SEED) != NULL;
	sim->clock = clock;
	if (trace) {
		path_expand(trace, project->trace, sizeof(project->trace));
		sim->trace = project->trace;
	}
	if (log)
		snprintf(project->log, sizeof(project->log), "%s", log);
	return true;
}

/* On the real clock, devices without a wire get the wire shared: all processes of the machine see them, as they
 * would see an adapter. */
static void choose_wires(struct vb_project *project)
{
	struct vb_sim_config *sim = &project->sim;

	for (unsigned int i = 0; i < sim->device_count; i++)
		if (!project->wire_given[i] && sim->clock == VB_SIM_CLOCK_REAL)
			sim->devices[i].wire = VB_SIM_WIRE_SHARED;
}

static bool read_wires(struct vb_project *project, struct vb_project_error *error)
{
	const char *wire = variable(VB_ENVIRONMENT_WIRE);
	const char *world = variable(VB_ENVIRONMENT_WORLD);
	const struct vb_sim_device_config *wired;

	if (wire && !vb_project_set_wire(project, VB_ENVIRONMENT_WIRE, wire, error))
		return false;
	if (world && !vb_project_set_world(project, VB_ENVIRONMENT_WORLD, world, error))
		return false;
	choose_wires(project);
	wired = vb_project_wired(project);
	if (!wired || project->sim.clock == VB_SIM_CLOCK_REAL)
		return true;
	return fail(
		error,
		"%s: device %s has the wire %s, and other processes cannot follow a virtual clock "
		"(take the real clock, or the wire memory)",
		VB_ENVIRONMENT_CLOCK, wired->name, vb_project_wire_name((unsigned int)wired->wire));
}

/* Adds the entries of a text to the project. */
typedef bool add_fn(struct vb_project *project, const char *text, struct vb_project_error *error);

static bool read_incidents(struct vb_project *project, const char *name, add_fn *add,
			   struct vb_project_error *error)
{
	const char *text = variable(name);
	struct vb_project_error wrong;

	if (!text || add(project, text, &wrong))
		return true;
	return fail(error, "%s: %.*s", name, (int)sizeof(error->text) - 32, wrong.text);
}

/* An add_fn that adds nothing: src/failing/ reads the rules. */
static bool check_failures(struct vb_project *project, const char *text,
			   struct vb_project_error *error)
{
	struct vb_failures failures = {0};

	return failure_read(&failures, text, error);
}

struct vb_project *vb_environment_load(struct vb_project_error *error)
{
	const char *path = variable(VB_ENVIRONMENT_PROJECT);
	struct vb_project *project =
		path ? vb_project_load(path, error) : vb_project_parse("", "", 0, error);

	if (!project)
		return NULL;
	if (vb_environment_set_devices(project, error) && read_world(project, error) &&
	    read_limits(project, error) && read_wires(project, error) &&
	    read_incidents(project, VB_ENVIRONMENT_FAULT, fault_rule_add, error) &&
	    read_incidents(project, VB_ENVIRONMENT_FAIL, check_failures, error) &&
	    read_incidents(project, VB_ENVIRONMENT_EVENTS, incident_add, error))
		return project;
	vb_project_free(project);
	return NULL;
}

int vb_environment_settle_world(const struct vb_project *project)
{
	char name[VB_SIM_NAME_MAX];

	if (strcmp(project->sim.world, VB_SIM_WORLD_NEW) != 0)
		return 0;
	vb_project_new_world(name);
	return setenv(VB_ENVIRONMENT_WORLD, name, 1) ? ENOMEM : 0;
}
