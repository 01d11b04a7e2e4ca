/* SPDX-License-Identifier: MIT */
/*
 * Addresses of the family AF_IB: struct sockaddr_ib of <infiniband/ib.h>. Such an address names a GID, a P_Key and a
 * service ID. Its connections have no IP header in the private data: Linux drivers/infiniband/core/cma.c,
 * cma_user_data_offset.
 */
#ifndef BACKENDS_SIM_CM_INFINIBAND_H
#define BACKENDS_SIM_CM_INFINIBAND_H

#include "backends/sim/cm/private.h"

static inline bool cm_is_infiniband(const struct cm_id *id)
{
	return id->source.ss_family == AF_IB;
}

/* Chooses the port space of the identifier's source address from its service ID and its mask. 0, or an errno with a
 * sentence. */
int cm_ib_choose_space(struct cm_id *id, const char *call);

/* Returns the service ID of a port in the port space of the identifier's source address. */
uint64_t cm_ib_service_id(const struct cm_id *id, uint16_t port);

/* Returns the service ID of the identifier's destination. */
uint64_t cm_ib_dest_service_id(const struct cm_id *id);

/* The source of an identifier that is bound to no address: with the P_Key of the destination. */
struct sockaddr_storage cm_ib_source_for(const struct sockaddr *dest);

/* Finds a port for the identifier's destination. 0, or an errno with a sentence. */
int cm_ib_find_port(struct cm_id *id, struct cm_place *place, const char *call);

/* Gives the path of the identifier what its source address says: the P_Key and the traffic class. */
void cm_ib_set_path(struct cm_id *id);

/* Resolves the route to the identifier's destination. Sets *status to that of ROUTE_ERROR; 0: there is a route. Returns
 * 0, or an errno with a sentence. */
int cm_ib_find_route(const struct cm_id *id, int *status, const char *call);

/* Fills in both addresses of the identifier of a request. */
void cm_ib_fill_request(struct cm_id *id, const struct cm_id *listener,
			const struct sim_cm_event *event);

/* Returns the index of the identifier's P_Key in the table of its port; 0 if the table lacks the P_Key. */
uint16_t cm_ib_pkey_index(const struct cm_id *id);

#endif
