/* SPDX-License-Identifier: MIT */
/*
 * usage: explore-services [-j JOBS] [-k KINDS] [-i] [SERVICE...]
 *
 * Explores each operation of the services beside RC: one packet is lost, repeated, late or corrupted. What holds at
 * the end:
 *
 *	UC	A send completes with success. Each receive that completes has one whole message. One message at
 *		most is missing, and one at most has come twice: the others are whole. A WRITE that is broken off
 *		has written its bytes or nothing at each place.
 *	UD	The same; datagrams may change their order.
 *	XRC	As RC: each message comes once, in order; READs and atomics are executed once.
 *	windows	A WRITE by a window of type 2, its invalidation by SEND_WITH_INV, and a WRITE by its next binding
 *		all happen once, in this order.
 */
#include "test/explore/program.h"

#include <arpa/inet.h>
#include <string.h>
#include <verbena/expect.h>
#include <verbena/explore.h>
#include <verbena/sim.h>
#include <verbena/verbs.h>

#define MESSAGES      4
#define SHORT	      200
#define LONG	      20000 /* five packets of the path MTU 4096 */
#define STRIDE	      24576
#define RECEIVE_AT    ((size_t)MESSAGES * STRIDE)
#define RECEIVES      (MESSAGES + 2) /* two too many show a message that comes twice */
#define BUFFER_BYTES  (RECEIVE_AT + (size_t)RECEIVES * STRIDE)
#define RECEIVE_FIRST 100
#define GRH_BYTES     40
#define LATER_NS      20000000000u /* all retransmissions are over */

struct service {
	const char *name;
	int (*run)(struct vb_pair *pair, const struct service *service);
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	uint32_t bytes;
};

/* --- messages --- */

static uint8_t byte_of(unsigned int message, size_t at)
{
	return (uint8_t)(37 * (message + 1) + 7 * at + at / 256);
}

static void fill(uint8_t *at, unsigned int message, uint32_t length_bytes)
{
	for (uint32_t i = 0; i < length_bytes; i++)
		at[i] = byte_of(message, i);
}

static bool is_whole(const uint8_t *at, unsigned int message, uint32_t length_bytes)
{
	uint32_t i = 0;

	while (i < length_bytes && at[i] == byte_of(message, i))
		i++;
	return i == length_bytes;
}

/* Each byte is the message's, or zero as before. */
static bool is_part(const uint8_t *at, unsigned int message, uint32_t length_bytes)
{
	uint32_t i = 0;

	while (i < length_bytes && (at[i] == byte_of(message, i) || !at[i]))
		i++;
	return i == length_bytes;
}

static bool is_reliable(const struct service *service)
{
	return service->type != IBV_QPT_UC && service->type != IBV_QPT_UD;
}

static bool is_received(const struct service *service)
{
	return service->opcode == IBV_WR_SEND || service->opcode == IBV_WR_SEND_WITH_IMM ||
	       service->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* --- completions --- */

/* What has come of the messages. */
struct seen {
	unsigned int sends, receives;
	unsigned int count[MESSAGES];
};

static int take_send(struct seen *seen, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return vb_explore_wrong("the work request %llu ends with the status %s",
					(unsigned long long)wc->wr_id,
					vb_wc_status_str(wc->status));
	if (wc->wr_id != ++seen->sends)
		return vb_explore_wrong("the work request %llu completes, and %u is the next",
					(unsigned long long)wc->wr_id, seen->sends);
	return VB_ENDED_WELL;
}

/* Returns which message a receive has; MESSAGES: none. */
static unsigned int message_of(const struct vb_pair_end *end, const struct service *service,
			       const struct ibv_wc *wc)
{
	const size_t slot = wc->wr_id - RECEIVE_FIRST;
	const uint8_t *at = end->buffer + RECEIVE_AT + slot * STRIDE;
	const bool written = service->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	unsigned int i = 0;

	if (service->type == IBV_QPT_UD)
		at += GRH_BYTES;
	if (written)
		i = ntohl(wc->imm_data) - 1;
	else
		while (i < MESSAGES && !is_whole(at, i, service->bytes))
			i++;
	if (written && i < MESSAGES &&
	    !is_whole(end->buffer + (size_t)i * STRIDE, i, service->bytes))
		i = MESSAGES;
	return i;
}

static int take_receive(struct seen *seen, const struct vb_pair_end *end,
			const struct service *service, const struct ibv_wc *wc)
{
	const uint32_t grh_bytes = service->type == IBV_QPT_UD ? GRH_BYTES : 0;
	const unsigned int message = message_of(end, service, wc);

	if (wc->status != IBV_WC_SUCCESS || wc->byte_len != service->bytes + grh_bytes)
		return vb_explore_wrong("a receive ends with the status %s and %u bytes",
					vb_wc_status_str(wc->status), wc->byte_len);
	if (message >= MESSAGES)
		return vb_explore_wrong("a receive has the bytes of no message");
	if (service->opcode == IBV_WR_SEND_WITH_IMM && ntohl(wc->imm_data) != message + 1)
		return vb_explore_wrong("message %u has the immediate %u", message + 1,
					ntohl(wc->imm_data));
	if (is_reliable(service) && message != seen->receives)
		return vb_explore_wrong("message %u comes, and %u is the next", message + 1,
					seen->receives + 1);
	seen->receives++;
	seen->count[message]++;
	return VB_ENDED_WELL;
}

static int take_all(struct vb_pair *pair, const struct service *service, struct seen *seen)
{
	int end = VB_ENDED_WELL;
	struct ibv_wc wc;

	vb_sim_run(NULL, LATER_NS);
	while (!end && vb_poll_cq(pair->a.cq, 1, &wc) == 1)
		end = take_send(seen, &wc);
	while (!end && vb_poll_cq(pair->b.cq, 1, &wc) == 1)
		end = take_receive(seen, &pair->b, service, &wc);
	if (!end && seen->sends != MESSAGES)
		end = vb_explore_wrong("%u of %u sends complete", seen->sends, MESSAGES);
	return end;
}

/* --- what must hold at the end --- */

static int judge_received(const struct service *service, const struct seen *seen)
{
	const unsigned int allowed = is_reliable(service) ? 0 : 1;
	unsigned int missing = 0, repeated = 0;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		missing += !seen->count[i];
		repeated += seen->count[i] > 1 ? seen->count[i] - 1 : 0;
	}
	if (missing <= allowed && repeated <= allowed)
		return VB_ENDED_WELL;
	return vb_explore_wrong("%u of %u messages are missing, and %u have come again", missing,
				MESSAGES, repeated);
}

static int judge_written(const struct vb_pair *pair, const struct service *service)
{
	unsigned int broken = 0;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		const uint8_t *at = pair->b.buffer + (size_t)i * STRIDE;

		broken += !is_whole(at, i, service->bytes);
		if (!is_part(at, i, service->bytes))
			return vb_explore_wrong("WRITE %u has left other bytes than its own",
						i + 1);
	}
	if (broken > !is_reliable(service))
		return vb_explore_wrong("%u of %u WRITEs are not whole", broken, MESSAGES);
	return VB_ENDED_WELL;
}

static int run_messages(struct vb_pair *pair, const struct service *service)
{
	struct seen seen = {.sends = 0};
	int end;

	for (unsigned int i = 0; i < MESSAGES; i++)
		fill(pair->a.buffer + (size_t)i * STRIDE, i, service->bytes);
	for (unsigned int i = 0; is_received(service) && i < RECEIVES; i++)
		if (vb_pair_receive(&pair->b, RECEIVE_FIRST + i, RECEIVE_AT + (size_t)i * STRIDE,
				    service->bytes + GRH_BYTES))
			return VB_ENDED_REPORTED;
	for (unsigned int i = 0; i < MESSAGES; i++)
		if (vb_pair_post(&pair->a, i + 1, service->opcode, (size_t)i * STRIDE,
				 service->bytes))
			return VB_ENDED_REPORTED;
	end = take_all(pair, service, &seen);
	if (!end && is_received(service))
		end = judge_received(service, &seen);
	if (!end && (!is_received(service) || service->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		end = judge_written(pair, service);
	return end;
}

static int run_reads(struct vb_pair *pair, const struct service *service)
{
	struct seen seen = {.sends = 0};
	int end;

	for (unsigned int i = 0; i < MESSAGES; i++) {
		fill(pair->b.buffer + (size_t)i * STRIDE, i, service->bytes);
		if (vb_pair_post(&pair->a, i + 1, service->opcode, (size_t)i * STRIDE,
				 service->bytes))
			return VB_ENDED_REPORTED;
	}
	end = take_all(pair, service, &seen);
	for (unsigned int i = 0; i < MESSAGES && !end; i++)
		if (!is_whole(pair->a.buffer + (size_t)i * STRIDE, i, service->bytes))
			end = vb_explore_wrong("READ %u has brought other bytes", i + 1);
	return end;
}

/* Each adds 1 to the number at the begin. */
static int run_atomics(struct vb_pair *pair, const struct service *service)
{
	const uint64_t *sum = (const uint64_t *)pair->b.buffer,
		       *answer = (const uint64_t *)pair->a.buffer;
	struct seen seen = {.sends = 0};
	int end;

	for (unsigned int i = 0; i < MESSAGES; i++)
		if (vb_pair_post(&pair->a, i + 1, service->opcode, 0, 8))
			return VB_ENDED_REPORTED;
	end = take_all(pair, service, &seen);
	if (!end && (*sum != MESSAGES || *answer != MESSAGES - 1))
		end = vb_explore_wrong("the sum is %llu, and the last answer %llu",
				       (unsigned long long)*sum, (unsigned long long)*answer);
	return end;
}

/* --- windows --- */

/* Takes the next completion of a CQ. */
static int take_one(struct ibv_cq *cq, uint64_t wr_id, struct ibv_wc *wc)
{
	int got;

	while (!(got = vb_poll_cq(cq, 1, wc)))
		;
	if (got != 1 || wc->status != IBV_WC_SUCCESS || wc->wr_id != wr_id)
		return vb_explore_wrong("the work request %llu ends with the status %s",
					(unsigned long long)wc->wr_id,
					vb_wc_status_str(wc->status));
	return VB_ENDED_WELL;
}

static int post_and_take(struct vb_pair_end *end, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.send_flags |= IBV_SEND_SIGNALED;
	return vb_post_send(end->qp, &wr, &bad) ? VB_ENDED_REPORTED
						: take_one(end->cq, wr.wr_id, &wc);
}

static int bind_window(struct vb_pair_end *end, struct ibv_mr *mr, struct ibv_mw *mw, uint32_t rkey)
{
	return post_and_take(
		end,
		(struct ibv_send_wr){
			.wr_id = 50,
			.opcode = IBV_WR_BIND_MW,
			.bind_mw = {.mw = mw,
				    .rkey = rkey,
				    .bind_info = {.mr = mr,
						  .addr = (uintptr_t)end->buffer,
						  .length = STRIDE,
						  .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}}});
}

static int write_by(struct vb_pair *pair, unsigned int message, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)pair->a.buffer, SHORT, pair->a.mr->lkey};
	int end;

	fill(pair->a.buffer, message, SHORT);
	end = post_and_take(&pair->a, (struct ibv_send_wr){
					      .wr_id = message,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .wr.rdma = {(uintptr_t)pair->b.buffer, rkey},
				      });
	if (!end && !is_whole(pair->b.buffer, message, SHORT))
		end = vb_explore_wrong("WRITE %u is not whole", message);
	return end;
}

static int invalidate(struct vb_pair *pair, uint32_t rkey)
{
	struct ibv_wc wc;
	int end;

	if (vb_pair_receive(&pair->b, RECEIVE_FIRST, RECEIVE_AT, SHORT))
		return VB_ENDED_REPORTED;
	end = post_and_take(&pair->a, (struct ibv_send_wr){.wr_id = 3,
							   .opcode = IBV_WR_SEND_WITH_INV,
							   .invalidate_rkey = rkey});
	if (!end)
		end = take_one(pair->b.cq, RECEIVE_FIRST, &wc);
	if (!end && (!(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != rkey))
		end = vb_explore_wrong("the receive does not name the key 0x%x", rkey);
	return end;
}

/* A second invalidation would end the second binding, and a second WRITE bring the first bytes back. */
static int use_window(struct vb_pair *pair, struct ibv_mr *mr, struct ibv_mw *mw)
{
	const uint32_t first = ibv_inc_rkey(mw->rkey), second = ibv_inc_rkey(first);
	int end = bind_window(&pair->b, mr, mw, first);

	if (!end)
		end = write_by(pair, 1, first);
	if (!end)
		end = invalidate(pair, first);
	if (!end)
		end = bind_window(&pair->b, mr, mw, second);
	if (!end)
		end = write_by(pair, 2, second);
	vb_sim_run(NULL, LATER_NS);
	if (!end && !is_whole(pair->b.buffer, 2, SHORT))
		end = vb_explore_wrong("the bytes of an earlier WRITE have come back");
	return end;
}

static int run_window(struct vb_pair *pair, const struct service *service)
{
	struct ibv_mr *mr = vb_reg_mr(pair->b.pd, pair->b.buffer, STRIDE,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = mr ? vb_alloc_mw(pair->b.pd, IBV_MW_TYPE_2) : NULL;
	const int end = mw ? use_window(pair, mr, mw) : VB_ENDED_REPORTED;

	if (mw)
		vb_dealloc_mw(mw);
	if (mr)
		vb_dereg_mr(mr);
	return end;
}

/* --- the services --- */

#define OF_MESSAGES(word, type, opcode)                        \
	{word, run_messages, type, opcode, SHORT},             \
	{                                                      \
		word "_long", run_messages, type, opcode, LONG \
	}

static const struct service services[] = {
	OF_MESSAGES("uc_send", IBV_QPT_UC, IBV_WR_SEND),
	OF_MESSAGES("uc_send_imm", IBV_QPT_UC, IBV_WR_SEND_WITH_IMM),
	OF_MESSAGES("uc_write", IBV_QPT_UC, IBV_WR_RDMA_WRITE),
	OF_MESSAGES("uc_write_imm", IBV_QPT_UC, IBV_WR_RDMA_WRITE_WITH_IMM),
	{"ud_send", run_messages, IBV_QPT_UD, IBV_WR_SEND, SHORT},
	{"ud_send_imm", run_messages, IBV_QPT_UD, IBV_WR_SEND_WITH_IMM, SHORT},
	OF_MESSAGES("xrc_send", IBV_QPT_XRC_SEND, IBV_WR_SEND),
	OF_MESSAGES("xrc_send_imm", IBV_QPT_XRC_SEND, IBV_WR_SEND_WITH_IMM),
	OF_MESSAGES("xrc_write", IBV_QPT_XRC_SEND, IBV_WR_RDMA_WRITE),
	OF_MESSAGES("xrc_write_imm", IBV_QPT_XRC_SEND, IBV_WR_RDMA_WRITE_WITH_IMM),
	{"xrc_read", run_reads, IBV_QPT_XRC_SEND, IBV_WR_RDMA_READ, SHORT},
	{"xrc_read_long", run_reads, IBV_QPT_XRC_SEND, IBV_WR_RDMA_READ, LONG},
	{"xrc_fetch_add", run_atomics, IBV_QPT_XRC_SEND, IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
	{"window", run_window, IBV_QPT_RC, IBV_WR_RDMA_WRITE, SHORT},
};

#define COUNT (sizeof(services) / sizeof(*services))

static int explored(void *arg)
{
	const struct service *service = arg;
	const struct vb_pair_options options = {.type = service->type,
						.buffer_bytes = BUFFER_BYTES};
	struct vb_pair *pair = vb_pair_open(&options);
	int end;

	if (!pair)
		return VB_ENDED_REPORTED;
	end = service->run(pair, service);
	vb_pair_close(pair);
	return end;
}

int main(int argc, char **argv)
{
	struct explored tests[COUNT + 1] = {{NULL}};

	for (size_t i = 0; i < COUNT; i++)
		tests[i] = (struct explored){services[i].name, explored, (void *)&services[i]};
	return explore_program(argc, argv, tests);
}
