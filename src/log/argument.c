/* SPDX-License-Identifier: MIT */
#include "src/log/argument.h"

#include "src/base/count.h"
#include "src/log/call.h"
#include "src/log/connection.h"
#include "src/log/structure.h"

#include <infiniband/verbs.h>
#include <stddef.h>
#include <string.h>
#include <verbena/verbs.h>

/* Adds argument number @index of the call; returns false if there is nothing to add. */
typedef bool write_fn(struct line *line, const struct layer_call *call, unsigned int index);

static const void *pointer(const struct layer_call *call, unsigned int index)
{
	return (const void *)(uintptr_t)call->arguments[index];
}

/* --- numbers --- */

static bool add_decimal(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_decimal(line, call->arguments[index]);
	return true;
}

static bool add_signed(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_signed(line, (int32_t)call->arguments[index]);
	return true;
}

static bool add_hex(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_hex(line, call->arguments[index]);
	return true;
}

static bool add_be16(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_hex(line, be16toh((uint16_t)call->arguments[index]));
	return true;
}

static bool add_access(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_bits(line, bits_access, (uint32_t)call->arguments[index]);
	return true;
}

static bool add_qp_mask(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_bits(line, bits_qp_attr, (uint32_t)call->arguments[index]);
	return true;
}

static bool add_srq_mask(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_bits(line, bits_srq_attr, (uint32_t)call->arguments[index]);
	return true;
}

static bool add_rereg_flags(struct line *line, const struct layer_call *call, unsigned int index)
{
	line_bits(line, bits_rereg, (uint32_t)call->arguments[index]);
	return true;
}

static bool add_opcode(struct line *line, const struct layer_call *call, unsigned int index)
{
	const uint64_t opcode = call->arguments[index];

	line_name(line, vb_wr_opcode_str((enum ibv_wr_opcode)opcode), opcode);
	return true;
}

/* --- what a verb has filled in --- */

/* Returns NULL if the verb has failed, or if the program does not want the answer. */
static const void *answer(const struct layer_call *call, unsigned int index)
{
	return call->err ? NULL : pointer(call, index);
}

static bool add_answered_int(struct line *line, const struct layer_call *call, unsigned int index)
{
	const int *number = answer(call, index);

	if (number)
		line_signed(line, *number);
	return number;
}

static bool add_answered_u32(struct line *line, const struct layer_call *call, unsigned int index)
{
	const uint32_t *number = answer(call, index);

	if (number)
		line_hex(line, *number);
	return number;
}

static bool add_answered_be16(struct line *line, const struct layer_call *call, unsigned int index)
{
	const uint16_t *number = answer(call, index);

	if (number)
		line_hex(line, be16toh(*number));
	return number;
}

static bool add_answered_gid(struct line *line, const struct layer_call *call, unsigned int index)
{
	const union ibv_gid *gid = answer(call, index);

	if (gid)
		line_gid(line, gid->raw);
	return gid;
}

static bool add_answered_cq(struct line *line, const struct layer_call *call, unsigned int index)
{
	struct ibv_cq *const *cq = answer(call, index);

	if (cq)
		structure_add_object(line, *cq);
	return cq;
}

static bool add_answered(struct line *line, const struct layer_call *call, unsigned int index,
			 const struct member *members)
{
	const void *structure = answer(call, index);

	if (structure)
		structure_add(line, members, structure, UINT64_MAX);
	return structure;
}

/* --- structures --- */

static bool add_structure(struct line *line, const struct layer_call *call, unsigned int index,
			  const struct member *members, uint64_t mask)
{
	const void *structure = pointer(call, index);

	if (structure)
		structure_add(line, members, structure, mask);
	else
		line_plain(line, "null");
	return true;
}

/* modify_qp(qp, attr, attr_mask) and query_qp(qp, attr, attr_mask, init_attr) */
static bool add_qp_attr(struct line *line, const struct layer_call *call, unsigned int index)
{
	if (call->verb == LAYER_query_qp && call->err)
		return false;
	return add_structure(line, call, index, structure_qp_attr,
			     (uint32_t)call->arguments[index + 1]);
}

static bool add_qp_init(struct line *line, const struct layer_call *call, unsigned int index)
{
	if (call->verb == LAYER_query_qp && !answer(call, index))
		return false;
	return add_structure(line, call, index, structure_qp_init, 0);
}

/* modify_srq(srq, srq_attr, srq_attr_mask) and query_srq(srq, srq_attr) */
static bool add_srq_attr(struct line *line, const struct layer_call *call, unsigned int index)
{
	if (call->verb == LAYER_query_srq)
		return add_answered(line, call, index, structure_srq_attr);
	return add_structure(line, call, index, structure_srq_attr,
			     (uint32_t)call->arguments[index + 1]);
}

static bool add_ece(struct line *line, const struct layer_call *call, unsigned int index)
{
	if (call->verb == LAYER_query_ece || call->verb == LAYER_cm_get_remote_ece)
		return add_answered(line, call, index, structure_ece);
	return add_structure(line, call, index, structure_ece, 0);
}

/* create_ah(pd, attr); init_ah_from_wc() fills the structure in. */
static bool add_ah_attr(struct line *line, const struct layer_call *call, unsigned int index)
{
	const struct ibv_ah_attr *attr = pointer(call, index);

	if (call->verb == LAYER_init_ah_from_wc && call->err)
		return false;
	return add_structure(line, call, index, structure_ah_attr, attr && attr->is_global);
}

static bool add_wc(struct line *line, const struct layer_call *call, unsigned int index)
{
	if (call->verb == LAYER_poll_cq)
		return false;
	return add_structure(line, call, index, structure_wc, 0);
}

static bool add_gid(struct line *line, const struct layer_call *call, unsigned int index)
{
	const union ibv_gid *gid = pointer(call, index);

	if (gid)
		line_gid(line, gid->raw);
	else
		line_plain(line, "null");
	return true;
}

/* --- work requests --- */

static int type_of(const struct layer_call *call)
{
	struct layer_object found;
	const struct ibv_qp *qp = pointer(call, 0);

	/* Only an object that is known may be read. */
	return layer_object_find(qp, &found) ? (int)qp->qp_type : -1;
}

/* The last parameter of post_send and its kin is where the first request goes that is not posted. */
static const void *bad_request(const struct layer_call *call, unsigned int index)
{
	const unsigned int last = layer_verb_info(call->verb)->parameter_count - 1;
	const void *const *bad = pointer(call, last);

	return call->err && index < last && bad ? *bad : NULL;
}

static bool add_sends(struct line *line, const struct layer_call *call, unsigned int index)
{
	structure_add_sends(line, pointer(call, index), bad_request(call, index), type_of(call));
	return true;
}

static bool add_recvs(struct line *line, const struct layer_call *call, unsigned int index)
{
	structure_add_recvs(line, pointer(call, index), bad_request(call, index));
	return true;
}

static bool add_bad_send(struct line *line, const struct layer_call *call, unsigned int index)
{
	struct ibv_send_wr *const *bad = pointer(call, index);

	if (call->err && bad && *bad)
		line_hex(line, (*bad)->wr_id);
	return call->err && bad && *bad;
}

static bool add_bad_recv(struct line *line, const struct layer_call *call, unsigned int index)
{
	struct ibv_recv_wr *const *bad = pointer(call, index);

	if (call->err && bad && *bad)
		line_hex(line, (*bad)->wr_id);
	return call->err && bad && *bad;
}

/* --- events and devices --- */

static void add_element(struct line *line, const struct ibv_async_event *event)
{
	switch (event->event_type) {
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		line_key(line, "port_num");
		line_signed(line, event->element.port_num);
		break;
	default:
		line_key(line, "element");
		structure_add_object(line, event->element.qp);
		break;
	}
}

/* get_async_event() fills the structure in, ack_async_event() gets it. */
static bool add_async_event(struct line *line, const struct layer_call *call, unsigned int index)
{
	const struct ibv_async_event *event = answer(call, index);

	if (!event)
		return false;
	line_plain(line, "{");
	line_key(line, "event_type");
	line_name(line, vb_event_type_name(event->event_type), event->event_type);
	add_element(line, event);
	line_plain(line, "}");
	return true;
}

static bool add_device(struct line *line, const struct layer_call *call, unsigned int index)
{
	const char *name = call_device(call);

	if (name)
		line_text(line, name);
	else
		line_hex(line, call->arguments[index]);
	return true;
}

static bool add_object(struct line *line, const struct layer_call *call, unsigned int index)
{
	structure_add_object(line, pointer(call, index));
	return true;
}

/* --- the connection manager --- */

static bool add_answered_id(struct line *line, const struct layer_call *call, unsigned int index)
{
	struct rdma_cm_id *const *id = answer(call, index);

	if (id)
		structure_add_object(line, *id);
	return id;
}

/* init_qp_attr(id, qp_attr, qp_attr_mask) */
static bool add_answered_qp_attr(struct line *line, const struct layer_call *call,
				 unsigned int index)
{
	const int *mask = answer(call, index + 1);

	return mask && add_structure(line, call, index, structure_qp_attr, (uint32_t)*mask);
}

static bool add_address(struct line *line, const struct layer_call *call, unsigned int index)
{
	connection_add_address(line, pointer(call, index));
	return true;
}

static bool add_join(struct line *line, const struct layer_call *call, unsigned int index)
{
	const struct rdma_cm_join_mc_attr_ex *join = pointer(call, index);

	if (!join || !(join->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS))
		return false;
	connection_add_address(line, join->addr);
	return true;
}

static bool add_port_space(struct line *line, const struct layer_call *call, unsigned int index)
{
	const uint64_t space = call->arguments[index];

	line_name(line, connection_port_space(space), space);
	return true;
}

static bool add_event_type(struct line *line, const struct layer_call *call, unsigned int index)
{
	const uint64_t event = call->arguments[index];

	line_name(line, vb_event_type_name((enum ibv_event_type)event), event);
	return true;
}

static bool add_text(struct line *line, const struct layer_call *call, unsigned int index)
{
	const char *text = pointer(call, index);

	if (text)
		line_text(line, text);
	return text;
}

/* Of no interest, such as the size of a structure, or memory that the verb fills in. */
static bool add_nothing(struct line *line, const struct layer_call *call, unsigned int index)
{
	return false;
}

/* --- how the arguments of each type are written --- */

/* The first row that fits decides. */
static const struct row {
	const char *type, *name; /* NULL fits any */
	write_fn *write;	 /* NULL: the argument points to a structure with these members */
	const struct member *members;
	bool answered; /* the verb fills the structure in */
	/* The bits of a uint32_t of the structure say which members are valid. */
	struct {
		bool given;
		size_t offset;
	} mask;
} rows[] = {
	{"struct sockaddr *", NULL, add_address},
	{"struct rdma_cm_id **", NULL, add_answered_id},
	{"struct rdma_conn_param *", NULL, NULL, connection_param},
	{"struct rdma_cm_join_mc_attr_ex *", NULL, add_join},
	{"struct ibv_qp_attr *", "qp_attr", add_answered_qp_attr},
	{"enum rdma_port_space", NULL, add_port_space},
	{"enum ibv_event_type", NULL, add_event_type},
	{"const char *", "node", add_text},
	{"const char *", "service", add_text},
	{"void *", "context", add_nothing},
	{"void *", "optval", add_nothing},
	{"struct ibv_context *", NULL, add_device},
	{"struct ibv_device *", NULL, add_device},
	{"int *", "num_devices", add_answered_int},
	{NULL, "access", add_access},
	{"int", "attr_mask", add_qp_mask},
	{"int", "srq_attr_mask", add_srq_mask},
	{"int", "flags", add_rereg_flags},
	{"struct ibv_send_wr *", NULL, add_sends},
	{"struct ibv_recv_wr *", NULL, add_recvs},
	{"struct ibv_send_wr **", NULL, add_bad_send},
	{"struct ibv_recv_wr **", NULL, add_bad_recv},
	{"struct ibv_qp_attr *", NULL, add_qp_attr},
	{"struct ibv_qp_init_attr *", NULL, add_qp_init},
	{"struct ibv_qp_init_attr_ex *", NULL, NULL, structure_qp_init_ex,
	 .mask = {true, offsetof(struct ibv_qp_init_attr_ex, comp_mask)}},
	{"struct ibv_qp_open_attr *", NULL, NULL, structure_qp_open,
	 .mask = {true, offsetof(struct ibv_qp_open_attr, comp_mask)}},
	{"struct ibv_qp_rate_limit_attr *", NULL, NULL, structure_rate_limit},
	{"struct ibv_srq_attr *", NULL, add_srq_attr},
	{"struct ibv_srq_init_attr *", NULL, NULL, structure_srq_init},
	{"struct ibv_srq_init_attr_ex *", NULL, NULL, structure_srq_init_ex,
	 .mask = {true, offsetof(struct ibv_srq_init_attr_ex, comp_mask)}},
	{"struct ibv_cq_init_attr_ex *", NULL, NULL, structure_cq_init_ex,
	 .mask = {true, offsetof(struct ibv_cq_init_attr_ex, comp_mask)}},
	{"struct ibv_modify_cq_attr *", NULL, NULL, structure_modify_cq,
	 .mask = {true, offsetof(struct ibv_modify_cq_attr, attr_mask)}},
	{"struct ibv_xrcd_init_attr *", NULL, NULL, structure_xrcd_init,
	 .mask = {true, offsetof(struct ibv_xrcd_init_attr, comp_mask)}},
	{"struct ibv_parent_domain_init_attr *", NULL, NULL, structure_parent_domain},
	{"struct ibv_alloc_dm_attr *", NULL, NULL, structure_alloc_dm},
	{"struct ibv_mw_bind *", NULL, NULL, structure_mw_bind},
	{"struct ibv_ece *", NULL, add_ece},
	{"struct ibv_ah_attr *", NULL, add_ah_attr},
	{"struct ibv_wc *", NULL, add_wc},
	{"struct ibv_async_event *", NULL, add_async_event},
	{"struct ibv_device_attr *", NULL, NULL, structure_device_attr, .answered = true},
	/* It begins with a struct ibv_device_attr. */
	{"struct ibv_device_attr_ex *", NULL, NULL, structure_device_attr, .answered = true},
	{"struct ibv_port_attr *", NULL, NULL, structure_port_attr, .answered = true},
	{"struct ibv_gid_entry *", "entry", NULL, structure_gid_entry, .answered = true},
	{"const union ibv_gid *", NULL, add_gid},
	{"union ibv_gid *", NULL, add_answered_gid},
	{"struct ibv_cq **", NULL, add_answered_cq},
	{"__be16 *", NULL, add_answered_be16},
	{"uint32_t *", NULL, add_answered_u32},
	{"__be16", NULL, add_be16},
	{"enum ibv_wr_opcode", NULL, add_opcode},
	{NULL, "entry_size", add_nothing},
	{NULL, "attr_size", add_nothing},
	{NULL, "port_attr_size", add_nothing},
	{"const struct ibv_query_device_ex_input *", NULL, add_nothing},
	{"uint64_t", "iova", add_hex},
	{"void *", NULL, add_hex},
	{"int", NULL, add_signed},
	{"uint8_t", NULL, add_decimal},
	{"uint16_t", NULL, add_decimal},
	{"uint32_t", NULL, add_decimal},
	{"uint64_t", NULL, add_decimal},
	{"unsigned int", NULL, add_decimal},
	{"size_t", NULL, add_decimal},
	{"enum ibv_mw_type", NULL, add_decimal},
	{"enum ibv_advise_mr_advice", NULL, add_decimal},
	{"struct ibv_pd *", NULL, add_object},
	{"struct ibv_td *", NULL, add_object},
	{"struct ibv_xrcd *", NULL, add_object},
	{"struct ibv_mr *", NULL, add_object},
	{"struct ibv_mw *", NULL, add_object},
	{"struct ibv_dm *", NULL, add_object},
	{"struct ibv_comp_channel *", NULL, add_object},
	{"struct ibv_cq *", NULL, add_object},
	{"struct ibv_cq_ex *", NULL, add_object},
	{"struct ibv_srq *", NULL, add_object},
	{"struct ibv_qp *", NULL, add_object},
	{"struct ibv_qp_ex *", NULL, add_object},
	{"struct ibv_ah *", NULL, add_object},
	{"struct ibv_wq *", NULL, add_object},
	{"struct ibv_rwq_ind_table *", NULL, add_object},
	{"struct ibv_flow *", NULL, add_object},
	{"struct ibv_flow_action *", NULL, add_object},
	{"struct ibv_counters *", NULL, add_object},
	{"struct rdma_cm_id *", NULL, add_object},
	{"struct rdma_event_channel *", NULL, add_object},
};

static const struct row nothing = {.write = add_nothing};

static const struct row *rows_of[LAYER_VERBS][LAYER_ARGUMENTS_MAX]; /* of each verb's parameters */

static const struct row *find_row(const struct layer_parameter *parameter)
{
	for (size_t i = 0; i < COUNT(rows); i++)
		if ((!rows[i].type || strcmp(rows[i].type, parameter->type) == 0) &&
		    (!rows[i].name || strcmp(rows[i].name, parameter->name) == 0))
			return &rows[i];
	return &nothing;
}

static bool add_argument(struct line *line, const struct layer_call *call, unsigned int index)
{
	const struct row *row = rows_of[call->verb][index];
	const char *structure = pointer(call, index);
	uint32_t mask = 0;

	if (row->write)
		return row->write(line, call, index);
	if (row->answered)
		return add_answered(line, call, index, row->members);
	if (structure && row->mask.given)
		memcpy(&mask, structure + row->mask.offset, sizeof(mask));
	return add_structure(line, call, index, row->members, mask);
}

void argument_prepare(void)
{
	for (unsigned int verb = 0; verb < LAYER_VERBS; verb++) {
		const struct layer_verb_info *info = layer_verb_info((enum layer_verb)verb);

		for (unsigned int i = 0; i < info->parameter_count; i++)
			rows_of[verb][i] = find_row(&info->parameters[i]);
	}
}

bool argument_all(struct line *line, const void *arg)
{
	const struct layer_call *call = arg;
	const struct layer_verb_info *info = layer_verb_info(call->verb);

	if (!info->parameter_count)
		return false;
	line_plain(line, "{");
	for (unsigned int i = 0; i < info->parameter_count; i++) {
		char *before = line->at;

		line_key(line, info->parameters[i].name);
		if (!add_argument(line, call, i))
			line->at = before;
	}
	line_plain(line, "}");
	return true;
}
