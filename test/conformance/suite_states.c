/* SPDX-License-Identifier: MIT */
/*
 * The states of a queue pair and the attributes that each step takes.
 *
 * The table is that of the Linux core (qp_state_table of drivers/infiniband/core/verbs.c) for RC,
 * UC and UD, written down by hand, without the alternate path.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#define KERNEL_TABLE SRC_CORE "verbs.c, qp_state_table and ib_modify_qp_is_ok"

enum { RC, UC, UD, TYPES };

static const enum ibv_qp_type types[TYPES] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
static const char *const type_names[TYPES] = {"RC", "UC", "UD"};

static const enum ibv_qp_state states[] = {
	IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
	IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR,
};

#define STATES TS_COUNT(states)

#define INIT_CONNECTED (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD	       (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_UC	       (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTS_RC                                                                            \
	(IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | \
	 IBV_QP_SQ_PSN)
#define MOVE_RC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER)
#define MOVE_UC (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS)
#define MOVE_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_RC                                                                            \
	(IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
	 IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ACCESS_FLAGS |      \
	 IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER)
#define SQD_UC (IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define SQD_UD (IBV_QP_PKEY_INDEX | IBV_QP_QKEY)
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY

struct cell {
	enum ibv_qp_state from, to;
	int required[TYPES];
	int optional[TYPES];
};

/* The allowed transitions; every other pair of states is refused. */
static const struct cell cells[] = {
	{IBV_QPS_RESET, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RESET, IBV_QPS_INIT, {INIT_CONNECTED, INIT_CONNECTED, INIT_UD}, {0}},
	{IBV_QPS_INIT, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_INIT, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_INIT, IBV_QPS_INIT, {0}, {INIT_CONNECTED, INIT_CONNECTED, INIT_UD}},
	{IBV_QPS_INIT,
	 IBV_QPS_RTR,
	 {RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, RTR_UC, 0},
	 {IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	  IBV_QP_PKEY_INDEX | IBV_QP_QKEY}},
	{IBV_QPS_RTR, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RTR, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_RTR,
	 IBV_QPS_RTS,
	 {RTS_RC, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN},
	 {MOVE_RC, MOVE_UC, MOVE_UD}},
	{IBV_QPS_RTS, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_RTS, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_RTS, IBV_QPS_RTS, {0}, {MOVE_RC, MOVE_UC, MOVE_UD}},
	{IBV_QPS_RTS, IBV_QPS_SQD, {0}, {NOTIFY, NOTIFY, NOTIFY}},
	{IBV_QPS_SQD, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_SQD, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_SQD, IBV_QPS_RTS, {0}, {MOVE_RC, MOVE_UC, MOVE_UD}},
	{IBV_QPS_SQD, IBV_QPS_SQD, {0}, {SQD_RC, SQD_UC, SQD_UD}},
	{IBV_QPS_SQE, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_SQE, IBV_QPS_ERR, {0}, {0}},
	{IBV_QPS_SQE, IBV_QPS_RTS, {0}, {0, MOVE_UC, MOVE_UD}},
	{IBV_QPS_ERR, IBV_QPS_RESET, {0}, {0}},
	{IBV_QPS_ERR, IBV_QPS_ERR, {0}, {0}},
};

/*
 * The attributes of the table. alternate_path_needs_the_capability tests the two that are missing.
 */
static const struct {
	int bit;
	const char *name;
} attributes[] = {
	{IBV_QP_CUR_STATE, "CUR_STATE"},
	{IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
	{IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
	{IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
	{IBV_QP_PORT, "PORT"},
	{IBV_QP_QKEY, "QKEY"},
	{IBV_QP_AV, "AV"},
	{IBV_QP_PATH_MTU, "PATH_MTU"},
	{IBV_QP_TIMEOUT, "TIMEOUT"},
	{IBV_QP_RETRY_CNT, "RETRY_CNT"},
	{IBV_QP_RNR_RETRY, "RNR_RETRY"},
	{IBV_QP_RQ_PSN, "RQ_PSN"},
	{IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
	{IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
	{IBV_QP_SQ_PSN, "SQ_PSN"},
	{IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
	{IBV_QP_CAP, "CAP"},
	{IBV_QP_DEST_QPN, "DEST_QPN"},
};

#define ATTRIBUTES TS_COUNT(attributes)

static const struct cell *find_cell(enum ibv_qp_state from, enum ibv_qp_state to, int type)
{
	size_t i;

	if (type == RC && (from == IBV_QPS_SQE || to == IBV_QPS_SQE))
		return NULL;
	for (i = 0; i < TS_COUNT(cells); i++)
		if (cells[i].from == from && cells[i].to == to)
			return &cells[i];
	return NULL;
}

/* Causes a local error in the send queue, which moves UC and UD to SQE. */
static void fail_a_send(struct ts_end *end)
{
	ts_send(end, .wr_id = 90, .length = 8, .lkey = ts_wrong_key(end->mr->lkey));
	ts_failed(end->t, end->send_cq, 90, IBV_WC_LOC_PROT_ERR);
}

/* Takes an end from RESET to a state. */
static void reach(struct ts_end *end, enum ibv_qp_state state)
{
	if (state != IBV_QPS_RESET)
		ts_to_init(end);
	if (state == IBV_QPS_ERR)
		VT_OK(end->t, ts_to(end, IBV_QPS_ERR));
	if (state != IBV_QPS_RTR && state != IBV_QPS_RTS && state != IBV_QPS_SQD &&
	    state != IBV_QPS_SQE)
		return;
	ts_to_rtr(end);
	if (state == IBV_QPS_RTR)
		return;
	ts_to_rts(end);
	if (state == IBV_QPS_SQD)
		VT_OK(end->t, ts_to(end, IBV_QPS_SQD));
	ts_drained(end);
	if (state == IBV_QPS_SQE)
		fail_a_send(end);
}

static void start_over(struct ts_end *end, enum ibv_qp_state state)
{
	ts_drained(end);
	VT_OK(end->t, ts_to(end, IBV_QPS_RESET));
	reach(end, state);
}

/* Does one modify on a fresh QP and compares the result with the table. */
static void try_step(struct ts_end *end, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
		     bool allowed)
{
	struct vt *t = end->t;
	struct ibv_qp_attr attr;

	start_over(end, from);
	attr = ts_good_attr(end, end, from, to);
	VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, mask | IBV_QP_STATE), allowed ? 0 : EINVAL);
	VT_EXPECT_STATE(t, ts_query_state(t, end->qp), allowed ? to : from);
}

static struct ts_end *lone_end(struct vt *t, int type)
{
	struct ts_options options = ts_defaults(t, types[type]);

	return ts_end(t, &t->a, &options);
}

typedef void try_cell_fn(struct ts_end *end, int type, enum ibv_qp_state from, enum ibv_qp_state to,
			 const struct cell *cell);

/* Calls fn for every pair of states of every type; cell is NULL where the pair is refused. */
static void for_each_pair(struct vt *t, try_cell_fn *fn)
{
	struct ts_end *end;
	size_t from, to;
	int type;

	for (type = RC; type < TYPES; type++) {
		end = lone_end(t, type);
		for (from = 0; from < STATES; from++)
			for (to = 0; to < STATES; to++) {
				if (type == RC && states[from] == IBV_QPS_SQE)
					continue;
				fn(end, type, states[from], states[to],
				   find_cell(states[from], states[to], type));
			}
		vt_row(t, NULL);
	}
}

static void name_row(struct ts_end *end, int type, enum ibv_qp_state from, enum ibv_qp_state to,
		     const char *what, const char *attribute)
{
	vt_row(end->t, "%s %s->%s%s%s", type_names[type], vt_qp_state_name(from),
	       vt_qp_state_name(to), what, attribute);
}

static void try_required(struct ts_end *end, int type, enum ibv_qp_state from, enum ibv_qp_state to,
			 const struct cell *cell)
{
	name_row(end, type, from, to, "", "");
	try_step(end, from, to, cell ? cell->required[type] : 0, cell != NULL);
}

static void every_pair_of_states(struct vt *t)
{
	for_each_pair(t, try_required);
}

static void try_missing(struct ts_end *end, int type, enum ibv_qp_state from, enum ibv_qp_state to,
			const struct cell *cell)
{
	size_t i;

	for (i = 0; cell && i < ATTRIBUTES; i++) {
		if (!(cell->required[type] & attributes[i].bit))
			continue;
		name_row(end, type, from, to, " without ", attributes[i].name);
		try_step(end, from, to, cell->required[type] & ~attributes[i].bit, false);
	}
}

static void missing_attribute_is_refused(struct vt *t)
{
	for_each_pair(t, try_missing);
}

static void try_forbidden(struct ts_end *end, int type, enum ibv_qp_state from,
			  enum ibv_qp_state to, const struct cell *cell)
{
	size_t i;

	for (i = 0; cell && i < ATTRIBUTES; i++) {
		if ((cell->required[type] | cell->optional[type]) & attributes[i].bit)
			continue;
		name_row(end, type, from, to, " with ", attributes[i].name);
		try_step(end, from, to, cell->required[type] | attributes[i].bit, false);
	}
}

static void forbidden_attribute_is_refused(struct vt *t)
{
	for_each_pair(t, try_forbidden);
}

static void try_optional(struct ts_end *end, int type, enum ibv_qp_state from, enum ibv_qp_state to,
			 const struct cell *cell)
{
	size_t i;

	for (i = 0; cell && i < ATTRIBUTES; i++) {
		if (!(cell->optional[type] & attributes[i].bit))
			continue;
		name_row(end, type, from, to, " with ", attributes[i].name);
		try_step(end, from, to, cell->required[type] | attributes[i].bit, true);
	}
}

static void optional_attribute_is_taken(struct vt *t)
{
	for_each_pair(t, try_optional);
}

static void alternate_path_needs_the_capability(struct vt *t)
{
	static const int bits[] = {IBV_QP_ALT_PATH, IBV_QP_PATH_MIG_STATE};
	struct ts_end *end = lone_end(t, RC);
	size_t i;

	if (t->a.device_attr.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG)
		VT_SKIP(t, "the device migrates paths");
	for (i = 0; i < 2; i++) {
		vt_row(t, "%s", i ? "PATH_MIG_STATE" : "ALT_PATH");
		try_step(end, IBV_QPS_RTR, IBV_QPS_RTS, RTS_RC | bits[i], false);
	}
}

static void modify_without_the_state_bit_keeps_the_state(struct vt *t)
{
	struct ts_end *end = lone_end(t, RC);
	struct ibv_qp_attr attr = ts_good_attr(end, end, 0, IBV_QPS_ERR);

	reach(end, IBV_QPS_RTR);
	VT_ERRNO(t, vb_modify_qp(end->qp, &attr, IBV_QP_MIN_RNR_TIMER), EINVAL);
	ts_state(end, IBV_QPS_RTR);
	ts_to_rts(end);
	VT_OK(t, vb_modify_qp(end->qp, &attr, IBV_QP_MIN_RNR_TIMER));
	ts_state(end, IBV_QPS_RTS);
}

static void unknown_state_is_refused(struct vt *t)
{
	struct ts_end *end = lone_end(t, RC);
	struct ibv_qp_attr attr = {.qp_state = 77};

	reach(end, IBV_QPS_RTS);
	VT_ERRNO(t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE), EINVAL);
	ts_state(end, IBV_QPS_RTS);
}

/* --- ranges --- */

static bool bad_port_0(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->port_num = 0;
	return true;
}

static bool bad_port_high(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->port_num = end->node->device_attr.phys_port_cnt + 1;
	return true;
}

static bool bad_pkey_index(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->pkey_index = end->node->port_attr.pkey_tbl_len;
	return true;
}

static bool bad_mtu_0(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->path_mtu = 0;
	return true;
}

static bool bad_mtu_6(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->path_mtu = 6;
	return true;
}

static bool bad_mtu_above_port(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->path_mtu = end->node->port_attr.active_mtu + 1;
	return end->node->port_attr.active_mtu < IBV_MTU_4096;
}

static bool bad_max_dest_rd_atomic(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->max_dest_rd_atomic = (uint8_t)(end->node->device_attr.max_qp_rd_atom + 1);
	return end->node->device_attr.max_qp_rd_atom < 255;
}

static bool bad_min_rnr_timer(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->min_rnr_timer = 32;
	return true;
}

static bool bad_sgid_index(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->ah_attr.grh.sgid_index = (uint8_t)end->node->port_attr.gid_tbl_len;
	return attr->ah_attr.is_global && end->node->port_attr.gid_tbl_len < 256;
}

static bool bad_no_grh(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->ah_attr.is_global = 0;
	return end->node->port_attr.link_layer == IBV_LINK_LAYER_ETHERNET;
}

static bool bad_av_port(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->ah_attr.port_num = end->node->device_attr.phys_port_cnt + 1;
	return true;
}

static bool bad_timeout(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->timeout = 32;
	return true;
}

static bool bad_retry_cnt(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->retry_cnt = 8;
	return true;
}

static bool bad_rnr_retry(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->rnr_retry = 8;
	return true;
}

static bool bad_max_rd_atomic(struct ts_end *end, struct ibv_qp_attr *attr)
{
	attr->max_rd_atomic = (uint8_t)(end->node->device_attr.max_qp_init_rd_atom + 1);
	return end->node->device_attr.max_qp_init_rd_atom < 255;
}

/*
 * Puts a value out of range into the step that takes it. Returns false if no value is out of
 * range.
 */
static const struct {
	const char *name;
	enum ibv_qp_state from;
	bool (*spoil)(struct ts_end *end, struct ibv_qp_attr *attr);
} bad_values[] = {
	{"port 0", IBV_QPS_RESET, bad_port_0},
	{"port above the last", IBV_QPS_RESET, bad_port_high},
	{"P_Key index past the table", IBV_QPS_RESET, bad_pkey_index},
	{"path MTU 0", IBV_QPS_INIT, bad_mtu_0},
	{"path MTU 6", IBV_QPS_INIT, bad_mtu_6},
	{"path MTU above the port's", IBV_QPS_INIT, bad_mtu_above_port},
	{"max_dest_rd_atomic above the device's", IBV_QPS_INIT, bad_max_dest_rd_atomic},
	{"min_rnr_timer 32", IBV_QPS_INIT, bad_min_rnr_timer},
	{"GID index past the table", IBV_QPS_INIT, bad_sgid_index},
	{"no GRH on Ethernet", IBV_QPS_INIT, bad_no_grh},
	{"port of the address vector", IBV_QPS_INIT, bad_av_port},
	{"timeout 32", IBV_QPS_RTR, bad_timeout},
	{"retry_cnt 8", IBV_QPS_RTR, bad_retry_cnt},
	{"rnr_retry 8", IBV_QPS_RTR, bad_rnr_retry},
	{"max_rd_atomic above the device's", IBV_QPS_RTR, bad_max_rd_atomic},
};

static int step_attr(struct ts_end *end, enum ibv_qp_state from, struct ibv_qp_attr *attr)
{
	if (from == IBV_QPS_RESET)
		return ts_init_attr(end, attr);
	if (from == IBV_QPS_INIT)
		return ts_rtr_attr(end, attr);
	return ts_rts_attr(end, attr);
}

static void value_out_of_range_is_refused(struct vt *t)
{
	struct ts_end *end = lone_end(t, RC);
	struct ibv_qp_attr attr;
	enum ibv_qp_state from;
	size_t i;
	int mask;

	for (i = 0; i < TS_COUNT(bad_values); i++) {
		from = bad_values[i].from;
		vt_row(t, "%s", bad_values[i].name);
		start_over(end, from);
		mask = step_attr(end, from, &attr);
		if (!bad_values[i].spoil(end, &attr))
			continue;
		VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, mask), EINVAL);
		VT_EXPECT_STATE(t, ts_query_state(t, end->qp), from);
		mask = step_attr(end, from, &attr);
		VT_EXPECT_ERRNO(t, vb_modify_qp(end->qp, &attr, mask), 0);
	}
}

static void wide_numbers_are_masked(struct vt *t)
{
	struct ts_end *end = lone_end(t, RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int mask;

	ts_to_init(end);
	mask = ts_rtr_attr(end, &attr);
	attr.rq_psn = 0xff345678;
	attr.dest_qp_num |= 0x5000000;
	VT_OK(t, vb_modify_qp(end->qp, &attr, mask));
	mask = ts_rts_attr(end, &attr);
	attr.sq_psn = 0x1abcdef;
	VT_OK(t, vb_modify_qp(end->qp, &attr, mask));
	VT_OK(t,
	      vb_query_qp(end->qp, &attr, IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_DEST_QPN, &init));
	VT_EQ(t, attr.rq_psn, 0x345678);
	VT_EQ(t, attr.sq_psn, 0xabcdef);
	VT_EQ(t, attr.dest_qp_num, end->qp->qp_num);
}

/* --- query --- */

static void query_returns_what_modify_set(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ts_pair *pair;

	options.timeout = 9;
	options.retry_cnt = 3;
	options.rnr_retry = 5;
	options.min_rnr_timer = 17;
	options.max_rd_atomic = 3;
	options.max_dest_rd_atomic = 2;
	options.qp_access = IBV_ACCESS_REMOTE_READ;
	pair = ts_pair(t, &options);
	VT_OK(t, vb_query_qp(pair->a.qp, &attr, 0x1fffff, &init));
	VT_STATE(t, attr.qp_state, IBV_QPS_RTS);
	VT_EQ(t, attr.path_mtu, options.mtu);
	VT_EQ(t, attr.rq_psn, options.b_psn);
	VT_EQ(t, attr.sq_psn, options.a_psn);
	VT_EQ(t, attr.dest_qp_num, pair->b.qp->qp_num);
	VT_EQ(t, attr.qp_access_flags & TS_ACCESS_ALL & ~IBV_ACCESS_LOCAL_WRITE,
	      IBV_ACCESS_REMOTE_READ);
	VT_EQ(t, attr.timeout, 9);
	VT_EQ(t, attr.retry_cnt, 3);
	VT_EQ(t, attr.rnr_retry, 5);
	VT_EQ(t, attr.min_rnr_timer, 17);
	VT_EQ(t, attr.max_rd_atomic, 3);
	VT_EQ(t, attr.max_dest_rd_atomic, 2);
	VT_EQ(t, attr.port_num, t->a.port);
	VT_EQ(t, attr.pkey_index, t->a.pkey_index);
	VT_EQ(t, attr.ah_attr.port_num, t->a.port);
	VT_EQ(t, attr.cap.max_send_wr, pair->a.cap.max_send_wr);
	VT_EQ(t, attr.cap.max_recv_wr, pair->a.cap.max_recv_wr);
	if (attr.ah_attr.is_global)
		VT_EQ_MEM(t, &attr.ah_attr.grh.dgid, &t->b.gid, sizeof(t->b.gid));
}

static void query_returns_what_the_qp_was_created_with(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_UD);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ts_pair *pair;

	options.signal_all = true;
	pair = ts_pair(t, &options);
	VT_OK(t, vb_query_qp(pair->a.qp, &attr, IBV_QP_CAP | IBV_QP_QKEY, &init));
	VT_EQ(t, attr.qkey, TS_QKEY);
	VT_EQ(t, init.qp_type, IBV_QPT_UD);
	VT_CHECK(t, init.qp_context == &pair->a);
	VT_CHECK(t, init.send_cq == pair->a.send_cq);
	VT_CHECK(t, init.recv_cq == pair->a.recv_cq);
	VT_CHECK(t, init.srq == NULL);
	VT_EQ(t, init.sq_sig_all, 1);
	VT_EQ(t, init.cap.max_send_wr, pair->a.cap.max_send_wr);
	VT_EQ(t, init.cap.max_send_sge, pair->a.cap.max_send_sge);
	VT_EQ(t, init.cap.max_recv_sge, pair->a.cap.max_recv_sge);
}

static void refused_modify_changes_no_attribute(struct vt *t)
{
	struct ts_end *end = lone_end(t, RC);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	reach(end, IBV_QPS_RTS);
	attr = ts_good_attr(end, end, IBV_QPS_RTS, IBV_QPS_RTS);
	attr.min_rnr_timer = 30;
	attr.qp_access_flags = 0;
	VT_ERRNO(t,
		 vb_modify_qp(end->qp, &attr,
			      IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS |
				      IBV_QP_RQ_PSN),
		 EINVAL);
	VT_OK(t, vb_query_qp(end->qp, &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS, &init));
	VT_EQ(t, attr.min_rnr_timer, end->options.min_rnr_timer);
	VT_CHECK(t, attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE);
}

static void state_is_cached_in_the_qp(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_pair_reset(t, &options);

	VT_STATE(t, pair->a.qp->state, IBV_QPS_RESET);
	ts_to_init(&pair->a);
	VT_STATE(t, pair->a.qp->state, IBV_QPS_INIT);
	VT_ERRNO(t, ts_to(&pair->a, IBV_QPS_RTS), EINVAL);
	VT_STATE(t, pair->a.qp->state, IBV_QPS_INIT);
	ts_to_rtr(&pair->a);
	ts_to_rts(&pair->a);
	ts_send(&pair->a, .wr_id = 1, .length = 8, .lkey = ts_wrong_key(pair->a.mr->lkey));
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
	VT_STATE(t, pair->a.qp->state, IBV_QPS_RTS);
	ts_state(&pair->a, IBV_QPS_ERR);
	VT_STATE(t, pair->a.qp->state, IBV_QPS_ERR);
}

static void reset_starts_again(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	int round;

	for (round = 0; round < 3; round++) {
		ts_transfer(pair, IBV_WR_SEND, 100);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RESET));
		VT_OK(t, ts_to(&pair->b, round ? IBV_QPS_RESET : IBV_QPS_ERR));
		VT_OK(t, ts_to(&pair->b, IBV_QPS_RESET));
		ts_connect_both(pair);
	}
	ts_transfer(pair, IBV_WR_SEND, 100);
}

/* --- SQD and SQE --- */

static void drain_with_event(struct ts_end *end)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};

	VT_OK(end->t, vb_modify_qp(end->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
}

static int query_draining(struct ts_end *end)
{
	struct ibv_qp_attr attr = ts_query(end);

	VT_STATE(end->t, attr.qp_state, IBV_QPS_SQD);
	return attr.sq_draining;
}

static void sqd_of_an_idle_queue_drains_at_once(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	drain_with_event(&pair->a);
	ts_event(t, &t->a, IBV_EVENT_SQ_DRAINED, pair->a.qp);
	VT_EQ(t, query_draining(&pair->a), 0);
	ts_no_event(t, &t->a);
}

static void sqd_finishes_sends_then_raises_sq_drained(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_send(&pair->a, .wr_id = 1, .length = 10);
	ts_pause(t, 1000000);
	drain_with_event(&pair->a);
	VT_EQ(t, query_draining(&pair->a), 1);
	ts_recv(&pair->b, .wr_id = 5, .length = 10);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_event(t, &t->a, IBV_EVENT_SQ_DRAINED, pair->a.qp);
	VT_EQ(t, query_draining(&pair->a), 0);
}

static void sqd_raises_no_event_unasked(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_recv(&pair->b, .wr_id = 5, .length = 10);
	ts_send(&pair->a, .wr_id = 1, .length = 10);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_no_event(t, &t->a);
}

static void sends_wait_in_sqd(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_OK(t, ts_to(&pair->a, IBV_QPS_SQD));
	ts_recv(&pair->b, .wr_id = 5, .length = 10);
	ts_send(&pair->a, .wr_id = 1, .length = 10);
	ts_no_more(t, pair->a.send_cq);
	ts_no_more(t, pair->b.recv_cq);
	VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_received(t, pair->b.recv_cq, 5, 10);
}

static void sqd_still_receives(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_OK(t, ts_to(&pair->b, IBV_QPS_SQD));
	ts_transfer(pair, IBV_WR_SEND, 100);
	ts_transfer(pair, IBV_WR_RDMA_READ, 100);
}

static void sqe_after_a_local_error(struct vt *t)
{
	static const int rows[] = {UC, UD};
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "%s", type_names[rows[i]]);
		pair = ts_connected(t, types[rows[i]]);
		ts_send(&pair->a, .wr_id = 1, .length = 8, .lkey = ts_wrong_key(pair->a.mr->lkey));
		ts_send(&pair->a, .wr_id = 2, .length = 8);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_LOC_PROT_ERR);
		ts_flushed(t, pair->a.send_cq, 2);
		ts_state(&pair->a, IBV_QPS_SQE);
	}
}

static void sqe_flushes_sends_and_receives(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	fail_a_send(&pair->a);
	ts_send(&pair->a, .wr_id = 3, .length = 8);
	ts_flushed(t, pair->a.send_cq, 3);
	ts_recv(&pair->a, .wr_id = 5, .length = 100);
	ts_send(&pair->b, .wr_id = 4, .length = 8);
	ts_received(t, pair->a.recv_cq, 5, 8 + TS_GRH);
	ts_state(&pair->a, IBV_QPS_SQE);
}

static void sqe_goes_back_to_rts(struct vt *t)
{
	static const int rows[] = {UC, UD};
	struct ts_pair *pair;
	size_t i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "%s", type_names[rows[i]]);
		pair = ts_connected(t, types[rows[i]]);
		fail_a_send(&pair->a);
		VT_OK(t, ts_to(&pair->a, IBV_QPS_RTS));
		ts_transfer(pair, IBV_WR_SEND, 100);
	}
}

static const struct vt_test tests[] = {
	{"every_pair_of_states", KERNEL_TABLE, 0, every_pair_of_states},
	{"missing_attribute_is_refused", KERNEL_TABLE, 0, missing_attribute_is_refused},
	{"forbidden_attribute_is_refused", KERNEL_TABLE, 0, forbidden_attribute_is_refused},
	{"optional_attribute_is_taken", KERNEL_TABLE, 0, optional_attribute_is_taken},
	{"alternate_path_needs_the_capability", "ibv_modify_qp(3), Notes", 0,
	 alternate_path_needs_the_capability},
	{"modify_without_the_state_bit_keeps_the_state",
	 SRC_RXE "rxe_qp.c, rxe_qp_chk_attr: new_state", 0,
	 modify_without_the_state_bit_keeps_the_state},
	{"unknown_state_is_refused", KERNEL_TABLE, 0, unknown_state_is_refused},
	{"value_out_of_range_is_refused",
	 "ibv_modify_qp(3), Notes; which values: " SRC_RVT "qp.c, rvt_modify_qp, " SRC_RXE
	 "rxe_qp.c, rxe_qp_chk_attr, and " SRC_CORE "verbs.c, rdma_check_ah_attr",
	 0, value_out_of_range_is_refused},
	{"wide_numbers_are_masked",
	 "PSNs: " SRC_RXE "rxe_qp.c, rxe_qp_from_attr: BTH_PSN_MASK; the QPN: unsourced", 0,
	 wide_numbers_are_masked},
	{"query_returns_what_modify_set", "ibv_query_qp(3)", 0, query_returns_what_modify_set},
	{"query_returns_what_the_qp_was_created_with", "ibv_query_qp(3)", 0,
	 query_returns_what_the_qp_was_created_with},
	{"refused_modify_changes_no_attribute", "ibv_modify_qp(3), Notes", 0,
	 refused_modify_changes_no_attribute},
	{"state_is_cached_in_the_qp", SRC_RDMA_CORE "libibverbs/verbs.c, ibv_modify_qp: qp->state",
	 0, state_is_cached_in_the_qp},
	{"reset_starts_again", KERNEL_TABLE, 0, reset_starts_again},
	{"sqd_of_an_idle_queue_drains_at_once", "ibv_get_async_event(3): SQ_DRAINED", 0,
	 sqd_of_an_idle_queue_drains_at_once},
	{"sqd_finishes_sends_then_raises_sq_drained",
	 "ibv_get_async_event(3): SQ_DRAINED; ibv_query_qp(3): sq_draining", 0,
	 sqd_finishes_sends_then_raises_sq_drained},
	{"sqd_raises_no_event_unasked", "ibv_modify_qp(3): en_sqd_async_notify", 0,
	 sqd_raises_no_event_unasked},
	{"sends_wait_in_sqd", SRC_STATE_OPS ": SQD starts no next send", 0, sends_wait_in_sqd},
	{"sqd_still_receives", SRC_STATE_OPS ": SQD", 0, sqd_still_receives},
	{"sqe_after_a_local_error", "flushed in SQE: " SRC_STATE_OPS "; the step to SQE: unsourced",
	 0, sqe_after_a_local_error},
	{"sqe_flushes_sends_and_receives", SRC_STATE_OPS ": SQE", 0,
	 sqe_flushes_sends_and_receives},
	{"sqe_goes_back_to_rts", KERNEL_TABLE, 0, sqe_goes_back_to_rts},
	{NULL},
};

const struct vt_suite vt_suite_states = {"states", "queue pair states and attributes", tests};
