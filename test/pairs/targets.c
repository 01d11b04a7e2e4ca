/* SPDX-License-Identifier: MIT */
/*
 * A process creates an XRC target, and another one opens it by its number, connects it, and sends through it to
 * its own SRQ and memory. The creator closes its handle, opens the target again, and is killed.
 */
#include "test/pairs/content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 50000, SOURCE = 0, THERE = 65536, BACK = 2 * 65536, WORD = 3 * 65536 };
enum { BYTES = 4 * 65536, CQ_DEPTH = 64, ROUNDS = 3 };

/* All processes use one adapter, to which the domain belongs. */
enum { ADAPTER = 0 };

/* RETRY_EXC_ERR after 8 times 268 ms. With fewer retries a rule that loses one packet in 100 would end a request of a
 * living process in one run of some hundred. */
static const struct link_times times = {.timeout = 16, .retry = 7};

/* The domain is that of this program's file. */
static struct ibv_xrcd *open_domain(struct adapter *adapter)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		.oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = need("ibv_open_xrcd", ibv_open_xrcd(adapter->context, &attr));

	close(attr.fd);
	return xrcd;
}

static struct ibv_qp *open_target(struct adapter *adapter, uint32_t number)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = number,
		.xrcd = adapter->xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return need("ibv_open_qp", ibv_open_qp(adapter->context, &attr));
}

/* --- the creator --- */

static struct ibv_qp *create_target(struct adapter *adapter, const struct peer *peer)
{
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD};
	struct ibv_qp *target;

	adapter->xrcd = attr.xrcd = open_domain(adapter);
	target = need("ibv_create_qp_ex", ibv_create_qp_ex(adapter->context, &attr));
	peer_put(peer, &target->qp_num, sizeof(target->qp_num));
	return target;
}

/* The target is connected, by the other process. */
static void expect_connected(struct ibv_qp *target)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check("ibv_query_qp", ibv_query_qp(target, &attr, IBV_QP_STATE, &init));
	same("the state of the target", IBV_QPS_RTS, attr.qp_state);
}

void targets_second(const struct settings *settings, struct peer *peer)
{
	struct adapter adapter;
	struct ibv_qp *target;
	uint32_t number;

	adapter_open(&adapter, ADAPTER, 4096, CQ_DEPTH, settings->events);
	target = create_target(&adapter, peer);
	number = target->qp_num;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		peer_meet(peer);
		expect_connected(target);
		check("ibv_destroy_qp", ibv_destroy_qp(target));
		peer_meet(peer);
		peer_meet(peer);
		target = open_target(&adapter, number);
		expect_connected(target);
		peer_meet(peer);
	}
	for (;;)
		pause();
}

void targets_third(const struct settings *settings, struct peer *peer)
{
	struct adapter adapter;
	struct ibv_qp *target;

	adapter_open(&adapter, ADAPTER, 4096, CQ_DEPTH, settings->events);
	target = create_target(&adapter, peer);
	peer_meet(peer);
	check("ibv_destroy_qp", ibv_destroy_qp(target));
	peer_meet(peer);
	peer_meet(peer);
	adapter_close(&adapter);
}

/* --- the opener --- */

/* Makes an initiator and an SRQ, of which `link` says more. */
static void make_ends(struct link *link, struct adapter *adapter)
{
	struct link_name mine;

	link_make(link, adapter, LINK_XRC, IBV_MTU_1024, &mine);
	check("ibv_destroy_qp", ibv_destroy_qp(link->receiver));
	link->peer = mine;
}

/* Connects the initiator, and the target, which is of the other process. */
static void connect_ends(struct link *link, uint32_t number)
{
	struct link_name name = link->peer;

	link->receiver = open_target(link->adapter, number);
	name.qpn = number;
	name.requests = link->qp->qp_num;
	name.psn = (link->qp->qp_num * 7919) & 0xffffff;
	link_reset(link);
	link_connect(link, &name, times);
}

static enum ibv_wc_status do_work(struct link *link, enum ibv_wr_opcode opcode, size_t offset,
				  size_t length, size_t remote_offset)
{
	struct ibv_wc wc;

	link_work(link, opcode, offset, length, remote_offset);
	do
		adapter_wait(link->adapter, &wc);
	while (wc.opcode & IBV_WC_RECV && wc.status == IBV_WC_SUCCESS);
	return wc.status;
}

static void expect_work(struct link *link, enum ibv_wr_opcode opcode, size_t offset, size_t length,
			size_t remote_offset)
{
	enum ibv_wc_status status = do_work(link, opcode, offset, length, remote_offset);

	if (status != IBV_WC_SUCCESS)
		fail("opcode %d: %s", (int)opcode, ibv_wc_status_str(status));
}

static void expect(const struct link *link, const char *what, size_t offset, uint64_t key)
{
	if (!pattern_holds(link->adapter->memory + offset, SIZE, key))
		fail("%s: the data is wrong", what);
}

/* SEND, RDMA WRITE, READ and an atomic through the target, to the memory of this process. */
static void talk(struct link *link, uint64_t key)
{
	uint8_t *memory = link->adapter->memory;
	uint64_t before, found;

	pattern_fill(memory + SOURCE, SIZE, key);
	link_receive(link, 0, THERE, SIZE);
	expect_work(link, IBV_WR_SEND, SOURCE, SIZE, 0);
	expect(link, "SEND", THERE, key);
	expect_work(link, IBV_WR_RDMA_WRITE, SOURCE, SIZE, BACK);
	expect(link, "RDMA WRITE", BACK, key);
	memset(memory + SOURCE, 0, SIZE);
	expect_work(link, IBV_WR_RDMA_READ, SOURCE, SIZE, THERE);
	expect(link, "RDMA READ", SOURCE, key);
	memcpy(&before, memory + WORD, sizeof(before));
	expect_work(link, IBV_WR_ATOMIC_FETCH_AND_ADD, SOURCE, sizeof(found), WORD);
	memcpy(&found, memory + SOURCE, sizeof(found));
	same("the value that FETCH_ADD has found", before, found);
	memcpy(&found, memory + WORD, sizeof(found));
	same("the value that FETCH_ADD has left", before + 3, found);
}

static void use_target(struct link *link, const struct peer *peer, uint32_t number, uint64_t key)
{
	talk(link, key);
	peer_meet(peer);
	peer_meet(peer);
	/* The creator has closed its handle. */
	talk(link, key + 1);
	check("ibv_destroy_qp", ibv_destroy_qp(open_target(link->adapter, number)));
	talk(link, key + 2);
	peer_meet(peer);
	peer_meet(peer);
}

void targets_first(const struct settings *settings, struct peer *peer)
{
	struct adapter adapter;
	struct link link;
	uint32_t number;

	adapter_open(&adapter, ADAPTER, BYTES, CQ_DEPTH, settings->events);
	adapter.xrcd = open_domain(&adapter);
	make_ends(&link, &adapter);
	peer_take(peer, &number, sizeof(number));
	connect_ends(&link, number);
	for (unsigned int round = 0; round < ROUNDS; round++)
		use_target(&link, peer, number, settings->seed + 10 * round);
	peer_kill(peer);
	/* An adapter keeps the target; a simulated one is of its process. */
	if (do_work(&link, IBV_WR_RDMA_WRITE, SOURCE, SIZE, BACK) != IBV_WC_SUCCESS) {
		check("ibv_destroy_qp", ibv_destroy_qp(link.receiver));
		*peer = scenario_start(settings, "new_target");
		peer_take(peer, &number, sizeof(number));
		connect_ends(&link, number);
		talk(&link, settings->seed + 100);
		peer_meet(peer);
		peer_meet(peer);
		talk(&link, settings->seed + 101);
		peer_meet(peer);
	}
	link_destroy(&link);
	adapter_close(&adapter);
}
