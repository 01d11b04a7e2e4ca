/* SPDX-License-Identifier: MIT */
/*
 * Events of ports and devices: cables, GID and P_Key tables, the subnet manager, a device's
 * failure.
 */
#include "test/conformance/sources.h"
#include "test/support/support.h"

#include <arpa/inet.h>
#include <verbena/sim.h>

/* Takes and acknowledges the next event, which must name the port. */
static void port_event_at(struct vt *t, struct vt_at at, struct vt_node *node,
			  enum ibv_event_type type)
{
	struct ibv_async_event event = {0};

	ts_settle(t);
	vt_eq(t, at, VT_KIND_ERRNO, "get_async_event", vb_get_async_event(node->ctx, &event), 0);
	vb_ack_async_event(&event);
	vt_eq(t, at, VT_KIND_EVENT, "event", event.event_type, type);
	vt_eq(t, at, VT_KIND_INTEGER, "port", event.element.port_num, node->port);
}

#define port_event(t, node, type) port_event_at(t, VT_HERE, node, type)

static enum ibv_port_state port_state(struct vt *t, struct vt_node *node)
{
	struct ibv_port_attr attr;

	VT_OK(t, vb_query_port(node->ctx, node->port, &attr, sizeof(attr)));
	return attr.state;
}

static void set_port(struct vt *t, struct vt_node *node, bool up)
{
	VT_OK(t, vb_sim_port_state(node->ctx, node->port, up));
}

static void cable_pulled_and_put_in(struct vt *t)
{
	ts_pd(t, &t->a);
	set_port(t, &t->a, false);
	port_event(t, &t->a, IBV_EVENT_PORT_ERR);
	VT_EQ(t, port_state(t, &t->a), IBV_PORT_DOWN);
	set_port(t, &t->a, true);
	port_event(t, &t->a, IBV_EVENT_PORT_ACTIVE);
	VT_EQ(t, port_state(t, &t->a), IBV_PORT_ACTIVE);
	ts_no_event(t, &t->b);
}

static void same_state_again_raises_no_event(struct vt *t)
{
	ts_pd(t, &t->a);
	set_port(t, &t->a, true);
	ts_no_event(t, &t->a);
	set_port(t, &t->a, false);
	set_port(t, &t->a, false);
	port_event(t, &t->a, IBV_EVENT_PORT_ERR);
	ts_no_event(t, &t->a);
}

static void every_context_gets_the_event(struct vt *t)
{
	struct ibv_async_event event;
	struct ibv_context *other = ts_context(t, &t->a);

	set_port(t, &t->a, false);
	port_event(t, &t->a, IBV_EVENT_PORT_ERR);
	VT_OK(t, vb_get_async_event(other, &event));
	VT_EVENT(t, event.event_type, IBV_EVENT_PORT_ERR);
	vb_ack_async_event(&event);
}

static void work_over_a_dead_port_times_out(struct vt *t)
{
	struct ts_pair *pair;
	int i;

	for (i = 0; i < 2; i++) {
		vt_row(t, "port of %c", 'A' + i);
		pair = ts_connected(t, IBV_QPT_RC);
		set_port(t, i ? &t->b : &t->a, false);
		ts_write(&pair->a, .wr_id = 1, .length = 100);
		ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
		ts_state(&pair->a, IBV_QPS_ERR);
		ts_state(&pair->b, IBV_QPS_RTS);
		ts_blank(t, pair->b.buffer, 100);
		set_port(t, i ? &t->b : &t->a, true);
		ts_drain_events(&t->a);
		ts_drain_events(&t->b);
	}
}

static void short_outage_is_repaired(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	set_port(t, &t->b, false);
	ts_write(&pair->a, .wr_id = 1, .length = 10000);
	ts_pause(t, 100000000);
	VT_EQ(t, ibv_poll_cq(pair->a.send_cq, 1, &(struct ibv_wc){0}), 0);
	set_port(t, &t->b, true);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_RDMA_WRITE);
	ts_verify(t, pair->b.buffer, 10000, 1);
	ts_transfer(pair, IBV_WR_SEND, 5000);
}

static void datagrams_over_a_dead_port_are_lost(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_UD);

	ts_recv(&pair->b, .wr_id = 50, .length = 1000);
	set_port(t, &t->b, false);
	ts_send(&pair->a, .wr_id = 1, .length = 100);
	ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
	ts_no_more(t, pair->b.recv_cq);
	set_port(t, &t->b, true);
	ts_send(&pair->a, .wr_id = 2, .length = 100);
	ts_received(t, pair->b.recv_cq, 50, 100 + TS_GRH);
}

/* --- tables --- */

static void gid_change_raises_an_event_and_is_in_the_table(struct vt *t)
{
	union ibv_gid gid = t->a.gid, found;

	ts_pd(t, &t->a);
	gid.raw[15] ^= 0x40;
	VT_OK(t, vb_sim_set_gid(t->a.ctx, t->a.port, (unsigned int)t->a.gid_index, &gid));
	port_event(t, &t->a, IBV_EVENT_GID_CHANGE);
	VT_OK(t, vb_query_gid(t->a.ctx, t->a.port, t->a.gid_index, &found));
	VT_EQ_MEM(t, &found, &gid, sizeof(gid));
}

/* When B's address changes, its old address reaches nobody and its new one reaches B. */
static void old_gid_reaches_nobody(struct vt *t)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	union ibv_gid gid = t->b.gid;

	ts_transfer(pair, IBV_WR_SEND, 100);
	gid.raw[15] ^= 0x40;
	VT_OK(t, vb_sim_set_gid(t->b.ctx, t->b.port, (unsigned int)t->b.gid_index, &gid));
	port_event(t, &t->b, IBV_EVENT_GID_CHANGE);
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	t->b.gid = gid;
	ts_transfer(ts_pair(t, &options), IBV_WR_SEND, 100);
}

static void emptied_gid_cannot_be_used(struct vt *t)
{
	static const union ibv_gid none;
	struct ibv_ah_attr attr = ts_av(&t->a, &t->b);
	struct ibv_pd *pd = ts_pd(t, &t->a);
	struct ibv_gid_entry entry;

	VT_OK(t, vb_sim_set_gid(t->a.ctx, t->a.port, (unsigned int)t->a.gid_index, &none));
	port_event(t, &t->a, IBV_EVENT_GID_CHANGE);
	VT_ERRNO(t,
		 vb_query_gid_ex(t->a.ctx, t->a.port, (uint32_t)t->a.gid_index, &entry, 0,
				 sizeof(entry)),
		 ENODATA);
	VT_CHECK(t, !vb_create_ah(pd, &attr));
}

static void set_pkeys(struct vt *t, uint16_t a, uint16_t b)
{
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, t->a.port, t->a.pkey_index, a));
	VT_OK(t, vb_sim_set_pkey(t->b.ctx, t->b.port, t->b.pkey_index, b));
}

static void pkey_change_raises_an_event_and_is_in_the_table(struct vt *t)
{
	__be16 pkey;

	ts_pd(t, &t->a);
	VT_OK(t, vb_sim_set_pkey(t->a.ctx, t->a.port, 0, 0x8123));
	port_event(t, &t->a, IBV_EVENT_PKEY_CHANGE);
	VT_OK(t, vb_query_pkey(t->a.ctx, t->a.port, 0, &pkey));
	VT_EQ(t, ntohs(pkey), 0x8123);
	VT_EQ(t, vb_get_pkey_index(t->a.ctx, t->a.port, pkey), 0);
}

/* The P_Key of each end, and whether the two may talk. */
static const struct {
	const char *name;
	uint16_t a, b;
	bool meet;
} partitions[] = {
	{"full and full", 0x8123, 0x8123, true},    {"full and limited", 0x8123, 0x0123, true},
	{"limited and full", 0x0123, 0x8123, true}, {"limited and limited", 0x0123, 0x0123, false},
	{"two partitions", 0x8123, 0x8124, false},
};

#define PARTITIONS TS_COUNT(partitions)

static void partitions_separate_connections(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;
	size_t i;

	for (i = 0; i < PARTITIONS; i++) {
		vt_row(t, "%s", partitions[i].name);
		set_pkeys(t, partitions[i].a, partitions[i].b);
		pair = ts_connected(t, IBV_QPT_RC);
		ts_write(&pair->a, .wr_id = 1, .length = 8);
		VT_EQ(t, ts_wait(t, pair->a.send_cq, 1, &wc), 1);
		VT_EXPECT_STATUS(t, wc.status,
				 partitions[i].meet ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
	}
}

static void partitions_separate_datagrams(struct vt *t)
{
	struct ts_pair *pair;
	struct ibv_wc wc;
	size_t i;

	for (i = 0; i < PARTITIONS; i++) {
		vt_row(t, "%s", partitions[i].name);
		set_pkeys(t, partitions[i].a, partitions[i].b);
		pair = ts_connected(t, IBV_QPT_UD);
		ts_recv(&pair->b, .wr_id = 50, .length = 100);
		ts_send(&pair->a, .wr_id = 1, .length = 8);
		ts_done(t, pair->a.send_cq, 1, IBV_WC_SEND);
		VT_EXPECT_EQ(t, ts_wait(t, pair->b.recv_cq, 1, &wc), partitions[i].meet);
	}
}

/* --- the subnet manager --- */

static void subnet_managers_events(struct vt *t)
{
	static const enum ibv_event_type types[] = {IBV_EVENT_CLIENT_REREGISTER,
						    IBV_EVENT_SM_CHANGE};
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);
	int i;

	for (i = 0; i < 2; i++) {
		VT_OK(t, vb_sim_port_event(t->a.ctx, t->a.port, types[i]));
		port_event(t, &t->a, types[i]);
	}
	VT_ERRNO(t, vb_sim_port_event(t->a.ctx, t->a.port, IBV_EVENT_QP_FATAL), EINVAL);
	ts_transfer(pair, IBV_WR_SEND, 100);
}

static void lid_change_raises_an_event(struct vt *t)
{
	struct ibv_port_attr attr;

	ts_pd(t, &t->a);
	VT_OK(t, vb_sim_set_lid(t->a.ctx, t->a.port, 77));
	port_event(t, &t->a, IBV_EVENT_LID_CHANGE);
	VT_OK(t, vb_query_port(t->a.ctx, t->a.port, &attr, sizeof(attr)));
	VT_EQ(t, attr.lid, 77);
}

/* --- a device that fails --- */

static void device_fatal_raises_an_event(struct vt *t)
{
	struct ibv_async_event event;

	ts_pd(t, &t->a);
	VT_OK(t, vb_sim_kill_device(t->a.ctx));
	VT_OK(t, vb_get_async_event(t->a.ctx, &event));
	vb_ack_async_event(&event);
	VT_EVENT(t, event.event_type, IBV_EVENT_DEVICE_FATAL);
	ts_no_event(t, &t->b);
}

/* The end of the test destroys the objects of the dead device, which must succeed. */
static void peers_of_a_dead_device_time_out(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	VT_OK(t, vb_sim_kill_device(t->b.ctx));
	ts_write(&pair->a, .wr_id = 1, .length = 8);
	ts_failed(t, pair->a.send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	ts_blank(t, pair->b.buffer, 8);
	ts_drain_events(&t->b);
}

static void qps_of_a_dead_device_are_in_err(struct vt *t)
{
	struct ts_pair *pair = ts_connected(t, IBV_QPT_RC);

	ts_send(&pair->a, .wr_id = 1, .length = 8);
	ts_pause(t, 1000000);
	VT_OK(t, vb_sim_kill_device(t->a.ctx));
	ts_settle(t);
	ts_state(&pair->a, IBV_QPS_ERR);
	ts_recv(&pair->b, .wr_id = 50, .length = 8);
	ts_no_more(t, pair->b.recv_cq);
	ts_drain_events(&t->a);
}

static void port_that_does_not_exist_is_einval(struct vt *t)
{
	union ibv_gid gid = t->a.gid;

	VT_EXPECT_ERRNO(t, vb_sim_port_state(t->a.ctx, 0, false), EINVAL);
	VT_EXPECT_ERRNO(t, vb_sim_port_state(t->a.ctx, 200, false), EINVAL);
	VT_EXPECT_ERRNO(t, vb_sim_set_lid(t->a.ctx, 200, 1), EINVAL);
	VT_EXPECT_ERRNO(t, vb_sim_set_gid(t->a.ctx, t->a.port, 10000, &gid), EINVAL);
	VT_EXPECT_ERRNO(t, vb_sim_set_pkey(t->a.ctx, t->a.port, 10000, 1), EINVAL);
	VT_EXPECT_ERRNO(t, vb_sim_port_event(t->a.ctx, 200, IBV_EVENT_SM_CHANGE), EINVAL);
}

#define MAN "ibv_get_async_event(3): "
#define SIM VT_NEEDS_SIM
#define TWO (VT_NEEDS_SIM | VT_NEEDS_TWO_DEVICES)

static const struct vt_test tests[] = {
	{"cable_pulled_and_put_in", MAN "PORT_ERR, PORT_ACTIVE", TWO, cable_pulled_and_put_in},
	{"same_state_again_raises_no_event", "unsourced", SIM, same_state_again_raises_no_event},
	{"every_context_gets_the_event", "unsourced", SIM, every_context_gets_the_event},
	{"work_over_a_dead_port_times_out", "unsourced", TWO, work_over_a_dead_port_times_out},
	{"short_outage_is_repaired", "unsourced", TWO, short_outage_is_repaired},
	{"datagrams_over_a_dead_port_are_lost", "unsourced", TWO,
	 datagrams_over_a_dead_port_are_lost},
	{"gid_change_raises_an_event_and_is_in_the_table", MAN "GID_CHANGE", SIM,
	 gid_change_raises_an_event_and_is_in_the_table},
	{"old_gid_reaches_nobody", "unsourced", TWO | VT_NEEDS_ETHERNET, old_gid_reaches_nobody},
	{"emptied_gid_cannot_be_used", "ibv_query_gid_ex(3): ENODATA", SIM | VT_NEEDS_ETHERNET,
	 emptied_gid_cannot_be_used},
	{"pkey_change_raises_an_event_and_is_in_the_table",
	 MAN "PKEY_CHANGE; ibv_get_pkey_index(3)", SIM,
	 pkey_change_raises_an_event_and_is_in_the_table},
	{"partitions_separate_connections", SRC_RXE "rxe_recv.c, check_keys: pkey_match", TWO,
	 partitions_separate_connections},
	{"partitions_separate_datagrams", SRC_RXE "rxe_recv.c, check_keys: pkey_match", TWO,
	 partitions_separate_datagrams},
	{"subnet_managers_events", MAN "CLIENT_REREGISTER, SM_CHANGE", SIM, subnet_managers_events},
	{"lid_change_raises_an_event", MAN "LID_CHANGE", SIM | VT_NEEDS_INFINIBAND,
	 lid_change_raises_an_event},
	{"device_fatal_raises_an_event", MAN "DEVICE_FATAL", TWO, device_fatal_raises_an_event},
	{"peers_of_a_dead_device_time_out", "unsourced", TWO, peers_of_a_dead_device_time_out},
	{"qps_of_a_dead_device_are_in_err", "unsourced", TWO, qps_of_a_dead_device_are_in_err},
	{"port_that_does_not_exist_is_einval", "unsourced", SIM,
	 port_that_does_not_exist_is_einval},
	{NULL},
};

const struct vt_suite vt_suite_ports = {"ports", "events of ports and devices", tests,
					.simulator = true};
