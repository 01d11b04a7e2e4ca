/* SPDX-License-Identifier: MIT */
/* The trace file and the watcher of a world. */
#include "backends/sim/base/cancel.h"
#include "backends/sim/capture/pcapfile.h"
#include "backends/sim/object/refuse.h"
#include "backends/sim/world/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the trace, which is the world's no more; NULL: there is none. */
static struct pcapfile *take_trace(struct vb_sim *world)
{
	struct pcapfile *trace = world->trace;

	if (!trace)
		return NULL;
	sim_trace_set(world->driver.engine, SIM_TRACE_FILE, NULL);
	world->driver.ran = NULL;
	world->trace = NULL;
	return trace;
}

int world_trace_close(struct vb_sim *world)
{
	struct pcapfile *trace = take_trace(world);
	int state, err;
	bool failed;

	if (!trace)
		return 0;
	pcapfile_flush(trace);
	failed = pcapfile_failed(trace);
	state = cancel_off();
	err = pcapfile_close(trace);
	cancel_restore(state);
	if (failed)
		return refuse_plainly("trace", VB_WHY_TRACE_INCOMPLETE);
	return err ? refuse_plainly("trace", VB_WHY_TRACE_PARTS) : 0;
}

void world_trace_forked(struct vb_sim *world)
{
	struct pcapfile *trace = take_trace(world);

	if (trace && world->wires.first && *pcapfile_whole(trace)) {
		free(world->inherited_trace);
		world->inherited_trace = strdup(pcapfile_whole(trace));
	}
	pcapfile_abandon(trace);
}

static bool is_infiniband(const struct device *device)
{
	return sim_port_is_infiniband(&device->engine->ports[0]);
}

static int refuse_layers(const struct device *first, const struct device *other)
{
	char text[2 * IBV_SYSFS_NAME_MAX + 8];

	snprintf(text, sizeof(text), "%s and %s", first->ibv.name, other->ibv.name);
	return refuse_name("trace", VB_WHY_TRACE_LAYERS, text);
}

/* Takes a capture that was opened as the trace. */
static int begin(struct vb_sim *world, struct pcapfile *trace, const char *error)
{
	struct sim_trace_sink sink = {.frame = pcapfile_frame, .arg = trace};

	if (!trace)
		return say_why(errno ? errno : EIO, &(struct vb_why){.reason = VB_WHY_TRACE_OPEN,
								     .verb = "trace",
								     .text = error});
	world_trace_close(world);
	pcapfile_limit(trace, world->trace_bytes_max, world->trace_packets_max);
	world->trace = trace;
	sim_trace_set(world->driver.engine, SIM_TRACE_FILE, &sink);
	/* Frames reach the kernel before the verb that sent them returns. */
	world->driver.ran_arg = trace;
	world->driver.ran = pcapfile_flush;
	return 0;
}

int world_trace_open(struct vb_sim *world, const char *path)
{
	bool infiniband = is_infiniband(&world->devices[0]);
	struct pcapfile *trace;
	char error[256];
	int state;

	for (unsigned int i = 1; i < world->device_count; i++)
		if (is_infiniband(&world->devices[i]) != infiniband)
			return refuse_layers(&world->devices[0], &world->devices[i]);
	/*
	 * path may be the old trace's file: its last frames must not arrive after the new header.
	 */
	if (world->trace)
		pcapfile_flush(world->trace);
	state = cancel_off();
	trace = pcapfile_open(path, infiniband, world->trace, error, sizeof(error));
	cancel_restore(state);
	return begin(world, trace, error);
}

int world_trace_resume(struct vb_sim *world)
{
	struct pcapfile *trace;
	char error[256];
	int state, err;

	if (!world->inherited_trace || world->trace)
		return 0;
	state = cancel_off();
	trace = pcapfile_open_part(world->inherited_trace, is_infiniband(&world->devices[0]), error,
				   sizeof(error));
	cancel_restore(state);
	err = begin(world, trace, error);
	if (!err) {
		free(world->inherited_trace);
		world->inherited_trace = NULL;
	}
	return err;
}

static void watch_frame(void *arg, uint64_t now_ns, const uint8_t *frame, size_t length_bytes,
			unsigned int flags)
{
	const struct vb_sim *world = arg;
	int state = cancel_off();

	world->watch(world->watch_arg, now_ns, frame, length_bytes, flags & SIM_FRAME_LOST);
	cancel_restore(state);
}

void world_watch(struct vb_sim *world, vb_sim_frame_fn *fn, void *arg)
{
	const struct sim_trace_sink sink = {.arg = world, .frame = watch_frame};

	world->watch = fn;
	world->watch_arg = arg;
	sim_trace_set(world->driver.engine, SIM_TRACE_WATCHER, fn ? &sink : NULL);
}
