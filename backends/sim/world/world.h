/* SPDX-License-Identifier: MIT */
/*
 * A simulated world: an engine with its clock, the devices as libibverbs shows them, their objects,
 * and one lock.
 */
#ifndef BACKENDS_SIM_WORLD_WORLD_H
#define BACKENDS_SIM_WORLD_WORLD_H

#include "backends/sim/clock/driver.h"
#include "backends/sim/object/objects.h"
#include "backends/sim/wire/wire.h"
#include "backends/sim/world/call.h"

#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <verbena/event.h>
#include <verbena/sim.h>

struct pcapfile;
struct timed;
struct sim_host;

/*
 * What a world has to tell its connection manager (backends/sim/cm/). All are NULL until the program uses
 * the connection manager.
 */
struct world_cm {
	void *arg;
	/* An asynchronous event of a device or port. The caller holds the world. */
	void (*event)(void *arg, const struct sim_device *device, enum ibv_event_type type);
	/* As wake() of driver_end_waits(). */
	void (*wake)(void *arg);
	/* The world ends. The caller does not hold the world. */
	void (*end)(void *arg);
	uint32_t live; /* counts event channels and identifiers: they keep the world in use */
};

struct vb_sim {
	struct driver driver; /* the engine and its clock; its mutex is the world's lock */
	struct device *devices;
	unsigned int device_count;
	struct store store;
	struct wires wires;
	struct wire *shared, *udp; /* those of `wires`; NULL if no device has such a wire */
	bool wires_forked;	   /* in the child of fork(): the wires are not attached */
	bool wires_left;	   /* exit(3) has closed the wires, and threads may still run */
	struct world_cm cm;
	struct world_calls calls;
	struct timed *timeline; /* the configuration's events */
	uint64_t identity;	/* decides where numbers and addresses begin; 0: at their lowest */
	uint32_t last_pd;	/* the number of the newest PD */
	bool retired; /* replaced by a new default world; ends with the last of its device lists */
	bool inherited; /* true in the child of fork(), until the child opens a device */
	bool kept;	/* reset while it was in use: its memory stays, for stale pointers */
	struct pcapfile *trace;
	uint64_t trace_bytes_max, trace_packets_max; /* of traces; 0: no limit */
	char *inherited_trace; /* in the child of fork(): the path of the parent's trace, or NULL */
	vb_sim_frame_fn *watch;
	void *watch_arg;
	vb_event_fn *note; /* takes the events; NULL: nobody watches */
	void *note_arg;
	struct vb_sim *next; /* in the list of all worlds (process.c) */
};

/*
 * The lock of a world, held to the end of the block in which HOLD declares it:
 *
 *	HOLD hold = world_hold(world);
 *
 * While the process has one thread (as glibc says), nothing is locked, and the two atomic
 * operations are saved. A world on the real clock has a progress thread; there the caller's action
 * happens now, and not at the time at which the world was last run.
 */
struct hold {
	struct vb_sim *world; /* NULL: nothing is held */
	bool locked;
};

#define HOLD __attribute__((cleanup(world_release))) struct hold

static inline struct hold world_hold_by(struct vb_sim *world, void (*begin)(struct driver *driver))
{
	if (__libc_single_threaded)
		return (struct hold){.world = world};
	pthread_mutex_lock(&world->driver.mutex);
	if (world->driver.real)
		begin(&world->driver);
	return (struct hold){.world = world, .locked = true};
}

static inline struct hold world_hold(struct vb_sim *world)
{
	return world_hold_by(world, driver_catch_up);
}

/*
 * Keeps the engine's reason for refusing a call with @error as the reason of the verb, and returns
 * @error. The caller holds the world.
 */
__attribute__((cold)) int say_refused(struct vb_sim *world, const char *verb, int error);

static inline struct hold context_hold(struct ibv_context *context)
{
	return world_hold(context_of(context)->world);
}

/* For the verbs that post; driver_run_posted() follows. */
static inline struct hold context_hold_to_post(struct ibv_context *context)
{
	return world_hold_by(context_of(context)->world, driver_begin_post);
}

static inline void world_begin_nothing(struct driver *driver)
{
	(void)driver;
}

/* For the verbs that post receives; driver_run_received() follows. */
static inline struct hold context_hold_to_receive(struct ibv_context *context)
{
	return world_hold_by(context_of(context)->world, world_begin_nothing);
}

/* For polls. */
static inline struct hold context_hold_to_poll(struct ibv_context *context)
{
	return world_hold_by(context_of(context)->world, driver_poll);
}

static inline void world_release(const struct hold *hold)
{
	if (hold->locked)
		pthread_mutex_unlock(&hold->world->driver.mutex);
}

/* Returns the owner for event_queue_init(): on the virtual clock, a wait for a descriptor moves time. */
static inline void *world_waiting_owner(struct vb_sim *world)
{
	return world->driver.real ? NULL : world;
}

/* --- world.c --- */

/* Returns NULL with errno and a sentence. config NULL: the defaults. */
struct vb_sim *world_create(const struct vb_sim_config *config);

/* Ends a world that no thread uses. */
void world_destroy(struct vb_sim *world);

/* Gives the devices of a child of fork() numbers of their own, if the world has such numbers. */
void world_renumber(struct vb_sim *world);

/* Returns true if a device of the world is open. */
bool world_in_use(struct vb_sim *world);

/* Names the open devices and their objects, such as "sim0 (1 PD, 2 CQs), sim1". */
void world_name_open(struct vb_sim *world, char *text, size_t size_bytes);

/*
 * Holds the world of any backend's context, or NULL: the hold's world is NULL if the context is not
 * a simulated one.
 */
struct hold world_hold_of(struct ibv_context *context);

/* --- attach.c: the wires --- */

/*
 * Opens the wires that the configuration names, before the engine is made. The wire shared decides the
 * world's identity and time. 0, or an errno with a sentence.
 */
int world_open_wires(struct vb_sim *world, const struct vb_sim_config *config);

/* Adds the wires to the engine and the clock. */
void world_connect_wires(struct vb_sim *world);

/* Takes an address for a device that is about to be made, if its wire is udp; its GID becomes that
 * address. 0, or an errno with a sentence. */
int world_claim_address(struct vb_sim *world, struct vb_sim_device_config *config);

/* Gives a new device to its wire. */
void world_join_wire(struct vb_sim *world, const struct vb_sim_device_config *config,
		     struct sim_device *device);

/* Closes the wires: for other processes, this world's QPs are gone. */
void world_close_wires(struct vb_sim *world);

/* In the child of a fork(): the wires stay the parent's. */
void world_fork_wires(struct vb_sim *world);

/* Attaches the wires of a child that opens a device or makes an object: it is a process of its own then.
 * Does nothing elsewhere. 0, or an errno with a sentence. */
int world_resume_wires(struct vb_sim *world);

/* --- attach.c: XRC domains --- */

/*
 * Opens the domain of an inode, which this process has not open, in the sight of other processes. EAGAIN
 * without O_CREAT if no process has it, EEXIST with O_EXCL if another process has it, ENOMEM if the world
 * has too many. Sets *entry. On other wires no other process has the device: EAGAIN without O_CREAT. The
 * wires are attached (world_resume_wires()).
 */
int world_open_domain(const struct device *device, const struct stat *inode, int oflags,
		      uint32_t *entry);
void world_close_domain(const struct device *device, uint32_t entry);

/* --- attach.c: contexts of other processes --- */

/* Returns true if other processes of the world have the device, too. */
bool world_shares(const struct vb_sim *world, const struct device *device);

/* Returns the device of an index if it is one that world_shares() returns true for; else NULL. */
struct device *world_shared_device(const struct vb_sim *world, uint32_t index);

/* Signs the description of a new context: other processes may import it from now on. Does nothing for a
 * context without a description. */
void world_describe(struct context *context);

/* Returns true if the owner of a description is a process of this world. */
bool world_has_owner(const struct vb_sim *world, const struct description_owner *owner);

/* Returns true if a process of this world that had the number lives: a system call. */
bool world_process_lives(const struct vb_sim *world, uint64_t process);

/* Returns true if a memory key is of the numbers that a process of the world has. */
bool world_has_key(const struct device *device, uint32_t key, uint64_t process);

/* Returns the inode of this process's PID namespace; 0 if it is unknown. */
uint64_t world_pid_namespace(void);

/* struct sim_host, claim_numbers; arg is the world. */
sim_claim_fn world_claim_numbers;

/* --- furnish.c: devices and links --- */

/* Makes what the configuration names. 0, or an errno with a sentence. */
int world_furnish(struct vb_sim *world, const struct vb_sim_config *config);

struct device *world_find_device(const struct vb_sim *world, const char *name);

/* Returns true if the device is simulated, in whatever world. */
bool world_owns_device(const struct ibv_device *device);

/* --- fault_api.c --- */

/* As vb_fault_add(). The caller holds the world, or has it alone. */
int world_add_fault(struct vb_sim *world, const struct vb_fault_rule *rule, unsigned int *id);

/* --- course.c --- */

/* Follows the course of the process (vb_sim_follow()), if there is one. Sets *trace, unless it is a path. */
void world_follow(struct vb_sim *world, const char **trace);

/* --- timeline.c --- */

/* Takes the configuration's events. 0, or an errno with a sentence. */
int world_plan(struct vb_sim *world, const struct vb_sim_config *config);

/* --- trace.c: the trace file and the watcher; the caller holds the world --- */

/* 0, or an errno with a sentence. */
int world_trace_open(struct vb_sim *world, const char *path);
int world_trace_close(struct vb_sim *world);
/* In the child of a fork(): the trace stays the parent's. */
void world_trace_forked(struct vb_sim *world);
/* The child becomes a process of its own in the world that its parent shares with others: its packets are
 * of the world's trace, too. 0, or an errno with a sentence. */
int world_trace_resume(struct vb_sim *world);
void world_watch(struct vb_sim *world, vb_sim_frame_fn *fn, void *arg);

/* --- host.c --- */

/* Returns what the engine calls its owner by. */
struct sim_host world_host(struct vb_sim *world);

/* Gives the world's events to fn from now on; NULL ends that. The caller holds the world. */
void world_note(struct vb_sim *world, vb_event_fn *fn, void *arg);

#endif
