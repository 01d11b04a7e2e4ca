/* SPDX-License-Identifier: MIT */
/*
 * usage: loopback [DEVICE]
 * Connects two queue pairs of one device to each other and sends a message. Other connections take
 * the same steps and one more: the two ends exchange their endpoints.
 */
#include "say.h"

#include <string.h>
#include <verbena/connect.h>

#define TIMEOUT_NS 5000000000ull
#define LENGTH	   64

enum { SENT = 1, RECEIVED = 2 };

static struct ibv_qp *connect_to(struct vb_prepared_qp *prepared, const struct vb_endpoint *remote)
{
	char text[VB_ENDPOINT_TEXT_MAX];

	printf("connect to %s\n", vb_endpoint_print(remote, text));
	return need(vb_handshake(prepared, remote));
}

static void transfer(struct ibv_qp *from, struct ibv_qp *to, struct vb_region *region)
{
	uint64_t at = (uintptr_t)region->addr;
	struct ibv_sge out = {at, LENGTH, region->mr->lkey};
	struct ibv_sge in = {at + LENGTH, LENGTH, region->mr->lkey};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = RECEIVED, .sg_list = &in, .num_sge = 1};
	struct ibv_send_wr *bad_send, send = {.wr_id = SENT,
					      .sg_list = &out,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};

	must(vb_post_recv(to, &recv, &bad_recv));
	must(vb_post_send(from, &send, &bad_send));
}

static void await_both(struct vb_cq *cq)
{
	struct ibv_wc wc[2];

	for (int done = 0, now; done < 2; done += now) {
		now = vb_cq_wait(cq, wc, 2 - done, TIMEOUT_NS);
		must(now < 0);
		for (int i = 0; i < now; i++) {
			printf("%s: %s\n", wc[i].wr_id == SENT ? "sent" : "received",
			       vb_wc_status_str(wc[i].status));
			check(wc[i].status == IBV_WC_SUCCESS, "the work request succeeded");
		}
	}
}

int main(int argc, char **argv)
{
	struct vb_devices *devices = need(vb_devices_get(NULL));
	const struct vb_device_info *info = need((
		void *)(argc > 1 ? vb_devices_named(devices, argv[1]) : vb_devices_at(devices, 0)));
	struct vb_device *device = need(vb_device_open(info->device, 0, VB_GID_INDEX_ANY));
	struct ibv_pd *pd = need(vb_alloc_pd(device->context));
	struct vb_cq *cq = need(vb_cq_open(device, 16, NULL));
	struct vb_region *region = need(vb_region_alloc(device, pd, 2 * LENGTH, VB_ACCESS_DEFAULT));
	struct vb_prepared_qp *first = need(vb_qp_prepare(device, pd, cq->cq, cq->cq, NULL));
	struct vb_prepared_qp *second = need(vb_qp_prepare(device, pd, cq->cq, cq->cq, NULL));
	struct vb_endpoint of_first = *vb_prepared_endpoint(first);
	struct ibv_qp *from = connect_to(first, vb_prepared_endpoint(second));
	struct ibv_qp *to = connect_to(second, &of_first);

	vb_devices_put(devices);
	strcpy(region->addr, "from one QP to the other");
	transfer(from, to, region);
	await_both(cq);
	printf("%s\n", (char *)region->addr + LENGTH);
	check(strcmp(region->addr, (char *)region->addr + LENGTH) == 0,
	      "the receiver has the bytes that were sent");
	must(vb_destroy_qp(from));
	must(vb_destroy_qp(to));
	must(vb_region_free(region));
	must(vb_cq_close(cq));
	must(vb_dealloc_pd(pd));
	must(vb_device_close(device));
}
