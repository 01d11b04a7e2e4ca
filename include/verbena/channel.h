/* SPDX-License-Identifier: MIT */
/*
 * Channels: point-to-point connections that keep each buffer until its work has ended.
 *
 *	struct vb_group *group = vb_group_open(device, NULL);
 *	struct vb_channel *channel = vb_channel_prepare(group, &config);
 *	... exchange vb_channel_endpoint(channel) with the peer ...
 *	vb_channel_connect(channel, &remote);
 *	vb_channel_send(channel, &slice, &work);
 *	vb_work_wait(work, timeout_ns, &result);
 *
 * A group is a protection domain and a completion queue with any number of channels to as many
 * peers. A work handle is a value; it is good until its result has been taken, after which it is
 * stale (ESTALE). From the posting of a work to its end, which polling or waiting sees, its buffers
 * belong to the channel: a region cannot be freed meanwhile, and in a checked region a touch is
 * caught (vb_region_alloc() says what that means).
 *
 * Memory is allocated when a group, a channel or a team is made, not for each message.
 *
 * Errors, ownership, timeouts: as in <verbena/connect.h>. On a virtual clock each poll that finds
 * nothing moves time to the next event.
 *
 * Threads. A group with its channels, scopes and teams is for one thread at a time, and regions are
 * used by one group at a time; different groups are independent of one another.
 */
#ifndef VERBENA_CHANNEL_H
#define VERBENA_CHANNEL_H

#include <verbena/connect.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- groups --- */

struct vb_group;

/*
 * Makes a group on a device, in the caller's protection domain or in one of its own (NULL). Ended
 * by vb_group_close(): EBUSY while it has channels.
 */
struct vb_group *vb_group_open(struct vb_device *device, struct ibv_pd *pd);
int vb_group_close(struct vb_group *group);

/* What is in it, for allocating regions and for epoll; they belong to the group. */
struct ibv_pd *vb_group_pd(const struct vb_group *group);
struct vb_cq *vb_group_cq(const struct vb_group *group);
struct vb_device *vb_group_device(const struct vb_group *group);

/* vb_region_alloc() and vb_region_register() in the group's protection domain. */
struct vb_region *vb_group_alloc(struct vb_group *group, size_t length_bytes);
struct vb_region *vb_group_register(struct vb_group *group, void *addr, size_t length_bytes);

/*
 * Takes the completions that are there, or waits for one; the works' own functions do this too.
 * Returns 0, ETIMEDOUT, EDEADLK or EIO (the CQ has overrun, which cannot be: its size follows the
 * channels).
 */
int vb_group_progress(struct vb_group *group, uint64_t timeout_ns);

/* How many works of all channels have not ended. */
unsigned int vb_group_pending(const struct vb_group *group);

/* --- channels --- */

struct vb_channel;

/*
 * Makes a channel that is not connected, after config (NULL: the defaults): RC or UC, without SRQ
 * (EINVAL). It holds max_send_wr + max_recv_wr works. Ended by vb_channel_close(). Errors: as
 * vb_qp_prepare().
 */
struct vb_channel *vb_channel_prepare(struct vb_group *group, const struct vb_qp_config *config);

/* For the peer. */
const struct vb_endpoint *vb_channel_endpoint(const struct vb_channel *channel);

/* The QP; it belongs to the channel. NULL once the channel is broken beyond use. */
struct ibv_qp *vb_channel_qp(const struct vb_channel *channel);

/* As vb_handshake(), and with the same errors; EISCONN: it is connected. */
int vb_channel_connect(struct vb_channel *channel, const struct vb_endpoint *remote);

/* Both ends in this process: connects two prepared channels, of any groups. */
int vb_channel_connect_pair(struct vb_channel *a, struct vb_channel *b);

/*
 * Ends a channel. Works that have not ended are flushed first, so that afterwards no buffer is in
 * use; their handles are void. Returns 0 or errno; the channel is gone in any case. A scope that
 * holds works of it must have ended (EBUSY: it has not, and the channel stays).
 */
int vb_channel_close(struct vb_channel *channel);

/* --- posting --- */

/* A piece of a region. */
struct vb_slice {
	struct vb_region *region;
	size_t offset_bytes;
	uint32_t length_bytes;
};

enum vb_operation {
	VB_SEND,
	VB_RECEIVE,
	VB_WRITE,
	VB_READ,
	VB_COMPARE_SWAP,
	VB_FETCH_ADD,
	VB_OPERATIONS,
};

struct vb_scope;

/* A work to be posted. Zeroed fields are not used. */
struct vb_request {
	enum vb_operation operation;
	const struct vb_slice *slices; /* gathered or scattered; may be none for a message of 0 B */
	unsigned int slice_count;
	struct vb_remote remote; /* of write, read and atomics; at least as long as the slices */
	uint64_t compare_add;	 /* of atomics, whose one slice is 8 bytes for the old value */
	uint64_t swap;
	bool with_imm; /* of send and write */
	uint32_t imm;  /* host byte order */
	bool solicited;
	bool fenced;		/* waits for the reads and atomics before it */
	struct vb_scope *scope; /* that the work belongs to, or NULL */
};

/* A handle of posted work. */
struct vb_work {
	struct vb_channel *channel;
	uint32_t slot;
	uint32_t generation;
};

/* How a work ended. */
struct vb_result {
	enum ibv_wc_status status;
	enum vb_operation operation;
	uint32_t length_bytes; /* received; of others 0 */
	bool has_imm;
	uint32_t imm; /* host byte order */
};

/*
 * Posts a work. With work NULL nobody asks for its result: it is let go when it ends, and counts in
 * vb_channel_failures() if it fails. Errors: EINVAL (slices outside their region or of another PD,
 * too many of them, a remote piece that is too short, an operation that the QP does not have),
 * ENOMEM (the queue is full: take results first), ENOTCONN (not connected, or broken).
 * Source: man ibv_post_send(3), ibv_post_recv(3).
 */
int vb_channel_post(struct vb_channel *channel, const struct vb_request *request,
		    struct vb_work *work);

/* The common ones, of one slice: vb_channel_post() of such a request. */
int vb_channel_send(struct vb_channel *channel, const struct vb_slice *slice, struct vb_work *work);
int vb_channel_send_imm(struct vb_channel *channel, const struct vb_slice *slice, uint32_t imm,
			struct vb_work *work);
int vb_channel_receive(struct vb_channel *channel, const struct vb_slice *slice,
		       struct vb_work *work);
int vb_channel_write(struct vb_channel *channel, const struct vb_slice *slice,
		     const struct vb_remote *remote, struct vb_work *work);
int vb_channel_write_imm(struct vb_channel *channel, const struct vb_slice *slice,
			 const struct vb_remote *remote, uint32_t imm, struct vb_work *work);
int vb_channel_read(struct vb_channel *channel, const struct vb_slice *slice,
		    const struct vb_remote *remote, struct vb_work *work);

/* If the 8 bytes at remote are compare, they become swap; the slice gets what they were. */
int vb_channel_compare_swap(struct vb_channel *channel, const struct vb_slice *slice,
			    const struct vb_remote *remote, uint64_t compare, uint64_t swap,
			    struct vb_work *work);

/* The 8 bytes at remote grow by add; the slice gets what they were. */
int vb_channel_fetch_add(struct vb_channel *channel, const struct vb_slice *slice,
			 const struct vb_remote *remote, uint64_t add, struct vb_work *work);

/* --- results --- */

/*
 * Takes a work's result, if it has ended; result may be NULL. Returns 0; EIO where it ended badly,
 * with the status in *result and in the sentence; EAGAIN where it has not ended, which looked at
 * the CQ once; ESTALE where its result was taken before.
 */
int vb_work_poll(struct vb_work work, struct vb_result *result);

/* As vb_work_poll(), but waits: ETIMEDOUT or EDEADLK where it has not ended, and the handle stays
 * good. */
int vb_work_wait(struct vb_work work, uint64_t timeout_ns, struct vb_result *result);

/*
 * Waits for count works, of any channels, and takes their results; results may be NULL. Returns 0;
 * ETIMEDOUT or EDEADLK, with no result taken; EIO where some ended badly, the first of them in the
 * sentence; ESTALE where a handle was, with no result taken.
 */
int vb_work_wait_all(const struct vb_work *works, unsigned int count, uint64_t timeout_ns,
		     struct vb_result *results);

/* Waits until no work of the channel is pending; results stay where they are. */
int vb_channel_wait_idle(struct vb_channel *channel, uint64_t timeout_ns);

/* Works that have not ended, and works without handle or scope that ended badly. */
unsigned int vb_channel_pending(const struct vb_channel *channel);
uint64_t vb_channel_failures(const struct vb_channel *channel);

/* --- scopes --- */

/*
 * A scope holds works that all end before it does:
 *
 *	struct vb_scope scope;
 *
 *	vb_scope_begin(&scope, group);
 *	... vb_channel_post() of requests with .scope = &scope ...
 *	err = vb_scope_end(&scope, timeout_ns);
 *
 * It is the caller's memory and must not move. The fields are private.
 */
struct vb_scope {
	struct vb_group *group;
	void *works;
	unsigned int pending;
	unsigned int failed;
	struct vb_result first_failure;
	uint32_t failed_qpn;
};

void vb_scope_begin(struct vb_scope *scope, struct vb_group *group);

/*
 * Waits for all of its works and takes the results that nobody took. Where time is over, or nothing
 * can come, it breaks the channels of the works that are left, which flushes these, and only then
 * returns: no buffer is in use afterwards. Returns 0; EIO where some ended badly; ETIMEDOUT or
 * EDEADLK where channels were broken. Ending it twice does nothing.
 */
int vb_scope_end(struct vb_scope *scope, uint64_t timeout_ns);

/* For __attribute__((cleanup(vb_scope_cleanup))): ends it with VB_FOREVER. */
void vb_scope_cleanup(struct vb_scope *scope);

/* --- many peers --- */

/*
 * Posts requests[i] on channels[i], for i from 0 to count - 1, in this order. works (may be NULL)
 * has a place for each. Returns 0 or the errno of the first that was refused, with *posted (may be
 * NULL) the number of those before it, which are under way.
 */
int vb_post_each(struct vb_channel *const *channels, const struct vb_request *requests,
		 unsigned int count, struct vb_work *works, unsigned int *posted);

/*
 * Cuts a slice into count equal pieces and sends piece i to channel i, or receives piece i from
 * channel i, all in the scope. EINVAL where the length cannot be divided by count.
 */
int vb_scatter(struct vb_channel *const *channels, unsigned int count, const struct vb_slice *slice,
	       struct vb_scope *scope);
int vb_gather(struct vb_channel *const *channels, unsigned int count, const struct vb_slice *slice,
	      struct vb_scope *scope);

/* Sends the same slice to all. */
int vb_multicast(struct vb_channel *const *channels, unsigned int count,
		 const struct vb_slice *slice, struct vb_scope *scope);

/* --- teams: ranked nodes that know one another --- */

/*
 * A node of a team of size nodes has a rank, a channel to each other rank, and a barrier. Its card
 * is what the others must know of it; every node needs the cards of all, in the order of the ranks.
 */
struct vb_team;

#define VB_TEAM_SIZE_MAX 1024

/*
 * Makes this node's part, with channels after config (NULL: the defaults) and as many small ones
 * for the barrier. Ended by vb_team_close(). Errors: EINVAL (rank not below size, size 0 or above
 * VB_TEAM_SIZE_MAX), and those of vb_channel_prepare().
 */
struct vb_team *vb_team_prepare(struct vb_group *group, unsigned int rank, unsigned int size,
				const struct vb_qp_config *config);
int vb_team_close(struct vb_team *team);

/* The length of a card of a team of size, and this node's. Format: "VBT" and 1 (4 bytes), rank (4),
 * size (4), then for each rank two encoded endpoints: of its channel and of its barrier channel. */
size_t vb_team_card_bytes(unsigned int size);
void vb_team_card(const struct vb_team *team, void *card);

/* Connects all channels. cards is all nodes' cards on end. EBADMSG, EPROTO, EPROTONOSUPPORT: a card
 * that is malformed or of another team, named; the rest as vb_handshake(). */
int vb_team_connect(struct vb_team *team, const void *cards);

unsigned int vb_team_rank(const struct vb_team *team);
unsigned int vb_team_size(const struct vb_team *team);

/* The channel to another rank, which belongs to the team; NULL for its own and for none. */
struct vb_channel *vb_team_channel(const struct vb_team *team, unsigned int rank);

/*
 * How the nodes exchange what they know before they are connected: gives away this rank's bytes and
 * returns with those of all, in the order of the ranks. Every rank calls it as often, with the same
 * length. Returns 0 or errno.
 */
typedef int vb_exchange_fn(void *arg, unsigned int rank, unsigned int size, const void *card,
			   size_t card_bytes, void *cards, uint64_t timeout_ns);

/* vb_team_card(), an exchange, vb_team_connect(), and a second exchange, after which all nodes are
 * connected: a message to one that is not yet is lost, and its retries are few. */
int vb_team_join(struct vb_team *team, vb_exchange_fn *exchange, void *arg, uint64_t timeout_ns);

/* The exchange over TCP; arg is a struct vb_tcp_place. Rank 0 listens and collects, the others
 * connect to it, again and again while nobody listens. The clock is the real one. What a stranger
 * sends to rank 0 closes that connection only. Errors: ETIMEDOUT, EPROTO (a node with another size,
 * or a rank twice, told to both), EINVAL (host), and those of socket(2), bind(2), connect(2). */
vb_exchange_fn vb_exchange_tcp;

struct vb_tcp_place {
	const char *host; /* of rank 0: a name or address */
	uint16_t port;
	int listener; /* rank 0: a listening socket, as from vb_tcp_listen(); -1: makes one */
};

/* A socket that listens at host (NULL: any) and *port, or where that is 0 at a free one, which it
 * tells. Returns the descriptor, or -1 with errno. */
int vb_tcp_listen(const char *host, uint16_t *port);

/* The exchange between threads of this process; arg is the board. No socket, no clock: each waits
 * for the last, in the operating system, at most timeout_ns of real time. */
vb_exchange_fn vb_exchange_board;

struct vb_board;

/* A board for the exchanges of size nodes. Ended by vb_board_close() when all have returned. After
 * an exchange that timed out it is good only for that. */
struct vb_board *vb_board_open(unsigned int size);
void vb_board_close(struct vb_board *board);

/* --- barriers --- */

enum vb_barrier {
	VB_BARRIER_LINEAR,	  /* all tell rank 0, which then tells all: 2(n-1) messages */
	VB_BARRIER_TREE,	  /* the same over a binary tree: 2 log n steps */
	VB_BARRIER_DISSEMINATION, /* log n rounds, rank r to r + 2^k: no root */
};

/*
 * Enters a barrier, which nobody leaves before all have entered: all nodes by the same algorithm,
 * else some answer EPROTO. One at a time: EALREADY. Then vb_barrier_poll() until it is not EAGAIN,
 * or vb_barrier_wait(). A node that is gone shows as EIO or, to those who wait for it without a
 * connection to it that sends, as ETIMEDOUT; the team is then good only for closing.
 * Other errors: ENOTCONN, EINVAL (algorithm).
 */
int vb_barrier_enter(struct vb_team *team, enum vb_barrier algorithm);
int vb_barrier_poll(struct vb_team *team);
int vb_barrier_wait(struct vb_team *team, uint64_t timeout_ns);

/* "linear", "tree", "dissemination"; NULL for none. */
const char *vb_barrier_name(enum vb_barrier algorithm);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CHANNEL_H */
