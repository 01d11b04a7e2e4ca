/* SPDX-License-Identifier: MIT */
/*
 * The kinds of addresses that a node has.
 */
#include "test/support/support.h"

#include <string.h>

bool ts_gid_is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/* Returns the index of a RoCE v2 address that is neither IPv4 nor link-local, or -1. */
static int find_ipv6(struct vt_node *node, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < node->port_attr.gid_tbl_len && i < 64; i++) {
		if (vb_query_gid_ex(node->ctx, node->port, (uint32_t)i, &entry, 0, sizeof(entry)))
			continue;
		if (entry.gid_type != IBV_GID_TYPE_ROCE_V2 || ts_gid_is_ipv4(&entry.gid) ||
		    entry.gid.raw[0] == 0xfe)
			continue;
		*gid = entry.gid;
		return i;
	}
	return -1;
}

void ts_use_ipv6(struct vt *t)
{
	t->a.gid_index = find_ipv6(&t->a, &t->a.gid);
	t->b.gid_index = find_ipv6(&t->b, &t->b.gid);
	if (t->a.gid_index < 0 || t->b.gid_index < 0)
		VT_SKIP(t, "the nodes have no IPv6 addresses");
}
