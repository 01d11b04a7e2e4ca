/* SPDX-License-Identifier: MIT */
/*
 * Tables of the objects that backends have handed out to the program: a table finds the backend of an
 * object by the object's address. All tables share one lock.
 */
#ifndef SRC_BASE_HANDED_H
#define SRC_BASE_HANDED_H

#include <stddef.h>

struct vb_backend;

/* The first member of a table's entries. */
struct handed {
	struct handed *next;
	const void *object;
	unsigned int kind; /* objects of different kinds may have the same address */
	const struct vb_backend *slot;
};

struct handed_table {
	struct handed **buckets;
	size_t count;
};

/* Between the two calls no other thread changes a table, and the process does not fork. */
void handed_lock(void);
void handed_unlock(void);

/* Returns the bucket of an address. The caller holds the lock. */
struct handed **handed_bucket(const struct handed_table *table, const void *object);

/* Returns the link to the newest entry of an object, or to the NULL that ends the chain. The caller holds
 * the lock. */
struct handed **handed_find(const struct handed_table *table, const void *object,
			    unsigned int kind);

/* Adds an entry, which the caller has allocated. The caller does not hold the lock. */
void handed_add(const struct handed_table *table, struct handed *entry);

/* Takes the newest entry of an object out of the table, for the caller to free; NULL if the table has
 * none. The caller does not hold the lock. */
struct handed *handed_take(const struct handed_table *table, const void *object, unsigned int kind);

#endif /* SRC_BASE_HANDED_H */
