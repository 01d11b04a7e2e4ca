/* SPDX-License-Identifier: MIT */
/* Binding an identifier to an address and a port, and resolving a destination. */
#include "backends/sim/cm/infiniband.h"
#include "backends/sim/cm/private.h"

#include "sim/net/service_address.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux net/ipv4/af_inet.c: the lowest of the ports that are given to programs that ask for any port. */
#define PORT_MIN 32768u
#define PORT_MAX 60999u
/* Linux include/net/sock.h, PROT_SOCK: any process may bind ports from this one on. */
#define PORT_FREE 1024u

/* --- ports --- */

static struct sockaddr *source_of(struct cm_id *id)
{
	return (struct sockaddr *)&id->source;
}

/* The address at which a port is reserved (sim/net/service_address.h). Linux cma.c, cma_match_private_data: a
 * wildcard is for both families without the option AFONLY. */
static void service_address(const struct cm_id *id, uint8_t address[16])
{
	const struct sockaddr *source = (const struct sockaddr *)&id->source;
	const union ibv_gid gid = cm_address_gid(source);

	memcpy(address, gid.raw, sizeof(gid.raw));
	if (cm_address_is_any(source) && !id->afonly)
		memset(address, 0, sizeof(gid.raw));
}

/* Tries one port, with enum sim_service_flag besides those of the identifier's options. 0 or the errno of
 * sim_cm_reserve(). */
static int reserve(struct cm_id *id, uint16_t port, uint32_t flags)
{
	const bool infiniband = cm_is_infiniband(id);
	const uint64_t service =
		infiniband ? cm_ib_service_id(id, port)
			   : sim_cm_service_id((enum sim_cm_port_space)id->rdma.ps, port);
	int err;

	service_address(id, id->service_address);
	flags |= (id->reuse ? SIM_SERVICE_SHARED : 0) | (id->afonly ? SIM_SERVICE_AFONLY : 0) |
		 (infiniband ? SIM_SERVICE_INFINIBAND : 0);
	err = sim_cm_reserve(cm_engine(id->cm), service, id->service_address, flags);
	if (err)
		return err;
	id->reserved = true;
	id->service_id = service;
	cm_address_set_port(source_of(id), port);
	return 0;
}

/* Reserves a free port. The search begins behind the last port, so that a port is not used again at once. On
 * the real clock the first port is random, so that processes seldom try the same one. */
static int reserve_any(struct cm_id *id, const char *call)
{
	struct cm *cm = id->cm;

	for (unsigned int i = 0; i <= PORT_MAX - PORT_MIN; i++) {
		const uint16_t port = cm->next_port;
		int err;

		cm->next_port = (uint16_t)(port < PORT_MAX ? port + 1u : PORT_MIN);
		err = reserve(id, port, SIM_SERVICE_UNIQUE);
		if (err != EADDRINUSE && err != EADDRNOTAVAIL)
			return err ? say_refused(cm->world, call, err) : 0;
	}
	return refuse_plainly(call, VB_WHY_CM_NO_PORT);
}

static bool may_bind_low_ports(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	       data[CAP_TO_INDEX(CAP_NET_BIND_SERVICE)].effective &
		       CAP_TO_MASK(CAP_NET_BIND_SERVICE);
}

int cm_bind_port(struct cm_id *id, const char *call)
{
	const uint16_t port = cm_address_port(source_of(id));
	int err;

	if (!port)
		return reserve_any(id, call);
	if (port < PORT_FREE && !may_bind_low_ports())
		return refuse_why(call, (struct vb_why){VB_WHY_CM_PORT_LOW, {port, PORT_FREE}});
	err = reserve(id, port, 0);
	return err ? say_refused(id->cm->world, call, err) : 0;
}

/* --- rdma_bind_addr(3) --- */

static void attach(struct cm_id *id, const struct cm_place *place)
{
	id->device = cm_device_of(id->cm, place->device->engine);
	id->port = place->port;
	id->path.attr.port_num = place->port->number;
	id->path.attr.grh.sgid_index = place->index;
}

/* Finds the device for one of the machine's own addresses: the one that has it; the first device for an
 * address that no device has. 0, or an errno with a sentence. */
static int find_own(struct cm_id *id, const struct sockaddr *address, struct cm_place *place,
		    const char *call)
{
	const union ibv_gid gid = cm_address_gid(address);
	char text[INET6_ADDRSTRLEN];
	struct device *first;

	if (cm_find_gid(id->cm, &gid, place) &&
	    (address->sa_family != AF_IB || sim_port_is_infiniband(place->port))) {
		id->own_address = true;
		return 0;
	}
	if (address->sa_family == AF_IB)
		return refuse_name(call, VB_WHY_CM_IB_GID,
				   cm_address_text(address, text, sizeof(text)));
	if (!cm_address_is_local(address))
		return refuse_name(call, VB_WHY_CM_NOT_LOCAL,
				   cm_address_text(address, text, sizeof(text)));
	first = cm_first_device(id->cm);
	if (first && cm_find_source(first, &gid, place))
		return 0;
	return refuse_name(call, VB_WHY_CM_NO_GID, cm_address_text(address, text, sizeof(text)));
}

/* A link-local address needs its interface: Linux cma.c, cma_check_linklocal. */
static int check_scope(const struct sockaddr *address, const char *call)
{
	const union ibv_gid gid = cm_address_gid(address);
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	char text[INET6_ADDRSTRLEN];

	if (address->sa_family == AF_INET6)
		memcpy(&in6, address, sizeof(in6));
	if (address->sa_family != AF_INET6 || !cm_gid_is_link_local(&gid) || in6.sin6_scope_id)
		return 0;
	return refuse_name(call, VB_WHY_CM_SCOPE, cm_address_text(address, text, sizeof(text)));
}

static int refuse_family(const struct sockaddr *address, const char *which, const char *call)
{
	if (!address)
		return refuse_name(call, VB_WHY_CM_NO_ADDRESS, which);
	return refuse_why(call, (struct vb_why){VB_WHY_CM_FAMILY,
						{address->sa_family, AF_INET, AF_INET6, AF_IB},
						.text = which});
}

static void unbind(struct cm_id *id)
{
	id->device = NULL;
	id->port = NULL;
	id->own_address = false;
	memset(&id->source, 0, sizeof(id->source));
}

/* Binds an identifier in IDLE; its family is known. 0, or an errno with a sentence. */
static int bind_id(struct cm_id *id, const struct sockaddr *address, const char *call)
{
	struct cm_place place;
	int err = check_scope(address, call);

	if (err)
		return err;
	memcpy(&id->source, address, cm_address_bytes(address));
	if (!cm_address_is_any(address)) {
		err = find_own(id, address, &place, call);
		if (!err)
			attach(id, &place);
	}
	/* Linux cma.c, rdma_bind_addr; for IPv6 as net.ipv6.bindv6only is by default. */
	if (!id->afonly_set)
		id->afonly = address->sa_family == AF_INET;
	if (!err && cm_is_infiniband(id))
		err = cm_ib_choose_space(id, call);
	if (!err)
		err = cm_bind_port(id, call);
	if (err) {
		unbind(id);
		return err;
	}
	id->dest.ss_family = address->sa_family;
	id->state = CM_ADDR_BOUND;
	return 0;
}

static int bind_held(struct cm_id *id, const struct sockaddr *address)
{
	HOLD hold = world_hold(id->cm->world);
	int err = cm_check_state(id, "bind_addr");

	return err ? err : bind_id(id, address, "bind_addr");
}

int cm_bind_addr(struct rdma_cm_id *rdma, struct sockaddr *address)
{
	struct cm_id *id = cm_id_of(rdma);
	int err;

	if (!cm_address_bytes(address))
		return minus_errno(refuse_family(address, "address", "bind_addr"));
	err = bind_held(id, address);
	if (!err)
		err = cm_publish(id, "bind_addr");
	return err ? minus_errno(err) : 0;
}

/* --- rdma_resolve_addr(3) --- */

#define RESOLVE "resolve_addr"

static struct sockaddr *dest_of(struct cm_id *id)
{
	return (struct sockaddr *)&id->dest;
}

/* Keeps the source address, with its port. */
static void set_source(struct cm_id *id, const struct sockaddr *address)
{
	const uint16_t port = cm_address_port(source_of(id));
	const union ibv_gid gid = cm_address_gid(address);

	if (address->sa_family == AF_IB) {
		memcpy(&((struct sockaddr_ib *)&id->source)->sib_addr, &gid, sizeof(gid));
		return;
	}
	memcpy(&id->source, address, cm_address_bytes(address));
	cm_address_set_port(source_of(id), port);
}

static void set_loopback(struct cm_id *id)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = IN_LOOPBACKNET, [15] = 1}};
	struct sockaddr_storage loopback;

	if (id->dest.ss_family != AF_INET)
		gid = (union ibv_gid){.raw = {[15] = 1}};
	cm_address_from_gid(&gid, id->dest.ss_family, &loopback);
	set_source(id, (struct sockaddr *)&loopback);
}

/* Sets the source address to the device's own, unless the identifier is bound to one. */
static void choose_source(struct cm_id *id, const struct cm_place *place)
{
	const union ibv_gid *gid = &place->port->gids[place->index];
	struct sockaddr_storage address;

	attach(id, place);
	if (!cm_address_is_any(source_of(id)))
		return;
	cm_address_from_gid(gid, id->dest.ss_family, &address);
	set_source(id, (struct sockaddr *)&address);
	id->own_address = true;
}

/* Returns the place of the identifier's source address, if it is bound to one. */
static bool bound_place(const struct cm_id *id, const union ibv_gid *dest, struct cm_place *place)
{
	const unsigned int index = id->path.attr.grh.sgid_index;

	if (!id->device)
		return false;
	if (sim_port_is_infiniband(id->port) ||
	    sim_gid_is_ipv4(id->port->gids[index].raw) == sim_gid_is_ipv4(dest->raw)) {
		*place = (struct cm_place){id->device->device, id->port, (uint8_t)index};
		return true;
	}
	return cm_find_source(id->device->device, dest, place);
}

static struct ibv_ah_attr attr_to(const struct cm_id *id, const struct cm_place *place,
				  const union ibv_gid *dgid, uint16_t dlid)
{
	return (struct ibv_ah_attr){
		.is_global = !sim_port_is_infiniband(place->port),
		.dlid = dlid,
		.port_num = place->port->number,
		.grh = {.dgid = *dgid,
			.sgid_index = place->index,
			.hop_limit = 64,
			.traffic_class = id->tos},
	};
}

/* Returns true if packets from the place reach the GID. */
static bool reaches(const struct cm_id *id, const struct cm_place *place, const union ibv_gid *dgid)
{
	const struct ibv_ah_attr attr = attr_to(id, place, dgid, 0);
	struct sim_engine *engine = cm_engine(id->cm);
	struct sim_path path = {.source = NULL};

	if (sim_port_is_infiniband(place->port) ||
	    sim_path_resolve(place->device->engine, &attr, &path))
		return false;
	sim_fabric_find_way(engine, &path);
	return path.dest || path.beyond;
}

/* Finds a device that reaches another machine. */
static bool find_way_out(struct cm_id *id, const union ibv_gid *dgid, struct cm_place *place)
{
	struct cm *cm = id->cm;

	if (id->device)
		return bound_place(id, dgid, place) && reaches(id, place, dgid);
	for (unsigned int i = 0; i < cm->world->device_count; i++)
		if (cm_find_source(&cm->world->devices[i], dgid, place) && reaches(id, place, dgid))
			return true;
	return false;
}

static void set_dest(struct cm_id *id, const union ibv_gid *dgid, const struct sim_port *port)
{
	const struct cm_place place = {id->device->device, id->port, id->path.attr.grh.sgid_index};

	id->dgid = *dgid;
	id->path = (struct sim_cm_path){
		.attr = attr_to(id, &place, dgid, port ? port->lid : 0),
		.pkey = id->port->pkeys[sim_port_default_pkey(id->port)],
		.mtu = (enum ibv_mtu)(port && port->mtu < id->port->mtu ? port->mtu
									: id->port->mtu),
		.packet_life_time = CM_ROCE_LIFE_TIME,
	};
}

/* The destination is a device of this machine: packets leave by the device to which the identifier is
 * bound, or by the destination itself, as the kernel's route to an own address has it. */
static bool resolve_to_device(struct cm_id *id, const union ibv_gid *dgid,
			      const struct cm_place *dest)
{
	struct cm_place source = *dest;

	if (id->device && !bound_place(id, dgid, &source))
		return false;
	choose_source(id, &source);
	set_dest(id, dgid, dest->port);
	return true;
}

/* The destination is an address of this machine that no device has: the device that the identifier is
 * bound to stands for it, or the first one. */
static bool resolve_to_machine(struct cm_id *id, const union ibv_gid *gid)
{
	struct device *device = id->device ? id->device->device : cm_first_device(id->cm);
	struct cm_place place;

	if (!device || !(bound_place(id, gid, &place) || cm_find_source(device, gid, &place)))
		return false;
	attach(id, &place);
	if (cm_address_is_any(source_of(id))) {
		if (cm_address_is_any(dest_of(id)) || cm_address_is_loopback(dest_of(id)))
			set_loopback(id);
		else
			set_source(id, dest_of(id));
	}
	set_dest(id, &place.port->gids[place.index], place.port);
	return true;
}

static bool resolve_to_network(struct cm_id *id, const union ibv_gid *dgid)
{
	struct cm_place place;

	if (!find_way_out(id, dgid, &place))
		return false;
	choose_source(id, &place);
	set_dest(id, dgid, NULL);
	return true;
}

/* A group is reached by the device to which the identifier is bound, or by the first one. */
static bool resolve_to_group(struct cm_id *id, const union ibv_gid *gid)
{
	struct device *device = id->device ? id->device->device : cm_first_device(id->cm);
	struct cm_place place;

	if (!device || !(bound_place(id, gid, &place) || cm_find_source(device, gid, &place)))
		return false;
	choose_source(id, &place);
	set_dest(id, gid, NULL);
	return true;
}

/* The destination is a GID: packets leave by the port to which the identifier is bound, or by that of the GID. 0, or an
 * errno with a sentence. */
static int find_ib_path(struct cm_id *id, const union ibv_gid *dgid)
{
	struct cm_place place = {NULL, id->port, id->path.attr.grh.sgid_index}, dest;
	int err = 0;

	if (id->device)
		place.device = id->device->device;
	else
		err = cm_ib_find_port(id, &place, RESOLVE);
	if (err)
		return err;
	choose_source(id, &place);
	set_dest(id, dgid, cm_find_gid(id->cm, dgid, &dest) ? dest.port : NULL);
	cm_ib_set_path(id);
	return 0;
}

/* Finds device and path for the identifier's destination. With the wire udp, another process may have an
 * address of this machine. 0, or an errno with a sentence. */
static int find_path(struct cm_id *id)
{
	const union ibv_gid gid = cm_address_gid(dest_of(id));
	char text[INET6_ADDRSTRLEN];
	struct cm_place dest;
	bool found;

	if (id->dest.ss_family == AF_IB && !cm_address_is_any(dest_of(id)))
		return find_ib_path(id, &gid);
	if (cm_find_gid(id->cm, &gid, &dest))
		found = resolve_to_device(id, &gid, &dest);
	else if (cm_address_is_group(dest_of(id)))
		found = resolve_to_group(id, &gid);
	else if (cm_address_is_any(dest_of(id)) || cm_address_is_home(dest_of(id)))
		found = resolve_to_machine(id, &gid);
	else
		found = resolve_to_network(id, &gid) ||
			(cm_address_is_local(dest_of(id)) && resolve_to_machine(id, &gid));
	if (found)
		return 0;
	return refuse_name(RESOLVE, VB_WHY_CM_UNREACHABLE,
			   cm_address_text(dest_of(id), text, sizeof(text)));
}

static int resolve_held(struct cm_id *id, const struct sockaddr *source,
			const struct sockaddr *dest)
{
	HOLD hold = world_hold(id->cm->world);
	struct sockaddr_storage any = {.ss_family = dest->sa_family};
	int err = cm_check_state(id, RESOLVE);

	if (dest->sa_family == AF_IB)
		any = cm_ib_source_for(dest);
	if (!err && id->state == CM_IDLE)
		err = bind_id(id, source ? source : (struct sockaddr *)&any, RESOLVE);
	if (err)
		return err;
	if (id->source.ss_family != dest->sa_family)
		return refuse_why(RESOLVE,
				  (struct vb_why){VB_WHY_CM_FAMILIES,
						  {id->source.ss_family, dest->sa_family}});
	memcpy(&id->dest, dest, cm_address_bytes(dest));
	err = find_path(id);
	if (err)
		return err;
	id->state = CM_ADDR_RESOLVED;
	cm_event_tell(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	driver_catch_up(&hold.world->driver);
	return 0;
}

/* Addresses resolve at once: the simulated machine knows all of them. */
int cm_resolve_addr(struct rdma_cm_id *rdma, struct sockaddr *source, struct sockaddr *dest,
		    int timeout_ms)
{
	struct cm_id *id = cm_id_of(rdma);
	int err = 0;

	if (!cm_address_bytes(dest))
		err = refuse_family(dest, "destination address", RESOLVE);
	else if (source && !cm_address_bytes(source))
		err = refuse_family(source, "source address", RESOLVE);
	if (!err)
		err = resolve_held(id, source, dest);
	if (err)
		return minus_errno(err);
	memcpy(&rdma->route.addr.dst_storage, dest, cm_address_bytes(dest));
	return cm_complete(id, RESOLVE);
}

/* --- rdma_resolve_route(3) --- */

static int route_held(struct cm_id *id)
{
	HOLD hold = world_hold(id->cm->world);
	int err = cm_check_state(id, "resolve_route");
	int status = 0;

	if (!err && cm_is_infiniband(id))
		err = cm_ib_find_route(id, &status, "resolve_route");
	if (err)
		return err;
	if (status) {
		cm_event_tell(id, RDMA_CM_EVENT_ROUTE_ERROR, status);
		return 0;
	}
	if (!cm_is_infiniband(id))
		id->path.attr.grh.traffic_class = id->tos;
	/* Linux cma.c, cma_resolve_iboe_route: the QP's timeout is one step above the life time. */
	if (id->ack_timeout_set && id->ack_timeout)
		id->path.packet_life_time = id->ack_timeout - 1;
	id->routed = true;
	id->state = CM_ROUTE_RESOLVED;
	cm_event_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

int cm_resolve_route(struct rdma_cm_id *rdma, int timeout_ms)
{
	struct cm_id *id = cm_id_of(rdma);
	int err = timeout_ms ? route_held(id)
			     : refuse_plainly("resolve_route", VB_WHY_CM_ROUTE_TIMEOUT);

	return err ? minus_errno(err) : cm_complete(id, "resolve_route");
}
