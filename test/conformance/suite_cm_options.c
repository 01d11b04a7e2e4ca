/* SPDX-License-Identifier: MIT */
/*
 * Connections: the effects of options and parameters on the QPs and on the other side.
 */
#include "test/conformance/sources.h"
#include "test/support/manager.h"

#include <endian.h>
#include <fcntl.h>
#include <infiniband/sa.h>

#define SRC_CMA SRC_CORE "cma.c, "

static struct ibv_qp_attr query(struct vt *t, struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	VT_OK(t, vb_query_qp(qp, &attr,
			     IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC,
			     &init));
	return attr;
}

/* An identifier of A whose address is resolved. */
static struct rdma_cm_id *resolved(struct tc_pair *pair)
{
	struct tc_address to = tc_address(&pair->t->b, pair->port);
	struct rdma_cm_id *id = tc_id(pair->t, pair->a_channel, pair->listener->ps);

	VT_OK(pair->t, vb_cm_resolve_addr(id, NULL, tc_sockaddr(&to), 2000));
	tc_expect(pair->t, pair->a_channel, id, RDMA_CM_EVENT_ADDR_RESOLVED);
	return id;
}

static void route(struct tc_pair *pair, struct rdma_cm_id *id)
{
	VT_OK(pair->t, vb_cm_resolve_route(id, 2000));
	tc_expect(pair->t, pair->a_channel, id, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

static int set_byte(struct rdma_cm_id *id, int name, uint8_t value)
{
	return vb_cm_set_option(id, RDMA_OPTION_ID, name, &value, sizeof(value));
}

static void the_type_of_service_is_the_traffic_class(struct vt *t)
{
	static const uint8_t values[] = {0x68, 0, 0xff};

	for (size_t i = 0; i < TS_COUNT(values); i++) {
		struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

		vt_row(t, "TOS %u", values[i]);
		pair->a = resolved(pair);
		VT_OK(t, set_byte(pair->a, RDMA_OPTION_ID_TOS, values[i]));
		route(pair, pair->a);
		tc_ask(pair);
		tc_establish(pair);
		VT_EQ(t, query(t, pair->a->qp).ah_attr.grh.traffic_class, values[i]);
		VT_EQ(t, query(t, pair->b->qp).ah_attr.grh.traffic_class, values[i]);
		tc_send(t, pair->a, pair->b);
	}
}

static void each_side_has_its_ack_timeout(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);

	pair->a = resolved(pair);
	VT_OK(t, set_byte(pair->a, RDMA_OPTION_ID_ACK_TIMEOUT, 20));
	route(pair, pair->a);
	VT_EQ(t, pair->a->route.path_rec->packet_life_time, 19);
	tc_ask(pair);
	VT_OK(t, set_byte(pair->b, RDMA_OPTION_ID_ACK_TIMEOUT, 12));
	tc_establish(pair);
	VT_EQ(t, query(t, pair->a->qp).timeout, 20);
	VT_EQ(t, query(t, pair->b->qp).timeout, 12);
	tc_send(t, pair->a, pair->b);
	tc_send(t, pair->b, pair->a);
}

static void options_that_come_too_late_or_do_not_fit(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_cm_id *bound = tc_id(t, pair->a_channel, RDMA_PS_TCP);
	struct rdma_cm_id *datagrams = tc_id(t, pair->a_channel, RDMA_PS_UDP);
	struct tc_address here = tc_address(&t->b, 0);
	int on = 1, off = 0;

	VT_OK(t, vb_cm_bind_addr(bound, tc_sockaddr(&here)));
	VT_MINUS_ERRNO(t,
		       vb_cm_set_option(bound, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off, 4),
		       EINVAL);
	VT_OK(t, vb_cm_set_option(bound, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, 4));
	VT_OK(t, vb_cm_set_option(bound, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &off, 4));
	VT_MINUS_ERRNO(
		t,
		vb_cm_set_option(pair->listener, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, 4),
		EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_set_option(pair->a, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, 4),
		       EINVAL);
	VT_MINUS_ERRNO(t, set_byte(datagrams, RDMA_OPTION_ID_ACK_TIMEOUT, 10), EINVAL);
	VT_OK(t, set_byte(datagrams, RDMA_OPTION_ID_TOS, 10));
}

/* A record of the identifier's own path, with another life time. */
static struct ibv_path_data path_data(const struct rdma_cm_id *id, uint32_t flags,
				      uint8_t life_time)
{
	const struct ibv_sa_path_rec *record = id->route.path_rec;
	struct ibv_path_data data = {.flags = flags};

	data.path = (struct ibv_path_record){
		.dgid = record->dgid,
		.sgid = record->sgid,
		.dlid = record->dlid,
		.slid = record->slid,
		.reversible_numpath = 0x81,
		.pkey = record->pkey,
		.mtu = (uint8_t)(2 << 6 | record->mtu),
		.rate = (uint8_t)(2 << 6 | record->rate),
		.packetlifetime = (uint8_t)(2 << 6 | life_time),
	};
	return data;
}

static void a_program_brings_its_route(struct vt *t)
{
	const uint32_t whole =
		IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct ibv_path_data paths[] = {path_data(pair->a, IBV_PATH_FLAG_GMP, 10),
					path_data(pair->a, whole, 20)};

	pair->a = resolved(pair);
	VT_MINUS_ERRNO(t,
		       vb_cm_set_option(pair->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths,
					sizeof(paths[0])),
		       EINVAL);
	VT_OK(t,
	      vb_cm_set_option(pair->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, paths, sizeof(paths)));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	VT_MINUS_ERRNO(t, vb_cm_resolve_route(pair->a, 2000), EINVAL);
	tc_ask(pair);
	tc_establish(pair);
	/* One step above the life time of a packet, which is longer than the delay of an ACK. */
	VT_EQ(t, query(t, pair->a->qp).timeout, 21);
	tc_send(t, pair->a, pair->b);
}

/* The field of a path record has six bits, and that of a QP five. */
static void a_life_time_that_is_longer_than_any_timeout(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct ibv_path_data path = path_data(
		pair->a, IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL,
		33);

	pair->a = resolved(pair);
	VT_OK(t,
	      vb_cm_set_option(pair->a, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path)));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ROUTE_RESOLVED);
	/* librdmacm shows five bits, ucma_convert_path. */
	VT_EQ(t, pair->a->route.path_rec->packet_life_time, 33 & 0x1f);
	tc_ask(pair);
	tc_establish(pair);
	VT_EQ(t, query(t, pair->a->qp).timeout, 31);
	VT_EQ(t, query(t, pair->b->qp).timeout, 31);
}

static void flags_of_the_programs_own_qps(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0), seen;

	for (int i = 0; i < 2; i++) {
		vt_row(t, "srq and flow_control %d", i);
		pair->a = tc_another(pair);
		param.srq = param.flow_control = (uint8_t)i;
		param.retry_count = i ? 9 : 3;
		param.rnr_retry_count = i ? 200 : 2;
		param.qp_num = tc_own_qp(t, pair->a)->qp_num;
		seen = tc_request(pair, &param).event.param.conn;
		VT_EQ(t, seen.srq, i);
		VT_EQ(t, seen.flow_control, i);
		VT_EQ(t, seen.retry_count, i ? 7 : 3);
		VT_EQ(t, seen.rnr_retry_count, i ? 7 : 2);
		param.qp_num = tc_own_qp(t, pair->b)->qp_num;
		VT_OK(t, vb_cm_accept(pair->b, &param));
		seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_CONNECT_RESPONSE)
			       .event.param.conn;
		VT_EQ(t, seen.srq, i);
		VT_EQ(t, seen.flow_control, i);
		VT_EQ(t, seen.rnr_retry_count, i ? 7 : 2);
	}
}

static void ece_reaches_the_other_side(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_ece asked = {.vendor_id = 0x15b3, .options = 0x80000001};
	struct ibv_ece answered = {.vendor_id = 0x123456, .options = 0x70};
	struct ibv_ece seen;

	param.qp_num = tc_own_qp(t, pair->a)->qp_num;
	VT_OK(t, vb_cm_set_local_ece(pair->a, &asked));
	tc_request(pair, &param);
	VT_OK(t, vb_cm_get_remote_ece(pair->b, &seen));
	VT_EQ(t, seen.vendor_id, asked.vendor_id);
	VT_EQ(t, seen.options, asked.options);
	param.qp_num = tc_own_qp(t, pair->b)->qp_num;
	VT_OK(t, vb_cm_set_local_ece(pair->b, &answered));
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	VT_OK(t, vb_cm_get_remote_ece(pair->a, &seen));
	/* The answer has the vendor of the request: librdmacm/cma.c, ucma_copy_ece_param_to_kern_rep. */
	VT_EQ(t, seen.vendor_id, asked.vendor_id);
	VT_EQ(t, seen.options, answered.options);
}

static void ece_is_for_the_programs_own_qps(struct vt *t)
{
	struct tc_pair *pair = tc_connected(t);
	struct ibv_ece ece = {.vendor_id = 1};

	VT_MINUS_ERRNO(t, vb_cm_set_local_ece(pair->a, &ece), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_get_remote_ece(pair->a, &ece), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_set_local_ece(pair->listener, NULL), EINVAL);
}

/* The values of the request count, where the device can do that. */
static void depths_may_be_left_to_the_devices(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0), seen;
	struct ibv_device_attr limits;

	VT_OK(t, vb_query_device(pair->a->verbs, &limits));
	param.responder_resources = RDMA_MAX_RESP_RES;
	param.initiator_depth = RDMA_MAX_INIT_DEPTH;
	tc_qp(t, pair->a);
	seen = tc_request(pair, &param).event.param.conn;
	VT_EQ(t, seen.responder_resources, (uint8_t)limits.max_qp_init_rd_atom);
	VT_EQ(t, seen.initiator_depth, (uint8_t)limits.max_qp_rd_atom);
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	seen = tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_ESTABLISHED).event.param.conn;
	tc_expect(t, pair->b_channel, pair->b, RDMA_CM_EVENT_ESTABLISHED);
	VT_EQ(t, query(t, pair->b->qp).max_dest_rd_atomic, seen.initiator_depth);
	VT_EQ(t, query(t, pair->a->qp).max_rd_atomic, seen.initiator_depth);
	tc_send(t, pair->a, pair->b);
}

/* Only an established connection ends with TIMEWAIT_EXIT. */
static void a_late_rejection_is_the_last_event(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);

	param.qp_num = tc_own_qp(t, pair->a)->qp_num;
	tc_request(pair, &param);
	param.qp_num = tc_own_qp(t, pair->b)->qp_num;
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_expect(t, pair->a_channel, pair->a, RDMA_CM_EVENT_CONNECT_RESPONSE);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_REJECTED, 28);
	VT_CHECK(t, !tc_has_event(t, pair->a_channel));
	VT_CHECK(t, !tc_has_event(t, pair->b_channel));
	VT_MINUS_ERRNO(t, vb_cm_establish(pair->a), EINVAL);
}

/* The peer's later messages raise no event: librdmacm/cma.c, rdma_get_cm_event, connect_error. */
static void a_connection_whose_qp_cannot_follow_has_one_event(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_TCP);
	struct rdma_conn_param param = tc_param(NULL, 0);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct rdma_cm_event *event;

	tc_ask(pair);
	VT_OK(t, vb_modify_qp(pair->a->qp, &attr, IBV_QP_STATE));
	tc_qp(t, pair->b);
	VT_OK(t, vb_cm_accept(pair->b, &param));
	tc_failed(t, pair->a_channel, pair->a, RDMA_CM_EVENT_CONNECT_ERROR, -1);
	VT_OK(t, vb_cm_reject(pair->b, NULL, 0));
	VT_OK(t, fcntl(pair->a_channel->fd, F_SETFL,
		       fcntl(pair->a_channel->fd, F_GETFL) | O_NONBLOCK));
	ts_pause(t, 1000000000);
	VT_MINUS_ERRNO(t, vb_cm_get_cm_event(pair->a_channel, &event), EAGAIN);
}

static void a_group_is_joined_before_the_route(struct vt *t)
{
	struct tc_pair *pair = tc_pair(t, RDMA_PS_UDP);
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = htobe32(0xef010203)};
	struct rdma_cm_id *unbound = tc_id(t, pair->a_channel, RDMA_PS_UDP);

	VT_MINUS_ERRNO(t, vb_cm_join_multicast(pair->a, (struct sockaddr *)&group, NULL), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_join_multicast(unbound, (struct sockaddr *)&group, NULL), EINVAL);
	VT_MINUS_ERRNO(t, vb_cm_leave_multicast(pair->a, (struct sockaddr *)&group), EADDRNOTAVAIL);
}

static const struct vt_test tests[] = {
	{"the_type_of_service_is_the_traffic_class", SRC_CMA "cma_resolve_iboe_route: tos",
	 VT_NEEDS_ETHERNET, the_type_of_service_is_the_traffic_class},
	{"each_side_has_its_ack_timeout", "rdma_set_option(3): RDMA_OPTION_ID_ACK_TIMEOUT",
	 VT_NEEDS_ETHERNET, each_side_has_its_ack_timeout},
	{"options_that_come_too_late_or_do_not_fit",
	 SRC_CMA "rdma_set_reuseaddr, rdma_set_afonly, rdma_set_ack_timeout", 0,
	 options_that_come_too_late_or_do_not_fit},
	{"a_program_brings_its_route", SRC_CORE "ucma.c, ucma_set_ib_path", 0,
	 a_program_brings_its_route},
	{"a_life_time_that_is_longer_than_any_timeout",
	 SRC_CORE "cm.c, cm_ack_timeout: min(31, ack_timeout)", 0,
	 a_life_time_that_is_longer_than_any_timeout},
	{"flags_of_the_programs_own_qps",
	 "rdma_connect(3): srq, flow_control; " SRC_CMA "cma_connect_ib: min_t(u8, 7, retry_count)",
	 0, flags_of_the_programs_own_qps},
	{"ece_reaches_the_other_side", "rdma_set_local_ece(3), rdma_get_remote_ece(3)", 0,
	 ece_reaches_the_other_side},
	{"ece_is_for_the_programs_own_qps", SRC_RDMA_CORE "librdmacm/cma.c, rdma_set_local_ece", 0,
	 ece_is_for_the_programs_own_qps},
	{"depths_may_be_left_to_the_devices", "rdma_connect(3): RDMA_MAX_RESP_RES", 0,
	 depths_may_be_left_to_the_devices},
	{"a_late_rejection_is_the_last_event", SRC_CMA "cma_ib_handler: IB_CM_TIMEWAIT_EXIT",
	 VT_NEEDS_VIRTUAL_CLOCK, a_late_rejection_is_the_last_event},
	{"a_connection_whose_qp_cannot_follow_has_one_event",
	 SRC_RDMA_CORE "librdmacm/cma.c, rdma_get_cm_event: connect_error", VT_NEEDS_VIRTUAL_CLOCK,
	 a_connection_whose_qp_cannot_follow_has_one_event},
	{"a_group_is_joined_before_the_route", SRC_CMA "rdma_join_multicast", 0,
	 a_group_is_joined_before_the_route},
	{NULL},
};

const struct vt_suite vt_suite_cm_options = {"cm_options", "connections: options and parameters",
					     tests};
