/* SPDX-License-Identifier: MIT */
/* A script that runs: its QPs, and what the device has done. Private to the room. */
#ifndef SRC_SCRIPT_RUN_H
#define SRC_SCRIPT_RUN_H

#include "src/script/script.h"

#include <rdma/rdma_cma.h>

/* A QP or an SRQ of the script. */
struct script_qp {
	const char *name;
	enum ibv_qp_type type;
	struct ibv_qp *qp;   /* NULL: an SRQ */
	struct ibv_srq *srq; /* of an SRQ */
	struct ibv_pd *pd;
	struct ibv_cq *cqs[2]; /* of the send queue and of the receive queue */
	struct ibv_ah *ah;     /* of a UD QP, to the peer */
	struct ibv_mr *mr;
	uint8_t *buffer;
	size_t buffer_bytes;
	uint32_t peer_qpn;
	uint32_t psn, peer_psn; /* the first ones */
	const struct script_line *line;
};

struct script_window {
	struct ibv_mw *mw;
	uint32_t rkey;	 /* of its last binding */
	unsigned int of; /* whose memory it is bound to: an index of run->qps */
};

/* A QP that is in a multicast group. */
struct script_member {
	unsigned int qp, group;
};

#define SCRIPT_MEMBERS_MAX 16
#define SCRIPT_GROUP_QPN   0xffffffu /* the destination of a multicast */

enum script_seen_kind {
	SCRIPT_SEEN_PACKET,
	SCRIPT_SEEN_COMPLETION,
	SCRIPT_SEEN_EVENT,
	SCRIPT_SEEN_MANAGER,
};

/* What the device has done. */
struct script_seen {
	enum script_seen_kind kind;
	bool taken; /* a line has expected it */
	uint64_t time_ns;
	unsigned int frame; /* of a packet: an index of wire->frames */
	unsigned int qp;    /* of a completion */
	unsigned int queue; /* of a completion: 0 send, 1 receive */
	struct ibv_wc wc;
	enum ibv_event_type event;
	enum rdma_cm_event_type manager_event;
	int status; /* of a manager_event */
};

/* The connection of a script, and what its device has called it. */
struct script_manager {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener, *id;
	bool heard; /* the device has sent a message */
	uint32_t comm_id, qpn;
	uint64_t transaction_id;
};

#define SCRIPT_MAD_BYTES 256u

struct script_run {
	const struct script *script;
	struct script_wire *wire;
	struct script_failure *failure;
	struct ibv_pd *pds[2]; /* the script's, and the other one */
	struct ibv_xrcd *xrcd;
	struct script_qp qps[SCRIPT_QPS_MAX];
	struct script_window windows[SCRIPT_WINDOWS_MAX];
	unsigned int window_count;
	struct script_member members[SCRIPT_MEMBERS_MAX];
	unsigned int member_count;
	struct ibv_ah *ahs[SCRIPT_QPS_MAX]; /* to multicast groups */
	unsigned int ah_count;
	struct script_seen *seen;
	unsigned int seen_count, seen_room;
	unsigned int frames_seen;
	struct script_manager manager;
	uint64_t last_ns; /* when the line before happened */
	bool ignore_completions;
};

/* --- packet.c --- */

/* Returns the byte of the pattern at a place. */
uint8_t script_pattern(uint64_t place);

/* Fills the bytes that DATA of a line stands for. */
void script_data(const struct script_line *line, uint8_t *bytes, size_t length_bytes);

/* Writes the frame of a line '<' for the QP @to; NULL: for the QP of the line. Returns its length; 0
 * with a sentence of vb_last_error(). */
size_t script_packet_make(const struct script_run *run, const struct script_line *line,
			  const struct script_qp *to, uint8_t *frame);

/* Compares a frame of the device with a line '>'. Returns false with the failure. */
bool script_packet_compare(const struct script_run *run, const struct script_line *line,
			   const struct script_frame *frame);

/* Fills rows with the fields of a frame that no line has expected. */
void script_packet_tell(const struct script_run *run, const struct script_frame *frame);

/* --- device.c --- */

#define SCRIPT_QKEY_DEFAULT 0x11111111

/* Returns the number of a field, or another one if the line does not have the field. */
uint64_t script_number_or(const struct script_line *line, enum script_field field, uint64_t other);

/* Compares what a call has returned with what the line wants. */
bool script_check_errno(struct script_run *run, const struct script_line *line, const char *call,
			int err);

/* Returns the address of the peer, or of a multicast group if the line has one. */
struct ibv_ah_attr script_path(const struct script_wire *wire, const struct script_line *line);

/* Returns the GID and the LID of a multicast group. */
union ibv_gid script_group_gid(const struct script_wire *wire, uint64_t group);
uint16_t script_group_lid(const struct script_wire *wire, uint64_t group);

/* Each returns false with the failure. */
bool script_make_qp(struct script_run *run, const struct script_line *line);
bool script_make_srq(struct script_run *run, const struct script_line *line);
bool script_modify(struct script_run *run, const struct script_line *line);
bool script_check_state(struct script_run *run, const struct script_line *line);
bool script_store(struct script_run *run, const struct script_line *line);
bool script_check_memory(struct script_run *run, const struct script_line *line);

/* Destroys all objects. */
void script_end(struct script_run *run);

/* --- work.c --- */

bool script_post_send(struct script_run *run, const struct script_line *line);
bool script_post_recv(struct script_run *run, const struct script_line *line);

/* Returns the key that a value stands for: a number, the key of a window, or a wrong one. */
uint32_t script_key(const struct script_run *run, const struct script_line *line,
		    const struct script_value *value);

/* Returns the SRQ number that a value stands for. */
uint32_t script_srqn(const struct script_run *run, const struct script_value *value);

bool script_make_window(struct script_run *run, const struct script_line *line);
bool script_bind(struct script_run *run, const struct script_line *line);
bool script_attach(struct script_run *run, const struct script_line *line);
bool script_detach(struct script_run *run, const struct script_line *line);

/* Destroys the windows and address handles, and leaves the multicast groups. */
void script_end_work(struct script_run *run);

/* --- message.c --- */

/* Writes the frame of a message of the peer. Returns its length; 0 with a sentence. */
size_t script_message_make(const struct script_run *run, const struct script_line *line,
			   uint8_t *frame);

/* Compares a frame of the device with a message. Returns false with the failure. */
bool script_message_compare(struct script_run *run, const struct script_line *line,
			    const struct script_frame *frame);

/* Returns the name of the message in a frame; NULL if it has none. */
const char *script_message_name(const struct script_wire *wire, const struct script_frame *frame);

/* --- manager.c --- */

bool script_listen(struct script_run *run, const struct script_line *line);
bool script_connect(struct script_run *run, const struct script_line *line);
bool script_accept(struct script_run *run, const struct script_line *line);
bool script_establish(struct script_run *run, const struct script_line *line);
bool script_reject(struct script_run *run, const struct script_line *line);
bool script_disconnect(struct script_run *run, const struct script_line *line);

/* Takes the next event of the connection manager. Returns false if there is none. */
bool script_take_manager_event(struct script_run *run, struct script_seen *seen);
void script_end_manager(struct script_run *run);

/* --- run.c --- */

/* Waits at most duration_ns for the next event of the connection manager. Returns NULL if none comes. */
const struct script_seen *script_await_manager(struct script_run *run, uint64_t duration_ns);

/* --- watch.c --- */

/* Lets time pass to until_ns at most, and returns as soon as the device has done something. */
void script_pass(struct script_run *run, uint64_t until_ns);

/* Returns the first thing that no line has expected: of a kind, and of a completion of the queue of a QP. */
struct script_seen *script_first(const struct script_run *run, enum script_seen_kind kind,
				 unsigned int qp, unsigned int queue);

/* Fails if the device has done something that no line expects. */
bool script_nothing_more(struct script_run *run, const struct script_line *line);

#endif
