/* SPDX-License-Identifier: MIT */
/*
 * The settings of a QP: one table of names, ranges and defaults.
 */
#include "src/connect/config.h"

#include "src/connect/object.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#define PSN_MAX 0xffffff
#define ACCESS_ALL                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* An ack timeout is 4.096 us * 2^value: man ibv_modify_qp(3). */
#define ACK_UNIT_NS 4096
#define ACK_MAX	    31u

static const struct setting {
	const char *name;
	size_t offset;
	uint32_t min, max, initial;
} settings[VB_QP_SETTINGS] = {
#define FIELD(field) #field, offsetof(struct vb_qp_config, field)
	[VB_QP_TYPE] = {FIELD(type), IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_RC},
	[VB_QP_ACCESS] = {FIELD(access), 0, ACCESS_ALL, IBV_ACCESS_LOCAL_WRITE},
	[VB_QP_MAX_SEND_WR] = {FIELD(max_send_wr), 0, 1 << 20, 16},
	[VB_QP_MAX_RECV_WR] = {FIELD(max_recv_wr), 0, 1 << 20, 16},
	[VB_QP_MAX_SEND_SGE] = {FIELD(max_send_sge), 0, 256, 16},
	[VB_QP_MAX_RECV_SGE] = {FIELD(max_recv_sge), 0, 256, 16},
	[VB_QP_MAX_INLINE_DATA] = {FIELD(max_inline_data), 0, 65536, 0},
	[VB_QP_MIN_RNR_TIMER] = {FIELD(min_rnr_timer), 0, VB_RNR_491_52_MS, VB_RNR_2_56_MS},
	[VB_QP_TIMEOUT] = {FIELD(timeout), 0, ACK_MAX, 4},
	[VB_QP_RETRY_CNT] = {FIELD(retry_cnt), 0, 7, 6},
	[VB_QP_RNR_RETRY] = {FIELD(rnr_retry), 0, VB_RNR_RETRY_INFINITE, 6},
	[VB_QP_PATH_MTU] = {FIELD(path_mtu), 0, IBV_MTU_4096, VB_MTU_OF_PORT},
	[VB_QP_SQ_PSN] = {FIELD(sq_psn), 0, PSN_MAX, 0},
	[VB_QP_RQ_PSN] = {FIELD(rq_psn), 0, VB_PSN_OF_PEER, VB_PSN_OF_PEER},
	[VB_QP_MAX_RD_ATOMIC] = {FIELD(max_rd_atomic), 0, 255, 1},
	[VB_QP_MAX_DEST_RD_ATOMIC] = {FIELD(max_dest_rd_atomic), 0, 255, 1},
	[VB_QP_PORT_NUM] = {FIELD(port_num), 0, 255, VB_PORT_OF_DEVICE},
	[VB_QP_GID_INDEX] = {FIELD(gid_index), 0, VB_GID_INDEX_OF_DEVICE, VB_GID_INDEX_OF_DEVICE},
	[VB_QP_PKEY_INDEX] = {FIELD(pkey_index), 0, VB_PKEY_INDEX_DEFAULT, VB_PKEY_INDEX_DEFAULT},
	[VB_QP_SERVICE_LEVEL] = {FIELD(service_level), 0, 15, 0},
	[VB_QP_TRAFFIC_CLASS] = {FIELD(traffic_class), 0, 255, 0},
	[VB_QP_HOP_LIMIT] = {FIELD(hop_limit), 0, 255, 255},
	[VB_QP_QKEY] = {FIELD(qkey), 0, 0x7fffffff, 0x11111111},
#undef FIELD
};

#define RNR_TIMERS	 32u
#define RNR_TIMER_MAX_NS 655360000ull

static uint32_t *field_of(struct vb_qp_config *config, const struct setting *setting)
{
	return (uint32_t *)((char *)config + setting->offset);
}

static int refuse_value(const struct setting *setting, uint64_t value)
{
	return fail(ERANGE, "qp_config: %s %" PRIu64 " is not in %u..%u", setting->name, value,
		    setting->min, setting->max);
}

void vb_qp_config_init(struct vb_qp_config *config)
{
	*config = (struct vb_qp_config){0};
	for (size_t i = 0; i < COUNT(settings); i++)
		*field_of(config, &settings[i]) = settings[i].initial;
}

int vb_qp_config_set(struct vb_qp_config *config, enum vb_qp_setting which, uint64_t value)
{
	if ((size_t)which >= COUNT(settings))
		return fail(EINVAL, "qp_config: there is no setting %d", (int)which);
	if (value < settings[which].min || value > settings[which].max)
		return refuse_value(&settings[which], value);
	*field_of(config, &settings[which]) = (uint32_t)value;
	return 0;
}

int qp_config_check(const struct vb_qp_config *config)
{
	for (size_t i = 0; i < COUNT(settings); i++) {
		uint32_t value = *field_of((struct vb_qp_config *)config, &settings[i]);

		if (value < settings[i].min || value > settings[i].max)
			return refuse_value(&settings[i], value);
	}
	if (config->srq && config->type == IBV_QPT_UC)
		return fail(EINVAL, "qp_config: a UC QP cannot have an SRQ; set srq to NULL");
	return 0;
}

void vb_qp_config_allow_remote_rw(struct vb_qp_config *config)
{
	config->access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
}

const char *vb_qp_setting_name(enum vb_qp_setting setting)
{
	return (size_t)setting < COUNT(settings) ? settings[setting].name : NULL;
}

enum vb_qp_setting vb_qp_setting_named(const char *name)
{
	for (size_t i = 0; i < COUNT(settings); i++)
		if (strcmp(settings[i].name, name) == 0)
			return (enum vb_qp_setting)i;
	return VB_QP_SETTINGS;
}

/* --- durations --- */

/* man ibv_modify_qp(3), min_rnr_timer: even values last 10 us * 2^(value / 2), odd ones from 3 on
 * the mean of their neighbours. Value 0 is the longest timer and takes the place 32. */
int vb_rnr_timer_to_ns(unsigned int timer, uint64_t *duration_ns)
{
	unsigned int place = timer ? timer : RNR_TIMERS;

	if (timer >= RNR_TIMERS)
		return fail(EINVAL, "min_rnr_timer %u is not in 0..%u", timer, RNR_TIMERS - 1);
	if (place % 2 && place > 1)
		*duration_ns = 15000ull << (place - 1) / 2;
	else
		*duration_ns = 10000ull << place / 2;
	return 0;
}

int vb_rnr_timer_from_ns(uint64_t duration_ns, unsigned int *timer)
{
	uint64_t found_ns = 0;

	if (duration_ns > RNR_TIMER_MAX_NS)
		return fail(ERANGE, "min_rnr_timer: %" PRIu64 " ns is above %llu", duration_ns,
			    RNR_TIMER_MAX_NS);
	for (unsigned int i = 1; i <= RNR_TIMERS && (i == 1 || found_ns < duration_ns); i++) {
		*timer = i % RNR_TIMERS;
		vb_rnr_timer_to_ns(*timer, &found_ns);
	}
	return 0;
}

int vb_ack_timeout_to_ns(unsigned int timeout, uint64_t *duration_ns)
{
	if (timeout > ACK_MAX)
		return fail(EINVAL, "timeout %u is not in 0..%u", timeout, ACK_MAX);
	*duration_ns = timeout ? (uint64_t)ACK_UNIT_NS << timeout : VB_FOREVER;
	return 0;
}

int vb_ack_timeout_from_ns(uint64_t duration_ns, unsigned int *timeout)
{
	unsigned int found = 1;

	if (duration_ns == VB_FOREVER) {
		*timeout = 0;
		return 0;
	}
	while (found < ACK_MAX && ((uint64_t)ACK_UNIT_NS << found) < duration_ns)
		found++;
	if (((uint64_t)ACK_UNIT_NS << found) < duration_ns)
		return fail(ERANGE, "timeout: %" PRIu64 " ns is above %" PRIu64, duration_ns,
			    (uint64_t)ACK_UNIT_NS << ACK_MAX);
	*timeout = found;
	return 0;
}

int vb_qp_config_set_timeout_ns(struct vb_qp_config *config, uint64_t duration_ns)
{
	unsigned int timeout = 0;
	int err = vb_ack_timeout_from_ns(duration_ns, &timeout);

	if (!err)
		config->timeout = timeout;
	return err;
}

int vb_qp_config_set_min_rnr_timer_ns(struct vb_qp_config *config, uint64_t duration_ns)
{
	unsigned int timer = 0;
	int err = vb_rnr_timer_from_ns(duration_ns, &timer);

	if (!err)
		config->min_rnr_timer = timer;
	return err;
}
