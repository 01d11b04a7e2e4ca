/* SPDX-License-Identifier: MIT */
/*
 * An opened adapter, and queue pairs that are connected to those of another process. Only libibverbs.
 * Every function ends the process with a sentence if it fails.
 */
#ifndef TEST_PAIRS_LINK_H
#define TEST_PAIRS_LINK_H

#include "test/pairs/peer.h"

#include <infiniband/verbs.h>

enum link_kind { LINK_RC, LINK_UC, LINK_UD, LINK_XRC, LINK_SRQ, LINK_KINDS };

extern const char *const link_kind_names[LINK_KINDS];

/* An adapter with all that the QPs of a process share. */
struct adapter {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* NULL: the process polls */
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd; /* NULL: link_make() opens one of its own */
	struct ibv_srq *srq;   /* of LINK_XRC and LINK_SRQ */
	struct ibv_port_attr port;
	union ibv_gid gid;
	uint32_t gid_index;
	uint8_t *memory;
	size_t bytes;
	struct ibv_mr *mr;
	uint32_t depth; /* of each work queue */
};

/* What the other process needs to know of a QP. */
struct link_name {
	uint32_t qpn;	   /* the QP that requests go to */
	uint32_t requests; /* the QP that requests come from; another one for XRC */
	uint32_t psn, srqn, rkey, bytes;
	uint64_t memory;
	union ibv_gid gid;
	uint16_t lid;
};

struct link {
	struct adapter *adapter;
	enum link_kind kind;
	enum ibv_mtu mtu;
	struct ibv_qp *qp;	 /* sends */
	struct ibv_qp *receiver; /* the same, except for LINK_XRC */
	struct ibv_ah *ah;	 /* LINK_UD */
	struct link_name peer;
};

struct link_times {
	uint8_t timeout, retry;
};

enum { LINK_QKEY = 0x1234, LINK_GRH = 40 };

/* Opens the adapter of a number, with registered memory, which is zero, and with a CQ. */
void adapter_open(struct adapter *adapter, unsigned int number, size_t bytes, int cq_depth,
		  bool events);
void adapter_close(struct adapter *adapter);

/* Queries port 1 of an open adapter, and chooses a GID. */
void adapter_find_port(struct adapter *adapter);

/* Makes a QP of the adapter, in INIT, and names it. */
void link_make(struct link *link, struct adapter *adapter, enum link_kind kind, enum ibv_mtu mtu,
	       struct link_name *name);

/* Brings the QP back to INIT, by RESET. */
void link_reset(struct link *link);

/* Connects the QP to the QP of the name. */
void link_connect(struct link *link, const struct link_name *name, struct link_times times);

/* Changes the times of an RC QP whose send queue is empty, by SQD. */
void link_set_times(struct link *link, struct link_times times);

/* Makes a QP and connects it to the one that the other process makes at the same time. */
void link_join(struct link *link, struct adapter *adapter, enum link_kind kind, enum ibv_mtu mtu,
	       struct link_times times, const struct peer *peer);

void link_destroy(struct link *link);

/* The range of the adapter's memory, as an SGE. */
struct ibv_sge link_sge(const struct adapter *adapter, size_t offset, size_t length);

/* Posts a send, to the address of the peer's memory at an offset. */
void link_post(struct link *link, struct ibv_send_wr *wr, size_t remote_offset);

/* Posts a WR of this opcode with `length` bytes of the adapter's memory. A fetch-and-add adds 3. */
void link_work(struct link *link, enum ibv_wr_opcode opcode, size_t offset, size_t length,
	       size_t remote_offset);

/* Posts a receive of one range, to the SRQ if the QP has one. */
void link_receive(struct link *link, uint64_t wr_id, size_t offset, size_t length);

/* Waits for a completion. */
void adapter_wait(struct adapter *adapter, struct ibv_wc *wc);

/* Waits for a completion, which must be a success. */
void adapter_success(struct adapter *adapter, struct ibv_wc *wc);

static inline size_t link_mtu_bytes(enum ibv_mtu mtu)
{
	return (size_t)128 << mtu;
}

#endif
