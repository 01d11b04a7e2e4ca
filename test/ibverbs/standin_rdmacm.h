/* SPDX-License-Identifier: MIT */
/* What a test tells the stand-in for librdmacm, and what the stand-in saw. */
#ifndef TEST_IBVERBS_STANDIN_RDMACM_H
#define TEST_IBVERBS_STANDIN_RDMACM_H

#include <rdma/rdma_cma.h>

struct standin_rdmacm {
	int error; /* of the calls; 0: they succeed */
	struct rdma_cm_id *id;
	struct rdma_conn_param *param;
	struct rdma_event_channel *ended;
};

extern struct standin_rdmacm standin_rdmacm;

#endif /* TEST_IBVERBS_STANDIN_RDMACM_H */
