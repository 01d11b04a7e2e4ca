/* SPDX-License-Identifier: MIT */
/*
 * The description of a context: the table of its PDs, MRs and device memory in the file behind its
 * cmd_fd. A process that gets the descriptor (SCM_RIGHTS, fork(), exec()) imports objects from it.
 *
 * The context's own process writes the table and never reads it. Another process maps it read-only, and
 * trusts nothing in it: it reads a number once, and checks it. The file is a memfd that is sealed against
 * shrinking, so that no process can take pages away from another one.
 */
#ifndef BACKENDS_SIM_OBJECT_DESCRIPTION_H
#define BACKENDS_SIM_OBJECT_DESCRIPTION_H

#include <stdbool.h>
#include <stdint.h>

enum description_table {
	DESCRIBED_NONE, /* objects of other kinds are not described */
	DESCRIBED_PD,
	DESCRIBED_MR,
	DESCRIBED_DM,
	DESCRIBED_TABLES,
};

/* The process and the context that the description belongs to. */
struct description_owner {
	uint64_t identity, base_ns; /* of the world: no two worlds have the same of both */
	uint64_t process;	    /* its number in the world */
	uint64_t pid_namespace;	    /* the inode of /proc/self/ns/pid; 0: unknown */
	uint32_t pid;
	uint32_t device; /* its index in the world */
};

enum description_flag {
	DESCRIBED_PARENT = 1 << 0,   /* a parent domain */
	DESCRIBED_NO_BYTES = 1 << 1, /* an MR that covers no memory of a certain length */

};

/* An object, as its process describes it. A PD has flags only, device memory addr and length. */
struct described {
	uint64_t addr, length, iova; /* addr: in the owner's address space */
	uint32_t access, lkey, rkey;
	uint32_t pd; /* the handle of the PD; of the PD that a parent domain extends */
	uint32_t flags;
};

/* A description that this process has mapped. map NULL: there is none. */
struct description {
	struct description_file *map;
	bool own;	     /* this process writes it */
	uint64_t last_stamp; /* own: of the object that was described last */
};

/* --- the context's process --- */

/* Makes a sealed file with an empty table, and maps it. Returns its descriptor; -1 with errno: EFBIG if RLIMIT_FSIZE is
 * less than the file, which is sparse. */
int description_create(struct description *description);

/* Writes the owner of the context. From now on importers find the file valid. */
void description_sign(struct description *description, const struct description_owner *owner);

/* Describes an object, or describes it anew. */
void description_put(struct description *description, enum description_table table, uint32_t handle,
		     const struct described *object);

/* The object has ended. Does nothing for a handle that is not described. */
void description_clear(struct description *description, enum description_table table,
		       uint32_t handle);

/* --- another process --- */

enum description_look {
	DESCRIPTION_FOUND,
	DESCRIPTION_NONE,   /* the descriptor is of something else */
	DESCRIPTION_LAYOUT, /* of another version of Verbena */
};

/* Maps the description behind a descriptor read-only, and copies whose it is. @layout is set to the number
 * of the layout. Without memory for the mapping: DESCRIPTION_NONE. */
enum description_look description_open(struct description *description, int fd,
				       struct description_owner *owner, uint32_t *layout);

/* Copies the description of an object. Returns its stamp, which no other object of the file has; 0 if
 * there is no object of the handle. */
uint64_t description_read(const struct description *description, enum description_table table,
			  uint32_t handle, struct described *object);

/* Returns true while the object that had the stamp has not ended and was not described anew. */
bool description_has(const struct description *description, enum description_table table,
		     uint32_t handle, uint64_t stamp);

/* Returns where the stamp of a handle stands; the handle is described. */
const _Atomic uint64_t *description_stamp(const struct description *description,
					  enum description_table table, uint32_t handle);

/* --- both --- */

/* Unmaps. Also in the child of a fork(), whose parent goes on writing the file. */
void description_close(struct description *description);

#define DESCRIPTION_LAYOUT_NUMBER 1

#endif
