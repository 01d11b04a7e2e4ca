/* SPDX-License-Identifier: MIT */
/* The names of the bits of masks in <infiniband/verbs.h>. */
#ifndef SRC_BASE_BITS_H
#define SRC_BASE_BITS_H

#include <stddef.h>
#include <stdint.h>

struct bit_name {
	uint64_t bit;
	const char *name; /* the enumerator: "IBV_QP_PORT" */
};

/* Rows are in the order of printing; a row with a NULL name ends each table. */
extern const struct bit_name bits_qp_attr[];	/* enum ibv_qp_attr_mask */
extern const struct bit_name bits_access[];	/* enum ibv_access_flags */
extern const struct bit_name bits_send_flags[]; /* enum ibv_send_flags */
extern const struct bit_name bits_wc_flags[];	/* enum ibv_create_cq_wc_flags */
extern const struct bit_name bits_device_cap[]; /* enum ibv_device_cap_flags */
extern const struct bit_name bits_qp_init[];	/* enum ibv_qp_init_attr_mask */
extern const struct bit_name bits_qp_create[];	/* enum ibv_qp_create_flags */
extern const struct bit_name bits_send_ops[];	/* enum ibv_qp_create_send_ops_flags */
extern const struct bit_name bits_qp_open[];	/* enum ibv_qp_open_attr_mask */
extern const struct bit_name bits_srq_init[];	/* enum ibv_srq_init_attr_mask */
extern const struct bit_name bits_wc[];		/* enum ibv_wc_flags */
extern const struct bit_name bits_cq_create[];	/* enum ibv_create_cq_attr_flags */
extern const struct bit_name bits_cq_attr[];	/* enum ibv_cq_attr_mask */
extern const struct bit_name bits_rereg[];	/* enum ibv_rereg_mr_flags */
extern const struct bit_name bits_srq_attr[];	/* enum ibv_srq_attr_mask */

/*
 * Writes the names of the bits that are set with " | " between them; bits without a name as one
 * hexadecimal number; "0" if no bit is set. Returns text.
 */
const char *bits_text(const struct bit_name *names, uint64_t bits, char *text, size_t size_bytes);

#endif /* SRC_BASE_BITS_H */
