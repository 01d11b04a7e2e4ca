/* SPDX-License-Identifier: MIT */
/*
 * For tests: what must come next, as one call. A check waits for the next completion, event or packets,
 * compares them with a pattern, and reports in words what came instead, and why.
 *
 *	vb_expect_begin();
 *	struct vb_pair *pair = vb_expect_pair(NULL);
 *
 *	vb_pair_receive(&pair->b, 1, 0, 64);
 *	vb_pair_post(&pair->a, 2, IBV_WR_SEND, 0, 64);
 *	vb_expect_completion(pair->b.cq, "RECV wr_id=1 length=64");
 *	vb_expect_completion(pair->a.cq, "SEND wr_id=2");
 *	vb_expect_packets("SEND_ONLY ACK");
 *	vb_pair_close(pair);
 *	vb_expect_no_leaks();
 *
 * The checks belong to no test framework. A check that fails calls a handler with the file and the line of
 * the check and a message. The default handler prints both to stderr and aborts. The headers in
 * <verbena/fixture/> set a handler that makes a failure of CMocka, Unity or GoogleTest. A handler may leave
 * by longjmp(3), but not by a C++ exception; if it returns, the check returns false, and the test goes on.
 *
 * Conventions:
 * - Each check is a macro, vb_expect_X(...), for vb_expect_X_at(__FILE__, __LINE__, ...), which returns true if
 *   the check holds.
 * - A check waits on the clock of the device for what it expects, 10 s at most (vb_expect_set_timeout()). On
 *   the virtual clock the wait takes no real time, and ends at once if nothing can come any more.
 * - Patterns are made as by printf(3). A word "field=value" compares a field, by a decimal or hexadecimal
 *   number. A field that the pattern does not name is not compared; "field=*" says so. A wrong pattern is a
 *   failure, too.
 * - The checks run on any backend, but those of packets need simulated devices.
 * - One thread at a time calls these functions. Others may call verbs meanwhile.
 */
#ifndef VERBENA_EXPECT_H
#define VERBENA_EXPECT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rdma_event_channel; /* <rdma/rdma_cma.h> */
struct rdma_cm_event;
struct rdma_cm_id;

#define VB_EXPECT_PRINTF(text, values) __attribute__((format(printf, text, values)))

/* --- failures --- */

/* Gets a failure. The strings are valid during the call, and after a longjmp(3) out of it until the thread's
 * next check. */
typedef void vb_expect_failed_fn(void *arg, const char *file, int line, const char *message);

/* Sets the handler of failures; fn NULL: the default handler, which prints and aborts. */
void vb_expect_set_handler(vb_expect_failed_fn *fn, void *arg);

/* Sets how long a check waits, on the device's clock. 0: 10 s, as at first. */
void vb_expect_set_timeout(uint64_t timeout_ns);

/*
 * Begins to watch packets and objects: vb_expect_packets() compares the packets that are sent from now on, and
 * vb_expect_no_leaks() the objects that are made from now on. While the process watches already, it begins
 * anew. No other thread may be inside a verb. Returns 0 or ENOMEM, with a sentence for vb_last_error().
 */
int vb_expect_begin(void);

/* Ends that. No other thread may be inside a verb. */
void vb_expect_end(void);

/* --- completions --- */

/*
 * Takes the next completion of a CQ and compares it with the pattern. Words:
 *
 *	RECV, SEND, RDMA_READ ...	the opcode, enum ibv_wc_opcode without IBV_WC_
 *	SUCCESS, WR_FLUSH_ERR ...	the status, enum ibv_wc_status without IBV_WC_; SUCCESS if the
 *					pattern has no status; status=*: any
 *	wr_id, length, qp, src_qp,	fields of struct ibv_wc; length is byte_len, imm is in host order
 *	imm, invalidated_rkey,		and needs IBV_WC_WITH_IMM, invalidated_rkey needs IBV_WC_WITH_INV
 *	flags, vendor_err
 *
 * "*" is any successful completion. The failure says what came instead, with the fields that differ and, of a
 * completion in error, the cause of vb_explain(); or that nothing came, and what is in flight.
 *
 * vb_expect_completion_wc() also gives the completion to the caller, in *wc.
 */
#define vb_expect_completion(cq, ...) \
	vb_expect_completion_at(__FILE__, __LINE__, (cq), NULL, __VA_ARGS__)
#define vb_expect_completion_wc(cq, wc, ...) \
	vb_expect_completion_at(__FILE__, __LINE__, (cq), (wc), __VA_ARGS__)
bool vb_expect_completion_at(const char *file, int line, struct ibv_cq *cq, struct ibv_wc *wc,
			     const char *pattern, ...) VB_EXPECT_PRINTF(5, 6);

/* Waits for duration_ns. Fails if a completion comes, which it takes. */
#define vb_expect_no_completion(cq, duration_ns) \
	vb_expect_no_completion_at(__FILE__, __LINE__, (cq), (duration_ns))
bool vb_expect_no_completion_at(const char *file, int line, struct ibv_cq *cq,
				uint64_t duration_ns);

/* --- events --- */

/*
 * Takes the next asynchronous event of a context, acknowledges it and compares it. Words: the event, enum
 * ibv_event_type without IBV_EVENT_, such as QP_FATAL; qp (the QPN) or port of the event. "*" is any event.
 */
#define vb_expect_event(context, ...) vb_expect_event_at(__FILE__, __LINE__, (context), __VA_ARGS__)
bool vb_expect_event_at(const char *file, int line, struct ibv_context *context,
			const char *pattern, ...) VB_EXPECT_PRINTF(4, 5);

/* Waits for duration_ns. Fails if an asynchronous event comes, which it takes and acknowledges. */
#define vb_expect_no_event(context, duration_ns) \
	vb_expect_no_event_at(__FILE__, __LINE__, (context), (duration_ns))
bool vb_expect_no_event_at(const char *file, int line, struct ibv_context *context,
			   uint64_t duration_ns);

/*
 * Takes the next event of an event channel of the connection manager and compares it. Words: the event, enum
 * rdma_cm_event_type without RDMA_CM_EVENT_, such as ESTABLISHED; status. If event is NULL, acknowledges the
 * event; otherwise *event is the caller's, who acknowledges it. If the check fails, the event is acknowledged,
 * and *event is NULL. The failure has the cause of a failed connection.
 */
#define vb_expect_cm_event(channel, event, ...) \
	vb_expect_cm_event_at(__FILE__, __LINE__, (channel), (event), __VA_ARGS__)
bool vb_expect_cm_event_at(const char *file, int line, struct rdma_event_channel *channel,
			   struct rdma_cm_event **event, const char *pattern, ...)
	VB_EXPECT_PRINTF(5, 6);

/* --- packets --- */

/* The packets before are not compared: vb_expect_packets() begins here. */
void vb_expect_mark(void);

/*
 * Waits until the packets since the mark are those of the pattern, all of them, in this order. Then the mark
 * moves behind them. Needs vb_expect_begin(). The pattern has a word for each packet:
 *
 *	SEND_ONLY		the opcode as in Linux include/rdma/ib_pack.h, with or without the transport
 *				before it ("RC:SEND_ONLY"); '*' in it stands for any letters: "RDMA_READ_*"
 *	ACK, RNR_NAK, NAK	an ACKNOWLEDGE by its syndrome; NAK is any but RNR; ACKNOWLEDGE is each of them
 *	*			any packet
 *	...			any number of any packets
 *	sim0:ACK		a packet that the device sim0 has sent
 *	ACK[psn=5,qp=0x11]	fields: psn, qp (of the destination), bytes (of the payload), imm, lost (1 if the
 *				packet was lost on the way), solicited, ack_request
 *	ACK{2}, ACK{1,3}	two packets; one to three. ACK+ is {1,}, ACK? is {0,1}
 *	(SEND_ONLY ACK){3}	a group
 *
 * A failure shows the pattern and the packets, with a caret where they part. The failure
 * comes at once if no later packet can help; otherwise when the time is up, or nothing can come any more.
 */
#define vb_expect_packets(...) vb_expect_packets_at(__FILE__, __LINE__, NULL, __VA_ARGS__)
bool vb_expect_packets_at(const char *file, int line, struct ibv_context *context,
			  const char *pattern, ...) VB_EXPECT_PRINTF(4, 5);

/*
 * The same for a device of a world of vb_sim_open(): waits on the world of the context. vb_expect_packets() waits on
 * the default world. Packets of all worlds are compared.
 */
#define vb_expect_packets_of(context, ...) \
	vb_expect_packets_at(__FILE__, __LINE__, (context), __VA_ARGS__)

/* Fails if a packet has been sent since the mark, or is sent in the present instant. */
#define vb_expect_no_packets() vb_expect_packets_at(__FILE__, __LINE__, NULL, "%s", "")

/* --- leaks --- */

/*
 * Fails if an object is left that was made by a verb since vb_expect_begin(): the message names each object
 * and the place where the program has made it (function, file and line, if the program has debug
 * information). Identifiers and event channels of the connection manager count, too.
 */
#define vb_expect_no_leaks() vb_expect_no_leaks_at(__FILE__, __LINE__)
bool vb_expect_no_leaks_at(const char *file, int line);

/* --- connected pairs --- */

/* All members 0: an RC pair of the devices sim0 and sim1. */
struct vb_pair_options {
	/* IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, or IBV_QPT_XRC_SEND: then each end has a QP of type
	 * XRC_SEND, the target QP of the other end, and an SRQ. 0: IBV_QPT_RC. */
	enum ibv_qp_type type;
	bool srq; /* the QPs take their receives from an SRQ; XRC always has one. Not with UC */
	bool cm; /* connect by the connection manager: RC or UD. The devices then need IP addresses */
	const char *backend; /* NULL: as vb_devices_get() */
	const char *device
		[2]; /* the devices of a and b; NULL: the backend's first, and its second, if any */
	size_t buffer_bytes; /* of each end; 0: 64 KiB */
	uint32_t depth;	     /* work requests of each queue; 0: 16 */
	uint8_t timeout;     /* the ack timeout, 1 to 31; 0: 14, which is 67 ms */
	uint8_t retry_cnt;   /* 1 to 7; 0: 7 */
	uint8_t rnr_retry;   /* 1 to 7; 0: 7, which is for ever. 8: 0 */
	uint32_t psn;	     /* the first PSN of a; b begins with twice as many */
};

/* One end of a pair. Read only. */
struct vb_pair_end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;   /* of both queues */
	struct ibv_srq *srq; /* NULL: none */
	struct ibv_qp *qp;
	struct ibv_qp *target; /* XRC: takes what the other end sends; else NULL */
	struct ibv_xrcd *xrcd; /* XRC; else NULL */
	/* UD: to the other end; else NULL. With cm, only a has one: b learns of a's QP by the address and the
	 * QPN of its first message. */
	struct ibv_ah *ah;
	uint32_t remote_qpn, remote_qkey; /* of the other end; UD */
	struct ibv_mr *mr;
	uint8_t *buffer;       /* the memory of mr, zeroed */
	struct rdma_cm_id *id; /* with cm; else NULL */
	struct vb_pair_end *peer;
};

struct vb_pair {
	struct vb_pair_end a, b;
};

/*
 * Makes two ends that are connected to each other: contexts, PDs, CQs, memory with all rights, QPs in RTS. On
 * the virtual clock, the calling thread does both ends. options NULL: all members 0. Ended by
 * vb_pair_close().
 *
 * Returns NULL with errno and a sentence for vb_last_error(): EINVAL (a type, or options that exclude each
 * other), ENODEV, and errors of the verbs.
 */
struct vb_pair *vb_pair_open(const struct vb_pair_options *options);

/* The same as a check: its failure has the sentence. Returns NULL then. */
#define vb_expect_pair(...) vb_expect_pair_at(__FILE__, __LINE__, __VA_ARGS__)
struct vb_pair *vb_expect_pair_at(const char *file, int line,
				  const struct vb_pair_options *options);

/*
 * Ends all objects of a pair, also if the test has put QPs into ERR. Returns 0 or the first errno of a verb,
 * with its sentence; what could not be ended is left. NULL is ignored.
 */
int vb_pair_close(struct vb_pair *pair);

/* Posts a receive into the end's buffer: to its SRQ, if it has one. UD: the GRH comes first, 40 bytes.
 * Returns what ibv_post_recv(3) returns. */
int vb_pair_receive(struct vb_pair_end *end, uint64_t wr_id, size_t offset, uint32_t length_bytes);

/*
 * Posts a signalled work request from the end's buffer to the other end. RDMA goes to the same offset of the
 * other end's buffer; an atomic has 8 bytes, and adds 1 or swaps 0 for 1. The immediate is wr_id. Returns what
 * ibv_post_send(3) returns, or EINVAL for an opcode that needs more.
 */
int vb_pair_post(struct vb_pair_end *end, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
		 uint32_t length_bytes);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_EXPECT_H */
