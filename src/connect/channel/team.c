/* SPDX-License-Identifier: MIT */
#include "src/connect/channel/team.h"

#include "src/connect/bytes.h"
#include "src/connect/object.h"

/* A card has a head with rank and size, then two encoded endpoints for each rank. */
#define CARD_HEAD	"VBT"
#define CARD_HEAD_BYTES 12

/* --- making and ending --- */

static void drop(struct vb_team *team)
{
	for (uint32_t i = 0; team->peers && i < team->size; i++) {
		vb_channel_close(team->peers[i].channel);
		vb_channel_close(team->peers[i].barrier);
	}
	free(team->peers);
	free(team->steps);
	free(team);
}

static int make_channels(struct vb_team *team, const struct vb_qp_config *config)
{
	struct vb_qp_config small = *config;

	/* Barrier messages have no data. A slow peer is waited for without limit. */
	small.max_send_wr = BARRIER_SENDS;
	small.max_recv_wr = BARRIER_RECEIVES;
	small.max_send_sge = small.max_recv_sge = 1;
	small.max_inline_data = 0;
	small.rnr_retry = VB_RNR_RETRY_INFINITE;
	for (uint32_t i = 0; i < team->size; i++) {
		if (i == team->rank)
			continue;
		team->peers[i].channel = vb_channel_prepare(team->group, config);
		if (team->peers[i].channel)
			team->peers[i].barrier = vb_channel_prepare(team->group, &small);
		if (!team->peers[i].barrier)
			return errno;
	}
	return 0;
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
	team = object_new(sizeof(*team), "team");
	if (!team)
		return NULL;
	vb_qp_config_init(&defaults);
	team->group = group;
	team->rank = rank;
	team->size = size;
	team->peers = calloc(size, sizeof(*team->peers));
	team->steps = calloc(barrier_steps_max(size), sizeof(*team->steps));
	if (team->peers && team->steps)
		err = make_channels(team, config ? config : &defaults);
	else
		err = fail(ENOMEM, "team: no memory for %u nodes", size);
	if (!err)
		return team;
	drop(team);
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

		/* A scope holds the channel: keep the rest of the team. */
		if (err == EBUSY)
			return err;
		team->peers[i].channel = NULL;
	}
	drop(team);
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

/* The offset of the endpoints for a rank. */
static size_t place_of(uint32_t rank)
{
	return CARD_HEAD_BYTES + (size_t)rank * 2 * VB_ENDPOINT_BYTES;
}

size_t vb_team_card_bytes(unsigned int size)
{
	return place_of(size);
}

void vb_team_card(const struct vb_team *team, void *card)
{
	memset(card, 0, vb_team_card_bytes(team->size));
	put32(put32(put_head(card, CARD_HEAD), team->rank), team->size);
	for (uint32_t i = 0; i < team->size; i++) {
		uint8_t *at = (uint8_t *)card + place_of(i);

		if (i == team->rank)
			continue;
		vb_endpoint_encode(vb_channel_endpoint(team->peers[i].channel), at);
		vb_endpoint_encode(vb_channel_endpoint(team->peers[i].barrier),
				   at + VB_ENDPOINT_BYTES);
	}
}

static int check_card(const struct vb_team *team, const uint8_t *card, uint32_t rank)
{
	uint32_t has_rank = get32(card + HEAD_BYTES), has_size = get32(card + HEAD_BYTES + 4);
	int err = check_head("card", card, CARD_HEAD);

	if (err)
		return fail_because(err, "team: rank %u", rank);
	if (has_rank != rank || has_size != team->size)
		return fail(EBADMSG, "team: the card of rank %u is of rank %u of %u, not of %u",
			    rank, has_rank, has_size, team->size);
	return 0;
}

static int read_card(const struct vb_team *team, const uint8_t *card, uint32_t rank)
{
	const uint8_t *at = card + place_of(team->rank);
	int err = check_card(team, card, rank);

	for (int i = 0; i < 2 && !err; i++) {
		err = vb_endpoint_decode(at + (size_t)i * VB_ENDPOINT_BYTES, VB_ENDPOINT_BYTES,
					 &team->peers[rank].remote[i]);
		if (err)
			fail_because(err, "team: the card of rank %u", rank);
	}
	return err;
}

static int connect_peer(struct team_peer *peer, uint32_t rank)
{
	int err = vb_channel_connect(peer->channel, &peer->remote[0]);

	if (!err)
		err = vb_channel_connect(peer->barrier, &peer->remote[1]);
	if (!err)
		err = barrier_prepare(peer);
	return err ? fail_because(err, "team: connecting to rank %u", rank) : 0;
}

int vb_team_connect(struct vb_team *team, const void *cards)
{
	size_t card_bytes = vb_team_card_bytes(team->size);
	int err = 0;

	if (team->connected)
		return fail(EISCONN, "team: rank %u is connected", team->rank);
	/* Check all cards before connecting the first channel. */
	for (uint32_t i = 0; i < team->size && !err; i++)
		if (i != team->rank)
			err = read_card(team, (const uint8_t *)cards + i * card_bytes, i);
	for (uint32_t i = 0; i < team->size && !err; i++)
		if (i != team->rank)
			err = connect_peer(&team->peers[i], i);
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
	pthread_cleanup_push(free, cards);
	vb_team_card(team, own);
	err = exchange(arg, team->rank, team->size, own, card_bytes, cards, timeout_ns);
	if (!err)
		err = vb_team_connect(team, cards);
	if (!err)
		err = exchange(arg, team->rank, team->size, own, 1, cards, timeout_ns);
	pthread_cleanup_pop(true);
	return err;
}
