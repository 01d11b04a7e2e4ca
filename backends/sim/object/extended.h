/* SPDX-License-Identifier: MIT */
/*
 * The pointers in an extended CQ: ibv_start_poll and ibv_wc_read_* (ibv_create_cq_ex(3)).
 */
#ifndef BACKENDS_SIM_OBJECT_EXTENDED_H
#define BACKENDS_SIM_OBJECT_EXTENDED_H

#include <stdint.h>

struct cq;

/* The flags of ibv_cq_init_attr_ex that extended_fill_cq() can serve. */
#define EXTENDED_WC_FLAGS                                              \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)

void extended_fill_cq(struct cq *cq, uint64_t wc_flags);

#endif
