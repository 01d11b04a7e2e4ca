/* SPDX-License-Identifier: MIT */
/* Receives of datagrams. */
#include "pair.h"

static const struct plan plan = {.type = IBV_QPT_UD, .access = IBV_ACCESS_LOCAL_WRITE};

static struct ibv_ah *ah;

static void connect_datagram(void)
{
	struct ibv_ah_attr attr;

	connect_ends(&plan);
	attr = path_to(there);
	attr.grh.sgid_index = (uint8_t)here->gid_index;
	ah = ibv_create_ah(here->pd, &attr);
	need(ah != NULL, "AH");
}

static void close_datagram(void)
{
	ibv_destroy_ah(ah);
	close_ends();
}

/* Posts a receive of two SGEs, the first one with the bytes of the GRH. */
static void receive_of(uint32_t grh_bytes, uint32_t length)
{
	struct ibv_sge sges[] = {piece(there, 0, grh_bytes), piece(there, 1024, length)};
	struct ibv_recv_wr wr = {.wr_id = 8, .sg_list = sges, .num_sge = 2}, *bad;

	need(!ibv_post_recv(there->qp, &wr, &bad), "receive"); /* @receive-of */
}

static void send_with(uint32_t length, uint32_t qkey)
{
	struct ibv_sge sge = piece(here, 0, length);
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = {.ah = ah, .remote_qpn = there->qp->qp_num, .remote_qkey = qkey},
	};
	struct ibv_send_wr *bad;

	need(!ibv_post_send(here->qp, &wr, &bad), "send"); /* @send-with */
	need(wait_for(here).status == IBV_WC_SUCCESS, "sent");
}

static void send_of(uint32_t length)
{
	send_with(length, QKEY);
}

static void no_room(void)
{
	connect_datagram();
	receive_of(0, 32);
	close_datagram();
}

static void no_room_kept(void)
{
	connect_datagram();
	receive_of(GRH_BYTES, 0);
	send_of(0);
	need(wait_for(there).byte_len == GRH_BYTES, "empty datagram");
	close_datagram();
}

/* Else the device drops the datagram, and no completion shows it. */
static void let_short_receives_fail(void)
{
	need(!setenv("VERBENA_QUIRKS", "short_datagram_receive_fails", 1), "environment");
}

static void no_room_for_grh(void)
{
	let_short_receives_fail();
	connect_datagram();
	receive_of(0, 64);
	send_of(64);
	need(wait_for(there).status == IBV_WC_LOC_QP_OP_ERR, "status");
	close_datagram();
}

/* The datagram is too long in any case. */
static void no_room_for_grh_kept(void)
{
	let_short_receives_fail();
	connect_datagram();
	receive_of(GRH_BYTES, 64);
	send_of(64);
	need(wait_for(there).status == IBV_WC_SUCCESS, "status");
	receive_of(GRH_BYTES, 64);
	send_of(256);
	need(wait_for(there).status == IBV_WC_LOC_QP_OP_ERR, "status");
	close_datagram();
}

/* The receive is posted before the QP is ready. */
static void no_room_early(void)
{
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR};

	open_ends(&plan);
	to_init(there, &plan);
	receive_of(0, 32);
	to_rtr(there, &rtr);
	close_ends();
}

/* A receive without bytes shows when the queue is empty. */
static void no_room_early_kept(void)
{
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};

	open_ends(&plan);
	to_init(there, &plan);
	receive_of(0, 0);
	need(!ibv_modify_qp(there->qp, &err, IBV_QP_STATE), "ERR");
	need(wait_for(there).status == IBV_WC_WR_FLUSH_ERR, "flush");
	receive_of(0, 0);
	need(wait_for(there).status == IBV_WC_WR_FLUSH_ERR, "flush in ERR");
	close_ends();
}

static void wrong_qkey(void)
{
	connect_datagram();
	receive_of(GRH_BYTES, 64);
	send_with(64, QKEY + 1);
	send_with(64, QKEY + 1);
	close_datagram();
}

/* A Q_Key with the highest bit stands for the sender's own. */
static void wrong_qkey_kept(void)
{
	connect_datagram();
	receive_of(GRH_BYTES, 64);
	send_with(64, QKEY);
	send_with(64, 0x80000000);
	close_datagram();
}

static void set_qkey(struct end *end, uint32_t qkey)
{
	struct ibv_qp_attr attr = {.qkey = qkey};

	need(!ibv_modify_qp(end->qp, &attr, IBV_QP_QKEY), "Q_Key");
}

/* The peer gets another Q_Key after the first send. */
static void send_before_and_after(uint32_t qkey_after)
{
	connect_datagram();
	receive_of(GRH_BYTES, 64);
	send_with(64, QKEY);
	set_qkey(there, QKEY + 1);
	send_with(64, qkey_after);
	close_datagram();
}

static void qkey_changed(void)
{
	send_before_and_after(QKEY);
}

static void qkey_changed_kept(void)
{
	send_before_and_after(QKEY + 1);
}

/* The second address handle may have the pointer of the first one. It leads to the sender, whose QP has the same
 * number. */
static void send_to_both(uint32_t own_qkey)
{
	struct ibv_ah_attr attr;

	connect_datagram();
	need(here->qp->qp_num == there->qp->qp_num, "one number");
	set_qkey(here, QKEY + 1);
	send_with(64, QKEY);
	need(!ibv_destroy_ah(ah), "destroyed");
	attr = path_to(here);
	ah = ibv_create_ah(here->pd, &attr);
	need(ah != NULL, "AH");
	send_with(64, own_qkey);
	close_datagram();
}

static void qkey_of_another(void)
{
	send_to_both(QKEY);
}

static void qkey_of_another_kept(void)
{
	send_to_both(QKEY + 1);
}

#define PAIR(name, function)                  \
	{name, function},                     \
	{                                     \
		name "-kept", function##_kept \
	}

static const struct mode modes[] = {
	PAIR("no-room", no_room),
	PAIR("no-room-early", no_room_early),
	PAIR("no-room-for-grh", no_room_for_grh),
	PAIR("wrong-qkey", wrong_qkey),
	PAIR("qkey-changed", qkey_changed),
	PAIR("qkey-of-another", qkey_of_another),
	{0},
};

int main(int argc, char **argv)
{
	return run_mode(argc, argv, modes);
}
