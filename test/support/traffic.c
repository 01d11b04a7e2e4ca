/* SPDX-License-Identifier: MIT */
/*
 * Posting work requests to the peer, and the patterns that they carry.
 */
#include "test/support/support.h"

#include <arpa/inet.h>

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint64_t remote_address(struct ts_end *end, const struct ts_wr *wr)
{
	if (wr->remote_address)
		return wr->remote_address;
	return (uintptr_t)end->peer->buffer + wr->remote_offset;
}

static void fill_remote(struct ts_end *end, const struct ts_wr *wr, struct ibv_send_wr *out)
{
	uint32_t rkey = wr->rkey ? wr->rkey : end->peer->mr->rkey;

	if (end->options.type == IBV_QPT_UD) {
		out->wr.ud.ah = end->ah;
		out->wr.ud.remote_qpn = wr->remote_qpn ? wr->remote_qpn : end->peer->qp->qp_num;
		out->wr.ud.remote_qkey = wr->remote_qkey ? wr->remote_qkey : TS_QKEY;
	} else if (is_atomic(wr->opcode)) {
		out->wr.atomic.remote_addr = remote_address(end, wr);
		out->wr.atomic.rkey = rkey;
		out->wr.atomic.compare_add = wr->compare_add;
		out->wr.atomic.swap = wr->swap;
	} else {
		out->wr.rdma.remote_addr = remote_address(end, wr);
		out->wr.rdma.rkey = rkey;
	}
}

void ts_fill_wr(struct ts_end *end, const struct ts_wr *wr, struct ibv_sge *sge,
		struct ibv_send_wr *out)
{
	*sge = (struct ibv_sge){
		.addr = wr->address ? wr->address : (uintptr_t)end->buffer + wr->offset,
		.length = wr->length,
		.lkey = wr->lkey ? wr->lkey : end->mr->lkey,
	};
	*out = (struct ibv_send_wr){
		.wr_id = wr->wr_id,
		.sg_list = wr->sge ? wr->sge : sge,
		.num_sge = wr->sge ? wr->num_sge : 1,
		.opcode = wr->opcode,
		.send_flags = wr->flags | (wr->unsignalled ? 0 : IBV_SEND_SIGNALED),
		.imm_data = htonl(wr->imm),
	};
	if (wr->invalidate_rkey)
		out->invalidate_rkey = wr->invalidate_rkey;
	fill_remote(end, wr, out);
}

int ts_post(struct ts_end *end, const struct ts_wr *wr)
{
	struct ibv_send_wr out, *bad = NULL;
	struct ibv_sge sge;

	ts_fill_wr(end, wr, &sge, &out);
	return ibv_post_send(end->qp, &out, &bad);
}

void ts_fill_rr(const struct ts_rr *rr, const void *buffer, uint32_t lkey, struct ibv_sge *sge,
		struct ibv_recv_wr *out)
{
	*sge = (struct ibv_sge){
		.addr = rr->address ? rr->address : (uintptr_t)buffer + rr->offset,
		.length = rr->length,
		.lkey = rr->lkey ? rr->lkey : lkey,
	};
	*out = (struct ibv_recv_wr){
		.wr_id = rr->wr_id,
		.sg_list = rr->sge ? rr->sge : sge,
		.num_sge = rr->sge ? rr->num_sge : 1,
	};
}

int ts_post_rr(struct ts_end *end, const struct ts_rr *rr)
{
	struct ibv_recv_wr out, *bad = NULL;
	struct ibv_sge sge;

	ts_fill_rr(rr, end->buffer, end->mr->lkey, &sge, &out);
	return ibv_post_recv(end->qp, &out, &bad);
}

/* The bytes of a pattern come from a sum that each byte increases. */
#define PATTERN_STEP 0x9e3779b97f4a7c15ull

static inline uint64_t pattern_sum(size_t offset, uint32_t seed)
{
	return (offset + 1) * PATTERN_STEP + seed * 0xd1b54a32d192ed03ull;
}

static inline uint8_t pattern_byte(uint64_t sum)
{
	return (uint8_t)((sum ^ (sum >> 29)) >> 17);
}

void ts_fill(void *buffer, size_t length_bytes, uint32_t seed)
{
	uint64_t sum = pattern_sum(0, seed);
	uint8_t *bytes = buffer;

	for (size_t i = 0; i < length_bytes; i++, sum += PATTERN_STEP)
		bytes[i] = pattern_byte(sum);
}

static void bad_byte(struct vt *t, struct vt_at at, size_t offset, uint8_t got, uint8_t want)
{
	vt_fail(t, at, "byte %zu is 0x%02x, not 0x%02x", offset, got, want);
}

void ts_verify_at(struct vt *t, struct vt_at at, const void *buffer, size_t length_bytes,
		  uint32_t seed)
{
	uint64_t sum = pattern_sum(0, seed);
	const uint8_t *bytes = buffer;

	for (size_t i = 0; i < length_bytes; i++, sum += PATTERN_STEP)
		if (bytes[i] != pattern_byte(sum))
			bad_byte(t, at, i, bytes[i], pattern_byte(sum));
}

void ts_blank_at(struct vt *t, struct vt_at at, const void *buffer, size_t length_bytes)
{
	const uint8_t *bytes = buffer;
	size_t i;

	for (i = 0; i < length_bytes; i++)
		if (bytes[i] != TS_BLANK)
			bad_byte(t, at, i, bytes[i], TS_BLANK);
}

uint32_t ts_mtu_bytes(enum ibv_mtu mtu)
{
	return 128u << mtu;
}

struct ts_pair *ts_overrun(struct vt *t, int extra)
{
	struct ts_options options = ts_defaults(t, IBV_QPT_RC);
	struct ts_pair *pair;
	int i;

	options.send_cqe = 4;
	options.send_wr = 64;
	pair = ts_pair(t, &options);
	VT_CHECK(t, pair->a.send_cq->cqe + extra <= 64);
	ts_recv(&pair->a, .wr_id = 60, .length = 8);
	for (i = 0; i < pair->a.send_cq->cqe + extra; i++)
		ts_write(&pair->a, .wr_id = (uint64_t)i, .length = 8);
	ts_settle(t);
	return pair;
}
