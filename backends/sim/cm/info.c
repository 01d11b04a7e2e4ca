/* SPDX-License-Identifier: MIT */
/* rdma_getaddrinfo(3): as rdma-core librdmacm/addrinfo.c, over getaddrinfo(3). */
#include "backends/sim/cm/private.h"

#include <endian.h>
#include <infiniband/ib.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define CALL "getaddrinfo"

/* --- what hints mean --- */

static int socket_type(int qp_type)
{
	switch (qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return SOCK_STREAM;
	case IBV_QPT_UD:
		return SOCK_DGRAM;
	default:
		return 0;
	}
}

static int protocol(int port_space, int socktype)
{
	switch (port_space) {
	case RDMA_PS_TCP:
		return IPPROTO_TCP;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IPPROTO_UDP;
	case RDMA_PS_IB:
		return socktype == SOCK_STREAM	? IPPROTO_TCP
		       : socktype == SOCK_DGRAM ? IPPROTO_UDP
						: 0;
	default:
		return 0;
	}
}

static struct addrinfo wanted(const struct rdma_addrinfo *hints)
{
	const int socktype = socket_type(hints->ai_qp_type);

	return (struct addrinfo){
		.ai_flags = (hints->ai_flags & RAI_PASSIVE ? AI_PASSIVE : 0) |
			    (hints->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
		.ai_family = hints->ai_family == AF_IB ? AF_UNSPEC : hints->ai_family,
		.ai_socktype = socktype,
		.ai_protocol = protocol(hints->ai_port_space, socktype),
	};
}

/* rdma-core librdmacm/addrinfo.c, ucma_convert_to_rai: the C library knows no addresses of InfiniBand, whose
 * numbers are written as those of IPv6. */
static bool wants_infiniband(const struct rdma_addrinfo *hints, const struct addrinfo *found)
{
	return hints->ai_family == AF_IB && (hints->ai_flags & RAI_FAMILY) &&
	       (hints->ai_flags & RAI_NUMERICHOST) && found->ai_family == AF_INET6;
}

/* --- the answer --- */

static int copy_address(struct sockaddr **to, socklen_t *to_bytes, const struct sockaddr *from,
			socklen_t bytes)
{
	*to = malloc(bytes);
	if (!*to)
		return minus_errno(refuse_plainly(CALL, VB_WHY_NO_MEMORY));
	memcpy(*to, from, bytes);
	*to_bytes = bytes;
	return 0;
}

/* rdma-core librdmacm/addrinfo.c, ucma_convert_in6 and ucma_set_sid: port space and port are a service ID. */
static struct sockaddr_ib infiniband_address(const struct sockaddr *address, int port_space)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
	const uint16_t port = cm_address_port(address);
	struct sockaddr_ib made = {
		.sib_family = AF_IB,
		.sib_pkey = htobe16(0xffff),
		.sib_flowinfo = in6->sin6_flowinfo,
		.sib_sid = htobe64((uint64_t)port_space << 16 | port),
		.sib_sid_mask = htobe64((port_space ? RDMA_IB_IP_PS_MASK : 0) |
					(port ? RDMA_IB_IP_PORT_MASK : 0)),
		.sib_scope_id = in6->sin6_scope_id,
	};

	memcpy(&made.sib_addr, &in6->sin6_addr, sizeof(made.sib_addr));
	return made;
}

static int fill(struct rdma_addrinfo *res, const struct rdma_addrinfo *hints,
		const struct addrinfo *found)
{
	const bool passive = hints->ai_flags & RAI_PASSIVE;
	char **name = passive ? &res->ai_src_canonname : &res->ai_dst_canonname;
	struct sockaddr **address = passive ? &res->ai_src_addr : &res->ai_dst_addr;
	socklen_t *bytes = passive ? &res->ai_src_len : &res->ai_dst_len;
	struct sockaddr_ib ib;

	res->ai_flags = passive ? RAI_PASSIVE : 0;
	res->ai_family = found->ai_family;
	res->ai_qp_type = hints->ai_qp_type;
	if (!res->ai_qp_type)
		res->ai_qp_type = found->ai_socktype == SOCK_DGRAM ? IBV_QPT_UD : IBV_QPT_RC;
	res->ai_port_space = hints->ai_port_space;
	if (!res->ai_port_space)
		res->ai_port_space = found->ai_protocol == IPPROTO_UDP ? RDMA_PS_UDP : RDMA_PS_TCP;
	if (found->ai_canonname)
		*name = strdup(found->ai_canonname);
	if (!wants_infiniband(hints, found))
		return copy_address(address, bytes, found->ai_addr, found->ai_addrlen);
	res->ai_family = AF_IB;
	ib = infiniband_address(found->ai_addr, res->ai_port_space);
	return copy_address(address, bytes, (const struct sockaddr *)&ib, sizeof(ib));
}

/* Asks the C library. 0, -1 with errno, or its error. */
static int look_up(struct rdma_addrinfo *res, const char *node, const char *service,
		   const struct rdma_addrinfo *hints)
{
	const struct addrinfo attr = wanted(hints);
	struct addrinfo *found;
	int err = getaddrinfo(node, service, &attr, &found);

	if (err) {
		refuse_name(CALL, VB_WHY_CM_RESOLVER, gai_strerror(err));
		return err;
	}
	err = fill(res, hints, found);
	freeaddrinfo(found);
	return err;
}

/* Without node and service, the hints are the answer. */
static int copy_hints(struct rdma_addrinfo *res, const struct rdma_addrinfo *hints)
{
	res->ai_flags = hints->ai_flags;
	res->ai_family = hints->ai_family;
	res->ai_qp_type = hints->ai_qp_type;
	res->ai_port_space = hints->ai_port_space;
	if (!hints->ai_dst_len)
		return 0;
	return copy_address(&res->ai_dst_addr, &res->ai_dst_len, hints->ai_dst_addr,
			    hints->ai_dst_len);
}

int cm_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
		   struct rdma_addrinfo **answer)
{
	static const struct rdma_addrinfo none;
	struct rdma_addrinfo *res;
	int err;

	if (!node && !service && !hints)
		return minus_errno(refuse_plainly(CALL, VB_WHY_CM_NO_NAME));
	if (!hints)
		hints = &none;
	res = calloc(1, sizeof(*res));
	if (!res)
		return minus_errno(refuse_plainly(CALL, VB_WHY_NO_MEMORY));
	err = node || service ? look_up(res, node, service, hints) : copy_hints(res, hints);
	if (!err && !res->ai_src_len && hints->ai_src_len)
		err = copy_address(&res->ai_src_addr, &res->ai_src_len, hints->ai_src_addr,
				   hints->ai_src_len);
	if (err) {
		cm_freeaddrinfo(res);
		return err;
	}
	*answer = res;
	return 0;
}

void cm_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;

		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}
