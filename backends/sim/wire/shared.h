/* SPDX-License-Identifier: MIT */
/*
 * The wire `shared`: processes of one user that name the same world have the same devices. A file in
 * /dev/shm is the switch. It holds a table of processes, who has which numbers, and a ring for each pair
 * of processes that exchange packets. There is no daemon. The kernel tells that a process has ended, by
 * releasing its lock on a byte of the file.
 */
#ifndef BACKENDS_SIM_WIRE_SHARED_H
#define BACKENDS_SIM_WIRE_SHARED_H

#include "backends/sim/wire/wire.h"

#include "sim/object/key.h"

#include <stddef.h>
#include <sys/stat.h>

struct shared_config {
	const char *
		world; /* NULL or "": the default world of this user, network namespace and devices */
	const char *
		devices; /* a text that is equal in all processes of a world, such as their devices */
};

/*
 * Attaches this process to a world, and makes the world if need be. shared_join() adds the devices later.
 * Returns 0, or an errno value with a sentence of reasons.def: another user's file, another version of the
 * layout, other devices, too many processes, no room in /dev/shm.
 */
int shared_open(const struct shared_config *config, struct wire **wire);

/* Adds a device to the wire. Call it for each device when it is made, in the same order in all processes:
 * the device's index in the engine is its number in the world. */
void shared_join(struct wire *wire, struct sim_device *device);

/* Values that are equal in all processes of a world: a number, not 0, that GUIDs, MACs and default GIDs are
 * made from; CLOCK_MONOTONIC and CLOCK_REALTIME at the world's time 0. */
uint64_t shared_identity(const struct wire *wire);
void shared_base_ns(const struct wire *wire, uint64_t *monotonic_ns, uint64_t *wall_ns);

/* Returns the bell, in shared memory, that other processes ring for this process. The pointer is valid until
 * close(); resume() makes another bell. */
struct bell *shared_bell(const struct wire *wire);

/* Returns the number of this process in the world, which no other attachment has had; 0: not attached. */
uint64_t shared_process(const struct wire *wire);

/* Returns true if the process that has the number is alive. Makes a system call. */
bool shared_process_lives(const struct wire *wire, uint64_t process);

/* Returns the process that owns a device's number; 0: no process. */
uint64_t shared_owner(const struct wire *wire, const struct sim_device *device,
		      enum sim_numbers numbers, uint32_t number);

enum shared_domain {
	SHARED_DOMAIN_OPENED,
	SHARED_DOMAIN_ABSENT, /* no process has the domain open, and oflags lacks O_CREAT */
	SHARED_DOMAIN_EXISTS, /* another process has the domain open, and oflags has O_EXCL */
	SHARED_DOMAIN_FULL,
};

/* Opens the XRC domain of an inode; this process must not have it open. Sets *entry, which
 * shared_close_domain() takes. */
enum shared_domain shared_open_domain(struct wire *wire, const struct sim_device *device,
				      const struct stat *inode, int oflags, uint32_t *entry);
void shared_close_domain(struct wire *wire, uint32_t entry);

/* Receives bytes that a process has sent by shared_call(). They are untrusted, and in memory of this
 * process. */
typedef void shared_called_fn(void *arg, uint64_t process, const uint8_t *bytes, size_t length);

/* Sets the function that receives the bytes that are sent to this process. NULL: the bytes are dropped. */
void shared_take_calls(struct wire *wire, shared_called_fn *called, void *arg);

/* Sends bytes to a process, at most SHARED_CALL_BYTES. Returns false if there is no room, or no such process. */
#define SHARED_CALL_BYTES 1024
bool shared_call(struct wire *wire, uint64_t process, const void *bytes, size_t length);

/* struct sim_host, claim_numbers: takes a block of numbers for this process. arg is the wire. */
sim_claim_fn shared_claim;

/* The largest number of processes in a world. */
#define SHARED_PROCESSES_MAX 256

#endif
