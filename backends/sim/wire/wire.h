/* SPDX-License-Identifier: MIT */
/*
 * Wires carry packets between this process and others. A world without wires has all devices to itself; else
 * it has one or two wires, of the kinds `shared` and `udp`. A wire is an object that begins with struct
 * wire; struct wires joins them for the engine and the clock.
 *
 * The caller of a function holds the world's lock, unless a comment says otherwise.
 */
#ifndef BACKENDS_SIM_WIRE_WIRE_H
#define BACKENDS_SIM_WIRE_WIRE_H

#include "backends/sim/base/bell.h"

#include "sim/net/wire.h"

struct wire {
	struct wire *next;
	const char *name; /* "shared", "udp" */
	/* True if other processes have QPs on the ports of the wire's devices; false: each port is this
	 * process's. */
	bool shares_ports;
	/* What the engine calls; way.arg is the wire. */
	struct sim_way_out way;
	/* Returns true if the wire carries the packets of the device's ports. */
	bool (*has)(const struct wire *wire, const struct sim_device *device);
	/* Returns true if receive() may have something to do; NULL: it always may. */
	bool (*arrived)(const struct wire *wire);
	/*
	 * Gives arrived packets to the engine, one batch at most. Returns true if there were any, and calls
	 * sim_way_out_ready() if there is room again for waiting packets. While sim_way_out_is_awaited(), it
	 * must be called every 10 ms at least, because it ends the waits for a receiver that takes nothing.
	 */
	bool (*receive)(struct wire *wire);
	/* Sends all packets that the engine has given to the wire, and wakes their receivers. */
	void (*flush)(struct wire *wire);
	/* on: the world listens to its bell from now on (backends/sim/base/bell.h). Off: a thread polls, and
	 * others need not ring the bell. */
	void (*listen)(struct wire *wire, bool on);
	/* In the child of a fork(): drops what belongs to the parent, without telling others. */
	void (*forked)(struct wire *wire);
	/* In the child, when it opens a device: attaches the child. Returns 0, or an errno value with a
	 * sentence. */
	int (*resume)(struct wire *wire);
	/*
	 * Tells the other processes that this one is gone. For exit(3) by a thread that is in the middle of a verb: uses
	 * only what other processes see, allocates and frees nothing. The wire is not used afterwards. NULL: they
	 * need not know.
	 */
	void (*abandon)(struct wire *wire);
	/* Ends and frees the wire. The engine may be gone already. */
	void (*close)(struct wire *wire);
};

/* Each packet asks for the wire of a device: the answers for the last devices are kept. */
#define WIRES_KNOWN 8u

struct wires {
	struct wire *first;
	struct sim_engine *engine;
	struct wires_known {
		const struct sim_device *device;
		struct wire *wire;
	} known[WIRES_KNOWN]; /* by the index of the device; NULL: not known */
};

/* Adds a wire, and gives the engine one way out that leads to all of them: `wires` must stay where it is. */
void wires_add(struct wires *wires, struct sim_engine *engine, struct wire *wire);

bool wires_have_arrivals(const struct wires *wires);
bool wires_receive(struct wires *wires);
void wires_flush(struct wires *wires);
void wires_listen(struct wires *wires, bool on);
void wires_forked(struct wires *wires);
int wires_resume(struct wires *wires);
void wires_abandon(struct wires *wires);
/* Removes the engine's way out and closes all wires. */
void wires_close(struct wires *wires);

#endif
