/* SPDX-License-Identifier: MIT */
/* ibv_modify_qp and ibv_query_qp. */
#include "sim/base/refuse.h"
#include "sim/qp/private.h"
#include "sim/qp/state.h"
#include "sim/wire/psn.h"

#include <stdlib.h>

struct change {
	struct sim_qp *qp;
	const struct ibv_qp_attr *attr;
	int mask;
	struct sim_path path;
	struct sim_resource *resources;
	int path_err; /* of resolving the path */
};

/* Returns 0, or the errno value of a refusal. */
typedef int check_fn(struct change *change);

static const struct sim_port *port_of(const struct change *change)
{
	unsigned int number =
		change->mask & IBV_QP_PORT ? change->attr->port_num : change->qp->port_num;

	return sim_device_port(change->qp->device, number);
}

/* Refuses the change: the values of the reason begin with the QP's number. */
static int refuse(const struct change *change, enum vb_reason reason, uint64_t first,
		  uint64_t second)
{
	return sim_refuse(change->qp->engine,
			  (struct vb_why){reason, {change->qp->number, first, second}});
}

static int check_port(struct change *change)
{
	return port_of(change) ? 0
			       : refuse(change, VB_WHY_QP_PORT, change->attr->port_num,
					change->qp->device->port_count);
}

static int check_pkey(struct change *change)
{
	const struct sim_port *port = port_of(change);
	const unsigned int index = change->attr->pkey_index;

	if (port && index < port->pkey_count)
		return 0;
	return refuse(change, VB_WHY_QP_PKEY_INDEX, index, port ? port->pkey_count : 0);
}

/* Programs give a QP the flags of their MR. A QP uses those of remote operations only. */
static int check_access(struct change *change)
{
	const unsigned int flags = change->attr->qp_access_flags;

	return flags & ~SIM_ACCESS_KNOWN ? refuse(change, VB_WHY_QP_ACCESS_FLAGS, flags, 0) : 0;
}

static int check_av(struct change *change)
{
	const struct sim_port *port = port_of(change);
	const struct ibv_ah_attr *attr = &change->attr->ah_attr;

	if (!port || attr->port_num != port->number)
		return refuse(change, VB_WHY_QP_AV_PORT, attr->port_num, port ? port->number : 0);
	change->path_err = sim_path_resolve(change->qp->device, attr, &change->path);
	return change->path_err;
}

static int check_mtu(struct change *change)
{
	const struct sim_port *port = port_of(change);
	const enum ibv_mtu mtu = change->attr->path_mtu;

	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return refuse(change, VB_WHY_QP_PATH_MTU, mtu, 0);
	if (!port || mtu > (enum ibv_mtu)port->mtu)
		return refuse(change, VB_WHY_QP_PATH_MTU_OF_PORT, mtu, port ? port->mtu : 0);
	return 0;
}

static int check_below(const struct change *change, unsigned int value, unsigned int limit,
		       enum vb_reason reason)
{
	return value < limit ? 0 : refuse(change, reason, value, 0);
}

static int check_timeout(struct change *change)
{
	return check_below(change, change->attr->timeout, 32, VB_WHY_QP_TIMEOUT);
}

static int check_retry_cnt(struct change *change)
{
	return check_below(change, change->attr->retry_cnt, 8, VB_WHY_QP_RETRY_CNT);
}

static int check_rnr_retry(struct change *change)
{
	return check_below(change, change->attr->rnr_retry, 8, VB_WHY_QP_RNR_RETRY);
}

static int check_min_rnr_timer(struct change *change)
{
	return check_below(change, change->attr->min_rnr_timer, 32, VB_WHY_QP_MIN_RNR_TIMER);
}

static int check_rd_atomic(struct change *change)
{
	const int limit = change->qp->device->profile->limits.max_qp_init_rd_atom;
	const uint8_t asked = change->attr->max_rd_atomic;

	return asked <= limit ? 0 : refuse(change, VB_WHY_QP_MAX_RD_ATOMIC, asked, (uint64_t)limit);
}

static int check_dest_rd_atomic(struct change *change)
{
	const int limit = change->qp->device->profile->limits.max_qp_rd_atom;
	const uint8_t asked = change->attr->max_dest_rd_atomic;

	return asked <= limit
		       ? 0
		       : refuse(change, VB_WHY_QP_MAX_DEST_RD_ATOMIC, asked, (uint64_t)limit);
}

static int check_numbers(struct change *change)
{
	const struct {
		int bit;
		uint32_t number;
	} numbers[] = {
		{IBV_QP_DEST_QPN, change->attr->dest_qp_num},
		{IBV_QP_RQ_PSN, change->attr->rq_psn},
		{IBV_QP_SQ_PSN, change->attr->sq_psn},
	};

	if (!change->qp->device->quirks.wide_numbers_refused)
		return 0;
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (change->mask & numbers[i].bit && numbers[i].number >> 24)
			return refuse(change, VB_WHY_QP_WIDE_NUMBER, numbers[i].number, 0);
	return 0;
}

static const struct {
	int bit;
	check_fn *check;
} checks[] = {
	{IBV_QP_PORT, check_port},
	{IBV_QP_PKEY_INDEX, check_pkey},
	{IBV_QP_ACCESS_FLAGS, check_access},
	{IBV_QP_PATH_MTU, check_mtu},
	{IBV_QP_TIMEOUT, check_timeout},
	{IBV_QP_RETRY_CNT, check_retry_cnt},
	{IBV_QP_RNR_RETRY, check_rnr_retry},
	{IBV_QP_MIN_RNR_TIMER, check_min_rnr_timer},
	{IBV_QP_MAX_QP_RD_ATOMIC, check_rd_atomic},
	{IBV_QP_MAX_DEST_RD_ATOMIC, check_dest_rd_atomic},
	{IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN, check_numbers},
};

/* True if the device takes a value although the specification refuses it. */
static bool takes_value(const struct change *change, int bit)
{
	const struct sim_qp *qp = change->qp;

	return qp->hooks && qp->hooks->takes_value(qp, port_of(change), bit, change->attr);
}

/* Checks the mask by the transition table; hooks may ignore a bit of the mask. */
static int check_transition(const struct change *change, enum ibv_qp_state to)
{
	const struct sim_qp *qp = change->qp;
	const struct sim_transition *cell = sim_transition(qp->type, qp->state, to);
	struct vb_why why = {VB_WHY_QP_TRANSITION, {qp->number, qp->type, qp->state, to}};
	int mask = change->mask;

	if (!(mask & IBV_QP_STATE) && !sim_rule_holds(qp, SIM_RULE_STATELESS_CHECKED))
		return 0;
	if (mask & IBV_QP_PATH_MIG_STATE && qp->hooks && qp->hooks->ignores_path_state(qp, to))
		mask &= ~IBV_QP_PATH_MIG_STATE;
	if (sim_transition_allowed(qp->type, qp->state, to, mask))
		return 0;
	if (cell->valid && cell->required & ~mask) {
		why.reason = VB_WHY_QP_MASK_MISSING;
		why.values[4] = (unsigned int)(cell->required & ~mask);
	} else if (cell->valid) {
		why.reason = VB_WHY_QP_MASK_SUPERFLUOUS;
		why.values[4] = (unsigned int)(mask & ~sim_transition_mask(cell, to));
	}
	return sim_refuse(qp->engine, why);
}

/* Linux drivers/infiniband/core/verbs.c, _ib_modify_qp, looks for the GID before anything else; the
 * port of the address vector comes after the transition. */
static int check(struct change *change, enum ibv_qp_state to)
{
	struct sim_qp *qp = change->qp;
	int av_err, err;

	if ((change->mask & IBV_QP_CUR_STATE) && (uint8_t)change->attr->cur_qp_state != qp->state)
		return refuse(change, VB_WHY_QP_CUR_STATE, qp->state, change->attr->cur_qp_state);
	av_err = change->mask & IBV_QP_AV ? check_av(change) : 0;
	if (change->path_err)
		return change->path_err;
	err = check_transition(change, to);
	if (err)
		return err;
	if (change->mask & IBV_QP_STATE && qp->sq_draining && to != IBV_QPS_ERR &&
	    !sim_rule_holds(qp, SIM_RULE_CHANGES_WHILE_DRAINING))
		return refuse(change, VB_WHY_QP_STILL_DRAINING, to, 0);
	if (av_err)
		return check_av(change);
	for (unsigned int i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		err = change->mask & checks[i].bit ? checks[i].check(change) : 0;
		if (err && !takes_value(change, checks[i].bit))
			return err;
	}
	return 0;
}

/* The READs and atomics that a QP really has: as many as asked, or (a quirk) the next power of 2. */
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
	    !takes_value(change, IBV_QP_MAX_DEST_RD_ATOMIC))
		return refuse(change, VB_WHY_QP_RESOURCES,
			      (uint64_t)device->profile->limits.max_res_rd_atom, 0);
	change->resources = calloc(count, sizeof(*change->resources));
	return change->resources ? 0 : sim_refuse_memory(qp->engine);
}

/* A connection of which no packet could arrive is refused, instead of failing later for lack of an answer. */
static int check_way(const struct change *change)
{
	const struct sim_qp *qp = change->qp;
	const int wanted = IBV_QP_AV | IBV_QP_DEST_QPN;
	struct vb_why why = {.reason = VB_WHY_NONE};

	if ((change->mask & wanted) == wanted && qp->engine->outlet->hindrance)
		why = qp->engine->outlet->hindrance(qp->engine, &change->path,
						    change->attr->dest_qp_num & SIM_PSN_MASK);
	return why.reason == VB_WHY_NONE ? 0 : sim_refuse(qp->engine, why);
}

static void apply_path(struct sim_qp *qp, const struct change *change)
{
	const struct ibv_qp_attr *attr = change->attr;

	if (change->mask & IBV_QP_AV) {
		qp->ah_attr = attr->ah_attr;
		qp->path = change->path;
		qp->path.qpn = qp->number;
	}
	if (change->mask & IBV_QP_PATH_MTU) {
		qp->mtu = (uint8_t)attr->path_mtu;
		qp->mtu_bytes = sim_mtu_bytes(attr->path_mtu);
	}
	if (change->mask & IBV_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num & SIM_PSN_MASK;
	if ((change->mask & IBV_QP_AV) && !qp->path.route.udp_source_port)
		qp->path.route.udp_source_port = sim_udp_source_port(qp->number, qp->dest_qpn);
	if (change->mask & IBV_QP_PKEY_INDEX)
		qp->pkey_index = attr->pkey_index;
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
		qp->retry_cnt = attr->retry_cnt;
	if (change->mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	if (change->mask & IBV_QP_MIN_RNR_TIMER)
		qp->min_rnr_timer = attr->min_rnr_timer;
	if (change->mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->max_rd_atomic = reads(change, attr->max_rd_atomic);
	if (change->mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		qp->max_dest_rd_atomic = reads(change, attr->max_dest_rd_atomic);
		sim_responder_set_resources(qp, change->resources, qp->max_dest_rd_atomic);
	}
	if (change->mask & (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY))
		sim_completer_restore_retries(qp);
}

static void apply_psn(struct sim_qp *qp, const struct change *change)
{
	if (change->mask & IBV_QP_RQ_PSN) {
		qp->rq_psn = change->attr->rq_psn & SIM_PSN_MASK;
		sim_responder_set_psn(qp, qp->rq_psn);
	}
	if (change->mask & IBV_QP_SQ_PSN) {
		qp->sq_psn = change->attr->sq_psn & SIM_PSN_MASK;
		sim_requester_set_psn(qp, qp->sq_psn);
		sim_completer_set_psn(qp, qp->sq_psn);
	}
}

void sim_qp_read_pkey(struct sim_qp *qp)
{
	const struct sim_port *port = sim_device_port(qp->device, qp->port_num);

	if (port)
		qp->pkey = port->pkeys[qp->pkey_index];
}

void sim_qp_ask_drained_event(struct sim_qp *qp)
{
	qp->drain_event = true;
}

static void enter(struct sim_qp *qp, enum ibv_qp_state to, const struct change *change)
{
	enum ibv_qp_state from = qp->state;

	if (to == IBV_QPS_RESET) {
		sim_qp_reset(qp);
	} else if (to == IBV_QPS_ERR && change->mask & IBV_QP_STATE) {
		if (from != IBV_QPS_ERR)
			qp->first_flush = SIM_FLUSH_SENDS | SIM_FLUSH_RECEIVES;
		sim_qp_fail(qp, SIM_BY_MODIFY);
	} else if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
		qp->sq_draining = true;
		qp->drain_event = (change->mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) &&
				  change->attr->en_sqd_async_notify;
	} else if (to == IBV_QPS_RTS) {
		qp->sq_draining = false;
		sim_requester_resume(qp);
	}
	if (qp->state != to) {
		qp->state = (uint8_t)to;
		sim_qp_changed_state(qp, from, SIM_BY_MODIFY);
	}
	if (qp->hooks && change->mask & IBV_QP_STATE)
		qp->hooks->entered(qp, from, to);
	sim_qp_read_pkey(qp);
	sim_engine_changed(qp->engine);
	if (to == IBV_QPS_SQD || (to == IBV_QPS_RTS && sim_rule_holds(qp, SIM_RULE_RTS_SENDS)))
		sim_qp_wake_requester(qp);
}

int sim_qp_modify(struct sim_qp *qp, const struct ibv_qp_attr *attr, int attr_mask)
{
	struct change change = {
		.qp = qp,
		.attr = attr,
		.mask = attr_mask & ~sim_attributes_ignored(qp->type),
	};
	enum ibv_qp_state to = attr_mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	struct ibv_qp_attr adapted;
	int err = check(&change, to);

	if (!err)
		err = check_way(&change);
	if (!err)
		err = reserve(&change);
	if (err)
		return err;
	if (qp->hooks) {
		adapted = *attr;
		qp->hooks->adapt(qp, &adapted, change.mask);
		change.attr = &adapted;
	}
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
		.dest_qp_num = qp->dest_qpn,
		.qp_access_flags = qp->access,
		.cap = {.max_send_wr = qp->sq.max_wr,
			.max_recv_wr = qp->rq.max_wr,
			.max_send_sge = qp->sq.max_sge,
			.max_recv_sge = qp->rq.max_sge,
			.max_inline_data = qp->max_inline},
		.ah_attr = qp->ah_attr,
		.pkey_index = qp->pkey_index,
		.sq_draining = qp->sq_draining,
		.max_rd_atomic = qp->max_rd_atomic,
		.max_dest_rd_atomic = qp->max_dest_rd_atomic,
		.min_rnr_timer = qp->min_rnr_timer,
		.port_num = qp->port_num,
		.timeout = qp->timeout,
		.retry_cnt = qp->retry_cnt,
		.rnr_retry = qp->rnr_retry,
	};
	if (qp->hooks)
		qp->hooks->query(qp, attr);
}
