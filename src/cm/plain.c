/* SPDX-License-Identifier: MIT */
/* The functions of cm.def that need no backend. */
#include <verbena/cm.h>

#include "src/base/count.h"

#include <infiniband/ib.h>

#define EVENT(name) [RDMA_CM_EVENT_##name] = "RDMA_CM_EVENT_" #name

static const char *const events[] = {
	EVENT(ADDR_RESOLVED),  EVENT(ADDR_ERROR),      EVENT(ROUTE_RESOLVED),
	EVENT(ROUTE_ERROR),    EVENT(CONNECT_REQUEST), EVENT(CONNECT_RESPONSE),
	EVENT(CONNECT_ERROR),  EVENT(UNREACHABLE),     EVENT(REJECTED),
	EVENT(ESTABLISHED),    EVENT(DISCONNECTED),    EVENT(DEVICE_REMOVAL),
	EVENT(MULTICAST_JOIN), EVENT(MULTICAST_ERROR), EVENT(ADDR_CHANGE),
	EVENT(TIMEWAIT_EXIT),
};

const char *vb_cm_event_str(enum rdma_cm_event_type event)
{
	return (unsigned int)event < COUNT(events) ? events[event] : "UNKNOWN EVENT";
}

/* The port of an AF_IB address is the end of its service ID: rdma-core librdmacm/cma.c. */
static __be16 port_of(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return ((const struct sockaddr_in *)addr)->sin_port;
	case AF_INET6:
		return ((const struct sockaddr_in6 *)addr)->sin6_port;
	case AF_IB:
		return htobe16((uint16_t)be64toh(((const struct sockaddr_ib *)addr)->sib_sid));
	default:
		return 0;
	}
}

__be16 vb_cm_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_addr);
}

__be16 vb_cm_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_addr);
}
