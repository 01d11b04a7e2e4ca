/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/channel.h"

#include "src/connect/config.h"
#include "src/connect/object.h"

/* A QP in ERR flushes its works at once. After this time the QP is destroyed instead. */
#define FLUSH_NS 1000000000ull

/* --- making --- */

static int check_config(const struct vb_qp_config *config)
{
	if (config->type != IBV_QPT_RC && config->type != IBV_QPT_UC)
		return fail(EINVAL, "channel: its type cannot be %s; use RC or UC",
			    vb_qp_type_str((enum ibv_qp_type)config->type));
	if (config->srq)
		return fail(EINVAL, "channel: it cannot have an SRQ");
	if (!config->max_send_wr && !config->max_recv_wr)
		return fail(EINVAL, "channel: max_send_wr and max_recv_wr are both 0");
	return 0;
}

static int make_slots(struct vb_channel *channel, uint32_t count)
{
	uint32_t send = channel->max_send_sge, recv = channel->max_recv_sge;
	uint32_t most = send > recv ? send : recv;

	channel->slices = calloc((size_t)count * most + 1, sizeof(*channel->slices));
	channel->sges = calloc(most + 1, sizeof(*channel->sges));
	if (!channel->slices || !channel->sges ||
	    handle_table_resize(&channel->slots, count, sizeof(struct slot)))
		return fail(ENOMEM, "channel: no memory for %u works", count);
	for (uint32_t i = 0; i < count; i++) {
		slot_at(channel, i)->channel = channel;
		slot_at(channel, i)->slices = channel->slices + (size_t)i * most;
	}
	return 0;
}

static void free_memory(struct vb_channel *channel)
{
	free(channel->slots.rows);
	free(channel->slices);
	free(channel->sges);
}

static int make_qp(struct vb_channel *channel, const struct vb_qp_config *config)
{
	struct vb_group *group = channel->group;
	struct ibv_cq *cq = group->cq->cq;
	int err;

	err = group_reserve(group, channel->slots.count);
	if (err)
		return err;
	channel->prepared = vb_qp_prepare(group->device, group->pd, cq, cq, config);
	err = channel->prepared ? group_enter(group, channel) : errno;
	if (!err) {
		channel->endpoint = *vb_prepared_endpoint(channel->prepared);
		return 0;
	}
	vb_prepared_drop(channel->prepared);
	group_unreserve(group, channel->slots.count);
	return err;
}

struct vb_channel *vb_channel_prepare(struct vb_group *group, const struct vb_qp_config *config)
{
	struct vb_channel *channel = object_new(sizeof(*channel), "channel");
	struct vb_qp_config defaults;
	int err;

	if (!channel)
		return NULL;
	vb_qp_config_init(&defaults);
	if (!config)
		config = &defaults;
	channel->group = group;
	channel->max_send_sge = config->max_send_sge;
	channel->max_recv_sge = config->max_recv_sge;
	channel->max_inline_bytes = config->max_inline_data;
	err = check_config(config);
	if (!err)
		err = qp_config_check(config);
	if (!err)
		err = make_slots(channel, config->max_send_wr + config->max_recv_wr);
	if (!err)
		err = make_qp(channel, config);
	if (!err)
		return channel;
	free_memory(channel);
	return object_drop(channel, err);
}

const struct vb_endpoint *vb_channel_endpoint(const struct vb_channel *channel)
{
	return &channel->endpoint;
}

struct ibv_qp *vb_channel_qp(const struct vb_channel *channel)
{
	return channel->prepared ? vb_prepared_qp(channel->prepared) : channel->qp;
}

int vb_channel_connect(struct vb_channel *channel, const struct vb_endpoint *remote)
{
	struct ibv_qp *qp;

	if (!channel->prepared)
		return fail(EISCONN, "channel: QP 0x%x has been connected before",
			    channel->endpoint.qpn);
	qp = vb_handshake(channel->prepared, remote);
	if (!qp)
		return errno;
	channel->prepared = NULL;
	channel->qp = qp;
	return 0;
}

int vb_channel_connect_pair(struct vb_channel *a, struct vb_channel *b)
{
	int err = vb_channel_connect(a, &b->endpoint);

	return err ? err : vb_channel_connect(b, &a->endpoint);
}

/* --- ending --- */

static bool is_idle(const void *arg)
{
	return ((const struct vb_channel *)arg)->pending == 0;
}

/* Takes the QP to ERR and waits until its works are flushed. The wait is short, and a thread that is
 * cancelled in it would leave half a channel. */
static int flush(struct vb_channel *channel)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int state, err;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	err = vb_modify_qp(channel->qp, &attr, IBV_QP_STATE);
	if (!err)
		err = group_wait(channel->group, is_idle, channel, FLUSH_NS);
	pthread_setcancelstate(state, NULL);
	return err;
}

void channel_break(struct vb_channel *channel)
{
	const struct ibv_wc flushed = {.status = IBV_WC_WR_FLUSH_ERR};

	channel->broken = true;
	if (!channel->qp || is_idle(channel) || !flush(channel))
		return;
	/* No work can access memory after its QP has been destroyed. */
	if (!vb_destroy_qp(channel->qp))
		channel->qp = NULL;
	for (uint32_t i = 0; i < channel->slots.count; i++)
		if (slot_at(channel, i)->posted)
			slot_complete(slot_at(channel, i), &flushed);
}

int vb_channel_close(struct vb_channel *channel)
{
	int err = 0;

	if (!channel)
		return 0;
	if (channel->scoped)
		return fail(EBUSY, "channel: QP 0x%x: a scope holds %u works of it",
			    channel->endpoint.qpn, channel->scoped);
	channel_break(channel);
	if (channel->prepared)
		err = vb_prepared_drop(channel->prepared);
	else if (channel->qp)
		err = vb_destroy_qp(channel->qp);
	if (err)
		fail_because(err, "channel: QP 0x%x", channel->endpoint.qpn);
	handle_disown(&channel->group->channels, channel->key);
	group_unreserve(channel->group, channel->slots.count);
	free_memory(channel);
	free(channel);
	return err;
}

int vb_channel_wait_idle(struct vb_channel *channel, uint64_t timeout_ns)
{
	return group_wait(channel->group, is_idle, channel, timeout_ns);
}

unsigned int vb_channel_pending(const struct vb_channel *channel)
{
	return channel->pending;
}

uint64_t vb_channel_failures(const struct vb_channel *channel)
{
	return channel->failures;
}
