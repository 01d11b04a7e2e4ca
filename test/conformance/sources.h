/* SPDX-License-Identifier: MIT */
/* Parts of the sources that the rows of tests cite. */
#ifndef TEST_CONFORMANCE_SOURCES_H
#define TEST_CONFORMANCE_SOURCES_H

#define SRC_CORE      "Linux drivers/infiniband/core/"
#define SRC_RXE	      "Linux drivers/infiniband/sw/rxe/"
#define SRC_RVT	      "Linux drivers/infiniband/sw/rdmavt/"
#define SRC_QIB	      "Linux drivers/infiniband/hw/qib/"
#define SRC_RDMA_CORE "rdma-core "
#define SRC_STUDY     "unionxic/rdma-fault-characterization/"
#define SRC_UCX	      "openucx/ucx/"

/* Which SoftRoCE has a quirk: seen by the conformance suite or a probe, or by random programs. */
#define MEASURED_6_1  "measured on Linux 6.1 rxe"
#define MEASURED_6_12 "measured on Linux 6.12 rxe"
#define MEASURED_BOTH "measured on Linux 6.1 and 6.12 rxe"
#define FOUND_6_1     "found by verbena differ on Linux 6.1 rxe"
#define FOUND_BOTH    "found by verbena differ on Linux 6.1 and 6.12 rxe"

/* Sources that several suites cite. */
#define SRC_FREE_PD   SRC_CORE "uverbs_std_types.c, uverbs_free_pd"
#define SRC_LOOKUP    SRC_CORE "rdma_core.c, lookup_get_idr_uobject"
#define SRC_STATE_OPS SRC_RVT "qp.c, ib_rvt_state_ops"
#define SRC_PSN	      SRC_RXE "rxe_verbs.h, psn_compare: 24 bits"

#endif
