/* SPDX-License-Identifier: MIT */
/*
 * What the engine asks of its owner. Every function is called in the middle of a sim_* function.
 */
#ifndef SIM_BASE_HOST_H
#define SIM_BASE_HOST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_ah;
struct sim_cq;
struct sim_device;
struct sim_qp;

/* An asynchronous event. element is the `user` of the QP, CQ or SRQ; NULL for a port or a device. */
struct sim_event {
	enum ibv_event_type type;
	void *element;
	unsigned int port_num;
};

/* How the engine reaches the application's memory, which the application may have unmapped. */
struct sim_memory_ops {
	/* Copies. Nonzero if a byte of either side cannot be touched; some may have been copied. */
	int (*copy)(void *dst, const void *src, size_t length_bytes);
	/* 0 if [addr, addr + length) is mapped, and writable if `write`; else EFAULT. */
	int (*probe)(const void *addr, size_t length_bytes, bool write);
};

struct sim_host {
	void *arg;
	/* A completion has fired an armed CQ, which is unarmed now. */
	void (*cq_event)(void *arg, struct sim_cq *cq);
	void (*async_event)(void *arg, struct sim_device *device, const struct sim_event *event);
	/* For a posted binding: the number of the program's window, and the lkey of its region. False
	 * if the QP may not use either. */
	bool (*find_mw)(void *arg, const struct sim_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr,
			uint32_t *mw_number, uint32_t *region_lkey);
	/* For a UD send: the engine's AH behind the program's. NULL if the QP may not use it. */
	struct sim_ah *(*find_ah)(void *arg, const struct sim_qp *qp, struct ibv_ah *ah);
	struct sim_memory_ops memory;
};

#endif
