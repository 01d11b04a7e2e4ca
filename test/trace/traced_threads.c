/* SPDX-License-Identifier: MIT */
/*
 * usage: traced_threads FILE
 * Two threads send over one simulated device and write one trace. check-sanitized builds this
 * program with ThreadSanitizer, and runs it on a library without.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <verbena/connect.h>
#include <verbena/error.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define MESSAGES   200
#define LENGTH	   64
#define TIMEOUT_NS 5000000000ull

static void *need(void *pointer)
{
	if (!pointer) {
		fprintf(stderr, "traced_threads: %s\n", vb_last_error());
		exit(1);
	}
	return pointer;
}

static void must(int err)
{
	if (err) {
		fprintf(stderr, "traced_threads: %s: %s\n", strerror(err), vb_last_error());
		exit(1);
	}
}

static void transfer(struct ibv_qp *from, struct ibv_qp *to, struct vb_region *region)
{
	uint64_t at = (uintptr_t)region->addr;
	struct ibv_sge out = {at, LENGTH, region->mr->lkey};
	struct ibv_sge in = {at + LENGTH, LENGTH, region->mr->lkey};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &in, .num_sge = 1};
	struct ibv_send_wr *bad_send, send = {.sg_list = &out,
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED};

	must(vb_post_recv(to, &recv, &bad_recv));
	must(vb_post_send(from, &send, &bad_send));
}

static void exchange(struct vb_device *device)
{
	struct ibv_pd *pd = need(vb_alloc_pd(device->context));
	struct vb_cq *cq = need(vb_cq_open(device, 16, NULL));
	struct vb_region *region = need(vb_region_alloc(device, pd, 2 * LENGTH, VB_ACCESS_DEFAULT));
	struct vb_prepared_qp *first = need(vb_qp_prepare(device, pd, cq->cq, cq->cq, NULL));
	struct vb_prepared_qp *second = need(vb_qp_prepare(device, pd, cq->cq, cq->cq, NULL));
	struct vb_endpoint of_first = *vb_prepared_endpoint(first);
	struct ibv_qp *from = need(vb_handshake(first, vb_prepared_endpoint(second)));
	struct ibv_qp *to = need(vb_handshake(second, &of_first));
	struct ibv_wc wc[2];

	for (unsigned int i = 0; i < MESSAGES; i++) {
		memset(region->addr, (int)i, LENGTH);
		transfer(from, to, region);
		for (int done = 0, now; done < 2; done += now) {
			now = vb_cq_wait(cq, wc, 2 - done, TIMEOUT_NS);
			must(now <= 0 ? ETIMEDOUT : wc[0].status ? EIO : 0);
		}
		must(memcmp(region->addr, (char *)region->addr + LENGTH, LENGTH) ? EBADMSG : 0);
	}
	must(vb_destroy_qp(from));
	must(vb_destroy_qp(to));
	must(vb_region_free(region));
	must(vb_cq_close(cq));
	must(vb_dealloc_pd(pd));
}

static pthread_barrier_t both;

static void *work(void *device)
{
	vb_sim_thread_enter(NULL);
	pthread_barrier_wait(&both);
	exchange(device);
	vb_sim_thread_leave(NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	struct vb_devices *devices = need(vb_devices_get("sim"));
	const struct vb_device_info *info = vb_devices_at(devices, 0);
	struct vb_device *device = need(vb_device_open(info->device, 0, VB_GID_INDEX_ANY));
	pthread_t threads[2];

	must(argc == 2 ? vb_sim_trace_open(NULL, argv[1]) : EINVAL);
	pthread_barrier_init(&both, NULL, 2);
	for (unsigned int i = 0; i < 2; i++)
		must(pthread_create(&threads[i], NULL, work, device));
	for (unsigned int i = 0; i < 2; i++)
		must(pthread_join(threads[i], NULL));
	must(vb_sim_trace_close(NULL));
	vb_devices_put(devices);
	must(vb_device_close(device));
	return 0;
}
