/* SPDX-License-Identifier: MIT */
/*
 * limit-assumed. A verb has refused more than the device has, and the program has never queried the
 * device. The bytes of inline data are no limit that a device reports, so that programs have to try.
 */
#include "src/base/count.h"
#include "src/base/why.h"
#include "src/check/check.h"

#include <stdio.h>
#include <string.h>

#define DEVICES_MAX 64 /* that are remembered; with more of them the rule is silent */
#define NAME_BYTES  64
#define WHY_BYTES   256

static char queried[DEVICES_MAX][NAME_BYTES]; /* the devices that the program has queried */
static unsigned int queried_count;

static bool is_limit(const struct vb_why *why)
{
	static const struct {
		enum vb_reason reason;
		unsigned int asked, limit; /* indices of values */
	} rows[] = {
		{VB_WHY_QP_MAX_RD_ATOMIC, 1, 2}, {VB_WHY_QP_MAX_DEST_RD_ATOMIC, 1, 2},
		{VB_WHY_CQ_SIZE, 0, 1},		 {VB_WHY_SRQ_MAX_WR, 0, 1},
		{VB_WHY_SRQ_MAX_SGE, 0, 1},	 {VB_WHY_QP_CAP_SEND_WR, 0, 1},
		{VB_WHY_QP_CAP_RECV_WR, 0, 1},	 {VB_WHY_QP_CAP_SEND_SGE, 0, 1},
		{VB_WHY_QP_CAP_RECV_SGE, 0, 1},	 {VB_WHY_MR_TOO_LONG, 0, 1},
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].reason == why->reason)
			return why->values[rows[i].asked] > why->values[rows[i].limit];
	return why->reason == VB_WHY_DEVICE_LIMIT;
}

static bool is_queried(const char *device)
{
	for (unsigned int i = 0; i < queried_count; i++)
		if (!strncmp(queried[i], device, NAME_BYTES - 1))
			return true;
	return queried_count == DEVICES_MAX;
}

static void after_query(struct check_call *check)
{
	const char *device = check->call->device;

	if (!check->call->err && device && !is_queried(device))
		snprintf(queried[queried_count++], NAME_BYTES, "%s", device);
}

static void after_failure(struct check_call *check)
{
	const struct layer_call *call = check->call;
	char why[WHY_BYTES];

	if (!call->err || !call->why || !call->device || !is_limit(call->why) ||
	    is_queried(call->device))
		return;
	offence_report(VB_RULE_LIMIT,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = "asked", .spot = check->spot},
		       },
		       "%s: %s, and the program has not queried the device", call->device,
		       why_cause(call->why, why, sizeof(why)));
}

static void end(void)
{
	queried_count = 0;
}

static const struct check_hook hooks[] = {
	{LAYER_query_device, NULL, after_query},
	{LAYER_query_device_ex, NULL, after_query},
#define REFUSED(verb)                                                         \
	{                                                                     \
		LAYER_##verb, NULL, after_failure, .after_failure_only = true \
	}
	REFUSED(alloc_pd),
	REFUSED(create_cq),
	REFUSED(create_cq_ex),
	REFUSED(resize_cq),
	REFUSED(create_srq),
	REFUSED(create_srq_ex),
	REFUSED(create_qp),
	REFUSED(create_qp_ex),
	REFUSED(cm_create_qp),
	REFUSED(cm_create_qp_ex),
	REFUSED(modify_qp),
	REFUSED(create_ah),
	REFUSED(reg_mr),
	REFUSED(reg_mr_iova),
	REFUSED(reg_mr_iova2),
	REFUSED(alloc_mw),
#undef REFUSED
	{0},
};

const struct check_rule rule_limit = {.hooks = hooks, .end = end};
