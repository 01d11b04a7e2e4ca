/* SPDX-License-Identifier: MIT */
/*
 * The callbacks of the engine's owner. The engine calls each of them in the middle of a sim_*
 * function.
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
struct vb_event;

/* An asynchronous event. element is the `user` of a QP, CQ or SRQ, and NULL for a port or a
 * device. */
struct sim_event {
	enum ibv_event_type type;
	void *element;
	unsigned int port_num;
};

/* How the engine reaches the application's memory, which the application may have unmapped. */
struct sim_memory_ops {
	/* Copies bytes. Nonzero if a byte of either side cannot be touched; some bytes may have
	 * been copied. */
	int (*copy)(void *dst, const void *src, size_t length_bytes);
	/* Returns 0 if [addr, addr + length_bytes) is mapped, and writable with `write`; else
	 * EFAULT, or the errno that kept the owner from looking, such as EMFILE. */
	int (*probe)(const void *addr, size_t length_bytes, bool write);
	/* Called after probe() has returned EFAULT: finds the first bytes that the process cannot
	 * touch, and returns what they are, such as "not mapped"; NULL if the owner does not know.
	 * The string is constant. May be NULL. */
	const char *(*find_hole)(const void *addr, size_t length_bytes, bool write, uintptr_t *hole,
				 size_t *hole_bytes);
};

struct sim_host {
	void *arg;
	/* A completion has fired an armed CQ. The CQ is unarmed now. */
	void (*cq_event)(void *arg, struct sim_cq *cq);
	void (*async_event)(void *arg, struct sim_device *device, const struct sim_event *event);
	/* Something has happened, while the owner watches (sim/base/note.h). element is the `user`
	 * of the CQ that the event is about, or NULL. The owner must not call the engine. */
	void (*note)(void *arg, const struct vb_event *event, void *element);
	/* Finds the number of the window and the lkey of the region that a posted binding names.
	 * Returns false if the QP may not use one of them. */
	bool (*find_mw)(void *arg, const struct sim_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr,
			uint32_t *mw_number, uint32_t *region_lkey);
	/* Returns the engine's AH of the AH that a UD send names; NULL if the QP may not use it. */
	struct sim_ah *(*find_ah)(void *arg, const struct sim_qp *qp, struct ibv_ah *ah);
	struct sim_memory_ops memory;
	/* Returns the time, which never goes back. The engine asks for it only after
	 * sim_engine_leave_behind(). */
	uint64_t (*now_ns)(void *arg);
	/* Takes blocks of numbers, where other engines have the same devices (sim_claim_fn of
	 * sim/object/key.h); NULL: all numbers are this engine's. */
	bool (*claim_numbers)(void *claim_arg, uint32_t device_index, unsigned int numbers,
			      uint32_t *block, uint16_t *generation);
	void *claim_arg;
};

#endif
