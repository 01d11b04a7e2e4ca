/* SPDX-License-Identifier: MIT */
/*
 * A capture becomes a script.
 *
 *	capture.c	which QPs the packets belong to, and what the QPs need
 *	write.c		the lines
 */
#ifndef SRC_SCRIPT_CAPTURE_H
#define SRC_SCRIPT_CAPTURE_H

#include "src/script/script.h"

/* A packet of the capture. */
struct capture_packet {
	uint64_t time_ns;
	struct vb_packet packet;
	bool wrong_icrc;
	bool from_device;
	int qp; /* an index of capture->qps; -1: the script leaves the packet out */
};

/* A QP of the device, and the peer's. Addresses count from the lowest one of each side. */
struct capture_qp {
	enum ibv_qp_type type;
	uint32_t qpn, peer_qpn;
	bool has_qpn, has_peer_qpn;
	bool has_psn, has_peer_psn;
	uint32_t psn, peer_psn; /* the first ones */
	uint32_t mtu_bytes;
	uint64_t base, peer_base;
	uint64_t buffer_bytes;
	bool has_base, has_peer_base, has_rkey;
	uint32_t rkey; /* of the device, in the first request */
	uint32_t qkey;
	int timeout, rnr_timer;		   /* -1: unknown */
	unsigned int retries, rnr_retries; /* the most repetitions without an answer between them */
	unsigned int timeouts, rnr_waits;  /* so far, since the last answer */
	bool after_rnr, had_rnr;
	uint32_t last_psn;	   /* of a request of the device */
	uint32_t next_psn;	   /* behind all requests of the device */
	uint64_t message_bytes[2]; /* so far, of the peer and of the device */
};

struct capture {
	bool infiniband;
	bool exact;	    /* the times are those of a virtual clock */
	const char *device; /* its address; NULL: that of the first packet's sender */
	struct capture_packet *packets;
	unsigned int count;
	struct capture_qp qps[SCRIPT_QPS_MAX];
	unsigned int qp_count;
};

/* Adds a packet; false without memory. */
bool script_capture_add(struct capture *capture, const struct capture_packet *packet);

/* Writes the script. Returns false with a sentence in why. */
bool script_write(struct capture *capture, FILE *out, char *why, size_t why_bytes);

/* --- for write.c --- */

/* Finds the device and its QPs. Returns false with a sentence. */
bool capture_find_qps(struct capture *capture, char *why, size_t why_bytes);

/* Returns true for a READ response, an ACK or the answer of an atomic. */
bool capture_is_answer(const struct vb_packet *packet);

/* Returns how many PSNs a request has. */
uint32_t capture_psns(const struct capture_qp *qp, const struct vb_packet *packet);

#endif
