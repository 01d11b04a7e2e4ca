/* SPDX-License-Identifier: MIT */
/* The QP of an identifier, its CQs and its SRQ: as rdma-core librdmacm/cma.c makes and moves them. */
#include "backends/sim/cm/infiniband.h"

#include <errno.h>
#include <string.h>

/* --- attributes: rdma_init_qp_attr(3) --- */

/* Linux cma.c, cma_ib_init_qp_attr: before there is a connection, and for datagrams. */
static void fill_first(const struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = cm_is_infiniband(id) ? cm_ib_pkey_index(id)
						: (uint16_t)sim_port_default_pkey(id->port);
	attr->port_num = id->port->number;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (cm_is_datagram(id)) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
	} else {
		attr->qp_access_flags = 0;
		*mask |= IBV_QP_ACCESS_FLAGS;
	}
}

static int init_held(struct cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	static const char call[] = "init_qp_attr";
	HOLD hold = world_hold(id->cm->world);
	int err = cm_check_state(id, call);

	if (err)
		return err;
	if (!id->device)
		return refuse_plainly(call, VB_WHY_CM_NOT_BOUND);
	if (!id->comm || cm_is_datagram(id)) {
		fill_first(id, attr, mask);
		return 0;
	}
	err = sim_cm_init_qp_attr(id->comm, attr, mask);
	if (err)
		return say_refused(hold.world, call, err);
	/* Linux cma.c, rdma_init_qp_attr: the passive side prepares its QP before the REP names the PSN. */
	if (*mask & IBV_QP_RQ_PSN)
		attr->rq_psn = id->starting_psn;
	if (*mask & IBV_QP_TIMEOUT && id->ack_timeout_set)
		attr->timeout = id->ack_timeout;
	return 0;
}

int cm_init_qp_attr(struct rdma_cm_id *rdma, struct ibv_qp_attr *attr, int *mask)
{
	int err = init_held(cm_id_of(rdma), attr, mask);

	return err ? minus_errno(err) : 0;
}

/* --- states --- */

static int modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = verb_modify_qp(qp, attr, mask);

	return err ? minus_errno(err) : 0;
}

/* Moves a QP by the attributes of the connection. `change` may change them; NULL: leaves them. */
static int move(struct cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state,
		void (*change)(struct ibv_qp_attr *attr, uint8_t value), uint8_t value)
{
	struct ibv_qp_attr attr = {.qp_state = state};
	int mask = 0;

	if (cm_init_qp_attr(&id->rdma, &attr, &mask))
		return -1;
	if (change)
		change(&attr, value);
	return modify(qp, &attr, mask);
}

static void set_responder(struct ibv_qp_attr *attr, uint8_t value)
{
	attr->max_dest_rd_atomic = value;
}

static void set_initiator(struct ibv_qp_attr *attr, uint8_t value)
{
	attr->max_rd_atomic = value;
}

/* INIT is set a second time, because the access rights were unknown when the QP was made. */
int cm_qp_to_rtr(struct cm_id *id, uint8_t responder_resources)
{
	struct ibv_qp *qp = id->rdma.qp;

	if (!qp)
		return 0;
	if (move(id, qp, IBV_QPS_INIT, NULL, 0))
		return -1;
	return move(id, qp, IBV_QPS_RTR,
		    responder_resources == RDMA_MAX_RESP_RES ? NULL : set_responder,
		    responder_resources);
}

int cm_qp_to_rts(struct cm_id *id, uint8_t initiator_depth)
{
	struct ibv_qp *qp = id->rdma.qp;

	if (!qp)
		return 0;
	return move(id, qp, IBV_QPS_RTS,
		    initiator_depth == RDMA_MAX_INIT_DEPTH ? NULL : set_initiator, initiator_depth);
}

int cm_qp_to_err(struct cm_id *id)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	return id->rdma.qp ? modify(id->rdma.qp, &attr, IBV_QP_STATE) : 0;
}

/* Moves a datagram QP to RTS when it is made. */
static int start_datagrams(struct cm_id *id, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};

	if (move(id, qp, IBV_QPS_INIT, NULL, 0) || modify(qp, &attr, IBV_QP_STATE))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = 0;
	return modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

/* --- CQs --- */

static void destroy_cq(struct ibv_cq **cq)
{
	if (*cq)
		verb_destroy_cq(*cq);
	*cq = NULL;
}

static void destroy_channel(struct ibv_comp_channel **channel)
{
	if (*channel)
		verb_destroy_comp_channel(*channel);
	*channel = NULL;
}

/* Destroys the CQs, unless an XRC SRQ still uses them. */
static void destroy_cqs(struct rdma_cm_id *id)
{
	if (id->qp_type == IBV_QPT_XRC_RECV && id->srq)
		return;
	if (id->send_cq == id->recv_cq)
		id->send_cq = NULL;
	if (id->send_cq_channel == id->recv_cq_channel)
		id->send_cq_channel = NULL;
	destroy_cq(&id->recv_cq);
	destroy_cq(&id->send_cq);
	destroy_channel(&id->recv_cq_channel);
	destroy_channel(&id->send_cq_channel);
}

static int create_cq(struct rdma_cm_id *id, uint32_t entries, struct ibv_comp_channel **channel,
		     struct ibv_cq **cq)
{
	if (!entries)
		return 0;
	*channel = verb_create_comp_channel(id->verbs);
	if (!*channel)
		return -1;
	*cq = verb_create_cq(id->verbs, (int)entries, id, *channel, 0);
	return *cq ? 0 : -1;
}

static int create_cqs(struct rdma_cm_id *id, uint32_t sends, uint32_t receives)
{
	if (create_cq(id, receives, &id->recv_cq_channel, &id->recv_cq) ||
	    create_cq(id, sends, &id->send_cq_channel, &id->send_cq)) {
		const int kept = errno;

		destroy_cqs(id);
		return minus_errno(kept);
	}
	return 0;
}

/* --- SRQs --- */

#define CREATE_SRQ "create_srq"

/* An XRC SRQ needs a domain and a CQ. */
static int add_domain(struct cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		attr->xrcd = cm_device_xrcd(id->device);
		if (!attr->xrcd)
			return -1;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		if (create_cqs(&id->rdma, 0, attr->attr.max_wr))
			return -1;
		attr->cq = id->rdma.recv_cq;
	}
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

int cm_create_srq_ex(struct rdma_cm_id *rdma, struct ibv_srq_init_attr_ex *attr)
{
	struct cm_id *id = cm_id_of(rdma);
	struct ibv_srq *srq;

	if (!rdma->verbs)
		return minus_errno(refuse_plainly(CREATE_SRQ, VB_WHY_CM_NOT_BOUND));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return minus_errno(refuse_plainly(CREATE_SRQ, VB_WHY_CM_SRQ_TYPE));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->pd = rdma->pd;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	}
	if (attr->srq_type == IBV_SRQT_XRC && add_domain(id, attr))
		return -1;
	srq = verb_create_srq_ex(rdma->verbs, attr);
	if (!srq) {
		const int kept = errno;

		destroy_cqs(rdma);
		return minus_errno(kept);
	}
	if (!rdma->pd)
		rdma->pd = attr->pd;
	rdma->srq = srq;
	return 0;
}

int cm_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex all = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = pd,
	};
	int err = cm_create_srq_ex(id, &all);

	attr->attr = all.attr;
	return err;
}

void cm_destroy_srq(struct rdma_cm_id *id)
{
	verb_destroy_srq(id->srq);
	id->srq = NULL;
	destroy_cqs(id);
}

/* --- QPs --- */

#define CREATE "create_qp"

static int check_parts(const struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs)
		return refuse_plainly(CREATE, VB_WHY_CM_NOT_BOUND);
	if (id->qp)
		return refuse_plainly(CREATE, VB_WHY_CM_QP_TWICE);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pd;
	} else if (attr->pd->context != id->verbs) {
		return refuse_name(CREATE, VB_WHY_CM_PD_DEVICE, id->verbs->device->name);
	}
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return refuse_plainly(CREATE, VB_WHY_CM_OTHER_CQ);
	return 0;
}

/* Fills in the attributes that the program has left out. Returns 0, or -1 with errno. */
static int add_parts(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *rdma = &id->rdma;

	if (rdma->qp_type == IBV_QPT_XRC_RECV &&
	    (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)) {
		attr->xrcd = cm_device_xrcd(id->device);
		if (!attr->xrcd)
			return -1;
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
	}
	if (create_cqs(rdma, attr->send_cq || rdma->send_cq ? 0 : attr->cap.max_send_wr,
		       attr->recv_cq || rdma->recv_cq ? 0 : attr->cap.max_recv_wr))
		return -1;
	if (!attr->send_cq)
		attr->send_cq = rdma->send_cq;
	if (!attr->recv_cq)
		attr->recv_cq = rdma->recv_cq;
	if (rdma->srq && !attr->srq)
		attr->srq = rdma->srq;
	return 0;
}

/* Returns a QP in its first state. NULL with errno and a sentence. */
static struct ibv_qp *new_qp(struct cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp = verb_create_qp_ex(id->rdma.verbs, attr);
	int err, kept;

	if (!qp)
		return NULL;
	err = cm_is_datagram(id) ? start_datagrams(id, qp) : move(id, qp, IBV_QPS_INIT, NULL, 0);
	if (!err)
		return qp;
	kept = errno;
	verb_destroy_qp(qp);
	return null_errno(kept);
}

int cm_create_qp_ex(struct rdma_cm_id *rdma, struct ibv_qp_init_attr_ex *attr)
{
	struct cm_id *id = cm_id_of(rdma);
	struct ibv_qp *qp;
	int err = check_parts(rdma, attr);

	if (err)
		return minus_errno(err);
	if (add_parts(id, attr))
		return -1;
	qp = new_qp(id, attr);
	if (!qp) {
		const int kept = errno;

		destroy_cqs(rdma);
		return minus_errno(kept);
	}
	/* A target QP has no PD: the identifier keeps its PD. */
	if (qp->pd)
		rdma->pd = qp->pd;
	rdma->qp = qp;
	return 0;
}

int cm_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex all = verb_extend_qp_attr(pd ? pd : id->pd, attr);
	int err = cm_create_qp_ex(id, &all);

	attr->send_cq = all.send_cq;
	attr->recv_cq = all.recv_cq;
	attr->srq = all.srq;
	attr->cap = all.cap;
	return err;
}

void cm_destroy_qp(struct rdma_cm_id *id)
{
	if (id->qp)
		verb_destroy_qp(id->qp);
	id->qp = NULL;
	destroy_cqs(id);
}
