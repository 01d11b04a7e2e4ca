/* SPDX-License-Identifier: MIT */
/*
 * A librdmacm of few functions, which fail with the errno value that the test gives.
 */
#include "test/ibverbs/standin_rdmacm.h"

#include <errno.h>
#include <stddef.h>

struct standin_rdmacm standin_rdmacm;

static struct rdma_event_channel channel;

struct rdma_event_channel *rdma_create_event_channel(void)
{
	errno = standin_rdmacm.error;
	return standin_rdmacm.error ? NULL : &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *ended)
{
	standin_rdmacm.ended = ended;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	standin_rdmacm.id = id;
	standin_rdmacm.param = conn_param;
	errno = standin_rdmacm.error;
	return standin_rdmacm.error ? -1 : 0;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		     struct rdma_addrinfo **res)
{
	errno = ENOENT;
	return standin_rdmacm.error;
}
