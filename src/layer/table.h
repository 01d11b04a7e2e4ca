/* SPDX-License-Identifier: MIT */
/*
 * The objects that layered verbs have returned: contexts, PDs, QPs and all others, by their address.
 *
 * A look-up takes no lock, since work requests look up contexts and QPs. So the memory of an entry
 * lives as long as the process and stays in its bucket: a reader that passes an entry which ends at
 * the same time still finds its way. A new object takes an entry that has ended.
 */
#ifndef SRC_LAYER_TABLE_H
#define SRC_LAYER_TABLE_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum layer_kind {
	LAYER_NO_KIND,
	LAYER_CONTEXT,
	LAYER_PD,
	LAYER_TD,
	LAYER_XRCD,
	LAYER_MR,
	LAYER_MW,
	LAYER_DM,
	LAYER_CHANNEL,
	LAYER_CQ,
	LAYER_SRQ,
	LAYER_QP,
	LAYER_AH,
	LAYER_WQ,
	LAYER_IND_TABLE,
	LAYER_FLOW,
	LAYER_FLOW_ACTION,
	LAYER_COUNTERS,
	LAYER_ID, /* struct rdma_cm_id */
	LAYER_EVENT_CHANNEL,
	LAYER_KINDS,
};

/* The name of a kind, such as "pd". */
extern const char *const layer_kind_names[LAYER_KINDS];

/* A device, which lives as long as the process. */
struct layer_device {
	struct layer_device *next;
	char name[IBV_SYSFS_NAME_MAX];
	uint32_t counts[LAYER_KINDS]; /* counts the objects that were entered */
};

struct layer_entry {
	struct layer_entry *_Atomic next;
	_Atomic(const void *) object; /* NULL: the entry is free */
	enum layer_kind kind;
	uint32_t number;	 /* of the kind on the device, from 1; of a QP its QPN; of an
				  * object without a device: of the kind among such objects */
	uint32_t place;		 /* of the kind on the device, from 1, also of a QP */
	_Atomic uint64_t serial; /* no other entering has the same */
	struct ibv_context *context;
	/* The list of the context's entries: the next entry, and the pointer to this entry (NULL: not in a list). */
	struct layer_entry *of_context, **of_context_from;
	struct layer_device *device; /* NULL: the context has none */
	/* The original functions of a context, a CQ or a QP whose functions are replaced; else NULL.
	 * See shadow.h. */
	void *_Atomic shadow;
};

/*
 * Enters an object, in the place of an object of the same kind that has had the same address.
 * Returns NULL if there is no memory.
 */
struct layer_entry *table_enter(const void *object, enum layer_kind kind,
				struct ibv_context *context);

/* The same, but returns NULL if the table has the object. A QP with another number is a new object. */
struct layer_entry *table_enter_unknown(const void *object, enum layer_kind kind,
					struct ibv_context *context);

/* Returns the entry of an object; NULL: it has none. LAYER_NO_KIND: of any kind. */
struct layer_entry *table_find(const void *object, enum layer_kind kind);

/* Returns the object that was entered as the place-th of its kind on a device; NULL: there is none now. */
const void *table_find_place(enum layer_kind kind, const char *device, uint32_t place);

/* Returns the QP of a device that has the number; NULL: there is none. */
const void *table_find_qpn(const char *device, uint32_t qpn);

/* Takes the entry out, unless its serial number is another one: then it is of a newer object. */
void table_remove(struct layer_entry *entry, uint64_t serial);

/* Calls see() for each entry, in no order. */
void table_each(void (*see)(struct layer_entry *entry, const void *arg), const void *arg);

/* Calls see() for each entry of a context, in no order; the context's own entry is one of them. The table is locked, so
 * see() may call no function of the table. */
void table_each_of(const struct ibv_context *context, void (*see)(struct layer_entry *entry));

/* Calls see() for each entry of a context in the same way, and removes the entry. */
void table_remove_of(const struct ibv_context *context, void (*see)(struct layer_entry *entry));

#endif /* SRC_LAYER_TABLE_H */
