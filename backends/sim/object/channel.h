/* SPDX-License-Identifier: MIT */
/*
 * Events and the descriptors that announce them: a queue behind an eventfd that counts it.
 */
#ifndef BACKENDS_SIM_OBJECT_CHANNEL_H
#define BACKENDS_SIM_OBJECT_CHANNEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct sim_cq;
struct sim_device;
struct sim_event;
struct vb_sim;

struct queued_event {
	void *object;		  /* NULL for a port's or a device's */
	enum ibv_event_type type; /* of an asynchronous one */
	int port_num;
};

struct event_queue {
	int fd;
	uint32_t head;
	uint32_t count;
	uint32_t capacity;
	struct queued_event *ring;
};

/* Opens the descriptor. 0 or errno. */
int event_queue_init(struct event_queue *queue);
void event_queue_end(struct event_queue *queue);

/* Forgets the unread events of an object. */
void event_queue_forget(struct event_queue *queue, const void *object);

/* What the engine calls; arg is the world. */
void channel_cq_event(void *arg, struct sim_cq *cq);
void channel_async_event(void *arg, struct sim_device *device, const struct sim_event *event);

/* The verbs. */
struct ibv_comp_channel *channel_create(struct ibv_context *context);
int channel_destroy(struct ibv_comp_channel *channel);
int channel_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void channel_ack_cq_events(struct ibv_cq *cq, unsigned int nevents);
int channel_get_async_event(struct ibv_context *context, struct ibv_async_event *event);
void channel_ack_async_event(struct ibv_async_event *event);

#endif
