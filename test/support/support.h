/* SPDX-License-Identifier: MIT */
/*
 * Fixtures for the conformance tests: a connected pair of queue pairs in one call, posting,
 * waiting.
 *
 * Everything that a ts_* function makes is destroyed when the test ends. A function that checks
 * ends the test if the check fails, and the failure names the line of the test that called it.
 */
#ifndef TEST_SUPPORT_SUPPORT_H
#define TEST_SUPPORT_SUPPORT_H

#include <string.h>

#include "test/conformance/conformance.h"
#include <verbena/verbs.h>

#define TS_ACCESS_ALL                                                                \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

#define TS_QKEY		 0x11111111
#define TS_MULTICAST_QPN 0xffffff
#define TS_BLANK	 0xa5 /* every byte of B's buffer before the test */
#define TS_GRH		 40   /* the bytes in front of a received datagram */
#define TS_PSN_MASK	 0xffffff

#define TS_COUNT(array) (sizeof(array) / sizeof(*(array)))

/* A key that stands for no region: of another number, with the same low byte. */
static inline uint32_t ts_wrong_key(uint32_t key)
{
	return key ^ 0xffff00;
}

/* --- a pair --- */

struct ts_options {
	enum ibv_qp_type type;
	size_t buffer_bytes; /* of each end */
	uint32_t send_wr, recv_wr, send_sge, recv_sge, inline_bytes;
	int send_cqe, recv_cqe;
	bool one_cq;	 /* both queues of an end complete to one CQ */
	bool channels;	 /* each CQ has a completion channel, non-blocking */
	bool signal_all; /* sq_sig_all */
	int mr_access;
	int qp_access;
	enum ibv_mtu mtu;
	uint32_t a_psn, b_psn; /* the first PSN that each end sends */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
};

struct ts_end {
	struct vt *t;
	struct vt_node *node;
	struct ts_end *peer; /* the end that it is connected to, maybe itself */
	struct ts_options options;
	struct ibv_pd *pd;
	struct ibv_comp_channel *send_channel, *recv_channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *qp;
	uint8_t *buffer;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* UD: to the peer */
	uint32_t send_psn, recv_psn;
	struct ibv_qp_cap cap; /* the sizes that ibv_create_qp() returned */
};

struct ts_pair {
	struct ts_end a, b;
};

/*
 * The defaults of a pair: buffers of 64 KiB, queues of 16 WRs, a CQ of 64 entries per queue, all
 * rights, the largest MTU that both ports have, timeout 14 (67 ms), retry_cnt 7, rnr_retry 7.
 */
struct ts_options ts_defaults(struct vt *t, enum ibv_qp_type type);

/* Two QPs in RTS, each connected to the other. */
struct ts_pair *ts_pair(struct vt *t, const struct ts_options *options);

/* As ts_pair() with both QPs left in RESET. */
struct ts_pair *ts_pair_reset(struct vt *t, const struct ts_options *options);

/* One end in RESET whose peer is itself. */
struct ts_end *ts_end(struct vt *t, struct vt_node *node, const struct ts_options *options);

/* ts_pair() with ts_defaults(). */
struct ts_pair *ts_connected(struct vt *t, enum ibv_qp_type type);

/* An RC pair whose CQs have completion channels. */
struct ts_pair *ts_pair_with_channels(struct vt *t);

/* A pair in RTS whose B has its QP and memory in the PD of another end of the same node. */
struct ts_pair *ts_pair_in_pd(struct vt *t, const struct ts_options *options, struct ts_end *other);

/* Takes an end from RESET to RTS towards its peer. */
void ts_connect(struct ts_end *end);
void ts_connect_both(struct ts_pair *pair);

/* --- single objects --- */

struct ibv_pd *ts_pd(struct vt *t, struct vt_node *node);
struct ibv_cq *ts_cq(struct vt *t, struct vt_node *node, int cqe);
/* Non-blocking. */
struct ibv_comp_channel *ts_channel(struct vt *t, struct vt_node *node);
struct ibv_cq *ts_cq_on(struct vt *t, struct vt_node *node, int cqe,
			struct ibv_comp_channel *channel);
struct ibv_mr *ts_mr(struct vt *t, struct ibv_pd *pd, void *address, size_t length_bytes,
		     int access);
struct ibv_ah *ts_ah(struct vt *t, struct ibv_pd *pd, struct vt_node *from, struct vt_node *to);
struct ibv_qp *ts_qp(struct vt *t, struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type);
/* Memory of whole pages, zeroed. */
void *ts_memory(struct vt *t, size_t length_bytes);
/* mprotect(2), for both nodes. */
void ts_protect(struct vt *t, void *memory, size_t length_bytes, int protection);

/* A second context of the node's device. */
struct ibv_context *ts_context(struct vt *t, struct vt_node *node);

/*
 * Gives an end another QP, in RESET, in place of the one that it has. Zeroed fields of init are as
 * for the old QP: PD, CQs, sizes, type. The end gets the type and the PD of init.
 */
void ts_remake_qp(struct ts_end *end, const struct ibv_qp_init_attr_ex *init);

/* Destroys the QP before the test ends. For other objects there is ts_gone() of keep.h. */
void ts_destroy_qp(struct ts_end *end);

/* --- addresses --- */

bool ts_gid_is_ipv4(const union ibv_gid *gid);
/* Makes both nodes use their IPv6 address from now on. Skips the test if one has none. */
void ts_use_ipv6(struct vt *t);

/* --- states --- */

/* The address vector from one node to another. */
struct ibv_ah_attr ts_av(struct vt_node *from, struct vt_node *to);

/* Every attribute of a modify, with a value that is good for a QP connected to the peer. */
struct ibv_qp_attr ts_good_attr(struct ts_end *end, struct ts_end *peer, enum ibv_qp_state from,
				enum ibv_qp_state to);

/* Fill the attributes of a step towards RTS and return their mask, with IBV_QP_STATE. */
int ts_init_attr(struct ts_end *end, struct ibv_qp_attr *attr);
int ts_rtr_attr(struct ts_end *end, struct ibv_qp_attr *attr);
int ts_rts_attr(struct ts_end *end, struct ibv_qp_attr *attr);

void ts_to_init(struct ts_end *end);
void ts_to_rtr(struct ts_end *end);
void ts_to_rts(struct ts_end *end);
/* Moves with IBV_QP_STATE alone: to RESET, ERR, SQD, or back to RTS. */
int ts_to(struct ts_end *end, enum ibv_qp_state state);
/* What ibv_query_qp() says of the end's QP: its state and capabilities are in the mask. */
struct ibv_qp_attr ts_query(struct ts_end *end);
enum ibv_qp_state ts_query_state(struct vt *t, struct ibv_qp *qp);
/* Waits until a QP in SQD has drained: before, a device need not let it go to any state but ERR. */
void ts_drained(struct ts_end *end);

/* --- posting --- */

/*
 * A send work request to the peer. Zeroed fields: the end's buffer from its start under its lkey,
 * the peer's buffer from its start under its rkey, signalled.
 */
struct ts_wr {
	uint64_t wr_id;
	enum ibv_wr_opcode opcode;
	size_t offset;
	uint32_t length;
	unsigned int flags; /* in addition to IBV_SEND_SIGNALED */
	bool unsignalled;
	uint32_t imm;		  /* host order */
	uint32_t invalidate_rkey; /* instead of imm */
	size_t remote_offset;
	uint64_t remote_address; /* instead of remote_offset */
	uint32_t rkey;
	uint64_t address; /* instead of offset */
	uint32_t lkey;
	struct ibv_sge *sge; /* num_sge of them, instead of length, address and lkey */
	int num_sge;
	uint64_t compare_add, swap;
	uint32_t remote_qpn, remote_qkey; /* UD: instead of the peer's */
};

struct ts_rr {
	uint64_t wr_id;
	size_t offset;
	uint32_t length;
	uint64_t address;
	uint32_t lkey;
	struct ibv_sge *sge;
	int num_sge;
};

/* Returns what ibv_post_send() and ibv_post_recv() return. */
int ts_post(struct ts_end *end, const struct ts_wr *wr);
int ts_post_rr(struct ts_end *end, const struct ts_rr *rr);

/* Fill a work request, for a list; sge is the caller's and lives as long as the request. */
void ts_fill_wr(struct ts_end *end, const struct ts_wr *wr, struct ibv_sge *sge,
		struct ibv_send_wr *out);
void ts_fill_rr(const struct ts_rr *rr, const void *buffer, uint32_t lkey, struct ibv_sge *sge,
		struct ibv_recv_wr *out);

#define TS_POST(e, op, ...)                                          \
	((void)VT_OK_SAID((e)->t, VT_HERE, "posting " #op " to " #e, \
			  ts_post(e, &(struct ts_wr){.opcode = (op), __VA_ARGS__})))
#define ts_send(e, ...)	     TS_POST(e, IBV_WR_SEND, __VA_ARGS__)
#define ts_send_imm(e, ...)  TS_POST(e, IBV_WR_SEND_WITH_IMM, __VA_ARGS__)
#define ts_send_inv(e, ...)  TS_POST(e, IBV_WR_SEND_WITH_INV, __VA_ARGS__)
#define ts_write(e, ...)     TS_POST(e, IBV_WR_RDMA_WRITE, __VA_ARGS__)
#define ts_write_imm(e, ...) TS_POST(e, IBV_WR_RDMA_WRITE_WITH_IMM, __VA_ARGS__)
#define ts_read(e, ...)	     TS_POST(e, IBV_WR_RDMA_READ, __VA_ARGS__)
#define ts_swap(e, ...)	     TS_POST(e, IBV_WR_ATOMIC_CMP_AND_SWP, .length = 8, __VA_ARGS__)
#define ts_fetch_add(e, ...) TS_POST(e, IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, __VA_ARGS__)
#define ts_recv(e, ...)                                                \
	((void)VT_OK_SAID((e)->t, VT_HERE, "posting a receive to " #e, \
			  ts_post_rr(e, &(struct ts_rr){__VA_ARGS__})))

/*
 * A pair whose A has posted a receive, wr_id 60, and completed `extra` writes more than its send CQ
 * holds; nothing was polled.
 */
struct ts_pair *ts_overrun(struct vt *t, int extra);

/* --- waiting --- */

/*
 * Polls until `want` completions came, no more can come, or the time is up: two minutes of a
 * virtual clock, three seconds of a real one. Returns how many came.
 */
int ts_wait(struct vt *t, struct ibv_cq *cq, int want, struct ibv_wc *wc);

/* Runs until no event is left; on a real clock, waits 30 ms. */
void ts_settle(struct vt *t);

/* Lets the time pass. */
void ts_pause(struct vt *t, uint64_t duration_ns);

/* Waits for the next completion and checks it. The opcode is checked only if it succeeded. */
struct ibv_wc ts_expect_at(struct vt *t, struct vt_at at, struct ibv_cq *cq, uint64_t wr_id,
			   enum ibv_wc_status status, enum ibv_wc_opcode opcode);
/* Waits for a successful receive of byte_len bytes. */
struct ibv_wc ts_received_at(struct vt *t, struct vt_at at, struct ibv_cq *cq, uint64_t wr_id,
			     enum ibv_wc_opcode opcode, uint32_t byte_len);
/* Checks that the CQ is empty and stays empty. */
void ts_no_more_at(struct vt *t, struct vt_at at, struct ibv_cq *cq);
/* Checks the state that ibv_query_qp() returns. */
void ts_state_at(struct ts_end *end, struct vt_at at, enum ibv_qp_state state);

#define ts_done(t, cq, wr_id, opcode)	ts_expect_at(t, VT_HERE, cq, wr_id, IBV_WC_SUCCESS, opcode)
#define ts_failed(t, cq, wr_id, status) ts_expect_at(t, VT_HERE, cq, wr_id, status, 0)
#define ts_flushed(t, cq, wr_id)	ts_failed(t, cq, wr_id, IBV_WC_WR_FLUSH_ERR)
#define ts_received(t, cq, wr_id, byte_len) \
	ts_received_at(t, VT_HERE, cq, wr_id, IBV_WC_RECV, byte_len)
#define ts_written(t, cq, wr_id, byte_len) \
	ts_received_at(t, VT_HERE, cq, wr_id, IBV_WC_RECV_RDMA_WITH_IMM, byte_len)
#define ts_no_more(t, cq)     ts_no_more_at(t, VT_HERE, cq)
#define ts_state(e, expected) ts_state_at(e, VT_HERE, expected)

/* --- events --- */

/* Waits for the next event, acknowledges and checks it; element is the QP or CQ that it names. */
void ts_event_at(struct vt *t, struct vt_at at, struct vt_node *node, enum ibv_event_type type,
		 const void *element);
void ts_no_event_at(struct vt *t, struct vt_at at, struct vt_node *node);
/* Takes and acknowledges all events of the node. */
void ts_drain_events(struct vt_node *node);
/* Returns true if there is a completion event, and acknowledges it. cq may be NULL. */
bool ts_cq_event(struct vt *t, struct ibv_comp_channel *channel, struct ibv_cq **cq);

#define ts_event(t, node, type, element) ts_event_at(t, VT_HERE, node, type, element)
#define ts_no_event(t, node)		 ts_no_event_at(t, VT_HERE, node)

/* --- data --- */

/* Fills the buffer with a pattern that depends on the offset and the seed. */
void ts_fill(void *buffer, size_t length_bytes, uint32_t seed);
void ts_verify_at(struct vt *t, struct vt_at at, const void *buffer, size_t length_bytes,
		  uint32_t seed);
/* Checks that every byte is still TS_BLANK. */
void ts_blank_at(struct vt *t, struct vt_at at, const void *buffer, size_t length_bytes);
#define ts_verify(t, buffer, length_bytes, seed) \
	ts_verify_at(t, VT_HERE, buffer, length_bytes, seed)
#define ts_blank(t, buffer, length_bytes) ts_blank_at(t, VT_HERE, buffer, length_bytes)

uint32_t ts_mtu_bytes(enum ibv_mtu mtu);

/*
 * Does one operation from A to B and checks completions on both sides, the data, and that no byte
 * beside the data changed. size_bytes + 128 must fit into both buffers. On UD the receive has room
 * for the GRH.
 */
void ts_transfer(struct ts_pair *pair, enum ibv_wr_opcode opcode, uint32_t size_bytes);

/* --- the simulator --- */

struct vb_sim;
struct vb_sim *ts_sim(struct vt *t);
/* Nanoseconds of the simulated clock. */
uint64_t ts_now_ns(struct vt *t);
bool ts_virtual(struct vt *t);

/* A packet that crossed the wire. */
struct ts_frame {
	uint64_t now_ns;
	uint8_t opcode; /* of the BTH */
	uint32_t dest_qpn;
	uint32_t psn;
	uint8_t syndrome; /* of the AETH, if the packet begins with one */
	bool lost;
};

#define TS_FRAMES_MAX 65536

/* The packets that crossed the wire since ts_watch(). Needs VT_NEEDS_SIM. */
struct ts_log {
	struct vt *t;
	unsigned int count;
	struct ts_frame frames[TS_FRAMES_MAX];
};

struct ts_log *ts_watch(struct vt *t);
/* Counts the packets with an opcode (0xff: any) for a QPN (0: any). */
unsigned int ts_count(const struct ts_log *log, uint8_t opcode, uint32_t dest_qpn);

struct vb_fault_rule;
/* Adds a rule until the test ends. Returns its id. */
unsigned int ts_fault(struct vt *t, const struct vb_fault_rule *rule);

/* BTH opcodes of RC; those of UC and UD are 0x20 and 0x60 higher. */
enum {
	TS_SEND_FIRST = 0x00,
	TS_SEND_MIDDLE = 0x01,
	TS_SEND_LAST = 0x02,
	TS_SEND_ONLY = 0x04,
	TS_WRITE_FIRST = 0x06,
	TS_WRITE_MIDDLE = 0x07,
	TS_WRITE_LAST = 0x08,
	TS_WRITE_ONLY = 0x0a,
	TS_READ_REQUEST = 0x0c,
	TS_READ_FIRST = 0x0d,
	TS_READ_MIDDLE = 0x0e,
	TS_READ_LAST = 0x0f,
	TS_READ_ONLY = 0x10,
	TS_ACK = 0x11,
	TS_ATOMIC_ACK = 0x12,
	TS_COMPARE_SWAP = 0x13,
	TS_FETCH_ADD = 0x14,
	TS_SEND_ONLY_INV = 0x17,
	TS_ATOMIC_WRITE = 0x1d,
	TS_UC = 0x20,
};

#endif
