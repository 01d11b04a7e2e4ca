/* SPDX-License-Identifier: MIT */
/* The verbs that a script calls: QPs and SRQs, their memory and states. */
#include "src/script/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/error.h>

#define ENTRIES_DEFAULT 64
#define PAGE_BYTES	4096
#define FIRST_GROUP_LID 0xc000

uint64_t script_number_or(const struct script_line *line, enum script_field field, uint64_t other)
{
	return line->values[field].given ? line->values[field].number : other;
}

bool script_check_errno(struct script_run *run, const struct script_line *line, const char *call,
			int err)
{
	const char *wanted = line->wanted_errno ? strerrorname_np(line->wanted_errno) : "success";
	const char *got = err ? strerrorname_np(err) : "success";

	if (err == line->wanted_errno)
		return true;
	script_row(run->failure, call, wanted, got, true);
	return script_fail(run->failure, line, "%s returned %s, not %s%s%s", call, got, wanted,
			   err ? ": " : "", err ? vb_last_error() : "");
}

/* --- states --- */

union ibv_gid script_group_gid(const struct script_wire *wire, uint64_t group)
{
	union ibv_gid gid = wire->group;

	gid.raw[15] = (uint8_t)group;
	return gid;
}

uint16_t script_group_lid(const struct script_wire *wire, uint64_t group)
{
	return wire->infiniband ? (uint16_t)(FIRST_GROUP_LID + group) : 0;
}

struct ibv_ah_attr script_path(const struct script_wire *wire, const struct script_line *line)
{
	const struct script_value *group = &line->values[SCRIPT_GROUP];
	struct ibv_ah_attr attr = {.port_num = 1, .dlid = wire->infiniband ? wire->peer_lid : 0};

	if (group->given)
		attr.dlid = script_group_lid(wire, group->number);
	if (wire->infiniband && !group->given)
		return attr;
	attr.is_global = 1;
	attr.grh = (struct ibv_global_route){
		.dgid = group->given ? script_group_gid(wire, group->number) : wire->peer_gid,
		.sgid_index = wire->infiniband ? 0 : wire->gid_index,
		.hop_limit = 64,
	};
	return attr;
}

static int to_init(const struct script_qp *qp, struct ibv_qp_attr *attr)
{
	attr->port_num = 1;
	if (qp->type == IBV_QPT_UD) {
		attr->qkey = (uint32_t)script_number_or(qp->line, SCRIPT_QKEY, SCRIPT_QKEY_DEFAULT);
		return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
	}
	attr->qp_access_flags = (unsigned int)script_number_or(
		qp->line, SCRIPT_ACCESS,
		IBV_ACCESS_REMOTE_WRITE |
			(qp->type == IBV_QPT_UC
				 ? 0
				 : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
	return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

static int to_rtr(const struct script_qp *qp, const struct script_wire *wire,
		  struct ibv_qp_attr *attr)
{
	const struct script_line *line = qp->line;
	const bool answers = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_RECV;
	const int mask = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->type == IBV_QPT_UD)
		return 0;
	attr->ah_attr = script_path(wire, line);
	attr->path_mtu = vb_bytes_to_mtu((unsigned int)script_number_or(line, SCRIPT_MTU, 1024));
	attr->dest_qp_num = qp->peer_qpn;
	attr->rq_psn = qp->peer_psn;
	attr->max_dest_rd_atomic = (uint8_t)script_number_or(line, SCRIPT_MAX_DEST_RD_ATOMIC, 4);
	attr->min_rnr_timer = (uint8_t)script_number_or(line, SCRIPT_MIN_RNR_TIMER, 12);
	return answers ? mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : mask;
}

static int to_rts(const struct script_qp *qp, struct ibv_qp_attr *attr)
{
	const struct script_line *line = qp->line;

	attr->sq_psn = qp->psn;
	if (qp->type == IBV_QPT_UC || qp->type == IBV_QPT_UD)
		return IBV_QP_SQ_PSN;
	attr->timeout = (uint8_t)script_number_or(line, SCRIPT_TIMEOUT, 18);
	if (qp->type == IBV_QPT_XRC_RECV)
		return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT;
	attr->retry_cnt = (uint8_t)script_number_or(line, SCRIPT_RETRY_CNT, 6);
	attr->rnr_retry = (uint8_t)script_number_or(line, SCRIPT_RNR_RETRY, 6);
	attr->max_rd_atomic = (uint8_t)script_number_or(line, SCRIPT_MAX_RD_ATOMIC, 4);
	return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
	       IBV_QP_MAX_QP_RD_ATOMIC;
}

/* The steps from RESET to RTS set what the QP's line says; other transitions set the state. */
static int step_attr(const struct script_qp *qp, const struct script_wire *wire,
		     enum ibv_qp_state from, enum ibv_qp_state to, struct ibv_qp_attr *attr)
{
	*attr = (struct ibv_qp_attr){.qp_state = to};
	if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
		return IBV_QP_STATE | to_init(qp, attr);
	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return IBV_QP_STATE | to_rtr(qp, wire, attr);
	if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
		return IBV_QP_STATE | to_rts(qp, attr);
	return IBV_QP_STATE;
}

static enum ibv_qp_state state_of(const struct script_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	vb_query_qp(qp->qp, &attr, IBV_QP_STATE, &init);
	return attr.qp_state;
}

bool script_modify(struct script_run *run, const struct script_line *line)
{
	static const struct {
		enum script_field field;
		int mask;
		size_t offset;
	} extra[] = {
		{SCRIPT_TIMEOUT, IBV_QP_TIMEOUT, offsetof(struct ibv_qp_attr, timeout)},
		{SCRIPT_RETRY_CNT, IBV_QP_RETRY_CNT, offsetof(struct ibv_qp_attr, retry_cnt)},
		{SCRIPT_RNR_RETRY, IBV_QP_RNR_RETRY, offsetof(struct ibv_qp_attr, rnr_retry)},
		{SCRIPT_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER,
		 offsetof(struct ibv_qp_attr, min_rnr_timer)},
		{SCRIPT_DRAIN_EVENT, IBV_QP_EN_SQD_ASYNC_NOTIFY,
		 offsetof(struct ibv_qp_attr, en_sqd_async_notify)},
	};
	const struct script_qp *qp = &run->qps[line->qp];
	const enum ibv_qp_state to = (enum ibv_qp_state)line->word_value;
	struct ibv_qp_attr attr;
	int mask = step_attr(qp, run->wire, state_of(qp), to, &attr);

	for (size_t i = 0; i < sizeof(extra) / sizeof(extra[0]); i++) {
		if (!line->values[extra[i].field].given)
			continue;
		mask |= extra[i].mask;
		((uint8_t *)&attr)[extra[i].offset] = (uint8_t)line->values[extra[i].field].number;
	}
	return script_check_errno(run, line, "modify_qp", vb_modify_qp(qp->qp, &attr, mask));
}

bool script_check_state(struct script_run *run, const struct script_line *line)
{
	const enum ibv_qp_state state = state_of(&run->qps[line->qp]);

	if (state == (enum ibv_qp_state)line->word_value)
		return true;
	script_row(run->failure, "state", line->word, vb_qp_state_str(state), true);
	return script_fail(run->failure, line, "the QP is in another state");
}

/* --- making --- */

static bool make_memory(struct script_run *run, struct script_qp *qp)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			   (run->script->window_count ? IBV_ACCESS_MW_BIND : 0);

	qp->buffer_bytes = script_number_or(qp->line, SCRIPT_BUFFER_BYTES, SCRIPT_BUFFER);
	if (posix_memalign((void **)&qp->buffer, PAGE_BYTES, qp->buffer_bytes))
		return script_fail(run->failure, qp->line, "no memory is left for the buffer");
	for (size_t i = 0; i < qp->buffer_bytes; i++)
		qp->buffer[i] = script_pattern(i);
	qp->mr = vb_reg_mr(qp->pd, qp->buffer, qp->buffer_bytes, access);
	return qp->mr || script_fail(run->failure, qp->line, "%s", vb_last_error());
}

static bool make_qp(struct script_run *run, struct script_qp *qp)
{
	const uint32_t entries =
		(uint32_t)script_number_or(qp->line, SCRIPT_MAX_SEND_WR, ENTRIES_DEFAULT);
	const struct script_value *srq = &qp->line->values[SCRIPT_SRQ_NAME];
	const bool is_target = qp->type == IBV_QPT_XRC_RECV;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = qp->type,
		.comp_mask = is_target ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = is_target ? NULL : qp->pd,
		.xrcd = is_target ? run->xrcd : NULL,
		.cap = {.max_send_wr = entries,
			.max_recv_wr = entries,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	for (unsigned int i = 0; i < 2; i++) {
		qp->cqs[i] = vb_create_cq(run->wire->context, (int)entries * 2, NULL, NULL, 0);
		if (!qp->cqs[i])
			return script_fail(run->failure, qp->line, "%s", vb_last_error());
	}
	init.send_cq = qp->cqs[0];
	init.recv_cq = qp->cqs[1];
	if (srq->given)
		init.srq = run->qps[srq->number].srq;
	qp->qp = vb_create_qp_ex(run->wire->context, &init);
	return script_check_errno(run, qp->line, "create_qp", qp->qp ? 0 : errno);
}

static bool make_path(struct script_run *run, struct script_qp *qp)
{
	struct ibv_ah_attr attr = script_path(run->wire, qp->line);

	if (qp->type != IBV_QPT_UD)
		return true;
	qp->ah = vb_create_ah(qp->pd, &attr);
	return qp->ah || script_fail(run->failure, qp->line, "%s", vb_last_error());
}

/* Takes a new QP to the state that its line names. */
static bool move(struct script_run *run, const struct script_qp *qp)
{
	static const enum ibv_qp_state path[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	const enum ibv_qp_state end =
		(enum ibv_qp_state)script_number_or(qp->line, SCRIPT_TO_STATE, IBV_QPS_RTS);
	enum ibv_qp_state state = IBV_QPS_RESET;

	for (unsigned int i = 0; i < 3 && state != end; i++) {
		struct ibv_qp_attr attr;
		const int mask = step_attr(qp, run->wire, state, path[i], &attr);
		const int err = vb_modify_qp(qp->qp, &attr, mask);

		if (err)
			return script_fail(
				run->failure, qp->line, "modify_qp to %s returned %s: %s",
				vb_qp_state_str(path[i]), strerrorname_np(err), vb_last_error());
		state = path[i];
	}
	return state == end || script_fail(run->failure, qp->line,
					   "a QP begins in RESET, INIT, RTR or RTS; use 'modify' "
					   "for other states");
}

/* Makes the PD of a QP or an SRQ, and the XRC domain of one that needs it. */
static bool take_domains(struct script_run *run, struct script_qp *qp)
{
	const bool is_xrc = qp->type == IBV_QPT_XRC_RECV || qp->line->values[SCRIPT_XRC].number;
	struct ibv_pd **pd = &run->pds[qp->line->values[SCRIPT_OTHER_PD].number != 0];
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	if (!*pd)
		*pd = vb_alloc_pd(run->wire->context);
	qp->pd = *pd;
	if (is_xrc && !run->xrcd)
		run->xrcd = vb_open_xrcd(run->wire->context, &init);
	return (qp->pd && (!is_xrc || run->xrcd)) ||
	       script_fail(run->failure, qp->line, "%s", vb_last_error());
}

bool script_make_qp(struct script_run *run, const struct script_line *line)
{
	struct script_qp *qp = &run->qps[line->qp];

	*qp = (struct script_qp){
		.name = run->script->qps[line->qp].name,
		.type = run->script->qps[line->qp].type,
		.peer_qpn = SCRIPT_PEER_QPN + line->qp,
		.psn = (uint32_t)script_number_or(line, SCRIPT_FIRST_PSN, SCRIPT_DEVICE_PSN),
		.peer_psn =
			(uint32_t)script_number_or(line, SCRIPT_FIRST_PEER_PSN, SCRIPT_PEER_PSN),
		.line = line,
	};
	if (!take_domains(run, qp) || !make_memory(run, qp) || !make_qp(run, qp))
		return false;
	return !qp->qp || (make_path(run, qp) && move(run, qp));
}

static struct ibv_srq *create_srq(struct script_run *run, const struct script_qp *shared)
{
	const bool is_xrc = shared->line->values[SCRIPT_XRC].number;
	struct ibv_srq_init_attr_ex init = {
		.attr = {.max_wr = (uint32_t)script_number_or(shared->line, SCRIPT_MAX_SEND_WR,
							      ENTRIES_DEFAULT),
			 .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     (is_xrc ? IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ : 0),
		.srq_type = is_xrc ? IBV_SRQT_XRC : IBV_SRQT_BASIC,
		.pd = shared->pd,
		.xrcd = run->xrcd,
		.cq = shared->cqs[1],
	};

	return vb_create_srq_ex(run->wire->context, &init);
}

bool script_make_srq(struct script_run *run, const struct script_line *line)
{
	struct script_qp *shared = &run->qps[line->qp];

	*shared = (struct script_qp){.name = run->script->qps[line->qp].name, .line = line};
	if (!take_domains(run, shared) || !make_memory(run, shared))
		return false;
	if (line->values[SCRIPT_XRC].number) {
		shared->cqs[1] =
			vb_create_cq(run->wire->context, ENTRIES_DEFAULT * 2, NULL, NULL, 0);
		if (!shared->cqs[1])
			return script_fail(run->failure, line, "%s", vb_last_error());
	}
	shared->srq = create_srq(run, shared);
	return script_check_errno(run, line, "create_srq", shared->srq ? 0 : errno);
}

/* Frees what script_make_qp() or script_make_srq() has made, which may be a part. The QPs have ended. */
static void end_owner(struct script_qp *qp)
{
	if (qp->ah)
		vb_destroy_ah(qp->ah);
	if (qp->srq)
		vb_destroy_srq(qp->srq);
	for (unsigned int i = 0; i < 2; i++)
		if (qp->cqs[i])
			vb_destroy_cq(qp->cqs[i]);
	if (qp->mr)
		vb_dereg_mr(qp->mr);
	free(qp->buffer);
}

void script_end(struct script_run *run)
{
	script_end_work(run);
	for (unsigned int i = 0; i < SCRIPT_QPS_MAX; i++)
		if (run->qps[i].qp)
			vb_destroy_qp(run->qps[i].qp);
	for (unsigned int i = 0; i < SCRIPT_QPS_MAX; i++)
		end_owner(&run->qps[i]);
	if (run->xrcd)
		vb_close_xrcd(run->xrcd);
	for (unsigned int i = 0; i < 2; i++)
		if (run->pds[i])
			vb_dealloc_pd(run->pds[i]);
	free(run->seen);
}

/* --- memory --- */

/* Fills the bytes of a line 'store' or 'memory', and where they are. Returns NULL with the failure. */
static uint8_t *place_of(struct script_run *run, const struct script_line *line, uint8_t *bytes,
			 size_t *length_bytes)
{
	const struct script_qp *qp = &run->qps[line->qp];
	const uint64_t at = line->values[SCRIPT_AT].number,
		       number = line->values[SCRIPT_NUMBER].number;
	const bool is_number = line->values[SCRIPT_NUMBER].given;
	const uint8_t digits = line->values[SCRIPT_DATA].digit_bytes;

	*length_bytes = is_number ? sizeof(number)
				  : script_number_or(line, SCRIPT_LENGTH, digits ? digits : 1);
	if (*length_bytes > SCRIPT_BUFFER || at + *length_bytes > qp->buffer_bytes) {
		script_fail(run->failure, line, "the bytes are outside the buffer of %zu bytes",
			    qp->buffer_bytes);
		return NULL;
	}
	if (is_number)
		memcpy(bytes, &number, sizeof(number));
	else
		script_data(line, bytes, *length_bytes);
	return qp->buffer + at;
}

bool script_store(struct script_run *run, const struct script_line *line)
{
	uint8_t bytes[SCRIPT_BUFFER];
	size_t length_bytes;
	uint8_t *at = place_of(run, line, bytes, &length_bytes);

	if (at)
		memcpy(at, bytes, length_bytes);
	return at;
}

bool script_check_memory(struct script_run *run, const struct script_line *line)
{
	uint8_t bytes[SCRIPT_BUFFER];
	size_t length_bytes;
	const uint8_t *at = place_of(run, line, bytes, &length_bytes);
	char wanted[16], got[16];

	for (size_t i = 0; at && i < length_bytes; i++) {
		if (at[i] == bytes[i])
			continue;
		snprintf(wanted, sizeof(wanted), "0x%02x", bytes[i]);
		snprintf(got, sizeof(got), "0x%02x", at[i]);
		script_row(run->failure, "byte", wanted, got, true);
		return script_fail(run->failure, line, "byte %zu of the memory is another one", i);
	}
	return at;
}
