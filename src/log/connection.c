/* SPDX-License-Identifier: MIT */
#include "src/log/connection.h"

#include "src/cm/cause.h"
#include "src/log/log.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <verbena/cm.h>

#define OBJECT_NAME_BYTES 32
#define ADDRESS_BYTES	  (INET6_ADDRSTRLEN + 8)

#define MEMBER(field)                                                              \
	{                                                                          \
		.name = #field, .offset = offsetof(struct rdma_conn_param, field), \
		.size_bytes = sizeof(((struct rdma_conn_param *)0)->field)         \
	}

const struct member connection_param[] = {
	MEMBER(private_data_len),
	MEMBER(responder_resources),
	MEMBER(initiator_depth),
	MEMBER(flow_control),
	MEMBER(retry_count),
	MEMBER(rnr_retry_count),
	MEMBER(srq),
	MEMBER(qp_num),
	{0},
};

const char *connection_port_space(uint64_t space)
{
	switch (space) {
	case RDMA_PS_IPOIB:
		return "RDMA_PS_IPOIB";
	case RDMA_PS_TCP:
		return "RDMA_PS_TCP";
	case RDMA_PS_UDP:
		return "RDMA_PS_UDP";
	case RDMA_PS_IB:
		return "RDMA_PS_IB";
	default:
		return NULL;
	}
}

static uint32_t qpn_of(const struct rdma_cm_id *id)
{
	return id->qp ? id->qp->qp_num : 0;
}

uint32_t connection_qpn(const struct layer_call *call)
{
	const struct layer_verb_info *info = layer_verb_info(call->verb);
	struct layer_object found;
	const void *object;

	/* An identifier that has ended cannot be read, nor one of no backend. */
	if (!info->parameter_count || call->verb == LAYER_cm_destroy_id ||
	    call->verb == LAYER_cm_destroy_ep)
		return 0;
	object = (const void *)(uintptr_t)call->arguments[0];
	return layer_object_find(object, &found) && strcmp(found.kind, "id") == 0 ? qpn_of(object)
										  : 0;
}

/* --- addresses --- */

void connection_add_address(struct line *line, const struct sockaddr *address)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	char text[ADDRESS_BYTES], ip[INET6_ADDRSTRLEN];

	if (!address) {
		line_plain(line, "null");
		return;
	}
	switch (address->sa_family) {
	case AF_INET:
		snprintf(text, sizeof(text), "%s %u",
			 inet_ntop(AF_INET, &in4->sin_addr, ip, sizeof(ip)), ntohs(in4->sin_port));
		break;
	case AF_INET6:
		snprintf(text, sizeof(text), "%s %u",
			 inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip)),
			 ntohs(in6->sin6_port));
		break;
	default:
		snprintf(text, sizeof(text), "family %u", address->sa_family);
		break;
	}
	line_word(line, text);
}

/* --- events --- */

/* Bits of struct vb_event.absent: the fields of CONNECTION. */
enum { PRIVATE_BYTES = 1 << 1 };

static const char *name_of(const struct rdma_cm_id *id, char *text, size_t size_bytes)
{
	if (!id)
		return NULL;
	layer_object_name(id, text, size_bytes);
	return text[0] ? text : NULL;
}

/* Connected identifiers and those for datagrams have it in different members. */
static uint8_t private_bytes(const struct rdma_cm_event *event)
{
	return event->id->ps == RDMA_PS_UDP || event->id->ps == RDMA_PS_IPOIB
		       ? event->param.ud.private_data_len
		       : event->param.conn.private_data_len;
}

void connection_write(const struct layer_call *call, uint64_t time_ns)
{
	const struct rdma_cm_event *taken =
		*(struct rdma_cm_event *const *)(uintptr_t)call->arguments[1];
	char id[OBJECT_NAME_BYTES], listener[OBJECT_NAME_BYTES];
	struct vb_event event = {
		.kind = VB_EVENT_CONNECTION,
		.time_ns = time_ns,
		.device = call->device,
		.qpn = qpn_of(taken->id),
		.values = {(uint64_t)(int64_t)taken->status, private_bytes(taken)},
		.texts = {vb_cm_event_str(taken->event), name_of(taken->id, id, sizeof(id)),
			  name_of(taken->listen_id, listener, sizeof(listener))},
	};
	struct record record = {.no_time = !call->context};
	struct vb_why why;

	if (!event.values[1])
		event.absent |= PRIVATE_BYTES;
	if (cause_of_event(taken, &why))
		event.why = &why;
	log_write(&event, &record);
}
