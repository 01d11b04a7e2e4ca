/* SPDX-License-Identifier: MIT */
#include "src/differ/machine/site.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/error.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

/* Longer than all retries of a program take, except those without an end. */
#define SETTLE_NS 400000000u

bool vd_site_read(struct vd_site *site, const char *text)
{
	const char *colon = strchrnul(text, ':');
	const struct vb_backend *backend;

	snprintf(site->backend, sizeof(site->backend), "%.*s", (int)(colon - text), text);
	snprintf(site->device, sizeof(site->device), "%s", *colon ? colon + 1 : "");
	backend = vb_find_backend(site->backend);
	if (!backend)
		return false;
	snprintf(site->backend, sizeof(site->backend), "%s", backend->name);
	return true;
}

static struct ibv_context *open_from(struct ibv_device **list, const char *name)
{
	struct ibv_context *context = NULL;
	int saved = ENODEV;

	if (!list)
		return NULL;
	for (unsigned int i = 0; list[i]; i++)
		if (!*name || !strcmp(vb_get_device_name(list[i]), name)) {
			context = vb_open_device(list[i]);
			saved = errno;
			break;
		}
	vb_free_device_list(list);
	errno = saved;
	return context;
}

/* Inverts the quirks of --plant. */
static bool plant(const struct vd_site *site, struct ibv_context *context)
{
	for (unsigned int i = 0; i < site->quirk_count; i++) {
		bool on;

		errno = vb_sim_quirk(context, site->quirks[i], &on);
		if (!errno)
			errno = vb_sim_set_quirk(context, site->quirks[i], !on);
		if (errno)
			return false;
	}
	return true;
}

static struct ibv_context *open_simulated(struct vd_site *site)
{
	struct vb_sim_config config = {
		.device_count = 2,
		.devices = {{.name = "sim0", .mtu = site->mtu}, {.name = "sim1", .mtu = site->mtu}},
		.seed_given = true,
		.seed = 1,
	};
	struct ibv_context *context;
	int saved;

	for (unsigned int i = 0; site->profile && i < config.device_count; i++)
		snprintf(config.devices[i].profile, sizeof(config.devices[i].profile), "%s",
			 site->profile);
	site->sim = vb_sim_open(&config);
	if (!site->sim)
		return NULL;
	context = open_from(vb_sim_device_list(site->sim, NULL), site->device);
	if (context && plant(site, context))
		return context;
	saved = errno;
	if (context)
		vb_close_device(context);
	vb_sim_close(site->sim);
	site->sim = NULL;
	errno = saved;
	return NULL;
}

struct ibv_context *vd_site_open(struct vd_site *site)
{
	const struct vb_backend *backend = vb_find_backend(site->backend);

	if (backend && backend->capabilities & VB_BACKEND_VIRTUAL_CLOCK)
		return open_simulated(site);
	return open_from(vb_get_device_list(site->backend, NULL), site->device);
}

void vd_site_report(const struct vd_site *site, int error)
{
	/* ENODEV comes from the search in the list: the last error is of an earlier verb. */
	const char *sentence = error == ENODEV ? "" : vb_last_error();

	fprintf(stderr, "verbena: %s%s%s cannot be opened%s%s: %s%s%s\n", site->backend,
		*site->device ? ":" : "", site->device, site->profile ? " with profile " : "",
		site->profile ? site->profile : "", strerror(error), *sentence ? ": " : "",
		sentence);
}

void vd_site_close(struct vd_site *site, struct ibv_context *context)
{
	vb_close_device(context);
	if (site->sim)
		vb_sim_close(site->sim);
	site->sim = NULL;
}

bool vd_site_virtual(const struct vd_site *site)
{
	return site->sim;
}

void vd_site_settle(struct vd_site *site)
{
	uint64_t end_ns = vb_sim_now_ns(site->sim) + SETTLE_NS;

	vb_sim_run(site->sim, 0);
	for (;;) {
		uint64_t now_ns = vb_sim_now_ns(site->sim);
		uint64_t next_ns = vb_sim_next_ns(site->sim);

		if (next_ns == VB_SIM_NEVER || next_ns > end_ns)
			return;
		vb_sim_run(site->sim, next_ns > now_ns ? next_ns - now_ns : 0);
	}
}
