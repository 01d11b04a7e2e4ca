/* SPDX-License-Identifier: MIT */
/*
 * Which pieces of a region belong to works that have not ended.
 */
#ifndef SRC_CONNECT_REGION_H
#define SRC_CONNECT_REGION_H

#include <verbena/connect.h>

struct vb_region_guard {
	bool owned;	   /* vb_region_alloc() mapped it */
	unsigned int held; /* counts pieces that belong to works */
	/* of a checked region: */
	void *device_view;	  /* the device's mapping of the pages */
	unsigned int *readers;	  /* for each page, counts the works that read it */
	unsigned int *exclusives; /* for each page, counts the works that write it */
};

enum hold { REGION_RELEASE = -1, REGION_HOLD = 1 };

/* The part of region_hold() for checked regions. */
void region_hold_pages(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		       bool exclusive, enum hold change);

/* Gives a piece of the region to a work, exclusively if the device may write the piece, or takes the
 * piece back (REGION_RELEASE). */
static inline void region_hold(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
			       bool exclusive, enum hold change)
{
	region->guard->held += (unsigned int)change;
	if (region->checked)
		region_hold_pages(region, offset_bytes, length_bytes, exclusive, change);
}

#endif /* SRC_CONNECT_REGION_H */
