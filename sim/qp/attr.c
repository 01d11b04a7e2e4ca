/* SPDX-License-Identifier: MIT */
/* ibv_modify_qp and ibv_query_qp. */
#include "sim/qp/qp.h"
#include "sim/qp/state.h"

#include <errno.h>
#include <stdlib.h>

/* What enum ibv_access_flags has. Programs give a QP the flags of their MR; only the three of remote
 * operations mean something here. */
#define KNOWN_ACCESS                                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
	 IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)

struct change {
	struct sim_qp *qp;
	const struct ibv_qp_attr *attr;
	int mask;
	struct sim_path path;
	struct sim_resource *resources;
	int path_err; /* what resolving the path says */
};

typedef bool check_fn(struct change *change);

static const struct sim_port *port_of(const struct change *change)
{
	unsigned int number =
		change->mask & IBV_QP_PORT ? change->attr->port_num : change->qp->port_num;

	return sim_device_port(change->qp->device, number);
}

static bool port_fits(struct change *change)
{
	return port_of(change) != NULL;
}

static bool pkey_fits(struct change *change)
{
	const struct sim_port *port = port_of(change);

	return port && (change->attr->pkey_index < port->pkey_count ||
			change->qp->device->quirks.pkey_index_unchecked);
}

static bool access_fits(struct change *change)
{
	return !(change->attr->qp_access_flags & ~KNOWN_ACCESS);
}

static bool av_fits(struct change *change)
{
	const struct sim_port *port = port_of(change);

	if (!port || change->attr->ah_attr.port_num != port->number)
		return false;
	change->path_err =
		sim_path_resolve(change->qp->device, &change->attr->ah_attr, &change->path);
	return !change->path_err;
}

static bool mtu_fits(struct change *change)
{
	const struct sim_port *port = port_of(change);

	if (change->qp->device->quirks.path_mtu_unchecked)
		return port && change->attr->path_mtu <= IBV_MTU_4096;
	return port && change->attr->path_mtu >= IBV_MTU_256 &&
	       change->attr->path_mtu <= (enum ibv_mtu)port->mtu;
}

static bool ranges_unchecked(const struct change *change)
{
	return change->qp->device->quirks.retry_ranges_unchecked;
}

static bool timeout_fits(struct change *change)
{
	return change->attr->timeout < 32;
}

static bool retry_cnt_fits(struct change *change)
{
	return change->attr->retry_cnt < 8 || ranges_unchecked(change);
}

static bool rnr_retry_fits(struct change *change)
{
	return change->attr->rnr_retry < 8 || ranges_unchecked(change);
}

static bool min_rnr_timer_fits(struct change *change)
{
	return change->attr->min_rnr_timer < 32 || ranges_unchecked(change);
}

static bool rd_atomic_fits(struct change *change)
{
	return change->attr->max_rd_atomic <=
	       change->qp->device->profile->limits.max_qp_init_rd_atom;
}

static bool dest_rd_atomic_fits(struct change *change)
{
	return change->attr->max_dest_rd_atomic <=
		       change->qp->device->profile->limits.max_qp_rd_atom ||
	       change->qp->device->quirks.responder_resources_unchecked;
}

static bool numbers_fit(struct change *change)
{
	const struct ibv_qp_attr *attr = change->attr;

	if (!change->qp->device->quirks.wide_numbers_refused)
		return true;
	return !(change->mask & IBV_QP_DEST_QPN && attr->dest_qp_num >> 24) &&
	       !(change->mask & IBV_QP_RQ_PSN && attr->rq_psn >> 24) &&
	       !(change->mask & IBV_QP_SQ_PSN && attr->sq_psn >> 24);
}

static const struct {
	int bit;
	check_fn *fits;
} checks[] = {
	{IBV_QP_PORT, port_fits},
	{IBV_QP_PKEY_INDEX, pkey_fits},
	{IBV_QP_ACCESS_FLAGS, access_fits},
	{IBV_QP_PATH_MTU, mtu_fits},
	{IBV_QP_TIMEOUT, timeout_fits},
	{IBV_QP_RETRY_CNT, retry_cnt_fits},
	{IBV_QP_RNR_RETRY, rnr_retry_fits},
	{IBV_QP_MIN_RNR_TIMER, min_rnr_timer_fits},
	{IBV_QP_MAX_QP_RD_ATOMIC, rd_atomic_fits},
	{IBV_QP_MAX_DEST_RD_ATOMIC, dest_rd_atomic_fits},
	{IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, numbers_fit},
};

/* The mask without what means nothing here: IBV_QP_PATH_MIG_STATE (a quirk), where the table of Linux
 * drivers/infiniband/core/verbs.c, qp_state_table, has it. */
static int known_mask(const struct change *change, enum ibv_qp_state to)
{
	const struct sim_qp *qp = change->qp;
	bool between = to == IBV_QPS_RTS ? qp->state >= IBV_QPS_RTR && qp->state <= IBV_QPS_SQD
					 : to == IBV_QPS_SQD && qp->state == IBV_QPS_SQD;

	if (between && qp->type != IBV_QPT_UD && qp->device->quirks.path_mig_state_taken)
		return change->mask & ~IBV_QP_PATH_MIG_STATE;
	return change->mask;
}

static int check(struct change *change, enum ibv_qp_state to)
{
	struct sim_qp *qp = change->qp;
	bool path_fits;

	if ((change->mask & IBV_QP_CUR_STATE) && (uint8_t)change->attr->cur_qp_state != qp->state)
		return EINVAL;
	/* Linux drivers/infiniband/core/verbs.c, _ib_modify_qp, looks for the GID first. */
	path_fits = !(change->mask & IBV_QP_AV) || av_fits(change);
	if (change->path_err)
		return change->path_err;
	if (!sim_transition_allowed(qp->type, qp->state, to, known_mask(change, to)) &&
	    (change->mask & IBV_QP_STATE || !qp->device->quirks.stateless_modify_unchecked))
		return EINVAL;
	if (change->mask & IBV_QP_STATE && qp->sq_draining && to != IBV_QPS_ERR &&
	    qp->device->quirks.draining_refuses_changes)
		return EINVAL;
	if (!path_fits)
		return EINVAL;
	for (unsigned int i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if ((change->mask & checks[i].bit) && !checks[i].fits(change))
			return EINVAL;
	return 0;
}

/* How many READs and atomics: as asked, or the next power of 2. */
static uint8_t reads(const struct change *change, uint8_t asked)
{
	unsigned int count = 1;

	if (!change->qp->device->quirks.reads_round_up || !asked)
		return asked;
	while (count < asked)
		count *= 2;
	return (uint8_t)count;
}

/* Memory for the READs and atomics that the responder may hold. */
static int reserve(struct change *change)
{
	const struct sim_qp *qp = change->qp;
	const struct sim_device *device = qp->device;
	uint8_t count = reads(change, change->attr->max_dest_rd_atomic);

	if (!(change->mask & IBV_QP_MAX_DEST_RD_ATOMIC) || !count)
		return 0;
	if (device->resource_count - qp->resp.resource_size + count >
		    (uint32_t)device->profile->limits.max_res_rd_atom &&
	    !device->quirks.responder_resources_unchecked)
		return ENOMEM;
	change->resources = calloc(count, sizeof(*change->resources));
	return change->resources ? 0 : ENOMEM;
}

static void apply_path(struct sim_qp *qp, const struct change *change)
{
	const struct ibv_qp_attr *attr = change->attr;

	if (change->mask & IBV_QP_AV) {
		qp->ah_attr = attr->ah_attr;
		qp->path = change->path;
	}
	if (change->mask & IBV_QP_PATH_MTU) {
		qp->mtu = (uint8_t)attr->path_mtu;
		qp->mtu_bytes = sim_mtu_bytes(attr->path_mtu);
	}
	if (change->mask & IBV_QP_DEST_QPN) {
		qp->dest_qpn = attr->dest_qp_num & 0xffffff;
		qp->dest_qpn_told =
			qp->device->quirks.wide_qpns_told ? attr->dest_qp_num : qp->dest_qpn;
	}
	if (change->mask & IBV_QP_PKEY_INDEX) {
		qp->pkey_index_told = attr->pkey_index;
		qp->pkey_index =
			attr->pkey_index < port_of(change)->pkey_count ? attr->pkey_index : 0;
	}
	if (change->mask & IBV_QP_PORT)
		qp->port_num = attr->port_num;
	if (change->mask & IBV_QP_QKEY)
		qp->qkey = attr->qkey;
	if (change->mask & IBV_QP_ACCESS_FLAGS)
		qp->access = attr->qp_access_flags;
}

static void apply_reliability(struct sim_qp *qp, const struct change *change)
{
	const struct ibv_qp_attr *attr = change->attr;

	if (change->mask & IBV_QP_TIMEOUT)
		qp->timeout = attr->timeout;
	if (change->mask & IBV_QP_RETRY_CNT)
		qp->retry_cnt = qp->comp.retries_left = attr->retry_cnt;
	if (change->mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = qp->comp.rnr_retries_left = attr->rnr_retry;
	if (change->mask & IBV_QP_MIN_RNR_TIMER)
		qp->min_rnr_timer = attr->min_rnr_timer;
	if (change->mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->max_rd_atomic = reads(change, attr->max_rd_atomic);
	if (change->mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		qp->max_dest_rd_atomic = reads(change, attr->max_dest_rd_atomic);
		free(qp->resp.resources);
		qp->device->resource_count += qp->max_dest_rd_atomic - qp->resp.resource_size;
		qp->resp.resources = change->resources;
		qp->resp.resource_size = qp->max_dest_rd_atomic;
		qp->resp.resource_head = 0;
		qp->resp.resource_count = 0;
		qp->resp.resources_pending = 0;
	}
}

static void apply_psn(struct sim_qp *qp, const struct change *change)
{
	if (change->mask & IBV_QP_RQ_PSN) {
		qp->rq_psn = change->attr->rq_psn & 0xffffff;
		qp->resp.psn = qp->rq_psn;
		if (!qp->device->quirks.acks_of_old_connections)
			qp->resp.ack_psn = (qp->rq_psn - 1) & 0xffffff;
	}
	if (change->mask & IBV_QP_SQ_PSN) {
		qp->sq_psn = change->attr->sq_psn & 0xffffff;
		qp->req.psn = qp->req.sent_psn = qp->comp.psn = qp->sq_psn;
	}
}

void sim_qp_read_pkey(struct sim_qp *qp)
{
	const struct sim_port *port = sim_device_port(qp->device, qp->port_num);

	if (port)
		qp->pkey = port->pkeys[qp->pkey_index];
}

static void enter(struct sim_qp *qp, enum ibv_qp_state to, const struct change *change)
{
	enum ibv_qp_state from = qp->state;

	if (to == IBV_QPS_RESET) {
		sim_qp_reset(qp);
	} else if (to == IBV_QPS_ERR && change->mask & IBV_QP_STATE) {
		if (qp->device->quirks.errors_repeat)
			sim_qp_fail_again(qp);
		else
			sim_qp_fail(qp);
		if (qp->device->quirks.errored_receives_wait)
			sim_qp_flush_recvs(qp);
	} else if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
		qp->sq_draining = true;
		if (qp->req.stopped && qp->device->quirks.local_errors_end_repeats)
			sim_requester_rewind(qp, qp->comp.psn);
		qp->drain_event = ((change->mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
				   change->attr->en_sqd_async_notify) ||
				  qp->device->quirks.drained_event_unasked;
	} else if (to == IBV_QPS_RTS) {
		qp->sq_draining = false;
		qp->req.stopped = false;
	}
	qp->state = (uint8_t)to;
	sim_qp_read_pkey(qp);
	sim_engine_changed(qp->engine);
	if (to == IBV_QPS_SQD || (to == IBV_QPS_RTS && !qp->device->quirks.rts_starts_nothing))
		sim_qp_wake_requester(qp);
}

int sim_qp_modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int attr_mask)
{
	struct change change = {.qp = qp, .attr = attr, .mask = attr_mask};
	enum ibv_qp_state to = attr_mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	int err = check(&change, to);

	if (!err)
		err = reserve(&change);
	if (err)
		return err;
	apply_path(qp, &change);
	apply_reliability(qp, &change);
	apply_psn(qp, &change);
	enter(qp, to, &change);
	return 0;
}

void sim_qp_query(const struct sim_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){
		.qp_state = qp->state,
		.cur_qp_state = qp->state,
		.path_mtu = qp->mtu,
		.path_mig_state = IBV_MIG_MIGRATED,
		.qkey = qp->qkey,
		.rq_psn = qp->rq_psn,
		.sq_psn = qp->sq_psn,
		.dest_qp_num = qp->dest_qpn_told,
		.qp_access_flags = qp->access,
		.cap = {.max_send_wr = qp->sq.max_wr,
			.max_recv_wr = qp->rq.max_wr,
			.max_send_sge = qp->sq.max_sge,
			.max_recv_sge = qp->rq.max_sge,
			.max_inline_data = qp->max_inline},
		.ah_attr = qp->ah_attr,
		.pkey_index = qp->pkey_index_told,
		.sq_draining = qp->sq_draining,
		.max_rd_atomic = qp->max_rd_atomic,
		.max_dest_rd_atomic = qp->max_dest_rd_atomic,
		.min_rnr_timer = qp->min_rnr_timer,
		.port_num = qp->port_num,
		.timeout = qp->timeout,
		.retry_cnt = qp->retry_cnt,
		.rnr_retry = qp->rnr_retry,
	};
}
