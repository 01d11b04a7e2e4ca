/* SPDX-License-Identifier: MIT */
/* Identifiers: creation, destruction, and moving to another channel. */
#include "backends/sim/cm/private.h"

#include <stdlib.h>
#include <string.h>

/* --- beginning --- */

/* Allocates the identifier's events with it, so that a call that needs no other memory always ends with its
 * event. */
struct cm_id *cm_id_new(struct cm *cm, struct cm_channel *channel, void *context,
			enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	struct cm_id *id = pool_prepare(&cm->events) ? pool_take(&cm->ids) : NULL;

	if (!id)
		return NULL;
	id->rdma.channel = &channel->rdma;
	id->rdma.context = context;
	id->rdma.ps = ps;
	id->rdma.qp_type = qp_type;
	id->cm = cm;
	id->channel = channel;
	id->orphaned = false;
	id->starting_psn = (uint32_t)(sim_random_next(&cm->random) & 0xffffff);
	id->next = cm->first_id;
	id->link = &cm->first_id;
	if (id->next)
		id->next->link = &id->next;
	cm->first_id = id;
	cm->world->cm.live++;
	return id;
}

/* Linux ucma.c, ucma_get_qp_type. Returns 0 for an unknown port space. */
static enum ibv_qp_type default_type(enum rdma_port_space ps)
{
	switch (ps) {
	case RDMA_PS_TCP:
	case RDMA_PS_IB:
		return IBV_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return IBV_QPT_UD;
	default:
		return 0;
	}
}

/* As rdma_create_id(3), with the type of the QP. NULL with errno and a sentence. */
static struct cm_id *create(struct cm *cm, struct cm_channel *channel, void *context,
			    enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	static const char call[] = "create_id";
	HOLD hold = world_hold(cm->world);
	struct cm_channel *own = NULL;
	struct cm_id *id;

	if (hold.world->retired)
		return null_errno(refuse_plainly(call, VB_WHY_WORLD_ENDED));
	if (!default_type(ps))
		return null_errno(
			refuse_why(call, (struct vb_why){VB_WHY_CM_PORT_SPACE, {(uint64_t)ps}}));
	if (!channel) {
		own = cm_channel_new(cm, call);
		if (!own)
			return NULL;
	}
	id = cm_id_new(cm, channel ? channel : own, context, ps, qp_type);
	if (!id) {
		if (own)
			cm_channel_end(own);
		return null_errno(refuse_plainly(call, VB_WHY_NO_MEMORY));
	}
	id->sync = own;
	return id;
}

int cm_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **rdma, void *context,
		 enum rdma_port_space ps)
{
	struct cm *cm = channel ? cm_channel_of(channel)->cm : cm_default("create_id");
	struct cm_id *id;

	if (!cm)
		return -1;
	id = create(cm, channel ? cm_channel_of(channel) : NULL, context, ps, default_type(ps));
	if (!id)
		return -1;
	*rdma = &id->rdma;
	return 0;
}

/* --- end --- */

static void unlink_id(struct cm_id *id)
{
	*id->link = id->next;
	if (id->next)
		id->next->link = id->link;
}

void cm_id_end(struct cm_id *id)
{
	struct cm *cm = id->cm;

	cm_ending_stop(id);
	cm_drop_events(id);
	if (id->comm)
		sim_cm_destroy(id->comm);
	cm_groups_end(id);
	if (id->reserved)
		sim_cm_unreserve(cm_engine(cm), id->service_id, id->service_address);
	cm_device_release(id);
	unlink_id(id);
	if (id->sync)
		cm_channel_end(id->channel);
	free(id->rdma.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect);
	pool_give(&cm->ids, id);
	cm->world->cm.live--;
}

static bool all_acknowledged(const void *arg)
{
	const struct cm_id *id = arg;

	return id->events_read == id->events_acked;
}

/* Waits until the program has acknowledged the events that it has taken. 0, or an errno with a sentence. */
static int await_acks(struct hold *hold, const struct cm_id *id, const char *call)
{
	int err = driver_wait_for_others(&hold->world->driver, all_acknowledged, id);

	return err ? refuse_wait(call, err,
				 (struct vb_why){VB_WHY_CM_UNACKED,
						 {id->events_read - id->events_acked}})
		   : 0;
}

static void acknowledge_own(struct cm_id *id)
{
	if (id->rdma.event)
		cm_ack_cm_event(id->rdma.event);
	id->rdma.event = NULL;
}

int cm_destroy_id(struct rdma_cm_id *rdma)
{
	struct cm_id *id = cm_id_of(rdma);
	int err;

	acknowledge_own(id);
	HOLD hold = world_hold(id->cm->world);

	err = hold.world->retired ? 0 : await_acks(&hold, id, "destroy_id");
	if (err)
		return minus_errno(err);
	cm_id_end(id);
	/* Tells the peer of a connection that ends, or of a request that is rejected. */
	if (!hold.world->retired)
		driver_catch_up(&hold.world->driver);
	return 0;
}

void cm_destroy_ep(struct rdma_cm_id *rdma)
{
	if (rdma->qp)
		cm_destroy_qp(rdma);
	if (rdma->srq)
		cm_destroy_srq(rdma);
	cm_destroy_id(rdma);
}

/* --- to another channel --- */

int cm_id_migrate(struct cm_id *id, struct cm_channel *channel)
{
	static const char call[] = "migrate_id";
	HOLD hold = world_hold(id->cm->world);
	struct cm_channel *old = id->channel;
	const bool sync = !channel;
	int err = cm_check_state(id, call);

	if (!err)
		err = await_acks(&hold, id, call);
	if (err)
		return err;
	if (sync)
		channel = cm_channel_new(id->cm, call);
	if (!channel)
		return errno;
	cm_move_events(id, channel);
	id->channel = channel;
	id->orphaned = false;
	id->rdma.channel = &channel->rdma;
	if (id->sync)
		cm_channel_end(old);
	id->sync = sync;
	return 0;
}

int cm_migrate_id(struct rdma_cm_id *rdma, struct rdma_event_channel *channel)
{
	struct cm_id *id = cm_id_of(rdma);
	int err;

	if (id->sync && !channel)
		return minus_errno(refuse_plainly("migrate_id", VB_WHY_CM_IS_SYNC));
	if (id->sync)
		acknowledge_own(id);
	err = cm_id_migrate(id, channel ? cm_channel_of(channel) : NULL);
	return err ? minus_errno(err) : 0;
}

/* --- rdma_create_ep(3) --- */

static void *copy_of(const void *bytes, size_t size_bytes)
{
	void *copy = malloc(size_bytes);

	return copy ? memcpy(copy, bytes, size_bytes)
		    : null_errno(refuse_plainly("create_ep", VB_WHY_NO_MEMORY));
}

/* cm_bind_addr() and cm_resolve_addr() refuse an address that is missing, or of another family. */
static int check_length(const struct sockaddr *address, socklen_t length_bytes, const char *which)
{
	const socklen_t needed_bytes = cm_address_bytes(address);

	if (!address || !needed_bytes || length_bytes == needed_bytes)
		return 0;
	return minus_errno(refuse_why(
		"create_ep", (struct vb_why){VB_WHY_CM_ADDRESS_LENGTH,
					     {length_bytes, address->sa_family, needed_bytes},
					     .text = which}));
}

static int fill_passive(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			const struct ibv_qp_init_attr *attr)
{
	if (check_length(res->ai_src_addr, res->ai_src_len, "source address") ||
	    cm_bind_addr(&id->rdma, res->ai_src_addr))
		return -1;
	if (pd)
		id->rdma.pd = pd;
	if (!attr)
		return 0;
	id->qp_init_attr = copy_of(attr, sizeof(*attr));
	if (!id->qp_init_attr)
		return -1;
	id->qp_init_attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return 0;
}

static int resolve(struct cm_id *id, const struct rdma_addrinfo *res)
{
	static const int timeout_ms = 2000; /* rdma-core librdmacm/cma.c, rdma_create_ep */
	/* rdma-core librdmacm/cma.c, rdma_resolve_addr2: without a length there is no source address. */
	struct sockaddr *source = res->ai_src_len ? res->ai_src_addr : NULL;
	int err = check_length(source, res->ai_src_len, "source address");

	if (!err)
		err = check_length(res->ai_dst_addr, res->ai_dst_len, "destination address");
	if (!err)
		err = cm_resolve_addr(&id->rdma, source, res->ai_dst_addr, timeout_ms);
	if (err)
		return err;
	if (!res->ai_route_len)
		return cm_resolve_route(&id->rdma, timeout_ms);
	err = cm_set_option(&id->rdma, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, res->ai_route,
			    res->ai_route_len);
	return err ? err : cm_complete(id, "create_ep");
}

static int fill_active(struct cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		       struct ibv_qp_init_attr *attr)
{
	if (resolve(id, res))
		return -1;
	if (attr) {
		attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
		if (cm_create_qp(&id->rdma, pd, attr))
			return -1;
	}
	if (!res->ai_connect_len)
		return 0;
	id->connect = copy_of(res->ai_connect, res->ai_connect_len);
	id->connect_bytes = id->connect ? res->ai_connect_len : 0;
	return id->connect ? 0 : -1;
}

int cm_create_ep(struct rdma_cm_id **rdma, struct rdma_addrinfo *res, struct ibv_pd *pd,
		 struct ibv_qp_init_attr *attr)
{
	struct cm *cm = cm_default("create_ep");
	struct cm_id *id;
	int err;

	if (!cm)
		return -1;
	id = create(cm, NULL, NULL, (enum rdma_port_space)res->ai_port_space,
		    (enum ibv_qp_type)res->ai_qp_type);
	if (!id)
		return -1;
	err = res->ai_flags & RAI_PASSIVE ? fill_passive(id, res, pd, attr)
					  : fill_active(id, res, pd, attr);
	if (err) {
		const int kept = errno;

		cm_destroy_ep(&id->rdma);
		return minus_errno(kept);
	}
	*rdma = &id->rdma;
	return 0;
}
