/* SPDX-License-Identifier: MIT */
/*
 * What one side answered to a program. Objects are named by their slots, so that the records of two
 * devices can be compared.
 */
#ifndef SRC_DIFFER_MODEL_RECORD_H
#define SRC_DIFFER_MODEL_RECORD_H

#include "src/differ/model/program.h"

#include <stddef.h>

#define VD_COMPLETIONS_MAX 1024
#define VD_EVENTS_MAX	   256
#define VD_VALUES_MAX	   14

/* The sizes that a device gave an object. VD_SIZE_WR is also the number of CQEs of a CQ. */
enum vd_size {
	VD_SIZE_WR,
	VD_SIZE_RECV_WR,
	VD_SIZE_SRQ_SGE = 1,
	VD_SIZE_SEND_SGE,
	VD_SIZE_RECV_SGE,
	VD_SIZE_INLINE,
	VD_SIZE_MAX
};

#define VD_SKIPPED (-1)	      /* an answer: the verb was not called, as an object was missing */
#define VD_NOBODY  (-1)	      /* a slot: none, or it cannot be determined */
#define VD_UNSET   UINT32_MAX /* a value without a meaning */

struct vd_outcome {
	int answer; /* 0, an errno or VD_SKIPPED */
	int bad;    /* the list's WR that bad_wr names; -1: bad_wr is NULL; -2: bad_wr is not set */
	unsigned int value_count;
	uint32_t values[VD_VALUES_MAX]; /* the results of a query */
	uint32_t sizes[VD_SIZE_MAX];	/* sizes, which devices may round up */
	uint8_t states[VD_SLOTS_MAX];	/* of the QPs after the step; 0xff: no QP */
	uint64_t memory[VD_REGIONS];	/* a hash of each region */
};

struct vd_completion {
	unsigned int step; /* the completion was taken after this step */
	uint64_t wr_id;
	int qp; /* slot */
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t byte_len;
	uint32_t flags;
	uint32_t imm;
	int invalidated; /* slot of the MW, or VD_SLOTS_MAX + slot of the MR */
	int src_qp;
};

/* A completion event of a CQ: no number of enum ibv_event_type. */
#define VD_EVENT_COMPLETION 35

struct vd_event {
	unsigned int step;
	int type; /* enum ibv_event_type or VD_EVENT_COMPLETION */
	enum vd_kind kind;
	int slot;
};

struct vd_record {
	unsigned int step_count; /* steps that ran */
	struct vd_outcome outcomes[VD_STEPS_MAX];
	unsigned int completion_count;
	struct vd_completion completions[VD_COMPLETIONS_MAX];
	unsigned int event_count;
	struct vd_event events[VD_EVENTS_MAX];
};

/* The last step before this one that made the object of a slot; -1 if there is none. */
int vd_maker(const struct vd_program *program, const struct vd_record *record, unsigned int step,
	     enum vd_kind kind, unsigned int slot);

/* "0", "EINVAL", "skipped"; for other numbers the digits, in the buffer. */
const char *vd_answer_name(int answer, char buffer[16]);

/* "QP_FATAL", "completion event"; never NULL. */
const char *vd_event_name(int type);

/* "SUCCESS", "LOC_PROT_ERR", ...; never NULL. */
const char *vd_status_name(int status);

#endif
