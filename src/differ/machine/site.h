/* SPDX-License-Identifier: MIT */
/*
 * One side of a walk: a device, opened again for each program, and the clock of that device.
 */
#ifndef SRC_DIFFER_MACHINE_SITE_H
#define SRC_DIFFER_MACHINE_SITE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_sim;

#define VD_QUIRKS_MAX 8

struct vd_site {
	/* from the command line: "sim:sim0" */
	char backend[32];
	char device[64]; /* empty: the first */
	/* of a simulated device */
	const char *profile; /* NULL: the default */
	enum ibv_mtu mtu;    /* of its port */
	unsigned int quirk_count;
	const char *quirks[VD_QUIRKS_MAX]; /* the profile's values of these are inverted */
	/* of a real clock */
	uint64_t limit_ns; /* how long to wait for what the other side saw */
	uint64_t quiet_ns; /* how long nothing must arrive before a step has ended */
	/* private */
	struct vb_sim *sim; /* the simulated world while a program runs */
};

/* Reads "BACKEND" or "BACKEND:DEVICE". False if there is no such backend. */
bool vd_site_read(struct vd_site *site, const char *text);

/*
 * Opens the device. A simulated device gets a world of its own, so that programs do not see each
 * other. NULL with errno; ENODEV means that no device has the name.
 */
struct ibv_context *vd_site_open(struct vd_site *site);

/* Prints to standard error why vd_site_open() failed with this errno. */
void vd_site_report(const struct vd_site *site, int error);

void vd_site_close(struct vd_site *site, struct ibv_context *context);

/* True if the device that is open has a virtual clock. */
bool vd_site_virtual(const struct vd_site *site);

/* Runs a virtual clock until nothing more is due, at most 400 ms: some work repeats for ever. */
void vd_site_settle(struct vd_site *site);

#endif
