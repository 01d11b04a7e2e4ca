/* SPDX-License-Identifier: MIT */
/* Options of an identifier (rdma_set_option(3)), and enhanced connection establishment. */
#include "backends/sim/cm/private.h"

#include <infiniband/sa.h>
#include <stdio.h>
#include <string.h>

#define SET "set_option"

static int refuse_value(uint64_t value, uint64_t limit, const char *name)
{
	return refuse_why(SET,
			  (struct vb_why){VB_WHY_CM_OPTION_VALUE, {value, limit}, .text = name});
}

static int refuse_late(const struct cm_id *id, const char *name)
{
	char text[64];

	snprintf(text, sizeof(text), "%s in the state %s", name, cm_state_name(id->state));
	return refuse_name(SET, VB_WHY_CM_OPTION_LATE, text);
}

static int set_tos(struct cm_id *id, const void *value, size_t size_bytes)
{
	memcpy(&id->tos, value, sizeof(id->tos));
	id->tos_set = true;
	return 0;
}

static int read_int(const void *value)
{
	int number;

	memcpy(&number, value, sizeof(number));
	return number;
}

static int set_reuse(struct cm_id *id, const void *value, size_t size_bytes)
{
	const bool on = read_int(value);

	if (on ? id->state == CM_LISTEN : id->state != CM_IDLE)
		return refuse_late(id, "RDMA_OPTION_ID_REUSEADDR");
	id->reuse = on;
	return 0;
}

static int set_afonly(struct cm_id *id, const void *value, size_t size_bytes)
{
	if (id->state != CM_IDLE && id->state != CM_ADDR_BOUND)
		return refuse_late(id, "RDMA_OPTION_ID_AFONLY");
	id->afonly = read_int(value);
	id->afonly_set = true;
	return 0;
}

/* Linux cma.c, rdma_set_ack_timeout: only the requester of a reliable connection has an ack timeout, which
 * has five bits in a QP. */
static int set_ack_timeout(struct cm_id *id, const void *value, size_t size_bytes)
{
	const uint8_t timeout = *(const uint8_t *)value;

	if (id->rdma.qp_type != IBV_QPT_RC && id->rdma.qp_type != IBV_QPT_XRC_SEND)
		return refuse_name(SET, VB_WHY_CM_OPTION_TYPE, "RDMA_OPTION_ID_ACK_TIMEOUT");
	if (timeout > 31)
		return refuse_value(timeout, 31, "RDMA_OPTION_ID_ACK_TIMEOUT");
	id->ack_timeout = timeout;
	id->ack_timeout_set = true;
	return 0;
}

/* Sets the route that the program gives: Linux ucma.c, ucma_set_ib_path. Raises the event of a resolved
 * route. Takes the first record whose flags say that it is primary. */
static int set_path(struct cm_id *id, const void *value, size_t size_bytes)
{
	const size_t count = size_bytes / sizeof(struct ibv_path_data);
	const uint32_t wanted =
		IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	struct ibv_path_data path;
	size_t i = 0;

	if (!count || size_bytes % sizeof(path))
		return refuse_why(SET, (struct vb_why){VB_WHY_CM_OPTION_LENGTH,
						       {size_bytes, sizeof(path)},
						       .text = "RDMA_OPTION_IB_PATH"});
	do {
		if (i == count)
			return refuse_plainly(SET, VB_WHY_CM_OPTION_PATH);
		memcpy(&path, (const struct ibv_path_data *)value + i++, sizeof(path));
	} while ((path.flags & wanted) != wanted);
	if (id->state != CM_ADDR_RESOLVED)
		return refuse_late(id, "RDMA_OPTION_IB_PATH");
	id->path.attr.sl = (uint8_t)(be16toh(path.path.qosclass_sl) & 0xf);
	id->path.packet_life_time = path.path.packetlifetime & 0x3f;
	id->routed = true;
	id->state = CM_ROUTE_RESOLVED;
	cm_event_tell(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

static const struct option {
	int level, number;
	size_t size_bytes; /* 0: the function checks the length */
	const char *name;
	int (*set)(struct cm_id *id, const void *value, size_t size_bytes);
} options[] = {
	{RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, sizeof(uint8_t), "RDMA_OPTION_ID_TOS", set_tos},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, sizeof(int), "RDMA_OPTION_ID_REUSEADDR",
	 set_reuse},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, sizeof(int), "RDMA_OPTION_ID_AFONLY", set_afonly},
	{RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, sizeof(uint8_t), "RDMA_OPTION_ID_ACK_TIMEOUT",
	 set_ack_timeout},
	{RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, 0, "RDMA_OPTION_IB_PATH", set_path},
};

static const struct option *find_option(int level, int number)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].level == level && options[i].number == number)
			return &options[i];
	return NULL;
}

/* Returns ENOSYS for an unknown option: Linux ucma.c, ucma_set_option_level. */
static int set_held(struct cm_id *id, int level, int number, const void *value, size_t size_bytes)
{
	HOLD hold = world_hold(id->cm->world);
	const struct option *option = find_option(level, number);
	int err = cm_check_state(id, SET);

	if (err)
		return err;
	if (!option)
		return refuse_why(SET, (struct vb_why){VB_WHY_CM_OPTION,
						       {(uint64_t)level, (uint64_t)number}});
	if (!value || (option->size_bytes && size_bytes != option->size_bytes))
		return refuse_why(SET, (struct vb_why){VB_WHY_CM_OPTION_LENGTH,
						       {value ? size_bytes : 0, option->size_bytes},
						       .text = option->name});
	return option->set(id, value, size_bytes);
}

int cm_set_option(struct rdma_cm_id *id, int level, int number, void *value, size_t size_bytes)
{
	int err = set_held(cm_id_of(id), level, number, value, size_bytes);

	return err ? minus_errno(err) : 0;
}

/* --- ECE: rdma_set_local_ece(3), rdma_get_remote_ece(3) --- */

/* Refuses ECE for an identifier's own QP: it is for QPs that the program has made. */
static int check_ece(const struct rdma_cm_id *id, const struct ibv_ece *ece, const char *call)
{
	if (id->qp)
		return refuse_plainly(call, VB_WHY_CM_ECE_QP);
	return ece ? 0 : refuse_plainly(call, VB_WHY_CM_ECE_NULL);
}

int cm_set_local_ece(struct rdma_cm_id *rdma, struct ibv_ece *ece)
{
	struct cm_id *id = cm_id_of(rdma);
	HOLD hold = world_hold(id->cm->world);
	int err = check_ece(rdma, ece, "set_local_ece");

	if (err)
		return minus_errno(err);
	id->local_ece.vendor_id = ece->vendor_id;
	id->local_ece.options = ece->options;
	return 0;
}

int cm_get_remote_ece(struct rdma_cm_id *rdma, struct ibv_ece *ece)
{
	const struct cm_id *id = cm_id_of(rdma);
	HOLD hold = world_hold(id->cm->world);
	int err = check_ece(rdma, ece, "get_remote_ece");

	if (err)
		return minus_errno(err);
	ece->vendor_id = id->remote_ece.vendor_id;
	ece->options = id->remote_ece.options;
	ece->comp_mask = 0;
	return 0;
}
