/* SPDX-License-Identifier: MIT */
/*
 * usage: explore-operations [-p PAIRS] [-w WALKS] [-j JOBS] [-k KINDS] [-r] [-i] [OPERATION...]
 *
 * Explores each operation of a reliable connection: whatever single packet is lost, repeated, late or
 * corrupted, the data are the same at the end, and each work request completes once. KINDS is a sum of bits:
 * 1 << enum vb_decision_kind. With -r, a test may end with a failure that a verb has reported; with -i,
 * the devices are of InfiniBand.
 */
#include "test/explore/node.h"
#include "test/explore/program.h"

#include <stdio.h>
#include <verbena/explore.h>
#include <verbena/sim.h>

#define IMMEDIATE  0x12345678
#define LONG_BYTES 1500 /* six packets */

struct operation {
	const char *name;
	int (*run)(struct pair *pair);
	bool with_srq;
};

/* --- memory --- */

static void fill(uint8_t *bytes, size_t length_bytes, uint8_t first)
{
	for (size_t i = 0; i < length_bytes; i++)
		bytes[i] = (uint8_t)(first + 7 * i);
}

static int compare(const uint8_t *have, const uint8_t *want, size_t length_bytes)
{
	for (size_t i = 0; i < length_bytes; i++)
		if (have[i] != want[i])
			return vb_explore_wrong("byte %zu is 0x%02x, and should be 0x%02x", i,
						have[i], want[i]);
	return VB_ENDED_WELL;
}

/* The receiver's bytes beyond those that were sent have not changed. */
static int compare_received(const struct pair *pair, size_t length_bytes)
{
	static const uint8_t zeros[HALF_BYTES];
	const int end = compare(node_half(&pair->b, 1), node_half(&pair->a, 0), length_bytes);

	return end ? end
		   : compare(node_half(&pair->b, 1) + length_bytes, zeros,
			     HALF_BYTES - length_bytes);
}

static int end_of(struct pair *pair, int end)
{
	return end ? end : pair_is_quiet(pair);
}

/* --- SEND and WRITE --- */

/* Two receives too many show a message that is received twice. */
static bool post_receives(struct node *node, unsigned int count, uint32_t each_bytes)
{
	for (unsigned int i = 0; i < count + 2; i++)
		if (!node_receive(node, 101 + i,
				  i < count ? i * each_bytes : HALF_BYTES - each_bytes, each_bytes))
			return false;
	return true;
}

/* Sends `count` messages, and compares. With an immediate, so does a WRITE use a receive. */
static int transfer(struct pair *pair, enum ibv_wr_opcode opcode, unsigned int count,
		    uint32_t each_bytes)
{
	const bool received = opcode != IBV_WR_RDMA_WRITE;
	struct ibv_wc wc = {.wr_id = 0};
	int end = VB_ENDED_WELL;

	fill(node_half(&pair->a, 0), count * each_bytes, 1);
	if (received && !post_receives(&pair->b, count, each_bytes))
		return VB_ENDED_REPORTED;
	for (unsigned int i = 0; i < count; i++)
		if (!node_post(&pair->a, &pair->b,
			       (struct ibv_send_wr){
				       .wr_id = i + 1, .opcode = opcode, .imm_data = IMMEDIATE},
			       i * each_bytes, each_bytes))
			return VB_ENDED_REPORTED;
	end = node_take(&pair->a, count, 0, NULL);
	if (!end && received)
		end = node_take(&pair->b, 0, count, &wc);
	if (!end && wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data != IMMEDIATE)
		end = vb_explore_wrong("the immediate is 0x%x", wc.imm_data);
	return end_of(pair, end ? end : compare_received(pair, count * each_bytes));
}

static int run_send(struct pair *pair)
{
	return transfer(pair, IBV_WR_SEND, 3, 100);
}

static int run_send_imm(struct pair *pair)
{
	return transfer(pair, IBV_WR_SEND_WITH_IMM, 3, 100);
}

static int run_send_long(struct pair *pair)
{
	return transfer(pair, IBV_WR_SEND, 1, LONG_BYTES);
}

static int run_send_imm_long(struct pair *pair)
{
	return transfer(pair, IBV_WR_SEND_WITH_IMM, 1, LONG_BYTES);
}

static int run_write(struct pair *pair)
{
	return transfer(pair, IBV_WR_RDMA_WRITE, 3, 100);
}

static int run_write_long(struct pair *pair)
{
	return transfer(pair, IBV_WR_RDMA_WRITE, 1, LONG_BYTES);
}

static int run_write_imm(struct pair *pair)
{
	return transfer(pair, IBV_WR_RDMA_WRITE_WITH_IMM, 2, 100);
}

static int run_write_imm_long(struct pair *pair)
{
	return transfer(pair, IBV_WR_RDMA_WRITE_WITH_IMM, 1, LONG_BYTES);
}

/* --- READ --- */

static int read_back(struct pair *pair, unsigned int count, uint32_t each_bytes)
{
	int end;

	fill(node_half(&pair->b, 1), count * each_bytes, 3);
	for (unsigned int i = 0; i < count; i++)
		if (!node_post(&pair->a, &pair->b,
			       (struct ibv_send_wr){.wr_id = i + 1, .opcode = IBV_WR_RDMA_READ},
			       i * each_bytes, each_bytes))
			return VB_ENDED_REPORTED;
	end = node_take(&pair->a, count, 0, NULL);
	return end_of(pair,
		      end ? end
			  : compare(node_half(&pair->a, 0), node_half(&pair->b, 1), HALF_BYTES));
}

static int run_read(struct pair *pair)
{
	return read_back(pair, 3, 100);
}

static int run_read_long(struct pair *pair)
{
	return read_back(pair, 2, LONG_BYTES);
}

/* --- atomics --- */

static uint64_t *number(const struct node *node, unsigned int half)
{
	return (uint64_t *)node_half(node, half);
}

static int expect_number(const char *what, uint64_t have, uint64_t want)
{
	return have == want ? VB_ENDED_WELL
			    : vb_explore_wrong("%s is %llu, and should be %llu", what,
					       (unsigned long long)have, (unsigned long long)want);
}

/* Posts a FETCH AND ADD of 1, 2, 4, 8 on one number, whose answers go to one place. */
static int run_fetch_add(struct pair *pair)
{
	int end;

	*number(&pair->b, 1) = 100;
	for (unsigned int i = 0; i < 4; i++)
		if (!node_post(&pair->a, &pair->b,
			       (struct ibv_send_wr){.wr_id = i + 1,
						    .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
						    .wr.atomic.compare_add = 1u << i},
			       0, 8))
			return VB_ENDED_REPORTED;
	end = node_take(&pair->a, 4, 0, NULL);
	if (!end)
		end = expect_number("the sum", *number(&pair->b, 1), 115);
	return end_of(pair, end ? end : expect_number("the answer", *number(&pair->a, 0), 107));
}

/* Swaps 5 for 6, 6 for 5, and 5 for 7: done twice, one of them would not find its number. */
static int run_compare_swap(struct pair *pair)
{
	static const uint64_t from[] = {5, 6, 5}, into[] = {6, 5, 7};
	int end;

	*number(&pair->b, 1) = 5;
	for (unsigned int i = 0; i < 3; i++)
		if (!node_post(&pair->a, &pair->b,
			       (struct ibv_send_wr){.wr_id = i + 1,
						    .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
						    .wr.atomic.compare_add = from[i],
						    .wr.atomic.swap = into[i]},
			       0, 8))
			return VB_ENDED_REPORTED;
	end = node_take(&pair->a, 3, 0, NULL);
	if (!end)
		end = expect_number("the number", *number(&pair->b, 1), 7);
	return end_of(pair, end ? end : expect_number("the answer", *number(&pair->a, 0), 5));
}

/* --- several at a time --- */

/* A WRITE, a READ of what it has written, an addition to it, and a SEND. */
static int run_mixed(struct pair *pair)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
						     IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ,
						     IBV_WR_SEND};
	static const uint32_t lengths[] = {600, 600, 8, 600, 8};
	uint64_t first;
	int end;

	fill(node_half(&pair->a, 0), 600, 5);
	first = *number(&pair->a, 0);
	if (!node_receive(&pair->b, 101, 2048, 8))
		return VB_ENDED_REPORTED;
	for (unsigned int i = 0; i < 5; i++)
		if (!node_post(&pair->a, &pair->b,
			       (struct ibv_send_wr){.wr_id = i + 1,
						    .opcode = opcodes[i],
						    .wr.atomic.compare_add = 9,
						    .send_flags = i == 4 ? IBV_SEND_FENCE : 0},
			       0, lengths[i]))
			return VB_ENDED_REPORTED;
	end = node_take(&pair->a, 5, 0, NULL);
	if (!end)
		end = node_take(&pair->b, 0, 1, NULL);
	if (!end)
		end = expect_number("what was read", *number(&pair->a, 0), first + 9);
	if (!end)
		end = expect_number("what was sent", *(uint64_t *)(node_half(&pair->b, 1) + 2048),
				    first + 9);
	return end_of(pair, end);
}

/* Each node sends two messages to the other. */
static int run_both_ways(struct pair *pair)
{
	struct node *nodes[] = {&pair->a, &pair->b};
	int end = VB_ENDED_WELL;

	for (unsigned int i = 0; i < 2; i++) {
		fill(node_half(nodes[i], 0), 600, (uint8_t)(10 * i));
		if (!post_receives(nodes[i], 2, 300))
			return VB_ENDED_REPORTED;
	}
	for (unsigned int i = 0; i < 4; i++)
		if (!node_post(nodes[i % 2], nodes[(i + 1) % 2],
			       (struct ibv_send_wr){.wr_id = i / 2 + 1, .opcode = IBV_WR_SEND},
			       i / 2 * 300, 300))
			return VB_ENDED_REPORTED;
	for (unsigned int i = 0; i < 2 && !end; i++)
		end = node_take(nodes[i], 2, 2, NULL);
	for (unsigned int i = 0; i < 2 && !end; i++)
		end = compare(node_half(nodes[i], 1), node_half(nodes[(i + 1) % 2], 0), 600);
	return end_of(pair, end);
}

/* The receives come after the messages: the receiver answers with RNR NAKs. */
static int run_late_receive(struct pair *pair)
{
	int end;

	fill(node_half(&pair->a, 0), 600, 9);
	for (unsigned int i = 0; i < 2; i++)
		if (!node_post(&pair->a, &pair->b,
			       (struct ibv_send_wr){.wr_id = i + 1, .opcode = IBV_WR_SEND}, i * 300,
			       300))
			return VB_ENDED_REPORTED;
	vb_sim_run(NULL, 3000000);
	if (!post_receives(&pair->b, 2, 300))
		return VB_ENDED_REPORTED;
	end = node_take(&pair->a, 2, 0, NULL);
	if (!end)
		end = node_take(&pair->b, 0, 2, NULL);
	return end_of(pair, end ? end : compare_received(pair, 600));
}

static const struct operation operations[] = {
	{"send", run_send, false},
	{"send_imm", run_send_imm, false},
	{"send_long", run_send_long, false},
	{"send_imm_long", run_send_imm_long, false},
	{"send_srq", run_send, true},
	{"send_long_srq", run_send_long, true},
	{"write", run_write, false},
	{"write_long", run_write_long, false},
	{"write_imm", run_write_imm, false},
	{"write_imm_long", run_write_imm_long, false},
	{"write_imm_srq", run_write_imm, true},
	{"read", run_read, false},
	{"read_long", run_read_long, false},
	{"fetch_add", run_fetch_add, false},
	{"compare_swap", run_compare_swap, false},
	{"mixed", run_mixed, false},
	{"both_ways", run_both_ways, false},
	{"late_receive", run_late_receive, false},
	{"late_receive_srq", run_late_receive, true},
};

#define COUNT (sizeof(operations) / sizeof(*operations))

/* --- the program --- */

static int explored(void *arg)
{
	const struct operation *operation = arg;
	struct pair pair;
	int end;

	if (!pair_open(&pair, operation->with_srq))
		return VB_ENDED_REPORTED;
	end = operation->run(&pair);
	pair_close(&pair);
	return end;
}

int main(int argc, char **argv)
{
	struct explored tests[COUNT + 1] = {{NULL}};

	for (size_t i = 0; i < COUNT; i++)
		tests[i] = (struct explored){operations[i].name, explored, (void *)&operations[i]};
	return explore_program(argc, argv, tests);
}
