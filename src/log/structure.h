/* SPDX-License-Identifier: MIT */
/*
 * Structures of <infiniband/verbs.h> as JSON objects: a table of members for each structure.
 */
#ifndef SRC_LOG_STRUCTURE_H
#define SRC_LOG_STRUCTURE_H

#include "src/base/bits.h"
#include "src/log/line.h"

#include <infiniband/verbs.h>
#include <stdint.h>

/* What a member is. */
enum shape {
	SHAPE_DECIMAL,
	SHAPE_SIGNED,
	SHAPE_HEX,
	SHAPE_BOOL,
	SHAPE_NAME,   /* words() returns the name of a value */
	SHAPE_BITS,   /* of the table bits */
	SHAPE_MTU,    /* enum ibv_mtu, as bytes */
	SHAPE_OBJECT, /* a pointer to an object of the verbs; left out if it is NULL */
	SHAPE_STRUCT, /* of the members */
	SHAPE_GID,
	SHAPE_AH, /* struct ibv_ah_attr */
};

struct member {
	const char *name;
	size_t offset, size_bytes;
	enum shape shape;
	uint64_t when; /* the bit that the member belongs to; 0: to none */
	const struct bit_name *bits;
	const char *(*words)(int value);
	const struct member *members;
};

/* The members of a structure; ends with a NULL name. */
extern const struct member structure_ah_attr[];
extern const struct member structure_alloc_dm[];
extern const struct member structure_bind_info[];
extern const struct member structure_cq_init_ex[];
extern const struct member structure_device_attr[];
extern const struct member structure_ece[];
extern const struct member structure_gid_entry[];
extern const struct member structure_modify_cq[];
extern const struct member structure_mw_bind[];
extern const struct member structure_parent_domain[];
extern const struct member structure_port_attr[];
extern const struct member structure_qp_attr[];
extern const struct member structure_qp_init[];
extern const struct member structure_qp_init_ex[];
extern const struct member structure_qp_open[];
extern const struct member structure_rate_limit[];
extern const struct member structure_srq_attr[];
extern const struct member structure_srq_init[];
extern const struct member structure_srq_init_ex[];
extern const struct member structure_wc[];
extern const struct member structure_xrcd_init[];

/* Adds an object by its name, such as "mr3"; by its address if it has none; NULL as null. */
void structure_add_object(struct line *line, const void *object);

/*
 * Adds a structure as an object. A member that belongs to a bit of a mask is added if the bit is set
 * in @mask, and all other members always.
 */
void structure_add(struct line *line, const struct member *members, const void *structure,
		   uint64_t mask);

/*
 * Add a list of work requests as an array, up to and including @bad, the first that was not posted
 * (NULL: all were). The lengths of the messages are added for the requests before @bad only: the
 * SGEs of others may not be there. @type is the type of the QP, or -1 if it is not known.
 */
void structure_add_sends(struct line *line, const struct ibv_send_wr *wr,
			 const struct ibv_send_wr *bad, int type);
void structure_add_recvs(struct line *line, const struct ibv_recv_wr *wr,
			 const struct ibv_recv_wr *bad);

#endif /* SRC_LOG_STRUCTURE_H */
