/* SPDX-License-Identifier: MIT */
/* Address handles. */
#include "backends/sim/verb/verbs.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#define NEXT_HEADER_BTH 0x1b /* of a GRH; Linux include/rdma/ib_pack.h: IB_GRH's next_hdr */

/* Linux drivers/infiniband/core/verbs.c, _rdma_create_ah, counts an AH that the kernel makes. */
static bool is_counted(const struct sim_ah *ah)
{
	return !ah->device->quirks.ahs_in_user_space || !ah->path.route.infiniband;
}

struct ibv_ah *verb_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr)
{
	HOLD hold = context_hold(ibv_pd->context);
	struct context *context = context_of(ibv_pd->context);
	struct pd *pd = pd_of(ibv_pd);
	struct ah *ah;
	int err;

	if (!pd)
		return null_errno(refuse_gone("create_ah", KIND_PD, ibv_pd));
	ah = object_new(context, KIND_AH, "create_ah");
	if (!ah)
		return NULL;
	err = sim_ah_create(context->device->engine, pd->number, attr, &ah->engine);
	if (err) {
		object_end(KIND_AH, ah);
		return null_errno(say_refused(hold.world, "create_ah", err));
	}
	ah->ibv.pd = ibv_pd;
	if (is_counted(ah->engine)) {
		ah->pd = pd;
		pd->users++;
	}
	return &ah->ibv;
}

void verb_end_ah(void *object)
{
	struct ah *ah = object;

	if (ah->pd)
		ah->pd->users--;
	sim_ah_release(ah->engine);
	object_end(KIND_AH, ah);
}

int verb_destroy_ah(struct ibv_ah *ibv)
{
	HOLD hold = context_hold(ibv->context);
	struct ah *ah = ah_of(ibv);

	if (!ah)
		return refuse_gone("destroy_ah", KIND_AH, ibv);
	verb_end_ah(ah);
	return 0;
}

/* --- from a completion --- */

static uint16_t ip_checksum(const uint8_t header[20])
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += (uint32_t)(header[i] << 8 | header[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

/*
 * On RoCEv2 over IPv4 the IPv4 header is in the last 20 bytes, and the first 20 are undefined. If
 * these look like IPv6 by chance, an IPv4 header with a right checksum decides
 * (ibv_create_ah_from_wc(3)); if they do not, the checksum is not read: Linux
 * drivers/infiniband/core/verbs.c, ib_get_rdma_header_version.
 */
static int header_version(const struct ibv_grh *grh)
{
	const uint8_t *bytes = (const uint8_t *)grh;

	if (bytes[0] >> 4 != 6)
		return bytes[20] >> 4 == 4 ? 4 : 0;
	return bytes[20] == 0x45 && ip_checksum(bytes + 20) == 0 ? 4 : 6;
}

#define FROM_WC "init_ah_from_wc"

static int fill_ipv4(const uint8_t header[20], struct ibv_global_route *route, union ibv_gid *ours,
		     enum ibv_gid_type *type)
{
	if (header[16] >> 4 == 0xe) /* a multicast address is never the receiver's own */
		return refuse_plainly(FROM_WC, VB_WHY_WC_GRH_MULTICAST);
	memset(ours, 0, sizeof(*ours));
	memset(ours->raw + 10, 0xff, 2);
	route->dgid = *ours;
	memcpy(ours->raw + 12, header + 16, 4);
	memcpy(route->dgid.raw + 12, header + 12, 4);
	route->hop_limit = header[8];
	route->traffic_class = header[1];
	*type = IBV_GID_TYPE_ROCE_V2;
	return 0;
}

static int fill_ipv6(const struct ibv_grh *grh, struct ibv_global_route *route, union ibv_gid *ours,
		     enum ibv_gid_type *type)
{
	uint32_t word = be32toh(grh->version_tclass_flow);

	if (grh->dgid.raw[0] == 0xff)
		return refuse_plainly(FROM_WC, VB_WHY_WC_GRH_MULTICAST);
	if (grh->next_hdr != IPPROTO_UDP && grh->next_hdr != NEXT_HEADER_BTH)
		return refuse_why(FROM_WC,
				  (struct vb_why){VB_WHY_WC_GRH_PROTOCOL,
						  {grh->next_hdr, NEXT_HEADER_BTH, IPPROTO_UDP}});
	*type = grh->next_hdr == NEXT_HEADER_BTH ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
	*ours = grh->dgid;
	route->dgid = grh->sgid;
	route->hop_limit = grh->hop_limit;
	route->traffic_class = (word >> 20) & 0xff;
	route->flow_label = word & 0xfffff;
	return 0;
}

static int fill_index(const struct sim_port *port, const union ibv_gid *ours,
		      enum ibv_gid_type type, struct ibv_global_route *route)
{
	const int index = sim_port_find_gid(port, ours, type);
	struct vb_why why = {VB_WHY_WC_GRH_GID, {0, 0, port->number}};

	memcpy(why.values, ours->raw, sizeof(ours->raw));
	if (index < 0)
		return refuse_why(FROM_WC, why);
	route->sgid_index = (uint8_t)index;
	return 0;
}

static int fill_route(const struct sim_port *port, const struct ibv_grh *grh,
		      struct ibv_global_route *route)
{
	const bool infiniband = sim_port_is_infiniband(port);
	const int version = infiniband ? 6 : header_version(grh);
	enum ibv_gid_type type = IBV_GID_TYPE_IB;
	union ibv_gid ours;
	int err;

	if (version == 4)
		err = fill_ipv4((const uint8_t *)grh + 20, route, &ours, &type);
	else if (version == 6)
		err = fill_ipv6(grh, route, &ours, &type);
	else
		err = refuse_plainly(FROM_WC, VB_WHY_WC_GRH_VERSION);
	if (err)
		return err;
	return fill_index(port, &ours, infiniband ? IBV_GID_TYPE_IB : type, route);
}

static int fill_attr(const struct context *context, uint8_t port_num, const struct ibv_wc *wc,
		     const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct sim_device *device = context->device->engine;
	struct sim_port *port;

	if (!context_live(context))
		return refuse_plainly(FROM_WC, VB_WHY_CONTEXT_CLOSED);
	port = sim_device_port(device, port_num);
	if (!port)
		return refuse_why(FROM_WC, (struct vb_why){VB_WHY_NO_SUCH_PORT,
							   {port_num, device->port_count}});
	*attr = (struct ibv_ah_attr){
		.dlid = wc->slid,
		.sl = wc->sl,
		.src_path_bits = wc->dlid_path_bits,
		.is_global = !!(wc->wc_flags & IBV_WC_GRH),
		.port_num = port_num,
	};
	return attr->is_global ? fill_route(port, grh, &attr->grh) : 0;
}

int verb_init_ah_from_wc(struct ibv_context *ibv, uint8_t port_num, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	HOLD hold = context_hold(ibv);
	int err = fill_attr(context_of(ibv), port_num, wc, grh, attr);

	return err ? minus_errno(err) : 0;
}

struct ibv_ah *verb_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				      uint8_t port_num)
{
	struct ibv_ah_attr attr = {0};

	if (verb_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return verb_create_ah(pd, &attr);
}
