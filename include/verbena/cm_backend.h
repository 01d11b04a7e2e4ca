/* SPDX-License-Identifier: MIT */
/*
 * The connection manager of a backend: the member `cm` of struct vb_backend points to a constant
 * object of this type.
 *
 * The pointers are the rows of <verbena/cm.def>. A row is the result, the name and the parameters
 * of a function of librdmacm, and how it reports a failure. So the row
 *
 *	VB_CM(int, disconnect, (struct rdma_cm_id *id), (id), MINUS_ONE, ...)
 *
 * is the member "int (*disconnect)(struct rdma_cm_id *id)". The contract of each pointer is that of
 * vb_cm_<name>() in <verbena/cm.h>. What a backend has to do besides stands above the row. NULL
 * means that the backend does not have the function: vb_cm_<name>() then fails with EOPNOTSUPP.
 *
 * A backend creates librdmacm's own structures. Programs read their members, and the inline
 * functions of <rdma/rdma_verbs.h> call verbs on them: id->verbs, id->pd, id->qp, id->send_cq and
 * their like are objects of the same backend's verbs. id->verbs is a context that the connection
 * manager opens by itself, and closes no earlier than the last object that refers to it.
 *
 * While there are layers, such as an event log, the pointers of a registered backend lead to them, and
 * only vb_cm_<name>() finds the backend then: call the functions by it.
 *
 * The channel of an identifier without one, which create_id with a NULL channel makes, is the
 * backend's own: no program destroys it.
 *
 * A backend may trust that an object is its own: vb_cm_<name>() refuses all others. Any thread may
 * call any function at any time. A call that fails changes nothing. A failure is explained as that
 * of a verb: by last_why, last_error or listen of struct vb_backend.
 */
#ifndef VERBENA_CM_BACKEND_H
#define VERBENA_CM_BACKEND_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_cm_backend {
#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	result(*name) parameters; /* NOLINT(bugprone-macro-parentheses) */
#include <verbena/cm.def>
};

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CM_BACKEND_H */
