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

/* The part of region_hold() and region_release() for checked regions. */
void region_close_pages(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
			bool exclusive);
void region_open_pages(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		       bool exclusive);

/* Gives a piece of the region to a work: exclusively if the device may write the piece. Release it
 * with the same arguments. */
static inline void region_hold(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
			       bool exclusive)
{
	region->guard->held++;
	if (region->checked)
		region_close_pages(region, offset_bytes, length_bytes, exclusive);
}

static inline void region_release(struct vb_region *region, size_t offset_bytes,
				  size_t length_bytes, bool exclusive)
{
	region->guard->held--;
	if (region->checked)
		region_open_pages(region, offset_bytes, length_bytes, exclusive);
}

#endif /* SRC_CONNECT_REGION_H */
