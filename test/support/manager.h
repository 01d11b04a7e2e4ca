/* SPDX-License-Identifier: MIT */
/*
 * Connections of the nodes A and B by their connection manager, for the suites cm_*. B listens, and
 * A connects. All objects are ended when the test ends.
 */
#ifndef TEST_SUPPORT_MANAGER_H
#define TEST_SUPPORT_MANAGER_H

#include "test/support/support.h"

#include <verbena/cm.h>

/* An address of a node. */
struct tc_address {
	struct sockaddr_storage storage;
};

/* The address that the node's GID stands for, with a port; "any" is of the same family. */
struct tc_address tc_address(const struct vt_node *node, uint16_t port);
struct tc_address tc_any(const struct vt_node *node, uint16_t port);
struct sockaddr *tc_sockaddr(struct tc_address *address);

/* An event that has been acknowledged, with its private data. */
struct tc_event {
	struct rdma_cm_event event; /* its pointers to private data are not valid */
	uint8_t data[256];
	uint8_t data_bytes;
};

/* Skip the test if the backend has no connection manager. The first one is for identifiers of A and B; the test is
 * skipped if B is in another process. The second one is for identifiers of a node, in its process. */
struct rdma_event_channel *tc_channel(struct vt *t);
struct rdma_event_channel *tc_channel_of(struct vt *t, const struct vt_node *node);
struct rdma_cm_id *tc_id(struct vt *t, struct rdma_event_channel *channel, enum rdma_port_space ps);
/* Keeps an identifier that the test has got. */
void tc_keep(struct vt *t, struct rdma_cm_id *id);
/* Ends an identifier before the test ends. Its QP is ended first. */
void tc_end(struct vt *t, struct rdma_cm_id *id);
/* Makes a QP with CQs and channels of the identifier, for 8 requests of each kind. */
void tc_qp(struct vt *t, struct rdma_cm_id *id);

/* Returns true if the channel has an event, after a wait of up to three seconds. */
bool tc_has_event(struct vt *t, struct rdma_event_channel *channel);
/* Waits for the next event, and acknowledges it. id NULL: of any identifier. */
struct tc_event tc_expect_at(struct vt *t, struct vt_at at, struct rdma_event_channel *channel,
			     struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);
#define tc_expect(t, channel, id, type)		tc_expect_at(t, VT_HERE, channel, id, type, 0)
#define tc_failed(t, channel, id, type, status) tc_expect_at(t, VT_HERE, channel, id, type, status)

/* B's listener, and A's identifier with a route to the listener, each with a channel of its own. */
struct tc_pair {
	struct vt *t;
	struct rdma_event_channel *a_channel, *b_channel;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *a;
	struct rdma_cm_id *b; /* of the request, after tc_request() */
	uint16_t port;
};

struct tc_pair *tc_pair(struct vt *t, enum rdma_port_space ps);
/* Another identifier of A with a route to the listener. */
struct rdma_cm_id *tc_another(struct tc_pair *pair);
/* Resolves the address and the route of an identifier. */
void tc_route(struct tc_pair *pair, struct rdma_cm_id *id);

/* Parameters of a connection with `bytes` bytes of private data. */
struct rdma_conn_param tc_param(const uint8_t *data, uint8_t bytes);

/* A QP of the program with the identifier's device, which the identifier does not know. */
struct ibv_qp *tc_own_qp(struct vt *t, struct rdma_cm_id *id);

/* A asks; B takes the request. */
struct tc_event tc_request(struct tc_pair *pair, struct rdma_conn_param *param);
/* A sends a request while B has no listener, and gets an event of this type and status. */
void tc_unserved(struct vt *t, enum rdma_port_space space, enum rdma_cm_event_type type,
		 int status);
/* The same with a new QP of A and the parameters of tc_param(). */
void tc_ask(struct tc_pair *pair);
/* Each side's next event is of this type. */
void tc_expect_both(struct tc_pair *pair, enum rdma_cm_event_type type);
/* B accepts with a new QP and the parameters of tc_param(), and both sides take their events. */
void tc_establish(struct tc_pair *pair);
/* A pair of the port space TCP that is connected, each with a QP. */
struct tc_pair *tc_connected(struct vt *t);
/* A message from one QP to the other, and its bytes. */
void tc_send(struct vt *t, struct rdma_cm_id *from, struct rdma_cm_id *to);

#endif
