/* SPDX-License-Identifier: MIT */
/*
 * Channels: point-to-point connections that hold each buffer until its work has ended.
 *
 *	struct vb_group *group = vb_group_open(device, NULL);
 *	struct vb_channel *channel = vb_channel_prepare(group, &config);
 *	... exchange vb_channel_endpoint(channel) with the peer ...
 *	vb_channel_connect(channel, &remote);
 *	vb_channel_send(channel, &slice, &work);
 *	vb_work_wait(work, timeout_ns, &result);
 *
 * A group is a protection domain (PD) and a completion queue with any number of channels, each to
 * one peer. A work is a posted send, receive, write, read or atomic. Its handle is a value, which
 * becomes stale (ESTALE) when the result of the work is taken. A work ends when polling or waiting
 * sees its completion. Until then its buffers belong to the channel: vb_region_free() fails with
 * EBUSY, and accesses to a checked region are caught (vb_region_alloc()).
 *
 * Memory is allocated when a group, a channel or a team is made, and never for a message.
 *
 * Errors, ownership, timeouts: as in <verbena/connect.h>. On a virtual clock each poll that finds
 * nothing advances time to the next event.
 *
 * Threads. Only one thread at a time may use a group with its channels, scopes and teams. A region
 * may be used by one group at a time. Different groups are independent.
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
 * Makes a group on a device. pd NULL makes a protection domain that belongs to the group. Ended by
 * vb_group_close(), which fails with EBUSY while the group has channels. Errors: as vb_alloc_pd()
 * and vb_cq_open().
 */
struct vb_group *vb_group_open(struct vb_device *device, struct ibv_pd *pd);
int vb_group_close(struct vb_group *group);

/* The parts of a group, for registering memory and for epoll(7). They belong to the group. */
struct ibv_pd *vb_group_pd(const struct vb_group *group);
struct vb_cq *vb_group_cq(const struct vb_group *group);
struct vb_device *vb_group_device(const struct vb_group *group);

/* vb_region_alloc() and vb_region_register() in the group's protection domain. */
struct vb_region *vb_group_alloc(struct vb_group *group, size_t length_bytes);
struct vb_region *vb_group_register(struct vb_group *group, void *addr, size_t length_bytes);

/*
 * Takes completions, and waits for the first one; the functions that poll or wait for works do the
 * same. Errors: ETIMEDOUT, EDEADLK, EIO (the CQ has overrun; since the CQ grows with the channels,
 * only a device error causes this).
 */
int vb_group_progress(struct vb_group *group, uint64_t timeout_ns);

/* Counts the works of all channels that have not ended. */
unsigned int vb_group_pending(const struct vb_group *group);

/* --- channels --- */

struct vb_channel;

/*
 * Makes a channel as config (NULL: the defaults) says, which is not connected yet. It has room for
 * max_send_wr + max_recv_wr works. Ended by vb_channel_close(). Errors: EINVAL (the type is neither
 * RC nor UC; there is an SRQ; there is no room for any work), and those of vb_qp_prepare().
 */
struct vb_channel *vb_channel_prepare(struct vb_group *group, const struct vb_qp_config *config);

/* The endpoint, to be sent to the peer. It belongs to the channel. */
const struct vb_endpoint *vb_channel_endpoint(const struct vb_channel *channel);

/* The QP, which belongs to the channel; NULL after the channel had to destroy it. */
struct ibv_qp *vb_channel_qp(const struct vb_channel *channel);

/* Connects the channel. Errors: as vb_handshake(), and EISCONN (it has been connected before). */
int vb_channel_connect(struct vb_channel *channel, const struct vb_endpoint *remote);

/* Connects two channels of this process, which may be of different groups, to each other. */
int vb_channel_connect_pair(struct vb_channel *a, struct vb_channel *b);

/*
 * Flushes the works that have not ended and frees the channel: afterwards none of its buffers is in
 * use, and its handles must not be used. Fails with EBUSY, and keeps the channel, while a scope
 * holds works of it. On any other error the channel is freed as well.
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

/* A work to be posted. A field that is 0 has no effect. */
struct vb_request {
	enum vb_operation operation;
	const struct vb_slice *slices; /* gathered or scattered; none for a message of 0 bytes */
	unsigned int slice_count;
	struct vb_remote remote; /* for write, read, atomics; at least as long as the slices */
	uint64_t compare_add;	 /* for atomics; their one slice of 8 bytes gets the old value */
	uint64_t swap;
	bool with_imm; /* for send and write */
	uint32_t imm;  /* host byte order */
	bool solicited;
	bool fenced;		/* starts after the earlier reads and atomics */
	struct vb_scope *scope; /* the scope that holds the work, or NULL */
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
	uint32_t length_bytes; /* of a received message; else 0 */
	bool has_imm;
	uint32_t imm; /* host byte order */
};

/*
 * Posts a work and sets *work to its handle. With work NULL the result is dropped at the end of the
 * work; a failure then counts in vb_channel_failures(). Errors: EINVAL (a slice outside its region
 * or of another PD, too many slices, a remote piece that is too short, an operation that the QP
 * does not have), ENOMEM (the channel has no room for another work: take results first), ENOTCONN
 * (the channel is not connected, or broken).
 * Source: man ibv_post_send(3), ibv_post_recv(3).
 */
int vb_channel_post(struct vb_channel *channel, const struct vb_request *request,
		    struct vb_work *work);

/* vb_channel_post() of the common requests with one slice. */
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

/* If the 8 bytes at remote equal compare, sets them to swap. The slice gets their old value. */
int vb_channel_compare_swap(struct vb_channel *channel, const struct vb_slice *slice,
			    const struct vb_remote *remote, uint64_t compare, uint64_t swap,
			    struct vb_work *work);

/* Adds to the 8 bytes at remote. The slice gets their old value. */
int vb_channel_fetch_add(struct vb_channel *channel, const struct vb_slice *slice,
			 const struct vb_remote *remote, uint64_t add, struct vb_work *work);

/* --- results --- */

/*
 * Takes the result of a work that has ended; result may be NULL. If the work has not ended, polls
 * the CQ once. Errors: EIO (the work failed; *result and the sentence have its status), EAGAIN (it
 * has not ended), ESTALE (its result was taken before).
 */
int vb_work_poll(struct vb_work work, struct vb_result *result);

/* As vb_work_poll(), but waits for the end of the work. Fails with ETIMEDOUT or EDEADLK instead of
 * EAGAIN; the handle stays valid. */
int vb_work_wait(struct vb_work work, uint64_t timeout_ns, struct vb_result *result);

/*
 * Waits for count works of any channels and takes their results; results may be NULL. Errors: EIO
 * (some works failed; the sentence has the first), and, with no result taken, ETIMEDOUT, EDEADLK
 * and ESTALE (one of the handles).
 */
int vb_work_wait_all(const struct vb_work *works, unsigned int count, uint64_t timeout_ns,
		     struct vb_result *results);

/* Waits until all works of the channel have ended. Takes no results. */
int vb_channel_wait_idle(struct vb_channel *channel, uint64_t timeout_ns);

/* Count the works that have not ended, and the failed works that had neither handle nor scope. */
unsigned int vb_channel_pending(const struct vb_channel *channel);
uint64_t vb_channel_failures(const struct vb_channel *channel);

/* --- scopes --- */

/*
 * A scope ends after all works in it have ended:
 *
 *	struct vb_scope scope;
 *
 *	vb_scope_begin(&scope, group);
 *	... vb_channel_post() of requests with .scope = &scope ...
 *	err = vb_scope_end(&scope, timeout_ns);
 *
 * The struct is the caller's memory and must not move. Its fields are private.
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
 * Waits for all works of the scope and takes the results that were not taken. At ETIMEDOUT or
 * EDEADLK it breaks the channels of the works that have not ended, which flushes these works, so no
 * buffer is in use when it returns. Errors: EIO (some works failed), ETIMEDOUT and EDEADLK
 * (channels were broken). Ending a scope twice does nothing.
 */
int vb_scope_end(struct vb_scope *scope, uint64_t timeout_ns);

/* Ends a scope with VB_FOREVER; for __attribute__((cleanup(vb_scope_cleanup))). */
void vb_scope_cleanup(struct vb_scope *scope);

/* --- many peers --- */

/*
 * Posts requests[i] on channels[i] for i from 0 to count - 1, in this order. works[i] becomes the
 * handle; works may be NULL. Stops at the first request that fails and returns its errno. *posted
 * counts the requests that were posted; posted may be NULL.
 */
int vb_post_each(struct vb_channel *const *channels, const struct vb_request *requests,
		 unsigned int count, struct vb_work *works, unsigned int *posted);

/*
 * Cut a slice into count equal pieces, and send piece i to channel i or receive piece i from
 * channel i. All works are in the scope. Errors: EINVAL (count does not divide the length), and
 * those of vb_channel_post().
 */
int vb_scatter(struct vb_channel *const *channels, unsigned int count, const struct vb_slice *slice,
	       struct vb_scope *scope);
int vb_gather(struct vb_channel *const *channels, unsigned int count, const struct vb_slice *slice,
	      struct vb_scope *scope);

/* Sends the slice to all channels. All works are in the scope. */
int vb_multicast(struct vb_channel *const *channels, unsigned int count,
		 const struct vb_slice *slice, struct vb_scope *scope);

/* --- teams: nodes with ranks, each connected to all others --- */

/*
 * A node's part of a team: its rank, a channel to each other rank, and the barrier. A node's card
 * has the endpoints of its channels; every node needs the cards of all nodes in the order of their
 * ranks.
 */
struct vb_team;

#define VB_TEAM_SIZE_MAX 1024

/*
 * Makes this node's part of a team of size nodes. For each other rank it has a channel as config
 * (NULL: the defaults) says and a small channel for the barrier. Ended by vb_team_close(), which
 * fails with EBUSY while a scope holds works of the team's channels. Errors: EINVAL (rank is not
 * below size; size is 0 or above VB_TEAM_SIZE_MAX), and those of vb_channel_prepare().
 */
struct vb_team *vb_team_prepare(struct vb_group *group, unsigned int rank, unsigned int size,
				const struct vb_qp_config *config);
int vb_team_close(struct vb_team *team);

/* The length of a card in a team of size nodes, and this node's card. Format, big-endian: "VBT" and
 * 1 (4 bytes), rank (4), size (4), then for each rank the encoded endpoints of the channel and of
 * the barrier channel to that rank. */
size_t vb_team_card_bytes(unsigned int size);
void vb_team_card(const struct vb_team *team, void *card);

/* Connects all channels. cards has the cards of all nodes, one behind another. Errors: EBADMSG,
 * EPROTO and EPROTONOSUPPORT (a card is malformed or belongs to another team; the sentence names
 * its rank), EISCONN (the team is connected), and those of vb_handshake(). */
int vb_team_connect(struct vb_team *team, const void *cards);

unsigned int vb_team_rank(const struct vb_team *team);
unsigned int vb_team_size(const struct vb_team *team);

/* The channel to another rank, which belongs to the team. NULL for the node's own rank and for
 * ranks that the team does not have. */
struct vb_channel *vb_team_channel(const struct vb_team *team, unsigned int rank);

/*
 * An exchange between the nodes of a team before they are connected: gives the other nodes this
 * rank's card, of card_bytes, and fills cards with the cards of all ranks in their order. All ranks
 * call it equally often and with the same length. Returns 0 or errno.
 */
typedef int vb_exchange_fn(void *arg, unsigned int rank, unsigned int size, const void *card,
			   size_t card_bytes, void *cards, uint64_t timeout_ns);

/* Exchanges the cards, connects the team, and exchanges once more, so that on return all nodes are
 * connected: a message to a node that is not connected is lost, and its retries are few. Errors:
 * those of the exchange and of vb_team_connect(). */
int vb_team_join(struct vb_team *team, vb_exchange_fn *exchange, void *arg, uint64_t timeout_ns);

/* The exchange over TCP; arg is a struct vb_tcp_place. Rank 0 listens and collects the cards; the
 * other ranks connect to rank 0 and retry until it listens. The timeout counts on the real clock.
 * Bytes that are no greeting close their TCP connection and have no other effect. Errors:
 * ETIMEDOUT, EPROTO (a node with another size or length, or a second node with the same rank; both
 * ends fail), EINVAL (host), and those of socket(2), bind(2), connect(2). docs/agent-messages.md
 * has the format. */
vb_exchange_fn vb_exchange_tcp;

struct vb_tcp_place {
	const char *host; /* the name or address of rank 0 */
	uint16_t port;
	int listener; /* for rank 0: a socket of vb_tcp_listen(), or -1 to make one */
};

/* Makes a socket that listens at host (NULL: all addresses) and *port; if *port is 0, at a free
 * port, to which it sets *port. The caller closes the socket. Returns the descriptor, or -1 with
 * errno. */
int vb_tcp_listen(const char *host, uint16_t *port);

/* The exchange between threads of this process; arg is a struct vb_board. It uses no socket. A rank
 * sleeps in the operating system until all ranks have come, at most timeout_ns of real time.
 * Errors: as vb_exchange_tcp. */
vb_exchange_fn vb_exchange_board;

struct vb_board;

/* Makes a board for the exchanges of size nodes. Ended by vb_board_close() after all exchanges have
 * returned. After an exchange that failed the board can only be closed. */
struct vb_board *vb_board_open(unsigned int size);
void vb_board_close(struct vb_board *board);

/* --- barriers --- */

enum vb_barrier {
	VB_BARRIER_LINEAR,	  /* all to rank 0, then rank 0 to all: 2(n-1) messages */
	VB_BARRIER_TREE,	  /* the same over a binary tree: 2 log n steps */
	VB_BARRIER_DISSEMINATION, /* log n rounds, rank r to rank r + 2^k: no root */
};

/*
 * A barrier, which no node leaves before all nodes have entered. Call vb_barrier_enter(), then
 * vb_barrier_poll() until it returns something else than EAGAIN, or vb_barrier_wait(). All nodes
 * use the same algorithm; otherwise some fail with EPROTO. After EPROTO or EIO the team can only be
 * closed. Errors: EALREADY (the node is in a barrier), ENOTCONN (the team is not connected, or a
 * barrier has failed), EINVAL (no such algorithm; polling or waiting outside a barrier), EIO (a
 * node that this node sends to does not answer), ETIMEDOUT and EDEADLK (a node has not entered yet,
 * or has died; wait again or close the team).
 */
int vb_barrier_enter(struct vb_team *team, enum vb_barrier algorithm);
int vb_barrier_poll(struct vb_team *team);
int vb_barrier_wait(struct vb_team *team, uint64_t timeout_ns);

/* "linear", "tree" or "dissemination"; NULL if there is no such algorithm. */
const char *vb_barrier_name(enum vb_barrier algorithm);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CHANNEL_H */
