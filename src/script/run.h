/* SPDX-License-Identifier: MIT */
/* A script that runs: its QPs, and what the device has done. Private to the room. */
#ifndef SRC_SCRIPT_RUN_H
#define SRC_SCRIPT_RUN_H

#include "src/script/script.h"

struct script_qp {
	const char *name;
	enum ibv_qp_type type;
	struct ibv_qp *qp;
	struct ibv_cq *cqs[2]; /* of the send queue and of the receive queue */
	struct ibv_ah *ah;     /* of a UD QP, to the peer */
	struct ibv_mr *mr;
	uint8_t *buffer;
	size_t buffer_bytes;
	uint32_t peer_qpn;
	uint32_t psn, peer_psn; /* the first ones */
	const struct script_line *line;
};

enum script_seen_kind {
	SCRIPT_SEEN_PACKET,
	SCRIPT_SEEN_COMPLETION,
	SCRIPT_SEEN_EVENT,
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
};

struct script_run {
	const struct script *script;
	struct script_wire *wire;
	struct script_failure *failure;
	struct ibv_pd *pd;
	struct script_qp qps[SCRIPT_QPS_MAX];
	struct script_seen *seen;
	unsigned int seen_count, seen_room;
	unsigned int frames_seen;
	uint64_t last_ns; /* when the line before happened */
	bool ignore_completions;
};

/* --- packet.c --- */

/* Returns the byte of the pattern at a place. */
uint8_t script_pattern(uint64_t place);

/* Fills the bytes that DATA of a line stands for. */
void script_data(const struct script_line *line, uint8_t *bytes, size_t length_bytes);

/* Writes the frame of a line '<' of the peer of @qp, for the QP @to; NULL: for @qp. Returns its length; 0
 * with a sentence of vb_last_error(). */
size_t script_packet_make(const struct script_line *line, const struct script_qp *qp,
			  const struct script_qp *to, const struct script_wire *wire,
			  uint8_t *frame);

/* Compares a frame of the device with a line '>'. Returns false with the failure. */
bool script_packet_compare(const struct script_line *line, const struct script_qp *qp,
			   const struct script_wire *wire, const struct script_frame *frame,
			   struct script_failure *failure);

/* Fills rows with the fields of a frame that no line has expected. */
void script_packet_tell(const struct script_run *run, const struct script_frame *frame);

/* --- device.c --- */

/* Each returns false with the failure. */
bool script_make_qp(struct script_run *run, const struct script_line *line);
bool script_modify(struct script_run *run, const struct script_line *line);
bool script_check_state(struct script_run *run, const struct script_line *line);
bool script_post_send(struct script_run *run, const struct script_line *line);
bool script_post_recv(struct script_run *run, const struct script_line *line);
bool script_store(struct script_run *run, const struct script_line *line);
bool script_check_memory(struct script_run *run, const struct script_line *line);

/* Destroys all objects. */
void script_end(struct script_run *run);

/* --- watch.c --- */

/* Lets time pass to until_ns at most, and returns as soon as the device has done something. */
void script_pass(struct script_run *run, uint64_t until_ns);

/* Returns the first thing that no line has expected: of a kind, and of a completion of the queue of a QP. */
struct script_seen *script_first(const struct script_run *run, enum script_seen_kind kind,
				 unsigned int qp, unsigned int queue);

/* Fails if the device has done something that no line expects. */
bool script_nothing_more(struct script_run *run, const struct script_line *line);

#endif
