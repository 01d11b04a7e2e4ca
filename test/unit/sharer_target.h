/* SPDX-License-Identifier: MIT */
/* A target QP of this process, whose domain a sharer has open, too: tests of messages for the sharer's SRQ. */
#ifndef TEST_UNIT_SHARER_TARGET_H
#define TEST_UNIT_SHARER_TARGET_H

#include "backends/sim/world/world.h"
#include "sim/net/wire.h"
#include "sim/qp/relay.h" /* not in a test: Ceedling would link test/peer/relay.c with it */
#include "test/unit/sharer.h"

#include <errno.h>
#include <stdio.h>

static struct sharer other;

static inline void open_own(void)
{
	struct vb_sim_config config;

	share_config(&config);
	open_alone(&config);
}

/* For setUp() and tearDown() of a test. */
static inline void begin_sharing(void)
{
	static unsigned int count;

	snprintf(share_world, sizeof(share_world), "xrc-%d-%u", (int)getpid(), ++count);
	share_file = memfd_create("domain", MFD_CLOEXEC);
	share_begin(&other);
	open_own();
}

static inline void end_sharing(void)
{
	share_kill(&other);
	close(share_file);
	close_pair();
	TEST_ASSERT_EQUAL_INT(0, vb_sim_configure(NULL));
}

static inline int ask(enum share_order order, int argument)
{
	return share_ask(&other, order, argument)->error;
}

/* --- messages --- */

static struct ibv_xrcd *domain;
static struct ibv_qp *initiator, *target;
static uint32_t their_srq, their_rkey;
static uint64_t their_addr;

static inline void make_connection(int file)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(&a, IBV_QPT_XRC_SEND);

	domain = share_domain(a.context, file, O_CREAT);
	attr.recv_cq = NULL;
	attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
	initiator = B.create_qp_ex(a.context, &attr);
	attr = (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = domain};
	target = B.create_qp_ex(a.context, &attr);
	TEST_ASSERT_NOT_NULL(target);
	connect_qp(initiator, &a, target->qp_num);
	connect_qp(target, &a, initiator->qp_num);
}

static inline void make_srqs(void)
{
	const struct share_answer *answer;

	TEST_ASSERT_EQUAL_INT(0, ask(SHARE_OPEN_DOMAIN, O_CREAT));
	answer = share_ask(&other, SHARE_MAKE_SRQ, 0);
	TEST_ASSERT_EQUAL_INT(0, answer->error);
	their_srq = answer->number;
	their_rkey = answer->count;
	their_addr = answer->addr;
}

static inline void connect_targets(void)
{
	make_srqs();
	make_connection(share_file);
}

static inline void post_xrc(enum ibv_wr_opcode opcode, uint32_t srq, size_t offset, uint32_t bytes,
			    uint64_t remote)
{
	struct ibv_sge sge = sge_of(&a, offset, bytes);
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .qp_type.xrc.remote_srqn = srq,
				 .wr.rdma = {.remote_addr = remote, .rkey = their_rkey}};

	TEST_ASSERT_EQUAL_INT(0, post_wr(initiator, &wr));
}

/* --- bytes of relays --- */

enum relayed_kind { RELAYED_REQUEST, RELAYED_ANSWER, RELAYED_DATA, RELAYED_EVENT, RELAYED_END };

/* As sim/qp/relay.c has them. */
struct relayed {
	uint64_t domain[2];
	uint32_t target, peer, psn, msn, access;
	uint16_t pkey_index, slid;
	uint8_t kind, epoch, mtu, syndrome, message, asked, event, again;
};

/* Plays a process that sends bytes to this one. */
static inline void relay_from(uint64_t process, const uint8_t *bytes, size_t length)
{
	struct device *device = context_of(a.context)->device;
	struct vb_sim *world = context_of(a.context)->world;

	pthread_mutex_lock(&world->driver.mutex);
	sim_way_out_relayed(sim_device_port(device->engine, 1), process, bytes, length);
	driver_catch_up(&world->driver);
	pthread_mutex_unlock(&world->driver.mutex);
}

static inline void fill(uint8_t seed)
{
	for (size_t i = 0; i < sizeof(a.buffer); i++)
		a.buffer[i] = (uint8_t)(seed + i * 11 + i / 64);
}

/* Waits until the target has sent more than `before` RNR NAKs. */
static inline void await_rnr_nak(uint64_t before)
{
	const struct sim_counters *counters = &context_of(a.context)->device->engine->counters;
	const time_t end = time(NULL) + 10;

	while (counters->rnr_naks_sent == before && time(NULL) <= end)
		ibv_poll_cq(a.cq, 0, NULL);
	TEST_ASSERT_TRUE(counters->rnr_naks_sent > before);
}

static inline enum ibv_wc_status sent(void)
{
	return share_wait(a.cq).status;
}

#endif
