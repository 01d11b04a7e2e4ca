/* SPDX-License-Identifier: MIT */
#include "test/support/joined.h"

#include "sim/base/refuse.h"
#include "sim/net/net.h"
#include "sim/net/service_address.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const unsigned int place_bits[SIM_NUMBERS] = {
	[SIM_NUMBERS_QP] = 18,
	[SIM_NUMBERS_SRQ] = 18,
	[SIM_NUMBERS_KEY] = SIM_KEY_PLACE_BITS,
	[SIM_NUMBERS_COMMUNICATION] = 18,
};

bool joined_claim(void *arg, uint32_t device_index, unsigned int numbers, uint32_t *block,
		  uint16_t *generation)
{
	struct joined_way *way = arg;
	struct joined *joined = way->joined;

	(void)device_index;
	*block = joined->next_block[numbers]++;
	*generation = (uint16_t)(3 + way->from);
	if (*block >= 1u << place_bits[numbers] >> 8)
		return false;
	joined->owners[numbers][*block] = (uint8_t)(way->from + 1);
	return true;
}

/* The engine that has a QPN; 2: nobody. */
static unsigned int owner_of(const struct joined *joined, uint32_t qpn)
{
	const unsigned int owner =
		joined->owners[SIM_NUMBERS_QP][(qpn & ((1u << 18) - 1)) / SIM_BLOCK_PLACES];

	return owner ? owner - 1 : 2;
}

/* --- services --- */

static struct joined_service *find_service(struct joined *joined, unsigned int owner,
					   uint64_t service_id, const uint8_t address[16])
{
	for (unsigned int i = 0; i < joined->service_count; i++) {
		struct joined_service *service = &joined->services[i];

		if (service->owner == owner && service->service_id == service_id &&
		    memcmp(service->address, address, 16) == 0)
			return service;
	}
	return NULL;
}

/* Returns the errno value of a reservation of the other engine that excludes another one; 0: there is none. */
static int find_conflict(const struct joined_way *way, uint64_t service_id,
			 const uint8_t address[16], uint32_t flags)
{
	const struct joined *joined = way->joined;

	for (unsigned int i = 0; i < joined->service_count; i++) {
		const struct joined_service *service = &joined->services[i];
		const uint32_t listens = service->listens ? SIM_SERVICE_SHARED : 0;
		const int err = sim_service_conflict(address, flags, service->address,
						     service->flags & ~listens);

		if (service->owner != way->from && service->service_id == service_id && err)
			return err;
	}
	return 0;
}

static int reserve(void *arg, uint64_t service_id, const uint8_t address[16], uint32_t flags)
{
	const struct joined_way *way = arg;
	struct joined *joined = way->joined;
	struct joined_service *service;
	int err = find_conflict(way, service_id, address, flags);

	if (err)
		return err;
	if (joined->service_count == JOINED_SERVICES)
		return ENOMEM;
	service = &joined->services[joined->service_count++];
	*service = (struct joined_service){
		way->from, service_id, {0}, flags & ~(uint32_t)SIM_SERVICE_UNIQUE, false};
	memcpy(service->address, address, sizeof(service->address));
	return 0;
}

static void unreserve(void *arg, uint64_t service_id, const uint8_t address[16])
{
	const struct joined_way *way = arg;
	struct joined *joined = way->joined;
	struct joined_service *service = find_service(joined, way->from, service_id, address);

	if (service)
		*service = joined->services[--joined->service_count];
}

static int listen_on(void *arg, uint64_t service_id, const uint8_t address[16], bool on)
{
	const struct joined_way *way = arg;
	struct joined_service *own = find_service(way->joined, way->from, service_id, address);
	int err = on ? find_conflict(way, service_id, address,
				     own->flags & ~(uint32_t)SIM_SERVICE_SHARED)
		     : 0;

	if (!err)
		own->listens = on;
	return err;
}

static uint64_t server(void *arg, const struct sim_device *device,
		       const struct sim_gsi_target *target)
{
	const struct joined_way *way = arg;
	const struct joined *joined = way->joined;
	const uint32_t block = (target->communication_id & ((1u << 18) - 1)) / SIM_BLOCK_PLACES;

	(void)device;
	if (way->no_services)
		return 0;
	if (target->kind == SIM_GSI_REQUEST)
		return joined->taken[!way->from] == target->communication_id;
	if (target->kind == SIM_GSI_EVERYBODY)
		return UINT64_MAX;
	if (target->kind == SIM_GSI_COMMUNICATION)
		return joined->owners[SIM_NUMBERS_COMMUNICATION][block] == !way->from + 1u;
	for (unsigned int i = 0; i < joined->service_count; i++) {
		const struct joined_service *service = &joined->services[i];

		if (service->owner != way->from && service->listens &&
		    service->service_id == target->service_id &&
		    sim_service_suits(service->address, service->flags, target->address))
			return 1;
	}
	return 0;
}

static void take(void *arg, uint64_t sender, uint32_t communication_id, bool on)
{
	const struct joined_way *way = arg;
	uint32_t *taken = &way->joined->taken[way->from];

	(void)sender;
	if (on)
		*taken = communication_id;
	else if (*taken == communication_id)
		*taken = 0;
}

/* --- packets --- */

static bool reaches(void *arg, struct sim_path *path)
{
	const struct joined_way *way = arg;

	return memcmp(path->route.dest_gid, way->far.raw, sizeof(way->far)) == 0;
}

/* Returns how many packets the ring has. */
static unsigned int used(const struct joined_way *way)
{
	return way->head - way->tail + way->followers;
}

static unsigned int room(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct joined_way *way = arg;

	(void)dest_qpn;
	if (way->ended || way->no_end)
		return UINT_MAX;
	if (!path->dest)
		return way->far_limit ? way->far_limit - way->far_frames : UINT_MAX;
	if (way->limit <= used(way) + way->kept)
		return 0;
	return way->limit - used(way) - way->kept;
}

static unsigned int room_at(void *arg, const struct sim_path *path, uint64_t process)
{
	(void)process;
	return room(arg, path, SIM_GSI_QPN);
}

static bool room_for_ack(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct joined_way *way = arg;

	(void)path;
	(void)dest_qpn;
	return used(way) < way->limit;
}

static bool lags(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct joined_way *way = arg;

	(void)path;
	return way->lags && owner_of(way->joined, dest_qpn) == !way->from;
}

static void write_frame(struct joined_frame *frame, const struct sim_departure *departure)
{
	frame->checked = !departure->frame_bytes;
	frame->frame_bytes = sim_departure_write(departure, false, frame->frame);
}

static bool send_frame(void *arg, const struct sim_departure *departure)
{
	struct joined_way *way = arg;
	struct joined_frame *frame = &way->frames[way->head % JOINED_RING];

	if (!departure->dest) {
		way->far_frames++;
		write_frame(&way->far_frame, departure);
		return way->far_frame.frame_bytes > 0;
	}
	if (way->ended || used(way) >= way->limit ||
	    (departure->dest_qpn != 0xffffff && !departure->process &&
	     owner_of(way->joined, departure->dest_qpn) != !way->from)) {
		way->lost++;
		return false;
	}
	frame->device_index = departure->dest->device->index;
	frame->port = departure->dest->number;
	frame->train_packets = 0;
	write_frame(frame, departure);
	if (!frame->frame_bytes)
		return false;
	way->head++;
	way->sent++;
	if (way->head - way->tail > way->most)
		way->most = way->head - way->tail;
	return true;
}

/* --- trains --- */

/* 0: the network is asked, and counts frames. */
static unsigned int lane_room(const struct sim_lane *lane)
{
	(void)lane;
	return 0;
}

static bool lane_send(const struct sim_lane *lane, const struct sim_path *path,
		      const struct sim_packet *packet)
{
	(void)lane;
	(void)path;
	(void)packet;
	return false;
}

static uint32_t lane_train_bytes(const struct sim_lane *lane, const struct sim_path *path)
{
	const struct joined_way *way = lane->wire;

	(void)path;
	return way->train_bytes;
}

static bool lane_send_train(const struct sim_lane *lane, const struct sim_path *path,
			    const struct sim_packet *train, unsigned int count)
{
	struct joined_way *way = lane->wire;
	struct joined_frame *frame = &way->frames[way->head % JOINED_RING];
	uint8_t *bytes = malloc(16 + train->payload_bytes);
	bool readable;

	frame->frame_bytes = sim_packet_write_bare(
		train, path->source->device->engine->host.memory.copy, bytes, &readable);
	if (!readable) {
		free(bytes);
		return false;
	}
	frame->train = realloc(bytes, frame->frame_bytes);
	frame->train_packets = count;
	frame->route = path->route;
	frame->device_index = path->dest->device->index;
	frame->port = path->dest->number;
	way->head++;
	way->sent++;
	way->trains++;
	way->followers += count - 1;
	return true;
}

static bool find_lane(void *arg, const struct sim_path *path, uint32_t dest_qpn,
		      struct sim_lane *lane)
{
	static const struct sim_lane_ops ops = {.room = lane_room,
						.send = lane_send,
						.train_bytes = lane_train_bytes,
						.send_train = lane_send_train};

	(void)path;
	(void)dest_qpn;
	*lane = (struct sim_lane){.ops = &ops, .wire = arg};
	return true;
}

void joined_carry_trains(struct joined *joined, uint32_t train_bytes)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct sim_engine *sim = joined->engines[i].sim;
		struct sim_way_out way = sim->net->given_way;

		joined->ways[i].train_bytes = train_bytes;
		way.lane = find_lane;
		sim_way_out_set(sim, &way);
	}
}

static bool same_addresses(const struct sim_route *a, const struct sim_route *b)
{
	return memcmp(a->source_gid, b->source_gid, sizeof(a->source_gid)) == 0 &&
	       memcmp(a->dest_gid, b->dest_gid, sizeof(a->dest_gid)) == 0 && a->slid == b->slid &&
	       a->dlid == b->dlid && a->has_grh == b->has_grh;
}

static bool same_route(const struct sim_route *a, const struct sim_route *b)
{
	return same_addresses(a, b) && a->sl == b->sl && a->traffic_class == b->traffic_class &&
	       a->hop_limit == b->hop_limit && a->flow_label == b->flow_label &&
	       a->udp_source_port == b->udp_source_port;
}

/* As a wire does, forgets what the inlet has admitted when another route comes. */
static void take_train(struct joined_way *way, struct sim_port *port, struct joined_frame *frame)
{
	if (!same_route(&way->inlet.route, &frame->route))
		way->inlet = (struct sim_inlet){.route = frame->route};
	sim_way_out_arrive_train(port, &way->inlet, frame->train, frame->frame_bytes,
				 frame->train_packets);
}

static bool has_members(void *arg, const struct sim_port *port)
{
	const struct joined_way *way = arg;

	(void)port;
	return !way->no_groups && way->joined->ways[!way->from].memberships;
}

static void joined_groups(void *arg, const struct sim_device *device, uint32_t memberships)
{
	struct joined_way *way = arg;

	(void)device;
	way->memberships = memberships;
	way->joins++;
}

static int join(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	struct joined_way *way = arg;

	way->last_group = *group;
	if (way->join_error)
		return sim_refuse_system(device->engine, way->join_error, "join()");
	way->groups_joined++;
	return 0;
}

static void leave(void *arg, const struct sim_device *device, const union ibv_gid *group)
{
	struct joined_way *way = arg;

	(void)device;
	way->last_group = *group;
	way->groups_left++;
}

static enum sim_presence find(void *arg, const struct sim_path *path, uint32_t dest_qpn)
{
	const struct joined_way *way = arg;
	const unsigned int owner = owner_of(way->joined, dest_qpn);

	if (!path->dest)
		return SIM_PRESENCE_UNKNOWN;
	return owner == 2 || (owner != way->from && way->ended) ? SIM_PRESENCE_NOBODY
								: SIM_PRESENCE_OTHER;
}

struct engine_side *joined_side(struct joined *joined, unsigned int engine)
{
	return &joined->engines[engine].sides[engine];
}

void joined_connect(struct joined *joined, struct sim_qp *const qps[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		struct engine *engine = &joined->engines[i];

		engine_connect_qp(engine, qps[i], sim_qp_number(qps[!i]), &engine->sides[!i].gid,
				  engine->config.psn[i], engine->config.psn[!i]);
	}
}

void joined_add_qps(struct joined *joined, uint32_t max_send_wr, struct sim_srq *srq,
		    struct sim_qp *qps[2])
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct engine_side *side = joined_side(joined, i);
		struct sim_qp_init init = {
			.type = IBV_QPT_RC,
			.pd = 1,
			.srq = i ? srq : NULL,
			.send_cq = side->send_cq,
			.recv_cq = side->recv_cq,
			.cap = {.max_send_wr = max_send_wr, .max_send_sge = 1},
		};

		if (sim_qp_create(side->device, &init, &qps[i]))
			abort();
	}
	joined_connect(joined, qps);
}

void joined_open(struct joined *joined, const struct engine_config *config, unsigned int ring)
{
	struct sim_qp *qps[2];

	*joined = (struct joined){0};
	for (unsigned int i = 0; i < 2; i++) {
		struct joined_way *way = &joined->ways[i];
		struct engine_config own = *config;
		const struct sim_way_out out = {
			.arg = way,
			.reaches = reaches,
			.room = room,
			.room_for_ack = room_for_ack,
			.lags = lags,
			.send = send_frame,
			.has_members = has_members,
			.joined = joined_groups,
			.join = join,
			.leave = leave,
			.find = find,
			.server = server,
			.room_at = room_at,
			.reserve = reserve,
			.unreserve = unreserve,
			.listen = listen_on,
			.take = take,
		};

		*way = (struct joined_way){.joined = joined, .from = i, .limit = ring};
		way->far = engine_gid(77);
		way->frames = malloc(JOINED_RING * sizeof(*way->frames));
		own.unconnected = true;
		own.claim = joined_claim;
		own.claim_arg = way;
		engine_open(&joined->engines[i], &own);
		sim_way_out_set(joined->engines[i].sim, &out);
		qps[i] = joined_side(joined, i)->qp;
	}
	joined_connect(joined, qps);
}

void joined_close(struct joined *joined)
{
	for (unsigned int i = 0; i < 2; i++) {
		engine_close(&joined->engines[i]);
		while (joined->ways[i].tail != joined->ways[i].head)
			joined_lose(&joined->ways[i]);
		free(joined->ways[i].frames);
		joined->ways[i].frames = NULL;
	}
}

int joined_send(struct joined *joined, unsigned int engine, struct engine_send send)
{
	send.to = joined_side(joined, !engine);
	return engine_send(&joined->engines[engine], engine, &send);
}

int joined_recv(struct joined *joined, unsigned int engine, uint64_t wr_id, uint32_t offset,
		uint32_t bytes)
{
	return engine_recv(&joined->engines[engine], engine, wr_id, offset, bytes);
}

static struct sim_port *port_of(struct sim_engine *engine, const struct joined_frame *frame)
{
	struct sim_device *device = engine->devices;

	while (device->index != frame->device_index)
		device = device->next;
	return sim_device_port(device, frame->port);
}

void joined_lose(struct joined_way *way)
{
	struct joined_frame *frame = &way->frames[way->tail++ % JOINED_RING];

	if (!frame->train_packets)
		return;
	way->followers -= frame->train_packets - 1;
	free(frame->train);
}

bool joined_take(struct joined_way *way)
{
	struct sim_engine *to = way->joined->engines[!way->from].sim;
	struct joined_frame *frame = &way->frames[way->tail % JOINED_RING];
	uint8_t *block;

	if (way->tail == way->head || way->stuck || way->ended)
		return false;
	if (frame->train_packets) {
		take_train(way, port_of(to, frame), frame);
		joined_lose(way);
		return true;
	}
	/* AddressSanitizer sees a read beyond the frame. */
	block = malloc(frame->frame_bytes);
	memcpy(block, frame->frame, frame->frame_bytes);
	way->tail++;
	sim_way_out_arrive(port_of(to, frame), block, frame->frame_bytes, frame->checked, 1);
	free(block);
	return true;
}

bool joined_pass(struct joined_way *way)
{
	if (!joined_take(way))
		return false;
	sim_way_out_ready(way->joined->engines[way->from].sim);
	return true;
}

void joined_run(struct joined *joined)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (unsigned int i = 0; i < 2; i++)
			sim_engine_run(joined->engines[i].sim);
		for (unsigned int i = 0; i < 2; i++)
			while (joined_pass(&joined->ways[i]))
				moved = true;
	}
}

void joined_settle(struct joined *joined, uint64_t until_ns)
{
	for (;;) {
		uint64_t next_ns = SIM_NEVER;

		joined_run(joined);
		for (unsigned int i = 0; i < 2; i++)
			if (sim_engine_next_ns(joined->engines[i].sim) < next_ns)
				next_ns = sim_engine_next_ns(joined->engines[i].sim);
		if (next_ns > until_ns || next_ns == SIM_NEVER)
			return;
		joined->now_ns = next_ns;
		for (unsigned int i = 0; i < 2; i++)
			sim_engine_advance(joined->engines[i].sim, next_ns);
	}
}
