/* SPDX-License-Identifier: MIT */
/* Communications: creation, lookup, events, end. */
#include "sim/cm/private.h"

#include "sim/base/refuse.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A communication ID has 32 bits. ID 0 stands for none. */
#define PLACE_BITS	18
#define GENERATION_BITS 14
#define FIRST_ID	1

static const char *const state_names[SIM_CM_STATES] = {
	[SIM_CM_IDLE] = "IDLE",
	[SIM_CM_LISTEN] = "LISTEN",
	[SIM_CM_REQ_SENT] = "REQ_SENT",
	[SIM_CM_REQ_RCVD] = "REQ_RCVD",
	[SIM_CM_MRA_REQ_SENT] = "MRA_REQ_SENT",
	[SIM_CM_MRA_REQ_RCVD] = "MRA_REQ_RCVD",
	[SIM_CM_REP_SENT] = "REP_SENT",
	[SIM_CM_REP_RCVD] = "REP_RCVD",
	[SIM_CM_MRA_REP_SENT] = "MRA_REP_SENT",
	[SIM_CM_MRA_REP_RCVD] = "MRA_REP_RCVD",
	[SIM_CM_ESTABLISHED] = "ESTABLISHED",
	[SIM_CM_DREQ_SENT] = "DREQ_SENT",
	[SIM_CM_DREQ_RCVD] = "DREQ_RCVD",
	[SIM_CM_TIMEWAIT] = "TIMEWAIT",
	[SIM_CM_SIDR_REQ_SENT] = "SIDR_REQ_SENT",
	[SIM_CM_SIDR_REQ_RCVD] = "SIDR_REQ_RCVD",
};

const char *sim_cm_state_name(enum sim_cm_state state)
{
	return state_names[state];
}

uint8_t sim_cm_ack_timeout(unsigned int ack_delay, unsigned int packet_life_time)
{
	unsigned int timeout = packet_life_time + 1;

	if (timeout >= ack_delay)
		timeout += ack_delay >= timeout - 1;
	else
		timeout = ack_delay + (timeout >= ack_delay - 1);
	return (uint8_t)(timeout < 31 ? timeout : 31);
}

/* --- the manager --- */

void sim_cm_queue(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival)
{
	arrival->next = NULL;
	*manager->end = arrival;
	manager->end = &arrival->next;
	manager->engine->cm_waits = true;
}

void sim_cm_spare(struct sim_cm_manager *manager, struct sim_cm_arrival *arrival)
{
	arrival->next = manager->spare;
	manager->spare = arrival;
}

/* Queues a message of QP 1 for sim_cm_run(), so that no step is entered from inside another step. */
static void arrive(void *arg, const struct sim_gsi_message *message)
{
	struct sim_cm_manager *manager = arg;
	struct sim_cm_arrival *arrival = manager->spare;

	if (arrival) {
		manager->spare = arrival->next;
	} else if (manager->arrivals < SIM_CM_WAITING_MAX) {
		arrival = malloc(sizeof(*arrival));
		manager->arrivals += arrival != NULL;
	}
	if (!arrival) {
		sim_gsi_drop(message, SIM_DISCARD_CM_FULL, VB_WHY_DROP_CM_FULL, manager->arrivals,
			     0);
		return;
	}
	arrival->port = message->port;
	arrival->route = *message->route;
	arrival->process = message->process;
	arrival->until_ns = 0;
	arrival->pkey = message->pkey;
	memcpy(arrival->mad, message->mad, SIM_MAD_BYTES);
	sim_cm_queue(manager, arrival);
}

static uint64_t server(void *arg, const struct sim_port *port, const uint8_t *mad)
{
	return sim_cm_server(arg, port, mad);
}

/* The answer to a request comes from the process that the request has gone to last. */
static void sent(void *arg, const uint8_t *mad, uint64_t process)
{
	struct sim_cm *cm = sim_cm_find_sender(arg, mad);

	if (cm)
		sim_cm_watch(cm, process);
}

bool sim_cm_run(struct sim_engine *engine)
{
	struct sim_cm_manager *manager = engine->cm;
	struct sim_cm_arrival *arrival;

	if (!engine->cm_waits)
		return false;
	arrival = manager->first;
	manager->first = arrival->next;
	if (!manager->first)
		manager->end = &manager->first;
	engine->cm_waits = manager->first;
	if (sim_cm_wait_for_listener(manager, arrival))
		return true;
	sim_cm_receive(manager,
		       &(struct sim_gsi_message){arrival->port, arrival->mad, &arrival->route,
						 arrival->pkey, arrival->process});
	sim_cm_spare(manager, arrival);
	return true;
}

static void number(struct sim_cm_manager *manager, uint32_t random)
{
	struct sim_engine *engine = manager->engine;
	const struct sim_claim claim = {
		.take = engine->host.claim_numbers,
		.arg = engine->host.claim_arg,
		.numbers = SIM_NUMBERS_COMMUNICATION,
	};

	sim_table_init(&manager->table, PLACE_BITS, GENERATION_BITS, FIRST_ID, SIM_CM_MAX);
	if (claim.take)
		sim_table_claim(&manager->table, &claim);
	else
		sim_table_renumber(&manager->table, random);
}

/* Returns NULL if memory is out. */
static struct sim_cm_manager *make_manager(struct sim_clock *clock)
{
	struct sim_cm_manager *manager = calloc(1, sizeof(*manager));

	if (!manager)
		return NULL;
	sim_timer_init(&manager->watch, sim_cm_look_at_peers);
	sim_timer_init(&manager->patience, sim_cm_look_for_listeners);
	if (!sim_clock_reserve(clock)) {
		if (!sim_clock_reserve(clock))
			return manager;
		sim_clock_release(clock, &manager->watch);
	}
	free(manager);
	return NULL;
}

int sim_cm_start(struct sim_engine *engine, const struct sim_cm_owner *owner)
{
	struct sim_cm_manager *manager = make_manager(&engine->clock);
	/* A copy: the other random numbers of the engine stay the same. */
	uint64_t random = engine->random ^ UINT64_C(0x434d);
	struct sim_gsi gsi = {manager, arrive, server, sent};

	assert(!engine->cm);
	if (!manager)
		return sim_refuse_memory(engine);
	manager->engine = engine;
	manager->owner = *owner;
	manager->end = &manager->first;
	manager->random = (uint32_t)sim_random_next(&random);
	number(manager, (uint32_t)sim_random_next(&random));
	engine->cm = manager;
	sim_gsi_set(engine, &gsi);
	return 0;
}

static void free_arrivals(struct sim_cm_arrival *arrival)
{
	while (arrival) {
		struct sim_cm_arrival *next = arrival->next;

		free(arrival);
		arrival = next;
	}
}

void sim_cm_stop(struct sim_engine *engine)
{
	struct sim_cm_manager *manager = engine->cm;

	if (!manager)
		return;
	assert(manager->table.live == 0);
	sim_gsi_set(engine, NULL);
	sim_cm_drop_patient(manager);
	sim_clock_release(&engine->clock, &manager->patience);
	sim_clock_release(&engine->clock, &manager->watch);
	free_arrivals(manager->first);
	free_arrivals(manager->spare);
	sim_cm_services_destroy(manager);
	sim_table_destroy(&manager->table);
	engine->cm = NULL;
	engine->cm_waits = false;
	free(manager);
}

/* Drops the messages that wait. */
static void drop_arrivals(struct sim_cm_manager *manager)
{
	sim_cm_drop_patient(manager);
	*manager->end = manager->spare;
	manager->spare = manager->first;
	manager->first = NULL;
	manager->end = &manager->first;
	manager->engine->cm_waits = false;
}

void sim_cm_forked(struct sim_engine *engine)
{
	struct sim_cm_manager *manager = engine->cm;
	uint32_t cursor = 0;
	struct sim_cm *cm;

	if (!manager)
		return;
	while ((cm = sim_table_next(&manager->table, &cursor))) {
		sim_cm_index_remove(&manager->by_service, &cm->by_service);
		sim_cm_enter(cm, SIM_CM_IDLE);
	}
	drop_arrivals(manager);
	sim_gsi_forget(engine);
	sim_cm_services_forget(manager);
	sim_table_renumber(&manager->table, manager->random);
}

/* --- communications --- */

static int insert(struct sim_cm_manager *manager, struct sim_cm *cm)
{
	int err = sim_table_insert(&manager->table, cm, &cm->local_id);

	if (!err)
		return 0;
	if (err != ENOMEM)
		return sim_refuse_numbers(manager->engine, "communication IDs");
	return manager->table.live >= SIM_CM_MAX
		       ? sim_refuse(manager->engine, (struct vb_why){VB_WHY_CM_LIMIT, {SIM_CM_MAX}})
		       : sim_refuse_memory(manager->engine);
}

int sim_cm_create(struct sim_engine *engine, void *user, struct sim_cm **out)
{
	struct sim_cm *cm = calloc(1, sizeof(*cm));
	int err;

	if (!cm)
		return sim_refuse_memory(engine);
	sim_timer_init(&cm->timer, sim_cm_expire);
	cm->engine = engine;
	cm->user = user;
	if (sim_clock_reserve(&engine->clock)) {
		free(cm);
		return sim_refuse_memory(engine);
	}
	err = insert(engine->cm, cm);
	if (err) {
		sim_clock_release(&engine->clock, &cm->timer);
		free(cm);
		return err;
	}
	*out = cm;
	return 0;
}

/* Sends the message that tells the peer that the communication ends: Linux drivers/infiniband/core/cm.c,
 * cm_destroy_id(). */
static void say_goodbye(struct sim_cm *cm)
{
	struct sim_cm_rejection rejection = {.reason = SIM_CM_REJ_CONSUMER};
	const uint64_t guid = htobe64(cm->path.source ? cm->path.source->device->node_guid : 0);

	switch (cm->state) {
	case SIM_CM_REQ_SENT:
	case SIM_CM_MRA_REQ_RCVD:
		/* The peer may not know the ID of this side: the GUID identifies the REQ. */
		rejection.reason = SIM_CM_REJ_TIMEOUT;
		rejection.ari = &guid;
		rejection.ari_bytes = sizeof(guid);
		sim_cm_send_rej(cm, &rejection);
		break;
	case SIM_CM_REQ_RCVD:
	case SIM_CM_MRA_REQ_SENT:
	case SIM_CM_REP_SENT:
	case SIM_CM_REP_RCVD:
	case SIM_CM_MRA_REP_SENT:
	case SIM_CM_MRA_REP_RCVD:
		sim_cm_send_rej(cm, &rejection);
		break;
	case SIM_CM_ESTABLISHED:
		/* The program that has the target QP of XRC may live longer than the communication. */
		if (cm->qp_type != IBV_QPT_XRC_RECV)
			sim_cm_send_dreq(cm, &(struct sim_cm_private){0});
		break;
	case SIM_CM_DREQ_RCVD:
		sim_cm_send_drep(cm, &(struct sim_cm_private){0});
		break;
	case SIM_CM_SIDR_REQ_RCVD:
		sim_cm_send_sidr_rep(cm, &(struct sim_cm_answer){.status = SIM_CM_SIDR_REJECT});
		break;
	default:
		break;
	}
}

bool sim_cm_leave(struct sim_engine *engine)
{
	struct sim_cm_manager *manager = engine->cm;
	uint32_t cursor = 0;
	bool sent = false;
	struct sim_cm *cm;

	while (manager && (cm = sim_table_next(&manager->table, &cursor))) {
		const enum sim_cm_state before = cm->state;

		say_goodbye(cm);
		sent |= cm->state != before;
	}
	return sent;
}

void sim_cm_destroy(struct sim_cm *cm)
{
	struct sim_engine *engine = cm->engine;

	if (cm->state == SIM_CM_LISTEN)
		sim_cm_close_service(cm);
	else
		say_goodbye(cm);
	sim_cm_enter(cm, SIM_CM_IDLE);
	sim_table_remove(&engine->cm->table, cm->local_id);
	sim_clock_release(&engine->clock, &cm->timer);
	free(cm);
}

enum sim_cm_state sim_cm_state(const struct sim_cm *cm)
{
	return cm->state;
}

struct sim_device *sim_cm_device(const struct sim_cm *cm)
{
	return cm->path.source ? cm->path.source->device : NULL;
}

void *sim_cm_user(const struct sim_cm *cm)
{
	return cm->user;
}

void sim_cm_set_user(struct sim_cm *cm, void *user)
{
	cm->user = user;
}

uint32_t sim_cm_local_id(const struct sim_cm *cm)
{
	return cm->local_id;
}

uint32_t sim_cm_remote_id(const struct sim_cm *cm)
{
	return cm->remote_id;
}

/* --- states --- */

void sim_cm_enter(struct sim_cm *cm, enum sim_cm_state state)
{
	struct sim_cm_manager *manager = cm->engine->cm;

	sim_timer_disarm(&cm->timer);
	cm->state = state;
	if (state != SIM_CM_IDLE && state != SIM_CM_TIMEWAIT)
		return;
	sim_cm_index_remove(&manager->by_remote_qpn, &cm->by_remote_qpn);
	cm->peer = 0;
	if (state == SIM_CM_TIMEWAIT)
		return;
	sim_cm_forget_request(cm);
	sim_cm_index_remove(&manager->by_remote_id, &cm->by_remote_id);
	sim_cm_index_remove(&manager->by_request, &cm->by_request);
	cm->remote_id = 0;
}

void sim_cm_enter_timewait(struct sim_cm *cm)
{
	sim_cm_enter(cm, SIM_CM_TIMEWAIT);
	sim_timer_arm(&cm->engine->clock, &cm->timer,
		      sim_clock_now_ns(&cm->engine->clock) + sim_cm_time_ns(cm->ack_timeout));
}

enum sim_cm_verdict sim_cm_tell(struct sim_cm *cm, const struct sim_cm_event *event)
{
	const struct sim_cm_owner *owner = &cm->engine->cm->owner;

	return owner->event(owner->arg, cm, event);
}

void sim_cm_tell_plainly(struct sim_cm *cm, enum sim_cm_event_kind kind,
			 const uint8_t *private_data, size_t private_bytes)
{
	const struct sim_cm_event event = {
		.kind = kind,
		.private_data = {private_data, private_bytes},
	};

	sim_cm_tell(cm, &event);
}

int sim_cm_notify(struct sim_cm *cm)
{
	static const uint8_t nothing[SIM_CM_RTU_PRIVATE_BYTES];

	if (cm->state == SIM_CM_ESTABLISHED)
		return sim_refuse(cm->engine, (struct vb_why){VB_WHY_CM_STANDS, {cm->local_id}});
	if (cm->state != SIM_CM_REP_SENT && cm->state != SIM_CM_MRA_REP_RCVD)
		return sim_refuse(cm->engine,
				  (struct vb_why){VB_WHY_CM_NOT_PENDING,
						  {cm->local_id},
						  .text = sim_cm_state_name(cm->state)});
	sim_cm_enter(cm, SIM_CM_ESTABLISHED);
	sim_cm_tell_plainly(cm, SIM_CM_EVENT_RTU, nothing, sizeof(nothing));
	return 0;
}
