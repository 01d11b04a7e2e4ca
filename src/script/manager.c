/* SPDX-License-Identifier: MIT */
/* The calls of librdmacm that a script makes. A script has at most one connection. */
#include "src/script/run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <verbena/cm.h>
#include <verbena/error.h>

#define RESOLVE_MS 2000

static struct sockaddr_in address_of(const uint8_t *ip, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

	memcpy(&address.sin_addr, ip, 4);
	return address;
}

static bool check_call(struct script_run *run, const struct script_line *line, const char *call,
		       int result)
{
	return script_check_errno(run, line, call, result ? errno : 0);
}

/* Makes the event channel and an identifier. */
static bool make_id(struct script_run *run, const struct script_line *line, struct rdma_cm_id **id)
{
	struct script_manager *manager = &run->manager;

	if (*id)
		return script_fail(run->failure, line,
				   "a script listens once and has one connection");
	if (!manager->channel)
		manager->channel = vb_cm_create_event_channel(run->wire->backend);
	if (!manager->channel || vb_cm_create_id(NULL, manager->channel, id, NULL, RDMA_PS_TCP))
		return script_fail(run->failure, line, "%s", vb_last_error());
	return true;
}

bool script_listen(struct script_run *run, const struct script_line *line)
{
	struct script_manager *manager = &run->manager;
	struct sockaddr_in address = address_of(run->wire->ip, SCRIPT_LISTEN_PORT);

	if (!make_id(run, line, &manager->listener))
		return false;
	if (run->wire->infiniband)
		address.sin_addr.s_addr = INADDR_ANY; /* the simulated device has no IP address */
	if (vb_cm_bind_addr(manager->listener, (struct sockaddr *)&address))
		return script_fail(run->failure, line, "bind_addr: %s", vb_last_error());
	return check_call(run, line, "listen", vb_cm_listen(manager->listener, 8));
}

/* Waits for an event of the manager that resolves the path. */
static bool resolve(struct script_run *run, const struct script_line *line,
		    enum rdma_cm_event_type wanted, int result)
{
	const struct script_seen *seen;

	if (result)
		return script_fail(run->failure, line, "the path to the peer: %s", vb_last_error());
	seen = script_await_manager(run, (uint64_t)RESOLVE_MS * 1000000);
	if (seen && seen->manager_event == wanted)
		return true;
	return script_fail(run->failure, line, "the path to the peer: %s",
			   seen ? vb_cm_event_str(seen->manager_event) : "no event comes");
}

static struct rdma_conn_param parameters(const struct script_run *run,
					 const struct script_line *line)
{
	return (struct rdma_conn_param){
		.responder_resources = 4,
		.initiator_depth = 4,
		.retry_count = 6,
		.rnr_retry_count = 6,
		.qp_num = run->qps[line->qp].qp->qp_num,
	};
}

bool script_connect(struct script_run *run, const struct script_line *line)
{
	struct script_manager *manager = &run->manager;
	struct sockaddr_in from = address_of(run->wire->ip, 0),
			   to = address_of(run->wire->peer_ip, SCRIPT_LISTEN_PORT);
	struct rdma_conn_param param = parameters(run, line);

	if (!make_id(run, line, &manager->id))
		return false;
	if (!resolve(run, line, RDMA_CM_EVENT_ADDR_RESOLVED,
		     vb_cm_resolve_addr(manager->id, (struct sockaddr *)&from,
					(struct sockaddr *)&to, RESOLVE_MS)) ||
	    !resolve(run, line, RDMA_CM_EVENT_ROUTE_RESOLVED,
		     vb_cm_resolve_route(manager->id, RESOLVE_MS)))
		return false;
	run->last_ns = run->wire->now(run->wire);
	return check_call(run, line, "connect", vb_cm_connect(manager->id, &param));
}

static bool has_id(struct script_run *run, const struct script_line *line)
{
	return run->manager.id ||
	       script_fail(run->failure, line,
			   "there is no connection; a line 'connect', or 'cm_event "
			   "CONNECT_REQUEST', begins one");
}

bool script_accept(struct script_run *run, const struct script_line *line)
{
	struct rdma_conn_param param = parameters(run, line);

	return has_id(run, line) &&
	       check_call(run, line, "accept", vb_cm_accept(run->manager.id, &param));
}

bool script_establish(struct script_run *run, const struct script_line *line)
{
	return has_id(run, line) &&
	       check_call(run, line, "establish", vb_cm_establish(run->manager.id));
}

bool script_reject(struct script_run *run, const struct script_line *line)
{
	return has_id(run, line) &&
	       check_call(run, line, "reject", vb_cm_reject(run->manager.id, NULL, 0));
}

bool script_disconnect(struct script_run *run, const struct script_line *line)
{
	return has_id(run, line) &&
	       check_call(run, line, "disconnect", vb_cm_disconnect(run->manager.id));
}

/* --- events --- */

int script_find_manager_event(const char *name)
{
	for (int i = 0; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT; i++)
		if (strcmp(vb_cm_event_str((enum rdma_cm_event_type)i) + strlen("RDMA_CM_EVENT_"),
			   name) == 0)
			return i;
	return -1;
}

bool script_take_manager_event(struct script_run *run, struct script_seen *seen)
{
	struct rdma_cm_event *event;

	if (vb_cm_get_cm_event(run->manager.channel, &event))
		return false;
	seen->manager_event = event->event;
	seen->status = event->status;
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST && !run->manager.id)
		run->manager.id = event->id;
	vb_cm_ack_cm_event(event);
	return true;
}

void script_end_manager(struct script_run *run)
{
	struct script_manager *manager = &run->manager;

	if (manager->id)
		vb_cm_destroy_id(manager->id);
	if (manager->listener)
		vb_cm_destroy_id(manager->listener);
	if (manager->channel)
		vb_cm_destroy_event_channel(manager->channel);
}
