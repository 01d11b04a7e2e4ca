/* SPDX-License-Identifier: MIT */
/*
 * Where a program runs: a device, opened anew for each program, and how time goes by there.
 */
#ifndef SRC_DIFFER_MACHINE_SITE_H
#define SRC_DIFFER_MACHINE_SITE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct vb_sim;

#define VD_QUIRKS_MAX 8

struct vd_site {
	/* of the user: "sim:sim0" */
	char backend[32];
	char device[64]; /* empty: the first */
	/* of a simulated device */
	const char *profile; /* NULL: the default */
	enum ibv_mtu mtu;    /* of its port */
	unsigned int quirk_count;
	const char *quirks[VD_QUIRKS_MAX]; /* turned round from what the profile says */
	/* of a real clock */
	uint64_t limit_ns; /* to wait for what the other side saw */
	uint64_t quiet_ns; /* to wait for what it did not see */
	/* its own */
	struct vb_sim *sim; /* the world of a program that runs */
};

/* Reads "BACKEND" or "BACKEND:DEVICE". false for a backend that there is none of. */
bool vd_site_read(struct vd_site *site, const char *text);

/*
 * Opens the device; a simulated one in a world of its own, so that programs do not see one another.
 * NULL with errno (ENODEV: there is none of this name).
 */
struct ibv_context *vd_site_open(struct vd_site *site);

/* Prints a line to standard error: why vd_site_open() answered this errno. */
void vd_site_tell(const struct vd_site *site, int error);

void vd_site_close(struct vd_site *site, struct ibv_context *context);

/* Whether the site's clock is virtual. Then vd_site_settle() brings all that is to come. */
bool vd_site_virtual(const struct vd_site *site);

/* Carries a virtual clock to where nothing is to come, or 400 ms on where work repeats for ever. */
void vd_site_settle(struct vd_site *site);

#endif
