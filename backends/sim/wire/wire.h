/* SPDX-License-Identifier: MIT */
/*
 * Wires: how packets leave this process and come to it. A world has none (all its devices are its own),
 * or one or two of the kinds `shared` and `udp`. Each kind is an object that begins with a struct
 * wire; struct wires is what the engine and the clock see of all of them.
 *
 * Every function is called with the world's lock held, unless it says otherwise.
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
	/* Returns true if the device is of this wire: packets of its ports leave by it. */
	bool (*has)(const struct wire *wire, const struct sim_device *device);
	/* Returns true if receive() has something to do, or may have; NULL: always. */
	bool (*arrived)(const struct wire *wire);
	/* Gives what has come to the engine, a batch at most. Returns true if something came, and calls
	 * sim_way_out_ready() if others have made room. While sim_way_out_is_awaited(), a call every 10 ms
	 * at least ends the waits for a receiver that takes nothing. */
	bool (*receive)(struct wire *wire);
	/* What the engine has sent is on its way when this returns, and its receivers are woken. */
	void (*flush)(struct wire *wire);
	/* on: the world listens to its bell from now on (backends/sim/base/bell.h). Off: somebody
	 * polls, and others may leave the bell alone. */
	void (*listen)(struct wire *wire, bool on);
	/* In the child of a fork(): lets go of what is the parent's, without a word to others. */
	void (*forked)(struct wire *wire);
	/* The child opens a device: it gets a place of its own. 0, or an errno value with a sentence. */
	int (*resume)(struct wire *wire);
	/* Ends the wire and frees it; the engine may be gone. */
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
/* Takes the engine's way out away and closes all wires. */
void wires_close(struct wires *wires);

#endif
