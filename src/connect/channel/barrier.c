/* SPDX-License-Identifier: MIT */
/*
 * Barriers. An algorithm plans a list of steps when a node enters. A step sends a message without
 * data to a peer, or waits for a message from a peer. The immediate data of a message names the
 * barrier by its number and algorithm.
 */
#include "src/connect/channel/channel.h"
#include "src/connect/channel/team.h"
#include "src/connect/cq.h"
#include "src/connect/object.h"

/* --- the steps --- */

static void add(struct vb_team *team, bool sends, uint32_t peer)
{
	team->steps[team->step_count++] = (struct barrier_step){sends, peer};
}

static void plan_linear(struct vb_team *team)
{
	if (team->rank) {
		add(team, true, 0);
		add(team, false, 0);
		return;
	}
	for (uint32_t i = 1; i < team->size; i++)
		add(team, false, i);
	for (uint32_t i = 1; i < team->size; i++)
		add(team, true, i);
}

static void plan_tree(struct vb_team *team)
{
	uint32_t parent = team->rank ? (team->rank - 1) / 2 : 0;
	uint32_t first = team->rank * 2 + 1;

	for (uint32_t i = first; i < first + 2 && i < team->size; i++)
		add(team, false, i);
	if (team->rank) {
		add(team, true, parent);
		add(team, false, parent);
	}
	for (uint32_t i = first; i < first + 2 && i < team->size; i++)
		add(team, true, i);
}

/* Hensgen, Finkel and Manber, "Two algorithms for barrier synchronization", 1988. */
static void plan_dissemination(struct vb_team *team)
{
	for (uint32_t distance = 1; distance < team->size; distance *= 2) {
		add(team, true, (team->rank + distance) % team->size);
		add(team, false, (team->rank + team->size - distance) % team->size);
	}
}

static const struct {
	const char *name;
	void (*plan)(struct vb_team *team);
} algorithms[] = {
	[VB_BARRIER_LINEAR] = {"linear", plan_linear},
	[VB_BARRIER_TREE] = {"tree", plan_tree},
	[VB_BARRIER_DISSEMINATION] = {"dissemination", plan_dissemination},
};

uint32_t barrier_steps_max(uint32_t size)
{
	/* Linear has 2(n-1) steps at rank 0, a tree 6, dissemination 2 log n. */
	return 2 * size + 4;
}

const char *vb_barrier_name(enum vb_barrier algorithm)
{
	return (size_t)algorithm < COUNT(algorithms) ? algorithms[algorithm].name : NULL;
}

/* --- messages --- */

static uint32_t message_of(const struct vb_team *team)
{
	return team->epoch << 2 | (uint32_t)team->algorithm;
}

static int post_receive(struct team_peer *peer, struct vb_work *work)
{
	return vb_channel_post(peer->barrier, &(struct vb_request){.operation = VB_RECEIVE}, work);
}

int barrier_prepare(struct team_peer *peer)
{
	int err = 0;

	for (uint32_t i = 0; i < BARRIER_RECEIVES && !err; i++)
		err = post_receive(peer, &peer->receives[i]);
	return err;
}

static int send_message(const struct vb_team *team, const struct team_peer *peer)
{
	const struct vb_request request = {
		.operation = VB_SEND, .with_imm = true, .imm = message_of(team)};

	/* The sends of earlier barriers end without help of this node. */
	if (vb_channel_pending(peer->barrier) >= BARRIER_RECEIVES + BARRIER_SENDS)
		return EAGAIN;
	return vb_channel_post(peer->barrier, &request, NULL);
}

static int take_message(const struct vb_team *team, struct team_peer *peer)
{
	struct vb_work *oldest = &peer->receives[peer->oldest];
	struct vb_result result;
	int err;

	err = slot_result(slot_of(*oldest), &result);
	if (err)
		return err;
	if (!result.has_imm || result.imm != message_of(team))
		return fail(EPROTO,
			    "barrier: rank %u: a message of barrier %u.%u, wanted %u.%u (%s)",
			    team->rank, result.imm >> 2, result.imm & 3, message_of(team) >> 2,
			    message_of(team) & 3, vb_barrier_name(team->algorithm));
	peer->oldest = (peer->oldest + 1) % BARRIER_RECEIVES;
	return post_receive(peer, oldest);
}

/* --- the barrier --- */

static int check_peers(const struct vb_team *team)
{
	for (uint32_t i = 0; i < team->size; i++)
		if (i != team->rank && vb_channel_failures(team->peers[i].barrier))
			return fail(EIO, "barrier: rank %u: rank %u does not answer", team->rank,
				    i);
	return 0;
}

/* Executes steps until one has to wait. Returns 0 after the last step, EAGAIN, or the errno that
 * broke the barrier. */
static int advance(struct vb_team *team)
{
	int err = check_peers(team);

	while (!err && team->next_step < team->step_count) {
		const struct barrier_step *step = &team->steps[team->next_step];
		struct team_peer *peer = &team->peers[step->peer];

		err = step->sends ? send_message(team, peer) : take_message(team, peer);
		if (!err)
			team->next_step++;
	}
	if (err == EAGAIN)
		return err;
	team->entered = false;
	team->epoch++;
	team->broken = err;
	return err;
}

int vb_barrier_enter(struct vb_team *team, enum vb_barrier algorithm)
{
	if ((size_t)algorithm >= COUNT(algorithms))
		return fail(EINVAL, "barrier: there is no algorithm %d", (int)algorithm);
	if (!team->connected)
		return fail(ENOTCONN, "barrier: rank %u is not connected", team->rank);
	if (team->broken)
		return fail(ENOTCONN, "barrier: rank %u: an earlier barrier failed; close the team",
			    team->rank);
	if (team->entered)
		return fail(EALREADY, "barrier: rank %u has already entered one", team->rank);
	team->entered = true;
	team->algorithm = algorithm;
	team->step_count = team->next_step = 0;
	algorithms[algorithm].plan(team);
	return 0;
}

static int check_entered(const struct vb_team *team)
{
	return team->entered ? 0 : fail(EINVAL, "barrier: rank %u has not entered one", team->rank);
}

int vb_barrier_poll(struct vb_team *team)
{
	int err = check_entered(team);

	if (!err)
		err = advance(team);
	if (err != EAGAIN)
		return err;
	err = group_poll(team->group);
	return err ? err : advance(team);
}

int vb_barrier_wait(struct vb_team *team, uint64_t timeout_ns)
{
	struct vb_cq *cq = team->group->cq;
	uint64_t deadline_ns;
	int err = check_entered(team);

	if (err)
		return err;
	deadline_ns = cq_deadline_ns(cq, timeout_ns);
	while ((err = advance(team)) == EAGAIN) {
		err = vb_group_progress(team->group, cq_left_ns(cq, deadline_ns));
		if (err)
			return fail_because(err, "barrier: rank %u, step %u of %u", team->rank,
					    team->next_step, team->step_count);
	}
	return err;
}
