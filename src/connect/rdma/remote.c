/* SPDX-License-Identifier: MIT */
/*
 * Remote regions: what this end may use of the peer's memory.
 */
#include "src/connect/rdma/agent.h"

#include "src/connect/deadline.h"

uint64_t lease_ends_ns(uint64_t began_ns, uint64_t lease_ns)
{
	return lease_ns ? deadline_after(began_ns, lease_ns) : VB_FOREVER;
}

struct vb_remote_mr *remote_new(struct vb_rdma *rdma, const struct region_record *record,
				uint64_t began_ns, bool requested)
{
	const struct handle_table *table = &rdma->agent->connections;
	struct vb_remote_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->agent = rdma->agent;
	mr->owner = handle_owner_index(rdma->key);
	mr->generation = ((struct handle_row *)handle_row_at(table, mr->owner))->generation;
	mr->record = *record;
	mr->requested = requested;
	mr->references = 1;
	mr->ends_ns = lease_ends_ns(began_ns, record->lease_ns);
	rdma->agent->remotes++;
	return mr;
}

struct vb_rdma *remote_connection(const struct vb_remote_mr *mr)
{
	const struct handle_owner *owner =
		handle_find(&mr->agent->connections, mr->owner, mr->generation);

	return owner ? owner->object : NULL;
}

void remote_put(struct vb_remote_mr *mr)
{
	struct vb_rdma *rdma;

	if (!mr || --mr->references)
		return;
	rdma = remote_connection(mr);
	mr->agent->remotes--;
	if (!rdma || rdma->err) {
		free(mr);
		return;
	}
	mr->next = rdma->releases;
	rdma->releases = mr;
}

static uint64_t left_ns(const struct vb_remote_mr *mr)
{
	const struct vb_rdma *rdma = remote_connection(mr);

	if (!rdma || rdma->err)
		return 0;
	return cq_left_ns(mr->agent->cq, mr->ends_ns);
}

int remote_check(const struct vb_remote_mr *mr, const struct vb_rdma *rdma)
{
	if (remote_connection(mr) == rdma && left_ns(mr))
		return 0;
	return fail(ESTALE,
		    "rdma: the remote region is stale: its lease or its connection has ended");
}

struct vb_remote_mr *vb_remote_mr_get(struct vb_remote_mr *mr)
{
	agent_lock(mr->agent);
	mr->references++;
	agent_unlock(mr->agent);
	return mr;
}

uint64_t vb_remote_mr_bytes(const struct vb_remote_mr *mr)
{
	return mr->record.length_bytes;
}

uint32_t vb_remote_mr_access(const struct vb_remote_mr *mr)
{
	return mr->record.access;
}

void vb_remote_mr_key(const struct vb_remote_mr *mr, struct vb_remote *key)
{
	*key = (struct vb_remote){mr->record.addr, mr->record.length_bytes, mr->record.rkey};
}

uint64_t vb_remote_mr_left_ns(const struct vb_remote_mr *mr)
{
	uint64_t left;

	agent_lock(mr->agent);
	left = left_ns(mr);
	agent_unlock(mr->agent);
	return left;
}
