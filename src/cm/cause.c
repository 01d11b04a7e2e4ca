/* SPDX-License-Identifier: MIT */
#include "src/cm/cause.h"

#include "src/base/count.h"

/* Linux include/rdma/ib_cm.h, enum ib_cm_rej_reason; the words of drivers/infiniband/core/cm.c,
 * ibcm_rej_reason_strs. */
static const char *const rejections[] = {
	[1] = "no QP",
	[2] = "no EEC",
	[3] = "no resources",
	[4] = "timeout",
	[5] = "unsupported request",
	[6] = "invalid communication ID",
	[7] = "invalid communication instance",
	[8] = "invalid service ID",
	[9] = "invalid transport type",
	[10] = "stale connection",
	[11] = "RDC does not exist",
	[12] = "invalid GID",
	[13] = "invalid LID",
	[14] = "invalid SL",
	[15] = "invalid traffic class",
	[16] = "invalid hop limit",
	[17] = "invalid packet rate",
	[18] = "invalid alternate GID",
	[19] = "invalid alternate LID",
	[20] = "invalid alternate SL",
	[21] = "invalid alternate traffic class",
	[22] = "invalid alternate hop limit",
	[23] = "invalid alternate packet rate",
	[24] = "port and CM redirection",
	[25] = "port redirection",
	[26] = "invalid MTU",
	[27] = "insufficient responder resources",
	[28] = "consumer defined",
	[29] = "invalid RNR retry count",
	[30] = "duplicate local communication ID",
	[31] = "invalid class version",
	[32] = "invalid flow label",
	[33] = "invalid alternate flow label",
	[35] = "vendor option is not supported",
};

/* The reasons for which a remedy is known. */
static const struct {
	int status;
	enum vb_reason reason;
} known[] = {
	{8, VB_WHY_CM_EVENT_NO_SERVICE},
	{10, VB_WHY_CM_EVENT_STALE},
	{28, VB_WHY_CM_EVENT_CONSUMER},
};

static struct vb_why rejection(int status)
{
	const char *name = (size_t)status < COUNT(rejections) ? rejections[status] : NULL;

	for (size_t i = 0; i < COUNT(known); i++)
		if (known[i].status == status)
			return (struct vb_why){known[i].reason};
	return (struct vb_why){VB_WHY_CM_EVENT_REJECTED,
			       {(uint64_t)status},
			       .text = name ?: "a reason without a name"};
}

/* A negative status is an errno value: rdma_get_cm_event(3). */
static struct vb_why failure(enum vb_reason reason, int status)
{
	return (struct vb_why){reason, {(uint64_t)(status < 0 ? -status : status)}};
}

bool cause_of_event(const struct rdma_cm_event *event, struct vb_why *why)
{
	const int status = event->status;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		*why = failure(VB_WHY_CM_EVENT_ADDRESS, status);
		return true;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		*why = failure(VB_WHY_CM_EVENT_ROUTE, status);
		return true;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		*why = failure(VB_WHY_CM_EVENT_CONNECT, status);
		return true;
	case RDMA_CM_EVENT_UNREACHABLE:
		/* A positive status is that of a SIDR_REP: drivers/infiniband/core/cma.c,
		 * cma_sidr_rep_handler. */
		*why = failure(status > 0 ? VB_WHY_CM_EVENT_SIDR : VB_WHY_CM_EVENT_SILENT, status);
		return true;
	case RDMA_CM_EVENT_REJECTED:
		*why = rejection(status);
		return true;
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		*why = failure(VB_WHY_CM_EVENT_MULTICAST, status);
		return true;
	default:
		return false;
	}
}
