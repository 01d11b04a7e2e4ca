/* SPDX-License-Identifier: MIT */
/* Making and ending connections: listen, connect, accept, reject, disconnect. */
#include "backends/sim/cm/infiniband.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BACKLOG_MAX 1024 /* Linux ucma.c, max_backlog */

/* InfiniBand, 12.6.7.2, as Linux include/rdma/ib_cm.h has the names. */
enum {
	REJ_CONSUMER_DEFINED = 28,
	REJ_VENDOR_OPTION = 35,
};

enum {
	SIDR_SUCCESS = 0,
	SIDR_REJECT = 2,
};

static uint8_t smaller(unsigned int a, unsigned int b)
{
	return (uint8_t)(a < b ? a : b);
}

/* --- listen --- */

/* Starts the identifier's communication. 0, or an errno with a sentence. */
static int start(struct cm_id *id, const char *call)
{
	int err = sim_cm_create(cm_engine(id->cm), id, &id->comm);

	return err ? say_refused(id->cm->world, call, err) : 0;
}

/* Ends a communication that has sent no message. */
static void stop(struct cm_id *id)
{
	sim_cm_destroy(id->comm);
	id->comm = NULL;
}

static int listen_held(struct cm_id *id, int backlog)
{
	static const char call[] = "listen";
	const struct sim_device *device = id->own_address ? id->device->device->engine : NULL;
	int err = start(id, call);

	if (err)
		return err;
	err = sim_cm_listen(id->comm, id->service_id, device, id->service_address);
	if (err) {
		err = say_refused(id->cm->world, call, err);
		stop(id);
		return err;
	}
	id->backlog = backlog > 0 && backlog < BACKLOG_MAX ? (uint32_t)backlog : BACKLOG_MAX;
	id->state = CM_LISTEN;
	return 0;
}

static int check_listen(struct cm_id *id)
{
	HOLD hold = world_hold(id->cm->world);

	return cm_check_state(id, "listen");
}

int cm_listen(struct rdma_cm_id *rdma, int backlog)
{
	struct sockaddr_storage any = {.ss_family = AF_INET};
	struct cm_id *id = cm_id_of(rdma);
	int err = check_listen(id);

	if (err)
		return minus_errno(err);
	if (id->state == CM_IDLE && cm_bind_addr(rdma, (struct sockaddr *)&any))
		return -1;
	HOLD hold = world_hold(id->cm->world);

	err = listen_held(id, backlog);
	return err ? minus_errno(err) : 0;
}

/* --- what connect and accept have in common --- */

/* rdma-core librdmacm/cma.c, ucma_valid_param. */
static int check_param(const struct cm_id *id, const struct rdma_conn_param *param,
		       const char *call)
{
	const struct ibv_device_attr *limits;

	if (!id->rdma.qp && !param)
		return refuse_plainly(call, VB_WHY_CM_NO_QP);
	if (!param || id->rdma.ps != RDMA_PS_TCP || !id->device)
		return 0;
	limits = &id->device->device->engine->profile->limits;
	if (param->responder_resources != RDMA_MAX_RESP_RES &&
	    param->responder_resources > limits->max_qp_rd_atom)
		return refuse_why(call, (struct vb_why){VB_WHY_CM_RESPONDER_RESOURCES,
							{param->responder_resources,
							 (uint64_t)limits->max_qp_rd_atom}});
	if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    param->initiator_depth > limits->max_qp_init_rd_atom)
		return refuse_why(call, (struct vb_why){VB_WHY_CM_INITIATOR_DEPTH,
							{param->initiator_depth,
							 (uint64_t)limits->max_qp_init_rd_atom}});
	return 0;
}

/* The private data of a message, in its order: the IP header, if the message has one; the data that
 * rdma_create_ep(3) was given; the program's data. */
struct letter {
	uint8_t bytes[CM_PRIVATE_BYTES + SIM_CM_IP_BYTES];
	size_t used;
};

static int add(struct letter *letter, const void *bytes, size_t size_bytes, size_t room,
	       const char *message, const char *call)
{
	if (letter->used + size_bytes > room)
		return refuse_why(call, (struct vb_why){VB_WHY_CM_PRIVATE_LONG,
							{size_bytes, room - letter->used},
							.text = message});
	if (size_bytes)
		memcpy(letter->bytes + letter->used, bytes, size_bytes);
	letter->used += size_bytes;
	return 0;
}

static int add_param(struct letter *letter, const struct cm_id *id,
		     const struct rdma_conn_param *param, size_t room, const char *message,
		     const char *call)
{
	int err = add(letter, id->connect, id->connect_bytes, room, message, call);

	if (err || !param || !param->private_data)
		return err;
	return add(letter, param->private_data, param->private_data_len, room, message, call);
}

static void add_header(struct letter *letter, const struct cm_id *id)
{
	const struct sockaddr *source = (const struct sockaddr *)&id->source;
	const union ibv_gid from = cm_address_gid(source);
	const union ibv_gid to = cm_address_gid((const struct sockaddr *)&id->dest);
	struct sim_cm_ip ip = {
		.ipv6 = source->sa_family == AF_INET6,
		.source_port = cm_address_port(source),
	};

	memcpy(ip.source, from.raw, sizeof(ip.source));
	memcpy(ip.dest, to.raw, sizeof(ip.dest));
	sim_cm_ip_write(&ip, letter->bytes);
	letter->used = SIM_CM_IP_BYTES;
}

static struct sim_cm_private private_of(const struct letter *letter)
{
	return (struct sim_cm_private){letter->bytes, letter->used};
}

/* Takes the QPN from the identifier's own QP, or from the program's parameters. */
static void take_qp(struct cm_id *id, const struct rdma_conn_param *param)
{
	if (id->rdma.qp) {
		id->qpn = id->rdma.qp->qp_num;
		id->srq = id->rdma.qp->srq != NULL;
	} else if (param) {
		id->qpn = param->qp_num;
		id->srq = param->srq;
	}
}

static uint64_t dest_service(const struct cm_id *id)
{
	if (cm_is_infiniband(id))
		return cm_ib_dest_service_id(id);
	return sim_cm_service_id((enum sim_cm_port_space)id->rdma.ps,
				 cm_address_port((const struct sockaddr *)&id->dest));
}

/* --- connect --- */

static int send_request(struct cm_id *id, const struct rdma_conn_param *param,
			const struct letter *letter)
{
	const struct sim_cm_request request = {
		.service_id = dest_service(id),
		.path = id->path,
		.qpn = id->qpn,
		.qp_type = id->rdma.qp_type,
		.starting_psn = id->starting_psn,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.remote_response_timeout = CM_RESPONSE_TIMEOUT,
		.local_response_timeout = CM_RESPONSE_TIMEOUT,
		.retry_count = param ? smaller(param->retry_count, 7) : 7,
		.rnr_retry_count = param ? smaller(param->rnr_retry_count, 7) : 7,
		.max_cm_retries = CM_RETRIES,
		.flow_control = param && param->flow_control,
		.srq = id->srq,
		.vendor_id = id->local_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.private_data = private_of(letter),
	};

	return sim_cm_send_req(id->comm, id->device->device->engine, &request);
}

static int send_query(struct cm_id *id, const struct letter *letter)
{
	const struct sim_cm_query query = {
		.service_id = dest_service(id),
		.path = id->path,
		.timeout = CM_RESPONSE_TIMEOUT,
		.max_cm_retries = CM_RETRIES,
		.private_data = private_of(letter),
	};

	return sim_cm_send_sidr_req(id->comm, id->device->device->engine, &query);
}

static int connect_held(struct cm_id *id, const struct rdma_conn_param *param)
{
	static const char call[] = "connect";
	const bool datagram = cm_is_datagram(id);
	struct letter letter = {.used = 0};
	int err = start(id, call);

	if (err)
		return err;
	if (!cm_is_infiniband(id))
		add_header(&letter, id);
	err = add_param(&letter, id, param,
			datagram ? SIM_CM_SIDR_REQ_PRIVATE_BYTES : SIM_CM_REQ_PRIVATE_BYTES,
			datagram ? "SIDR_REQ" : "REQ", call);
	/* Linux cma.c, cma_format_hdr: the first byte is the version of the IP header, even without the header. */
	if (cm_is_infiniband(id))
		letter.bytes[0] = 0;
	if (!err) {
		err = datagram ? send_query(id, &letter) : send_request(id, param, &letter);
		if (err)
			err = say_refused(id->cm->world, call, err);
	}
	if (err) {
		stop(id);
		return err;
	}
	id->state = CM_CONNECT;
	id->connect_bytes = 0;
	driver_catch_up(&id->cm->world->driver);
	return 0;
}

static int connect_checked(struct cm_id *id, const struct rdma_conn_param *param)
{
	HOLD hold = world_hold(id->cm->world);
	const struct ibv_device_attr *limits;
	int err = cm_check_state(id, "connect");

	if (!err)
		err = check_param(id, param, "connect");
	if (err)
		return err;
	limits = &id->device->device->engine->profile->limits;
	id->initiator_depth = smaller((unsigned int)limits->max_qp_init_rd_atom, UINT8_MAX);
	id->responder_resources = smaller((unsigned int)limits->max_qp_rd_atom, UINT8_MAX);
	if (param && param->initiator_depth != RDMA_MAX_INIT_DEPTH)
		id->initiator_depth = param->initiator_depth;
	if (param && param->responder_resources != RDMA_MAX_RESP_RES)
		id->responder_resources = param->responder_resources;
	take_qp(id, param);
	return connect_held(id, param);
}

int cm_connect(struct rdma_cm_id *rdma, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(rdma);
	int err = connect_checked(id, param);

	return err ? minus_errno(err) : cm_complete(id, "connect");
}

/* --- the answer to a REP --- */

static int send_rtu(struct cm_id *id, const char *call)
{
	HOLD hold = world_hold(id->cm->world);
	const struct sim_cm_private none = {NULL, 0};
	int err = cm_check_state(id, "establish");

	if (!err && !id->comm)
		err = refuse_plainly(call, VB_WHY_CM_NO_CONNECTION);
	if (err)
		return err;
	err = sim_cm_send_rtu(id->comm, &none);
	if (err)
		return say_refused(hold.world, call, err);
	driver_catch_up(&hold.world->driver);
	return 0;
}

int cm_follow_reply(struct cm_id *id, const char *call)
{
	int err = cm_qp_to_rtr(id, RDMA_MAX_RESP_RES);

	if (!err)
		err = cm_qp_to_rts(id, RDMA_MAX_INIT_DEPTH);
	if (!err && send_rtu(id, call))
		err = -1;
	if (err)
		cm_qp_to_err(id);
	return err;
}

int cm_establish(struct rdma_cm_id *rdma)
{
	int err;

	if (rdma->qp)
		return minus_errno(refuse_plainly("establish", VB_WHY_CM_HAS_QP));
	err = send_rtu(cm_id_of(rdma), "establish");
	return err ? minus_errno(err) : 0;
}

/* --- accept --- */

#define ACCEPT "accept"

static int send_reply(struct cm_id *id, const struct rdma_conn_param *param,
		      const struct letter *letter)
{
	const struct ibv_device_attr *limits = &id->device->device->engine->profile->limits;
	const struct sim_cm_reply reply = {
		.qpn = id->qpn,
		.starting_psn = id->starting_psn,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.target_ack_delay = limits->local_ca_ack_delay,
		.flow_control = param && param->flow_control,
		.rnr_retry_count = param ? smaller(param->rnr_retry_count, 7) : 7,
		.srq = id->srq,
		/* rdma-core librdmacm/cma.c, ucma_copy_ece_param_to_kern_rep. */
		.vendor_id = id->remote_ece.vendor_id,
		.ece_options = id->local_ece.options,
		.private_data = private_of(letter),
	};

	return sim_cm_send_rep(id->comm, &reply);
}

static int send_answer(struct cm_id *id, uint8_t status, const struct letter *letter)
{
	const struct sim_cm_answer answer = {
		.status = status,
		.qpn = status ? 0 : id->qpn,
		.qkey = status ? 0 : RDMA_UDP_QKEY,
		.vendor_id = status ? 0 : id->local_ece.vendor_id,
		.ece_options = status ? 0 : id->local_ece.options,
		.private_data = private_of(letter),
	};

	return sim_cm_send_sidr_rep(id->comm, &answer);
}

/* Sends the answer. 0, or an errno with a sentence. */
static int answer(struct cm_id *id, const struct rdma_conn_param *param)
{
	const bool datagram = cm_is_datagram(id);
	struct letter letter = {.used = 0};
	int err;

	err = add_param(&letter, id, param,
			datagram ? SIM_CM_SIDR_REP_PRIVATE_BYTES : SIM_CM_REP_PRIVATE_BYTES,
			datagram ? "SIDR_REP" : "REP", ACCEPT);
	if (err)
		return err;
	take_qp(id, param);
	err = datagram ? send_answer(id, SIDR_SUCCESS, &letter) : send_reply(id, param, &letter);
	return err ? say_refused(id->cm->world, ACCEPT, err) : 0;
}

/* Rejects a request that could not be accepted: Linux cma.c, rdma_accept. */
static void turn_down(struct cm_id *id)
{
	const struct letter nothing = {.used = 0};

	if (cm_is_datagram(id))
		send_answer(id, SIDR_REJECT, &nothing);
	else
		sim_cm_send_rej(id->comm,
				&(struct sim_cm_rejection){.reason = REJ_CONSUMER_DEFINED});
}

static int accept_held(struct cm_id *id, const struct rdma_conn_param *param)
{
	HOLD hold = world_hold(id->cm->world);
	int err = answer(id, param);

	if (err)
		turn_down(id);
	else
		id->unaccepted = false;
	driver_catch_up(&hold.world->driver);
	return err;
}

static int check_accept(struct cm_id *id, const struct rdma_conn_param *param)
{
	HOLD hold = world_hold(id->cm->world);
	const struct ibv_device_attr *limits;
	int err = cm_check_state(id, ACCEPT);

	if (!err && !id->comm)
		err = refuse_plainly(ACCEPT, VB_WHY_CM_NO_CONNECTION);
	if (!err)
		err = check_param(id, param, ACCEPT);
	if (err)
		return err;
	limits = &id->device->device->engine->profile->limits;
	id->initiator_depth =
		param && param->initiator_depth != RDMA_MAX_INIT_DEPTH
			? param->initiator_depth
			: smaller(id->initiator_depth, (unsigned int)limits->max_qp_init_rd_atom);
	id->responder_resources =
		param && param->responder_resources != RDMA_MAX_RESP_RES
			? param->responder_resources
			: smaller(id->responder_resources, (unsigned int)limits->max_qp_rd_atom);
	return 0;
}

int cm_accept(struct rdma_cm_id *rdma, struct rdma_conn_param *param)
{
	struct cm_id *id = cm_id_of(rdma);
	int err = check_accept(id, param);

	if (err)
		return minus_errno(err);
	if (!cm_is_datagram(id) &&
	    (cm_qp_to_rtr(id, id->responder_resources) || cm_qp_to_rts(id, id->initiator_depth)))
		return -1;
	err = accept_held(id, param);
	if (err) {
		cm_qp_to_err(id);
		return minus_errno(err);
	}
	if (!cm_is_datagram(id))
		return cm_complete(id, ACCEPT);
	if (id->sync && rdma->event) {
		cm_ack_cm_event(rdma->event);
		rdma->event = NULL;
	}
	return 0;
}

/* --- reject, notify, disconnect --- */

static int reject(struct cm_id *id, uint16_t reason, const void *private_data, size_t bytes,
		  const char *call)
{
	HOLD hold = world_hold(id->cm->world);
	const bool datagram = cm_is_datagram(id);
	struct letter letter = {.used = 0};
	int err = cm_check_state(id, call);

	if (!err && !id->comm)
		err = refuse_plainly(call, VB_WHY_CM_NO_CONNECTION);
	if (!err && private_data)
		err = add(&letter, private_data, bytes,
			  datagram ? SIM_CM_SIDR_REP_PRIVATE_BYTES : SIM_CM_REJ_PRIVATE_BYTES,
			  datagram ? "SIDR_REP" : "REJ", call);
	if (err)
		return err;
	if (datagram)
		err = send_answer(id, SIDR_REJECT, &letter);
	else
		err = sim_cm_send_rej(
			id->comm, &(struct sim_cm_rejection){.reason = reason,
							     .private_data = private_of(&letter)});
	if (err)
		return say_refused(hold.world, call, err);
	driver_catch_up(&hold.world->driver);
	return 0;
}

int cm_reject(struct rdma_cm_id *rdma, const void *private_data, uint8_t private_data_len)
{
	int err = reject(cm_id_of(rdma), REJ_CONSUMER_DEFINED, private_data, private_data_len,
			 "reject");

	return err ? minus_errno(err) : 0;
}

int cm_reject_ece(struct rdma_cm_id *rdma, const void *private_data, uint8_t private_data_len)
{
	int err = reject(cm_id_of(rdma), REJ_VENDOR_OPTION, private_data, private_data_len,
			 "reject_ece");

	return err ? minus_errno(err) : 0;
}

int cm_notify(struct rdma_cm_id *rdma, enum ibv_event_type event)
{
	struct cm_id *id = cm_id_of(rdma);
	HOLD hold = world_hold(id->cm->world);
	int err = cm_check_state(id, "notify");

	if (err)
		return minus_errno(err);
	if (!id->comm)
		return minus_errno(refuse_plainly("notify", VB_WHY_CM_NO_CONNECTION));
	/* Linux drivers/infiniband/core/cm.c, ib_cm_notify. */
	if (event != IBV_EVENT_COMM_EST)
		return minus_errno(
			refuse_why("notify", (struct vb_why){VB_WHY_CM_NOTIFY, {(uint64_t)event}}));
	err = sim_cm_notify(id->comm);
	if (err)
		return minus_errno(say_refused(hold.world, "notify", err));
	driver_catch_up(&hold.world->driver);
	return 0;
}

static int disconnect_held(struct cm_id *id)
{
	HOLD hold = world_hold(id->cm->world);
	const struct sim_cm_private none = {NULL, 0};
	int err = cm_check_state(id, "disconnect");

	if (err)
		return err;
	if (!id->comm)
		return refuse_plainly("disconnect", VB_WHY_CM_NO_CONNECTION);
	/* Begins the disconnection, or answers the peer's. That there is nothing to end is no error: Linux
	 * cma.c, rdma_disconnect. */
	if (sim_cm_send_dreq(id->comm, &none))
		sim_cm_send_drep(id->comm, &none);
	if (cm_ending_stop(id))
		cm_event_tell(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	driver_catch_up(&hold.world->driver);
	return 0;
}

int cm_disconnect(struct rdma_cm_id *rdma)
{
	struct cm_id *id = cm_id_of(rdma);
	int err;

	if (!rdma->verbs)
		return minus_errno(refuse_plainly("disconnect", VB_WHY_CM_NO_CONNECTION));
	if (cm_qp_to_err(id))
		return -1;
	err = disconnect_held(id);
	return err ? minus_errno(err) : cm_complete(id, "disconnect");
}
