/* SPDX-License-Identifier: MIT */
/*
 * What one side answered to a program, in symbolic names only; and whether two sides agree.
 */
#ifndef SRC_DIFFER_MODEL_RECORD_H
#define SRC_DIFFER_MODEL_RECORD_H

#include "src/differ/model/program.h"

#include <stddef.h>

#define VD_COMPLETIONS_MAX 1024
#define VD_EVENTS_MAX	   256
#define VD_VALUES_MAX	   14

/* Sizes that the making of an object told. VD_TOLD_WR is also the CQEs of a CQ. */
enum vd_told {
	VD_TOLD_WR,
	VD_TOLD_RECV_WR,
	VD_TOLD_SRQ_SGE = 1,
	VD_TOLD_SEND_SGE,
	VD_TOLD_RECV_SGE,
	VD_TOLD_INLINE,
	VD_TOLD_MAX
};

/* An answer: the errno value or 0, or that a slot was empty or full and nothing was called. */
#define VD_SKIPPED (-1)
/* An object that is none of the program's, or one that cannot be told. */
#define VD_NOBODY (-1)
/* A value that says nothing. */
#define VD_UNSET UINT32_MAX

struct vd_outcome {
	int answer;
	int bad; /* the place in the list of the WR that bad_wr names; -1: the list's end; -2: none */
	unsigned int value_count;
	uint32_t values[VD_VALUES_MAX]; /* what is compared of a query */
	uint32_t told[VD_TOLD_MAX];	/* sizes: devices may round them up */
	uint8_t states[VD_SLOTS_MAX];	/* of the QPs after the step; 0xff: no QP */
	uint64_t memory[VD_REGIONS];	/* a sum over each region */
};

struct vd_completion {
	unsigned int step; /* after which it came */
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

/* A completion event of a CQ. */
#define VD_EVENT_COMPLETION 1000

struct vd_event {
	unsigned int step;
	int type; /* enum ibv_event_type or VD_EVENT_COMPLETION */
	enum vd_kind kind;
	int slot;
};

struct vd_record {
	unsigned int step_count; /* ran */
	struct vd_outcome outcomes[VD_STEPS_MAX];
	unsigned int completion_count;
	struct vd_completion completions[VD_COMPLETIONS_MAX];
	unsigned int event_count;
	struct vd_event events[VD_EVENTS_MAX];
};

enum vd_verdict {
	VD_SAME,
	VD_DIFFERENT,
	VD_OPEN, /* they part where devices may, as by sizes rounded up; what follows is not compared */
};

/* What a difference is about; reducing keeps it. */
enum vd_about { VD_ANSWER, VD_BAD_WR, VD_VALUE, VD_COMPLETION, VD_EVENT, VD_STATE, VD_MEMORY };

struct vd_difference {
	unsigned int step;
	enum vd_about about;
	char text[400]; /* "left ...; right ..." */
};

/* Compares one step, which both ran. difference may be NULL. */
enum vd_verdict vd_compare_step(const struct vd_program *program, unsigned int step,
				const struct vd_record *left, const struct vd_record *right,
				struct vd_difference *difference);

/* Compares all steps that both ran, up to the first that is not the same. */
enum vd_verdict vd_compare(const struct vd_program *program, const struct vd_record *left,
			   const struct vd_record *right, struct vd_difference *difference);

/* "0", "EINVAL", "skipped"; another number is its digits, in the buffer. */
const char *vd_answer_name(int answer, char buffer[16]);

/* "QP_FATAL", "completion event"; never NULL. */
const char *vd_event_name(int type);

/* "SUCCESS", "LOC_PROT_ERR", ...; never NULL. */
const char *vd_status_name(int status);

#endif
