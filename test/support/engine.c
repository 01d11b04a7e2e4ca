/* SPDX-License-Identifier: MIT */
#include "test/support/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t *poisoned;
static size_t poisoned_bytes;

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "engine: %s: %s\n", what, strerror(err));
		abort();
	}
}

static bool touches_poison(const void *at, size_t length_bytes)
{
	uintptr_t base = (uintptr_t)at, bad = (uintptr_t)poisoned;

	return poisoned_bytes && base < bad + poisoned_bytes && base + length_bytes > bad;
}

void engine_poison(const void *base, size_t length_bytes)
{
	poisoned = base;
	poisoned_bytes = length_bytes;
}

static int copy(void *dst, const void *src, size_t length_bytes)
{
	if (touches_poison(dst, length_bytes) || touches_poison(src, length_bytes))
		return -1;
	memcpy(dst, src, length_bytes);
	return 0;
}

static int probe(const void *addr, size_t length_bytes, bool write)
{
	(void)write;
	return touches_poison(addr, length_bytes) ? 14 /* EFAULT */ : 0;
}

static void cq_event(void *arg, struct sim_cq *cq)
{
	struct engine *engine = arg;

	for (unsigned int i = 0; i < 2; i++)
		if (cq->device == engine->sides[i].device)
			engine->sides[i].cq_events++;
}

static void async_event(void *arg, struct sim_device *device, const struct sim_event *event)
{
	struct engine *engine = arg;

	if (engine->event_count == ENGINE_EVENTS_MAX)
		return;
	engine->event_devices[engine->event_count] = device;
	engine->events[engine->event_count++] = *event;
}

/* The tests use the engine's AH as the program's handle. */
static struct sim_ah *find_ah(void *arg, const struct sim_qp *qp, struct ibv_ah *ah)
{
	struct sim_ah *found = (struct sim_ah *)(void *)ah;

	(void)arg;
	return found && found->pd == qp->pd ? found : NULL;
}

static void record(void *arg, uint64_t now_ns, const uint8_t *bytes, size_t length_bytes,
		   unsigned int flags)
{
	struct engine *engine = arg;
	struct engine_frame *frame;
	struct sim_span span;

	if (engine->frame_count == engine->frame_room) {
		engine->frame_room = engine->frame_room ? 2 * engine->frame_room : 256;
		engine->frames =
			realloc(engine->frames, engine->frame_room * sizeof(*engine->frames));
		must(!engine->frames, "frames");
	}
	frame = &engine->frames[engine->frame_count++];
	frame->now_ns = now_ns;
	frame->frame_bytes = length_bytes;
	frame->decoded =
		(flags & SIM_FRAME_INFINIBAND ? sim_packet_decode_infiniband : sim_packet_decode)(
			bytes, length_bytes, &frame->packet, &span, &frame->route);
	frame->packet.spans = NULL;
	frame->lost = flags & SIM_FRAME_LOST;
	/* FNV-1a */
	for (size_t i = 0; i < length_bytes; i++)
		engine->bytes_hash = (engine->bytes_hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	engine->bytes_hash = (engine->bytes_hash ^ now_ns) * UINT64_C(0x100000001b3);
}

union ibv_gid engine_gid(unsigned int last)
{
	union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 10}};

	gid.raw[15] = (uint8_t)last;
	return gid;
}

struct ibv_ah_attr engine_ah_attr(const union ibv_gid *dgid)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {.dgid = *dgid, .sgid_index = 1, .hop_limit = 64},
	};
}

static void open_with(struct engine *engine, const struct engine_config *config)
{
	const struct sim_host host = {
		.arg = engine,
		.cq_event = cq_event,
		.async_event = async_event,
		.find_ah = find_ah,
		.memory = {copy, probe},
		.claim_numbers = config->claim,
		.claim_arg = config->claim_arg,
	};

	*engine = (struct engine){.bytes_hash = UINT64_C(0xcbf29ce484222325)};
	engine_poison(NULL, 0);
	must(sim_engine_create(&host, config->seed, &engine->sim), "world");
}

void engine_open_bare(struct engine *engine, uint64_t seed)
{
	open_with(engine, &(struct engine_config){.seed = seed});
}

static struct sim_device *add_device(struct engine *engine, const char *name, unsigned int ports,
				     const union ibv_gid *gid, uint8_t link_layer)
{
	static const union ibv_gid none;
	const struct sim_device_config config = {
		.name = name,
		.profile = sim_profile_find("spec"),
		.port_count = ports,
		.link_layer = link_layer,
		.mtu = IBV_MTU_4096,
		.gid_count = gid ? 1 : 0,
		.gids = gid ? gid : &none,
	};
	struct sim_device *device;

	must(sim_device_create(engine->sim, &config, NULL, &device), "device");
	return device;
}

struct sim_device *engine_add_device(struct engine *engine, const char *name, unsigned int ports,
				     const union ibv_gid *gid)
{
	return add_device(engine, name, ports, gid, IBV_LINK_LAYER_ETHERNET);
}

struct sim_device *engine_add_infiniband(struct engine *engine, const char *name,
					 unsigned int ports, const union ibv_gid *gid)
{
	return add_device(engine, name, ports, gid, IBV_LINK_LAYER_INFINIBAND);
}

/* The address of the port with a GID; on InfiniBand the sides have the LIDs 1 and 2. */
static struct ibv_ah_attr address_of(const struct engine *engine, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = engine_ah_attr(gid);

	if (engine->config.infiniband) {
		attr.is_global = engine->config.grh;
		attr.dlid = memcmp(gid, &engine->sides[0].gid, sizeof(*gid)) == 0 ? 1 : 2;
	}
	return attr;
}

static void set_defaults(struct engine_config *config)
{
	if (!config->type)
		config->type = IBV_QPT_RC;
	if (!config->mtu)
		config->mtu = IBV_MTU_256;
	if (!config->max_wr)
		config->max_wr = 64;
	if (!config->max_sge)
		config->max_sge = 4;
	if (!config->cq_entries)
		config->cq_entries = 256;
	for (unsigned int i = 0; i < 2; i++)
		if (!config->psn[i])
			config->psn[i] = ENGINE_PSN;
	if (!config->timeout)
		config->timeout = 14;
	if (config->no_timeout)
		config->timeout = 0;
	if (!config->retry_cnt)
		config->retry_cnt = config->no_retry ? 0 : 7;
	if (!config->min_rnr_timer)
		config->min_rnr_timer = 1;
	if (!config->reads)
		config->reads = 4;
	if (!config->reads_in)
		config->reads_in = config->reads;
}

static void make_side(struct engine *engine, unsigned int index)
{
	static const char *const names[] = {"left", "right"};
	const struct engine_config *config = &engine->config;
	struct engine_side *side = &engine->sides[index];
	struct sim_mr_init init = {
		.pd = 1,
		.length = ENGINE_MEMORY_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	side->gid = engine_gid(index + 1);
	side->device = (config->infiniband ? engine_add_infiniband : engine_add_device)(
		engine, names[index], 1, &side->gid);
	side->memory = aligned_alloc(64, ENGINE_MEMORY_BYTES);
	must(!side->memory, "memory");
	memset(side->memory, 0, ENGINE_MEMORY_BYTES);
	init.addr = side->memory;
	init.iova = (uintptr_t)side->memory;
	must(sim_mr_create(side->device, &init, &side->mr), "mr");
	must(sim_cq_create(side->device, config->cq_entries, side, &side->send_cq), "cq");
	must(sim_cq_create(side->device, config->cq_entries, side, &side->recv_cq), "cq");
}

static void make_qp(struct engine *engine, struct engine_side *side)
{
	const struct engine_config *config = &engine->config;
	struct sim_qp_init init = {
		.type = config->type,
		.pd = 1,
		.send_cq = side->send_cq,
		.recv_cq = side->recv_cq,
		.cap = {.max_send_wr = config->max_wr,
			.max_recv_wr = config->max_wr,
			.max_send_sge = config->max_sge,
			.max_recv_sge = config->max_sge,
			.max_inline_data = config->max_inline},
		.sig_all = config->sig_all,
		.user = side,
	};

	must(sim_qp_create(side->device, &init, &side->qp), "qp");
}

static void to_init(const struct sim_qp *qp, struct ibv_qp_attr *attr, int *mask)
{
	attr->qp_state = IBV_QPS_INIT;
	attr->port_num = 1;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (qp->type == IBV_QPT_UD) {
		attr->qkey = ENGINE_QKEY;
		*mask |= IBV_QP_QKEY;
		return;
	}
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (qp->type == IBV_QPT_RC)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	*mask |= IBV_QP_ACCESS_FLAGS;
}

void engine_connect_qp(struct engine *engine, struct sim_qp *qp, uint32_t dest_qpn,
		       const union ibv_gid *dgid, uint32_t sq_psn, uint32_t rq_psn)
{
	const struct engine_config *config = &engine->config;
	struct ibv_qp_attr attr = {
		.path_mtu = config->mtu,
		.dest_qp_num = dest_qpn,
		.rq_psn = rq_psn,
		.sq_psn = sq_psn,
		.max_dest_rd_atomic = config->reads_in,
		.max_rd_atomic = config->reads,
		.min_rnr_timer = config->min_rnr_timer,
		.timeout = config->timeout,
		.retry_cnt = config->retry_cnt,
		.rnr_retry = config->rnr_retry,
		.ah_attr = address_of(engine, dgid),
	};
	const bool receives = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_RECV;
	const bool sends = qp->type == IBV_QPT_RC || qp->type == IBV_QPT_XRC_SEND;
	int mask;

	to_init(qp, &attr, &mask);
	must(sim_qp_modify(qp, &attr, mask), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	mask = IBV_QP_STATE;
	if (qp->type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (receives)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	must(sim_qp_modify(qp, &attr, mask), "RTR");
	if (config->rtr_only)
		return;
	attr.qp_state = IBV_QPS_RTS;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (sends || receives)
		mask |= IBV_QP_TIMEOUT;
	if (sends)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
	must(sim_qp_modify(qp, &attr, mask), "RTS");
}

void engine_open(struct engine *engine, const struct engine_config *config)
{
	const struct sim_trace_sink sink = {engine, record};
	struct engine_side *sides = engine->sides;

	open_with(engine, config);
	engine->config = *config;
	set_defaults(&engine->config);
	for (unsigned int i = 0; i < 2; i++)
		make_side(engine, i);
	if (config->delay_ns || config->bits_per_second)
		must(sim_fabric_join(engine->sim, sides[0].device, sides[1].device,
				     config->delay_ns, config->bits_per_second),
		     "join");
	if (!config->quiet)
		sim_trace_set(engine->sim, SIM_TRACE_FILE, &sink);
	for (unsigned int i = 0; i < 2; i++) {
		const struct ibv_ah_attr attr = address_of(engine, &sides[!i].gid);

		must(sim_ah_create(sides[i].device, 1, &attr, &sides[i].ah), "ah");
		if (i == 0 || !config->peer)
			make_qp(engine, &sides[i]);
	}
	if (config->unconnected)
		return;
	engine_connect_qp(engine, sides[0].qp, config->peer ? ENGINE_PEER_QPN : sides[1].qp->number,
			  &sides[1].gid, engine->config.psn[0], engine->config.psn[1]);
	if (!config->peer)
		engine_connect_qp(engine, sides[1].qp, sides[0].qp->number, &sides[0].gid,
				  engine->config.psn[1], engine->config.psn[0]);
}

void engine_close(struct engine *engine)
{
	if (!engine->sim)
		return;
	for (unsigned int i = 0; i < 2; i++) {
		struct engine_side *side = &engine->sides[i];

		if (side->qp)
			sim_qp_destroy(side->qp);
		if (side->ah)
			sim_ah_release(side->ah);
		if (side->mr)
			sim_mr_destroy(side->mr);
		if (side->send_cq)
			must(sim_cq_destroy(side->send_cq), "CQ destroy");
		if (side->recv_cq)
			must(sim_cq_destroy(side->recv_cq), "CQ destroy");
		free(side->memory);
	}
	sim_engine_destroy(engine->sim);
	free(engine->frames);
	engine_poison(NULL, 0);
	*engine = (struct engine){0};
}

void engine_settle(struct engine *engine, uint64_t until_ns)
{
	sim_engine_run(engine->sim);
	for (;;) {
		uint64_t next_ns = sim_engine_next_ns(engine->sim);

		if (next_ns == SIM_NEVER || next_ns > until_ns)
			return;
		sim_engine_advance(engine->sim, next_ns);
	}
}

int engine_recv(struct engine *engine, unsigned int side, uint64_t wr_id, uint32_t offset,
		uint32_t bytes)
{
	struct engine_side *own = &engine->sides[side];
	struct ibv_sge sge = {(uintptr_t)own->memory + offset, bytes, own->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = bytes ? 1 : 0};
	struct ibv_recv_wr *bad = NULL;

	return sim_qp_post_recv(own->qp, &wr, &bad);
}

static void set_target(const struct engine *engine, unsigned int side,
		       const struct engine_send *send, struct ibv_send_wr *wr)
{
	const struct engine_side *other = send->to ? send->to : &engine->sides[!side];
	uint64_t remote_addr = (uintptr_t)other->memory + send->remote_offset;
	uint32_t rkey = send->rkey ? send->rkey : other->mr->rkey;

	if (engine->config.type == IBV_QPT_UD) {
		wr->wr.ud.ah = (struct ibv_ah *)(void *)engine->sides[side].ah;
		wr->wr.ud.remote_qpn = send->remote_qpn ? send->remote_qpn : other->qp->number;
		wr->wr.ud.remote_qkey = send->remote_qkey ? send->remote_qkey : ENGINE_QKEY;
	} else if (send->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		   send->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr->wr.atomic.remote_addr = remote_addr;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = send->compare_add;
		wr->wr.atomic.swap = send->swap;
	} else {
		wr->wr.rdma.remote_addr = remote_addr;
		wr->wr.rdma.rkey = rkey;
	}
}

int engine_send(struct engine *engine, unsigned int side, const struct engine_send *send)
{
	struct engine_side *own = &engine->sides[side];
	struct ibv_sge sge = {(uintptr_t)own->memory + send->offset, send->bytes,
			      send->lkey ? send->lkey : own->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = send->wr_id,
		.sg_list = &sge,
		.num_sge = send->bytes ? 1 : 0,
		.opcode = send->opcode,
		.send_flags = send->flags | (send->unsignalled ? 0 : IBV_SEND_SIGNALED),
		.imm_data = htobe32(send->imm),
	};
	struct ibv_send_wr *bad = NULL;

	set_target(engine, side, send, &wr);
	return sim_qp_post_send(own->qp, &wr, &bad);
}

bool engine_poll(struct sim_cq *cq, struct ibv_wc *wc)
{
	return sim_cq_poll(cq, 1, wc) == 1;
}

unsigned int engine_count(const struct engine *engine, unsigned int opcode)
{
	unsigned int count = 0;

	while (engine_nth(engine, opcode, count))
		count++;
	return count;
}

const struct engine_frame *engine_nth(const struct engine *engine, unsigned int opcode,
				      unsigned int n)
{
	for (unsigned int i = 0; i < engine->frame_count; i++)
		if (engine->frames[i].packet.opcode == opcode && n-- == 0)
			return &engine->frames[i];
	return NULL;
}

unsigned int engine_events(const struct engine *engine, enum ibv_event_type type)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < engine->event_count; i++)
		count += engine->events[i].type == type;
	return count;
}

struct sim_packet engine_packet(const struct engine *engine, unsigned int opcode, uint32_t psn)
{
	return (struct sim_packet){
		.opcode = (uint8_t)opcode,
		.flags = SIM_PACKET_MIGRATED | SIM_PACKET_ACK_REQUEST,
		.pkey = 0xffff,
		.dest_qpn = engine->sides[0].qp->number,
		.source_qpn = ENGINE_PEER_QPN,
		.psn = psn & 0xffffff,
		.rkey = engine->sides[0].mr->rkey,
		.remote_addr = (uintptr_t)engine->sides[0].memory,
	};
}

void engine_payload(struct sim_packet *packet, struct sim_span *span, const void *base,
		    uint32_t bytes)
{
	*span = (struct sim_span){base, bytes};
	packet->spans = span;
	packet->span_count = bytes ? 1 : 0;
	packet->payload_bytes = bytes;
}

void engine_inject(struct engine *engine, const struct sim_packet *packet)
{
	if (sim_opcodes[packet->opcode].flags & SIM_OP_REQUEST)
		sim_responder_receive(engine->sides[0].qp, packet);
	else
		sim_completer_receive(engine->sides[0].qp, packet);
	sim_engine_run(engine->sim);
}

void engine_inject_ack(struct engine *engine, uint32_t psn, unsigned int syndrome)
{
	struct sim_packet packet = engine_packet(engine, SIM_RC_ACK, psn);

	packet.syndrome = (uint8_t)syndrome;
	engine_inject(engine, &packet);
}

uint64_t engine_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void engine_send_on(struct engine *engine, struct sim_path *path, const struct sim_packet *packet)
{
	engine->sim->outlet->send(engine->sim, path, packet);
}

void engine_quirk(struct sim_device *device, const char *name, bool on)
{
	must(sim_device_set_quirk(device, name, on), name);
}
