/* SPDX-License-Identifier: MIT */
/*
 * The exported functions of librdmacm, by the function of <verbena/cm.h> with the same name. The
 * functions of rsocket(7) are in rsocket.c.
 */
#include "src/dropin/dropin.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <verbena/cm.h>
#include <verbena/error.h>

#define SERVE(result, name, parameters, arguments) \
	result rdma_##name parameters              \
	{                                          \
		return vb_cm_##name arguments;     \
	}

/* What a row becomes, by how vb_cm_<name>() finds the backend. */
#define SERVE_ID(...)	   SERVE(__VA_ARGS__)
#define SERVE_BY_HAND(...) SERVE(__VA_ARGS__)
#define SERVE_NAMED(...)

#define VB_CM(result, name, parameters, arguments, convention, by, object, version) \
	SERVE_##by(result, name, parameters, arguments)
#define VB_CM_PLAIN(result, name, parameters, arguments, version) \
	SERVE(result, name, parameters, arguments)
#include <verbena/cm.def>

/* --- the functions that name the backend --- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel;
	int err;

	dropin_begin();
	channel = vb_cm_create_event_channel(BACKEND);
	err = errno;
	if (!channel)
		dropin_tell(vb_last_error());
	errno = err;
	return channel;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	dropin_begin();
	return vb_cm_create_id(BACKEND, channel, id, context, ps);
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *qp_init_attr)
{
	dropin_begin();
	return vb_cm_create_ep(BACKEND, id, res, pd, qp_init_attr);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	dropin_begin();
	return vb_cm_getaddrinfo(BACKEND, node, service, hints, res);
}

struct ibv_context **rdma_get_devices(int *num_devices)
{
	dropin_begin();
	return vb_cm_get_devices(BACKEND, num_devices);
}
