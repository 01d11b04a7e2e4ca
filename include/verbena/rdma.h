/* SPDX-License-Identifier: MIT */
/*
 * Connections between programs: messages of any length, memory that is requested, handed over and
 * released, and remote reads, writes and atomics on it, with an agent behind them.
 *
 *	struct vb_rdma_options options;
 *	vb_rdma_options_init(&options);
 *	struct vb_rdma_agent *agent = vb_rdma_agent_open(&options);
 *	struct vb_rdma *rdma = vb_rdma_connect(agent, "server:7000", timeout_ns);
 *	struct vb_remote_mr *remote = vb_request_remote_mr(rdma, 4096, 8, VB_MR_ALL, 0, timeout_ns);
 *	vb_rdma_write(rdma, &slice, remote, 0, timeout_ns);
 *	vb_send_mr(rdma, remote, timeout_ns);
 *
 * and on the other side
 *
 *	struct vb_rdma_listener *listener = vb_rdma_listen(agent, "*:7000");
 *	struct vb_rdma *rdma = vb_rdma_accept(listener, timeout_ns);
 *	struct vb_local_mr *local = vb_receive_local_mr(rdma, timeout_ns);
 *
 * The agent is what answers a peer's requests. It works when it is driven: by a thread of its own
 * (options.thread), or else by every function here that waits or polls, and vb_rdma_progress(). A
 * program without such a thread must come by often enough for its peers.
 *
 * Errors, ownership, timeouts: as in <verbena/connect.h>. A connection that has failed stays failed:
 * everything on it answers the same errno, vb_rdma_error() has the reason, and nothing else of the
 * agent is harmed. ECONNRESET: the peer closed it or is gone during connect; EIO: the device ended
 * it, such as for a peer that is gone or a key that does not hold; EPROTO: the peer sent what
 * docs/agent-messages.md does not allow; ECONNABORTED: the peer says that we did. A peer that dies
 * without a word is noticed at the next message to it, and after a call that it did not answer in
 * time (ETIMEDOUT). Who only receives notices nothing.
 *
 * Threads. With options.thread, functions may be called from any thread, except that an object is
 * ended by one thread when no other uses it. Without, an agent with all that is made from it is for
 * one thread at a time. On a virtual clock there is no agent thread (ENOTSUP), and all is
 * deterministic; two agents there are driven by turns with the asynchronous form, or by two threads
 * (vb_sim_thread_enter()).
 *
 * Memory is allocated when agents, connections and regions are made, not for each message.
 */
#ifndef VERBENA_RDMA_H
#define VERBENA_RDMA_H

#include <verbena/connect.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vb_rdma_agent;
struct vb_rdma_listener;
struct vb_rdma;
struct vb_local_mr;
struct vb_remote_mr;

/* --- how two programs find one another --- */

/*
 * What carries the few bytes that the two ends exchange before their QPs are connected. Nothing in
 * it blocks, except that connect may look up a name. Functions return 0 or an errno value. They are
 * called with the arg of the options, by the agent that has them, one at a time; but connect by any
 * thread that connects, at the same time as the others, so that an agent with a thread goes on
 * while a name is looked up. The thread that connects waits for that, whatever its timeout.
 */
struct vb_rdma_exchange {
	/* Begins to listen at an address. */
	int (*listen)(void *arg, const char *address, void **listener);
	/* Takes the next line that somebody opened; EAGAIN: there is none. */
	int (*accept)(void *listener, void **line);
	/* Opens a line. Bytes may be sent once they do not answer EAGAIN. ECONNREFUSED: nobody
	 * listens there; this may also be told by the first transfer. */
	int (*connect)(void *arg, const char *address, void **line);
	/* Sends or receives some bytes, at least 1, at most length_bytes. EAGAIN: not now.
	 * ECONNRESET: the other end closed it. */
	int (*send)(void *line, const void *bytes, size_t length_bytes, size_t *moved_bytes);
	int (*receive)(void *line, void *bytes, size_t length_bytes, size_t *moved_bytes);
	/* A descriptor for epoll, readable or writable when accept, receive or send will not answer
	 * EAGAIN. -1: there is none, and the agent looks every now and then, on a virtual clock
	 * whenever vb_sim_tell() was called. Agents call it for what they do themselves. */
	int (*listener_descriptor)(void *listener);
	int (*line_descriptor)(void *line);
	/* Where a listener is, such as "0.0.0.0:7000". */
	int (*name)(void *listener, char *text, size_t text_bytes);
	void (*close_listener)(void *listener);
	void (*close_line)(void *line);
};

/* Over TCP. Addresses are "host:port", an IPv6 host in brackets, "*" for any when listening; port 0
 * is a free one, which vb_rdma_listener_name() tells. arg is not used. */
const struct vb_rdma_exchange *vb_rdma_exchange_tcp(void);

/* In this process, without sockets: addresses are any words, in a hall that the agents share (arg).
 * A hall may be used by several threads. Ended by vb_rdma_hall_close() after its agents. */
struct vb_rdma_hall;
const struct vb_rdma_exchange *vb_rdma_exchange_local(void);
struct vb_rdma_hall *vb_rdma_hall_open(void);
void vb_rdma_hall_close(struct vb_rdma_hall *hall);

/* --- agents --- */

#define VB_MR_READ   1u
#define VB_MR_WRITE  2u
#define VB_MR_ATOMIC 4u
#define VB_MR_ALL    7u

/* vb_rdma_options_init() sets the defaults in brackets. */
struct vb_rdma_options {
	const char *backend;	/* as vb_device_open_named() [NULL] */
	const char *device;	/* a name; NULL is the first of the list [NULL] */
	uint8_t port_num;	/* [0: port 1] */
	int gid_index;		/* [VB_GID_INDEX_ANY] */
	uint32_t message_bytes; /* of an agent message, 128..2^20, in 8s [4096] */
	uint64_t longest_bytes; /* that vb_rdma_receive() takes, in as many of those [2^30] */
	uint32_t slots;		/* messages that wait here for vb_rdma_receive(), 2..1024 [32] */
	uint32_t connections;	/* at once, 1..65536 [16] */
	uint32_t operations;	/* under way at once, 1..2^20 [256] */
	uint64_t pool_bytes;	/* registered at a time for small regions [2^22] */
	uint32_t peer_access;	/* what peers may ask for, of VB_MR_* [VB_MR_ALL] */
	uint64_t peer_bytes;	/* that one peer may hold here at once; 0: nothing [2^26] */
	uint64_t peer_lease_ns; /* longest lease of a peer; VB_FOREVER: as it asks [VB_FOREVER] */
	uint64_t handshake_ns;	/* for a stranger to introduce itself [5 s] */
	uint32_t ack_timeout;	/* VB_QP_TIMEOUT [14: 67 ms] */
	uint32_t retry_cnt;	/* VB_QP_RETRY_CNT [7] */
	bool thread;		/* an agent thread [false] */
	const struct vb_rdma_exchange *exchange; /* [vb_rdma_exchange_tcp()] */
	void *exchange_arg;			 /* [NULL] */
};

void vb_rdma_options_init(struct vb_rdma_options *options);

/*
 * Opens a device and makes an agent on it. Errors: ERANGE (an option, named), EINVAL (more than the
 * device's CQ holds: fewer connections or slots), ENOTSUP (a thread on a virtual clock), and those
 * of vb_device_open_named() and vb_cq_open(). Ended by vb_rdma_agent_close(): EBUSY while it has
 * connections, listeners or regions.
 */
struct vb_rdma_agent *vb_rdma_agent_open(const struct vb_rdma_options *options);
int vb_rdma_agent_close(struct vb_rdma_agent *agent);

/* Its device; it belongs to the agent. */
struct vb_device *vb_rdma_agent_device(const struct vb_rdma_agent *agent);

/*
 * Does what there is to do, or waits until there is something; callbacks are called from here.
 * With an agent thread there is no need for it. Returns 0, ETIMEDOUT (nothing came in time; with a
 * timeout of 0 that is no failure), EDEADLK (virtual clock, no limit, and nothing can come).
 */
int vb_rdma_progress(struct vb_rdma_agent *agent, uint64_t timeout_ns);

/*
 * For epoll, without an agent thread, on the real clock: after vb_rdma_arm() the descriptor is
 * readable as soon as vb_rdma_progress() has something to do. The descriptor belongs to the agent.
 * With an exchange or leases that have no descriptor, come by every now and then too.
 */
int vb_rdma_descriptor(const struct vb_rdma_agent *agent);
int vb_rdma_arm(struct vb_rdma_agent *agent);

/* --- connections --- */

/*
 * Listens at an address of the agent's exchange. Peers are greeted whenever the agent is driven;
 * what a stranger sends closes that line only. Ended by vb_rdma_listener_close(), with the
 * connections that nobody accepted. Errors: EINVAL (the address), EADDRINUSE, ENOMEM, those of
 * socket(2).
 */
struct vb_rdma_listener *vb_rdma_listen(struct vb_rdma_agent *agent, const char *address);
int vb_rdma_listener_close(struct vb_rdma_listener *listener);
int vb_rdma_listener_name(const struct vb_rdma_listener *listener, char *text, size_t text_bytes);

/*
 * The next connection, ready in both directions. Ended by vb_rdma_close(). Errors: ETIMEDOUT,
 * EDEADLK. The latter, here and in vb_rdma_connect(), never comes where the exchange has
 * descriptors: something may always arrive through them.
 */
struct vb_rdma *vb_rdma_accept(struct vb_rdma_listener *listener, uint64_t timeout_ns);

/*
 * Connects to a listener. Errors: ETIMEDOUT, EDEADLK; ECONNREFUSED (nobody listens, or it has no room);
 * ECONNRESET (it went away in between); EPROTO, EPROTONOSUPPORT (something else answers);
 * ENOSPC (options.connections); those of vb_qp_prepare() and vb_handshake().
 */
struct vb_rdma *vb_rdma_connect(struct vb_rdma_agent *agent, const char *address,
				uint64_t timeout_ns);

/*
 * Says goodbye if the peer is still there (waiting at most 1 s for that), and ends the connection:
 * operations on it end with ECANCELED, regions that the peer had are its no longer, remote regions
 * are stale. 0; the connection is gone in any case.
 */
int vb_rdma_close(struct vb_rdma *rdma);

/* 0 while it is good, else the errno of its failure; why (may be NULL) is a sentence that belongs
 * to the connection. */
int vb_rdma_error(const struct vb_rdma *rdma, const char **why);

/* Its QP, for those who want to know; the agent's. */
struct ibv_qp *vb_rdma_qp(const struct vb_rdma *rdma);

/* --- messages --- */

/*
 * Sends a message: returns when the peer's device has all of it. The bytes may be anywhere. The
 * first options.slots pieces need no vb_rdma_receive() at the peer, longer messages do. A message
 * that timed out is void at the peer. Errors: EMSGSIZE (longer than the peer takes), ETIMEDOUT,
 * ENOBUFS (options.operations).
 */
int vb_rdma_send(struct vb_rdma *rdma, const void *bytes, size_t length_bytes, uint64_t timeout_ns);
int vb_rdma_send_imm(struct vb_rdma *rdma, const void *bytes, size_t length_bytes, uint32_t imm,
		     uint64_t timeout_ns);

/* What came. */
struct vb_rdma_message {
	size_t length_bytes;
	bool has_imm;
	uint32_t imm;
};

/*
 * Receives the next message into the caller's memory; message may be NULL. Errors: EMSGSIZE (the
 * message is longer than room_bytes: message tells how long, and it stays); ETIMEDOUT (a message of
 * which some had come is lost).
 */
int vb_rdma_receive(struct vb_rdma *rdma, void *bytes, size_t room_bytes,
		    struct vb_rdma_message *message, uint64_t timeout_ns);

/* --- local regions --- */

/*
 * A piece of the agent's pool, zeroed, that begins at a multiple of align_bytes (a power of two up
 * to 4096; 0 is 8). It has one reference. Errors: EINVAL, ENOMEM.
 */
struct vb_local_mr *vb_alloc_local_mr(struct vb_rdma_agent *agent, size_t length_bytes,
				      size_t align_bytes);

void *vb_local_mr_addr(const struct vb_local_mr *mr);
size_t vb_local_mr_bytes(const struct vb_local_mr *mr);

/* One more reference, and one less; at none left it goes back to the pool. Operations under way and
 * peers that have a key for it hold references too. NULL is ignored. */
struct vb_local_mr *vb_local_mr_get(struct vb_local_mr *mr);
void vb_local_mr_put(struct vb_local_mr *mr);

/* A piece of a local region. */
struct vb_local_slice {
	struct vb_local_mr *mr;
	size_t offset_bytes;
	size_t length_bytes;
};

/* --- remote regions --- */

/*
 * A region in the peer's memory, with a key of its own (an MR for this grant alone): it holds until
 * the last reference is put, the lease ends, or the connection does, and not longer. Using one
 * whose lease is over answers ESTALE and sends nothing; one that is used all the same, against the
 * rules, costs the user its connection. References as of local ones; the last put tells the owner.
 */
uint64_t vb_remote_mr_bytes(const struct vb_remote_mr *mr);
uint32_t vb_remote_mr_access(const struct vb_remote_mr *mr); /* VB_MR_* */
/* Where it is and its key, for other ways of using it. */
void vb_remote_mr_key(const struct vb_remote_mr *mr, struct vb_remote *key);
/* What is left of the lease; VB_FOREVER: it has none; 0: stale. */
uint64_t vb_remote_mr_left_ns(const struct vb_remote_mr *mr);
struct vb_remote_mr *vb_remote_mr_get(struct vb_remote_mr *mr);
void vb_remote_mr_put(struct vb_remote_mr *mr);

/*
 * Asks the peer's agent for memory. access is of VB_MR_*; lease_ns 0 is no lease. The lease counts
 * from the asking. Errors: EACCES (more than the owner's peer_access), EDQUOT (more than its
 * peer_bytes or a longer lease than its peer_lease_ns), ENOMEM (at the owner), EINVAL, ETIMEDOUT.
 */
struct vb_remote_mr *vb_request_remote_mr(struct vb_rdma *rdma, size_t length_bytes,
					  size_t align_bytes, uint32_t access, uint64_t lease_ns,
					  uint64_t timeout_ns);

/*
 * Hands a region that was requested from the peer over to it: the peer's vb_receive_local_mr() has
 * it. The remote region stays good. Errors: EINVAL (it is not one that this end requested), ESTALE
 * (the owner has it no longer), EBUSY (too many wait there to be received), ETIMEDOUT.
 */
int vb_send_mr(struct vb_rdma *rdma, struct vb_remote_mr *mr, uint64_t timeout_ns);

/*
 * Gives the peer a key to a local region: the peer's vb_receive_remote_mr() has it. The peer's key
 * holds a reference. lease_ns counts from its arrival; 0 is none. Errors: EINVAL, EBUSY, ENOMEM,
 * ETIMEDOUT.
 */
int vb_send_local_mr(struct vb_rdma *rdma, struct vb_local_mr *mr, uint32_t access,
		     uint64_t lease_ns, uint64_t timeout_ns);

/* The next region that the peer handed over. With a reference for the caller. Errors: ETIMEDOUT. */
struct vb_local_mr *vb_receive_local_mr(struct vb_rdma *rdma, uint64_t timeout_ns);
struct vb_remote_mr *vb_receive_remote_mr(struct vb_rdma *rdma, uint64_t timeout_ns);

/*
 * One-sided operations: the slice is written to, or read from, the remote region from offset_bytes
 * on; atomics are on the 8 bytes there (host byte order of the owner) and tell the value before.
 * Errors: EINVAL (outside of either region; an offset of an atomic that is not a multiple of 8),
 * EACCES (the region was not granted for this), ESTALE (lease, or the connection is another),
 * EMSGSIZE (longer than the port's max_msg_sz), ENOBUFS, ETIMEDOUT (the device may still be at it;
 * the region's reference is kept until then).
 */
int vb_rdma_write(struct vb_rdma *rdma, const struct vb_local_slice *from, struct vb_remote_mr *to,
		  uint64_t offset_bytes, uint64_t timeout_ns);
int vb_rdma_read(struct vb_rdma *rdma, const struct vb_local_slice *into, struct vb_remote_mr *from,
		 uint64_t offset_bytes, uint64_t timeout_ns);
int vb_rdma_compare_swap(struct vb_rdma *rdma, struct vb_remote_mr *at, uint64_t offset_bytes,
			 uint64_t compare, uint64_t swap, uint64_t *before, uint64_t timeout_ns);
int vb_rdma_fetch_add(struct vb_rdma *rdma, struct vb_remote_mr *at, uint64_t offset_bytes,
		      uint64_t add, uint64_t *before, uint64_t timeout_ns);

/* --- the asynchronous form --- */

enum vb_rdma_operation {
	VB_RDMA_CONNECT,	   /* agent, address -> rdma */
	VB_RDMA_ACCEPT,		   /* listener -> rdma */
	VB_RDMA_SEND,		   /* rdma, from, length_bytes, has_imm, imm */
	VB_RDMA_RECEIVE,	   /* rdma, into, length_bytes -> message */
	VB_RDMA_WRITE,		   /* rdma, slice, remote, offset_bytes */
	VB_RDMA_READ,		   /* the same */
	VB_RDMA_COMPARE_SWAP,	   /* rdma, remote, offset_bytes, compare_add, swap -> before */
	VB_RDMA_FETCH_ADD,	   /* rdma, remote, offset_bytes, compare_add -> before */
	VB_RDMA_REQUEST_REMOTE_MR, /* rdma, length_bytes, align_bytes, access, lease_ns -> remote */
	VB_RDMA_SEND_MR,	   /* rdma, remote */
	VB_RDMA_SEND_LOCAL_MR,	   /* rdma, slice.mr, access, lease_ns */
	VB_RDMA_RECEIVE_LOCAL_MR,  /* rdma -> local */
	VB_RDMA_RECEIVE_REMOTE_MR, /* rdma -> remote */
	VB_RDMA_OPERATIONS,
};

/* A handle of a started operation: a value, good until its result has been taken. */
struct vb_rdma_op {
	struct vb_rdma_agent *agent;
	uint32_t slot;
	uint32_t generation;
};

struct vb_rdma_result {
	int err; /* 0, or as the blocking form */
	struct vb_rdma *rdma;
	struct vb_rdma_message message;
	struct vb_local_mr *local;
	struct vb_remote_mr *remote;
	uint64_t before;
};

typedef void vb_rdma_callback(void *arg, const struct vb_rdma_result *result);

/* What to do; each operation uses the fields named beside it. from and into, and no other memory,
 * are used until it ends. */
struct vb_rdma_request {
	enum vb_rdma_operation operation;
	struct vb_rdma_agent *agent;
	struct vb_rdma_listener *listener;
	struct vb_rdma *rdma;
	const char *address;
	const void *from;
	void *into;
	size_t length_bytes;
	size_t align_bytes;
	bool has_imm;
	uint32_t imm;
	struct vb_local_slice slice;
	struct vb_remote_mr *remote;
	uint64_t offset_bytes;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t access;
	uint64_t lease_ns;
	/* Called once, when it has ended, from what drives the agent; the handle is stale then. It
	 * may start operations, and must not wait nor end anything. NULL: poll or wait. */
	vb_rdma_callback *callback;
	void *arg;
};

/* Starts an operation. op may be NULL with a callback. Errors: EINVAL, ENOBUFS
 * (options.operations), and what can be told at once of those of the blocking form. */
int vb_rdma_start(const struct vb_rdma_request *request, struct vb_rdma_op *op);

/*
 * Takes the result if it has ended; result may be NULL. Polling drives the agent once. Returns the
 * errno of the operation (0: it succeeded), EAGAIN (it has not ended), ESTALE (no such handle).
 * Waiting returns ETIMEDOUT or EDEADLK instead of EAGAIN, and the handle stays good: then take it
 * back, or wait again.
 */
int vb_rdma_poll(struct vb_rdma_op op, struct vb_rdma_result *result);
int vb_rdma_wait(struct vb_rdma_op op, uint64_t timeout_ns, struct vb_rdma_result *result);

/* Takes an operation back: it ends without a result, as the blocking form does where its time is
 * over, and without its callback. ESTALE: no such handle. */
int vb_rdma_cancel(struct vb_rdma_op op);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_RDMA_H */
