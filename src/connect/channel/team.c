/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/team.h"

#include "src/base/failure.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERSION 1

/* A card: this, then two encoded endpoints for each rank. */
struct card_head {
	uint8_t magic[3];
	uint8_t version;
	uint32_t rank;
	uint32_t size;
};

static const uint8_t card_magic[3] = {'V', 'B', 'T'};

/* --- making and ending --- */

static void drop_channels(struct vb_team *team)
{
	for (uint32_t i = 0; i < team->size; i++) {
		vb_channel_close(team->peers[i].channel);
		vb_channel_close(team->peers[i].barrier);
	}
}

static int make_channels(struct vb_team *team, const struct vb_qp_config *config)
{
	struct vb_qp_config small = *config;

	/* Messages without data, and nobody is in a hurry to give a peer up. */
	small.max_send_wr = BARRIER_SENDS;
	small.max_recv_wr = BARRIER_RECEIVES;
	small.max_send_sge = small.max_recv_sge = 1;
	small.max_inline_data = 0;
	small.rnr_retry = VB_RNR_RETRY_INFINITE;
	for (uint32_t i = 0; i < team->size; i++) {
		if (i == team->rank)
			continue;
		team->peers[i].channel = vb_channel_prepare(team->group, config);
		if (!team->peers[i].channel)
			return errno;
		team->peers[i].barrier = vb_channel_prepare(team->group, &small);
		if (!team->peers[i].barrier)
			return errno;
	}
	return 0;
}

static void free_memory(struct vb_team *team)
{
	free(team->peers);
	free(team->steps);
	free(team);
}

static struct vb_team *team_new(struct vb_group *group, uint32_t rank, uint32_t size)
{
	struct vb_team *team = calloc(1, sizeof(*team));

	if (team) {
		team->group = group;
		team->rank = rank;
		team->size = size;
		team->peers = calloc(size, sizeof(*team->peers));
		team->steps = calloc(barrier_steps_max(size), sizeof(*team->steps));
	}
	if (team && team->peers && team->steps)
		return team;
	if (team)
		free_memory(team);
	fail(ENOMEM, "team: no memory for %u nodes", size);
	return NULL;
}

struct vb_team *vb_team_prepare(struct vb_group *group, unsigned int rank, unsigned int size,
				const struct vb_qp_config *config)
{
	struct vb_qp_config defaults;
	struct vb_team *team;
	int err;

	if (!size || size > VB_TEAM_SIZE_MAX || rank >= size) {
		fail(EINVAL, "team: rank %u of %u; a size is 1 to %d, a rank less than it", rank,
		     size, VB_TEAM_SIZE_MAX);
		return NULL;
	}
	vb_qp_config_init(&defaults);
	team = team_new(group, rank, size);
	if (!team)
		return NULL;
	err = make_channels(team, config ? config : &defaults);
	if (!err)
		return team;
	drop_channels(team);
	free_memory(team);
	errno = err;
	return NULL;
}

int vb_team_close(struct vb_team *team)
{
	if (!team)
		return 0;
	for (uint32_t i = 0; i < team->size; i++) {
		struct vb_channel *channel = team->peers[i].channel;
		int err = vb_channel_close(channel);

		/* Held by a scope: what is left stays. */
		if (err == EBUSY)
			return err;
		team->peers[i].channel = NULL;
	}
	drop_channels(team);
	free_memory(team);
	return 0;
}

unsigned int vb_team_rank(const struct vb_team *team)
{
	return team->rank;
}

unsigned int vb_team_size(const struct vb_team *team)
{
	return team->size;
}

struct vb_channel *vb_team_channel(const struct vb_team *team, unsigned int rank)
{
	return rank < team->size ? team->peers[rank].channel : NULL;
}

/* --- cards --- */

size_t vb_team_card_bytes(unsigned int size)
{
	return sizeof(struct card_head) + (size_t)size * 2 * VB_ENDPOINT_BYTES;
}

/* Where the endpoints for a rank stand in a card. */
static size_t place_of(uint32_t rank)
{
	return sizeof(struct card_head) + (size_t)rank * 2 * VB_ENDPOINT_BYTES;
}

void vb_team_card(const struct vb_team *team, void *card)
{
	struct card_head head = {
		.version = VERSION, .rank = htobe32(team->rank), .size = htobe32(team->size)};

	memset(card, 0, vb_team_card_bytes(team->size));
	memcpy(head.magic, card_magic, sizeof(head.magic));
	memcpy(card, &head, sizeof(head));
	for (uint32_t i = 0; i < team->size; i++) {
		uint8_t *at = (uint8_t *)card + place_of(i);

		if (i == team->rank)
			continue;
		vb_endpoint_encode(vb_channel_endpoint(team->peers[i].channel), at);
		vb_endpoint_encode(vb_channel_endpoint(team->peers[i].barrier),
				   at + VB_ENDPOINT_BYTES);
	}
}

static int check_head(const struct vb_team *team, const uint8_t *card, uint32_t rank)
{
	struct card_head head;

	memcpy(&head, card, sizeof(head));
	if (memcmp(head.magic, card_magic, sizeof(head.magic)) != 0)
		return fail(EPROTO, "team: what rank %u sent is no card", rank);
	if (head.version != VERSION)
		return fail(EPROTONOSUPPORT, "team: the card of rank %u has version %u", rank,
			    head.version);
	if (be32toh(head.rank) != rank || be32toh(head.size) != team->size)
		return fail(EBADMSG, "team: the card of rank %u is of rank %u of %u, not of %u",
			    rank, be32toh(head.rank), be32toh(head.size), team->size);
	return 0;
}

static int read_card(const struct vb_team *team, const uint8_t *card, uint32_t rank,
		     struct vb_endpoint endpoints[2])
{
	const uint8_t *at = card + place_of(team->rank);
	int err = check_head(team, card, rank);

	for (int i = 0; i < 2 && !err; i++) {
		err = vb_endpoint_decode(at + (size_t)i * VB_ENDPOINT_BYTES, VB_ENDPOINT_BYTES,
					 &endpoints[i]);
		if (err)
			fail_because(err, "team: the card of rank %u", rank);
	}
	return err;
}

static int connect_peer(struct team_peer *peer, uint32_t rank,
			const struct vb_endpoint endpoints[2])
{
	int err = vb_channel_connect(peer->channel, &endpoints[0]);

	if (!err)
		err = vb_channel_connect(peer->barrier, &endpoints[1]);
	if (!err)
		err = barrier_prepare(peer);
	return err ? fail_because(err, "team: connecting to rank %u", rank) : 0;
}

int vb_team_connect(struct vb_team *team, const void *cards)
{
	size_t card_bytes = vb_team_card_bytes(team->size);
	struct vb_endpoint endpoints[2];
	int err = 0;

	if (team->connected)
		return fail(EISCONN, "team: rank %u is connected", team->rank);
	/* All are looked at before the first is connected. */
	for (uint32_t i = 0; i < team->size && !err; i++)
		if (i != team->rank)
			err = read_card(team, (const uint8_t *)cards + i * card_bytes, i,
					endpoints);
	for (uint32_t i = 0; i < team->size && !err; i++) {
		if (i == team->rank)
			continue;
		err = read_card(team, (const uint8_t *)cards + i * card_bytes, i, endpoints);
		if (!err)
			err = connect_peer(&team->peers[i], i, endpoints);
	}
	team->connected = !err;
	return err;
}

int vb_team_join(struct vb_team *team, vb_exchange_fn *exchange, void *arg, uint64_t timeout_ns)
{
	size_t card_bytes = vb_team_card_bytes(team->size);
	uint8_t *cards = malloc(card_bytes * (team->size + 1));
	uint8_t *own;
	int err;

	if (!cards)
		return fail(ENOMEM, "team: no memory for %u cards", team->size);
	own = cards + card_bytes * team->size;
	vb_team_card(team, own);
	err = exchange(arg, team->rank, team->size, own, card_bytes, cards, timeout_ns);
	if (!err)
		err = vb_team_connect(team, cards);
	if (!err)
		err = exchange(arg, team->rank, team->size, own, 1, cards, timeout_ns);
	free(cards);
	return err;
}
