/* SPDX-License-Identifier: MIT */
/* Service IDs: who has reserved them, and who listens. */
#include "sim/cm/ip.h"
#include "sim/cm/private.h"

#include "sim/base/refuse.h"
#include "sim/net/net.h"
#include "sim/net/service_address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool same_address(const uint8_t a[16], const uint8_t b[16])
{
	return memcmp(a, b, 16) == 0;
}

static int refuse_service(struct sim_engine *engine, int err, uint64_t service_id)
{
	static const enum vb_reason reasons[] = {VB_WHY_CM_SERVICES_FULL, VB_WHY_CM_SERVICE_USED,
						 VB_WHY_CM_SERVICE_OVERLAPS};
	const unsigned int which = err == EADDRINUSE ? 1 : err == EADDRNOTAVAIL ? 2 : 0;

	return sim_refuse(engine, (struct vb_why){reasons[which], {service_id}});
}

/* Refuses what the way out has refused, and names the process that has the service ID. */
static int refuse_outside(struct sim_engine *engine, int err, uint64_t service_id)
{
	const struct sim_way_out *way = engine->net->way;
	const char *taker = err == ENOMEM || !way->taken_by ? NULL : way->taken_by(way->arg);
	const bool same = err == EADDRINUSE;

	if (!taker)
		return refuse_service(engine, err, service_id);
	return sim_refuse(engine,
			  (struct vb_why){same ? VB_WHY_CM_SERVICE_TAKEN : VB_WHY_CM_SERVICE_BESIDE,
					  {service_id},
					  .text = taker});
}

/* --- reservations --- */

static struct sim_cm_reservation **bucket_of(struct sim_cm_manager *manager, uint64_t service_id)
{
	return &manager->reservations[sim_cm_index_bucket((struct sim_cm_key){service_id, 0})];
}

/* Returns the errno value of the newest reservation that excludes another one; 0: there is none. */
static int find_conflict(struct sim_cm_manager *manager, uint64_t service_id,
			 const uint8_t address[16], uint32_t flags,
			 const struct sim_cm_reservation *except)
{
	for (const struct sim_cm_reservation *it = *bucket_of(manager, service_id); it;
	     it = it->next) {
		const uint32_t listens = it->listens ? SIM_SERVICE_SHARED : 0;
		int err;

		if (it == except || it->service_id != service_id)
			continue;
		err = sim_service_conflict(address, flags, it->address, it->flags & ~listens);
		if (err)
			return err;
	}
	return 0;
}

/* Finds the place of a reservation, one that nobody listens to before others; *place is NULL if there is
 * none. */
static struct sim_cm_reservation **find(struct sim_cm_manager *manager, uint64_t service_id,
					const uint8_t address[16])
{
	struct sim_cm_reservation **found = NULL, **link;

	for (link = bucket_of(manager, service_id); *link; link = &(*link)->next) {
		if ((*link)->service_id != service_id || !same_address((*link)->address, address))
			continue;
		if (!(*link)->listens)
			return link;
		found = link;
	}
	return found ? found : link;
}

int sim_cm_reserve(struct sim_engine *engine, uint64_t service_id, const uint8_t address[16],
		   uint32_t flags)
{
	struct sim_cm_manager *manager = engine->cm;
	const struct sim_way_out *way = engine->net->way;
	struct sim_cm_reservation *reservation, **bucket;
	int err = find_conflict(manager, service_id, address, flags, NULL);

	if (err)
		return refuse_service(engine, err, service_id);
	reservation = calloc(1, sizeof(*reservation));
	if (!reservation)
		return sim_refuse_memory(engine);
	if (way && way->reserve)
		err = way->reserve(way->arg, service_id, address, flags);
	if (err) {
		free(reservation);
		return refuse_outside(engine, err, service_id);
	}
	reservation->service_id = service_id;
	reservation->flags = flags & ~(uint32_t)SIM_SERVICE_UNIQUE;
	memcpy(reservation->address, address, sizeof(reservation->address));
	bucket = bucket_of(manager, service_id);
	reservation->next = *bucket;
	*bucket = reservation;
	return 0;
}

static void remove_at(struct sim_engine *engine, struct sim_cm_reservation **place)
{
	const struct sim_way_out *way = engine->net->way;
	struct sim_cm_reservation *reservation = *place;

	*place = reservation->next;
	if (way && way->unreserve)
		way->unreserve(way->arg, reservation->service_id, reservation->address);
	free(reservation);
}

void sim_cm_unreserve(struct sim_engine *engine, uint64_t service_id, const uint8_t address[16])
{
	struct sim_cm_reservation **place = find(engine->cm, service_id, address);

	if (*place)
		remove_at(engine, place);
}

void sim_cm_services_destroy(struct sim_cm_manager *manager)
{
	for (uint32_t i = 0; i < SIM_CM_BUCKETS; i++)
		while (manager->reservations[i])
			remove_at(manager->engine, &manager->reservations[i]);
}

void sim_cm_services_forget(struct sim_cm_manager *manager)
{
	for (uint32_t i = 0; i < SIM_CM_BUCKETS; i++) {
		struct sim_cm_reservation *reservation = manager->reservations[i], *next;

		manager->reservations[i] = NULL;
		for (; reservation; reservation = next) {
			next = reservation->next;
			free(reservation);
		}
	}
}

/* --- listeners --- */

/* Reserves the service ID of a listener that has not done so. A listener excludes others that share: Linux
 * drivers/infiniband/core/cma.c, rdma_listen. */
static int reserve_own(struct sim_cm *cm, uint64_t service_id, const uint8_t address[16],
		       struct sim_cm_reservation **own)
{
	struct sim_cm_manager *manager = cm->engine->cm;
	int err;

	*own = *find(cm->engine->cm, service_id, address);
	cm->reserved_by_listen = !*own || (*own)->listens;
	if (cm->reserved_by_listen) {
		err = sim_cm_reserve(cm->engine, service_id, address, 0);
		*own = *bucket_of(manager, service_id);
		return err;
	}
	err = find_conflict(manager, service_id, address,
			    (*own)->flags & ~(uint32_t)SIM_SERVICE_SHARED, *own);
	return err ? refuse_service(cm->engine, err, service_id) : 0;
}

/* Other processes learn of the listener by its reservation. */
static int announce(struct sim_cm *cm, uint64_t service_id, const uint8_t address[16])
{
	struct sim_engine *engine = cm->engine;
	const struct sim_way_out *way = engine->net->way;
	struct sim_cm_reservation *own;
	int err = reserve_own(cm, service_id, address, &own);

	if (err)
		return err;
	if (way && way->listen)
		err = way->listen(way->arg, service_id, address, true);
	if (err) {
		if (cm->reserved_by_listen)
			sim_cm_unreserve(engine, service_id, address);
		return refuse_outside(engine, err, service_id);
	}
	own->listens = true;
	cm->service_flags = own->flags;
	return 0;
}

static void withdraw(struct sim_cm *cm)
{
	const struct sim_way_out *way = cm->engine->net->way;
	struct sim_cm_reservation *own = *bucket_of(cm->engine->cm, cm->service_id);

	while (own && !(own->service_id == cm->service_id &&
			same_address(own->address, cm->address) && own->listens))
		own = own->next;
	if (!own)
		return;
	own->listens = false;
	if (way && way->listen)
		way->listen(way->arg, cm->service_id, cm->address, false);
	if (cm->reserved_by_listen)
		sim_cm_unreserve(cm->engine, cm->service_id, cm->address);
}

int sim_cm_listen(struct sim_cm *cm, uint64_t service_id, const struct sim_device *device,
		  const uint8_t address[16])
{
	struct sim_cm_manager *manager = cm->engine->cm;
	int err;

	if (cm->state != SIM_CM_IDLE)
		return sim_refuse(cm->engine,
				  (struct vb_why){VB_WHY_CM_LISTEN,
						  {cm->local_id},
						  .text = sim_cm_state_name(cm->state)});
	err = announce(cm, service_id, address);
	if (err)
		return err;
	sim_cm_enter(cm, SIM_CM_LISTEN);
	cm->service_id = service_id;
	cm->device = device;
	memcpy(cm->address, address, sizeof(cm->address));
	sim_cm_index_add(&manager->by_service, &cm->by_service, cm,
			 (struct sim_cm_key){service_id, 0});
	return 0;
}

void sim_cm_close_service(struct sim_cm *cm)
{
	sim_cm_index_remove(&cm->engine->cm->by_service, &cm->by_service);
	withdraw(cm);
}

struct sim_cm *sim_cm_find_listener(const struct sim_cm_manager *manager,
				    const struct sim_device *device,
				    const struct sim_gsi_target *target)
{
	const struct sim_cm_node *node =
		sim_cm_index_find(&manager->by_service, (struct sim_cm_key){target->service_id, 0});
	struct sim_cm *found = NULL;
	unsigned int best = 0;

	for (; node; node = sim_cm_index_next(node)) {
		struct sim_cm *cm = node->cm;
		const unsigned int suits =
			sim_service_suits(cm->address, cm->service_flags, sim_gsi_address(target));

		if ((device && cm->device && cm->device != device) || suits <= best)
			continue;
		best = suits;
		found = cm;
	}
	return found;
}

struct sim_gsi_target sim_cm_request_target(const uint8_t *mad)
{
	const bool connects = sim_mad_message(mad) == SIM_CM_REQ;
	struct sim_gsi_target target = {
		.kind = SIM_GSI_SERVICE,
		.service_id = sim_mad_get(mad, connects ? SIM_CM_REQ_SERVICE_ID
							: SIM_CM_SIDR_REQ_SERVICE_ID),
	};
	struct sim_cm_ip ip;

	if (sim_cm_service_is_ip(target.service_id) &&
	    sim_cm_ip_read(sim_mad_bytes(mad, connects ? SIM_CM_REQ_PRIVATE_DATA
						       : SIM_CM_SIDR_REQ_PRIVATE_DATA),
			   &ip)) {
		target.has_address = true;
		memcpy(target.address, ip.dest, sizeof(target.address));
	}
	return target;
}
