/* SPDX-License-Identifier: MIT */
/*
 * Which parts of a region belong to work under way.
 */
#ifndef SRC_CONNECT_REGION_H
#define SRC_CONNECT_REGION_H

#include <verbena/connect.h>

struct vb_region_guard {
	bool owned;		  /* vb_region_alloc() mapped it */
	unsigned int held;	  /* pieces in use */
	void *device_view;	  /* checked: the device's mapping of the same pages */
	unsigned int *readers;	  /* checked: works that read a page, by page */
	unsigned int *exclusives; /* checked: works that write one */
};

/* What region_hold() does more for a checked region. */
void region_close_pages(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
			bool exclusive);
void region_open_pages(struct vb_region *region, size_t offset_bytes, size_t length_bytes,
		       bool exclusive);

/* The piece, which is in the region, belongs to a work from now on: exclusively if the device may
 * write it. Each hold is released with the same piece. */
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
