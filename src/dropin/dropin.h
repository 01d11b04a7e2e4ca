/* SPDX-License-Identifier: MIT */
/*
 * libibverbs.so.1 and librdmacm.so.1 as programs know them, on the simulator. Each function here has
 * the name that programs link, and does what the man page of that name says. Most are declared in
 * <infiniband/verbs.h>; this header declares the exported functions that no installed header has.
 *
 * The script `generate` gives the functions the version nodes of the installed library. It makes a
 * function that refuses, as refused.txt says, of each symbol that is not defined here.
 */
#ifndef SRC_DROPIN_DROPIN_H
#define SRC_DROPIN_DROPIN_H

#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stddef.h>
#include <stdint.h>

/* The backend behind the drop-in. VERBENA_BACKEND is for programs that call vb_*. */
#define BACKEND "sim"

/*
 * Prints on stderr, once in a process, why there is no simulated world: a program that was written
 * for adapters can only say that there are no devices.
 */
__attribute__((visibility("default"))) void dropin_tell(const char *sentence);

/*
 * Opens the log that the project names, unless VERBENA_LOG names one, which src/log/ has opened. The
 * verbs that come first call it: the log must be open before the verb begins.
 */
__attribute__((visibility("default"))) void dropin_begin(void);

/* --- device.c --- */

/* The types that ibv_query_gid_type() tells apart, like sysfs. */
enum dropin_gid_type {
	DROPIN_GID_IB_OR_ROCE_V1,
	DROPIN_GID_ROCE_V2,
};

/* Returns 0, or -1 with errno. libibverbs exports it for providers; programs use it, too. */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
		       enum dropin_gid_type *type);

/*
 * Do nothing and return 0. With these libibverbs keeps a range of memory from the children of
 * fork(), unless fork() needs no care (IBV_FORK_UNNEEDED). It needs none here: no adapter writes to
 * memory behind the process's back, so copy on write does no harm.
 */
int ibv_dontfork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size);

/* --- marshal.c: between the kernel's structures and the verbs', for librdmacm --- */

void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/* --- sysfs.c: the files that describe a device; a simulated device has none on disk --- */

/* Returns the path of sysfs, a constant string. */
const char *ibv_get_sysfs_path(void);

/*
 * Reads the contents of dir/file without the newline, at most @size bytes; a 0 follows if there is
 * room. Files below the folder of a simulated device are made from the device's attributes. Returns
 * the number of bytes, or -1 with errno (ENOENT: there is no such file).
 */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);

/* --- rdmacm/rsocket.c: called by the functions that are made from rdmacm/refused.txt --- */

/* Sets errno to ENOSYS; says once on stderr that the program uses rsockets. */
void dropin_refuse_rsocket(const char *symbol);

/* --- refuse.c: called by the functions that are made from refused.txt --- */

/* Sets errno to EOPNOTSUPP and returns it. */
int dropin_refuse(void);

/* The same for a symbol of IBVERBS_1.0, whose structures are other ones: says so once on stderr. */
int dropin_refuse_old(const char *symbol);

#endif /* SRC_DROPIN_DROPIN_H */
