/* SPDX-License-Identifier: MIT */
/*
 * The insides of an agent: its operations, connections and regions. All are used under the agent's
 * lock. The functions stand in the order of their files: each file calls only files above it.
 */
#ifndef SRC_CONNECT_RDMA_AGENT_H
#define SRC_CONNECT_RDMA_AGENT_H

#include "src/connect/cq.h"
#include "src/connect/handle.h"
#include "src/connect/object.h"
#include "src/connect/rdma/message.h"

#include <pthread.h>
#include <sys/single_threaded.h>
#include <verbena/sim.h>

/* Receives beside the slots: docs/agent-messages.md. */
#define CONTROL_RECEIVES 16
/* Requests of one end that have no answer yet. */
#define REQUESTS_MAX 8
/* Messages that are being sent. DATA leaves the last ones to control messages. */
#define SENDS	      24
#define CONTROL_SENDS 8
/* Regions that the peer handed over and the program has not taken. */
#define ARRIVED_MAX 64
/* Keys that a peer may hold at once. */
#define GRANTS_MAX 4096
#define WHY_BYTES  256

/* --- operations --- */

struct op {
	struct handle_row row;
	struct vb_rdma_agent *agent;
	struct vb_rdma_request request;
	struct vb_rdma_result result;
	struct vb_rdma *rdma;	/* NULL: the operation has no connection (yet) */
	void *line;		/* of CONNECT, until a connection has it */
	struct op_queue *queue; /* the queue that the operation waits in, or NULL */
	struct op *next;
	bool busy;	/* else it has ended */
	bool holds;	/* has references of the regions that the request names */
	bool abandoned; /* the program has given the handle up */
	bool all_posted;
	uint32_t in_flight;
	uint32_t tag;
	uint64_t moved_bytes;
	uint64_t granted_id; /* of SEND_LOCAL_MR */
	uint64_t began_ns;   /* when a lease was asked for */
	char why[WHY_BYTES]; /* the sentence of a failure; "": the errno's */
};

struct op_queue {
	struct op *first, *last;
	uint32_t count;
};

/* --- memory --- */

struct pool {
	struct piece *pieces;
	size_t piece_bytes;
};

struct vb_local_mr {
	struct vb_rdma_agent *agent;
	struct piece *piece;
	size_t length_bytes;
	uint8_t *addr;
	uint32_t lkey;
	uint32_t references;
};

struct vb_remote_mr {
	struct vb_rdma_agent *agent;
	uint32_t owner, generation; /* a handle of the connection */
	struct vb_remote_mr *next;  /* among those to be released */
	struct region_record record;
	uint64_t ends_ns;
	bool requested; /* by this end; else the peer offered it */
	uint32_t references;
};

/* A key that the peer has for memory of this end. */
struct grant {
	struct grant *next;
	uint64_t id;
	struct vb_local_mr *local;
	struct ibv_mr *key;
	uint64_t ends_ns;
};

/* --- connections --- */

enum stage {
	STAGE_HEAR_GREETING, /* listening end */
	STAGE_ANSWER,
	STAGE_HEAR_CONFIRM,
	STAGE_SAY_GREETING, /* connecting end */
	STAGE_HEAR_ANSWER,
	STAGE_CONFIRM,
	STAGE_READY,
};

/* A piece of a message that waits in its receive buffer. */
struct arrived_piece {
	uint32_t buffer;
	uint32_t flags;
	uint32_t imm;
	uint32_t piece_bytes;
	uint64_t total_bytes;
	uint64_t offset_bytes;
};

/* Free indices of a small table. */
struct free_list {
	uint32_t count;
	uint8_t indices[FLIGHTS];
};

/* Regions that arrived, the oldest first, and the operations that wait for them. */
struct arrivals {
	void *regions[ARRIVED_MAX];
	uint32_t first, count;
	struct op_queue waiting;
};

/* A one-sided operation that the device has. */
struct flight {
	struct op *op; /* NULL: abandoned */
	struct vb_local_mr *local;
	struct vb_remote_mr *remote;
};

struct vb_rdma {
	struct vb_rdma_agent *agent;
	struct vb_rdma_listener *listener; /* until the connection is accepted */
	struct vb_rdma *next;		   /* in the list shaking or ready */
	uint64_t key;			   /* for wr_ids */
	int err;
	char why[WHY_BYTES];
	bool closing;
	bool dying; /* the QP goes to ERR when all sends have ended */

	/* the line */
	void *line;
	int line_fd;
	enum stage stage;
	size_t line_bytes;
	uint64_t line_ends_ns;
	struct op *connecting;
	uint8_t line_buffer[GREETING_BYTES];

	/* the QP and its buffers: receives, then sends, then the old values of atomics; a work's
	 * number is that of its buffer or value */
	struct vb_prepared_qp *prepared;
	struct ibv_qp *qp;
	struct vb_local_mr *buffers;
	struct greeting peer;
	uint32_t receives;

	/* sending */
	struct op *sends[SENDS]; /* of DATA; else NULL */
	struct free_list free_sends;
	struct op_queue data_queue;
	uint32_t sent, peer_let_go; /* DATA, modulo 2^32 */
	uint64_t probe_again_ns;
	struct op_queue ask_queue; /* requests to be sent */
	struct op_queue asked;	   /* requests without an answer */
	uint32_t next_tag;
	struct vb_remote_mr *releases; /* to be sent */
	struct flight flights[FLIGHTS];
	struct free_list free_flights;
	struct op_queue post_queue; /* one-sided operations to be posted */

	/* receiving */
	struct op_queue receive_queue;
	struct arrived_piece *inbox; /* a ring of as many places as slots */
	uint32_t inbox_first, inbox_count;
	uint32_t let_go, let_go_said; /* DATA, modulo 2^32 */
	bool in_message, discarding;
	uint64_t in_total_bytes, in_next_bytes;
	struct message *deferred; /* a ring: requests that wait for room for their answer */
	uint32_t deferred_first, deferred_count;

	/* regions */
	struct grant *grants;
	uint32_t grant_count;
	uint64_t granted_bytes;
	uint64_t next_id;
	struct arrivals locals, remotes;
};

static inline void *arrivals_pop(struct arrivals *arrivals)
{
	void *region = arrivals->regions[arrivals->first];

	arrivals->first = (arrivals->first + 1) % ARRIVED_MAX;
	arrivals->count--;
	return region;
}

struct vb_rdma_listener {
	struct vb_rdma_agent *agent;
	struct vb_rdma_listener *next;
	void *listener;
	struct op_queue accepts;
	struct vb_rdma *ready;
};

struct vb_rdma_agent {
	struct vb_rdma_options options;
	struct vb_device *device;
	struct ibv_pd *pd;
	struct vb_cq *cq;
	uint32_t stride_bytes;	      /* from a message buffer to the next */
	struct vb_sim *virtual_clock; /* NULL on the real clock */
	uint64_t told;		      /* vb_sim_told() before the last look at the lines */

	bool threaded, stopping;
	pthread_t thread;
	pthread_mutex_t lock;
	int cancel_state; /* of the thread that has the lock; -1: the process has one thread */
	pthread_cond_t ended;
	int epoll_fd, wake_fd;

	struct handle_table ops;	 /* struct op */
	struct handle_table connections; /* struct handle_owner */
	struct op_queue callbacks;
	struct vb_rdma *shaking; /* connections that have a line */
	struct vb_rdma_listener *listeners;
	uint32_t drives;
	struct pool pool;
	uint32_t locals, remotes; /* regions with references */
	uint64_t soonest_ns;	  /* when a lease or a handshake ends; VB_FOREVER: never */
};

/* A thread that has the lock is not cancelled, except in a wait, which gives the lock back. This also
 * holds for an agent without a thread, which has no mutex. */
static inline void agent_lock(struct vb_rdma_agent *agent)
{
	int state = -1;

	if (!__libc_single_threaded)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (agent->threaded)
		pthread_mutex_lock(&agent->lock);
	agent->cancel_state = state;
}

static inline void agent_unlock(struct vb_rdma_agent *agent)
{
	int state = agent->cancel_state;

	if (agent->threaded)
		pthread_mutex_unlock(&agent->lock);
	if (state >= 0)
		pthread_setcancelstate(state, NULL);
}

static inline uint64_t agent_now_ns(const struct vb_rdma_agent *agent)
{
	return cq_now_ns(agent->cq);
}

/* The agent looks at its leases and handshakes at this time or earlier. */
static inline void agent_remind(struct vb_rdma_agent *agent, uint64_t at_ns)
{
	if (at_ns < agent->soonest_ns)
		agent->soonest_ns = at_ns;
}

/* Something moved on a line: on a virtual clock, the waiting agents look again. */
static inline void agent_tell(const struct vb_rdma_agent *agent)
{
	if (agent->virtual_clock)
		vb_sim_tell(agent->virtual_clock);
}

/* wake.c: what ends the agent's sleep on the real clock */
int agent_make_waiting(struct vb_rdma_agent *agent);
void agent_wake(struct vb_rdma_agent *agent);
/* The agent wakes when the descriptor (-1: none) is ready; changes: it is watched already. */
void agent_watch(struct vb_rdma_agent *agent, int fd, bool writable, bool changes);
/* Wakes the threads that wait for the agent's thread. */
void agent_notify(struct vb_rdma_agent *agent);
/* pthread_cleanup_push(agent_relock, agent) before a part that runs without the lock, and
 * pthread_cleanup_pop(true) after it: cleanup handlers find the agent locked. */
void agent_relock(void *agent);
/* The last cleanup handler of a wait: unlocks. */
void agent_leave(void *agent);
/* Waits for a notification. 0 or ETIMEDOUT. A cancelled thread leaves with the lock. */
int agent_wait_for_thread(struct vb_rdma_agent *agent, uint64_t deadline_ns);
/* Sleeps without the lock until there is something to look at. */
void agent_sleep(struct vb_rdma_agent *agent, uint64_t left_ns);

/* pool.c: local regions */
struct vb_local_mr *pool_alloc(struct vb_rdma_agent *agent, size_t length_bytes,
			       size_t align_bytes);
/* Drops a reference; ignores NULL. */
void local_put(struct vb_local_mr *mr);
void pool_close(struct pool *pool);

/* remote.c: remote regions */
struct vb_remote_mr *remote_new(struct vb_rdma *rdma, const struct region_record *record,
				uint64_t began_ns, bool requested);
/* Drops a reference; ignores NULL. After the last one, the next pump of the connection sends a release. */
void remote_put(struct vb_remote_mr *mr);
/* The connection of the region; NULL if it has gone. */
struct vb_rdma *remote_connection(const struct vb_remote_mr *mr);
/* Returns 0 if the region belongs to the connection, which works, and its lease has not ended, else
 * ESTALE. */
int remote_check(const struct vb_remote_mr *mr, const struct vb_rdma *rdma);
/* The end of a lease that began at began_ns; 0 is no lease. */
uint64_t lease_ends_ns(uint64_t began_ns, uint64_t lease_ns);

/* op.c: the table of operations */
void op_push(struct op_queue *queue, struct op *op);
/* Removes the operation from the queue that it waits in, if any. */
void op_leave(struct op *op);
/* Takes an operation for the request. Returns NULL if all are taken. */
struct op *op_begin(struct vb_rdma_agent *agent, const struct vb_rdma_request *request);
void op_free(struct op *op);
/* Ends an operation, which leaves its queue and drops the regions that it holds. Its sentence is its
 * own, else the connection's, else the errno's. */
void op_end(struct op *op, int err);
/* Takes and drops references of the regions that the request names. */
void op_hold(struct op *op);
void op_unhold(struct op *op);
/* Drops the regions in a result that nobody will take. */
void op_drop_result(struct op *op);
void ops_deliver(struct vb_rdma_agent *agent);

/* grant.c: keys for the peer */
/* Makes a key for a local region, whose reference passes to the grant. 0 or errno. */
int grant_new(struct vb_rdma *rdma, struct vb_local_mr *local, uint32_t access,
	      struct grant **made);
/* Ends the grant at the link; ignores NULL. */
void grant_end(struct vb_rdma *rdma, struct grant **link);
/* The link to the grant with the id; NULL if there is none. */
struct grant **grant_find(struct vb_rdma *rdma, uint64_t id);
void grant_lease(struct vb_rdma *rdma, struct grant *grant, uint64_t lease_ns);
struct region_record grant_record(const struct grant *grant, uint32_t access, uint64_t lease_ns);
void grants_expire(struct vb_rdma *rdma, uint64_t now_ns);

/* post.c: works, and how a connection fails */
uint8_t *buffer_at(const struct vb_rdma *rdma, uint32_t index);
uint64_t *old_value_at(const struct vb_rdma *rdma, uint32_t flight);
void receive_post(struct vb_rdma *rdma, uint32_t buffer);
bool connection_can_say(const struct vb_rdma *rdma);
bool connection_is_sending(const struct vb_rdma *rdma);
/* Sends a message; op is the operation of DATA, else NULL. */
void connection_say(struct vb_rdma *rdma, struct message *message, struct op *op);
/* Sends a message that has no more than a code. */
void connection_note(struct vb_rdma *rdma, enum message_type type, enum message_code code);
/* Posts a one-sided operation. */
void connection_fly(struct vb_rdma *rdma, struct op *op);
void flight_drop(struct flight *flight);
void connection_fail(struct vb_rdma *rdma, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Ends all operations with err and drops what the peer has; the QP goes to ERR, at_once or when all
 * sends have ended. */
void connection_fail_with(struct vb_rdma *rdma, int err, const char *why, bool at_once);
void connection_to_error(struct vb_rdma *rdma);
/* Fails a connection whose peer broke the protocol. */
void connection_accuse(struct vb_rdma *rdma, const char *what);
/* Asks a peer that has not answered in time for a sign of life. */
void connection_probe(struct vb_rdma *rdma);

/* transfer.c: messages of the program, and one-sided operations */
void transfer_pump(struct vb_rdma *rdma);
void transfer_sent(struct op *op);
void transfer_arrived(struct vb_rdma *rdma, const struct message *message, uint32_t buffer);
int transfer_start(struct op *op);
void transfer_cancel(struct op *op);

/* memory.c: requests for regions, and their answers */
void memory_pump(struct vb_rdma *rdma);
/* Takes an answer, a release, or a request whose answer connection_can_say(). */
void memory_heard(struct vb_rdma *rdma, const struct message *message);
int memory_start(struct op *op);
void memory_cancel(struct op *op);

/* connection.c */
int connection_new(struct vb_rdma_agent *agent, struct vb_rdma **rdma);
int connection_prepare(struct vb_rdma *rdma);
/* Connects the QP after the peer's greeting. Receives are posted before anything can arrive. */
int connection_join(struct vb_rdma *rdma);
void connection_drop(struct vb_rdma *rdma);
void connection_completion(struct vb_rdma_agent *agent, const struct ibv_wc *wc);
/* Sends all that can be sent. */
void connection_pump(struct vb_rdma *rdma);

/* greet.c: listening and connecting */
void greet_step(struct vb_rdma_agent *agent);
/* Opens the line of a CONNECT, without the agent's lock: a name may take long. 0 or errno. */
int greet_open_line(const struct vb_rdma_request *request, void **line);
void line_close(struct vb_rdma_agent *agent, void *line);
int greet_start(struct op *op);
void greet_cancel(struct op *op);

/* drive.c */
/* Does what there is to do, or waits until deadline_ns; unlocks while it waits. A deadline of 0
 * looks once. 0, ETIMEDOUT, EDEADLK, EIO. */
int agent_drive(struct vb_rdma_agent *agent, uint64_t deadline_ns);
/* The same, or waits for the agent's thread. */
int agent_wait(struct vb_rdma_agent *agent, uint64_t deadline_ns);

/* start.c: operations from their start to their result */
/* Starts an operation, waits, and cancels it when time is over. The objects in the result are NULL
 * after an error. */
struct vb_rdma_result op_run(const struct vb_rdma_request *request, uint64_t timeout_ns);

#endif /* SRC_CONNECT_RDMA_AGENT_H */
