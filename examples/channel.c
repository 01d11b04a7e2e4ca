/* SPDX-License-Identifier: MIT */
/*
 * usage: channel [DEVICE]
 * Both ends of a channel on one device: a message, a write into the peer's region, a counter, and a
 * scope that ends after its works.
 */
#include "say.h"

#include <string.h>
#include <verbena/channel.h>

#define TIMEOUT_NS 5000000000ull
#define LENGTH	   4096
#define MESSAGES   8

static struct vb_group *group;
static struct vb_region *region;
static struct vb_channel *client, *server;

static void message(void)
{
	struct vb_slice from = {region, 0, 6}, into = {region, 64, 64};
	struct vb_work sent, received;
	struct vb_result result;

	strcpy(region->addr, "hello");
	must(vb_channel_receive(server, &into, &received));
	must(vb_channel_send(client, &from, &sent));
	must(vb_work_wait(received, TIMEOUT_NS, &result));
	must(vb_work_wait(sent, TIMEOUT_NS, NULL));
	printf("received %u bytes: %s\n", result.length_bytes, (char *)region->addr + 64);
	check(strcmp((char *)region->addr + 64, "hello") == 0, "the message arrived");
}

static void write_and_count(void)
{
	struct vb_slice from = {region, 0, 8}, old = {region, 256, 8};
	uint64_t *counter = (uint64_t *)((char *)region->addr + 512);
	struct vb_remote remote;
	struct vb_work work;

	must(vb_region_remote(region, 512, 8, &remote));
	*(uint64_t *)region->addr = 41;
	must(vb_channel_write(client, &from, &remote, &work));
	must(vb_work_wait(work, TIMEOUT_NS, NULL));
	must(vb_channel_fetch_add(client, &old, &remote, 1, &work));
	must(vb_work_wait(work, TIMEOUT_NS, NULL));
	printf("the counter was 41 and is %llu\n", (unsigned long long)*counter);
	check(*counter == 42, "the counter is 42");
}

static void many(void)
{
	struct vb_slice from = {region, 0, 64}, into = {region, 1024, 64};
	struct vb_scope scope;
	struct vb_request send = {
		.operation = VB_SEND, .slices = &from, .slice_count = 1, .scope = &scope};
	struct vb_request receive = {
		.operation = VB_RECEIVE, .slices = &into, .slice_count = 1, .scope = &scope};

	vb_scope_begin(&scope, group);
	for (int i = 0; i < MESSAGES; i++) {
		must(vb_channel_post(server, &receive, NULL));
		must(vb_channel_post(client, &send, NULL));
		into.offset_bytes += 64;
	}
	must(vb_scope_end(&scope, TIMEOUT_NS));
	printf("the scope waited for %d messages; %u works are pending\n", MESSAGES,
	       vb_group_pending(group));
}

int main(int argc, char **argv)
{
	struct vb_devices *devices = need(vb_devices_get(NULL));
	const char *name = argc > 1 ? argv[1] : vb_devices_at(devices, 0)->name;
	struct vb_device *device = need(vb_device_open_named(NULL, name, 0, VB_GID_INDEX_ANY));
	struct vb_qp_config config;

	vb_devices_put(devices);
	vb_qp_config_init(&config);
	vb_qp_config_allow_remote_rw(&config);
	config.access |= IBV_ACCESS_REMOTE_ATOMIC;
	must(vb_qp_config_set(&config, VB_QP_TIMEOUT, 14));
	group = need(vb_group_open(device, NULL));
	region = need(vb_group_alloc(group, LENGTH));
	client = need(vb_channel_prepare(group, &config));
	server = need(vb_channel_prepare(group, &config));
	must(vb_channel_connect_pair(client, server));
	message();
	write_and_count();
	many();
	must(vb_channel_close(client));
	must(vb_channel_close(server));
	must(vb_region_free(region));
	must(vb_group_close(group));
	must(vb_device_close(device));
}
