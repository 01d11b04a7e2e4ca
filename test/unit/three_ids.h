/* SPDX-License-Identifier: MIT */
/* The identifiers of a connection within a process: a listener, its request (the server), and a client. */
#ifndef TEST_UNIT_THREE_IDS_H
#define TEST_UNIT_THREE_IDS_H

#include "unity.h"

#include <arpa/inet.h>
#include <verbena/cm.h>

#define PORT 7471

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener, *server, *client;

static inline struct sockaddr *address(const char *text)
{
	static struct sockaddr_in at;

	at = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
	TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET, text, &at.sin_addr));
	return (struct sockaddr *)&at;
}

static inline void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = id->qp_type,
	};

	TEST_ASSERT_EQUAL_INT(0, vb_cm_create_qp(id, NULL, &attr));
}

/* Ends an identifier, if there is one, and its QP. */
static inline void end_id(struct rdma_cm_id **id)
{
	if (*id && (*id)->qp)
		vb_cm_destroy_qp(*id);
	if (*id)
		TEST_ASSERT_EQUAL_INT(0, vb_cm_destroy_id(*id));
	*id = NULL;
}

/* Ends the identifiers and the channel. */
static inline void end_ids(void)
{
	end_id(&server);
	end_id(&client);
	end_id(&listener);
	if (channel)
		vb_cm_destroy_event_channel(channel);
	channel = NULL;
}

#endif
