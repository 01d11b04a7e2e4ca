/* SPDX-License-Identifier: MIT */
#include "src/connect/config.h"
#include "src/connect/device.h"
#include "src/connect/endpoint.h"
#include "src/connect/object.h"

#include <arpa/inet.h>

struct vb_prepared_qp {
	struct ibv_qp *qp;
	struct vb_qp_config config; /* with the actual port, GID index and P_Key index */
	struct vb_endpoint endpoint;
	uint8_t link_layer;
};

/* --- the port --- */

/* Returns the index of the default P_Key, which InfiniBand's subnet manager may put anywhere. 0 if the port
 * lacks it, or if the table cannot be read. */
static uint32_t default_pkey_index(struct vb_device *device, uint32_t port_num)
{
	const int index = vb_get_pkey_index(device->context, (uint8_t)port_num, htons(0xffff));

	return index > 0 ? (uint32_t)index : 0;
}

/* Replaces VB_PORT_OF_DEVICE, VB_GID_INDEX_OF_DEVICE and VB_PKEY_INDEX_DEFAULT in config, and reads that port
 * and GID. */
static int read_port(struct vb_device *device, struct vb_qp_config *config,
		     struct ibv_port_attr *port, union ibv_gid *gid)
{
	int err;

	if (config->port_num == VB_PORT_OF_DEVICE)
		config->port_num = device->port_num;
	if (config->gid_index == VB_GID_INDEX_OF_DEVICE)
		config->gid_index = (uint32_t)device->gid_index;
	if (config->pkey_index == VB_PKEY_INDEX_DEFAULT)
		config->pkey_index = default_pkey_index(device, config->port_num);
	err = port_read(device->context, (uint8_t)config->port_num, port);
	return err ? err
		   : port_read_gid(device->context, (uint8_t)config->port_num,
				   (int)config->gid_index, gid);
}

static struct ibv_ah_attr address_of(const struct vb_qp_config *config, uint8_t link_layer,
				     const union ibv_gid *own, const struct vb_endpoint *remote)
{
	bool other_subnet = own->global.subnet_prefix != remote->gid.global.subnet_prefix;

	return (struct ibv_ah_attr){
		.dlid = remote->lid,
		.sl = (uint8_t)config->service_level,
		.port_num = (uint8_t)config->port_num,
		/* RoCE always has a GRH; InfiniBand needs one to leave the subnet. */
		.is_global = link_layer == IBV_LINK_LAYER_ETHERNET || other_subnet || !remote->lid,
		.grh = {.dgid = remote->gid,
			.sgid_index = (uint8_t)config->gid_index,
			.hop_limit = (uint8_t)config->hop_limit,
			.traffic_class = (uint8_t)config->traffic_class},
	};
}

/* --- preparing --- */

static int create(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
		  struct vb_prepared_qp *prepared)
{
	const struct vb_qp_config *config = &prepared->config;
	struct ibv_qp_init_attr attr = {
		.qp_context = config->qp_context,
		.send_cq = send_cq,
		.recv_cq = recv_cq,
		.srq = config->srq,
		.qp_type = (enum ibv_qp_type)config->type,
		.cap = {.max_send_wr = config->max_send_wr,
			.max_recv_wr = config->srq ? 0 : config->max_recv_wr,
			.max_send_sge = config->max_send_sge,
			.max_recv_sge = config->srq ? 0 : config->max_recv_sge,
			.max_inline_data = config->max_inline_data},
	};

	if (!send_cq || !recv_cq)
		return fail(EINVAL, "qp_prepare: there is no %s CQ", send_cq ? "receive" : "send");
	prepared->qp = vb_create_qp(pd, &attr);
	if (!prepared->qp)
		return fail_because(errno, "qp_prepare: %s QP",
				    vb_qp_type_str((enum ibv_qp_type)config->type));
	return 0;
}

static int prepare(struct vb_device *device, struct ibv_pd *pd, struct ibv_cq *send_cq,
		   struct ibv_cq *recv_cq, struct vb_prepared_qp *prepared)
{
	struct vb_endpoint *endpoint = &prepared->endpoint;
	struct vb_qp_config *config = &prepared->config;
	struct ibv_port_attr port = {0};
	int err = qp_config_check(config);

	if (!err)
		err = read_port(device, config, &port, &endpoint->gid);
	if (!err)
		err = create(pd, send_cq, recv_cq, prepared);
	if (err || !prepared->qp)
		return err;
	endpoint->qpn = prepared->qp->qp_num;
	endpoint->lid = port.lid;
	endpoint->psn = config->sq_psn;
	endpoint->mtu = config->path_mtu == VB_MTU_OF_PORT ? port.active_mtu
							   : (enum ibv_mtu)config->path_mtu;
	prepared->link_layer = port.link_layer;
	return 0;
}

struct vb_prepared_qp *vb_qp_prepare(struct vb_device *device, struct ibv_pd *pd,
				     struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
				     const struct vb_qp_config *config)
{
	struct vb_prepared_qp *prepared = object_new(sizeof(*prepared), "qp_prepare");
	int err;

	if (!prepared)
		return NULL;
	if (config)
		prepared->config = *config;
	else
		vb_qp_config_init(&prepared->config);
	err = prepare(device, pd, send_cq, recv_cq, prepared);
	return err ? object_drop(prepared, err) : prepared;
}

int vb_prepared_drop(struct vb_prepared_qp *prepared)
{
	int err;

	if (!prepared)
		return 0;
	err = vb_destroy_qp(prepared->qp);
	if (err)
		return fail_because(err, "QP 0x%x", prepared->endpoint.qpn);
	free(prepared);
	return 0;
}

const struct vb_endpoint *vb_prepared_endpoint(const struct vb_prepared_qp *prepared)
{
	return &prepared->endpoint;
}

struct ibv_qp *vb_prepared_qp(const struct vb_prepared_qp *prepared)
{
	return prepared->qp;
}

/* --- the handshake --- */

/* The attributes of each step by QP type: man ibv_modify_qp(3). */
static const struct step {
	enum ibv_qp_state state;
	int rc, uc, ud;
} steps[] = {
	{IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_RTR,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, 0},
	{IBV_QPS_RTS,
	 IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 IBV_QP_SQ_PSN, IBV_QP_SQ_PSN},
};

static int mask_of(const struct step *step, uint32_t type)
{
	return type == IBV_QPT_RC ? step->rc : type == IBV_QPT_UC ? step->uc : step->ud;
}

static struct ibv_qp_attr attributes(const struct vb_prepared_qp *prepared,
				     const struct vb_endpoint *remote)
{
	const struct vb_qp_config *config = &prepared->config;
	enum ibv_mtu mtu = prepared->endpoint.mtu;

	return (struct ibv_qp_attr){
		.pkey_index = (uint16_t)config->pkey_index,
		.port_num = (uint8_t)config->port_num,
		.qp_access_flags = config->access,
		.qkey = config->qkey,
		.path_mtu = remote->mtu < mtu ? remote->mtu : mtu,
		.dest_qp_num = remote->qpn,
		.rq_psn = config->rq_psn == VB_PSN_OF_PEER ? remote->psn : config->rq_psn,
		.sq_psn = config->sq_psn,
		.max_rd_atomic = (uint8_t)config->max_rd_atomic,
		.max_dest_rd_atomic = (uint8_t)config->max_dest_rd_atomic,
		.min_rnr_timer = (uint8_t)config->min_rnr_timer,
		.timeout = (uint8_t)config->timeout,
		.retry_cnt = (uint8_t)config->retry_cnt,
		.rnr_retry = (uint8_t)config->rnr_retry,
		.ah_attr =
			address_of(config, prepared->link_layer, &prepared->endpoint.gid, remote),
	};
}

static int connect_qp(const struct vb_prepared_qp *prepared, const struct vb_endpoint *remote)
{
	struct ibv_qp_attr attr;
	int err;

	err = endpoint_check(remote);
	if (err)
		return err;
	attr = attributes(prepared, remote);
	for (size_t i = 0; i < COUNT(steps); i++) {
		attr.qp_state = steps[i].state;
		err = vb_modify_qp(prepared->qp, &attr,
				   IBV_QP_STATE | mask_of(&steps[i], prepared->config.type));
		if (!err)
			continue;
		fail_because(err, "handshake: QP 0x%x to %s", prepared->endpoint.qpn,
			     vb_qp_state_str(steps[i].state));
		/* The caller may try another endpoint. */
		attr.qp_state = IBV_QPS_RESET;
		vb_modify_qp(prepared->qp, &attr, IBV_QP_STATE);
		return err;
	}
	return 0;
}

struct ibv_qp *vb_handshake(struct vb_prepared_qp *prepared, const struct vb_endpoint *remote)
{
	bool datagrams = prepared->config.type == IBV_QPT_UD;
	struct ibv_qp *qp = prepared->qp;
	int err;

	if (!remote && !datagrams) {
		fail(EINVAL, "handshake: QP 0x%x: a connected QP needs the remote endpoint",
		     prepared->endpoint.qpn);
		return NULL;
	}
	err = connect_qp(prepared, remote ? remote : &prepared->endpoint);
	if (err) {
		errno = err;
		return NULL;
	}
	free(prepared);
	return qp;
}

struct ibv_ah *vb_endpoint_ah(struct vb_device *device, struct ibv_pd *pd,
			      const struct vb_qp_config *config, const struct vb_endpoint *remote)
{
	struct vb_qp_config own;
	struct ibv_port_attr port = {0};
	struct ibv_ah_attr attr;
	union ibv_gid gid = {0};
	struct ibv_ah *ah;
	int err;

	if (config)
		own = *config;
	else
		vb_qp_config_init(&own);
	err = qp_config_check(&own);
	if (!err)
		err = endpoint_check(remote);
	if (!err)
		err = read_port(device, &own, &port, &gid);
	if (err) {
		errno = err;
		return NULL;
	}
	attr = address_of(&own, port.link_layer, &gid, remote);
	ah = vb_create_ah(pd, &attr);
	if (!ah)
		fail_because(errno, "endpoint_ah: to QP 0x%x", remote->qpn);
	return ah;
}
