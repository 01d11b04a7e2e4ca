/* SPDX-License-Identifier: MIT */
/* What layers look at: <verbena/backend.h>. A virtual clock stands still, and no refusal is kept. */
#include "backends/sim/verb/verbs.h"

#include "sim/engine.h"

int verb_look_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr)
{
	HOLD hold = context_hold(ibv->context);
	const struct qp *qp = qp_of(ibv);

	/* The process of another process's target QP would have to be asked. */
	if (!qp || qp->process)
		return ENOENT;
	sim_qp_query(qp->engine, attr);
	return 0;
}

int verb_look_port(struct ibv_context *ibv, uint8_t port_num, struct ibv_port_attr *attr)
{
	HOLD hold = context_hold(ibv);
	const struct context *context = context_of(ibv);
	struct sim_port *port =
		context_live(context) ? sim_device_port(context->device->engine, port_num) : NULL;

	if (!port)
		return ENOENT;
	sim_port_query(port, attr);
	return 0;
}

/* --- the other end --- */

static int look_at(const struct sim_device *device, uint32_t number, struct ibv_qp_attr *attr,
		   enum ibv_qp_type *type)
{
	const struct sim_qp *qp = sim_table_find(&device->qps, number);

	if (!qp)
		return ENOENT;
	sim_qp_query(qp, attr);
	*type = sim_qp_type(qp);
	return 0;
}

void verb_serve_look(const struct vb_sim *world, struct world_call *call)
{
	const struct device *device = world_shared_device(world, call->device);
	enum ibv_qp_type type = IBV_QPT_DRIVER;

	call->error = device ? look_at(device->engine, call->number, &call->attr, &type) : ENOENT;
	call->mask = type;
}

/* Asks the process that has the QP. */
static int ask(struct vb_sim *world, const struct sim_device *device, struct vb_peer *peer)
{
	const uint64_t process = world_qp_process(world, device, peer->qpn);
	struct world_call call = {.what = CALL_LOOK, .device = device->index, .number = peer->qpn};

	if (!process || world_ask(world, process, &call) || call.error)
		return ENOENT;
	peer->attr = call.attr;
	peer->type = (enum ibv_qp_type)call.mask;
	return 0;
}

int verb_look_peer(struct ibv_qp *ibv, struct ibv_ah *ibv_ah, uint32_t remote_qpn,
		   struct vb_peer *peer)
{
	HOLD hold = context_hold(ibv->context);
	const struct qp *qp = qp_of(ibv);
	const struct ah *ah = ibv_ah ? ah_of(ibv_ah) : NULL;
	struct ibv_qp_attr attr;
	struct sim_path path;

	if (!qp || qp->process || (ibv_ah && !ah))
		return ENOENT;
	sim_qp_query(qp->engine, &attr);
	if (sim_path_resolve(sim_qp_device(qp->engine), ah ? &ah->engine->attr : &attr.ah_attr,
			     &path))
		return ENOENT;
	sim_fabric_find_way(hold.world->driver.engine, &path);
	if (!path.dest || path.multicast)
		return ENOENT;
	*peer = (struct vb_peer){
		.device = path.dest->device->name,
		.qpn = ah ? remote_qpn : attr.dest_qp_num,
	};
	if (look_at(path.dest->device, peer->qpn, &peer->attr, &peer->type) &&
	    ask(hold.world, path.dest->device, peer))
		return ENOENT;
	return peer->attr.port_num == path.dest->number ? 0 : ENOENT;
}
