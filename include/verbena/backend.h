/* SPDX-License-Identifier: MIT */
/*
 * A backend: the implementation behind the verbs.
 *
 * A backend is one constant object of this type: data first, then a pointer for every verb that
 * libibverbs 44 exports or wraps inline in <infiniband/verbs.h>. A backend creates libibverbs' own
 * structures. A NULL pointer means that the backend does not have the verb: the verbs layer puts a
 * stub in its place that answers EOPNOTSUPP in the verb's convention, so no caller tests for NULL.
 *
 * The pointers are the rows of <verbena/verbs.def>: a row is the verb's result, name and
 * parameters, and how the verb reports a failure. So the row
 *
 *	VB_EXPORT(int, dealloc_pd, (struct ibv_pd *pd), (pd), ERRNO, ...)
 *
 * is the member "int (*dealloc_pd)(struct ibv_pd *pd)", which returns 0 or an errno value. The
 * contract of each pointer is that of vb_<name>() in <verbena/verbs.h>, the manual for callers.
 * What a backend has to do besides stands above the verb's row.
 *
 * Some functions of <infiniband/verbs.h> have no pointer here:
 * - those that call through an object: ibv_start_poll and the ibv_wc_read_* functions, ibv_wr_*,
 *   ibv_memcpy_to_dm and ibv_memcpy_from_dm. The backend sets the pointers in the object;
 * - those that need no device: rates, names of enum values, ibv_inc_rkey, and the ibv_copy_* of
 *   <infiniband/marshall.h>;
 * - those for providers: ibv_register_driver, ibv_get_sysfs_path, ibv_read_sysfs_file,
 *   ibv_dontfork_range and ibv_dofork_range.
 *
 * A backend may trust that an object it gets is its own, or comes from a program that wrote the
 * context pointer itself. It must not trust anything else in the object. Any thread may call any
 * function at any time. A call that fails changes nothing.
 */
#ifndef VERBENA_BACKEND_H
#define VERBENA_BACKEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <verbena/event.h>
#include <verbena/why.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_completion_why;
struct vb_cm_backend;

/* What a caller may want to know about a backend before using it. */
enum vb_backend_capability {
	VB_BACKEND_SIMULATED = 1 << 0,	   /* its devices are software in this process */
	VB_BACKEND_VIRTUAL_CLOCK = 1 << 1, /* it can simulate time: waiting moves its clock */
	VB_BACKEND_TRACE = 1 << 2,	   /* it can write its packets to a pcap file */
};

/* A QP that look_peer has found. */
struct vb_peer {
	const char *device; /* its name; valid while the device list is */
	uint32_t qpn;
	enum ibv_qp_type type;
	struct ibv_qp_attr attr; /* as query_qp gives it */
};

struct vb_backend {
	/* --- data --- */

	const char *name;	   /* a word, as in VERBENA_BACKEND */
	const char *description;   /* one line, no full stop */
	unsigned int capabilities; /* enum vb_backend_capability */

	/* --- the verbs layer's questions; each may be NULL --- */

	/*
	 * Returns one sentence on the calling thread's last failed call in this backend: the verb,
	 * the object and the cause. NULL or "" means that the backend has no sentence. The sentence
	 * stays valid until the thread's next call.
	 */
	const char *(*last_error)(void);

	/*
	 * Returns why the calling thread's last failed call in this backend failed: the reason is
	 * VB_WHY_NONE if no call has failed. A backend that has this needs no last_error. The
	 * structure stays valid until the thread's next call.
	 */
	const struct vb_why *(*last_why)(void);

	/*
	 * Makes the backend call heard() on the thread whose call has just failed: of a verb, of an
	 * inline function, or of another function of the backend. explain() returns what last_why()
	 * returns. Called once, when the backend is registered. Without listen, only the failures of
	 * verbs leave a sentence.
	 */
	void (*listen)(void (*heard)(int err, const struct vb_why *(*explain)(void)));

	/*
	 * Makes the backend call fn(arg, event) for each event of its devices from now on: those that
	 * are made later, too. NULL ends that. When watch returns, fn of the call before is not
	 * running and is not called any more. fn runs under locks of the backend: it must not call a
	 * verb or another function of the backend, and the caller of watch holds no lock that fn
	 * takes. Without watch, there are no events but those of the verbs.
	 */
	void (*watch)(vb_event_fn *fn, void *arg);

	/* Returns the time on the clock of the context's device. Without this, CLOCK_MONOTONIC. */
	uint64_t (*now_ns)(const struct ibv_context *context);

	/*
	 * For layers, which look in the middle of a verb: what query_qp and query_port would answer now.
	 * Unlike those, these functions move no virtual clock and change nothing. They return 0 or an
	 * errno value, without a reason. Without them, layers call the verbs.
	 */
	int (*look_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr);
	int (*look_port)(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr);

	/*
	 * The same for the other end: the QP to which a connected QP leads (ah is NULL), or the QP with the
	 * number remote_qpn at an address handle. Another process of the same world is asked, and the call
	 * waits for its answer. ENOENT: there is no such QP, or nobody knows. Without this, the other end is
	 * unknown.
	 */
	int (*look_peer)(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
			 struct vb_peer *peer);

	/* Does what vb_completion_why() of <verbena/explain.h> says, with its errno and a reason. */
	int (*completion_why)(struct ibv_context *context, const struct ibv_wc *wc,
			      struct vb_completion_why *why);

	/*
	 * Return true if a device or a context is this backend's. The structure may be another
	 * backend's, so only its public part may be read; comparing an operation in context->ops is
	 * enough. Without these, the verbs layer remembers the backend's devices and contexts.
	 */
	bool (*owns_device)(const struct ibv_device *device);
	bool (*owns_context)(const struct ibv_context *context);

	/*
	 * Returns true if @list is an array that the backend has handed out, by get_device_list or
	 * otherwise, and that has not been freed. @list may be any pointer: compare it, and do not
	 * follow it. Without this, the verbs layer remembers the arrays of get_device_list.
	 */
	bool (*owns_list)(struct ibv_device *const *list);

	/* --- the connection manager: <verbena/cm_backend.h>. NULL: the backend has none --- */

	const struct vb_cm_backend *cm;

	/* --- the verbs; each may be NULL --- */

#define VB_VERB(result, name, parameters, arguments, convention, by, object) \
	result(*name) parameters; /* NOLINT(bugprone-macro-parentheses) */
#include <verbena/verbs.def>
};

/*
 * For hooks of a test or a tool that stack on a backend. Returns the backend that vb_find_backend()
 * returns, and lets the caller write to it; NULL with errno EINVAL like vb_find_backend().
 *
 * The verbs of all threads call through this object. A hook keeps a copy of it, replaces the functions
 * that it wraps while no verb is being called, and later puts the old functions back in the same way.
 * The data and the verbs layer's questions must not be changed. Hooks stack: who came last goes
 * first. That includes the library's own layers, such as the log: they put their functions into each
 * slot with the first layer and take them out with the last.
 */
struct vb_backend *vb_backend_slot(const char *name);

/*
 * Adds a backend of the program for the life of the process; it and its strings must live as long.
 * Returns 0, or EINVAL (no name), EEXIST (the name is taken) or ENOSPC (16 backends). Any thread may call
 * it.
 */
int vb_backend_add(const struct vb_backend *backend);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_BACKEND_H */
