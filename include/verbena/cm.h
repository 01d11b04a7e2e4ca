/* SPDX-License-Identifier: MIT */
/*
 * Connections, on the backend of their object.
 *
 * vb_cm_<name>() has the arguments, the structures and the error convention of rdma_<name>() of
 * librdmacm, and finds the backend by its identifier, its event channel, its event or its list. A
 * function without such an object takes the backend's name, as vb_find_backend() does
 * (<verbena/verbs.h>): NULL or "" stands for the backend that VERBENA_BACKEND names, or "sim". A
 * program may use identifiers of several backends at the same time, but not in one call.
 *
 * The backend "sim" connects simulated devices, with the messages of the InfiniBand connection
 * manager on their QP 1. The backend "ibverbs" is the real librdmacm, for real devices.
 *
 * Inline functions of <rdma/rdma_cma.h> that read members, as rdma_get_local_addr(), work on every
 * backend. Those of <rdma/rdma_verbs.h> call libibverbs; vb_*() of <verbena/verbs.h> takes
 * id->verbs, id->pd, id->qp, id->send_cq and their like.
 *
 * Identifiers of two kinds. One that was made with an event channel is asynchronous: calls that
 * wait for the network return at once, and an event says later what became of them. One that was
 * made without (@channel NULL, vb_cm_create_ep(), vb_cm_get_request()) is synchronous: these calls
 * return when the event has come, which is then id->event until the identifier's next call; they
 * fail with the event's status, or with ECONNREFUSED if the peer has rejected.
 *
 * Ownership. An object lives until the caller ends it with the function that the comment of its
 * maker names. End the QP and the SRQ of an identifier before the identifier, and the identifiers
 * of a channel before the channel. A structure passed by pointer is read or filled before the call
 * returns, and is not kept. id->verbs and id->pd, as a backend has set them, belong to the backend:
 * do not end them.
 *
 * Threads. Any thread may call any function, also on the same object at the same time. While a
 * thread ends an object, no other thread may use it, except that it may acknowledge events.
 *
 * Sources. The comment of a function sums up its man page, rdma_<name>(3), or names another source.
 *
 * Errors. All functions but three return 0 or -1, and set errno then; those that return a pointer
 * return NULL instead. errno values are those of librdmacm and of the kernel (Linux
 * drivers/infiniband/core/cma.c); the comments name a few. Besides, every function answers EINVAL
 * for a NULL object and for one that no vb_cm_*() has made or that has been ended, EOPNOTSUPP if
 * the backend does not have the function, and ENOSYS if the backend cannot work on this machine.
 * After RDMA_CM_EVENT_DEVICE_REMOVAL, calls of the identifier fail with ENXIO; it can be ended
 * still. A function that fails changes nothing, except where its comment says so, and leaves a
 * sentence for vb_last_error() (<verbena/error.h>). A function that succeeds may change errno.
 */
#ifndef VERBENA_CM_H
#define VERBENA_CM_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stddef.h>
#include <stdint.h>
#include <verbena/cm_backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- event channels and events --- */

/*
 * Makes an event channel of the backend @backend. channel->fd is a descriptor that is readable
 * while an event waits, for poll(2) and epoll(7); with O_NONBLOCK, vb_cm_get_cm_event() does not
 * wait. End the channel with vb_cm_destroy_event_channel(). Errors: NULL with errno EINVAL (there
 * is no such backend), ENOSYS, EMFILE, ENODEV (there are no devices).
 */
struct rdma_event_channel *vb_cm_create_event_channel(const char *backend);

/* Ends a channel. All its identifiers have been ended or migrated, and its events acknowledged. */
void vb_cm_destroy_event_channel(struct rdma_event_channel *channel);

/*
 * Takes the oldest event of the channel, and waits for one unless channel->fd has O_NONBLOCK. The
 * event, with the private data that it points to, belongs to the caller until vb_cm_ack_cm_event().
 * The identifier of an event RDMA_CM_EVENT_CONNECT_REQUEST is new; end it with vb_cm_destroy_id().
 * Before it returns it does for the QP of the identifier what the event asks for: INIT to RTS for a
 * connection that has been made, ERR for one that was rejected; it attaches the QP to a multicast
 * group that was joined. Errors: EAGAIN (no event waits, and the descriptor has O_NONBLOCK),
 * EDEADLK (on a virtual clock: no event can come any more).
 */
int vb_cm_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);

/* Gives an event back. Each event is acknowledged once: vb_cm_destroy_id() waits for that. */
int vb_cm_ack_cm_event(struct rdma_cm_event *event);

/*
 * Returns the name of an event, a constant string: "RDMA_CM_EVENT_ESTABLISHED", or "UNKNOWN EVENT".
 */
const char *vb_cm_event_str(enum rdma_cm_event_type event);

/* --- identifiers --- */

/*
 * Makes an identifier of the port space @ps: RDMA_PS_TCP for connections, RDMA_PS_UDP and
 * RDMA_PS_IPOIB for datagrams, RDMA_PS_IB for service IDs. @context becomes id->context, and that
 * of the identifiers of its connection requests. The backend is that of @channel, and @backend is
 * not looked at; without a channel, the backend is @backend, and the identifier is synchronous. End
 * it with vb_cm_destroy_id(). Errors: EINVAL (port space).
 */
int vb_cm_create_id(const char *backend, struct rdma_event_channel *channel, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps);

/*
 * Makes a synchronous identifier of the backend @backend for the addresses of @res, a list that
 * vb_cm_getaddrinfo() has made; only its first member counts. If @res is for the passive side, the
 * identifier is bound to the source address, and @pd and @qp_init_attr serve for the identifiers of
 * vb_cm_get_request(). Otherwise the address and the route to the destination are resolved, and a
 * QP is made if @qp_init_attr is not NULL. End it with vb_cm_destroy_ep().
 */
int vb_cm_create_ep(const char *backend, struct rdma_cm_id **id, struct rdma_addrinfo *res,
		    struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr);

/*
 * Ends an identifier, and what it was waiting for. Its QP has been ended. Waits until all events
 * that were taken for it have been acknowledged.
 */
int vb_cm_destroy_id(struct rdma_cm_id *id);

/* Ends a synchronous identifier with its QP, its SRQ and the CQs that were made for them. */
void vb_cm_destroy_ep(struct rdma_cm_id *id);

/*
 * Moves an identifier, with its waiting events, to @channel, which is of the same backend. Without
 * a channel the identifier becomes synchronous. Waits until the events that were taken have been
 * acknowledged. Errors: EINVAL (it is synchronous already, or the channel is another backend's).
 */
int vb_cm_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel);

/*
 * Sets an option: RDMA_OPTION_ID with RDMA_OPTION_ID_TOS, RDMA_OPTION_ID_REUSEADDR,
 * RDMA_OPTION_ID_AFONLY or RDMA_OPTION_ID_ACK_TIMEOUT; RDMA_OPTION_IB with RDMA_OPTION_IB_PATH.
 * Errors: ENOSYS (another level or option), EINVAL (the length, the value, or a state in which it
 * is too late).
 */
int vb_cm_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen);

/* --- addresses, routes and devices --- */

/*
 * Binds an identifier to an address of this machine and to a port; port 0 stands for a free one.
 * With a specific address, the identifier belongs to the address's device from now on, and
 * id->verbs and id->port_num are set. Errors: EINVAL (the identifier is bound, or the address is of
 * another family than AF_INET, AF_INET6 and AF_IB), EADDRINUSE, EADDRNOTAVAIL
 * (this machine does not have the address; or the port is used, and one of the two addresses is a
 * wildcard), ENODEV (no device has the address), EACCES (a port below 1024 without
 * CAP_NET_BIND_SERVICE).
 */
int vb_cm_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr);

/*
 * Finds the device that leads to @dst_addr and binds the identifier to it, or to @src_addr, which
 * may be NULL. The event is RDMA_CM_EVENT_ADDR_RESOLVED, or RDMA_CM_EVENT_ADDR_ERROR with a
 * negative errno value as status (-ETIMEDOUT after @timeout_ms milliseconds; -ENODEV). Errors:
 * EINVAL (state, address family), and those of vb_cm_bind_addr().
 */
int vb_cm_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
		       int timeout_ms);

/*
 * Finds the route to the destination. The event is RDMA_CM_EVENT_ROUTE_RESOLVED, or
 * RDMA_CM_EVENT_ROUTE_ERROR. Errors: EINVAL (the address has not been resolved).
 */
int vb_cm_resolve_route(struct rdma_cm_id *id, int timeout_ms);

/*
 * Finds the addresses of a host and a service for connections of the backend @backend, as
 * getaddrinfo(3) does. @hints may be NULL; with RAI_PASSIVE they ask for an address to listen at.
 * With RAI_FAMILY, RAI_NUMERICHOST and AF_IB, an IPv6 number becomes a struct sockaddr_ib.
 * Sets *@res to a list that vb_cm_freeaddrinfo() frees. Returns 0, -1 with errno, or another value
 * that is not 0, for gai_strerror(3).
 */
int vb_cm_getaddrinfo(const char *backend, const char *node, const char *service,
		      const struct rdma_addrinfo *hints, struct rdma_addrinfo **res);
void vb_cm_freeaddrinfo(struct rdma_addrinfo *res);

/*
 * Returns the open contexts of all devices of the backend @backend, with NULL at the end, and sets
 * *@num_devices, unless it is NULL, to their number. The contexts belong to the backend; they are
 * open at least until vb_cm_free_devices(), which frees the array. Errors: NULL with errno ENODEV,
 * ENOSYS, ENOMEM.
 */
struct ibv_context **vb_cm_get_devices(const char *backend, int *num_devices);
void vb_cm_free_devices(struct ibv_context **list);

/* Return the port of the identifier's source or destination address; 0 without one. */
__be16 vb_cm_get_src_port(struct rdma_cm_id *id);
__be16 vb_cm_get_dst_port(struct rdma_cm_id *id);

/* --- queue pairs and shared receive queues of an identifier --- */

/*
 * Make a QP in id->qp, and set *@qp_init_attr to what it can hold. The identifier belongs to a
 * device. Without a PD the QP has id->pd, one that the backend keeps for each device. CQs that
 * @qp_init_attr does not name are made with a channel each: id->send_cq, id->recv_cq,
 * id->send_cq_channel, id->recv_cq_channel. A connected QP is then in INIT, and the calls for a
 * connection move it on; a UD QP is in RTS. End it with vb_cm_destroy_qp(). Errors: EINVAL (the
 * identifier has a QP, or no device; the PD is another device's), and those of vb_create_qp().
 */
int vb_cm_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		    struct ibv_qp_init_attr *qp_init_attr);
int vb_cm_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr);

/* Ends id->qp, and the CQs and channels that were made for it. */
void vb_cm_destroy_qp(struct rdma_cm_id *id);

/*
 * Make an SRQ in id->srq, which the QP of the identifier then uses. An XRC SRQ without a CQ or an
 * XRC domain gets those that are made for it. End it with vb_cm_destroy_srq(). The second needs
 * IBV_SRQ_INIT_ATTR_TYPE in comp_mask (EINVAL).
 */
int vb_cm_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int vb_cm_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr);
void vb_cm_destroy_srq(struct rdma_cm_id *id);

/*
 * For a QP that the program has made without the identifier: fills in *@qp_attr for a change of the
 * QP to the state qp_attr->qp_state (INIT, RTR or RTS), and *@qp_attr_mask for vb_modify_qp().
 * Errors: EINVAL (the identifier is not that far).
 */
int vb_cm_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask);

/* --- connections --- */

/*
 * Waits for connection requests to the bound address, or to a free port of all devices. Each request
 * is an event RDMA_CM_EVENT_CONNECT_REQUEST. @backlog is the most requests that wait for
 * vb_cm_get_cm_event() (Linux drivers/infiniband/core/ucma.c, ucma_get_event). Beyond it, a REQ is
 * dropped and counted, and the peer repeats it; a SIDR_REQ is rejected. 0 stands for the backend's
 * default. Errors: EADDRINUSE, EADDRNOTAVAIL (another identifier has the port, also
 * with RDMA_OPTION_ID_REUSEADDR), EINVAL (state).
 */
int vb_cm_listen(struct rdma_cm_id *id, int backlog);

/*
 * For a synchronous listener: waits for a connection request and sets *@id to its identifier, which
 * is synchronous, too, and has a QP if vb_cm_create_ep() got its attributes. The parameters of the
 * request are (*id)->event. End it with vb_cm_destroy_ep(). Errors: EINVAL (the listener is
 * asynchronous), and those of vb_cm_create_qp(): then listen->event->id is the request's identifier,
 * which the caller ends with vb_cm_destroy_id().
 */
int vb_cm_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id);

/*
 * Asks the destination for a connection, or for the QP of its datagram service. The route has been
 * resolved. @conn_param may be NULL for an identifier with a QP. Private data: at most 56 bytes for
 * RDMA_PS_TCP, 180 for RDMA_PS_UDP, 92 for RDMA_PS_IB. The events are RDMA_CM_EVENT_ESTABLISHED;
 * RDMA_CM_EVENT_CONNECT_RESPONSE for an identifier without a QP; RDMA_CM_EVENT_REJECTED with the
 * reason of the REJ message (28: by the program, 8: nobody listens) and its private data;
 * RDMA_CM_EVENT_UNREACHABLE with -ETIMEDOUT, or for datagrams with the status of the SIDR reply;
 * RDMA_CM_EVENT_CONNECT_ERROR. Errors: EINVAL (state, private data, responder_resources or
 * initiator_depth beyond the device's).
 */
int vb_cm_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/*
 * Answers RDMA_CM_EVENT_CONNECT_RESPONSE, once the program's own QP can receive: the peer then has
 * its RDMA_CM_EVENT_ESTABLISHED. Errors: EINVAL (the identifier has a QP of its own, or state).
 */
int vb_cm_establish(struct rdma_cm_id *id);

/*
 * Accepts a connection request, or answers for a datagram service. @conn_param may be NULL for an
 * identifier with a QP: then the values of the request count. Private data: at most 196 bytes for
 * RDMA_PS_TCP, 136 for RDMA_PS_UDP. The event is RDMA_CM_EVENT_ESTABLISHED, or an error; datagram
 * services have none. Errors: EINVAL, as vb_cm_connect(); also if the request has ended. A request
 * whose answer has too much private data is rejected (Linux drivers/infiniband/core/cma.c, rdma_accept).
 */
int vb_cm_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param);

/*
 * Reject a connection request, or a response. The peer has an event RDMA_CM_EVENT_REJECTED with
 * status 28, or with status 35 ("vendor option is not supported") from the second. Private data: at
 * most 148 bytes for RDMA_PS_TCP, 136 for RDMA_PS_UDP. Errors: EINVAL.
 */
int vb_cm_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);
int vb_cm_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len);

/*
 * Tells the identifier of an event of the program's QP that the connection manager cannot see. Only
 * IBV_EVENT_COMM_EST has a meaning: the connection is established before the message that says so
 * has come.
 */
int vb_cm_notify(struct rdma_cm_id *id, enum ibv_event_type event);

/*
 * Ends a connection, and moves the QP of the identifier to ERR. Both sides have an event
 * RDMA_CM_EVENT_DISCONNECTED, and later RDMA_CM_EVENT_TIMEWAIT_EXIT: the QP number may be used
 * again. Both sides should call it. Errors: EINVAL (state).
 */
int vb_cm_disconnect(struct rdma_cm_id *id);

/*
 * For QPs that the program has made: set the ECE (enhanced connection establishment) that the next
 * message carries, and get that of the peer's last message.
 */
int vb_cm_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece);
int vb_cm_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece);

/* --- multicast groups --- */

/*
 * Join the multicast group of an IP address, or of a GID. The event is
 * RDMA_CM_EVENT_MULTICAST_JOIN, whose param.ud says how to send to the group, and whose
 * param.ud.private_data is @context; or RDMA_CM_EVENT_MULTICAST_ERROR. The QP of the identifier, if
 * it has one, is attached to the group when the event is taken, unless the join is for sending
 * only. Errors: EINVAL (no device, address), ENOTSUP (an unknown bit of comp_mask).
 */
int vb_cm_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context);
int vb_cm_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
			    void *context);

/* Leaves a group and detaches the QP. Errors: EADDRNOTAVAIL (it has not joined). */
int vb_cm_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr);

#ifdef __cplusplus
}
#endif

#endif /* VERBENA_CM_H */
