/* SPDX-License-Identifier: MIT */
/*
 * What the files of src/rdma share: the agent, its operations, connections and regions. All of it
 * is used under the agent's lock.
 */
#ifndef SRC_CONNECT_RDMA_AGENT_H
#define SRC_CONNECT_RDMA_AGENT_H

#include "src/connect/rdma/message.h"

#include <pthread.h>

/* Receives beside the slots: see docs/agent-messages.md. */
#define CONTROL_RECEIVES 16
/* Requests without an answer. */
#define REQUESTS_MAX 8
/* Messages that are being sent; the last ones are kept for control messages. */
#define SENDS	      24
#define CONTROL_SENDS 8
/* One-sided operations of a connection that the device has. */
#define FLIGHTS 32
/* Regions that the peer handed over and nobody has taken. */
#define ARRIVED_MAX 64
/* Keys that a peer may hold at once. */
#define GRANTS_MAX 4096
#define WHY_BYTES  256

/* --- operations --- */

enum op_state { OP_FREE, OP_BUSY, OP_ENDED };

struct op {
	struct vb_rdma_request request;
	struct vb_rdma_result result;
	struct vb_rdma *rdma; /* NULL: of none (yet) */
	void *line;	      /* of CONNECT, until a connection has it */
	struct op *next;
	enum op_state state;
	bool abandoned; /* nobody has the handle; something still refers to it */
	bool all_posted;
	uint32_t generation;
	uint32_t in_flight;
	uint32_t tag;
	uint64_t moved_bytes;
	uint64_t began_ns;   /* of a lease */
	char why[WHY_BYTES]; /* "": by the errno alone */
};

struct op_queue {
	struct op *first, *last;
};

void op_push(struct op_queue *queue, struct op *op);
struct op *op_pop(struct op_queue *queue);
bool op_remove(struct op_queue *queue, const struct op *op);

/* --- the pool --- */

struct extent {
	struct extent *next;
	size_t offset_bytes;
	size_t length_bytes;
};

struct piece {
	struct piece *next;
	struct vb_region *region;
	struct extent *free; /* by offset; no two touch */
	size_t used_bytes;
};

struct pool {
	struct piece *pieces;
	size_t piece_bytes;
};

struct vb_local_mr {
	struct vb_rdma_agent *agent;
	struct piece *piece;
	size_t offset_bytes;
	size_t taken_bytes; /* of the pool */
	size_t length_bytes;
	uint8_t *addr;
	uint32_t lkey;
	uint32_t references;
};

struct vb_local_mr *pool_alloc(struct vb_rdma_agent *agent, size_t length_bytes,
			       size_t align_bytes);
void local_put(struct vb_local_mr *mr);
void pool_close(struct pool *pool);

/* --- regions of peers, and for peers --- */

struct vb_remote_mr {
	struct vb_rdma_agent *agent;
	struct vb_rdma *rdma; /* NULL: its connection is gone */
	struct vb_remote_mr *next, *prev;
	struct region_record record;
	uint64_t ends_ns;
	bool requested;
	uint32_t references;
};

/* A key that the peer has for memory here. */
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

/* A piece of a message that waits to be received. */
struct arrived_piece {
	uint32_t buffer;
	uint32_t flags;
	uint32_t imm;
	uint32_t piece_bytes;
	uint64_t total_bytes;
	uint64_t offset_bytes;
};

struct send_slot {
	struct op *op; /* of DATA */
};

struct flight {
	struct op *op; /* NULL: abandoned */
	struct vb_local_mr *local;
	struct vb_remote_mr *remote;
};

struct vb_rdma {
	struct vb_rdma_agent *agent;
	struct vb_rdma_listener *listener; /* until it is given out */
	struct vb_rdma *next;		   /* in the list of those that shake hands, or are ready */
	uint32_t index;
	uint16_t generation;
	int err;
	char why[WHY_BYTES];
	bool closing;
	bool dying; /* to ERR once what is sent is sent */

	/* the line */
	void *line;
	int line_fd;
	enum stage stage;
	size_t line_bytes;
	uint64_t line_ends_ns;
	struct op *connecting;
	uint8_t line_buffer[GREETING_BYTES];

	/* the QP and its buffers: receives, then sends, then the old values of atomics */
	struct vb_prepared_qp *prepared;
	struct ibv_qp *qp;
	struct vb_local_mr *buffers;
	struct greeting peer;
	uint32_t receives;

	/* sending */
	struct send_slot sends[SENDS];
	uint32_t sends_free[SENDS];
	uint32_t sends_free_count;
	struct op_queue data_queue;
	uint32_t sent, peer_let_go; /* DATA, modulo 2^32 */
	uint64_t probe_again_ns;
	struct op_queue ask_queue; /* to be asked */
	struct op_queue asked;	   /* to be answered */
	uint32_t asked_count;
	uint32_t next_tag;
	struct vb_remote_mr *releases;
	struct flight flights[FLIGHTS];
	uint32_t flights_free[FLIGHTS];
	uint32_t flights_free_count;
	struct op_queue post_queue;

	/* receiving */
	struct op_queue receive_queue;
	struct arrived_piece *inbox; /* a ring of the slots */
	uint32_t inbox_first, inbox_count;
	uint32_t let_go, let_go_told;
	bool in_message, discarding;
	uint64_t in_total_bytes, in_next_bytes;
	struct message *deferred; /* a ring: requests for whose answer there is no room */
	uint32_t deferred_buffers[REQUESTS_MAX];
	uint32_t deferred_first, deferred_count;

	/* regions */
	struct grant *grants;
	uint32_t grant_count;
	uint64_t granted_bytes;
	uint64_t next_id;
	struct vb_remote_mr *remotes;
	struct vb_local_mr *arrived_locals[ARRIVED_MAX];
	uint32_t arrived_local_first, arrived_local_count;
	struct vb_remote_mr *arrived_remotes[ARRIVED_MAX];
	uint32_t arrived_remote_first, arrived_remote_count;
	struct op_queue local_queue, remote_queue;
};

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
	struct vb_sim *virtual_clock; /* the world that has it, or NULL */

	bool threaded, stopping;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t ended;
	int epoll_fd, wake_fd;

	struct op *ops;
	struct op *free_ops;
	struct op_queue callbacks;
	struct vb_rdma **connections;
	uint16_t *generations;
	uint32_t connection_count;
	struct vb_rdma *shaking; /* connections that have a line */
	struct vb_rdma_listener *listeners;
	uint32_t drives;
	uint32_t accepts; /* operations that wait for a listener */
	struct pool pool;
	uint32_t locals, remotes; /* live regions */
	uint64_t soonest_ns;	  /* when a lease or a handshake ends; VB_FOREVER: never */
};

static inline void agent_lock(struct vb_rdma_agent *agent)
{
	if (agent->threaded)
		pthread_mutex_lock(&agent->lock);
}

static inline void agent_unlock(struct vb_rdma_agent *agent)
{
	if (agent->threaded)
		pthread_mutex_unlock(&agent->lock);
}

/* agent.c */
uint64_t agent_now_ns(const struct vb_rdma_agent *agent);
void agent_remind(struct vb_rdma_agent *agent, uint64_t at_ns);
/* Drives it, or waits at most until then; unlocks while it waits. 0, ETIMEDOUT, EDEADLK, EIO. */
int agent_wait(struct vb_rdma_agent *agent, uint64_t deadline_ns);
void agent_wake(struct vb_rdma_agent *agent);
/* Something moved on a line: on a virtual clock, who waits for it looks again. */
void agent_tell(const struct vb_rdma_agent *agent);
void agent_watch(struct vb_rdma_agent *agent, int fd, bool writable, bool known);

/* op.c */
/* A new one, whose request is not set but for these; NULL with errno. */
struct op *op_begin(struct vb_rdma_agent *agent, enum vb_rdma_operation operation,
		    struct vb_rdma *rdma);
void op_free(struct vb_rdma_agent *agent, struct op *op);
/* It ends. With an error, the sentence is that of the connection, if it has one. */
void op_end(struct vb_rdma_agent *agent, struct op *op, int err);
/* Starts, waits, and cancels where time is over. */
int op_run(struct vb_rdma_agent *agent, struct op *op, uint64_t timeout_ns,
	   struct vb_rdma_result *result);
int op_run_request(const struct vb_rdma_request *request, uint64_t timeout_ns,
		   struct vb_rdma_result *result);
int ops_wait_for_thread(struct vb_rdma_agent *agent, uint64_t deadline_ns);
void ops_deliver(struct vb_rdma_agent *agent);
int ops_make(struct vb_rdma_agent *agent);

/* connection.c */
int connection_new(struct vb_rdma_agent *agent, struct vb_rdma **rdma);
int connection_prepare(struct vb_rdma *rdma);
int connection_join(struct vb_rdma *rdma);
void connection_drop(struct vb_rdma *rdma);
void connection_fail(struct vb_rdma *rdma, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The peer sent what it must not. */
void connection_accuse(struct vb_rdma *rdma, const char *what);
void connection_completion(struct vb_rdma_agent *agent, const struct ibv_wc *wc);
/* Sends what can be sent. */
void connection_pump(struct vb_rdma *rdma);
/* The peer has not answered in time: is it there? */
void connection_probe(struct vb_rdma *rdma);
bool connection_can_say(const struct vb_rdma *rdma);
void connection_say(struct vb_rdma *rdma, struct message *message, struct op *op);
uint32_t connection_message_bytes(const struct vb_rdma *rdma);

/* transfer.c */
void transfer_pump(struct vb_rdma *rdma);
void transfer_sent(struct vb_rdma *rdma, struct send_slot *slot);
void transfer_arrived(struct vb_rdma *rdma, const struct message *message, uint32_t buffer);
void transfer_deliver(struct vb_rdma *rdma);
/* A one-sided operation that will not be posted. */
void transfer_land(struct op *op);
int transfer_start(struct op *op);
void transfer_cancel(struct op *op);
void receive_post(struct vb_rdma *rdma, uint32_t buffer);

/* memory.c */
void memory_pump(struct vb_rdma *rdma);
/* An answer or a release, or a request to which connection_can_say() an answer. */
void memory_heard(struct vb_rdma *rdma, const struct message *message);
void memory_deliver(struct vb_rdma *rdma);
int memory_start(struct op *op);
void memory_cancel(struct op *op);
void memory_drop(struct vb_rdma *rdma);
void memory_unask(struct vb_rdma *rdma);
void memory_expire(struct vb_rdma *rdma, uint64_t now_ns);
void remote_put(struct vb_remote_mr *mr);

/* greet.c: listening and connecting */
void line_close(struct vb_rdma_agent *agent, void *line);
void greet_step(struct vb_rdma_agent *agent);
/* Opens the line of a CONNECT, without the agent's lock: names may take long. 0 or errno. */
int greet_open_line(const struct vb_rdma_request *request, void **line);
int greet_start(struct op *op);
void greet_cancel(struct op *op);

#endif /* SRC_CONNECT_RDMA_AGENT_H */
