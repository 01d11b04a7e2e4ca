/* SPDX-License-Identifier: MIT */
/*
 * Connections between programs: messages of any length; memory regions that are requested, handed
 * over and released; and remote reads, writes and atomics on these regions.
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
 * An agent answers the requests of its peers. It works while it is driven: by its own thread
 * (options.thread), or else by vb_rdma_progress() and by every function here that waits or polls. A
 * program without an agent thread must call one of these often enough for its peers.
 *
 * Errors, ownership, timeouts: as in <verbena/connect.h>. A connection that has failed stays
 * failed: every function on it returns the same errno, and vb_rdma_error() has the reason. Other
 * connections of the agent continue. The errno values are
 *   - ECONNRESET: the peer closed the connection, or went away while connecting;
 *   - EIO: the device ended the connection, for example since the peer does not answer or a key is
 * no
 *     longer valid;
 *   - EPROTO: the peer sent something that docs/agent-messages.md does not allow;
 *   - ECONNABORTED: the peer says that this end did so.
 * The death of a peer is noticed at the next message to it, and after a call that it did not answer
 * in time (ETIMEDOUT). A program that only receives does not notice it.
 *
 * Threads. With options.thread, any thread may call any function, but no other thread may use an
 * object while it is being ended. Without it, only one thread at a time may use an agent and all
 * that was made from it. On a virtual clock there is no agent thread (ENOTSUP) and everything is
 * deterministic; drive two agents there in turns with the asynchronous form, or with two threads
 * (vb_sim_thread_enter()).
 *
 * pthread_cancel(3) ends a thread in the waits of these functions and nowhere else in them. The
 * operation of a blocking call is then cancelled as by vb_rdma_cancel(); the handle of vb_rdma_wait()
 * stays valid; vb_rdma_close() has closed the connection. Other threads continue.
 *
 * Memory is allocated when agents, connections and regions are made, and never for a message.
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

/* --- how two programs find each other --- */

/*
 * A carrier of lines. A line carries the few bytes that two agents exchange before their QPs are
 * connected. The functions return 0 or an errno value and do not block, except that connect may
 * look up a name. arg is options.exchange_arg. The agent calls one function at a time, except
 * connect: each thread that connects calls it itself, at the same time as other functions, so that
 * the agent's thread continues while a name is looked up. That lookup may take longer than the
 * timeout of the call.
 */
struct vb_rdma_exchange {
	/* Starts to listen at an address. */
	int (*listen)(void *arg, const char *address, void **listener);
	/* Takes the next line that a peer opened. EAGAIN: no line waits. */
	int (*accept)(void *listener, void **line);
	/* Opens a line; send returns EAGAIN until the line is open. ECONNREFUSED: nobody listens at
	 * the address; the first send or receive may fail with it as well. */
	int (*connect)(void *arg, const char *address, void **line);
	/* Send or receive at least 1 and at most length_bytes bytes. EAGAIN: no byte can be moved
	 * now. ECONNRESET: the other end closed the line. */
	int (*send)(void *line, const void *bytes, size_t length_bytes, size_t *moved_bytes);
	int (*receive)(void *line, void *bytes, size_t length_bytes, size_t *moved_bytes);
	/* A descriptor for epoll(7), readable or writable when accept, receive or send will not
	 * return EAGAIN. -1: there is none. The agent then looks once a millisecond or, on a
	 * virtual clock, after each call of vb_sim_tell(); agents call it after each transfer of
	 * their own. */
	int (*listener_descriptor)(void *listener);
	int (*line_descriptor)(void *line);
	/* Writes the address of a listener, such as "0.0.0.0:7000". */
	int (*name)(void *listener, char *text, size_t text_bytes);
	void (*close_listener)(void *listener);
	void (*close_line)(void *line);
};

/* Lines over TCP. An address is "host:port" with an IPv6 address in brackets. A listener may use
 * the host "*" for all addresses and port 0 for a free port; vb_rdma_listener_name() returns the
 * port. Where a name has IPv4 and IPv6 addresses, both ends use IPv4. arg is not used. */
const struct vb_rdma_exchange *vb_rdma_exchange_tcp(void);

/* Lines within this process, without sockets. arg is a hall that the agents share; an address is
 * any string. Several threads may use a hall. Ended by vb_rdma_hall_close() after its agents. */
struct vb_rdma_hall;
const struct vb_rdma_exchange *vb_rdma_exchange_local(void);
struct vb_rdma_hall *vb_rdma_hall_open(void);
void vb_rdma_hall_close(struct vb_rdma_hall *hall);

/* --- agents --- */

#define VB_MR_READ   1u
#define VB_MR_WRITE  2u
#define VB_MR_ATOMIC 4u
#define VB_MR_ALL    7u

/* The options of an agent. vb_rdma_options_init() sets the defaults, which stand in brackets. */
struct vb_rdma_options {
	const char *backend;	/* as vb_device_open_named() [NULL] */
	const char *device;	/* a name; NULL is the first device of the list [NULL] */
	uint8_t port_num;	/* 0 is port 1 [0] */
	int gid_index;		/* [VB_GID_INDEX_ANY] */
	uint32_t message_bytes; /* longest message between agents, 128..2^20 [4096] */
	uint64_t longest_bytes; /* longest message of the program, received in pieces [2^30] */
	uint32_t slots;		/* pieces that wait for vb_rdma_receive(), 2..1024 [32] */
	uint32_t connections;	/* at the same time, 1..65536 [16] */
	uint32_t operations;	/* under way at the same time, 1..2^20 [256] */
	uint64_t pool_bytes;	/* registered at once to hold small regions [2^22] */
	uint32_t peer_access;	/* what peers may ask for, a set of VB_MR_* [VB_MR_ALL] */
	uint64_t peer_bytes;	/* that one peer may hold here; 0: no memory [2^26] */
	uint64_t peer_lease_ns; /* longest lease of a peer; VB_FOREVER: no limit [VB_FOREVER] */
	uint64_t handshake_ns;	/* a line must complete its greeting in this time [5 s] */
	uint32_t ack_timeout;	/* VB_QP_TIMEOUT [14: 67 ms] */
	uint32_t retry_cnt;	/* VB_QP_RETRY_CNT [7] */
	bool thread;		/* run an agent thread [false] */
	const struct vb_rdma_exchange *exchange; /* [vb_rdma_exchange_tcp()] */
	void *exchange_arg;			 /* [NULL] */
};

void vb_rdma_options_init(struct vb_rdma_options *options);

/*
 * Opens a device and makes an agent on it. Ended by vb_rdma_agent_close(), which fails with EBUSY
 * while the agent has connections, listeners or regions. Errors: ERANGE (an option, which the
 * sentence names), EINVAL (the device's CQ is too small: use fewer connections or slots), ENOTSUP
 * (a thread on a virtual clock), and those of vb_device_open_named() and vb_cq_open().
 */
struct vb_rdma_agent *vb_rdma_agent_open(const struct vb_rdma_options *options);
int vb_rdma_agent_close(struct vb_rdma_agent *agent);

/* The agent's device, which belongs to the agent. */
struct vb_device *vb_rdma_agent_device(const struct vb_rdma_agent *agent);

/*
 * Drives the agent: handles completions, lines and ended leases, and calls callbacks. Waits for the
 * first of these. Returns at once if the agent has a thread. Errors: ETIMEDOUT (nothing happened;
 * with a timeout of 0 the call then succeeds), EDEADLK (virtual clock, no limit, and no event is
 * left).
 */
int vb_rdma_progress(struct vb_rdma_agent *agent, uint64_t timeout_ns);

/*
 * For epoll(7) on the real clock without an agent thread: after vb_rdma_arm(), the descriptor
 * becomes readable when vb_rdma_progress() has something to do. The descriptor belongs to the
 * agent. Leases and lines without descriptor do not show there; for them call vb_rdma_progress()
 * regularly. Errors: ENOTSUP (an agent thread or a virtual clock), EIO (the CQ cannot be armed).
 */
int vb_rdma_descriptor(const struct vb_rdma_agent *agent);
int vb_rdma_arm(struct vb_rdma_agent *agent);

/* --- connections --- */

/*
 * Listens at an address of the agent's exchange. The agent greets peers while it is driven. Bytes
 * that are no greeting close their line and have no other effect. Ended by
 * vb_rdma_listener_close(), which also closes the connections that were not accepted.
 * vb_rdma_listener_name() writes the address to text. Errors: EINVAL (the address), EADDRINUSE,
 * ENOMEM, those of socket(2); for the name ERANGE (text is too short).
 */
struct vb_rdma_listener *vb_rdma_listen(struct vb_rdma_agent *agent, const char *address);
int vb_rdma_listener_close(struct vb_rdma_listener *listener);
int vb_rdma_listener_name(const struct vb_rdma_listener *listener, char *text, size_t text_bytes);

/*
 * Waits for the next connection, which is ready in both directions. Ended by vb_rdma_close().
 * Errors: ETIMEDOUT, EDEADLK. vb_rdma_accept() and vb_rdma_connect() never fail with EDEADLK if the
 * exchange has descriptors, since bytes may always arrive through these.
 */
struct vb_rdma *vb_rdma_accept(struct vb_rdma_listener *listener, uint64_t timeout_ns);

/*
 * Connects to a listener. Ended by vb_rdma_close(). Errors: ETIMEDOUT; EDEADLK; ECONNREFUSED
 * (nobody listens at the address, or the peer has no room); ECONNRESET (the peer went away
 * meanwhile); EPROTO, EPROTONOSUPPORT (the other end is no agent, or of another version); ENOSPC
 * (options.connections); and those of vb_qp_prepare() and vb_handshake().
 */
struct vb_rdma *vb_rdma_connect(struct vb_rdma_agent *agent, const char *address,
				uint64_t timeout_ns);

/*
 * Closes a connection and frees it. Sends a goodbye if the connection works, and waits at most 1 s
 * until the peer has it. Operations on the connection end with ECANCELED, the peer's keys become
 * invalid, and remote regions become stale. Returns 0.
 */
int vb_rdma_close(struct vb_rdma *rdma);

/* Returns 0 while the connection works, else the errno of its failure. *why is set to the reason, a
 * sentence that belongs to the connection; why may be NULL. */
int vb_rdma_error(const struct vb_rdma *rdma, const char **why);

/* The QP of the connection, for queries. It belongs to the agent. */
struct ibv_qp *vb_rdma_qp(const struct vb_rdma *rdma);

/* --- messages --- */

/*
 * Send a message; imm is immediate data in host byte order. The calls return when the peer's device
 * has the whole message. The bytes need not be registered. The peer's agent holds options.slots
 * pieces; the rest of a longer message waits until the peer calls vb_rdma_receive(). The peer drops
 * a message whose sending timed out. Errors: EMSGSIZE (longer than the peer's
 * options.longest_bytes), ETIMEDOUT, EDEADLK, ENOBUFS (options.operations).
 */
int vb_rdma_send(struct vb_rdma *rdma, const void *bytes, size_t length_bytes, uint64_t timeout_ns);
int vb_rdma_send_imm(struct vb_rdma *rdma, const void *bytes, size_t length_bytes, uint32_t imm,
		     uint64_t timeout_ns);

/* A received message. */
struct vb_rdma_message {
	size_t length_bytes;
	bool has_imm;
	uint32_t imm;
};

/*
 * Receives the next message into the caller's memory; message may be NULL. Errors: EMSGSIZE (the
 * message is longer than room_bytes; message->length_bytes is its length, and the message stays);
 * ETIMEDOUT and EDEADLK (a message that had arrived in part is lost).
 */
int vb_rdma_receive(struct vb_rdma *rdma, void *bytes, size_t room_bytes,
		    struct vb_rdma_message *message, uint64_t timeout_ns);

/* --- local regions --- */

/*
 * Takes a zeroed region from the agent's pool. It begins at a multiple of align_bytes, a power of
 * two up to 4096, or 0 for any. The caller has one reference. Errors: EINVAL (length or alignment),
 * ENOMEM.
 */
struct vb_local_mr *vb_alloc_local_mr(struct vb_rdma_agent *agent, size_t length_bytes,
				      size_t align_bytes);

void *vb_local_mr_addr(const struct vb_local_mr *mr);
size_t vb_local_mr_bytes(const struct vb_local_mr *mr);

/* Take and drop a reference. With the last reference the region returns to the pool. Operations
 * under way and the keys of peers hold references, too. vb_local_mr_put() ignores NULL. */
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
 * A remote region is memory of the peer with its own key (an MR for this grant alone). The key is
 * valid until the last reference is dropped, the lease ends, or the connection ends. Operations on
 * a region whose lease has ended fail with ESTALE and send nothing. A peer that uses an invalid key
 * loses its connection. Dropping the last reference releases the region at its owner.
 */
uint64_t vb_remote_mr_bytes(const struct vb_remote_mr *mr);
uint32_t vb_remote_mr_access(const struct vb_remote_mr *mr); /* VB_MR_* */
/* The address and key, for use with other functions. */
void vb_remote_mr_key(const struct vb_remote_mr *mr, struct vb_remote *key);
/* The time until the lease ends; VB_FOREVER without lease; 0 if the region is stale. */
uint64_t vb_remote_mr_left_ns(const struct vb_remote_mr *mr);
/* Take and drop a reference. vb_remote_mr_put() ignores NULL. */
struct vb_remote_mr *vb_remote_mr_get(struct vb_remote_mr *mr);
void vb_remote_mr_put(struct vb_remote_mr *mr);

/*
 * Requests memory from the peer's agent. access is a set of VB_MR_*; align_bytes as for
 * vb_alloc_local_mr(). The lease starts with the request; lease_ns 0 is no lease. Errors: EACCES
 * (access exceeds the peer's peer_access), EDQUOT (length or lease exceeds the peer's peer_bytes or
 * peer_lease_ns), ENOMEM (at the peer), EINVAL, ETIMEDOUT, EDEADLK.
 */
struct vb_remote_mr *vb_request_remote_mr(struct vb_rdma *rdma, size_t length_bytes,
					  size_t align_bytes, uint32_t access, uint64_t lease_ns,
					  uint64_t timeout_ns);

/*
 * Hands a region that was requested from the peer over to the peer, whose vb_receive_local_mr()
 * returns it. The remote region stays valid at this end. Errors: EINVAL (this end did not request
 * the region), ESTALE (the grant has ended), EBUSY (64 regions wait at the peer), ETIMEDOUT,
 * EDEADLK.
 */
int vb_send_mr(struct vb_rdma *rdma, struct vb_remote_mr *mr, uint64_t timeout_ns);

/*
 * Gives the peer a key for a local region; the peer's vb_receive_remote_mr() returns the region.
 * The key holds a reference of the local region. The lease starts when the key arrives; lease_ns 0
 * is no lease. Errors: EINVAL (access, or not a region of this agent), EBUSY (64 regions wait at
 * the peer), EDQUOT (the peer has too many keys), ENOMEM, ETIMEDOUT, EDEADLK.
 */
int vb_send_local_mr(struct vb_rdma *rdma, struct vb_local_mr *mr, uint32_t access,
		     uint64_t lease_ns, uint64_t timeout_ns);

/* Wait for the next region that the peer handed over. The caller gets a reference. Errors:
 * ETIMEDOUT, EDEADLK. */
struct vb_local_mr *vb_receive_local_mr(struct vb_rdma *rdma, uint64_t timeout_ns);
struct vb_remote_mr *vb_receive_remote_mr(struct vb_rdma *rdma, uint64_t timeout_ns);

/*
 * One-sided operations. A write copies the slice to the remote region from offset_bytes on; a read
 * copies from there to the slice. An atomic works on the 8 bytes at offset_bytes, in the owner's
 * host byte order, and sets *before to their old value; before may be NULL. Errors: EINVAL (outside
 * a region; an atomic's offset is not a multiple of 8), EACCES (the grant does not allow the
 * operation), ESTALE (the lease has ended, or the region belongs to another connection), EMSGSIZE
 * (longer than the port's max_msg_sz), ENOBUFS (options.operations), EDEADLK, ETIMEDOUT (the device
 * may still execute the operation; its regions keep a reference until it ends).
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

/* The handle of a started operation: a value, valid until the result is taken. */
struct vb_rdma_op {
	struct vb_rdma_agent *agent;
	uint32_t slot;
	uint32_t generation;
};

struct vb_rdma_result {
	int err; /* 0, or the errno of the blocking form */
	struct vb_rdma *rdma;
	struct vb_rdma_message message;
	struct vb_local_mr *local;
	struct vb_remote_mr *remote;
	uint64_t before;
};

typedef void vb_rdma_callback(void *arg, const struct vb_rdma_result *result);

/* An operation to be started. enum vb_rdma_operation names the fields that each operation uses. The
 * memory at from and into is used until the operation ends; all else is read at the start. */
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
	/* Called once at the end of the operation, by the thread that drives the agent; the handle
	 * is stale then. It may start operations; it must not wait or end an object. NULL: the
	 * program polls or waits. */
	vb_rdma_callback *callback;
	void *arg;
};

/* Starts an operation and sets *op to its handle; with a callback op may be NULL. Errors: EINVAL,
 * ENOBUFS (options.operations), and the errors of the blocking form that need no answer. */
int vb_rdma_start(const struct vb_rdma_request *request, struct vb_rdma_op *op);

/*
 * Take the result of an operation that has ended. With result NULL, a region in the result is
 * released and a connection is closed, as by vb_rdma_cancel(). vb_rdma_poll() drives the agent once.
 * Both return the errno of the operation, which is 0 if it succeeded, or ESTALE (the
 * handle is stale). If the operation has not ended, vb_rdma_poll() returns EAGAIN and
 * vb_rdma_wait() ETIMEDOUT or EDEADLK; the handle stays valid: wait again, or cancel the operation.
 */
int vb_rdma_poll(struct vb_rdma_op op, struct vb_rdma_result *result);
int vb_rdma_wait(struct vb_rdma_op op, uint64_t timeout_ns, struct vb_rdma_result *result);

/* Cancels an operation, as the blocking form does at its timeout: it has no result and does not
 * call its callback. Fails with ESTALE if the handle is stale. */
int vb_rdma_cancel(struct vb_rdma_op op);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_RDMA_H */
