/* SPDX-License-Identifier: MIT */
/*
 * Why a call was refused, why a completion failed, why a packet was dropped: a reason of
 * <verbena/reasons.def> and the values that it was found with.
 */
#ifndef VERBENA_WHY_H
#define VERBENA_WHY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The reasons. A number never changes its meaning. */
enum vb_reason {
	VB_WHY_NONE,
#define VB_REASON(number, name, cause, remedy, source) VB_WHY_##name = (number),
#include <verbena/reasons.def>
};

#define VB_WHY_VALUES 6

struct vb_why {
	enum vb_reason reason;
	uint64_t
		values[VB_WHY_VALUES]; /* what {0:...} to {5:...} of the reason's texts stand for */
	const char *verb; /* the refused call, such as "modify_qp"; NULL: not known here */
	const char *text; /* what {0:text} stands for; NULL: nothing */
};

/* Where a reason comes from, and what it belongs to. */
struct vb_reason_info {
	enum vb_reason reason;
	const char *name;   /* such as "QP_MASK_MISSING" */
	int error;	    /* the errno value of a refused call; 0 for another kind */
	int status;	    /* enum ibv_wc_status of a failed completion; 0 for another kind */
	const char *cause;  /* with placeholders, see <verbena/reasons.def> */
	const char *remedy; /* the same */
	const char *source;
};

/*
 * Returns the row of a reason; NULL for VB_WHY_NONE and for a number that no reason has. The row is
 * constant. Any thread may call it at any time.
 */
const struct vb_reason_info *vb_reason_info(enum vb_reason reason);

/* Returns the row at index, from 0, in the order of the table; NULL behind the last. */
const struct vb_reason_info *vb_reason_at(unsigned int index);

/*
 * Writes the sentence of why into text, of size_bytes bytes: "verb: cause; remedy". A sentence that
 * is too long is cut; 512 bytes hold each one. Writes "" for VB_WHY_NONE. Returns text.
 */
const char *vb_why_text(const struct vb_why *why, char *text, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_WHY_H */
