/* SPDX-License-Identifier: MIT */
/*
 * usage: barrier [DEVICE]
 * Eight nodes pass a barrier with each of the three algorithms. One thread drives all nodes on one
 * device in turns, so that on a virtual clock the order is always the same. Nodes in threads or
 * processes of their own would call vb_team_join() and vb_barrier_wait().
 */
#include "say.h"

#include <errno.h>
#include <verbena/channel.h>

#define NODES	   8
#define ROUNDS_MAX 10000000

static struct vb_group *groups[NODES];
static struct vb_team *teams[NODES];

static void join_all(struct vb_device *device)
{
	size_t card_bytes = vb_team_card_bytes(NODES);
	char *cards = need(malloc(card_bytes * NODES));
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	must(vb_qp_config_set(&config, VB_QP_TIMEOUT, 14));
	for (unsigned int i = 0; i < NODES; i++) {
		groups[i] = need(vb_group_open(device, NULL));
		teams[i] = need(vb_team_prepare(groups[i], i, NODES, &config));
		vb_team_card(teams[i], cards + i * card_bytes);
	}
	for (unsigned int i = 0; i < NODES; i++)
		must(vb_team_connect(teams[i], cards));
	free(cards);
}

/* Polls the nodes that have entered. Returns how many have left. */
static unsigned int look_after(unsigned int entered, int left[NODES])
{
	unsigned int out = 0;

	for (unsigned int i = 0; i < entered; i++) {
		int err = left[i] ? 0 : vb_barrier_poll(teams[i]);

		if (err != EAGAIN)
			must(err);
		left[i] = !err;
		out += !err;
	}
	return out;
}

static void meet(enum vb_barrier algorithm)
{
	int left[NODES] = {0};
	unsigned int out = 0;

	for (unsigned int i = 0; i < NODES; i++) {
		check(look_after(i, left) == 0, "no node leaves before all have entered");
		must(vb_barrier_enter(teams[i], algorithm));
	}
	for (int round = 0; round < ROUNDS_MAX && out < NODES; round++)
		out = look_after(NODES, left);
	check(out == NODES, "all nodes leave");
	printf("%s: %u nodes entered, then all left\n", vb_barrier_name(algorithm), out);
}

int main(int argc, char **argv)
{
	struct vb_devices *devices = need(vb_devices_get(NULL));
	const char *name = argc > 1 ? argv[1] : vb_devices_at(devices, 0)->name;
	struct vb_device *device = need(vb_device_open_named(NULL, name, 0, VB_GID_INDEX_ANY));

	vb_devices_put(devices);
	join_all(device);
	meet(VB_BARRIER_LINEAR);
	meet(VB_BARRIER_TREE);
	meet(VB_BARRIER_DISSEMINATION);
	for (unsigned int i = 0; i < NODES; i++) {
		must(vb_team_close(teams[i]));
		must(vb_group_close(groups[i]));
	}
	must(vb_device_close(device));
}
