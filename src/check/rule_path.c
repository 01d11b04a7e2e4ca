/* SPDX-License-Identifier: MIT */
/*
 * path-leads-nowhere. The GID of each address is read from the port's table: an entry may be empty, or of
 * another address family than the destination of RoCE v2. The types of GIDs and the partitions of P_Keys are
 * compared between two connected QPs of this process: the QPs name each other by number and by GID.
 */
#include "src/check/check.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <verbena/verbs.h>

#define PKEY_PARTITION 0x7fff
#define PKEY_FULL      0x8000 /* a full member; two limited members do not talk */

/* --- the tables of a port --- */

static bool read_gid(struct ibv_context *context, const struct ibv_ah_attr *path,
		     union ibv_gid *gid)
{
	return !vb_query_gid(context, path->port_num, path->grh.sgid_index, gid);
}

static bool is_zero(const union ibv_gid *gid)
{
	return !gid->global.subnet_prefix && !gid->global.interface_id;
}

/* Returns false if the type is unknown. */
static bool read_type(struct ibv_context *context, const struct ibv_ah_attr *path, uint32_t *type)
{
	struct ibv_gid_entry entry;

	if (vb_query_gid_ex(context, path->port_num, path->grh.sgid_index, &entry, 0,
			    sizeof(entry)))
		return false;
	*type = entry.gid_type;
	return true;
}

static const char *type_name(uint32_t type)
{
	return type == IBV_GID_TYPE_ROCE_V2   ? "RoCE v2"
	       : type == IBV_GID_TYPE_ROCE_V1 ? "RoCE v1"
					      : "InfiniBand";
}

/* An IPv4 address as an IPv6 address: RFC 4291, 2.5.5.2. */
static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* --- one end --- */

static void report_end(const struct check_call *check, const void *object, const char *label,
		       const char *format, uint32_t index, const char *first, const char *second)
{
	char name[64], what[256];

	snprintf(what, sizeof(what), format, index, first, second);
	offence_report(VB_RULE_PATH_WRONG,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = label, .spot = check->spot},
		       },
		       "%s: %s", check_name(object, name, sizeof(name)), what);
}

static const char *family(const union ibv_gid *gid)
{
	return is_ipv4(gid) ? "IPv4" : "IPv6";
}

static void check_path(const struct check_call *check, const void *object, const char *label,
		       const struct ibv_ah_attr *path)
{
	struct ibv_context *context = check->call->context;
	const union ibv_gid *to = &path->grh.dgid;
	union ibv_gid from;
	uint32_t type;

	if (!path->is_global || !context || !read_gid(context, path, &from))
		return;
	if (is_zero(&from))
		report_end(check, object, label,
			   "sgid_index %u names an entry of the GID table that is empty",
			   path->grh.sgid_index, "", "");
	else if (to->raw[0] != 0xff && is_ipv4(&from) != is_ipv4(to) &&
		 read_type(context, path, &type) && type == IBV_GID_TYPE_ROCE_V2)
		report_end(check, object, label,
			   "the GID at sgid_index %u is an %s address, and dgid is an %s address",
			   path->grh.sgid_index, family(&from), family(to));
}

static void check_pkey(const struct check_call *check, const struct check_qp *qp)
{
	__be16 pkey;

	if (vb_query_pkey(check->call->context, qp->attr.port_num, qp->attr.pkey_index, &pkey))
		return;
	if (!(ntohs(pkey) & PKEY_PARTITION))
		report_end(check, qp->object.handle, "modified",
			   "pkey_index %u names an entry of the P_Key table that is empty",
			   qp->attr.pkey_index, "", "");
}

/* --- two ends --- */

static bool is_connected(const struct check_qp *qp)
{
	return (qp->type == IBV_QPT_RC || qp->type == IBV_QPT_UC) &&
	       qp->attr_mask & IBV_QP_DEST_QPN && qp->attr_mask & IBV_QP_AV &&
	       qp->attr.ah_attr.is_global;
}

static bool leads_to(const struct check_qp *from, const struct check_qp *to)
{
	union ibv_gid gid;

	return from->attr.dest_qp_num == to->qpn && from->type == to->type &&
	       read_gid(to->object.context, &to->attr.ah_attr, &gid) &&
	       !memcmp(&gid, &from->attr.ah_attr.grh.dgid, sizeof(gid));
}

static const struct check_qp *find_peer(const struct check_qp *qp)
{
	for (struct object *object = object_first(OBJECT_QP); object;
	     object = object->next_of_kind) {
		const struct check_qp *other = (const struct check_qp *)object;

		if (other->qpn == qp->attr.dest_qp_num && is_connected(other) &&
		    leads_to(qp, other) && leads_to(other, qp))
			return other;
	}
	return NULL;
}

static void report_ends(const struct check_call *check, const struct check_qp *qp,
			const struct check_qp *peer, const char *what)
{
	char name[64];

	offence_report(VB_RULE_PATH_WRONG,
		       (const struct offence_place[OFFENCE_PLACES_MAX]){
			       {.label = "modified", .spot = check->spot},
			       {.label = "peer modified", .spot = peer->modified},
		       },
		       "%s: %s", check_name(qp->object.handle, name, sizeof(name)), what);
}

static void compare_types(const struct check_call *check, const struct check_qp *qp,
			  const struct check_qp *peer)
{
	const struct ibv_ah_attr *path = &qp->attr.ah_attr, *peer_path = &peer->attr.ah_attr;
	char name[64], what[256];
	uint32_t type, peer_type;

	if (!read_type(qp->object.context, path, &type) ||
	    !read_type(peer->object.context, peer_path, &peer_type) || type == peer_type)
		return;
	snprintf(what, sizeof(what),
		 "the GID at sgid_index %u is of %s, and the one of %s at sgid_index %u is of %s",
		 path->grh.sgid_index, type_name(type),
		 check_name(peer->object.handle, name, sizeof(name)), peer_path->grh.sgid_index,
		 type_name(peer_type));
	report_ends(check, qp, peer, what);
}

static void compare_pkeys(const struct check_call *check, const struct check_qp *qp,
			  const struct check_qp *peer)
{
	char name[64], what[256];
	__be16 mine, theirs;

	if (vb_query_pkey(qp->object.context, qp->attr.port_num, qp->attr.pkey_index, &mine) ||
	    vb_query_pkey(peer->object.context, peer->attr.port_num, peer->attr.pkey_index,
			  &theirs))
		return;
	if (!((ntohs(mine) ^ ntohs(theirs)) & PKEY_PARTITION) && ntohs(mine | theirs) & PKEY_FULL)
		return;
	snprintf(what, sizeof(what),
		 "its P_Key 0x%x at pkey_index %u does not match 0x%x of %s at pkey_index %u",
		 ntohs(mine), qp->attr.pkey_index, ntohs(theirs),
		 check_name(peer->object.handle, name, sizeof(name)), peer->attr.pkey_index);
	report_ends(check, qp, peer, what);
}

/* --- verbs --- */

static void after_modify(struct check_call *check)
{
	const struct ibv_qp_attr *attr = check_pointer(check, 1);
	const int mask = (int)check->call->arguments[2];
	const struct check_qp *qp = check->qp, *peer;

	if (!qp || !attr || !check->call->context)
		return;
	if (mask & IBV_QP_AV)
		check_path(check, qp->object.handle, "modified", &attr->ah_attr);
	if (check->call->err)
		return;
	if (mask & IBV_QP_PKEY_INDEX && qp->attr_mask & IBV_QP_PORT)
		check_pkey(check, qp);
	if (!(mask & (IBV_QP_AV | IBV_QP_PKEY_INDEX)) || !is_connected(qp))
		return;
	peer = find_peer(qp);
	if (peer && peer != qp) {
		compare_types(check, qp, peer);
		compare_pkeys(check, qp, peer);
	}
}

static void after_create_ah(struct check_call *check)
{
	const struct ibv_ah_attr *path = check_pointer(check, 1);

	if (path)
		check_path(check, check_pointer(check, 0), "created", path);
}

static const struct check_hook hooks[] = {
	{LAYER_modify_qp, NULL, after_modify},
	{LAYER_create_ah, NULL, after_create_ah},
	{0},
};

const struct check_rule rule_path = {.hooks = hooks};
