/* SPDX-License-Identifier: MIT */
/*
 * Grants: the keys that the peer of a connection has for memory of this end.
 */
#include "src/connect/rdma/agent.h"

static int flags_of(uint32_t access)
{
	int flags = 0;

	if (access & VB_MR_READ)
		flags |= IBV_ACCESS_REMOTE_READ;
	if (access & VB_MR_WRITE)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if (access & VB_MR_ATOMIC)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	/* ibv_reg_mr(3): remote write and remote atomic need local write. */
	return access & (VB_MR_WRITE | VB_MR_ATOMIC) ? flags | IBV_ACCESS_LOCAL_WRITE : flags;
}

int grant_new(struct vb_rdma *rdma, struct vb_local_mr *local, uint32_t access, struct grant **made)
{
	struct grant *grant;
	int err;

	if (rdma->grant_count == GRANTS_MAX)
		return fail(EDQUOT, "rdma: the peer has %u keys", GRANTS_MAX);
	grant = object_new(sizeof(*grant), "rdma");
	if (!grant)
		return ENOMEM;
	grant->key = vb_reg_mr(rdma->agent->pd, local->addr, local->length_bytes, flags_of(access));
	if (!grant->key) {
		err = fail_because(errno, "rdma: a key for the peer");
		free(grant);
		return err;
	}
	grant->id = rdma->next_id++;
	grant->local = local;
	grant->ends_ns = VB_FOREVER;
	grant->next = rdma->grants;
	rdma->grants = grant;
	rdma->grant_count++;
	rdma->granted_bytes += local->length_bytes;
	*made = grant;
	return 0;
}

void grant_end(struct vb_rdma *rdma, struct grant **link)
{
	struct grant *grant;

	if (!link)
		return;
	grant = *link;
	*link = grant->next;
	rdma->grant_count--;
	rdma->granted_bytes -= grant->local->length_bytes;
	vb_dereg_mr(grant->key);
	local_put(grant->local);
	free(grant);
}

struct grant **grant_find(struct vb_rdma *rdma, uint64_t id)
{
	struct grant **link = &rdma->grants;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return *link ? link : NULL;
}

void grant_lease(struct vb_rdma *rdma, struct grant *grant, uint64_t lease_ns)
{
	if (!lease_ns)
		return;
	grant->ends_ns = lease_ends_ns(agent_now_ns(rdma->agent), lease_ns);
	agent_remind(rdma->agent, grant->ends_ns);
}

struct region_record grant_record(const struct grant *grant, uint32_t access, uint64_t lease_ns)
{
	return (struct region_record){
		.access = access,
		.id = grant->id,
		.addr = (uintptr_t)grant->local->addr,
		.length_bytes = grant->local->length_bytes,
		.lease_ns = lease_ns,
		.rkey = grant->key->rkey,
	};
}

void grants_expire(struct vb_rdma *rdma, uint64_t now_ns)
{
	struct grant **link = &rdma->grants;

	while (*link) {
		if ((*link)->ends_ns <= now_ns) {
			grant_end(rdma, link);
			continue;
		}
		agent_remind(rdma->agent, (*link)->ends_ns);
		link = &(*link)->next;
	}
}
