/* SPDX-License-Identifier: MIT */
/*
 * usage: explore-connections [-p PAIRS] [-w WALKS] [-j JOBS] [-k KINDS] [-r] [-i] [WAY...]
 *
 * Explores how connections are made, used and ended: by the connection manager, by a channel and by agents.
 * Whatever message is lost, the connection comes about and carries its data; whatever call or allocation
 * fails, the failure is reported, nothing hangs, and nothing is left.
 */
#include "test/explore/program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <verbena/channel.h>
#include <verbena/cm.h>
#include <verbena/explore.h>
#include <verbena/rdma.h>
#include <verbena/sim.h>

#define MESSAGE_BYTES 64
#define TIMEOUT_MS    1000
#define PORT	      7000
#define STEP_NS	      100000ull
#define LIMIT_NS      10000000000ull

/* --- the connection manager --- */

/* One side. */
struct side {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	char bytes[MESSAGE_BYTES];
	bool established, disconnected;
};

struct meeting {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener;
	struct side client, server;
};

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

static void end_side(struct side *side)
{
	if (side->mr)
		vb_dereg_mr(side->mr);
	if (side->id && side->id->qp)
		vb_cm_destroy_qp(side->id);
	if (side->id)
		vb_cm_destroy_id(side->id);
}

static void end_meeting(struct meeting *meeting)
{
	end_side(&meeting->client);
	end_side(&meeting->server);
	if (meeting->listener)
		vb_cm_destroy_id(meeting->listener);
	if (meeting->channel)
		vb_cm_destroy_event_channel(meeting->channel);
}

/* Makes the QP and registers the message; each side posts a receive. */
static bool make_qp(struct side *side)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_recv_wr *bad, wr = {.num_sge = 1};
	struct ibv_sge sge;

	if (vb_cm_create_qp(side->id, NULL, &attr))
		return false;
	side->mr =
		vb_reg_mr(side->id->pd, side->bytes, sizeof(side->bytes), IBV_ACCESS_LOCAL_WRITE);
	if (!side->mr)
		return false;
	sge = (struct ibv_sge){(uintptr_t)side->bytes, MESSAGE_BYTES, side->mr->lkey};
	wr.sg_list = &sge;
	return !vb_post_recv(side->id->qp, &wr, &bad);
}

static bool connect_client(struct side *client)
{
	struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};

	return make_qp(client) && !vb_cm_connect(client->id, &param);
}

static bool accept_request(struct side *server, struct rdma_cm_id *id)
{
	struct rdma_conn_param param = {.rnr_retry_count = 7};

	server->id = id;
	return make_qp(server) && !vb_cm_accept(id, &param);
}

/* Does what an event asks for. Returns false after a failure. */
static bool handle(struct meeting *meeting, enum rdma_cm_event_type type, struct rdma_cm_id *id)
{
	struct side *side = id == meeting->client.id ? &meeting->client : &meeting->server;

	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		return !vb_cm_resolve_route(id, TIMEOUT_MS);
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		return connect_client(side);
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept_request(&meeting->server, id);
	case RDMA_CM_EVENT_ESTABLISHED:
		return side->established = true;
	case RDMA_CM_EVENT_DISCONNECTED:
		return side->disconnected = true;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		return true;
	default:
		return false;
	}
}

/* Takes one event. */
static bool take_event(struct meeting *meeting)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (vb_cm_get_cm_event(meeting->channel, &event))
		return false;
	type = event->event;
	id = event->id;
	vb_cm_ack_cm_event(event);
	return handle(meeting, type, id);
}

static bool begin_meeting(struct meeting *meeting)
{
	struct sockaddr_in address = address_of("10.0.0.2");
	struct sockaddr *to = (struct sockaddr *)&address;

	meeting->channel = vb_cm_create_event_channel("sim");
	return meeting->channel &&
	       !vb_cm_create_id(NULL, meeting->channel, &meeting->listener, NULL, RDMA_PS_TCP) &&
	       !vb_cm_bind_addr(meeting->listener, to) && !vb_cm_listen(meeting->listener, 4) &&
	       !vb_cm_create_id(NULL, meeting->channel, &meeting->client.id, NULL, RDMA_PS_TCP) &&
	       !vb_cm_resolve_addr(meeting->client.id, NULL, to, TIMEOUT_MS);
}

static int take_success(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;
	int taken;

	while (!(taken = vb_poll_cq(cq, 1, &wc)))
		;
	if (taken < 0 || wc.status != IBV_WC_SUCCESS)
		return vb_explore_wrong("the %s ends with %s", what,
					taken < 0 ? "no completion" : vb_wc_status_str(wc.status));
	return VB_ENDED_WELL;
}

static int send_message(struct meeting *meeting)
{
	const struct side *client = &meeting->client, *server = &meeting->server;
	struct ibv_sge sge = {(uintptr_t)client->bytes, MESSAGE_BYTES, client->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};
	int end;

	memset(meeting->client.bytes, 0x5a, MESSAGE_BYTES);
	if (vb_post_send(client->id->qp, &wr, &bad))
		return VB_ENDED_REPORTED;
	end = take_success(client->id->send_cq, "send");
	if (!end)
		end = take_success(server->id->recv_cq, "receive");
	if (!end && memcmp(client->bytes, server->bytes, MESSAGE_BYTES) != 0)
		end = vb_explore_wrong("the server has received other bytes");
	return end;
}

/* The client ends the connection, and both sides learn of it. */
static int end_connection(struct meeting *meeting)
{
	if (vb_cm_disconnect(meeting->client.id))
		return VB_ENDED_REPORTED;
	while (!meeting->client.disconnected || !meeting->server.disconnected)
		if (!take_event(meeting))
			return VB_ENDED_REPORTED;
	return VB_ENDED_WELL;
}

static int meet(struct meeting *meeting)
{
	int end;

	if (!begin_meeting(meeting))
		return VB_ENDED_REPORTED;
	while (!meeting->client.established || !meeting->server.established)
		if (!take_event(meeting))
			return VB_ENDED_REPORTED;
	end = send_message(meeting);
	return end ? end : end_connection(meeting);
}

static int run_cm(void *arg)
{
	struct meeting meeting = {.channel = NULL};
	const int end = meet(&meeting);

	end_meeting(&meeting);
	return end;
}

/* --- a channel of <verbena/channel.h> --- */

struct channel_end {
	struct vb_device *device;
	struct vb_group *group;
	struct vb_region *region;
	struct vb_channel *channel;
};

static bool open_end(struct channel_end *end, const char *name)
{
	struct vb_qp_config config;

	vb_qp_config_init(&config);
	end->device = vb_device_open_named("sim", name, 0, VB_GID_INDEX_ANY);
	if (!end->device)
		return false;
	end->group = vb_group_open(end->device, NULL);
	if (!end->group)
		return false;
	end->region = vb_group_alloc(end->group, 4096);
	if (!end->region)
		return false;
	end->channel = vb_channel_prepare(end->group, &config);
	return end->channel;
}

static int close_end(struct channel_end *end)
{
	int err = end->channel ? vb_channel_close(end->channel) : 0;

	if (end->region && !err)
		err = vb_region_free(end->region);
	if (end->group && !err)
		err = vb_group_close(end->group);
	if (end->device && !err)
		err = vb_device_close(end->device);
	return err;
}

static int exchange(struct channel_end ends[2])
{
	const struct vb_slice from = {ends[0].region, 0, MESSAGE_BYTES};
	const struct vb_slice into = {ends[1].region, 1024, MESSAGE_BYTES};
	struct vb_result result;
	struct vb_work works[2];

	memset(ends[0].region->addr, 0x5a, MESSAGE_BYTES);
	if (vb_channel_connect_pair(ends[0].channel, ends[1].channel) ||
	    vb_channel_receive(ends[1].channel, &into, &works[1]) ||
	    vb_channel_send(ends[0].channel, &from, &works[0]))
		return VB_ENDED_REPORTED;
	for (unsigned int i = 0; i < 2; i++)
		if (vb_work_wait(works[i], VB_FOREVER, &result) || result.status != IBV_WC_SUCCESS)
			return VB_ENDED_REPORTED;
	if (memcmp((char *)ends[1].region->addr + 1024, ends[0].region->addr, MESSAGE_BYTES) != 0)
		return vb_explore_wrong("other bytes have been received");
	return VB_ENDED_WELL;
}

static int run_channel(void *arg)
{
	struct channel_end ends[2] = {{.device = NULL}};
	int end = VB_ENDED_REPORTED, err;

	if (open_end(&ends[0], "sim0") && open_end(&ends[1], "sim1"))
		end = exchange(ends);
	for (unsigned int i = 0; i < 2; i++) {
		err = close_end(&ends[i]);
		if (err)
			end = vb_explore_wrong("an end does not close: %s", strerror(err));
	}
	return end;
}

/* --- agents of <verbena/rdma.h> --- */

struct agents {
	struct vb_rdma_hall *hall;
	struct vb_rdma_agent *agent[2];
	struct vb_rdma_listener *listener;
	struct vb_rdma *rdma[2];
	struct vb_local_mr *local;
	struct vb_remote_mr *remote;
};

/* Drives both agents until the operation has ended. An agent does not learn of the failure of its peer. */
static int finish(struct agents *agents, struct vb_rdma_op op, struct vb_rdma_result *result)
{
	const uint64_t until_ns = vb_sim_now_ns(NULL) + LIMIT_NS;
	int err = vb_rdma_poll(op, result);

	while (err == EAGAIN && vb_sim_now_ns(NULL) < until_ns) {
		vb_rdma_progress(agents->agent[1], 0);
		vb_rdma_progress(agents->agent[0], STEP_NS);
		err = vb_rdma_poll(op, result);
	}
	if (err == EAGAIN)
		vb_rdma_cancel(op);
	return err;
}

static int perform(struct agents *agents, const struct vb_rdma_request *request,
		   struct vb_rdma_result *result)
{
	struct vb_rdma_op op;
	const int err = vb_rdma_start(request, &op);

	return err ? err : finish(agents, op, result);
}

static bool open_agents(struct agents *agents)
{
	static const char *const names[] = {"sim0", "sim1"};
	struct vb_rdma_options options;

	agents->hall = vb_rdma_hall_open();
	if (!agents->hall)
		return false;
	vb_rdma_options_init(&options);
	options.backend = "sim";
	options.exchange = vb_rdma_exchange_local();
	options.exchange_arg = agents->hall;
	options.pool_bytes = 65536;
	options.connections = 2;
	for (unsigned int i = 0; i < 2; i++) {
		options.device = names[i];
		agents->agent[i] = vb_rdma_agent_open(&options);
		if (!agents->agent[i])
			return false;
	}
	agents->listener = vb_rdma_listen(agents->agent[1], "server");
	return agents->listener;
}

/* The connection of the client comes first; the server's waits in its listener. */
static int join_agents(struct agents *agents)
{
	struct vb_rdma_result result;
	int err = perform(agents,
			  &(struct vb_rdma_request){.operation = VB_RDMA_CONNECT,
						    .agent = agents->agent[0],
						    .address = "server"},
			  &result);

	if (err)
		return err;
	agents->rdma[0] = result.rdma;
	err = perform(agents,
		      &(struct vb_rdma_request){.operation = VB_RDMA_ACCEPT,
						.listener = agents->listener},
		      &result);
	if (!err)
		agents->rdma[1] = result.rdma;
	return err;
}

static int use_region(struct agents *agents)
{
	struct vb_rdma_result result;
	struct vb_local_slice slice;
	int err;

	agents->local = vb_alloc_local_mr(agents->agent[0], MESSAGE_BYTES, 8);
	if (!agents->local)
		return errno;
	err = perform(agents,
		      &(struct vb_rdma_request){.operation = VB_RDMA_REQUEST_REMOTE_MR,
						.rdma = agents->rdma[0],
						.length_bytes = MESSAGE_BYTES,
						.access = VB_MR_ALL},
		      &result);
	if (err)
		return err;
	agents->remote = result.remote;
	memset(vb_local_mr_addr(agents->local), 0x5a, MESSAGE_BYTES);
	slice = (struct vb_local_slice){agents->local, 0, MESSAGE_BYTES};
	err = vb_rdma_write(agents->rdma[0], &slice, agents->remote, 0, LIMIT_NS);
	memset(vb_local_mr_addr(agents->local), 0, MESSAGE_BYTES);
	return err ? err : vb_rdma_read(agents->rdma[0], &slice, agents->remote, 0, LIMIT_NS);
}

static int use_agents(struct agents *agents)
{
	static const char message[MESSAGE_BYTES] = "hello";
	char bytes[2 * MESSAGE_BYTES];

	if (join_agents(agents) ||
	    vb_rdma_send(agents->rdma[0], message, sizeof(message), LIMIT_NS) ||
	    vb_rdma_receive(agents->rdma[1], bytes, sizeof(bytes), NULL, LIMIT_NS))
		return VB_ENDED_REPORTED;
	if (memcmp(bytes, message, sizeof(message)) != 0)
		return vb_explore_wrong("the server has received other bytes");
	if (use_region(agents))
		return VB_ENDED_REPORTED;
	if (*(const char *)vb_local_mr_addr(agents->local) != 0x5a)
		return vb_explore_wrong("the client has read other bytes than it has written");
	return VB_ENDED_WELL;
}

static void close_agents(struct agents *agents)
{
	if (agents->remote)
		vb_remote_mr_put(agents->remote);
	if (agents->local)
		vb_local_mr_put(agents->local);
	for (unsigned int i = 0; i < 2; i++)
		if (agents->rdma[i])
			vb_rdma_close(agents->rdma[i]);
	if (agents->listener)
		vb_rdma_listener_close(agents->listener);
	for (unsigned int i = 0; i < 2; i++)
		if (agents->agent[i])
			vb_rdma_agent_close(agents->agent[i]);
	if (agents->hall)
		vb_rdma_hall_close(agents->hall);
}

static int run_agents(void *arg)
{
	struct agents agents = {.hall = NULL};
	const int end = open_agents(&agents) ? use_agents(&agents) : VB_ENDED_REPORTED;

	close_agents(&agents);
	return end;
}

static const struct explored ways[] = {
	{"cm", run_cm, NULL},
	{"channel", run_channel, NULL},
	{"agents", run_agents, NULL},
	{NULL},
};

int main(int argc, char **argv)
{
	return explore_program(argc, argv, ways);
}
