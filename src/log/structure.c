/* SPDX-License-Identifier: MIT */
#include "src/log/structure.h"

#include "src/layer/layer.h"

#include <arpa/inet.h>
#include <verbena/verbs.h>

/* A list stops where the line has so little room left. */
#define LIST_RESERVE_BYTES 8192

#define OBJECT_NAME_BYTES 64

/* --- names --- */

static const char *state_name(int value)
{
	return vb_qp_state_str((enum ibv_qp_state)value);
}

static const char *type_name(int value)
{
	return vb_qp_type_str((enum ibv_qp_type)value);
}

static const char *status_name(int value)
{
	return vb_wc_status_name((enum ibv_wc_status)value);
}

static const char *port_state_name(int value)
{
	return vb_port_state_str((enum ibv_port_state)value);
}

static const char *wc_opcode_name(int value)
{
	return vb_wc_opcode_str((enum ibv_wc_opcode)value);
}

static const char *srq_type_name(int value)
{
	switch (value) {
	case IBV_SRQT_BASIC:
		return "BASIC";
	case IBV_SRQT_XRC:
		return "XRC";
	case IBV_SRQT_TM:
		return "TM";
	default:
		return "unknown";
	}
}

static const char *link_layer_name(int value)
{
	switch (value) {
	case IBV_LINK_LAYER_ETHERNET:
		return "ethernet";
	case IBV_LINK_LAYER_INFINIBAND:
		return "infiniband";
	default:
		return "unknown";
	}
}

/* --- the members of each structure --- */

/* NOLINTBEGIN(bugprone-sizeof-expression): the size of a pointer is meant. */
#define MEMBER(type, field, ...)                                             \
	{                                                                    \
		.name = #field, .offset = offsetof(struct type, field),      \
		.size_bytes = sizeof(((struct type *)0)->field), __VA_ARGS__ \
	}

static const struct member cap[] = {
	MEMBER(ibv_qp_cap, max_send_wr),     MEMBER(ibv_qp_cap, max_recv_wr),
	MEMBER(ibv_qp_cap, max_send_sge),    MEMBER(ibv_qp_cap, max_recv_sge),
	MEMBER(ibv_qp_cap, max_inline_data), {0},
};

static const struct member grh[] = {
	MEMBER(ibv_global_route, dgid, .shape = SHAPE_GID),
	MEMBER(ibv_global_route, flow_label, .shape = SHAPE_HEX),
	MEMBER(ibv_global_route, sgid_index),
	MEMBER(ibv_global_route, hop_limit),
	MEMBER(ibv_global_route, traffic_class),
	{0},
};

#define IS_GLOBAL 1

const struct member structure_ah_attr[] = {
	MEMBER(ibv_ah_attr, is_global, .shape = SHAPE_BOOL),
	MEMBER(ibv_ah_attr, grh, .shape = SHAPE_STRUCT, .members = grh, .when = IS_GLOBAL),
	MEMBER(ibv_ah_attr, dlid),
	MEMBER(ibv_ah_attr, sl),
	MEMBER(ibv_ah_attr, port_num),
	{0},
};

const struct member structure_qp_attr[] = {
	MEMBER(ibv_qp_attr, qp_state, .shape = SHAPE_NAME, .words = state_name,
	       .when = IBV_QP_STATE),
	MEMBER(ibv_qp_attr, cur_qp_state, .shape = SHAPE_NAME, .words = state_name,
	       .when = IBV_QP_CUR_STATE),
	MEMBER(ibv_qp_attr, path_mtu, .shape = SHAPE_MTU, .when = IBV_QP_PATH_MTU),
	MEMBER(ibv_qp_attr, path_mig_state, .when = IBV_QP_PATH_MIG_STATE),
	MEMBER(ibv_qp_attr, qkey, .shape = SHAPE_HEX, .when = IBV_QP_QKEY),
	MEMBER(ibv_qp_attr, rq_psn, .when = IBV_QP_RQ_PSN),
	MEMBER(ibv_qp_attr, sq_psn, .when = IBV_QP_SQ_PSN),
	MEMBER(ibv_qp_attr, dest_qp_num, .shape = SHAPE_HEX, .when = IBV_QP_DEST_QPN),
	MEMBER(ibv_qp_attr, qp_access_flags, .shape = SHAPE_BITS, .bits = bits_access,
	       .when = IBV_QP_ACCESS_FLAGS),
	MEMBER(ibv_qp_attr, cap, .shape = SHAPE_STRUCT, .members = cap, .when = IBV_QP_CAP),
	MEMBER(ibv_qp_attr, ah_attr, .shape = SHAPE_AH, .when = IBV_QP_AV),
	MEMBER(ibv_qp_attr, alt_ah_attr, .shape = SHAPE_AH, .when = IBV_QP_ALT_PATH),
	MEMBER(ibv_qp_attr, pkey_index, .when = IBV_QP_PKEY_INDEX),
	MEMBER(ibv_qp_attr, alt_pkey_index, .when = IBV_QP_ALT_PATH),
	MEMBER(ibv_qp_attr, en_sqd_async_notify, .when = IBV_QP_EN_SQD_ASYNC_NOTIFY),
	MEMBER(ibv_qp_attr, max_rd_atomic, .when = IBV_QP_MAX_QP_RD_ATOMIC),
	MEMBER(ibv_qp_attr, max_dest_rd_atomic, .when = IBV_QP_MAX_DEST_RD_ATOMIC),
	MEMBER(ibv_qp_attr, min_rnr_timer, .when = IBV_QP_MIN_RNR_TIMER),
	MEMBER(ibv_qp_attr, port_num, .when = IBV_QP_PORT),
	MEMBER(ibv_qp_attr, timeout, .when = IBV_QP_TIMEOUT),
	MEMBER(ibv_qp_attr, retry_cnt, .when = IBV_QP_RETRY_CNT),
	MEMBER(ibv_qp_attr, rnr_retry, .when = IBV_QP_RNR_RETRY),
	MEMBER(ibv_qp_attr, alt_port_num, .when = IBV_QP_ALT_PATH),
	MEMBER(ibv_qp_attr, alt_timeout, .when = IBV_QP_ALT_PATH),
	MEMBER(ibv_qp_attr, rate_limit, .when = IBV_QP_RATE_LIMIT),
	{0},
};

const struct member structure_qp_init[] = {
	MEMBER(ibv_qp_init_attr, qp_type, .shape = SHAPE_NAME, .words = type_name),
	MEMBER(ibv_qp_init_attr, send_cq, .shape = SHAPE_OBJECT),
	MEMBER(ibv_qp_init_attr, recv_cq, .shape = SHAPE_OBJECT),
	MEMBER(ibv_qp_init_attr, srq, .shape = SHAPE_OBJECT),
	MEMBER(ibv_qp_init_attr, cap, .shape = SHAPE_STRUCT, .members = cap),
	MEMBER(ibv_qp_init_attr, sq_sig_all, .shape = SHAPE_SIGNED),
	{0},
};

const struct member structure_qp_init_ex[] = {
	MEMBER(ibv_qp_init_attr_ex, qp_type, .shape = SHAPE_NAME, .words = type_name),
	MEMBER(ibv_qp_init_attr_ex, send_cq, .shape = SHAPE_OBJECT),
	MEMBER(ibv_qp_init_attr_ex, recv_cq, .shape = SHAPE_OBJECT),
	MEMBER(ibv_qp_init_attr_ex, srq, .shape = SHAPE_OBJECT),
	MEMBER(ibv_qp_init_attr_ex, cap, .shape = SHAPE_STRUCT, .members = cap),
	MEMBER(ibv_qp_init_attr_ex, sq_sig_all, .shape = SHAPE_SIGNED),
	MEMBER(ibv_qp_init_attr_ex, comp_mask, .shape = SHAPE_BITS, .bits = bits_qp_init),
	MEMBER(ibv_qp_init_attr_ex, pd, .shape = SHAPE_OBJECT, .when = IBV_QP_INIT_ATTR_PD),
	MEMBER(ibv_qp_init_attr_ex, xrcd, .shape = SHAPE_OBJECT, .when = IBV_QP_INIT_ATTR_XRCD),
	MEMBER(ibv_qp_init_attr_ex, create_flags, .shape = SHAPE_BITS, .bits = bits_qp_create,
	       .when = IBV_QP_INIT_ATTR_CREATE_FLAGS),
	MEMBER(ibv_qp_init_attr_ex, max_tso_header, .when = IBV_QP_INIT_ATTR_MAX_TSO_HEADER),
	MEMBER(ibv_qp_init_attr_ex, rwq_ind_tbl, .shape = SHAPE_OBJECT,
	       .when = IBV_QP_INIT_ATTR_IND_TABLE),
	MEMBER(ibv_qp_init_attr_ex, send_ops_flags, .shape = SHAPE_BITS, .bits = bits_send_ops,
	       .when = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS),
	{0},
};

const struct member structure_qp_open[] = {
	MEMBER(ibv_qp_open_attr, comp_mask, .shape = SHAPE_BITS, .bits = bits_qp_open),
	MEMBER(ibv_qp_open_attr, qp_num, .shape = SHAPE_HEX, .when = IBV_QP_OPEN_ATTR_NUM),
	MEMBER(ibv_qp_open_attr, xrcd, .shape = SHAPE_OBJECT, .when = IBV_QP_OPEN_ATTR_XRCD),
	MEMBER(ibv_qp_open_attr, qp_type, .shape = SHAPE_NAME, .words = type_name,
	       .when = IBV_QP_OPEN_ATTR_TYPE),
	{0},
};

const struct member structure_srq_attr[] = {
	MEMBER(ibv_srq_attr, max_wr, .when = IBV_SRQ_MAX_WR),
	MEMBER(ibv_srq_attr, max_sge, .when = UINT64_C(1) << 63),
	MEMBER(ibv_srq_attr, srq_limit, .when = IBV_SRQ_LIMIT),
	{0},
};

static const struct member srq_size[] = {
	MEMBER(ibv_srq_attr, max_wr),
	MEMBER(ibv_srq_attr, max_sge),
	{0},
};

const struct member structure_srq_init[] = {
	MEMBER(ibv_srq_init_attr, attr, .shape = SHAPE_STRUCT, .members = srq_size),
	{0},
};

const struct member structure_srq_init_ex[] = {
	MEMBER(ibv_srq_init_attr_ex, attr, .shape = SHAPE_STRUCT, .members = srq_size),
	MEMBER(ibv_srq_init_attr_ex, comp_mask, .shape = SHAPE_BITS, .bits = bits_srq_init),
	MEMBER(ibv_srq_init_attr_ex, srq_type, .shape = SHAPE_NAME, .words = srq_type_name,
	       .when = IBV_SRQ_INIT_ATTR_TYPE),
	MEMBER(ibv_srq_init_attr_ex, pd, .shape = SHAPE_OBJECT, .when = IBV_SRQ_INIT_ATTR_PD),
	MEMBER(ibv_srq_init_attr_ex, xrcd, .shape = SHAPE_OBJECT, .when = IBV_SRQ_INIT_ATTR_XRCD),
	MEMBER(ibv_srq_init_attr_ex, cq, .shape = SHAPE_OBJECT, .when = IBV_SRQ_INIT_ATTR_CQ),
	{0},
};

const struct member structure_cq_init_ex[] = {
	MEMBER(ibv_cq_init_attr_ex, cqe),
	MEMBER(ibv_cq_init_attr_ex, channel, .shape = SHAPE_OBJECT),
	MEMBER(ibv_cq_init_attr_ex, comp_vector),
	MEMBER(ibv_cq_init_attr_ex, wc_flags, .shape = SHAPE_BITS, .bits = bits_wc_flags),
	MEMBER(ibv_cq_init_attr_ex, comp_mask, .shape = SHAPE_HEX),
	MEMBER(ibv_cq_init_attr_ex, flags, .shape = SHAPE_BITS, .bits = bits_cq_create,
	       .when = IBV_CQ_INIT_ATTR_MASK_FLAGS),
	MEMBER(ibv_cq_init_attr_ex, parent_domain, .shape = SHAPE_OBJECT,
	       .when = IBV_CQ_INIT_ATTR_MASK_PD),
	{0},
};

static const struct member moderate[] = {
	MEMBER(ibv_moderate_cq, cq_count),
	MEMBER(ibv_moderate_cq, cq_period),
	{0},
};

const struct member structure_modify_cq[] = {
	MEMBER(ibv_modify_cq_attr, attr_mask, .shape = SHAPE_BITS, .bits = bits_cq_attr),
	MEMBER(ibv_modify_cq_attr, moderate, .shape = SHAPE_STRUCT, .members = moderate,
	       .when = IBV_CQ_ATTR_MODERATE),
	{0},
};

const struct member structure_bind_info[] = {
	MEMBER(ibv_mw_bind_info, mr, .shape = SHAPE_OBJECT),
	MEMBER(ibv_mw_bind_info, addr, .shape = SHAPE_HEX),
	MEMBER(ibv_mw_bind_info, length),
	MEMBER(ibv_mw_bind_info, mw_access_flags, .shape = SHAPE_BITS, .bits = bits_access),
	{0},
};

const struct member structure_mw_bind[] = {
	MEMBER(ibv_mw_bind, wr_id, .shape = SHAPE_HEX),
	MEMBER(ibv_mw_bind, send_flags, .shape = SHAPE_BITS, .bits = bits_send_flags),
	MEMBER(ibv_mw_bind, bind_info, .shape = SHAPE_STRUCT, .members = structure_bind_info),
	{0},
};

const struct member structure_parent_domain[] = {
	MEMBER(ibv_parent_domain_init_attr, pd, .shape = SHAPE_OBJECT),
	MEMBER(ibv_parent_domain_init_attr, td, .shape = SHAPE_OBJECT),
	MEMBER(ibv_parent_domain_init_attr, comp_mask, .shape = SHAPE_HEX),
	{0},
};

const struct member structure_xrcd_init[] = {
	MEMBER(ibv_xrcd_init_attr, comp_mask, .shape = SHAPE_HEX),
	MEMBER(ibv_xrcd_init_attr, fd, .shape = SHAPE_SIGNED, .when = IBV_XRCD_INIT_ATTR_FD),
	MEMBER(ibv_xrcd_init_attr, oflags, .shape = SHAPE_HEX, .when = IBV_XRCD_INIT_ATTR_OFLAGS),
	{0},
};

const struct member structure_alloc_dm[] = {
	MEMBER(ibv_alloc_dm_attr, length),
	MEMBER(ibv_alloc_dm_attr, log_align_req),
	MEMBER(ibv_alloc_dm_attr, comp_mask, .shape = SHAPE_HEX),
	{0},
};

const struct member structure_ece[] = {
	MEMBER(ibv_ece, vendor_id, .shape = SHAPE_HEX),
	MEMBER(ibv_ece, options, .shape = SHAPE_HEX),
	{0},
};

const struct member structure_rate_limit[] = {
	MEMBER(ibv_qp_rate_limit_attr, rate_limit),
	MEMBER(ibv_qp_rate_limit_attr, max_burst_sz),
	MEMBER(ibv_qp_rate_limit_attr, typical_pkt_sz),
	{0},
};

const struct member structure_gid_entry[] = {
	MEMBER(ibv_gid_entry, gid, .shape = SHAPE_GID),
	MEMBER(ibv_gid_entry, gid_index),
	MEMBER(ibv_gid_entry, port_num),
	MEMBER(ibv_gid_entry, gid_type),
	{0},
};

const struct member structure_device_attr[] = {
	MEMBER(ibv_device_attr, max_qp),
	MEMBER(ibv_device_attr, max_qp_wr),
	MEMBER(ibv_device_attr, max_sge),
	MEMBER(ibv_device_attr, max_cq),
	MEMBER(ibv_device_attr, max_cqe),
	MEMBER(ibv_device_attr, max_mr),
	MEMBER(ibv_device_attr, max_pd),
	MEMBER(ibv_device_attr, max_qp_rd_atom),
	MEMBER(ibv_device_attr, max_srq),
	MEMBER(ibv_device_attr, phys_port_cnt),
	{0},
};

const struct member structure_port_attr[] = {
	MEMBER(ibv_port_attr, state, .shape = SHAPE_NAME, .words = port_state_name),
	MEMBER(ibv_port_attr, max_mtu, .shape = SHAPE_MTU),
	MEMBER(ibv_port_attr, active_mtu, .shape = SHAPE_MTU),
	MEMBER(ibv_port_attr, gid_tbl_len),
	MEMBER(ibv_port_attr, pkey_tbl_len),
	MEMBER(ibv_port_attr, lid),
	MEMBER(ibv_port_attr, link_layer, .shape = SHAPE_NAME, .words = link_layer_name),
	{0},
};

const struct member structure_wc[] = {
	MEMBER(ibv_wc, wr_id, .shape = SHAPE_HEX),
	MEMBER(ibv_wc, status, .shape = SHAPE_NAME, .words = status_name),
	MEMBER(ibv_wc, opcode, .shape = SHAPE_NAME, .words = wc_opcode_name),
	MEMBER(ibv_wc, byte_len),
	MEMBER(ibv_wc, qp_num, .shape = SHAPE_HEX),
	MEMBER(ibv_wc, src_qp, .shape = SHAPE_HEX),
	MEMBER(ibv_wc, wc_flags, .shape = SHAPE_BITS, .bits = bits_wc),
	MEMBER(ibv_wc, slid),
	{0},
};

/* NOLINTEND(bugprone-sizeof-expression) */

/* --- writing --- */

void structure_add_object(struct line *line, const void *object)
{
	char name[OBJECT_NAME_BYTES];

	if (!object) {
		line_plain(line, "null");
		return;
	}
	layer_object_name(object, name, sizeof(name));
	if (name[0])
		line_text(line, name);
	else
		line_hex(line, (uintptr_t)object);
}

static uint64_t unsigned_value(const struct member *member, const void *at)
{
	uint64_t value = 0;

	switch (member->size_bytes) {
	case sizeof(uint8_t):
		return *(const uint8_t *)at;
	case sizeof(uint16_t):
		return *(const uint16_t *)at;
	case sizeof(uint32_t):
		return *(const uint32_t *)at;
	default:
		memcpy(&value, at, sizeof(value));
		return value;
	}
}

static void add_mtu(struct line *line, enum ibv_mtu mtu)
{
	const unsigned int bytes = vb_mtu_to_bytes(mtu);

	if (bytes)
		line_decimal(line, bytes);
	else
		line_hex(line, mtu);
}

static void add_value(struct line *line, const struct member *member, const void *at)
{
	const uint64_t value = member->shape < SHAPE_STRUCT ? unsigned_value(member, at) : 0;

	switch (member->shape) {
	case SHAPE_DECIMAL:
		line_decimal(line, value);
		break;
	case SHAPE_SIGNED:
		line_signed(line, (int32_t)value);
		break;
	case SHAPE_HEX:
		line_hex(line, value);
		break;
	case SHAPE_BOOL:
		line_bool(line, value);
		break;
	case SHAPE_NAME:
		line_name(line, member->words((int)value), value);
		break;
	case SHAPE_BITS:
		line_bits(line, member->bits, value);
		break;
	case SHAPE_MTU:
		add_mtu(line, (enum ibv_mtu)value);
		break;
	case SHAPE_OBJECT:
		structure_add_object(line, (const void *)(uintptr_t)value);
		break;
	case SHAPE_STRUCT:
		structure_add(line, member->members, at, 0);
		break;
	case SHAPE_GID:
		line_gid(line, at);
		break;
	case SHAPE_AH:
		structure_add(line, structure_ah_attr, at,
			      ((const struct ibv_ah_attr *)at)->is_global ? IS_GLOBAL : 0);
		break;
	}
}

void structure_add(struct line *line, const struct member *members, const void *structure,
		   uint64_t mask)
{
	line_plain(line, "{");
	for (const struct member *member = members; member->name; member++) {
		const void *at = (const char *)structure + member->offset;

		if (member->when && !(mask & member->when))
			continue;
		if (member->shape == SHAPE_OBJECT && !unsigned_value(member, at))
			continue;
		line_key(line, member->name);
		add_value(line, member, at);
	}
	line_plain(line, "}");
}

/* --- work requests --- */

static void key_hex(struct line *line, const char *key, uint64_t value)
{
	line_key(line, key);
	line_hex(line, value);
}

static void key_decimal(struct line *line, const char *key, uint64_t value)
{
	line_key(line, key);
	line_decimal(line, value);
}

static void add_sges(struct line *line, const struct ibv_sge *sges, int count, bool posted)
{
	uint64_t length = 0;

	line_key(line, "num_sge");
	line_signed(line, count);
	if (!posted)
		return;
	for (int i = 0; i < count; i++)
		length += sges[i].length;
	key_decimal(line, "length", length);
}

static void add_rdma(struct line *line, const struct ibv_send_wr *wr)
{
	key_hex(line, "remote_addr", wr->wr.rdma.remote_addr);
	key_hex(line, "rkey", wr->wr.rdma.rkey);
}

static void add_atomic(struct line *line, const struct ibv_send_wr *wr)
{
	key_hex(line, "remote_addr", wr->wr.atomic.remote_addr);
	key_hex(line, "rkey", wr->wr.atomic.rkey);
	key_hex(line, "compare_add", wr->wr.atomic.compare_add);
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		key_hex(line, "swap", wr->wr.atomic.swap);
}

/* Adds the members that the operation has. */
static void add_operation(struct line *line, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		key_hex(line, "imm", ntohl(wr->imm_data));
		add_rdma(line, wr);
		break;
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		add_rdma(line, wr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		add_atomic(line, wr);
		break;
	case IBV_WR_SEND_WITH_IMM:
		key_hex(line, "imm", ntohl(wr->imm_data));
		break;
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		key_hex(line, "invalidate_rkey", wr->invalidate_rkey);
		break;
	case IBV_WR_BIND_MW:
		line_key(line, "mw");
		structure_add_object(line, wr->bind_mw.mw);
		key_hex(line, "rkey", wr->bind_mw.rkey);
		line_key(line, "bind_info");
		structure_add(line, structure_bind_info, &wr->bind_mw.bind_info, 0);
		break;
	default:
		break;
	}
}

static void add_send(struct line *line, const struct ibv_send_wr *wr, bool posted, int type)
{
	line_plain(line, "{");
	key_hex(line, "wr_id", wr->wr_id);
	line_key(line, "opcode");
	line_name(line, vb_wr_opcode_str(wr->opcode), wr->opcode);
	line_key(line, "send_flags");
	line_bits(line, bits_send_flags, wr->send_flags);
	add_sges(line, wr->sg_list, wr->num_sge, posted);
	add_operation(line, wr);
	if (type == IBV_QPT_UD) {
		line_key(line, "ah");
		structure_add_object(line, wr->wr.ud.ah);
		key_hex(line, "remote_qpn", wr->wr.ud.remote_qpn);
		key_hex(line, "remote_qkey", wr->wr.ud.remote_qkey);
	}
	if (type == IBV_QPT_XRC_SEND)
		key_hex(line, "remote_srqn", wr->qp_type.xrc.remote_srqn);
	line_plain(line, "}");
}

/* Begins the next element of a list; returns false if there is no room for another. */
static bool next_element(struct line *line)
{
	line_comma(line);
	if (line->end - line->at >= LIST_RESERVE_BYTES)
		return true;
	line_plain(line, "\"...\"");
	return false;
}

void structure_add_sends(struct line *line, const struct ibv_send_wr *wr,
			 const struct ibv_send_wr *bad, int type)
{
	line_plain(line, "[");
	for (; wr && next_element(line); wr = wr == bad ? NULL : wr->next)
		add_send(line, wr, wr != bad, type);
	line_plain(line, "]");
}

static void add_recv(struct line *line, const struct ibv_recv_wr *wr, bool posted)
{
	line_plain(line, "{");
	key_hex(line, "wr_id", wr->wr_id);
	add_sges(line, wr->sg_list, wr->num_sge, posted);
	line_plain(line, "}");
}

void structure_add_recvs(struct line *line, const struct ibv_recv_wr *wr,
			 const struct ibv_recv_wr *bad)
{
	line_plain(line, "[");
	for (; wr && next_element(line); wr = wr == bad ? NULL : wr->next)
		add_recv(line, wr, wr != bad);
	line_plain(line, "]");
}
